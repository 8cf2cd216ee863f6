//! Commands that reach into a run: `stream_input`, `end_input_stream`, `update_node_properties` (wire specification 2.2).
//! Properties of a running node cannot be changed here, which is what the last one is answered with.

use atelier_proto::kernel::v1::PushInputRequest;
use atelier_proto::reason;
use atelier_proto::value::Value;
use uuid::Uuid;

use super::commands::Request;
use super::refusal::{Refusal, text_of};
use super::socket::{Connection, fields};
use crate::error::Error;

pub(crate) async fn stream(connection: &Connection, request: &Request) -> Result<(), Refusal> {
    let finish = request.command == "end_input_stream";
    let Some(job_id) = request.id("job_id")? else {
        return Err(Refusal::plain("job_id is required"));
    };
    let Some(name) = request.id("input")? else {
        return Err(Refusal::plain("Invalid input name"));
    };
    let value = match request.data.get("value") {
        _ if finish => None,
        // A value that is left out is null, as in the messages of the field.
        value => Some(value.unwrap_or(&Value::Null).into()),
    };
    // A client that repeats a message says so by its id; any other message is one of its own.
    let input_id = match request.id("input_id")? {
        Some(id) => id.to_owned(),
        None => Uuid::now_v7().to_string(),
    };
    let message = PushInputRequest {
        job_id: job_id.to_owned(),
        name: name.to_owned(),
        value,
        handle: request.id("handle")?.map(ToOwned::to_owned),
        finish,
        input_id,
    };
    let workflow_id = request.id("workflow_id")?.unwrap_or_default();
    let keys = [("job_id", job_id.into()), ("workflow_id", workflow_id.into())];
    let mut jobs = connection.app.clients.jobs();
    let call = jobs.push_input(connection.app.clients.request(&connection.caller, message));
    if let Err(error) = connection.app.clients.answer(call).await {
        return Err(refused(&error, keys));
    }
    let text = if finish {
        "Input stream ended"
    } else {
        "Input item streamed"
    };
    let ack = [("message", text.into())].into_iter().chain(keys);
    connection.reply(request, fields(ack)).await?;
    Ok(())
}

fn refused(error: &Error, keys: [(&'static str, Value); 2]) -> Refusal {
    let code = match error {
        Error::Service(status) => reason::reason_of(status),
        _ => String::new(),
    };
    match code.as_str() {
        reason::JOB_NOT_FOUND | reason::JOB_NOT_RUNNING => Refusal::plain("No active job/context"),
        reason::INVALID_FIELD if names_input(error) => Refusal::plain("Invalid input name"),
        _ => Refusal::Plain(text_of(error), keys.into()),
    }
}

/// Whether a refusal is about the name of the input.
fn names_input(error: &Error) -> bool {
    use tonic_types::StatusExt;
    let Error::Service(status) = error else {
        return false;
    };
    status.get_details_bad_request().is_some_and(|bad| {
        bad.field_violations
            .iter()
            .any(|violation| violation.field == "name")
    })
}

pub(crate) async fn update_properties(connection: &Connection, request: &Request) -> Result<(), Refusal> {
    if request.id("node_id")?.is_none() {
        return Err(Refusal::plain("node_id is required"));
    }
    if request
        .data
        .get("properties")
        .and_then(super::decode::object)
        .is_none()
    {
        return Err(Refusal::plain("properties must be an object"));
    }
    connection
        .reply(request, fields([("applied", Value::Bool(false))]))
        .await?;
    Ok(())
}

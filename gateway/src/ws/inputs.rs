//! Commands that reach into a run: `stream_input`, `end_input_stream`, `update_node_properties`. Runs of this server take
//! their inputs when they start; these commands are checked and answered as for a run that cannot be reached.

use atelier_proto::value::Value;

use super::commands::Request;
use super::refusal::Refusal;
use super::socket::{Connection, fields};
use crate::rest::jobs::fetch;
use crate::wire::words;

pub(crate) async fn stream(connection: &Connection, request: &Request) -> Result<(), Refusal> {
    let Some(job_id) = request.id("job_id")? else {
        return Err(Refusal::plain("job_id is required"));
    };
    let active = match fetch(&connection.app, &connection.caller, job_id).await {
        Ok(job) => !words::is_terminal(job.status),
        Err(_) => false,
    };
    if !active {
        return Err(Refusal::plain("No active job/context"));
    }
    if request.id("input")?.is_none() {
        return Err(Refusal::plain("Invalid input name"));
    }
    let workflow_id = request.id("workflow_id")?.unwrap_or_default();
    let keys = vec![("job_id", job_id.into()), ("workflow_id", workflow_id.into())];
    Err(Refusal::Plain(
        "Streaming into a running job is not supported".to_owned(),
        keys,
    ))
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

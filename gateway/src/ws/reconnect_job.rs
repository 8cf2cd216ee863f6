//! `reconnect_job`: watches a run again, from a number on (wire specification 2.5).

use atelier_proto::value::{Map, Value};

use super::attach::{Opening, nothing_to_replay};
use super::commands::Request;
use super::refusal::Refusal;
use super::socket::Connection;
use crate::rest::jobs::fetch;

pub(crate) async fn run(connection: &mut Connection, request: &Request) -> Result<(), Refusal> {
    let Some(job_id) = request.id("job_id")? else {
        return Err(Refusal::plain("job_id is required"));
    };
    let last_seq = match request.data.get("last_seq") {
        None | Some(Value::Null) => None,
        Some(number) => match number.as_i64().filter(|number| *number >= 0) {
            Some(number) => Some(number),
            None => return Err(Refusal::Malformed("last_seq must be a number from 0".to_owned())),
        },
    };
    let polls = connection.runs.polls(job_id);
    if polls && last_seq.is_none() {
        let job = fetch(&connection.app, &connection.caller, job_id).await?;
        let frame = nothing_to_replay(job_id, job.workflow_id.as_deref(), job.last_seq);
        connection.queue.keep(frame).await?;
        connection.queue.keep(ack(request, job_id)?).await?;
        return Ok(());
    }
    attach(connection, request, job_id, last_seq, polls).await
}

/// Watches a run and tells where the client stands.
pub(crate) async fn attach(
    connection: &mut Connection,
    request: &Request,
    job_id: &str,
    last_seq: Option<i64>,
    polls: bool,
) -> Result<(), Refusal> {
    let workflow_id = request.id("workflow_id")?.map(ToOwned::to_owned);
    let opening = Opening {
        resumed: true,
        ack: Some(ack(request, job_id)?),
        workflow_id,
    };
    connection.attach(job_id, last_seq.unwrap_or(0), polls, opening);
    Ok(())
}

fn ack(request: &Request, job_id: &str) -> Result<Map, Refusal> {
    let workflow_id = request.id("workflow_id")?.map_or(Value::Null, Into::into);
    let mut ack = Map::from_iter([
        (
            "message".to_owned(),
            format!("Reconnecting to job {job_id}").into(),
        ),
        ("job_id".to_owned(), job_id.into()),
        ("workflow_id".to_owned(), workflow_id),
    ]);
    if let Some(id) = &request.request_id {
        ack.insert("request_id".to_owned(), id.as_str().into());
    }
    Ok(ack)
}

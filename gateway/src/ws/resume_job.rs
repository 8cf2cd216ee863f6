//! `resume_job` and `pause_job`. A run that goes on is watched again. Runs cannot be paused, and one that is
//! suspended cannot be resumed by this server: both are said, and the run is untouched.

use super::commands::Request;
use super::reconnect_job;
use super::refusal::Refusal;
use super::socket::Connection;
use crate::rest::jobs::fetch;
use crate::wire::words;

pub(crate) async fn resume(connection: &mut Connection, request: &Request) -> Result<(), Refusal> {
    let Some(job_id) = request.id("job_id")? else {
        return Err(Refusal::plain("job_id is required"));
    };
    let running = match fetch(&connection.app, &connection.caller, job_id).await {
        Ok(job) => matches!(words::job_status(job.status), "running" | "queued"),
        Err(_) => false,
    };
    if !running {
        return Err(Refusal::Plain(
            "Job cannot be resumed".to_owned(),
            vec![("job_id", job_id.into())],
        ));
    }
    let polls = connection.runs.polls(job_id);
    reconnect_job::attach(connection, request, job_id, None, polls).await
}

pub(crate) async fn pause(_: &Connection, request: &Request) -> Result<(), Refusal> {
    let Some(job_id) = request.id("job_id")? else {
        return Err(Refusal::plain("job_id is required"));
    };
    Err(Refusal::Plain(
        "Pausing is not supported".to_owned(),
        vec![("job_id", job_id.into())],
    ))
}

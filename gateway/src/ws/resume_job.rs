//! `resume_job` and `pause_job`. A run that is suspended goes on, and its new frames follow; one that goes on is
//! watched again. Runs cannot be paused: that is said, and the run is untouched.

use atelier_proto::kernel::v1::{JobStatus, ResumeJobRequest};

use super::commands::Request;
use super::reconnect_job;
use super::refusal::Refusal;
use super::socket::Connection;
use crate::rest::jobs::fetch;

pub(crate) async fn resume(connection: &mut Connection, request: &Request) -> Result<(), Refusal> {
    let Some(job_id) = request.id("job_id")? else {
        return Err(Refusal::plain("job_id is required"));
    };
    let job = fetch(&connection.app, &connection.caller, job_id).await;
    let polls = connection.runs.polls(job_id);
    match job.as_ref().map(|job| (job.status(), job.last_seq)) {
        Ok((JobStatus::Running | JobStatus::Queued, _)) => {
            reconnect_job::attach(connection, request, job_id, None, polls).await
        }
        Ok((JobStatus::Suspended, last_seq)) => {
            let state = request.object("state")?;
            let message = ResumeJobRequest {
                job_id: job_id.to_owned(),
                state: state.as_ref().map(Into::into),
                node_id: request.id("node_id")?.map(ToOwned::to_owned),
            };
            let mut jobs = connection.app.clients.jobs();
            let call = jobs.resume_job(connection.app.clients.request(&connection.caller, message));
            if let Err(error) = connection.app.clients.answer(call).await {
                tracing::info!(job_id, %error, "a run could not be resumed");
                return Err(cannot(job_id));
            }
            // What came before was watched before, or can be asked for with `reconnect_job`.
            reconnect_job::attach(connection, request, job_id, Some(last_seq), polls).await
        }
        _ => Err(cannot(job_id)),
    }
}

fn cannot(job_id: &str) -> Refusal {
    Refusal::Plain(
        "Job cannot be resumed".to_owned(),
        vec![("job_id", job_id.into())],
    )
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

//! `cancel_job`. A run that waited is told as cancelled before the reply; one that ran says so itself, after the frames
//! of work that is paid for already (wire specification 2.2).

use std::time::Duration;

use atelier_proto::kernel::v1::CancelJobRequest;
use atelier_proto::reason;
use atelier_proto::value::Value;

use super::commands::Request;
use super::refusal::Refusal;
use super::socket::{Connection, fields};
use crate::error::Error;
use crate::wire::frame::job_update;

/// How long the last frame of a run that only waited may take to come by.
const LAST_FRAME: Duration = Duration::from_secs(2);

pub(crate) async fn run(connection: &Connection, request: &Request) -> Result<(), Refusal> {
    let Some(job_id) = request.id("job_id")? else {
        return Err(Refusal::plain("job_id is required"));
    };
    let named = request.id("workflow_id")?;
    let app = &connection.app;
    let mut jobs = app.clients.jobs();
    let message = CancelJobRequest {
        job_id: job_id.to_owned(),
    };
    let call = jobs.cancel_job(app.clients.request(&connection.caller, message));
    let job = match app.clients.answer(call).await {
        Ok(answer) if answer.cancelled => answer.job.unwrap_or_default(),
        Ok(_) => return Err(over(job_id, named)),
        Err(Error::Service(status)) if reason::reason_of(&status) == reason::JOB_NOT_FOUND => {
            return Err(over(job_id, named));
        }
        Err(error) => return Err(error.into()),
    };
    let workflow_id = job.workflow_id.as_deref().or(named);
    let waited = job.started_at.is_none();
    if waited {
        match connection.runs.end_of(job_id) {
            // The run's own last frame is on its way to this client.
            Some(mut done) => {
                let _ = tokio::time::timeout(LAST_FRAME, done.wait_for(|done| *done)).await;
            }
            None => {
                connection
                    .queue
                    .keep(job_update(job_id, workflow_id, "cancelled", None))
                    .await?;
            }
        }
    }
    let text = if waited {
        "Queued job cancelled"
    } else {
        "Job cancellation requested"
    };
    let keys = [
        ("message", text.into()),
        ("job_id", job_id.into()),
        ("workflow_id", workflow_id.unwrap_or_default().into()),
    ];
    connection.reply(request, fields(keys)).await?;
    Ok(())
}

/// A run that ended, is not there, or is somebody else's: all the same.
fn over(job_id: &str, workflow_id: Option<&str>) -> Refusal {
    let keys: Vec<(&'static str, Value)> = vec![
        ("job_id", job_id.into()),
        ("workflow_id", workflow_id.unwrap_or_default().into()),
    ];
    Refusal::Plain("Job not found or already completed".to_owned(), keys)
}

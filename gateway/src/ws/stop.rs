//! `stop`: ends a run, and says so at once.

use atelier_proto::kernel::v1::CancelJobRequest;
use atelier_proto::value::Value;

use super::commands::Request;
use super::refusal::{Refusal, text_of};
use super::socket::{Connection, fields};

pub(crate) async fn run(connection: &Connection, request: &Request) -> Result<(), Refusal> {
    let (job_id, thread_id) = (request.id("job_id")?, request.id("thread_id")?);
    if let Some(job_id) = job_id {
        let app = &connection.app;
        let mut jobs = app.clients.jobs();
        let message = CancelJobRequest {
            job_id: job_id.to_owned(),
        };
        // A run that is not there has stopped.
        if let Err(error) = app
            .clients
            .answer(jobs.cancel_job(app.clients.request(&connection.caller, message)))
            .await
        {
            tracing::info!(job_id, error = text_of(&error), "nothing to stop");
        }
    }
    let ids = || {
        let nullable = |id: Option<&str>| id.map_or(Value::Null, Into::into);
        [("job_id", nullable(job_id)), ("thread_id", nullable(thread_id))]
    };
    let text = ("message", Value::from("Generation stopped by user"));
    let frame = fields(
        [("type", "generation_stopped".into()), text]
            .into_iter()
            .chain(ids()),
    );
    connection.send(frame).await?;
    let text = ("message", Value::from("Stop command processed"));
    connection
        .reply(request, fields([text].into_iter().chain(ids())))
        .await?;
    Ok(())
}

//! `get_status`: one run, or all that run or wait.

use atelier_proto::kernel::v1::{Job, JobStatus, ListJobsRequest};
use atelier_proto::reason;
use atelier_proto::value::Value;

use super::commands::Request;
use super::refusal::Refusal;
use super::socket::{Connection, fields};
use crate::error::Error;
use crate::rest::jobs::fetch;
use crate::wire::words;

/// Runs of one state that are told.
const MOST: i32 = 500;

pub(crate) async fn run(connection: &Connection, request: &Request) -> Result<(), Refusal> {
    let Some(job_id) = request.id("job_id")? else {
        return all(connection, request).await;
    };
    match fetch(&connection.app, &connection.caller, job_id).await {
        Ok(job) => connection.reply(request, fields(told(&job))).await?,
        Err(Error::Service(status)) if reason::reason_of(&status) == reason::JOB_NOT_FOUND => {
            let reply = fields([("status", "not_found".into()), ("job_id", job_id.into())]);
            connection.reply(request, reply).await?;
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

async fn all(connection: &Connection, request: &Request) -> Result<(), Refusal> {
    let mut active = Vec::new();
    for status in [JobStatus::Running, JobStatus::Queued] {
        let message = ListJobsRequest {
            page_size: MOST,
            status: Some(status.into()),
            ..ListJobsRequest::default()
        };
        let app = &connection.app;
        let mut jobs = app.clients.jobs();
        let page = app
            .clients
            .answer(jobs.list_jobs(app.clients.request(&connection.caller, message)))
            .await?;
        active.extend(page.jobs.iter().map(|job| Value::map(fields(told(job)))));
    }
    connection
        .reply(request, fields([("active_jobs", Value::list(active))]))
        .await?;
    Ok(())
}

fn told(job: &Job) -> [(&'static str, Value); 3] {
    [
        ("status", words::job_status(job.status).into()),
        ("job_id", job.job_id.as_str().into()),
        (
            "workflow_id",
            job.workflow_id.as_deref().map_or(Value::Null, Into::into),
        ),
    ]
}

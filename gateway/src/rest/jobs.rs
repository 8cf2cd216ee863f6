//! Runs: start, list, look at, cancel. Their events are in `sse.rs`.

use std::time::Duration;

use atelier_common::identity::Caller;
use atelier_proto::kernel::v1::{
    CancelJobRequest, GetJobRequest, Job as JobMessage, ListJobsRequest, RunJobRequest, RunJobResponse,
};
use atelier_proto::tracker::v1::{CostSummary, GenerationFilter, SummarizeCostsRequest};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::graph;
use crate::app::App;
use crate::auth::Who;
use crate::error::Error;
use crate::extract::{JsonBody, Path, Query};
use crate::problem::ErrorBody;
use crate::watch::{Cursor, Item, watch};
use crate::wire::resource::{Job, JobCost};
use crate::wire::{frame, words};

/// Seconds that `?wait` waits for.
const DEFAULT_WAIT: u64 = 30;
/// Most seconds to wait for.
const MAX_WAIT: u64 = 300;
/// The same.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(MAX_WAIT);
/// Sums of a list that are asked for at once.
const SUMS_AT_ONCE: usize = 8;

/// How to answer.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct RunQuery {
    /// Wait for the end of the run, at most this many seconds; 30 when no number is given, at most 300.
    wait: Option<String>,
}

/// Starts a run.
///
/// What is wrong with the graph is told by the run: it is created and fails with issues. Repeating a request with the
/// same `job_id` and body answers with the first run.
#[utoipa::path(
    post, path = "/jobs", operation_id = "runJob", tag = "jobs", params(RunQuery), request_body = graph::JobBody,
    responses(
        (status = 201, description = "The run was created", body = Job),
        (status = 200, description = "The run was there already", body = Job),
        (status = 202, description = "The wait ran out while it was running", body = Job),
        (status = 400, description = "A field is wrong, or the body is no JSON", body = ErrorBody),
        (status = 404, description = "No such workflow", body = ErrorBody),
        (status = 409, description = "The id was used with another body", body = ErrorBody),
        (status = 413, description = "The body is too large", body = ErrorBody),
        (status = 415, description = "The body is not JSON by its type", body = ErrorBody),
        (status = 503, description = "A service cannot be reached", body = ErrorBody),
    )
)]
pub(crate) async fn run(
    State(app): State<App>,
    Who(caller): Who,
    Query(query): Query<RunQuery>,
    JsonBody(body): JsonBody,
) -> Result<Response, Error> {
    start(&app, &caller, graph::run_request(body)?, &query).await
}

/// Starts a run, and waits for its end if asked to.
pub(crate) async fn start(
    app: &App,
    caller: &Caller,
    request: RunJobRequest,
    query: &RunQuery,
) -> Result<Response, Error> {
    let wait = query.wait.as_deref().map(wait_of).transpose()?;
    let (mut job, created) = begin(app, caller, request).await?;
    let mut status = if created {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    if let Some(wait) = wait {
        let ended;
        (job, ended) = ended_within(app, caller, job, wait).await?;
        if !ended {
            status = StatusCode::ACCEPTED;
        }
    }
    // Whoever sent the graph has it.
    job.graph_json = None;
    let job = with_cost(app, caller, job).await;
    Ok((status, Json(job)).into_response())
}

/// Starts a run: it, and whether this call created it.
pub(crate) async fn begin(
    app: &App,
    caller: &Caller,
    request: RunJobRequest,
) -> Result<(JobMessage, bool), Error> {
    if app.tasks.stopping() {
        return Err(Error::Draining);
    }
    let mut jobs = app.clients.jobs();
    let RunJobResponse { job, created } = app
        .clients
        .answer(jobs.run_job(app.clients.request(caller, request)))
        .await?;
    Ok((job.unwrap_or_default(), created))
}

/// Waits for the end of a run: it as it is then, and whether it ended.
pub(crate) async fn ended_within(
    app: &App,
    caller: &Caller,
    job: JobMessage,
    limit: Duration,
) -> Result<(JobMessage, bool), Error> {
    if words::is_terminal(job.status) {
        return Ok((job, true));
    }
    let token = app.tasks.token();
    let ended = tokio::time::timeout(limit, until_end(app, caller, &job.job_id));
    let in_time = matches!(token.run_until_cancelled(ended).await, Some(Ok(Ok(()))));
    let job = fetch(app, caller, &job.job_id).await?;
    let ended = in_time || words::is_terminal(job.status);
    Ok((job, ended))
}

fn wait_of(text: &str) -> Result<Duration, Error> {
    let seconds = if text.is_empty() {
        Some(DEFAULT_WAIT)
    } else {
        text.parse().ok()
    };
    match seconds.filter(|seconds| *seconds <= MAX_WAIT) {
        Some(seconds) => Ok(Duration::from_secs(seconds)),
        None => Err(Error::field(
            "wait",
            format!("must be a number of seconds up to {MAX_WAIT}"),
        )),
    }
}

/// Waits for the last event of a run. Cancel safe.
async fn until_end(app: &App, caller: &Caller, job_id: &str) -> Result<(), Error> {
    let cursor = Cursor {
        job_id: job_id.to_owned(),
        after_seq: 0,
        replay_only: false,
    };
    let mut events = std::pin::pin!(watch(app.clone(), caller.clone(), cursor));
    while let Some(item) = events.next().await {
        if let Item::Event(event) = item?
            && frame::ends(&event)
        {
            break;
        }
    }
    Ok(())
}

/// One run, with its graph.
pub(crate) async fn fetch(app: &App, caller: &Caller, job_id: &str) -> Result<JobMessage, Error> {
    let request = app.clients.request(
        caller,
        GetJobRequest {
            job_id: job_id.to_owned(),
        },
    );
    let mut jobs = app.clients.jobs();
    Ok(app
        .clients
        .answer(jobs.get_job(request))
        .await?
        .job
        .unwrap_or_default())
}

/// A run as its owner sees it.
pub(crate) async fn with_cost(app: &App, caller: &Caller, job: JobMessage) -> Job {
    let total = cost_of(app, caller, &job.job_id).await;
    Job::new(job, JobCost::new(total.as_ref()), &caller.user_id)
}

/// What the calls of a run cost; not known while the ledger cannot be reached, which is no reason to hide the run.
async fn cost_of(app: &App, caller: &Caller, job_id: &str) -> Option<CostSummary> {
    let filter = GenerationFilter {
        job_id: Some(job_id.to_owned()),
        ..GenerationFilter::default()
    };
    let request = SummarizeCostsRequest {
        filter: Some(filter),
        ..SummarizeCostsRequest::default()
    };
    let mut ledger = app.clients.ledger();
    match app
        .clients
        .answer(ledger.summarize_costs(app.clients.request(caller, request)))
        .await
    {
        Ok(summary) => Some(summary.total.unwrap_or_default()),
        Err(error) => {
            tracing::warn!(job_id, %error, "the cost of a run is not known");
            None
        }
    }
}

/// Which runs to list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct JobsQuery {
    /// `queued`, `running`, `completed`, `failed`, `cancelled` or `suspended`.
    status: Option<String>,
    /// Only runs of this workflow.
    workflow_id: Option<String>,
    /// Rows of a page, 1 to 500. Default 50.
    limit: Option<i32>,
    /// The `next` of the page before.
    cursor: Option<String>,
}

/// A page of runs.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct JobPage {
    /// The runs, newest first.
    jobs: Vec<Job>,
    /// The cursor to the next page.
    #[schema(required)]
    next: Option<String>,
}

/// Lists runs, newest first.
#[utoipa::path(
    get, path = "/jobs", operation_id = "listJobs", tag = "jobs", params(JobsQuery),
    responses(
        (status = 200, description = "A page", body = JobPage),
        (status = 400, description = "A parameter is wrong", body = ErrorBody),
    )
)]
pub(crate) async fn list(
    State(app): State<App>,
    Who(caller): Who,
    Query(query): Query<JobsQuery>,
) -> Result<Json<JobPage>, Error> {
    let known = "queued, running, completed, failed, cancelled, suspended";
    let status = super::word("status", query.status.as_deref(), words::parse_job_status, known)?;
    let request = ListJobsRequest {
        page_size: super::page_size(query.limit)?,
        page_token: query.cursor.unwrap_or_default(),
        status: status.map(Into::into),
        workflow_id: query.workflow_id,
    };
    let mut jobs = app.clients.jobs();
    let page = app
        .clients
        .answer(jobs.list_jobs(app.clients.request(&caller, request)))
        .await?;
    let jobs = stream::iter(page.jobs)
        .map(|job| with_cost(&app, &caller, job))
        .buffered(SUMS_AT_ONCE)
        .collect()
        .await;
    Ok(Json(JobPage {
        jobs,
        next: super::next(page.next_page_token),
    }))
}

/// One run, with its graph.
#[utoipa::path(
    get, path = "/jobs/{id}", operation_id = "getJob", tag = "jobs",
    params(("id" = String, Path, description = "The run")),
    responses(
        (status = 200, description = "The run", body = Job),
        (status = 404, description = "No such run", body = ErrorBody),
    )
)]
pub(crate) async fn get(
    State(app): State<App>,
    Who(caller): Who,
    Path(id): Path<String>,
) -> Result<Json<Job>, Error> {
    let job = fetch(&app, &caller, &id).await?;
    Ok(Json(with_cost(&app, &caller, job).await))
}

/// What became of a cancel.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct JobCancelled {
    /// The run.
    job_id: String,
    /// Whether this call cancelled it.
    cancelled: bool,
    /// Its state.
    status: &'static str,
}

/// Cancels a run. One that ended already is no error.
#[utoipa::path(
    post, path = "/jobs/{id}/cancel", operation_id = "cancelJob", tag = "jobs",
    params(("id" = String, Path, description = "The run")),
    responses(
        (status = 200, description = "What became of it", body = JobCancelled),
        (status = 404, description = "No such run", body = ErrorBody),
    )
)]
pub(crate) async fn cancel(
    State(app): State<App>,
    Who(caller): Who,
    Path(id): Path<String>,
) -> Result<Json<JobCancelled>, Error> {
    let mut jobs = app.clients.jobs();
    let request = app
        .clients
        .request(&caller, CancelJobRequest { job_id: id.clone() });
    let answer = app.clients.answer(jobs.cancel_job(request)).await?;
    let status = words::job_status(answer.job.map_or(0, |job| job.status));
    Ok(Json(JobCancelled {
        job_id: id,
        cancelled: answer.cancelled,
        status,
    }))
}

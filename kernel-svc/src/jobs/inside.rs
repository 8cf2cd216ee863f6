//! Runs inside of runs: a node starts a run of its own, waits for its end, and takes its outputs. The inner run has its own
//! row, log and artifacts; what ends the outer one ends it.

use atelier_common::identity::Caller;
use atelier_proto::{
    kernel::v1::{Job, JobStatus, RunJobRequest, RunOptions, Severity},
    value::Map,
};

use tokio_util::sync::CancellationToken;

use super::{Jobs, store::Parent};
use crate::{
    error::Error,
    event::Note,
    log::Reader,
    node::{Context, InnerRun, NodeError},
};

/// How many runs may be inside of each other: a workflow that runs itself must end.
const MAX_DEPTH: i64 = 8;

/// Starts runs for the nodes of one run.
#[derive(Clone)]
pub struct Inner {
    jobs: Jobs,
    depth: i64,
    options: RunOptions,
}
/// An inner run that its node waits for. Dropped before its end by a cancel, it is cancelled: nobody would take its outputs.
/// When the outer run is given up by this process, the inner one goes on: whoever takes the outer one up finds it.
struct Waiting<'a> {
    jobs: &'a Jobs,
    job_key: String,
    ended: bool,
    cancel: CancellationToken,
}
impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.ended && self.cancel.is_cancelled() {
            self.jobs.trip(&self.job_key);
        }
    }
}
impl Inner {
    pub(super) fn new(jobs: Jobs, depth: i64, options: &RunOptions) -> Self {
        // How an inner run is told of is its own; whether its media are kept is not.
        let options = RunOptions {
            asset_persistence: options.asset_persistence,
            ..RunOptions::default()
        };
        Self { jobs, depth, options }
    }
    /// Runs a workflow for a node and waits for its end: a list of values for each output's name.
    ///
    /// When the outer run is cancelled the inner one is too, and its end is awaited.
    ///
    /// # Errors
    /// There is no such workflow, runs are too deep, or what the inner run failed with.
    pub async fn run(
        &self,
        caller: &Caller,
        ctx: &Context,
        ordinal: u32,
        inner: InnerRun,
    ) -> Result<Map, NodeError> {
        let depth = self.depth + 1;
        if depth > MAX_DEPTH {
            let text = format!(
                "runs are more than {MAX_DEPTH} deep inside of each other; does a workflow run itself?"
            );
            return Err(NodeError::new(text).code("run.too_deep"));
        }
        if ctx.cancel.is_cancelled() {
            return Err(NodeError::cancelled());
        }
        // The same id after a crash: what was paid for inside is found again.
        let place = format!("{}/{}/{}/{ordinal}", ctx.job_id, ctx.node_id, ctx.invocation);
        let job_id = format!("inner-{}", blake3::hash(place.as_bytes()).to_hex());
        let parent = Parent {
            job_id: ctx.job_id.to_string(),
            node_id: ctx.node_id.to_string(),
            depth,
        };
        let job = self.start(caller, job_id, parent, inner, ctx).await?;
        let end = self
            .end(caller, &job.job_id, ctx)
            .await
            .map_err(|error| lost(&error))?;
        outcome(end, ctx)
    }
    async fn start(
        &self,
        caller: &Caller,
        job_id: String,
        parent: Parent,
        inner: InnerRun,
        ctx: &Context,
    ) -> Result<Job, NodeError> {
        let InnerRun {
            workflow_id,
            graph,
            params,
        } = inner;
        let name = ctx.node_name.as_deref().unwrap_or(&ctx.node_id).to_owned();
        let request = |graph_json: Option<String>| RunJobRequest {
            job_id: job_id.clone(),
            workflow_id: workflow_id.clone(),
            graph_json,
            params: Some((&params).into()),
            name: name.clone(),
            options: Some(self.options),
            ..RunJobRequest::default()
        };
        let saved = workflow_id.as_ref().map(|_| request(None));
        let mut started = match saved {
            Some(request) => Box::pin(self.jobs.start_inside(caller, request, Some(parent.clone()))).await,
            None => Err(Error::WorkflowNotFound(String::new())),
        };
        if let (Err(Error::WorkflowNotFound(_)), Some(graph)) = (&started, graph) {
            // A file from elsewhere names a workflow that is not here, and holds a copy of it.
            let request = request(Some(graph));
            started = Box::pin(self.jobs.start_inside(caller, request, Some(parent))).await;
        }
        let job = started.map_err(|error| NodeError::new(error.to_string()))?.job;
        let content = format!("runs as job {}", job.job_id);
        let severity = Severity::Info;
        ctx.note(Note::Log { content, severity }).await;
        Ok(job)
    }
    /// Waits for the end of an inner run.
    async fn end(&self, caller: &Caller, job_id: &str, ctx: &Context) -> Result<Job, Error> {
        let row = self.jobs.store().get(caller, job_id).await?;
        let mut waiting = Waiting {
            jobs: &self.jobs,
            job_key: row.job_key.clone(),
            ended: false,
            cancel: ctx.cancel.clone(),
        };
        let live = self.jobs.live(&row.job_key);
        let db = self.jobs.store().db().clone();
        let mut reader = Reader::new(db, row.job_key, live, row.last_seq, false);
        let mut cancelled = false;
        loop {
            tokio::select! {
                biased;
                () = ctx.cancel.cancelled(), if !cancelled => {
                    cancelled = true;
                    self.jobs.cancel(caller, job_id).await?;
                }
                event = reader.next() => if event?.is_none() {
                    break;
                },
            }
        }
        waiting.ended = true;
        self.jobs.get(caller, job_id).await
    }
}
fn lost(error: &Error) -> NodeError {
    tracing::warn!(
        error = error as &dyn std::error::Error,
        "an inner run cannot be followed"
    );
    NodeError::new(format!("the run inside cannot be followed: {error}"))
}
fn outcome(job: Job, ctx: &Context) -> Result<Map, NodeError> {
    let status = job.status();
    let Job {
        job_id,
        outputs,
        error,
        ..
    } = job;
    let error = error.unwrap_or_default();
    match status {
        JobStatus::Completed => Map::try_from(outputs.unwrap_or_default())
            .map_err(|error| NodeError::new(format!("outputs of job {job_id} are no values: {error}"))),
        _ if ctx.cancel.is_cancelled() => Err(NodeError::cancelled()),
        JobStatus::Failed => Err(NodeError::new(format!(
            "job {job_id} inside of this node failed: {error}"
        ))),
        JobStatus::Cancelled => Err(NodeError::new(format!(
            "job {job_id} inside of this node was cancelled"
        ))),
        JobStatus::Suspended => Err(NodeError::new(format!(
            "job {job_id} inside of this node waits for something outside, which a node cannot wait for"
        ))),
        JobStatus::Unspecified | JobStatus::Queued | JobStatus::Running => Err(NodeError::new(format!(
            "job {job_id} inside of this node was lost"
        ))),
    }
}

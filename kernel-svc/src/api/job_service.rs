//! `JobService`.

use std::pin::Pin;

use atelier_common::identity;
use atelier_proto::{
    kernel::v1::{
        CancelJobRequest, CancelJobResponse, CheckGraphRequest, CheckGraphResponse, DecideEscalationRequest,
        DecideEscalationResponse, GetJobRequest, GetJobResponse, ListJobsRequest, ListJobsResponse,
        PushInputRequest, PushInputResponse, ResumeJobRequest, ResumeJobResponse, RunJobRequest,
        RunJobResponse, SendControlRequest, SendControlResponse, WatchJobRequest, WatchJobResponse,
        WatchStarted, job_service_server::JobService, watch_job_response::Message,
    },
    value::Map,
};
use futures_util::{Stream, StreamExt};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

use crate::{
    error::Error,
    graph,
    jobs::{Jobs, read_graph, status_of, to_proto},
    log::{Reader, count_after},
};

/// Serves runs.
#[derive(Clone)]
pub struct JobApi {
    jobs: Jobs,
    stop: CancellationToken,
}
impl JobApi {
    /// The service over the runs of this process; streams end when `stop` is tripped.
    #[must_use]
    pub fn new(jobs: Jobs, stop: CancellationToken) -> Self {
        Self { jobs, stop }
    }
}
type Events = Pin<Box<dyn Stream<Item = Result<WatchJobResponse, Status>> + Send>>;

#[tonic::async_trait]
impl JobService for JobApi {
    type WatchJobStream = Events;

    async fn run_job(&self, request: Request<RunJobRequest>) -> Result<Response<RunJobResponse>, Status> {
        let caller = identity::caller(&request)?;
        let started = self.jobs.start(&caller, request.into_inner()).await?;
        Ok(Response::new(RunJobResponse {
            job: Some(started.job),
            created: started.created,
        }))
    }
    async fn get_job(&self, request: Request<GetJobRequest>) -> Result<Response<GetJobResponse>, Status> {
        let caller = identity::caller(&request)?;
        let job = self.jobs.get(&caller, &request.get_ref().job_id).await?;
        Ok(Response::new(GetJobResponse { job: Some(job) }))
    }
    async fn list_jobs(
        &self,
        request: Request<ListJobsRequest>,
    ) -> Result<Response<ListJobsResponse>, Status> {
        let caller = identity::caller(&request)?;
        let page = self.jobs.store().list(&caller, request.get_ref()).await?;
        let jobs = page
            .rows
            .into_iter()
            .map(|row| to_proto(row, false))
            .collect::<Result<_, _>>()?;
        Ok(Response::new(ListJobsResponse {
            jobs,
            next_page_token: page.next,
        }))
    }
    async fn watch_job(&self, request: Request<WatchJobRequest>) -> Result<Response<Events>, Status> {
        let caller = identity::caller(&request)?;
        let WatchJobRequest {
            job_id,
            after_seq,
            replay_only,
        } = request.into_inner();
        if after_seq < 0 {
            let wrong = "must not be negative".to_owned();
            return Err(Error::InvalidField {
                field: "after_seq",
                wrong,
            }
            .into());
        }
        let row = self.jobs.store().get(&caller, &job_id).await?;
        let live = self.jobs.live(&row.job_key);
        let db = self.jobs.store().db().clone();
        let shown = live.as_ref().map_or(0, |live| live.watch().borrow().seq);
        let last_seq = shown.max(row.last_seq);
        // The row may be ahead of the live end for a moment.
        let complete = live.as_ref().filter(|_| shown == last_seq);
        let replay_count = match complete.and_then(|live| live.after(after_seq, usize::MAX)) {
            Some(events) => i64::try_from(events.len()).unwrap_or(i64::MAX),
            None => count_after(&db, &row.job_key, after_seq).await?,
        };
        let started = WatchStarted {
            status: status_of(&row.status).into(),
            last_seq,
            replay_count,
            replay_incomplete: replay_count < last_seq.saturating_sub(after_seq),
            workflow_id: row.workflow_id,
        };
        let mut reader = Reader::new(db, row.job_key, live, after_seq, replay_only);
        let stop = self.stop.clone();
        let events = async_stream::try_stream! {
            yield WatchJobResponse { message: Some(Message::Started(started)) };
            while let Some(next) = stop.run_until_cancelled(reader.next()).await {
                let Some(event) = next? else { break };
                yield WatchJobResponse { message: Some(Message::Event((*event).clone())) };
            }
        };
        Ok(Response::new(events.boxed()))
    }
    async fn cancel_job(
        &self,
        request: Request<CancelJobRequest>,
    ) -> Result<Response<CancelJobResponse>, Status> {
        let caller = identity::caller(&request)?;
        let (cancelled, job) = self.jobs.cancel(&caller, &request.get_ref().job_id).await?;
        Ok(Response::new(CancelJobResponse {
            cancelled,
            job: Some(job),
        }))
    }
    async fn check_graph(
        &self,
        request: Request<CheckGraphRequest>,
    ) -> Result<Response<CheckGraphResponse>, Status> {
        let types = self.jobs.types().of(&identity::caller(&request)?.user_id);
        let CheckGraphRequest { graph_json, params } = request.into_inner();
        let parsed = read_graph(&graph_json)?;
        let params = Map::try_from(params.unwrap_or_default()).map_err(|error| Error::InvalidField {
            field: "params",
            wrong: error.to_string(),
        })?;
        let issues = graph::check(&parsed, &types, &params);
        Ok(Response::new(CheckGraphResponse { issues }))
    }
    async fn push_input(
        &self,
        request: Request<PushInputRequest>,
    ) -> Result<Response<PushInputResponse>, Status> {
        let caller = identity::caller(&request)?;
        let created = self.jobs.push(&caller, request.into_inner()).await?;
        Ok(Response::new(PushInputResponse { created }))
    }
    async fn send_control(
        &self,
        request: Request<SendControlRequest>,
    ) -> Result<Response<SendControlResponse>, Status> {
        let caller = identity::caller(&request)?;
        let outputs = self.jobs.control(&caller, request.into_inner()).await?;
        Ok(Response::new(SendControlResponse {
            outputs: outputs.map(|outputs| (&outputs).into()),
        }))
    }
    async fn decide_escalation(
        &self,
        request: Request<DecideEscalationRequest>,
    ) -> Result<Response<DecideEscalationResponse>, Status> {
        let caller = identity::caller(&request)?;
        let DecideEscalationRequest {
            job_id,
            escalation_id,
            verdict,
        } = request.into_inner();
        self.jobs
            .decide(&caller, &job_id, &escalation_id, verdict)
            .await?;
        Ok(Response::new(DecideEscalationResponse {}))
    }
    async fn resume_job(
        &self,
        request: Request<ResumeJobRequest>,
    ) -> Result<Response<ResumeJobResponse>, Status> {
        let caller = identity::caller(&request)?;
        let ResumeJobRequest {
            job_id,
            state,
            node_id,
        } = request.into_inner();
        let state = Map::try_from(state.unwrap_or_default()).map_err(|error| Error::InvalidField {
            field: "state",
            wrong: error.to_string(),
        })?;
        let job = self
            .jobs
            .resume(&caller, &job_id, node_id.as_deref(), state)
            .await?;
        Ok(Response::new(ResumeJobResponse { job: Some(job) }))
    }
}

//! The scripted kernel.

use atelier_proto::kernel::v1::job_service_server::JobService;
use atelier_proto::kernel::v1::node_service_server::NodeService;
use atelier_proto::kernel::v1::watch_job_response::Message;
use atelier_proto::kernel::v1::{self as kernel, Job, JobStatus};
use atelier_proto::reason::{self, Problem};
use tonic::{Code, Request, Response, Status};

use super::{Answers, Fakes, Reply, Run, is_over, job_update, missing, user};

#[tonic::async_trait]
impl JobService for Fakes {
    async fn run_job(&self, request: Request<kernel::RunJobRequest>) -> Reply<kernel::RunJobResponse> {
        let user_id = user(&request);
        let message = request.into_inner();
        if let Some(refusal) = self.refusal.lock().expect("lock").clone() {
            return Err(refusal);
        }
        let mut message = message;
        let mut workflow_version = None;
        if message.graph_json.is_none() {
            let id = message.workflow_id.clone().unwrap_or_default();
            let (version, graph) = self.graph_of(&user_id, &id, message.workflow_version)?;
            (workflow_version, message.graph_json) = (Some(version), Some(graph));
        }
        let message = message;
        let job_id = message.job_id.clone();
        let job_id = if job_id.is_empty() {
            uuid::Uuid::now_v7().to_string()
        } else {
            job_id
        };
        if let Some(run) = self.runs.lock().expect("lock").get(&job_id) {
            let same = run.request.graph_json == message.graph_json && run.request.params == message.params;
            if !same {
                let problem = Problem::new(
                    Code::AlreadyExists,
                    reason::JOB_ID_USED,
                    "fake.atelier",
                    "job id is used",
                );
                return Err(problem.into());
            }
            return Ok(Response::new(kernel::RunJobResponse {
                job: Some(run.job.clone()),
                created: false,
            }));
        }
        *self.started.lock().expect("lock") += 1;
        let queued = *self.queues.lock().expect("lock");
        let at = Some(prost_types::Timestamp {
            seconds: 1_788_436_800,
            nanos: 0,
        });
        let job = Job {
            job_id: job_id.clone(),
            workflow_id: message.workflow_id.clone(),
            workflow_version,
            name: message.name.clone(),
            status: if queued {
                JobStatus::Queued
            } else {
                JobStatus::Running
            }
            .into(),
            params: message.params.clone(),
            created_at: at,
            started_at: at.filter(|_| !queued),
            graph_json: message.graph_json.clone(),
            ..Job::default()
        };
        let run = Run {
            user_id,
            job: job.clone(),
            request: message,
            events: Vec::new(),
        };
        self.runs.lock().expect("lock").insert(job_id.clone(), run);
        let script = self.script.lock().expect("lock").clone();
        for event in script {
            self.emit(&job_id, event);
        }
        let job = self
            .runs
            .lock()
            .expect("lock")
            .get(&job_id)
            .map(|run| run.job.clone());
        Ok(Response::new(kernel::RunJobResponse { job, created: true }))
    }

    async fn get_job(&self, request: Request<kernel::GetJobRequest>) -> Reply<kernel::GetJobResponse> {
        let run = self.run_of(&request, &request.get_ref().job_id)?;
        Ok(Response::new(kernel::GetJobResponse { job: Some(run.job) }))
    }

    async fn list_jobs(&self, request: Request<kernel::ListJobsRequest>) -> Reply<kernel::ListJobsResponse> {
        let (user_id, wanted) = (user(&request), request.get_ref().status);
        let runs = self.runs.lock().expect("lock");
        let jobs = runs
            .values()
            .filter(|run| run.user_id == user_id && wanted.is_none_or(|status| status == run.job.status))
            .map(|run| Job {
                graph_json: None,
                ..run.job.clone()
            })
            .collect();
        Ok(Response::new(kernel::ListJobsResponse {
            jobs,
            next_page_token: String::new(),
        }))
    }

    type WatchJobStream = Answers<kernel::WatchJobResponse>;

    async fn watch_job(&self, request: Request<kernel::WatchJobRequest>) -> Reply<Self::WatchJobStream> {
        let run = self.run_of(&request, &request.get_ref().job_id)?;
        let kernel::WatchJobRequest {
            job_id,
            after_seq,
            replay_only,
        } = request.into_inner();
        let (world, mut changed) = (self.clone(), self.changed.subscribe());
        let breaks_after = self.breaks_after.lock().expect("lock").take();
        let stream = async_stream::stream! {
            let last_seq = run.job.last_seq;
            yield Ok(kernel::WatchJobResponse { message: Some(Message::Started(kernel::WatchStarted {
                status: run.job.status,
                last_seq,
                replay_count: (last_seq - after_seq).max(0),
                replay_incomplete: false,
                workflow_id: run.job.workflow_id.clone(),
            })) });
            let (mut reached, mut told) = (after_seq, 0);
            loop {
                changed.mark_unchanged();
                let (events, status) = {
                    let runs = world.runs.lock().expect("lock");
                    let run = runs.get(&job_id).expect("run");
                    let fresh = run.events.iter().filter(|event| event.seq > reached).cloned();
                    (fresh.collect::<Vec<_>>(), run.job.status)
                };
                for event in events {
                    reached = event.seq;
                    yield Ok(kernel::WatchJobResponse { message: Some(Message::Event(event)) });
                    told += 1;
                    if breaks_after == Some(told) {
                        yield Err(Status::unavailable("the connection is gone"));
                        return;
                    }
                }
                if replay_only || is_over(status) || changed.changed().await.is_err() {
                    return;
                }
            }
        };
        Ok(Response::new(Box::pin(stream)))
    }

    async fn cancel_job(
        &self,
        request: Request<kernel::CancelJobRequest>,
    ) -> Reply<kernel::CancelJobResponse> {
        let run = self.run_of(&request, &request.get_ref().job_id)?;
        if is_over(run.job.status) {
            return Ok(Response::new(kernel::CancelJobResponse {
                cancelled: false,
                job: Some(run.job),
            }));
        }
        let job_id = run.job.job_id.clone();
        self.emit(&job_id, job_update(JobStatus::Cancelled));
        let job = self.run_of(&request, &job_id)?.job;
        Ok(Response::new(kernel::CancelJobResponse {
            cancelled: true,
            job: Some(job),
        }))
    }

    async fn check_graph(&self, _: Request<kernel::CheckGraphRequest>) -> Reply<kernel::CheckGraphResponse> {
        Ok(Response::new(kernel::CheckGraphResponse {
            issues: self.issues.lock().expect("lock").clone(),
        }))
    }

    async fn push_input(
        &self,
        request: Request<kernel::PushInputRequest>,
    ) -> Reply<kernel::PushInputResponse> {
        let run = self.run_of(&request, &request.get_ref().job_id)?;
        let message = request.into_inner();
        let refuse = |code, reason, text: &str| Problem::new(code, reason, "fake.atelier", text);
        if !matches!(run.job.status(), JobStatus::Running | JobStatus::Queued) {
            return Err(refuse(Code::FailedPrecondition, reason::JOB_NOT_RUNNING, "it ended").into());
        }
        if message.name == "unknown" {
            let problem = refuse(
                Code::InvalidArgument,
                reason::INVALID_FIELD,
                "name: no such input",
            );
            return Err(problem.field("name", "no such input").into());
        }
        let mut pushed = self.pushed.lock().expect("lock");
        let same =
            |other: &&kernel::PushInputRequest| other.job_id == message.job_id && other.name == message.name;
        let before: Vec<_> = pushed.iter().filter(same).collect();
        if before.iter().any(|other| other.input_id == message.input_id) {
            return Ok(Response::new(kernel::PushInputResponse { created: false }));
        }
        if before.iter().any(|other| other.finish) {
            return Err(refuse(
                Code::FailedPrecondition,
                reason::INPUT_FINISHED,
                "input is finished",
            )
            .into());
        }
        pushed.push(message);
        Ok(Response::new(kernel::PushInputResponse { created: true }))
    }

    async fn send_control(
        &self,
        request: Request<kernel::SendControlRequest>,
    ) -> Reply<kernel::SendControlResponse> {
        self.run_of(&request, &request.get_ref().job_id)?;
        let message = request.into_inner();
        if message.node_id == "fails" {
            let problem = Problem::new(Code::Aborted, reason::NODE_FAILED, "fake.atelier", "boom");
            return Err(problem.with("node_id", "fails").into());
        }
        let outputs = message.properties.clone().filter(|_| message.wait);
        self.controls.lock().expect("lock").push(message);
        Ok(Response::new(kernel::SendControlResponse { outputs }))
    }

    async fn decide_escalation(
        &self,
        request: Request<kernel::DecideEscalationRequest>,
    ) -> Reply<kernel::DecideEscalationResponse> {
        self.run_of(&request, &request.get_ref().job_id)?;
        let kernel::DecideEscalationRequest {
            escalation_id,
            verdict,
            ..
        } = request.into_inner();
        if escalation_id != "E" {
            return Err(missing(reason::ESCALATION_NOT_FOUND));
        }
        self.verdicts.lock().expect("lock").extend(verdict);
        Ok(Response::new(kernel::DecideEscalationResponse {}))
    }

    async fn resume_job(
        &self,
        request: Request<kernel::ResumeJobRequest>,
    ) -> Reply<kernel::ResumeJobResponse> {
        let run = self.run_of(&request, &request.get_ref().job_id)?;
        if run.job.status() != JobStatus::Suspended {
            let problem = Problem::new(
                Code::FailedPrecondition,
                reason::JOB_NOT_SUSPENDED,
                "fake.atelier",
                "not suspended",
            );
            return Err(problem.into());
        }
        let job_id = run.job.job_id.clone();
        self.emit(&job_id, job_update(JobStatus::Running));
        let job = self.run_of(&request, &job_id)?.job;
        self.resumed.lock().expect("lock").push(request.into_inner());
        Ok(Response::new(kernel::ResumeJobResponse { job: Some(job) }))
    }
}

#[tonic::async_trait]
impl NodeService for Fakes {
    async fn list_node_types(
        &self,
        request: Request<kernel::ListNodeTypesRequest>,
    ) -> Reply<kernel::ListNodeTypesResponse> {
        user(&request);
        Ok(Response::new(kernel::ListNodeTypesResponse {
            node_types: vec![node_type()],
            next_page_token: String::new(),
        }))
    }

    async fn get_node_type(
        &self,
        request: Request<kernel::GetNodeTypeRequest>,
    ) -> Reply<kernel::GetNodeTypeResponse> {
        if request.get_ref().node_type == node_type().node_type {
            return Ok(Response::new(kernel::GetNodeTypeResponse {
                node_type: Some(node_type()),
            }));
        }
        Err(missing(reason::NODE_TYPE_NOT_FOUND))
    }
}

fn node_type() -> kernel::NodeType {
    let property = kernel::Property {
        name: "prompt".to_owned(),
        r#type: "str".to_owned(),
        default_value: Some((&atelier_proto::value::Value::from("")).into()),
        ..kernel::Property::default()
    };
    kernel::NodeType {
        node_type: "nodetool.image.TextToImage".to_owned(),
        title: "Text To Image".to_owned(),
        namespace: "nodetool.image".to_owned(),
        properties: vec![property],
        auto_save_asset: true,
        primary_output: "output".to_owned(),
        ..kernel::NodeType::default()
    }
}

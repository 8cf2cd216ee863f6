//! Scripted services: they keep what they are given and answer what they are told to. Everything is scoped to the
//! caller, as in the real ones.

mod kernel;
mod others;
mod workflows;

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use atelier_common::identity::caller;
use atelier_proto::asset::v1::{self as asset, Asset};
use atelier_proto::kernel::v1::job_event::Event;
use atelier_proto::kernel::v1::{
    Issue, Job, JobEvent, JobStatus, JobUpdate, PushInputRequest, ResumeJobRequest, RunJobRequest,
    SendControlRequest, Verdict,
};
use atelier_proto::reason::{self, Problem};
use atelier_proto::tracker::v1::{self as tracker, CostSummary, Generation};
use tokio::sync::watch;
use tokio_stream::Stream;
use tonic::{Code, Request, Response, Status};

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;
type Reply<T> = Result<Response<T>, Status>;

fn missing(reason: &'static str) -> Status {
    Problem::new(Code::NotFound, reason, "fake.atelier", "not found").into()
}

fn user<T>(request: &Request<T>) -> String {
    caller(request).expect("a signed caller").user_id
}

/// A run of the fake kernel.
#[derive(Clone)]
struct Run {
    user_id: String,
    job: Job,
    request: RunJobRequest,
    events: Vec<JobEvent>,
}

/// Owner, record and bytes of an asset.
type Stored = (String, Asset, Vec<u8>);

/// What all fakes know.
#[derive(Default)]
pub struct World {
    runs: Mutex<BTreeMap<String, Run>>,
    changed: watch::Sender<u64>,
    /// What a run does as soon as it is started, in order.
    pub script: Mutex<Vec<Event>>,
    /// Refuses every start with this.
    pub refusal: Mutex<Option<Status>>,
    /// Starts are queued instead of running.
    pub queues: Mutex<bool>,
    /// Watch streams break off after this many events, once.
    pub breaks_after: Mutex<Option<usize>>,
    pub started: Mutex<u32>,
    pub issues: Mutex<Vec<Issue>>,
    pub pushed: Mutex<Vec<PushInputRequest>>,
    pub controls: Mutex<Vec<SendControlRequest>>,
    pub resumed: Mutex<Vec<ResumeJobRequest>>,
    workflows: Mutex<Vec<workflows::Stored>>,
    /// Answers to the question `E`.
    pub verdicts: Mutex<Vec<Verdict>>,
    pub assets: Mutex<BTreeMap<String, Stored>>,
    pub rows: Mutex<Vec<Generation>>,
    pub costs: Mutex<CostSummary>,
    pub ledger_down: Mutex<bool>,
    pub cost_requests: Mutex<Vec<tracker::SummarizeCostsRequest>>,
    pub list_requests: Mutex<Vec<tracker::ListGenerationsRequest>>,
    pub downloads: Mutex<Vec<asset::DownloadAssetRequest>>,
    /// Calls of models that were asked for.
    pub calls: Mutex<Vec<atelier_proto::provider::v1::RunGenerationRequest>>,
}

/// A handle on the world; every fake is one.
#[derive(Clone, Default)]
pub struct Fakes(pub Arc<World>);

impl std::ops::Deref for Fakes {
    type Target = World;

    fn deref(&self) -> &World {
        &self.0
    }
}

pub fn job_update(status: JobStatus) -> Event {
    Event::JobUpdate(JobUpdate {
        status: status.into(),
        ..JobUpdate::default()
    })
}

impl Fakes {
    /// Lets a run say something.
    pub fn emit(&self, job_id: &str, event: Event) {
        {
            let mut runs = self.runs.lock().expect("lock");
            let run = runs.get_mut(job_id).expect("run");
            let seq = i64::try_from(run.events.len()).expect("small") + 1;
            if let Event::JobUpdate(update) = &event {
                run.job.status = update.status;
                run.job.outputs = update.result.clone();
            }
            run.job.last_seq = seq;
            let workflow_id = run.job.workflow_id.clone();
            run.events.push(JobEvent {
                seq,
                job_id: job_id.to_owned(),
                workflow_id,
                event: Some(event),
                ..JobEvent::default()
            });
        }
        self.changed.send_modify(|version| *version += 1);
    }

    /// A run that somebody else, or this user, started earlier.
    pub fn add_run(&self, user_id: &str, job_id: &str, status: JobStatus) {
        let job = Job {
            job_id: job_id.to_owned(),
            status: status.into(),
            started_at: Some(prost_types::Timestamp {
                seconds: 1_788_436_800,
                nanos: 0,
            }),
            created_at: Some(prost_types::Timestamp {
                seconds: 1_788_436_800,
                nanos: 0,
            }),
            ..Job::default()
        };
        let run = Run {
            user_id: user_id.to_owned(),
            job,
            request: Default::default(),
            events: Vec::new(),
        };
        self.runs.lock().expect("lock").insert(job_id.to_owned(), run);
    }

    pub fn request_of(&self, job_id: &str) -> RunJobRequest {
        self.runs
            .lock()
            .expect("lock")
            .get(job_id)
            .expect("run")
            .request
            .clone()
    }

    pub fn owner_of(&self, job_id: &str) -> String {
        self.runs
            .lock()
            .expect("lock")
            .get(job_id)
            .expect("run")
            .user_id
            .clone()
    }

    pub fn status_of(&self, job_id: &str) -> JobStatus {
        JobStatus::try_from(
            self.runs
                .lock()
                .expect("lock")
                .get(job_id)
                .expect("run")
                .job
                .status,
        )
        .expect("status")
    }

    pub fn count_of_runs(&self) -> usize {
        self.runs.lock().expect("lock").len()
    }

    pub fn add_asset(&self, user_id: &str, id: &str, content_type: &str, bytes: &[u8]) {
        let stored = Asset {
            asset_id: id.to_owned(),
            name: format!("{id}.png"),
            content_type: content_type.to_owned(),
            size_bytes: i64::try_from(bytes.len()).expect("small"),
            digest: format!("digest-of-{id}"),
            uri: format!("asset://{id}.png"),
            ..Asset::default()
        };
        self.assets
            .lock()
            .expect("lock")
            .insert(id.to_owned(), (user_id.to_owned(), stored, bytes.to_vec()));
    }

    fn run_of<T>(&self, request: &Request<T>, job_id: &str) -> Result<Run, Status> {
        let runs = self.runs.lock().expect("lock");
        runs.get(job_id)
            .filter(|run| run.user_id == user(request))
            .cloned()
            .ok_or_else(|| missing(reason::JOB_NOT_FOUND))
    }

    fn asset_of<T>(&self, request: &Request<T>, id: &str) -> Result<(Asset, Vec<u8>), Status> {
        let assets = self.assets.lock().expect("lock");
        let found = assets.get(id).filter(|(owner, _, _)| *owner == user(request));
        found
            .map(|(_, asset, bytes)| (asset.clone(), bytes.clone()))
            .ok_or_else(|| missing(reason::ASSET_NOT_FOUND))
    }
}

fn is_over(status: i32) -> bool {
    matches!(
        JobStatus::try_from(status),
        Ok(JobStatus::Completed | JobStatus::Failed | JobStatus::Cancelled)
    )
}

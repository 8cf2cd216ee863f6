//! Runs as their callers see them: start, cancel, look. What drives them is in `drive.rs`.

use std::sync::Arc;

use atelier_common::{clock::Clock, component::Deps, db::GroupCommit, identity::Caller, tasks::Tasks};
use atelier_proto::{
    kernel::v1::{self, Job, JobStatus, RunJobRequest, RunOptions},
    value::Map,
};
use dashmap::{DashMap, DashSet};

use super::{
    Admission, Parent, Store, Ticket,
    drive::{Running, Work},
    escalations::Questions,
    is_terminal,
    saved::Source,
    status_of,
    store::{NewJob, to_proto},
};
use crate::{
    entity::jobs::Model,
    error::Error,
    event::Event,
    graph,
    log::{Append, Live, LiveJobs},
    node::TriggerEvent,
    run,
    services::Clients,
    settings::Settings,
    workers::NodeTypes,
    workflows,
};

/// Longest job id and workflow id, in bytes.
const MAX_JOB_ID: usize = 128;
/// Longest name, in bytes.
const MAX_NAME: usize = 1_024;

/// All runs of this process.
#[derive(Clone)]
pub struct Jobs {
    pub(super) store: Store,
    pub(super) commits: GroupCommit<Append, (), Error>,
    pub(super) live: LiveJobs,
    pub(super) types: NodeTypes,
    pub(super) clients: Clients,
    pub(super) clock: Clock,
    pub(super) instance: Arc<str>,
    pub(super) settings: Arc<Settings>,
    pub(super) admission: Admission,
    pub(super) running: Arc<DashMap<String, Running>>,
    /// Runs whose past is being read: their leases are ours although nobody drives them yet.
    pub(super) taking_up: Arc<DashSet<String>>,
    pub(super) data_dir: Arc<std::path::Path>,
    workflows: workflows::Store,
    pub(super) tasks: Tasks,
}
/// A run that was asked for.
pub struct Started {
    /// The run.
    pub job: Job,
    /// Whether this call recorded it.
    pub created: bool,
}
impl Jobs {
    /// The runs of a process.
    #[must_use]
    pub fn new(
        store: Store,
        commits: GroupCommit<Append, (), Error>,
        types: NodeTypes,
        clients: Clients,
        settings: Settings,
        deps: &Deps,
    ) -> Self {
        Self {
            workflows: workflows::Store::new(store.db().clone(), deps.clock.clone()),
            store,
            commits,
            live: LiveJobs::default(),
            types,
            clients,
            clock: deps.clock.clone(),
            instance: deps.instance.to_string().into(),
            admission: Admission::new(settings.max_concurrent_jobs, settings.max_queued_jobs),
            settings: Arc::new(settings),
            running: Arc::default(),
            taking_up: Arc::default(),
            data_dir: deps.data_dir.as_path().into(),
            tasks: deps.tasks.clone(),
        }
    }
    /// The rows.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }
    /// The saved workflows.
    #[must_use]
    pub fn workflows(&self) -> &workflows::Store {
        &self.workflows
    }
    /// The node types.
    #[must_use]
    pub fn types(&self) -> &NodeTypes {
        &self.types
    }
    /// The live end of a run's log, if this process drives it.
    #[must_use]
    pub fn live(&self, job_key: &str) -> Option<Arc<Live>> {
        self.live.get(job_key)
    }
    /// Starts a run, or finds the one that has the id.
    ///
    /// Cancel safe: once the row is recorded the run goes on without its caller.
    ///
    /// # Errors
    /// A bad request, an id that is used, a full queue, store errors. What is wrong with the graph is told by the run.
    pub async fn start(&self, caller: &Caller, request: RunJobRequest) -> Result<Started, Error> {
        self.start_inside(caller, request, None).await
    }
    /// The same for a run that a node of another run asks for.
    ///
    /// # Errors
    /// As [`Jobs::start`].
    pub(super) async fn start_inside(
        &self,
        caller: &Caller,
        request: RunJobRequest,
        parent: Option<Parent>,
    ) -> Result<Started, Error> {
        if self.tasks.token().is_cancelled() {
            return Err(Error::Draining);
        }
        let RunJobRequest {
            job_id,
            workflow_id,
            graph_json,
            params,
            name,
            options,
            trigger,
            workflow_version,
        } = request;
        let workflow = workflow_id.as_deref().map(|id| (id, workflow_version));
        let Source {
            graph,
            params,
            version,
            asked,
        } = self
            .source(caller, &job_id, graph_json, workflow, params.unwrap_or_default())
            .await?;
        let parsed = read_graph(&graph)?;
        let values = Map::try_from(params.clone()).map_err(|error| Error::InvalidField {
            field: "params",
            wrong: error.to_string(),
        })?;
        let job_id = if job_id.is_empty() {
            uuid::Uuid::now_v7().to_string()
        } else {
            job_id
        };
        if job_id.len() > MAX_JOB_ID || job_id.chars().any(char::is_control) {
            let wrong = format!("must have at most {MAX_JOB_ID} bytes and no control characters");
            return Err(Error::InvalidField {
                field: "job_id",
                wrong,
            });
        }
        let texts = [
            (
                "workflow_id",
                workflow_id.as_deref().unwrap_or_default(),
                MAX_JOB_ID,
            ),
            ("name", name.as_str(), MAX_NAME),
        ];
        for (field, text, limit) in texts {
            storable(field, text, limit)?;
        }
        let event = trigger.clone().map(trigger_event).transpose()?;
        let options = options.unwrap_or_default();
        let jobs = self.clone();
        let caller = caller.clone();
        // In a task of its own, so that a caller who leaves between the row and the start loses nothing.
        let started = self.tasks.spawn("job-start", async move {
            let new = NewJob {
                job_id: &job_id,
                workflow_id: workflow_id.as_deref(),
                name: &name,
                graph: &graph,
                params: &params,
                options: &options,
                owner: &jobs.instance,
                lease_until: jobs.lease_until(),
                trigger: trigger.as_ref(),
                workflow_version: version,
                asked: asked.as_deref(),
                parent: parent.as_ref(),
            };
            // Before asking for a slot: a repeat needs none, and is answered when all are taken.
            if let Some(row) = jobs.store.find_repeated(&caller, &new).await? {
                return Ok(Started {
                    job: to_proto(row, false)?,
                    created: false,
                });
            }
            // A run inside of another one has that one's slot: waiting for a second could be for ever.
            let ticket = match new.parent {
                Some(_) => Ticket::free(),
                None => jobs.admission.enter(&caller.user_id)?,
            };
            let (row, created) = jobs.store.insert(&caller, new).await?;
            let job = to_proto(row.clone(), false)?;
            if created {
                let work = Work {
                    caller,
                    row,
                    graph: parsed,
                    params: values,
                    trigger: event,
                    options,
                };
                jobs.spawn(work, ticket, None);
            }
            Ok(Started { job, created })
        });
        started.await.map_err(|_| Error::Died)?
    }
    /// How the engine runs a run that is inside of so many others.
    pub(super) fn engine_options(
        &self,
        depth: i64,
        options: &RunOptions,
        questions: Option<&Questions>,
    ) -> run::RunOptions {
        let buffer_limit = usize::try_from(options.buffer_limit)
            .ok()
            .filter(|limit| *limit > 0);
        let supervisor = questions.map(Questions::supervisor);
        run::RunOptions {
            supervision: run::Supervision(supervisor),
            strict: options.strict,
            buffer_limit,
            cancel_grace: self.settings.cancel_grace,
            // The node that waits for an inner run holds its own run anyway.
            longest_wait: (depth == 0).then_some(self.settings.longest_wait),
            finalize_limit: self.settings.finalize_limit,
            clock: self.clock.clone(),
            ..Default::default()
        }
    }
    /// Cancels a run of the caller: whether this call did, and the run as it is.
    ///
    /// # Errors
    /// [`Error::JobNotFound`]; store errors.
    pub async fn cancel(&self, caller: &Caller, job_id: &str) -> Result<(bool, Job), Error> {
        let row = self.store.get(caller, job_id).await?;
        if row.status == "suspended" {
            return self.cancel_suspended(row).await;
        }
        let cancelled = !is_terminal(&row.status) && self.store.note_cancel(&row.job_key).await?;
        self.trip(&row.job_key);
        Ok((cancelled, to_proto(row, false)?))
    }
    /// Cancels what this process drives and others asked to cancel.
    pub(super) fn trip(&self, job_key: &str) {
        if let Some(running) = self.running.get(job_key) {
            running.cancel.cancel();
        }
    }
    /// Keys of the runs that this process drives, or is about to.
    pub(super) fn driven(&self) -> Vec<String> {
        let running = self.running.iter().map(|entry| entry.key().clone());
        let taking_up = self.taking_up.iter().map(|key| key.clone());
        running.chain(taking_up).collect()
    }
    /// One run of the caller.
    ///
    /// # Errors
    /// [`Error::JobNotFound`]; store errors.
    pub async fn get(&self, caller: &Caller, job_id: &str) -> Result<Job, Error> {
        to_proto(self.store.get(caller, job_id).await?, true)
    }
}
/// Refuses a text that not every database can hold, or that is too long.
pub(super) fn storable(field: &'static str, text: &str, limit: usize) -> Result<(), Error> {
    if text.len() <= limit && !text.contains('\0') {
        return Ok(());
    }
    let wrong = format!("must have at most {limit} bytes and no character with the code 0");
    Err(Error::InvalidField { field, wrong })
}
pub(super) fn trigger_event(event: v1::TriggerEvent) -> Result<TriggerEvent, Error> {
    let v1::TriggerEvent { node_id, payload } = event;
    let wrong = |wrong: String| Error::InvalidField {
        field: "trigger",
        wrong,
    };
    if node_id.is_empty() {
        return Err(wrong("names no node".to_owned()));
    }
    let payload = Map::try_from(payload.unwrap_or_default()).map_err(|error| wrong(error.to_string()))?;
    Ok(TriggerEvent {
        node_id: node_id.into(),
        payload,
    })
}
/// The graph of a request: JSON with the shape of a graph.
///
/// # Errors
/// [`Error::MalformedGraph`].
pub fn read_graph(text: &str) -> Result<serde_json::Value, Error> {
    let graph =
        serde_json::from_str(text).map_err(|error| Error::MalformedGraph(format!("not JSON: {error}")))?;
    let mut issues = Vec::new();
    graph::load::parse(&graph, &mut issues).map_err(|issue| Error::MalformedGraph(issue.message))?;
    Ok(graph)
}
/// An event of the run without results.
pub(super) fn ended(status: JobStatus, error: Option<String>, error_code: Option<&str>) -> Event {
    let error_code = error_code.map(ToOwned::to_owned);
    Event::Job {
        status,
        error,
        error_code,
        outputs: None,
        issues: Vec::new(),
        suspensions: Vec::new(),
    }
}
/// Whether a row says that its run goes on.
pub(super) fn goes_on(row: &Model) -> bool {
    matches!(status_of(&row.status), JobStatus::Queued | JobStatus::Running)
}

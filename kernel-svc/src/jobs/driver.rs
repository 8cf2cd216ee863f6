//! Driving runs: record, wait for a slot, run the graph beside its relay, end.

use std::{sync::Arc, time::Duration};

use atelier_common::{clock::Clock, component::Deps, db::GroupCommit, identity::Caller, tasks::Tasks};
use atelier_proto::{
    kernel::v1::{Job, JobStatus, RunJobRequest, RunOptions},
    value::Map,
};
use dashmap::DashMap;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::{
    Admission, Store, Ticket,
    escalations::Escalations,
    is_terminal, status_of,
    store::{NewJob, to_proto},
};
use crate::{
    entity::jobs::Model,
    error::Error,
    event::Event,
    graph::{self, LoadOptions},
    log::{Append, Live, LiveJobs},
    node::Registry,
    relay::{Identity, Relay, Saver},
    run,
    services::{Clients, JobServices},
    settings::Settings,
};

/// Events between a run's actors and its relay. Full: the relay is behind, and the actors wait.
const EVENTS: usize = 1_024;
/// Longest job id, in bytes.
const MAX_JOB_ID: usize = 128;

/// All runs of this process.
#[derive(Clone)]
pub struct Jobs {
    pub(super) store: Store,
    pub(super) commits: GroupCommit<Append, (), Error>,
    pub(super) live: LiveJobs,
    pub(super) registry: Arc<Registry>,
    pub(super) clients: Clients,
    pub(super) clock: Clock,
    pub(super) instance: Arc<str>,
    pub(super) settings: Arc<Settings>,
    pub(super) escalations: Escalations,
    admission: Admission,
    running: Arc<DashMap<String, CancellationToken>>,
    tasks: Tasks,
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
        registry: Arc<Registry>,
        clients: Clients,
        settings: Settings,
        deps: &Deps,
    ) -> Self {
        Self {
            store,
            commits,
            live: LiveJobs::default(),
            registry,
            clients,
            clock: deps.clock.clone(),
            instance: deps.instance.to_string().into(),
            admission: Admission::new(settings.max_concurrent_jobs, settings.max_queued_jobs),
            settings: Arc::new(settings),
            escalations: Escalations::default(),
            running: Arc::default(),
            tasks: deps.tasks.clone(),
        }
    }
    /// The rows.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }
    /// The node types.
    #[must_use]
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
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
            trigger: _,
        } = request;
        let Some(graph) = graph_json else {
            return Err(match workflow_id {
                Some(id) => Error::WorkflowNotFound(id),
                None => Error::InvalidField {
                    field: "graph_json",
                    wrong: "a graph or a workflow is needed".to_owned(),
                },
            });
        };
        let parsed = read_graph(&graph)?;
        let params = params.unwrap_or_default();
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
            };
            // Before asking for a slot: a repeat needs none, and is answered when all are taken.
            if let Some(row) = jobs.store.find_repeated(&caller, &new).await? {
                return Ok(Started {
                    job: to_proto(row, false)?,
                    created: false,
                });
            }
            let ticket = jobs.admission.enter(&caller.user_id)?;
            let (row, created) = jobs.store.insert(&caller, new).await?;
            let job = to_proto(row.clone(), false)?;
            if created {
                jobs.spawn(caller, row, parsed, values, options, ticket);
            }
            Ok(Started { job, created })
        });
        started.await.map_err(|_| Error::Died)?
    }
    pub(super) fn lease_until(&self) -> i64 {
        let lease = i64::try_from(self.settings.lease.as_micros()).unwrap_or(i64::MAX);
        self.store.now().saturating_add(lease)
    }
    fn spawn(
        &self,
        caller: Caller,
        row: Model,
        graph: serde_json::Value,
        params: Map,
        options: RunOptions,
        ticket: Ticket,
    ) {
        // Not the process's token: a process that goes down interrupts a run, it does not cancel it.
        let cancel = CancellationToken::new();
        let live = Arc::new(Live::new(0));
        let driven = Driven {
            jobs: self.clone(),
            key: row.job_key.clone(),
            live: Arc::clone(&live),
        };
        self.live.insert(&row.job_key, Arc::clone(&live));
        self.running.insert(row.job_key.clone(), cancel.clone());
        let jobs = self.clone();
        let span = tracing::info_span!("run", job_id = row.job_id);
        let drive = async move {
            let _driven = driven;
            let outcome = jobs
                .drive(caller, &row, live, graph, params, options, ticket, cancel)
                .await;
            if let Err(error) = outcome {
                tracing::error!(error = &error as &dyn std::error::Error, "a run was lost");
            }
        };
        drop(self.tasks.spawn("job", drive.instrument(span)));
    }
    #[expect(clippy::too_many_arguments, reason = "all that a run is made of")]
    async fn drive(
        &self,
        caller: Caller,
        row: &Model,
        live: Arc<Live>,
        graph: serde_json::Value,
        params: Map,
        options: RunOptions,
        ticket: Ticket,
        cancel: CancellationToken,
    ) -> Result<(), Error> {
        let relay = self.relay(&caller, row, options, live);
        let (events, inbox) = mpsc::channel(EVENTS);
        // A run whose events nobody records must not go on to spend; a panic of the relay counts.
        let stop = cancel.clone().drop_guard();
        let pump = self.tasks.spawn("relay", async move {
            let outcome = relay.pump(inbox).await;
            if outcome.is_ok() {
                drop(stop.disarm());
            }
            outcome
        });
        metrics::gauge!(crate::metrics::RUNNING).increment(1.0);
        if let Some(_slot) = wait_for_slot(ticket, &events, &cancel).await {
            self.execute(caller, row, graph, params, &options, events, cancel)
                .await;
        } else {
            drop(events);
        }
        metrics::gauge!(crate::metrics::RUNNING).decrement(1.0);
        pump.await.map_err(|_| Error::Died)?
    }
    #[expect(clippy::too_many_arguments, reason = "all that a run is made of")]
    async fn execute(
        &self,
        caller: Caller,
        row: &Model,
        graph: serde_json::Value,
        params: Map,
        options: &RunOptions,
        events: mpsc::Sender<Event>,
        cancel: CancellationToken,
    ) {
        let strict = LoadOptions {
            strict: true,
            ..LoadOptions::default()
        };
        let graph = match graph::load(&graph, &self.registry, &strict) {
            Ok(graph) => graph,
            Err(_) => {
                // Everything that is wrong, not only what cannot be loaded.
                let issues = graph::check(&graph, &self.registry, &params);
                let texts: Vec<&str> = issues.iter().map(|issue| issue.message.as_str()).collect();
                let error = Some(texts.join("; "));
                // The relay lives as long as the sender.
                let _ = events.send(ended(JobStatus::Running, None, None)).await;
                let (status, error_code, outputs) = (JobStatus::Failed, None, None);
                let _ = events
                    .send(Event::Job {
                        status,
                        error,
                        error_code,
                        outputs,
                        issues,
                    })
                    .await;
                return;
            }
        };
        let spec = run::RunSpec {
            job_id: row.job_id.as_str().into(),
            workflow_id: row.workflow_id.as_deref().map(Into::into),
            graph,
            params,
            options: self.engine_options(&row.job_key, options),
            registry: Arc::clone(&self.registry),
            services: Arc::new(JobServices::new(self.clients.clone(), caller)),
            events,
            cancel,
            probe: None,
        };
        run::run(spec).await;
    }
    pub(super) fn relay(&self, caller: &Caller, row: &Model, options: RunOptions, live: Arc<Live>) -> Relay {
        let identity = Identity {
            job_key: row.job_key.clone(),
            job_id: row.job_id.clone(),
            workflow_id: row.workflow_id.clone(),
            owner: self.instance.to_string(),
        };
        let saver = Saver::new(
            self.clients.assets.clone(),
            self.clients.signer.clone(),
            caller.clone(),
        );
        let (registry, commits, clock) = (
            Arc::clone(&self.registry),
            self.commits.clone(),
            self.clock.clone(),
        );
        Relay::new(
            identity,
            options,
            registry,
            commits,
            live,
            saver,
            clock,
            row.last_seq,
        )
    }
    fn engine_options(&self, job_key: &str, options: &RunOptions) -> run::RunOptions {
        let buffer_limit = usize::try_from(options.buffer_limit)
            .ok()
            .filter(|limit| *limit > 0);
        let supervisor = options.supervised.then(|| self.escalations.supervisor(job_key));
        run::RunOptions {
            supervision: run::Supervision(supervisor),
            strict: options.strict,
            buffer_limit,
            cancel_grace: self.settings.cancel_grace,
            ..Default::default()
        }
    }
    /// Cancels a run of the caller: whether this call did, and the run as it is.
    ///
    /// # Errors
    /// [`Error::JobNotFound`]; store errors.
    pub async fn cancel(&self, caller: &Caller, job_id: &str) -> Result<(bool, Job), Error> {
        let row = self.store.get(caller, job_id).await?;
        let cancelled = !is_terminal(&row.status) && self.store.note_cancel(&row.job_key).await?;
        if let Some(token) = self.running.get(&row.job_key) {
            token.cancel();
        }
        Ok((cancelled, to_proto(row, false)?))
    }
    /// Cancels what this process drives and others asked to cancel.
    pub(super) fn trip(&self, job_key: &str) {
        if let Some(token) = self.running.get(job_key) {
            token.cancel();
        }
    }
    /// Whether this process drives a run.
    pub(super) fn drives(&self, job_key: &str) -> bool {
        self.running.contains_key(job_key)
    }
    /// Keys of the runs that this process drives.
    pub(super) fn driven(&self) -> Vec<String> {
        self.running.iter().map(|entry| entry.key().clone()).collect()
    }
    /// One run of the caller.
    ///
    /// # Errors
    /// [`Error::JobNotFound`]; store errors.
    pub async fn get(&self, caller: &Caller, job_id: &str) -> Result<Job, Error> {
        to_proto(self.store.get(caller, job_id).await?, true)
    }
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
/// Waits for a slot and tells the place meanwhile; `None` when the run was cancelled first.
async fn wait_for_slot(
    mut ticket: Ticket,
    events: &mpsc::Sender<Event>,
    cancel: &CancellationToken,
) -> Option<Ticket> {
    let mut place = ticket.place();
    while place > 0 {
        let position = u32::try_from(place).unwrap_or(u32::MAX);
        // The relay lives as long as the sender.
        let _ = events.send(Event::Queued { position }).await;
        match cancel.run_until_cancelled(ticket.changed()).await {
            Some(next) => place = next,
            None => {
                let _ = events.send(ended(JobStatus::Cancelled, None, None)).await;
                return None;
            }
        }
    }
    Some(ticket)
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
    }
}
/// Whether a row says that its run goes on.
pub(super) fn goes_on(row: &Model) -> bool {
    matches!(status_of(&row.status), JobStatus::Queued | JobStatus::Running)
}
/// Pause between renewals of the leases of runs.
pub(super) const RENEW: Duration = Duration::from_secs(5);
/// A run that is driven here, until it is dropped: also by a panic, after which its lease must end.
struct Driven {
    jobs: Jobs,
    key: String,
    live: Arc<Live>,
}
impl Drop for Driven {
    fn drop(&mut self) {
        self.jobs.running.remove(&self.key);
        self.jobs.live.remove(&self.key);
        self.live.leave();
    }
}

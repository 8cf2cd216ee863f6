//! Driving one run: wait for a slot, run the graph beside its relay and its inputs, end.
//!
//! A run is given up, not cancelled, when its relay can record nothing any more, when another process has taken it up, or
//! when this process goes down: what it asked of providers goes on, and whoever takes the run up finds it again.

use std::{convert::Infallible, sync::Arc, time::Duration};

use atelier_common::{
    backoff::{self, Exponential},
    identity::Caller,
};
use atelier_proto::{
    kernel::v1::{JobStatus, RunOptions},
    provider::v1::CancelGenerationRequest,
    value::Map,
};
use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;
use tonic::{Code, Request, Status};
use tracing::Instrument;

use super::{Inner, Jobs, Ticket, driver::ended, escalations::Questions, suspended::resumed};
use crate::{
    entity::jobs::Model,
    error::Error,
    event::{Event, EventSender, channel},
    graph::{self, LoadOptions},
    log::Live,
    node::{Registry, TriggerEvent},
    relay::{Identity, Relay, Saver},
    run::{self, Journal},
    services::JobServices,
};

/// Events between a run's actors and its relay. Full: the relay is behind, and the actors wait.
const EVENTS: usize = 1_024;
/// How often the types of a run that is taken up are looked for again.
const LOOK_FOR_WORKERS: Duration = Duration::from_millis(100);

/// A run that this process drives.
pub struct Running {
    /// Cancels it.
    pub cancel: CancellationToken,
    /// Gives it up: it stops here and nothing is said about it.
    pub(super) abandon: CancellationToken,
    /// Tells that something came in for it.
    pub(super) input: Arc<Notify>,
    /// Tells that an answer to a question came in for it.
    pub(super) verdict: Arc<Notify>,
    /// Tells that something that came in was taken.
    pub(super) taken: Arc<Notify>,
}
/// What a run is made of.
pub(super) struct Work {
    pub caller: Caller,
    pub row: Model,
    pub graph: serde_json::Value,
    pub params: Map,
    pub trigger: Option<TriggerEvent>,
    pub options: RunOptions,
}
/// What is there of a run that another process began.
pub(super) struct Begun {
    pub relay: Relay,
    pub live: Arc<Live>,
    pub journal: Journal,
    /// States of nodes that are resumed, by node id.
    pub resume: Map,
    /// Gives it up.
    pub abandon: CancellationToken,
}

impl Jobs {
    /// Drives a run in a task of its own; `begun` when another process began it.
    pub(super) fn spawn(&self, work: Work, ticket: Ticket, begun: Option<Begun>) {
        let live = begun
            .as_ref()
            .map_or_else(|| Arc::new(Live::new(0)), |begun| Arc::clone(&begun.live));
        let key = work.row.job_key.clone();
        let [input, verdict, taken] = std::array::from_fn(|_| Arc::new(Notify::new()));
        let driven = Driven {
            jobs: self.clone(),
            key: key.clone(),
            live: Arc::clone(&live),
            taken: Arc::clone(&taken),
        };
        self.live.insert(&key, Arc::clone(&live));
        // Not the process's token: a process that goes down gives a run up, it does not cancel it.
        let cancel = CancellationToken::new();
        let abandon = begun
            .as_ref()
            .map_or_else(CancellationToken::new, |begun| begun.abandon.clone());
        self.running.insert(
            key,
            Running {
                cancel: cancel.clone(),
                abandon: abandon.clone(),
                input: Arc::clone(&input),
                verdict: Arc::clone(&verdict),
                taken: Arc::clone(&taken),
            },
        );
        if work.row.cancel_requested_at.is_some() {
            cancel.cancel();
        }
        let asked = cancel.clone();
        let cancel = match &begun {
            Some(_) => CancellationToken::new(),
            None => cancel,
        };
        let (caller, job_id) = (work.caller.clone(), work.row.job_id.clone());
        let jobs = self.clone();
        let span = tracing::info_span!("run", job_id = work.row.job_id);
        let drive = async move {
            let _driven = driven;
            let taken_up = begun.is_some();
            // Nodes of a run that was taken up may never come to what they asked of providers before: a cancel reaches that
            // first, and then the run, so that a process which dies in between leaves both to the next one.
            let (herald, tripped) = (jobs.clone(), cancel.clone());
            let cancelled = async move {
                if taken_up {
                    asked.cancelled().await;
                    herald.cancel_generations(&caller, &job_id).await;
                    tripped.cancel();
                }
                std::future::pending::<Infallible>().await
            };
            let mut cancelled = Box::pin(cancelled);
            if taken_up && work.row.cancel_requested_at.is_some() {
                // Before anything is asked of providers again.
                let _ = cancel.run_until_cancelled(&mut cancelled).await;
            }
            let (begun, relay) = match begun {
                Some(begun) => ((begun.journal, begun.resume), begun.relay),
                None => {
                    let relay = jobs.relay(&work.caller, &work.row, work.options, live);
                    (<(Journal, Map)>::default(), relay)
                }
            };
            let drive = Drive {
                jobs,
                work,
                begun,
                taken_up,
                cancel,
                abandon,
                input,
                verdict,
                taken,
            };
            let outcome = tokio::select! {
                outcome = Box::pin(drive.drive(ticket, relay)) => outcome,
                never = cancelled => match never {},
            };
            if let Err(error) = outcome {
                tracing::error!(error = &error as &dyn std::error::Error, "a run was given up");
            }
        };
        drop(self.tasks.spawn("job", drive.instrument(span)));
    }
    /// Cancels what a run asked of providers, whoever drove it then. A seam that is away for a moment is asked again.
    pub(super) async fn cancel_generations(&self, caller: &Caller, job_id: &str) {
        let message = CancelGenerationRequest {
            generation_id: String::new(),
            job_id: Some(job_id.to_owned()),
        };
        let pauses = Exponential::new(Duration::from_millis(100), Duration::from_secs(2)).pauses(8);
        let ask = || async {
            let request = self.clients.signer.attach(Request::new(message.clone()), caller);
            self.clients.providers.clone().cancel_generation(request).await
        };
        let passes = |status: &Status| matches!(status.code(), Code::Unavailable | Code::DeadlineExceeded);
        if let Err(status) = backoff::retry(pauses.iter(), ask, passes).await {
            tracing::warn!(job_id, code = ?status.code(), "generations of a cancelled run could not be cancelled");
        }
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
            self.types.of(&caller.user_id),
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
}

/// One drive of a run.
pub(super) struct Drive {
    pub(super) jobs: Jobs,
    pub(super) work: Work,
    begun: (Journal, Map),
    /// Whether another process began it.
    taken_up: bool,
    cancel: CancellationToken,
    abandon: CancellationToken,
    pub(super) input: Arc<Notify>,
    pub(super) verdict: Arc<Notify>,
    pub(super) taken: Arc<Notify>,
}
impl Drive {
    async fn drive(mut self, ticket: Ticket, relay: Relay) -> Result<(), Error> {
        let (events, inbox) = channel(EVENTS);
        // A run whose events nobody records must not go on to spend; a panic of the relay counts.
        let stop = self.abandon.clone().drop_guard();
        let pump = self.jobs.tasks.spawn("relay", async move {
            let outcome = relay.pump(inbox).await;
            if outcome.is_ok() {
                drop(stop.disarm());
            }
            outcome
        });
        metrics::gauge!(crate::metrics::RUNNING).increment(1.0);
        let (abandon, cancel) = (self.abandon.clone(), self.cancel.clone());
        let run = async move {
            if let Some(_slot) = wait_for_slot(ticket, &events, &cancel).await {
                self.execute(events).await;
            }
        };
        // Dropped when it is given up: its tasks end with it, and what they wait for goes on without them.
        let _ = abandon.run_until_cancelled(Box::pin(run)).await;
        metrics::gauge!(crate::metrics::RUNNING).decrement(1.0);
        pump.await.map_err(|_| Error::Died)?
    }
    async fn execute(&mut self, events: EventSender) {
        let strict = LoadOptions {
            strict: true,
            ..LoadOptions::default()
        };
        let (jobs, work) = (&self.jobs, &self.work);
        let mut registry = jobs.types.of(&work.caller.user_id);
        let mut loaded = graph::load(&work.graph, &registry, &strict);
        // Workers that serve types of a run that is taken up may have lost their stream with its process.
        let patience = Instant::now() + jobs.settings.worker_grace;
        while loaded.is_err() && self.taken_up && Instant::now() < patience {
            tokio::select! {
                () = self.cancel.cancelled() => break,
                () = tokio::time::sleep(LOOK_FOR_WORKERS) => {}
            }
            registry = jobs.types.of(&work.caller.user_id);
            loaded = graph::load(&work.graph, &registry, &strict);
        }
        let Ok(graph) = loaded else {
            if self.cancel.is_cancelled() {
                // Workers that did not come back say nothing about the graph.
                let _ = events.send(ended(JobStatus::Cancelled, None, None)).await;
                return;
            }
            return refuse(work, &registry, &events).await;
        };
        let (journal, resume) = std::mem::take(&mut self.begun);
        let questions = work.options.supervised.then(|| Questions::new(self.taken_up));
        let spec = run::RunSpec {
            job_id: work.row.job_id.as_str().into(),
            workflow_id: work.row.workflow_id.as_deref().map(Into::into),
            graph,
            params: work.params.clone(),
            options: jobs.engine_options(work.row.depth, &work.options, questions.as_ref()),
            registry,
            services: Arc::new(
                JobServices::new(jobs.clients.clone(), work.caller.clone())
                    .with_scratch(jobs.data_dir.join("tmp"))
                    .with_inner(Inner::new(jobs.clone(), work.row.depth, &work.options)),
            ),
            events,
            cancel: self.cancel.clone(),
            probe: None,
            journal: Some(Arc::new(journal)),
            trigger: work.trigger.clone(),
            resume: resumed(resume),
        };
        let (handle, running) = run::start(spec);
        tokio::select! {
            _ = running => {}
            never = self.feed(handle) => match never {},
            never = self.take_verdicts(questions.as_ref()) => match never {},
        }
    }
}
/// Tells all that is wrong with a graph, not only what cannot be loaded.
async fn refuse(work: &Work, registry: &Registry, events: &EventSender) {
    let issues = graph::check(&work.graph, registry, &work.params);
    let texts: Vec<&str> = issues.iter().map(|issue| issue.message.as_str()).collect();
    let error = Some(texts.join("; "));
    // The relay lives as long as the sender.
    let _ = events.send(ended(JobStatus::Running, None, None)).await;
    let _ = events
        .send(Event::Job {
            status: JobStatus::Failed,
            error,
            error_code: None,
            outputs: None,
            issues,
            suspensions: Vec::new(),
        })
        .await;
}
/// Waits for a slot and tells the place meanwhile; `None` when the run was cancelled first.
async fn wait_for_slot(
    mut ticket: Ticket,
    events: &EventSender,
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
/// Pause between renewals of the leases of runs, for a lease.
pub(super) fn renewal(lease: Duration) -> Duration {
    (lease / 6).clamp(Duration::from_millis(100), Duration::from_secs(5))
}
/// A run that is driven here, until it is dropped: also by a panic, after which its lease must end.
struct Driven {
    jobs: Jobs,
    key: String,
    live: Arc<Live>,
    taken: Arc<Notify>,
}
impl Drop for Driven {
    fn drop(&mut self) {
        // A run that was suspended may be driven again already: what the next drive registered is not ours.
        let own = |_: &String, running: &Running| Arc::ptr_eq(&running.taken, &self.taken);
        self.jobs.running.remove_if(&self.key, own);
        self.taken.notify_waiters();
        self.jobs.live.remove(&self.key, &self.live);
        self.live.leave();
    }
}

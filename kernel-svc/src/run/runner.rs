//! A run from the first event to the last: checks, executors, inputs, actors, and what they come to.

mod build;
mod finish;
mod groups;

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use atelier_proto::{kernel::v1::JobStatus, value::Map};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use groups::Ended;

use super::{
    actor::Actor,
    core::Core,
    handle::{RunHandle, Shared, Started},
    journal::Journal,
    mode::external::External,
    options::RunOptions,
    probe::Probe,
    result::{Resumed, RunResult},
};
use crate::{
    event::{Event, EventSender},
    graph::{HydratedGraph, check::prepare},
    node::{Registry, Services, TriggerEvent},
};

/// Everything that a run needs.
pub struct RunSpec {
    /// The run.
    pub job_id: Arc<str>,
    /// Its workflow.
    pub workflow_id: Option<Arc<str>>,
    /// The graph.
    pub graph: HydratedGraph,
    /// Values for its inputs, by name.
    pub params: Map,
    /// How it is to behave.
    pub options: RunOptions,
    /// The code of the nodes.
    pub registry: Arc<Registry>,
    /// Other services, for node code.
    pub services: Arc<dyn Services>,
    /// Where events go. Full means that the relay is behind: actors wait, nothing is dropped.
    pub events: EventSender,
    /// Cancels the run, at any time.
    pub cancel: CancellationToken,
    /// Watches the edges.
    pub probe: Option<Arc<dyn Probe>>,
    /// What an earlier process did of it; empty for a new run. `None`: nothing is kept for a later process either.
    pub journal: Option<Arc<Journal>>,
    /// The event that starts it, for a graph with a trigger.
    pub trigger: Option<TriggerEvent>,
    /// States to resume with, by node: the run goes on after these nodes suspended it.
    pub resume: HashMap<String, Resumed>,
}

/// Runs a graph to its end.
pub async fn run(spec: RunSpec) -> RunResult {
    start(spec).1.await
}

/// Runs one graph at a time.
#[derive(Debug, Clone, Default)]
pub struct Runner(Arc<AtomicBool>);

/// The runner has a run that goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the runner is busy with another run")]
pub struct Busy;
impl Busy {
    /// The machine-readable code.
    #[must_use]
    pub fn code(self) -> &'static str {
        "run.busy"
    }
}

impl Runner {
    /// See [`start`]. The runner is free again when the run has ended or its future was dropped; runs share
    /// nothing.
    ///
    /// # Errors
    /// [`Busy`] while another run goes on, which does not notice.
    pub fn start(
        &self,
        spec: RunSpec,
    ) -> Result<(RunHandle, impl Future<Output = RunResult> + Send + use<>), Busy> {
        if self.0.swap(true, Ordering::SeqCst) {
            return Err(Busy);
        }
        let free = Free(Arc::clone(&self.0));
        let (handle, run) = start(spec);
        let run = async move {
            let _free = free;
            run.await
        };
        Ok((handle, run))
    }
}
/// Frees a runner.
struct Free(Arc<AtomicBool>);
impl Drop for Free {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

/// A handle to a run, and the run itself: nothing happens until the future is polled.
pub fn start(spec: RunSpec) -> (RunHandle, impl Future<Output = RunResult> + Send) {
    let shared = Arc::new(Shared {
        cancel: spec.cancel.clone(),
        ..Shared::default()
    });
    let handle = RunHandle(Arc::clone(&shared));
    (handle, drive(spec, shared))
}

async fn drive(spec: RunSpec, shared: Arc<Shared>) -> RunResult {
    let span = tracing::info_span!("run", job_id = %spec.job_id);
    let events = spec.events.clone();
    let say = |event| async {
        let _ = events.send(event).await;
    };
    say(job(JobStatus::Running, &RunResult::of(JobStatus::Running))).await;
    let result = Box::pin(execute(spec, &shared)).instrument(span).await;
    shared.ended.store(true, Ordering::SeqCst);
    shared.news.notify_one();
    say(job(result.status, &result)).await;
    result
}

fn job(status: JobStatus, result: &RunResult) -> Event {
    Event::Job {
        status,
        error: result.error.clone(),
        error_code: result.error_code.clone(),
        outputs: (status == JobStatus::Completed).then(|| result.outputs.clone()),
        issues: result.issues.clone(),
        suspensions: result.suspensions.clone(),
    }
}

fn failed(code: impl Into<String>, error: String) -> RunResult {
    RunResult {
        error: Some(error),
        error_code: Some(code.into()),
        ..RunResult::of(JobStatus::Failed)
    }
}

async fn execute(spec: RunSpec, shared: &Shared) -> RunResult {
    let RunSpec {
        job_id,
        workflow_id,
        graph,
        params,
        options,
        registry,
        services,
        events,
        cancel,
        probe,
        journal,
        trigger,
        resume,
    } = spec;
    let prepared = match prepare(graph, &params) {
        Ok(prepared) => prepared,
        Err(rejection) => {
            let issues = rejection.issues;
            return RunResult {
                issues,
                ..failed(rejection.code, rejection.message)
            };
        }
    };
    for edge in &prepared.dropped_edges {
        tracing::warn!(edge, "an edge names a node that is not there and was left out");
    }
    if cancel.is_cancelled() {
        return RunResult::of(JobStatus::Cancelled);
    }
    let starts = |event: &TriggerEvent| {
        let node = prepared
            .plan
            .nodes
            .iter()
            .find(|node| node.label.id == event.node_id);
        node.is_some_and(|node| node.node.meta.trigger)
    };
    if let Some(event) = trigger.as_ref().filter(|event| !starts(event)) {
        tracing::warn!(node_id = %event.node_id, "the event that starts the run is for a node that is no trigger");
    }
    let further = (trigger, resume);
    let core = Arc::new(build::core(
        prepared.plan,
        options,
        &events,
        &cancel,
        (probe, journal),
        further,
        (&job_id, &params),
    ));
    let made = build::executors(&core, &registry, &services, (&job_id, workflow_id.as_ref())).await;
    let build::Made {
        actors,
        externals,
        error,
    } = made;
    let mut run = Run {
        core,
        ends: Vec::new(),
        stalled: None,
    };
    let error = match error {
        None if !cancel.is_cancelled() => build::dispatch(&run.core, &externals, &params).await.err(),
        other => other,
    };
    if error.is_some() || cancel.is_cancelled() {
        if error.is_some() {
            run.core.flush_edges(&run.core.left_edges()).await;
        }
        build::finalize(&run.core, actors, externals).await;
        return match error.filter(|_| !cancel.is_cancelled()) {
            Some((code, text)) => failed(code, text),
            None => RunResult::of(JobStatus::Cancelled),
        };
    }
    let externals: Vec<(External, AtomicBool)> = externals
        .into_iter()
        .map(|external| {
            let open = external.stays_open(&params);
            (external, AtomicBool::new(open))
        })
        .collect();
    for (_, open) in &externals {
        if open.load(Ordering::SeqCst) {
            run.core.activity.open_input();
        }
    }
    let _ = shared.started.set(Started {
        core: Arc::clone(&run.core),
        externals,
    });
    shared.news.notify_one();
    run.actors(actors, &cancel).await;
    run.core.variables.close();
    run.finish(shared, &cancel).await
}

/// The state of a run while its actors live.
struct Run {
    core: Arc<Core>,
    /// Nodes that ended, with their numbers among the ends.
    ends: Vec<Ended>,
    /// Why it could not go on: a code and a text.
    stalled: Option<(&'static str, String)>,
}

impl Run {
    /// Runs all actors until the last one has ended.
    async fn actors(&mut self, actors: Vec<Actor>, cancel: &CancellationToken) {
        let mut tasks: JoinSet<Vec<Ended>> = JoinSet::new();
        let ends = Arc::new(AtomicUsize::new(0));
        actors.iter().for_each(|_| self.core.activity.begin());
        for group in groups::groups(&self.core.plan, actors) {
            tasks.spawn(groups::run(group, Arc::clone(&ends)).in_current_span());
        }
        let mut stopping = false;
        let mut stall: Option<(Instant, u64)> = None;
        let core = Arc::clone(&self.core);
        // Producers that wait for room get some, also while inputs are open: who pushes may be one of them.
        // Loops whose body brings nothing back end their iterations, before anything is called stuck.
        let limited = core.options.buffer_limit.is_some();
        let moves = || {
            core.budget.stretch()
                || (limited && core.inboxes.iter().any(|inbox| inbox.make_room()))
                || (core.activity.is_stuck() && core.end_a_loop())
        };
        while !tasks.is_empty() {
            tokio::select! {
                Some(ended) = tasks.join_next() => self.ended(ended),
                () = cancel.cancelled(), if !stopping => {
                    stopping = true;
                    core.inboxes.iter().for_each(|inbox| inbox.close());
                }
                () = core.activity.idle(), if !stopping => {
                    // Code outside works, or waits for what cannot come without room: which of the two, time tells.
                    let outside = core.activity.waits_outside();
                    let stuck = || !moves() && (core.activity.is_stuck() || core.budget.is_short());
                    if core.activity.is_idle() && (outside || stuck()) {
                        stall = Some((Instant::now() + core.options.stall_timeout, core.activity.wakes()));
                    }
                }
                () = due(stall), if stall.is_some() && !stopping => {
                    let still = stall.take().is_some_and(|(_, wakes)| wakes == core.activity.wakes());
                    let short = core.activity.is_idle() && core.budget.is_short();
                    if core.activity.waits_outside() {
                        if still && core.activity.is_idle() {
                            moves();
                        }
                    } else if still && (short || core.activity.is_stuck()) {
                        stopping = true;
                        self.stalled = Some(if core.budget.is_short() {
                            ("run.memory", core.budget.shortage())
                        } else {
                            ("run.stalled", finish::stall_text(&core))
                        });
                        core.cancel.cancel();
                        core.inboxes.iter().for_each(|inbox| inbox.close());
                    }
                }
            }
        }
    }
    fn ended(&mut self, ended: Result<Vec<Ended>, tokio::task::JoinError>) {
        match ended {
            Ok(ended) => self.ends.extend(ended),
            // All that an actor does is guarded where it runs.
            Err(error) => self.stalled = Some(("internal", format!("a part of the run was lost: {error}"))),
        }
    }
}

/// Waits until a stall is certain.
async fn due(stall: Option<(Instant, u64)>) {
    sleep_until(stall.map_or_else(Instant::now, |(due, _)| due)).await;
}

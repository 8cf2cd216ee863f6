//! What the outside may do to a run while it runs: push values into its inputs, send control events, cancel
//! it.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, Ordering},
};

use atelier_proto::value::{Map, Value};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{
    core::Core,
    events::{EventQueue, QueueError},
    inbox::Envelope,
    lineage::Lineage,
    mode::external::External,
};
use crate::graph::{control::run_event, plan::PlanNode};

/// What a handle cannot do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The run has not started yet, or was refused.
    #[error("the run has not started")]
    NotStarted,
    /// The run is over.
    #[error("the run has ended")]
    Ended,
    /// The run has no such input.
    #[error("the run has no input {0}")]
    UnknownInput(String),
    /// The input was finished before.
    #[error("input {0} is finished")]
    InputFinished(String),
    /// The node behind the input failed; the run goes on.
    #[error("input {name}: {message}")]
    InputFailed {
        /// The input.
        name: String,
        /// What its node said.
        message: String,
    },
    /// The run has no such node, or nothing controls it.
    #[error("the run has no controlled node {0}")]
    UnknownNode(String),
    /// The node failed, ended before it answered, or had ended already.
    #[error("node {node}: {message}")]
    NoAnswer {
        /// The node.
        node: String,
        /// Why.
        message: String,
    },
}
impl RunError {
    /// The machine-readable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotStarted => "run.not_started",
            Self::Ended => "run.ended",
            Self::UnknownInput(_) => "input.unknown",
            Self::InputFinished(_) => "input.finished",
            Self::InputFailed { .. } => "input.failed",
            Self::UnknownNode(_) => "control.unknown_node",
            Self::NoAnswer { .. } => "control.no_answer",
        }
    }
}

/// A handle to a run; cheap to clone. Dropping it changes nothing.
#[derive(Clone)]
pub struct RunHandle(pub(crate) Arc<Shared>);

#[derive(Default)]
pub(crate) struct Shared {
    pub started: OnceLock<Started>,
    pub ended: AtomicBool,
    pub cancel: CancellationToken,
    /// Tells one waiter that it started or ended.
    pub news: Notify,
}
pub(crate) struct Started {
    pub core: Arc<Core>,
    pub externals: Vec<(External, AtomicBool)>,
}
/// Counts as busy as long as it lives.
struct Busy<'a>(&'a Core);
impl<'a> Busy<'a> {
    fn new(core: &'a Core) -> Self {
        core.activity.begin();
        Self(core)
    }
}
impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.activity.end();
    }
}

impl RunHandle {
    fn started(&self) -> Result<&Started, RunError> {
        let started = self.0.started.get().ok_or(RunError::NotStarted)?;
        if self.0.ended.load(Ordering::SeqCst) {
            Err(RunError::Ended)
        } else {
            Ok(started)
        }
    }
    /// Waits until the run can be pushed to, or is over.
    pub async fn started_or_ended(&self) {
        while self.0.started.get().is_none() && !self.0.ended.load(Ordering::SeqCst) {
            self.0.news.notified().await;
        }
    }
    /// Whether anything can come in while it runs: it has inputs, triggers or controlled nodes.
    #[must_use]
    pub fn takes_inputs(&self) -> bool {
        self.0.started.get().is_some_and(|started| {
            let takes = |node: &Arc<crate::graph::plan::PlanNode>| {
                node.node.flags.controlled || node.node.meta.trigger
            };
            !started.externals.is_empty() || started.core.plan.nodes.iter().any(takes)
        })
    }
    /// Cancels the run; valid at any time, also before it started.
    pub fn cancel(&self) {
        self.0.cancel.cancel();
    }
    /// Pushes a value into an input of the run, found by its external name or its node's id; with a handle
    /// only along the edges of that output. Waits while consumers are full. To a trigger, found the same way,
    /// it is an event.
    ///
    /// # Errors
    /// The run is not running, has no such input, the input is finished, or its node failed. The run goes on.
    pub async fn push_input(&self, name: &str, value: Value, handle: Option<&str>) -> Result<(), RunError> {
        let started = self.started()?;
        let _busy = Busy::new(&started.core);
        if let Some((node, events)) = trigger(started, name) {
            let refused = |error: QueueError| match error {
                QueueError::Closed => RunError::InputFinished(name.to_owned()),
                QueueError::Full => RunError::InputFailed {
                    name: name.to_owned(),
                    message: error.to_string(),
                },
            };
            return events.push(payload(node, value)).map_err(refused);
        }
        let (external, open) = find(started, name)?;
        if !open.load(Ordering::SeqCst) {
            return Err(RunError::InputFinished(name.to_owned()));
        }
        let failed = |error: crate::node::NodeError| RunError::InputFailed {
            name: name.to_owned(),
            message: error.message,
        };
        external.send(&started.core, value, handle).await.map_err(failed)
    }
    /// Finishes an input of the run, or one of its outputs: its consumers see the end. Finishing twice
    /// changes nothing.
    ///
    /// # Errors
    /// The run is not running, or has no such input.
    pub async fn finish_input(&self, name: &str, handle: Option<&str>) -> Result<(), RunError> {
        let started = self.started()?;
        let _busy = Busy::new(&started.core);
        if let Some((_, events)) = trigger(started, name) {
            events.close();
            return Ok(());
        }
        let (external, open) = find(started, name)?;
        if external.finish(&started.core, handle).await && open.swap(false, Ordering::SeqCst) {
            started.core.activity.close_input();
        }
        Ok(())
    }
    /// Sends a run event to a controlled node and goes on.
    ///
    /// # Errors
    /// The run is not running, or has no such controlled node.
    pub async fn send_control(&self, node: &str, properties: Map) -> Result<(), RunError> {
        self.event(node, properties, 0).await
    }
    /// Sends a run event to every controlled node.
    ///
    /// # Errors
    /// The run is not running.
    pub async fn broadcast_control(&self, properties: &Map) -> Result<(), RunError> {
        let nodes = self
            .started()?
            .core
            .plan
            .nodes
            .iter()
            .filter(|node| node.node.flags.controlled);
        let ids: Vec<Arc<str>> = nodes.map(|node| Arc::clone(&node.label.id)).collect();
        for id in ids {
            self.event(&id, properties.clone(), 0).await?;
        }
        Ok(())
    }
    /// Sends a run event to a controlled node and waits for the outputs of exactly its invocation.
    ///
    /// # Errors
    /// The run is not running, has no such controlled node, the node has ended, or ends or fails before it
    /// answers.
    pub async fn request_control(&self, node: &str, properties: Map) -> Result<Map, RunError> {
        let id = self.started()?.core.waiters.next_id();
        self.control_as(node, properties, id).await?.await
    }
    /// Sends a run event that has an id of the caller's, unique in the run, and gives what waits for the outputs of exactly
    /// its invocation. The invocation is named by the id, so that a run that is taken up finds it again.
    ///
    /// # Errors
    /// As [`request_control`](Self::request_control).
    pub async fn control_as(
        &self,
        node: &str,
        properties: Map,
        id: u64,
    ) -> Result<impl Future<Output = Result<Map, RunError>> + use<>, RunError> {
        let started = self.started()?;
        let at = controlled(&started.core, node)?;
        let answer = started.core.waiters.wait(at, id);
        self.event(node, properties, id).await?;
        let finished = started
            .core
            .finished
            .get(at)
            .is_some_and(|finished| finished.load(Ordering::SeqCst));
        if finished || self.0.ended.load(Ordering::SeqCst) {
            started
                .core
                .waiters
                .settle(id, Err("the node has ended".to_owned()));
        }
        let node = node.to_owned();
        Ok(async move {
            let answer = answer
                .await
                .unwrap_or_else(|_| Err("the run has ended".to_owned()));
            answer.map_err(|message| RunError::NoAnswer { node, message })
        })
    }
    async fn event(&self, node: &str, properties: Map, event: u64) -> Result<(), RunError> {
        let started = self.started()?;
        let _busy = Busy::new(&started.core);
        let at = controlled(&started.core, node)?;
        let (Some(inbox), Some(plan)) = (started.core.inboxes.get(at), started.core.plan.nodes.get(at))
        else {
            return Err(RunError::UnknownNode(node.to_owned()));
        };
        let envelope = Envelope {
            event,
            ..Envelope::new(run_event(properties.into()), Lineage::default())
        };
        if !inbox.put(plan.facts.handles.len(), envelope).await {
            started
                .core
                .waiters
                .settle(event, Err("the run is over".to_owned()));
        }
        Ok(())
    }
}

fn controlled(core: &Core, node: &str) -> Result<usize, RunError> {
    let at = core.plan.place(node);
    let fits = |at: &usize| {
        core.plan
            .nodes
            .get(*at)
            .is_some_and(|node| node.node.flags.controlled)
    };
    at.filter(fits)
        .ok_or_else(|| RunError::UnknownNode(node.to_owned()))
}

/// The trigger that is called so, unless an input of the run is.
fn trigger<'a>(started: &'a Started, name: &str) -> Option<(&'a PlanNode, &'a EventQueue)> {
    let core = &started.core;
    if core.queues.is_empty() || find(started, name).is_ok() {
        return None;
    }
    let called = |node: &&Arc<PlanNode>| node.node.input_name() == name || &*node.label.id == name;
    let mut nodes = core.plan.nodes.iter().filter(called);
    nodes.find_map(|node| Some((&**node, &**core.queues.get(&node.label.id)?)))
}
/// An event for a trigger: a map with values of its outputs, else the value is its `data`.
fn payload(node: &PlanNode, value: Value) -> Map {
    let own = |map: &Map| {
        map.keys()
            .any(|name| node.node.outputs.contains_key(name.as_str()))
    };
    match value {
        Value::Map(map) if own(&map) => Arc::unwrap_or_clone(map),
        other => Map::from_iter([("data".to_owned(), other)]),
    }
}

fn find<'a>(started: &'a Started, name: &str) -> Result<(&'a External, &'a AtomicBool), RunError> {
    let by_name = started
        .externals
        .iter()
        .find(|(external, _)| external.node.node.input_name() == name);
    let by_id = || {
        started
            .externals
            .iter()
            .find(|(external, _)| &*external.node.label.id == name)
    };
    let found = by_name
        .or_else(by_id)
        .ok_or_else(|| RunError::UnknownInput(name.to_owned()))?;
    Ok((&found.0, &found.1))
}

//! What all parts of one run share: the plan, the inboxes, the state of the edges, and where events go. No
//! lock here is shared between nodes that have nothing to do with each other.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
};

use atelier_proto::{
    kernel::v1::{EdgeStatus, Severity},
    value::Value,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    activity::Activity,
    budget::{Budget, weigh},
    cancel::clean_up,
    events::EventQueue,
    inbox::{Envelope, Inbox, Item},
    journal::Journal,
    lineage::Lineage,
    options::RunOptions,
    probe::Probe,
    quiet::Loops,
    result::Resumed,
    supervise::Desk,
    variables::Variables,
    waiters::Waiters,
};
use crate::{
    event::{Event, Note, WeakEventSender},
    graph::{
        facts::Root,
        plan::{Plan, PlanEdge, PlanNode, SlotPlan},
    },
    node::{NodeError, TriggerEvent},
};

/// Ids of events that came along control edges begin here.
const EDGE_EVENTS: u64 = 1 << 56;
/// Least time between two `active` updates of an edge.
const EDGE_UPDATE_MILLIS: u64 = 1_000;

pub(crate) struct Core {
    pub plan: Plan,
    pub inboxes: Vec<Arc<Inbox>>,
    pub edges: Vec<EdgeState>,
    /// Whoever drives the run keeps it open; nothing else does, so that the last event is the last.
    pub events: WeakEventSender,
    pub cancel: CancellationToken,
    pub options: RunOptions,
    pub activity: Arc<Activity>,
    pub budget: Arc<Budget>,
    /// Nodes whose actor has ended.
    pub finished: Vec<AtomicBool>,
    /// Nodes that failed, or stand behind one that did.
    pub tainted: Vec<AtomicBool>,
    /// Parents under which an iteration was opened, by root.
    pub opened: Vec<Mutex<Vec<Lineage>>>,
    pub waiters: Waiters,
    pub loops: Loops,
    pub variables: Arc<Variables>,
    /// The event that started the run.
    pub trigger: Option<TriggerEvent>,
    /// What nodes left behind when they suspended the run.
    pub resume: HashMap<String, Resumed>,
    /// Events for the triggers of the run, by node.
    pub queues: HashMap<Arc<str>, Arc<EventQueue>>,
    /// The queue of all other nodes.
    pub no_events: Arc<EventQueue>,
    pub probe: Option<Arc<dyn Probe>>,
    /// What an earlier process did; `None` when nothing is kept for a later one.
    pub journal: Option<Arc<Journal>>,
    /// Where failures are asked about, in a supervised run.
    pub desk: Option<Desk>,
    pub started: Instant,
}

/// Traffic on an edge.
#[derive(Debug, Default)]
pub(crate) struct EdgeState {
    count: AtomicI64,
    reported: AtomicI64,
    reported_at: AtomicU64,
    completed: AtomicBool,
    ended: AtomicBool,
    /// Control events so far.
    events: AtomicU64,
}
impl EdgeState {
    pub fn is_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }
    fn counter(&self) -> Option<i64> {
        Some(self.count.load(Ordering::SeqCst)).filter(|count| *count > 0)
    }
}

impl Core {
    /// Says something to the outside; waits while the relay is behind. A relay that is gone is no concern of
    /// the run.
    #[expect(
        clippy::manual_async_fn,
        reason = "an async fn would hold the event twice, for every node"
    )]
    pub fn say(&self, event: Event) -> impl Future<Output = ()> + Send {
        async move {
            let _ = self.events.send(event).await;
        }
    }
    /// A warning in the log of a node.
    pub async fn warn(&self, node: &PlanNode, content: String) {
        let note = Note::Log {
            content,
            severity: Severity::Warning,
        };
        Box::pin(self.say(Event::Note {
            node: Arc::clone(&node.label),
            note,
        }))
        .await;
    }
    /// Lets the code of a node clean up, within its limit.
    pub async fn clean_up(
        &self,
        node: &PlanNode,
        cancel: &CancellationToken,
        code: impl Future<Output = ()>,
    ) {
        let limits = (self.options.finalize_limit, self.options.cancel_grace);
        if !clean_up(cancel, limits, code).await {
            let (node_id, node_type) = (&node.label.id, &node.label.node_type);
            tracing::warn!(%node_id, %node_type, "a node did not finish cleaning up and was left");
            self.warn(
                node,
                "the node did not finish cleaning up and was left".to_owned(),
            )
            .await;
        }
    }
    /// Events for a node; nothing is ever sent to one that is no trigger.
    pub fn queue(&self, node: &Arc<str>) -> Arc<EventQueue> {
        Arc::clone(self.queues.get(node).unwrap_or(&self.no_events))
    }
    fn millis(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Puts a value on a data edge and counts it. After a cancel nothing is delivered.
    ///
    /// # Errors
    /// `run.item_too_large`: the value is larger than all that the run may hold.
    pub async fn deliver(
        &self,
        at: usize,
        envelope: Envelope,
        cancel: &CancellationToken,
    ) -> Result<(), NodeError> {
        let (Some(edge), Some(state)) = (self.plan.edges.get(at), self.edges.get(at)) else {
            return Ok(());
        };
        let Some(inbox) = self.inboxes.get(edge.target) else {
            return Ok(());
        };
        if cancel.is_cancelled() {
            return Ok(());
        }
        let bytes = weigh(&envelope.value);
        if bytes > self.budget.most() {
            let text = format!(
                "a value of about {bytes} bytes at output {} is larger than the {} bytes that the run may hold; pass \
                 large media on as references",
                edge.source_handle,
                self.budget.most()
            );
            return Err(NodeError::new(text).code("run.item_too_large"));
        }
        let seen = self
            .probe
            .as_ref()
            .map(|_| (envelope.value.clone(), envelope.lineage.clone()));
        if !inbox.put_weighed(edge.handle, envelope, bytes).await {
            return Ok(());
        }
        if let (Some(probe), Some((value, lineage))) = (&self.probe, seen) {
            probe.delivered(&edge.id, &value, &lineage, &self.plan.roots);
        }
        let count = state.count.fetch_add(1, Ordering::SeqCst) + 1;
        let millis = self.millis();
        let due = count == 1
            || millis.saturating_sub(state.reported_at.load(Ordering::Relaxed)) >= EDGE_UPDATE_MILLIS;
        if due && !state.completed.load(Ordering::SeqCst) {
            state.reported_at.store(millis, Ordering::Relaxed);
            state.reported.store(count, Ordering::Relaxed);
            let (edge_id, status) = (Arc::clone(&edge.id), EdgeStatus::Active);
            self.say(Event::Edge {
                edge_id,
                status,
                counter: Some(count),
            })
            .await;
        }
        Ok(())
    }
    /// Puts an event on a control edge.
    pub async fn deliver_event(&self, at: usize, event: Value, cancel: &CancellationToken) {
        let Some(edge) = self.plan.edges.get(at) else {
            return;
        };
        let Some(inbox) = self.inboxes.get(edge.target) else {
            return;
        };
        if !cancel.is_cancelled() {
            if let Some(probe) = &self.probe {
                probe.delivered(&edge.id, &event, &Lineage::default(), &self.plan.roots);
            }
            let envelope = Envelope {
                event: self.event_id(at, edge),
                ..Envelope::new(event, Lineage::default())
            };
            inbox.put(edge.handle, envelope).await;
        }
    }
    /// The id of the next event on a control edge; 0 where a node has one controller, whose events come in one order. Those
    /// of several come in any order, and their invocations must have the same names when a run is taken up.
    fn event_id(&self, at: usize, edge: &PlanEdge) -> u64 {
        let several = self
            .plan
            .nodes
            .get(edge.target)
            .is_some_and(|node| node.controllers > 1);
        let (Some(state), Ok(at), true) = (self.edges.get(at), u64::try_from(at), several) else {
            return 0;
        };
        EDGE_EVENTS + (at << 32) + state.events.fetch_add(1, Ordering::Relaxed)
    }
    /// Publishes the final count of an edge, then tells its target that this producer has ended. Each once.
    pub async fn end_edge(&self, at: usize) {
        let Some(state) = self.edges.get(at) else { return };
        if !state.completed.swap(true, Ordering::SeqCst)
            && let Some(edge) = self.plan.edges.get(at)
        {
            let (edge_id, status, counter) = (Arc::clone(&edge.id), EdgeStatus::Completed, state.counter());
            self.say(Event::Edge {
                edge_id,
                status,
                counter,
            })
            .await;
        }
        self.close_edge(at);
    }
    /// Tells the target of an edge that this producer has ended; once.
    pub fn close_edge(&self, at: usize) {
        let (Some(edge), Some(state)) = (self.plan.edges.get(at), self.edges.get(at)) else {
            return;
        };
        if !state.ended.swap(true, Ordering::SeqCst)
            && let Some(inbox) = self.inboxes.get(edge.target)
        {
            inbox.source_done(edge.handle);
        }
    }
    /// Sends a signal along the data edges of an output.
    pub fn signal(&self, slot: &SlotPlan, item: &Item) {
        for edge in slot.edges.iter().filter_map(|at| self.plan.edges.get(*at)) {
            if let (Some(probe), Item::Done(lineage)) = (&self.probe, item) {
                probe.done(&edge.id, lineage, &self.plan.roots);
            }
            if let Some(inbox) = self.inboxes.get(edge.target) {
                inbox.signal(edge.handle, item.clone());
            }
        }
    }
    /// Notes that an iteration was opened under a parent.
    pub fn open(&self, root: Root, parent: Lineage) {
        let opened = usize::try_from(root.0).ok().and_then(|at| self.opened.get(at));
        if let Some(opened) = opened {
            opened.lock().unwrap_or_else(PoisonError::into_inner).push(parent);
        }
    }
    /// Parents under which an iteration was opened, in that order, each once.
    pub fn opened(&self, root: Root) -> Vec<Lineage> {
        let opened = usize::try_from(root.0).ok().and_then(|at| self.opened.get(at));
        let mut seen = std::collections::HashSet::new();
        let opened = opened.map(|opened| opened.lock().unwrap_or_else(PoisonError::into_inner).clone());
        opened
            .unwrap_or_default()
            .into_iter()
            .filter(|parent| seen.insert(parent.clone()))
            .collect()
    }
    pub fn is_tainted(&self, at: usize) -> bool {
        self.tainted
            .get(at)
            .is_some_and(|tainted| tainted.load(Ordering::SeqCst))
    }
    /// A node failed: it and its direct consumers know; they pass it on when they end.
    pub fn taint(&self, at: usize) {
        let Some(node) = self.plan.nodes.get(at) else {
            return;
        };
        let targets = node
            .edges_out
            .iter()
            .filter_map(|edge| self.plan.edges.get(*edge))
            .map(|edge| edge.target);
        for place in targets.chain([at]) {
            if let Some(tainted) = self.tainted.get(place) {
                tainted.store(true, Ordering::SeqCst);
            }
        }
    }
    /// What follows the last update of a node, in this order: its inbox frees its producers, its edges end,
    /// the nodes it controlled lose a controller, and whoever waits for one of its answers is told.
    pub async fn end_node(&self, at: usize, error: Option<&str>) {
        let (Some(node), Some(inbox)) = (self.plan.nodes.get(at), self.inboxes.get(at)) else {
            return;
        };
        inbox.release();
        if error.is_some() || self.is_tainted(at) {
            self.taint(at);
        }
        for edge in &node.edges_out {
            self.end_edge(*edge).await;
        }
        self.variables.node_ended(&node.node);
        for target in &node.controls {
            if let (Some(inbox), Some(target)) = (self.inboxes.get(*target), self.plan.nodes.get(*target)) {
                inbox.source_done(target.facts.handles.len());
            }
        }
        if let Some(finished) = self.finished.get(at) {
            finished.store(true, Ordering::SeqCst);
        }
        self.waiters.node_ended(at, error);
    }
    /// Edges whose target was left with values or with producers that never ended.
    pub fn left_edges(&self) -> Vec<usize> {
        let left = |(_, edge): &(usize, &PlanEdge)| {
            let look = |inbox: &Arc<Inbox>| {
                inbox.view(|view| view.buffered(edge.handle) > 0 || view.open(edge.handle) > 0)
            };
            self.inboxes.get(edge.target).is_some_and(look)
        };
        self.plan
            .edges
            .iter()
            .enumerate()
            .filter(left)
            .map(|(at, _)| at)
            .collect()
    }
    /// The last words about edges: counts that were held back, and edges whose values were left unread.
    pub async fn flush_edges(&self, drained: &[usize]) {
        for (edge, state) in self.plan.edges.iter().zip(&self.edges) {
            let count = state.count.load(Ordering::SeqCst);
            if !state.completed.load(Ordering::SeqCst) && count > state.reported.load(Ordering::Relaxed) {
                let (edge_id, status) = (Arc::clone(&edge.id), EdgeStatus::Active);
                self.say(Event::Edge {
                    edge_id,
                    status,
                    counter: Some(count),
                })
                .await;
            }
        }
        for at in drained {
            let (Some(edge), Some(state)) = (self.plan.edges.get(*at), self.edges.get(*at)) else {
                continue;
            };
            let (edge_id, status, counter) = (Arc::clone(&edge.id), EdgeStatus::Drained, state.counter());
            self.say(Event::Edge {
                edge_id,
                status,
                counter,
            })
            .await;
        }
    }
}

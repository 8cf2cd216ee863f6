//! How the code of a controller calls the nodes that it controls and gets their answers (kernel specification 5.4).

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use async_trait::async_trait;
use atelier_proto::value::Map;

use super::{
    core::Core,
    inbox::{Envelope, Inbox},
    lineage::Lineage,
};
use crate::{
    graph::{control::run_event, plan::PlanNode},
    node::Controls,
};

/// The nodes that one node controls.
pub(crate) struct Controlled {
    core: Arc<Core>,
    at: usize,
    calls: AtomicU64,
}
/// Ids of the events of such calls begin here.
const CALLS: u64 = 1 << 48;
impl Controlled {
    pub fn new(core: &Arc<Core>, at: usize) -> Self {
        Self {
            core: Arc::clone(core),
            at,
            calls: AtomicU64::new(0),
        }
    }
    /// Whether a node waits for the caller: for an output of it, for an event of it, or for its answer to another call.
    /// None of them comes before the caller has its own answer. Edges that lead from the caller straight to the node are
    /// ended: the call brings what they would.
    fn waits_for_caller(&self, target: usize) -> bool {
        let (plan, calls) = (&self.core.plan, self.open_calls());
        let (mut seen, mut left) = (HashSet::from([target]), vec![target]);
        // Each node is looked at once, so the graph bounds this.
        while let Some(at) = left.pop() {
            let (Some(node), Some(inbox)) = (plan.nodes.get(at), self.core.inboxes.get(at)) else {
                continue;
            };
            if at != target && self.waits_for_event(at, node, inbox) {
                return true;
            }
            let mut sources: Vec<usize> = calls.get(&at).cloned().unwrap_or_default();
            for (place, handle) in node.facts.handles.iter().enumerate() {
                // A controlled node waits for the first value of an input only.
                let got = at == target && inbox.view(|view| view.seen(place));
                for edge in handle.edges.iter().copied() {
                    let open = self.core.edges.get(edge).is_some_and(|state| !state.is_ended());
                    let Some(source) = plan.edges.get(edge).filter(|_| open).map(|edge| edge.source) else {
                        continue;
                    };
                    if at == target && source == self.at {
                        self.core.close_edge(edge);
                    } else if !got {
                        sources.push(source);
                    }
                }
            }
            for source in sources {
                if source == self.at {
                    return true;
                }
                if seen.insert(source) {
                    left.push(source);
                }
            }
        }
        false
    }
    /// Whether a node that the caller alone controls has nothing to do: it gives nothing before the next event.
    fn waits_for_event(&self, at: usize, node: &PlanNode, inbox: &Inbox) -> bool {
        let mine = self.core.plan.nodes.get(self.at);
        let mine = mine.is_some_and(|caller| caller.controls.contains(&at)) && node.controllers == 1;
        let control = node.facts.handles.len();
        mine && inbox.view(|view| {
            view.is_open(control) && view.buffered(control) == 0 && (view.parked() || !view.seen(control))
        })
    }
    /// Nodes that wait for the answers of others, by caller.
    fn open_calls(&self) -> HashMap<usize, Vec<usize>> {
        let mut calls: HashMap<usize, Vec<usize>> = HashMap::new();
        for (event, target) in self.core.waiters.all() {
            let caller = event.checked_sub(CALLS).map(|call| usize::try_from(call >> 20));
            if let Some(Ok(caller)) = caller {
                calls.entry(caller).or_default().push(target);
            }
        }
        calls
    }
}
#[async_trait]
impl Controls for Controlled {
    async fn call(&self, node: &str, properties: Map) -> Result<Map, String> {
        let core = &self.core;
        let mine = core.plan.nodes.get(self.at).map(|node| node.controls.as_slice());
        let target = core
            .plan
            .place(node)
            .filter(|at| mine.is_some_and(|mine| mine.contains(at)));
        let unknown = || format!("node {node} is not controlled by this one");
        let at = target.ok_or_else(unknown)?;
        let (Some(inbox), Some(plan)) = (core.inboxes.get(at), core.plan.nodes.get(at)) else {
            return Err(unknown());
        };
        // By caller and place among its calls: the same when the run is taken up and its code asks again.
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        let event = CALLS + (u64::try_from(self.at).unwrap_or(0) << 20) + call;
        // Known before the look: of two that call each other at the same time one at least sees the other.
        let answer = core.waiters.wait(at, event);
        if self.waits_for_caller(at) {
            let why =
                format!("node {node} waits for a result of the node that calls it, so it cannot be called");
            core.waiters.settle(event, Err(why.clone()));
            return Err(why);
        }
        let envelope = Envelope {
            event,
            ..Envelope::new(run_event(properties.into()), Lineage::default())
        };
        if !inbox.put(plan.facts.handles.len(), envelope).await {
            core.waiters.settle(event, Err("the run is over".to_owned()));
        }
        let finished = core
            .finished
            .get(at)
            .is_some_and(|finished| finished.load(Ordering::SeqCst));
        if finished {
            core.waiters.settle(event, Err("the node has ended".to_owned()));
        }
        // A cancelled run frees the caller: its own code is dropped after the grace period.
        answer
            .await
            .unwrap_or_else(|_| Err("the run has ended".to_owned()))
    }
}

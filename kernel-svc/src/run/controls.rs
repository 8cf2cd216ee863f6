//! How the code of a controller calls the nodes that it controls and gets their answers (kernel specification 5.4).

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use async_trait::async_trait;
use atelier_proto::value::Map;

use super::{core::Core, inbox::Envelope, lineage::Lineage};
use crate::{graph::control::run_event, node::Controls};

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
    /// Whether a node waits for an output of the caller, which comes only when the caller is done. Edges that lead from
    /// the caller straight to the node are ended: the call brings what they would.
    fn waits_for_caller(&self, target: usize) -> bool {
        let mut seen = vec![target];
        let mut next = 0;
        // Each node is looked at once, so the graph bounds this.
        while let Some(node) = seen.get(next).copied() {
            next += 1;
            for (at, edge) in self.core.plan.edges.iter().enumerate() {
                let open = self.core.edges.get(at).is_some_and(|state| !state.is_ended());
                if edge.target != node || edge.control || !open {
                    continue;
                }
                if edge.source != self.at {
                    if !seen.contains(&edge.source) {
                        seen.push(edge.source);
                    }
                } else if node == target {
                    self.core.close_edge(at);
                } else {
                    return true;
                }
            }
        }
        false
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
        if self.waits_for_caller(at) {
            return Err(format!(
                "node {node} waits for a result of the node that calls it, so it cannot be called"
            ));
        }
        // By caller and place among its calls: the same when the run is taken up and its code asks again.
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        let event = CALLS + (u64::try_from(self.at).unwrap_or(0) << 20) + call;
        let answer = core.waiters.wait(at, event);
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

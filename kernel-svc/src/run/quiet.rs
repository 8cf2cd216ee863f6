//! Loops that wait for their bodies while the whole run stands still: which of them gives up first (kernel
//! specification 6.3).

use std::{
    collections::HashSet,
    sync::atomic::{AtomicUsize, Ordering},
};

use super::core::Core;
use crate::graph::{
    loops::{VALUE, is_feedback, is_loop},
    plan::Plan,
};

/// The loops of a run.
#[derive(Debug, Default)]
pub(crate) struct Loops(Vec<Watched>);
#[derive(Debug)]
struct Watched {
    at: usize,
    /// Iterations that wait for their feedback.
    waiting: AtomicUsize,
}

impl Loops {
    pub fn of(plan: &Plan) -> Self {
        let loops = plan.nodes.iter().enumerate();
        let loops = loops.filter(|(_, node)| is_loop(&node.node));
        Self(
            loops
                .map(|(at, _)| Watched {
                    at,
                    waiting: AtomicUsize::new(0),
                })
                .collect(),
        )
    }
    /// How many iterations of a loop wait for their feedback.
    pub fn waits(&self, at: usize, waiting: usize) {
        if let Some(own) = self.0.iter().find(|own| own.at == at) {
            own.waiting.store(waiting, Ordering::SeqCst);
        }
    }
}

impl Core {
    /// Tells one loop that waits for its body that nothing will come; false when none waits. Loops in the body
    /// of another give up before it, and of unrelated ones the one that feeds the others: its end may bring
    /// them what they wait for.
    pub fn end_a_loop(&self) -> bool {
        let waiting = self.loops.0.iter();
        let waiting: Vec<usize> = waiting
            .filter(|own| own.waiting.load(Ordering::SeqCst) > 0)
            .map(|own| own.at)
            .collect();
        let goes_first = |at: usize| {
            let others = || waiting.iter().copied().filter(|other| *other != at);
            let encloses = others().any(|other| self.encloses(at, other));
            let behind = others().any(|other| !self.encloses(other, at) && self.feeds(other, at));
            !encloses && !behind
        };
        let chosen = waiting.iter().copied().find(|at| goes_first(*at));
        let chosen = chosen.or_else(|| waiting.first().copied());
        let inbox = chosen.and_then(|at| self.inboxes.get(at));
        inbox.is_some_and(|inbox| {
            inbox.hush();
            true
        })
    }
    /// Whether a loop lies in the body of another.
    fn encloses(&self, outer: usize, inner: usize) -> bool {
        let (Some(outer), Some(inner)) = (self.plan.nodes.get(outer), self.plan.nodes.get(inner)) else {
            return false;
        };
        let root = outer
            .slots
            .iter()
            .find(|slot| &*slot.name == VALUE)
            .and_then(|slot| slot.root);
        root.is_some_and(|root| inner.facts.scope.0.contains(&root))
    }
    /// Whether data flows from a node to another, without the edges that close loops.
    fn feeds(&self, from: usize, to: usize) -> bool {
        let (mut seen, mut left) = (HashSet::new(), vec![from]);
        while let Some(at) = left.pop() {
            if at == to {
                return true;
            }
            if !seen.insert(at) {
                continue;
            }
            let edges = self
                .plan
                .nodes
                .get(at)
                .into_iter()
                .flat_map(|node| &node.edges_out);
            for edge in edges.filter_map(|edge| self.plan.edges.get(*edge)) {
                let Some(target) = self.plan.nodes.get(edge.target) else {
                    continue;
                };
                let handle = target.facts.handles.get(edge.handle).map(|handle| &*handle.name);
                let closes = is_loop(&target.node) && handle.is_some_and(is_feedback);
                if !closes {
                    left.push(edge.target);
                }
            }
        }
        false
    }
}

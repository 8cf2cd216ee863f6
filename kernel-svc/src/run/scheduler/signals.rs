//! What the scheduler makes of signals: a key that one input will never serve is freed, and the end of an
//! outer item is passed on once nothing of it can fire any more (kernel specification 4.7).

use std::collections::{HashMap, HashSet};

use super::{Class, Forward, Scheduler};
use crate::{
    graph::{
        facts::{Repeat, Root},
        plan::PlanNode,
    },
    run::lineage::Lineage,
};

/// Keys and items that will bring nothing more.
#[derive(Debug, Default)]
pub(super) struct Dead {
    keys: HashSet<Lineage>,
    /// Closed iterations under a parent, and how many of the node's edges have said so.
    closed: HashMap<(Lineage, Root), usize>,
    /// Closed for all edges; passed on when no key under them waits.
    waiting: Vec<(Lineage, Root)>,
    /// Edges into inputs, by iteration that they carry.
    carriers: HashMap<Root, usize>,
}
impl Dead {
    pub fn new(node: &PlanNode) -> Self {
        let mut carriers: HashMap<Root, usize> = HashMap::new();
        for handle in &node.facts.handles {
            for root in &handle.scope.0 {
                *carriers.entry(*root).or_default() += handle.edges.len();
            }
        }
        Self {
            carriers,
            ..Self::default()
        }
    }
}

impl Scheduler {
    pub(super) fn is_dead(&self, key: &Lineage) -> bool {
        !self.dead.keys.is_empty() && self.dead.keys.contains(key)
    }
    /// An edge brings nothing for a key. Only an input with one value a key can be judged by that.
    pub(super) fn key_done(&mut self, handle: usize, key: &Lineage) {
        let single = self
            .node
            .facts
            .handles
            .get(handle)
            .is_some_and(|facts| !facts.list && facts.repeats == Repeat::No);
        if !single || key.is_empty() || self.class(handle) != Class::Max {
            return;
        }
        let Some(key) = key.project(&self.node.facts.scope) else {
            return;
        };
        if self.fired.contains(&key) || self.pending.get(&key).is_some_and(|state| state.len(handle) > 0) {
            return;
        }
        for (at, count) in self
            .pending
            .forget(&key)
            .into_iter()
            .flat_map(|state| state.leftovers())
        {
            if let Some(late) = self.late.get_mut(at) {
                *late += count;
            }
        }
        if self.dead.keys.insert(key.clone()) {
            self.forward.push(Forward::Done(key.clone()));
            self.after_key(&key);
        }
    }
    /// An edge brings no more items of an iteration under a parent.
    pub(super) fn parent_closed(&mut self, _handle: usize, parent: &Lineage, root: Root) {
        let count = self.dead.closed.entry((parent.clone(), root)).or_default();
        *count += 1;
        if self.dead.carriers.get(&root) == Some(count) {
            self.dead.closed.remove(&(parent.clone(), root));
            self.drop_under(parent);
            self.dead.waiting.push((parent.clone(), root));
            self.pass_on();
        }
    }
    /// A key is through: perhaps its outer item is as well.
    pub(super) fn after_key(&mut self, _key: &Lineage) {
        if !self.dead.waiting.is_empty() {
            self.pass_on();
        }
    }
    /// No input can bring anything under a parent: keys there that wait for one will never fire.
    fn drop_under(&mut self, parent: &Lineage) {
        let keyed = (0..self.classes.len()).all(|at| self.class(at) == Class::Max && !self.is_list(at));
        if !keyed {
            return;
        }
        let driver = self.driver();
        for key in self.pending.all().into_iter().filter(|key| is_under(key, parent)) {
            for (at, count) in self
                .pending
                .forget(&key)
                .into_iter()
                .flat_map(|state| state.leftovers())
            {
                let unread = driver.is_none_or(|driver| driver == at);
                if let Some(late) = self.late.get_mut(at).filter(|_| unread) {
                    *late += count;
                }
            }
        }
    }
    fn pass_on(&mut self) {
        let waiting = std::mem::take(&mut self.dead.waiting);
        for (parent, root) in waiting {
            let under = |key: &Lineage| is_under(key, &parent);
            if self.pending.any(under) {
                self.dead.waiting.push((parent, root));
            } else {
                self.dead.keys.retain(|key| !under(key));
                self.forward.push(Forward::ScopeClosed(parent, root));
            }
        }
    }
}

fn is_under(key: &Lineage, parent: &Lineage) -> bool {
    parent
        .tokens()
        .iter()
        .all(|token| key.index(token.root) == Some(token.index))
}

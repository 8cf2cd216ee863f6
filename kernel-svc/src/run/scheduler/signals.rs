//! What the scheduler makes of signals: a key that one input will never serve is freed, and the end of an
//! outer item is passed on once nothing of it can fire any more (kernel specification 4.7).

use foldhash::{HashMap, HashSet};

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
    /// Closed for all edges, by parent; passed on when no key under them waits.
    waiting: HashMap<Lineage, Vec<Root>>,
    /// Edges into inputs, by iteration that they carry.
    carriers: HashMap<Root, usize>,
}
impl Dead {
    pub fn new(node: &PlanNode) -> Self {
        let mut carriers: HashMap<Root, usize> = HashMap::default();
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
            .take(&key)
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
    pub(super) fn parent_closed(&mut self, parent: &Lineage, root: Root) {
        let count = self.dead.closed.entry((parent.clone(), root)).or_default();
        *count += 1;
        if self.dead.carriers.get(&root) == Some(count) {
            self.dead.closed.remove(&(parent.clone(), root));
            self.drop_under(parent);
            if self.waits_under(parent) {
                let roots = self.dead.waiting.entry(parent.clone()).or_default();
                roots.push(root);
            } else {
                self.pass_on(parent, root);
            }
        }
    }
    /// How many iterations of the node's scope, counted from the outermost one, an outer item names; `None` when it names
    /// others.
    fn level(&self, parent: &Lineage) -> Option<usize> {
        let tokens = parent.tokens();
        let scope = self.levels.get(tokens.len())?;
        let own = tokens.iter().all(|token| scope.0.contains(&token.root));
        own.then_some(tokens.len())
    }
    /// Whether a key under an outer item waits.
    fn waits_under(&self, parent: &Lineage) -> bool {
        let innermost = self.levels.len().saturating_sub(1);
        match self.level(parent) {
            Some(0) => !self.pending.is_empty(),
            Some(level) if level == innermost => self.pending.get(parent).is_some(),
            Some(level) => self.pending.has_under(self.place_of(level), parent),
            None => self.pending.any(|key| key.is_under(parent)),
        }
    }
    /// Keys under an outer item that wait.
    fn keys_under(&self, parent: &Lineage) -> Vec<Lineage> {
        let inner = 1..self.levels.len().saturating_sub(1);
        match self.level(parent).filter(|level| inner.contains(level)) {
            Some(level) => self.pending.under(self.place_of(level), parent),
            None => {
                let all = self.pending.all().into_iter();
                all.filter(|key| key.is_under(parent)).collect()
            }
        }
    }
    /// A key is through: perhaps its outer items are as well.
    pub(super) fn after_key(&mut self, key: &Lineage) {
        if self.dead.waiting.is_empty() {
            return;
        }
        let parents: Vec<Lineage> = self
            .levels
            .iter()
            .rev()
            .filter_map(|scope| key.project(scope))
            .collect();
        for parent in parents {
            if self.dead.waiting.contains_key(&parent) && !self.waits_under(&parent) {
                for root in self.dead.waiting.remove(&parent).unwrap_or_default() {
                    self.pass_on(&parent, root);
                }
            }
        }
    }
    /// No input can bring anything under a parent: keys there that wait for one will never fire.
    fn drop_under(&mut self, parent: &Lineage) {
        let keyed = (0..self.classes.len()).all(|at| self.class(at) == Class::Max && !self.is_list(at));
        if !keyed {
            return;
        }
        let driver = self.driver();
        for key in self.keys_under(parent) {
            for (at, count) in self
                .pending
                .take(&key)
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
    fn pass_on(&mut self, parent: &Lineage, root: Root) {
        self.dead.keys.retain(|key| !key.is_under(parent));
        // What an input holds for this outer item is needed no more. The empty key holds for everything.
        if !parent.is_empty() {
            for shared in &mut self.shared {
                shared.sticky.remove(parent);
                shared.lists.remove(parent);
            }
        }
        self.forward.push(Forward::ScopeClosed(parent.clone(), root));
    }
}

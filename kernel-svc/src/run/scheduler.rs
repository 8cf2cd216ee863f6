//! Pairs the values of a buffered node by their key and tells when an invocation is ready (kernel
//! specification 4.5). Pure: it sees values and the ends of inputs, and gives firings.

mod fire;
mod pending;
mod signals;

use std::{collections::VecDeque, sync::Arc};

use foldhash::{HashMap, HashSet};

use super::{
    inbox::{Envelope, Item},
    lineage::Lineage,
};
use crate::graph::{
    facts::{Repeat, Root, Scope},
    plan::PlanNode,
};
use pending::{Pending, State};

/// How an input takes part in the pairing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Its values belong to exactly one key each.
    Max,
    /// Its values serve all keys under an outer item.
    Prefix,
    /// Its last value serves all keys.
    Empty,
}

/// A value or several of an input.
#[derive(Debug, Clone)]
pub(crate) enum Given {
    One(Envelope),
    Many(Vec<Envelope>),
}

/// An invocation that is ready.
#[derive(Debug)]
pub(crate) struct Firing {
    /// What it is called for.
    pub key: Lineage,
    /// Number among the invocations of the key.
    pub ordinal: u32,
    /// Values by input.
    pub given: Vec<(usize, Given)>,
    /// Whether a repeating input drives it.
    pub driven: bool,
    /// Whether a required input has no value: nothing is invoked.
    pub starved: Option<usize>,
}

/// Limits of what may wait.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub keys: usize,
    pub per_key: usize,
}

/// Values that an input holds for all or many keys.
#[derive(Debug, Default)]
struct Shared {
    sticky: HashMap<Lineage, Envelope>,
    lists: HashMap<Lineage, Vec<Envelope>>,
}

pub(crate) struct Scheduler {
    node: Arc<PlanNode>,
    roots: Arc<[Arc<str>]>,
    limits: Limits,
    classes: Vec<Class>,
    /// The scope of the node, cut after none, one, … and all of its iterations.
    levels: Vec<Scope>,
    closed: Vec<bool>,
    shared: Vec<Shared>,
    pending: Pending,
    /// Keys to try, in this order.
    candidates: VecDeque<Lineage>,
    /// Values that are all that their key waits for: they fire without being filed.
    direct: VecDeque<(usize, Lineage, Envelope)>,
    /// Whether one input alone has values of its own for each key.
    single: bool,
    fired: HashSet<Lineage>,
    /// Invocations by key, where a key may have several.
    ordinals: HashMap<Lineage, u32>,
    received: bool,
    fired_once: bool,
    overwritten: Vec<bool>,
    incomplete: Vec<bool>,
    late: Vec<usize>,
    dead: signals::Dead,
    /// Things to say in the log of the node.
    pub warnings: Vec<String>,
    /// What to pass on along the outputs.
    pub forward: Vec<Forward>,
}

/// A signal that the node passes on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Forward {
    Done(Lineage),
    ScopeClosed(Lineage, Root),
}

/// Why a value cannot be kept.
#[derive(Debug)]
pub(crate) struct Overflow {
    pub code: &'static str,
    pub message: String,
}

impl Scheduler {
    pub fn new(node: Arc<PlanNode>, roots: Arc<[Arc<str>]>, limits: Limits) -> Self {
        let depth = node.facts.scope.len();
        let facts = &node.facts;
        let class = |(at, handle): (usize, &crate::graph::facts::HandleFacts)| match handle.scope.len() {
            len if len >= depth && len > 0 => Class::Max,
            0 if depth == 0 && facts.driver == Some(at) && handle.repeats != Repeat::No => Class::Max,
            0 => Class::Empty,
            _ => Class::Prefix,
        };
        let classes: Vec<Class> = facts.handles.iter().enumerate().map(class).collect();
        let single = classes.iter().filter(|class| **class == Class::Max).count() == 1;
        let count = classes.len();
        let levels = (0..=depth).filter_map(|level| Some(Scope(facts.scope.0.get(..level)?.to_vec())));
        let levels: Vec<Scope> = levels.collect();
        Self {
            roots,
            limits,
            closed: vec![false; count],
            shared: (0..count).map(|_| Shared::default()).collect(),
            pending: Pending::new(count),
            candidates: VecDeque::new(),
            direct: VecDeque::new(),
            single,
            fired: HashSet::default(),
            ordinals: HashMap::default(),
            received: false,
            fired_once: false,
            overwritten: vec![false; count],
            incomplete: vec![false; count],
            late: vec![0; count],
            dead: signals::Dead::new(&node),
            warnings: Vec::new(),
            forward: Vec::new(),
            classes,
            levels,
            node,
        }
    }
    fn class(&self, handle: usize) -> Class {
        self.classes.get(handle).copied().unwrap_or(Class::Empty)
    }
    /// Inputs whose end may set keys free that wait.
    pub fn watched(&self) -> impl Iterator<Item = usize> {
        let waits = !self.pending.is_empty();
        let open = move |at: &usize| {
            waits && !self.is_closed(*at) && (self.is_list(*at) || self.class(*at) == Class::Empty)
        };
        (0..self.classes.len()).filter(open)
    }
    fn is_list(&self, handle: usize) -> bool {
        self.node
            .facts
            .handles
            .get(handle)
            .is_some_and(|facts| facts.list)
    }
    fn is_closed(&self, handle: usize) -> bool {
        self.closed.get(handle).copied().unwrap_or(true)
    }
    fn name(&self, handle: usize) -> &str {
        self.node
            .facts
            .handles
            .get(handle)
            .map_or("", |facts| &*facts.name)
    }
    fn driver(&self) -> Option<usize> {
        self.node.facts.driver.filter(|at| self.class(*at) == Class::Max)
    }

    /// Takes what arrived at an input. Firings may be ready afterwards.
    ///
    /// # Errors
    /// A limit is exceeded, or in strict mode a value lacks an iteration.
    pub fn arrive(&mut self, handle: usize, item: Item, strict: bool) -> Result<(), Overflow> {
        match item {
            Item::Value(envelope) => self.value(handle, envelope, strict),
            Item::Done(key) => {
                self.key_done(handle, &key);
                Ok(())
            }
            Item::ScopeClosed { parent, root } => {
                self.parent_closed(&parent, root);
                Ok(())
            }
        }
    }
    /// The key of a value in the scope of an input; a value that lacks an iteration is filed under the empty
    /// key.
    fn key(&mut self, handle: usize, envelope: &Envelope, strict: bool) -> Result<Lineage, Overflow> {
        let Some(facts) = self.node.facts.handles.get(handle) else {
            return Ok(Lineage::default());
        };
        let max = self.class(handle) == Class::Max;
        let scope = if max { &self.node.facts.scope } else { &facts.scope };
        if let Some(key) = envelope.lineage.project(scope) {
            return Ok(key);
        }
        let message = format!(
            "a value at input {} of node {} does not say which item of its iteration it belongs to",
            facts.name, self.node.node.id
        );
        if strict {
            return Err(Overflow {
                code: "corr.incomplete_lineage",
                message,
            });
        }
        if self
            .incomplete
            .get_mut(handle)
            .is_some_and(|told| !std::mem::replace(told, true))
        {
            self.warnings.push(message);
        }
        Ok(Lineage::default())
    }
    fn value(&mut self, handle: usize, envelope: Envelope, strict: bool) -> Result<(), Overflow> {
        self.received = true;
        let key = self.key(handle, &envelope, strict)?;
        let list = self.is_list(handle);
        if self.class(handle) == Class::Max {
            return self.bucket(handle, key, envelope);
        }
        let key = if self.class(handle) == Class::Empty {
            Lineage::default()
        } else {
            key
        };
        let Some(shared) = self.shared.get_mut(handle) else {
            return Ok(());
        };
        if list {
            shared.lists.entry(key).or_default().push(envelope);
            return Ok(());
        }
        if shared.sticky.insert(key.clone(), envelope).is_none() {
            self.retry(handle, &key);
        } else if self.class(handle) == Class::Empty
            && self
                .node
                .facts
                .handles
                .get(handle)
                .is_some_and(|facts| facts.repeats == Repeat::No)
            && self
                .overwritten
                .get_mut(handle)
                .is_some_and(|told| !std::mem::replace(told, true))
        {
            let (name, id) = (self.name(handle), &self.node.node.id);
            self.warnings.push(format!(
                "input {name} of node {id} got several values without an iteration; the last one counts"
            ));
        }
        Ok(())
    }
    fn bucket(&mut self, handle: usize, key: Lineage, envelope: Envelope) -> Result<(), Overflow> {
        if self.fired.contains(&key) || self.is_dead(&key) {
            if let Some(late) = self.late.get_mut(handle) {
                *late += 1;
            }
            return Ok(());
        }
        if self.is_direct(handle, &key) {
            self.direct.push_back((handle, key, envelope));
            return Ok(());
        }
        let parents = self.parents(&key);
        self.pending.push(handle, &key, envelope, &parents);
        if self.ready(&key) {
            self.candidates.push_back(key);
            return Ok(());
        }
        let held = self.pending.get(&key).map_or(0, |state| state.len(handle));
        let (name, id) = (self.name(handle), &self.node.node.id);
        if self.pending.keys(handle) > self.limits.keys {
            let message = format!(
                "input {name} of node {id} holds values for more than {} keys",
                self.limits.keys
            );
            return Err(Overflow {
                code: "run.too_many_keys",
                message,
            });
        }
        if held > self.limits.per_key {
            let text = key.text(&self.node.facts.scope, &self.roots);
            let message = format!(
                "input {name} of node {id} holds more than {} values for the key [{text}]",
                self.limits.per_key
            );
            return Err(Overflow {
                code: "run.too_many_values",
                message,
            });
        }
        Ok(())
    }
    /// Whether a value of an input is all that its key waits for.
    fn is_direct(&self, handle: usize, key: &Lineage) -> bool {
        self.single
            && self.driver().is_none()
            && !self.is_list(handle)
            && self.pending.get(key).is_none()
            && self
                .classes
                .iter()
                .enumerate()
                .all(|(at, class)| *class == Class::Max || self.given(at, *class, key, &State::default()))
    }
    /// Keys of the outer items that a key lies under: by prefix input, then by level between the outermost and its own.
    fn parents(&self, key: &Lineage) -> Vec<(usize, Lineage)> {
        let handles = self
            .classes
            .iter()
            .enumerate()
            .filter(|(_, class)| **class == Class::Prefix);
        let by_input = handles.filter_map(|(at, _)| Some((at, self.parent(at, key)?)));
        let inner = self.levels.iter().enumerate().skip(1);
        let inner = inner.take(self.levels.len().saturating_sub(2));
        let by_level = inner.filter_map(|(level, scope)| Some((self.place_of(level), key.project(scope)?)));
        by_input.chain(by_level).collect()
    }
    /// Under which number the keys of a level are listed: after those of the inputs.
    fn place_of(&self, level: usize) -> usize {
        self.classes.len() + level
    }
    fn parent(&self, handle: usize, key: &Lineage) -> Option<Lineage> {
        let scope = &self.node.facts.handles.get(handle)?.scope;
        Some(key.project(scope).unwrap_or_default())
    }
    /// A value became available: tries the keys that it serves.
    fn retry(&mut self, handle: usize, key: &Lineage) {
        let keys = match self.class(handle) {
            Class::Prefix => self.pending.under(handle, key),
            Class::Max | Class::Empty => self.pending.all(),
        };
        self.candidates.extend(keys);
    }
    fn ready(&self, key: &Lineage) -> bool {
        let Some(state) = self.pending.get(key) else {
            return false;
        };
        self.classes
            .iter()
            .enumerate()
            .all(|(at, class)| self.given(at, *class, key, state))
    }
    fn given(&self, at: usize, class: Class, key: &Lineage, state: &State) -> bool {
        let list = self.is_list(at);
        let Some(shared) = self.shared.get(at) else {
            return true;
        };
        match class {
            Class::Max => state.len(at) > 0 && (!list || self.is_closed(at)),
            Class::Prefix => {
                let Some(parent) = self.parent(at, key) else {
                    return false;
                };
                if list {
                    self.is_closed(at) && shared.lists.contains_key(&parent)
                } else {
                    shared.sticky.contains_key(&parent)
                }
            }
            Class::Empty if list => self.is_closed(at),
            Class::Empty => !shared.sticky.is_empty() || self.is_closed(at),
        }
    }
    /// An input has ended and is read.
    pub fn close(&mut self, handle: usize) {
        let Some(closed) = self.closed.get_mut(handle) else {
            return;
        };
        if !std::mem::replace(closed, true) && (self.is_list(handle) || self.class(handle) == Class::Empty) {
            self.candidates.extend(self.pending.all());
        }
    }
    /// Values that were never used, as warnings.
    pub fn leftovers(&mut self) -> Vec<String> {
        let id = Arc::clone(&self.node.node.id);
        let mut texts = std::mem::take(&mut self.warnings);
        for at in 0..self.classes.len() {
            let late = self.late.get(at).copied().unwrap_or(0);
            let side = self.driver().is_some_and(|driver| driver != at);
            let unread = if side { 0 } else { self.pending.unread(at) };
            for (count, why) in [
                (late, "values dropped because their item had been processed"),
                (
                    unread,
                    "values left because other inputs brought nothing for their item",
                ),
            ] {
                if count > 0 {
                    texts.push(format!(
                        "input {} of node {id}: {why}, count {count}",
                        self.name(at)
                    ));
                }
            }
        }
        texts
    }
}

//! Which invocation comes next, and what it is given.

use super::{Class, Firing, Given, Scheduler};
use crate::run::{inbox::Envelope, lineage::Lineage};

impl Scheduler {
    /// The next invocation, if one is ready.
    pub fn next(&mut self) -> Option<Firing> {
        if let Some((handle, key, envelope)) = self.direct.pop_front() {
            return Some(self.fire_direct(handle, key, envelope));
        }
        while let Some(key) = self.candidates.front().cloned() {
            if self.ready(&key) {
                if self.driver().is_none() {
                    self.candidates.pop_front();
                }
                return Some(self.fire(key));
            }
            self.candidates.pop_front();
        }
        None
    }
    /// After all inputs have ended: what is left to fire.
    pub fn finish(&mut self) {
        self.candidates = self.pending.all().into();
    }
    /// The one invocation of a node that no key drives; `None` when it fired by key, or received nothing
    /// though it is connected.
    pub fn last(&mut self) -> Option<Firing> {
        let keyed = self.classes.contains(&Class::Max);
        if keyed || self.fired_once || (!self.received && !self.classes.is_empty()) {
            return None;
        }
        Some(self.fire(Lineage::default()))
    }
    /// Fires a key with the only value that it waited for, and what all keys or many have in common.
    fn fire_direct(&mut self, handle: usize, key: Lineage, envelope: Envelope) -> Firing {
        self.fired_once = true;
        let mut given = Vec::with_capacity(self.classes.len());
        let mut own = Some(Given::One(envelope));
        for at in 0..self.classes.len() {
            let value = if at == handle {
                own.take()
            } else {
                self.common(at, &key)
            };
            given.extend(value.map(|value| (at, value)));
        }
        let starved = self.starved(&given);
        self.fired.insert(key.clone());
        self.after_key(&key);
        Firing {
            key,
            ordinal: 0,
            given,
            driven: false,
            starved,
        }
    }
    /// What an input gives to all keys, or to those under an outer item.
    fn common(&self, at: usize, key: &Lineage) -> Option<Given> {
        match self.class(at) {
            Class::Max => None,
            Class::Prefix => self
                .parent(at, key)
                .and_then(|parent| self.shared_value(at, &parent)),
            Class::Empty => self.shared_value(at, &Lineage::default()),
        }
    }
    /// A required input that has no value.
    fn starved(&self, given: &[(usize, Given)]) -> Option<usize> {
        let mut required = self.node.required.iter().copied();
        required.find(|at| !given.iter().any(|(other, _)| other == at))
    }
    fn fire(&mut self, key: Lineage) -> Firing {
        self.fired_once = true;
        let driver = self.driver();
        let mut given = Vec::with_capacity(self.classes.len());
        let mut state = self.pending.take(&key);
        for at in 0..self.classes.len() {
            let value = match self.class(at) {
                Class::Max => {
                    let consume = driver.is_none_or(|driver| driver == at) || self.is_list(at);
                    state
                        .as_mut()
                        .and_then(|state| state.give(at, self.is_list(at), consume))
                }
                Class::Prefix | Class::Empty => self.common(at, &key),
            };
            given.extend(value.map(|value| (at, value)));
        }
        let starved = self.starved(&given);
        let mut ordinal = 0;
        if driver.is_some() {
            let next = self.ordinals.entry(key.clone()).or_default();
            ordinal = *next;
            *next += 1;
            match state.filter(|state| !state.is_empty()) {
                Some(state) => self.pending.put_back(&key, state),
                None => self.after_key(&key),
            }
        } else {
            let left = state.into_iter().flat_map(|state| state.leftovers());
            for (at, count) in left {
                if let Some(late) = self.late.get_mut(at) {
                    *late += count;
                }
            }
            if self.classes.contains(&Class::Max) {
                self.fired.insert(key.clone());
            }
            self.after_key(&key);
        }
        Firing {
            key,
            ordinal,
            given,
            driven: driver.is_some(),
            starved,
        }
    }
    fn shared_value(&self, at: usize, key: &Lineage) -> Option<Given> {
        let shared = self.shared.get(at)?;
        if self.is_list(at) {
            return shared.lists.get(key).cloned().map(Given::Many);
        }
        shared.sticky.get(key).cloned().map(Given::One)
    }
}

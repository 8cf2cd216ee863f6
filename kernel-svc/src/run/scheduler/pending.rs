//! Keys that wait for values, in the order in which they first appeared.

use std::collections::{BTreeMap, VecDeque};

use foldhash::HashMap;

use super::Given;
use crate::run::{inbox::Envelope, lineage::Lineage};

/// What one key holds, by input.
#[derive(Debug, Default)]
pub(super) struct State {
    number: u64,
    buckets: Vec<VecDeque<Envelope>>,
    parents: Vec<(usize, Lineage)>,
}
impl State {
    pub fn len(&self, handle: usize) -> usize {
        self.buckets.get(handle).map_or(0, VecDeque::len)
    }
    pub fn is_empty(&self) -> bool {
        self.buckets.iter().all(VecDeque::is_empty)
    }
    /// Gives the oldest value of an input, or all of them for a list.
    pub fn give(&mut self, handle: usize, list: bool, consume: bool) -> Option<Given> {
        let bucket = self.buckets.get_mut(handle).filter(|bucket| !bucket.is_empty())?;
        if list {
            return Some(Given::Many(bucket.drain(..).collect()));
        }
        if consume {
            bucket.pop_front()
        } else {
            bucket.front().cloned()
        }
        .map(Given::One)
    }
    /// How much is left, by input.
    pub fn leftovers(self) -> impl Iterator<Item = (usize, usize)> {
        self.buckets
            .into_iter()
            .map(|bucket| bucket.len())
            .enumerate()
            .filter(|(_, count)| *count > 0)
    }
}

/// Keys that wait.
#[derive(Debug)]
pub(super) struct Pending {
    states: HashMap<Lineage, State>,
    order: BTreeMap<u64, Lineage>,
    /// Numbers of the keys under an outer item, by prefix input and by level.
    under: HashMap<(usize, Lineage), BTreeMap<u64, Lineage>>,
    /// Keys that hold values, by input.
    keys: Vec<usize>,
    next: u64,
}
impl Pending {
    pub fn new(handles: usize) -> Self {
        let (states, order, under) = (HashMap::default(), BTreeMap::new(), HashMap::default());
        Self {
            states,
            order,
            under,
            keys: vec![0; handles],
            next: 0,
        }
    }
    pub fn get(&self, key: &Lineage) -> Option<&State> {
        self.states.get(key)
    }
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }
    /// Keys that hold values of an input.
    pub fn keys(&self, handle: usize) -> usize {
        self.keys.get(handle).copied().unwrap_or(0)
    }
    pub fn all(&self) -> Vec<Lineage> {
        self.order.values().cloned().collect()
    }
    pub fn under(&self, handle: usize, parent: &Lineage) -> Vec<Lineage> {
        let found = self.under.get(&(handle, parent.clone()));
        found
            .map(|keys| keys.values().cloned().collect())
            .unwrap_or_default()
    }
    /// Whether any key lies under an outer item.
    pub fn has_under(&self, place: usize, parent: &Lineage) -> bool {
        self.under.contains_key(&(place, parent.clone()))
    }
    pub fn push(&mut self, handle: usize, key: &Lineage, envelope: Envelope, parents: &[(usize, Lineage)]) {
        if !self.states.contains_key(key) {
            let state = State {
                number: self.next,
                buckets: vec![VecDeque::new(); self.keys.len()],
                parents: parents.to_vec(),
            };
            self.next += 1;
            self.insert(key, state);
        }
        let Some(bucket) = self
            .states
            .get_mut(key)
            .and_then(|state| state.buckets.get_mut(handle))
        else {
            return;
        };
        bucket.push_back(envelope);
        if bucket.len() == 1
            && let Some(keys) = self.keys.get_mut(handle)
        {
            *keys += 1;
        }
    }
    fn insert(&mut self, key: &Lineage, state: State) {
        self.order.insert(state.number, key.clone());
        for parent in &state.parents {
            self.under
                .entry(parent.clone())
                .or_default()
                .insert(state.number, key.clone());
        }
        self.states.insert(key.clone(), state);
    }
    fn count(&mut self, state: &State, add: bool) {
        let buckets = self.keys.iter_mut().zip(&state.buckets);
        for (keys, _) in buckets.filter(|(_, bucket)| !bucket.is_empty()) {
            *keys = if add { *keys + 1 } else { keys.saturating_sub(1) };
        }
    }
    /// Takes a key out, its place in the order with it.
    pub fn take(&mut self, key: &Lineage) -> Option<State> {
        let state = self.states.remove(key)?;
        self.count(&state, false);
        self.order.remove(&state.number);
        for parent in &state.parents {
            if let Some(keys) = self.under.get_mut(parent) {
                keys.remove(&state.number);
                if keys.is_empty() {
                    self.under.remove(parent);
                }
            }
        }
        Some(state)
    }
    /// Puts a key back where it was.
    pub fn put_back(&mut self, key: &Lineage, state: State) {
        self.count(&state, true);
        self.insert(key, state);
    }
    /// Values of an input that are still there.
    pub fn unread(&self, handle: usize) -> usize {
        self.states.values().map(|state| state.len(handle)).sum()
    }
    /// Whether any key satisfies a condition.
    pub fn any(&self, holds: impl Fn(&Lineage) -> bool) -> bool {
        self.states.keys().any(holds)
    }
}

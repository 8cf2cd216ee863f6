//! Values of an input by the item that their iteration lies under: what aggregates read.
//!
//! A group is given as soon as its iteration is closed under that parent; at the latest when the input ends.
//! A parent whose iteration was opened but brought nothing gives an empty group, so that results under an
//! outer iteration agree in number.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::PoisonError,
};

use indexmap::IndexMap;

use super::Inputs;
use crate::{
    graph::facts::Root,
    run::{
        inbox::{Envelope, Item},
        lineage::Lineage,
    },
};

/// All values of one iteration under one parent.
#[derive(Debug, Clone, Default)]
pub struct Group {
    /// What the iteration lies under.
    pub parent: Lineage,
    /// The values, in order of arrival.
    pub items: Vec<Envelope>,
}

/// Groups of an input.
#[derive(Debug, Default)]
pub(crate) struct Open {
    ready: VecDeque<Group>,
    open: IndexMap<Lineage, Vec<Envelope>>,
    given: HashSet<Lineage>,
    closed: HashMap<(Lineage, Root), usize>,
    forward: Vec<(Lineage, Root)>,
    ended: bool,
    warned: bool,
}

impl Inputs<'_> {
    /// The next complete group of an input; `None` after the last one. A value outside of any iteration
    /// belongs to one group, which is there even when nothing came.
    ///
    /// Cancel safe.
    pub async fn next_group(&mut self, handle: &str) -> Option<Group> {
        let Some(at) = self.place(handle) else {
            return self.unconnected();
        };
        loop {
            let open = self.groups.get_mut(at)?;
            if let Some(group) = open.ready.pop_front() {
                return Some(group);
            }
            let (ended, forward) = (open.ended, std::mem::take(&mut open.forward));
            for (parent, root) in forward {
                for slot in self.node.slots.iter().filter(|slot| slot.scope.0.contains(&root)) {
                    self.core.signal(
                        slot,
                        &Item::ScopeClosed {
                            parent: parent.clone(),
                            root,
                        },
                    );
                }
            }
            if ended {
                return None;
            }
            match self.item(at).await {
                Some(Item::Value(envelope)) => self.sort(at, envelope).await,
                Some(Item::ScopeClosed { parent, root }) => self.close(at, parent, root),
                Some(Item::Done(_)) => {}
                None => self.end(at),
            }
        }
    }
    /// The group of an input that is not connected: empty, once.
    fn unconnected(&mut self) -> Option<Group> {
        let mut consumed = self.consumed.lock().unwrap_or_else(PoisonError::into_inner);
        consumed.give_once().then(Group::default)
    }
    async fn sort(&mut self, at: usize, envelope: Envelope) {
        let Some(facts) = self.node.facts.handles.get(at) else {
            return;
        };
        let parent = envelope.lineage.project(&facts.scope.parent());
        let Some(open) = self.groups.get_mut(at) else {
            return;
        };
        open.open
            .entry(parent.clone().unwrap_or_default())
            .or_default()
            .push(envelope);
        if parent.is_none() && !std::mem::replace(&mut open.warned, true) {
            let (name, id) = (&facts.name, &self.node.node.id);
            let text = format!(
                "a value at input {name} of node {id} does not say which item of its iteration it belongs to"
            );
            self.core.warn(self.node, text).await;
        }
    }
    /// One edge brings no more items of an iteration under a parent.
    fn close(&mut self, at: usize, parent: Lineage, root: Root) {
        let (Some(facts), Some(open)) = (self.node.facts.handles.get(at), self.groups.get_mut(at)) else {
            return;
        };
        let count = open.closed.entry((parent.clone(), root)).or_default();
        *count += 1;
        if *count < facts.edges.len() {
            return;
        }
        open.closed.remove(&(parent.clone(), root));
        if facts.scope.innermost() == Some(root) {
            let items = open.open.shift_remove(&parent).unwrap_or_default();
            open.give(Group { parent, items });
            return;
        }
        let complete = open.open.keys().filter(|key| key.is_under(&parent));
        let complete: Vec<Lineage> = complete.cloned().collect();
        for key in complete {
            let items = open.open.shift_remove(&key).unwrap_or_default();
            open.give(Group { parent: key, items });
        }
        open.forward.push((parent, root));
    }
    /// The input has ended: whatever is left is complete.
    fn end(&mut self, at: usize) {
        let (Some(facts), Some(open)) = (self.node.facts.handles.get(at), self.groups.get_mut(at)) else {
            return;
        };
        open.ended = true;
        let scope = facts.scope.parent();
        let mut groups: Vec<Group> = std::mem::take(&mut open.open)
            .into_iter()
            .map(|(parent, items)| Group { parent, items })
            .collect();
        let mut empty: Vec<Lineage> = match facts.scope.innermost() {
            Some(root) if !scope.is_empty() && !self.core.is_tainted(self.at) => self.core.opened(root),
            Some(_) if !scope.is_empty() => Vec::new(),
            _ => vec![Lineage::default()],
        };
        let there: HashSet<&Lineage> = groups.iter().map(|group| &group.parent).collect();
        empty.retain(|parent| !open.given.contains(parent) && !there.contains(parent));
        if !empty.is_empty() {
            groups.extend(empty.into_iter().map(|parent| Group {
                parent,
                items: Vec::new(),
            }));
            groups.sort_by_cached_key(|group| group.parent.position(&scope));
        }
        open.ready.extend(groups);
    }
}

impl Open {
    fn give(&mut self, group: Group) {
        self.given.insert(group.parent.clone());
        self.ready.push_back(group);
    }
}

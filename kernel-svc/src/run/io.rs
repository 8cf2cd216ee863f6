//! What a node that reads its own stream sees: its inputs, and where its outputs go.

mod groups;
mod outputs;
mod outside;

use std::sync::{Arc, Mutex, PoisonError};

use atelier_proto::value::{Map, Value};
use tokio_util::sync::CancellationToken;

pub use groups::Group;
pub use outputs::Outputs;
pub(crate) use outside::Arrival;

use super::{
    core::Core,
    inbox::{Envelope, Inbox, Item, Taken},
    lineage::Lineage,
};
use crate::graph::{facts::Scope, plan::PlanNode};

/// What was consumed so far, by input: the lineage of the last value.
#[derive(Debug, Default)]
pub(crate) struct Consumed {
    last: Vec<(usize, Lineage)>,
    given_once: bool,
}
impl Consumed {
    /// True the first time only.
    fn give_once(&mut self) -> bool {
        !std::mem::replace(&mut self.given_once, true)
    }
    fn note(&mut self, handle: usize, lineage: &Lineage) {
        match self.last.iter_mut().find(|(other, _)| *other == handle) {
            Some((_, last)) => last.clone_from(lineage),
            None => self.last.push((handle, lineage.clone())),
        }
    }
    /// The one input that was consumed, if there is exactly one that is no list.
    fn only(&self, node: &PlanNode) -> Option<(usize, Lineage)> {
        let list = |at: usize| node.facts.handles.get(at).is_some_and(|handle| handle.list);
        let mut single = self.last.iter().filter(|(at, _)| !list(*at));
        single.next().filter(|_| single.next().is_none()).cloned()
    }
}

/// The inputs of a node that reads its own stream.
pub struct Inputs<'a> {
    pub(crate) core: &'a Core,
    pub(crate) node: &'a PlanNode,
    pub(crate) at: usize,
    pub(crate) inbox: &'a Inbox,
    pub(crate) cancel: &'a CancellationToken,
    pub(crate) consumed: &'a Mutex<Consumed>,
    pub(crate) groups: Vec<groups::Open>,
}

impl<'a> Inputs<'a> {
    pub(crate) fn new(
        core: &'a Core,
        node: &'a PlanNode,
        at: usize,
        inbox: &'a Inbox,
        cancel: &'a CancellationToken,
        consumed: &'a Mutex<Consumed>,
    ) -> Self {
        let groups = node
            .facts
            .handles
            .iter()
            .map(|_| groups::Open::default())
            .collect();
        Self {
            core,
            node,
            at,
            inbox,
            cancel,
            consumed,
            groups,
        }
    }
    fn place(&self, handle: &str) -> Option<usize> {
        self.node
            .facts
            .handles
            .iter()
            .position(|facts| &*facts.name == handle)
    }
    /// Static values of the node: defaults of its type, properties, dynamic properties.
    #[must_use]
    pub fn properties(&self) -> &Map {
        &self.node.statics
    }
    /// A static value of the node.
    #[must_use]
    pub fn property(&self, name: &str) -> Option<&Value> {
        self.node.statics.get(name)
    }
    /// Names of the connected inputs.
    pub fn handles(&self) -> impl Iterator<Item = &Arc<str>> {
        self.node.facts.handles.iter().map(|facts| &facts.name)
    }
    /// Whether an edge enters an input.
    #[must_use]
    pub fn is_connected(&self, handle: &str) -> bool {
        self.place(handle).is_some()
    }
    /// The next value of an input with its lineage; `None` when the input has ended or is not connected.
    ///
    /// Cancel safe.
    pub async fn next(&mut self, handle: &str) -> Option<Envelope> {
        let at = self.place(handle)?;
        loop {
            if let Item::Value(envelope) = self.item(at).await? {
                return Some(envelope);
            }
        }
    }
    /// The next value of an input, without its lineage.
    ///
    /// Cancel safe.
    pub async fn next_value(&mut self, handle: &str) -> Option<Value> {
        self.next(handle).await.map(|envelope| envelope.value)
    }
    /// The first value of an input; when it ends without one, or is not connected, the static value of that
    /// name.
    pub async fn first(&mut self, handle: &str) -> Option<Value> {
        match self.next(handle).await {
            Some(envelope) => Some(envelope.value),
            None => self.property(handle).cloned(),
        }
    }
    /// The next value of any input, in order of arrival; `None` when all have ended.
    ///
    /// Cancel safe.
    pub async fn any(&mut self) -> Option<(Arc<str>, Envelope)> {
        let among = self.node.facts.handles.len();
        loop {
            match self.inbox.take_any(among) {
                Taken::Item(at, Item::Value(envelope)) => {
                    self.note(at, &envelope);
                    let name = self
                        .node
                        .facts
                        .handles
                        .get(at)
                        .map(|facts| Arc::clone(&facts.name));
                    return Some((name.unwrap_or_default(), envelope));
                }
                Taken::Item(..) => {}
                Taken::Empty(version) => self.inbox.wait(version).await,
                Taken::End => return None,
            }
        }
    }
    async fn item(&mut self, at: usize) -> Option<Item> {
        loop {
            match self.inbox.take(at) {
                Taken::Item(_, item) => {
                    if let Item::Value(envelope) = &item {
                        self.note(at, envelope);
                    }
                    return Some(item);
                }
                Taken::Empty(version) => self.inbox.wait(version).await,
                Taken::End => return None,
            }
        }
    }
    fn note(&self, at: usize, envelope: &Envelope) {
        self.consumed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .note(at, &envelope.lineage);
    }
    /// Whether a value of an input waits to be read.
    #[must_use]
    pub fn has_buffered(&self, handle: &str) -> bool {
        self.place(handle)
            .is_some_and(|at| self.inbox.view(|view| view.buffered(at) > 0))
    }
    /// Whether an input may still bring something that is not there yet.
    #[must_use]
    pub fn has_stream(&self, handle: &str) -> bool {
        self.place(handle)
            .is_some_and(|at| self.inbox.view(|view| view.is_open(at)))
    }
    /// The iterations that the values of an input belong to.
    #[must_use]
    pub fn scope(&self, handle: &str) -> Scope {
        let facts = self.place(handle).and_then(|at| self.node.facts.handles.get(at));
        facts.map(|facts| facts.scope.clone()).unwrap_or_default()
    }
    /// The iterations that the node runs in; for a node that joins unrelated ones, those that all its inputs
    /// share.
    #[must_use]
    pub fn invocation_scope(&self) -> &Scope {
        &self.node.facts.scope
    }
    /// Tripped when the run is cancelled.
    #[must_use]
    pub fn cancel(&self) -> &CancellationToken {
        self.cancel
    }
}

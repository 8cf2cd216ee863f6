//! Where the values of a node go: data edges in order of the graph, control edges, the display, and the
//! artifacts.

use std::sync::{Arc, Mutex, PoisonError};

use atelier_proto::{
    kernel::v1::Disposition,
    value::{Map, Value, is_value_too_deep},
};
use foldhash::HashMap;
use tokio_util::sync::CancellationToken;

use super::{
    core::Core,
    inbox::{Envelope, Item},
    lineage::Lineage,
};
use crate::{
    event::Event,
    graph::{
        control::{run_event, wrap},
        facts::Root,
        model::{CONTROL, CONTROL_OUTPUT},
        plan::{PlanNode, SlotPlan, plain, slot},
    },
    node::{CorrelationKind, NodeError},
};

/// Code of a value on an output that was completed before.
pub(crate) const AFTER_COMPLETE: &str = "output.after_complete";
/// Code of a value that is nested deeper than messages can be.
pub(crate) const TOO_DEEP: &str = "output.too_deep";

/// Sends what one node emits.
pub(crate) struct Emitter {
    pub core: Arc<Core>,
    /// The place of the node.
    pub at: usize,
    pub node: Arc<PlanNode>,
    pub cancel: CancellationToken,
    /// Generations of the running invocation.
    pub generation_ids: Arc<Mutex<Vec<String>>>,
    pub slots: Arc<Vec<SlotPlan>>,
    /// Outputs that were completed early.
    closed: Vec<bool>,
    /// Next index by iteration and parent.
    counters: HashMap<(Root, Lineage), u32>,
    /// The last committed result.
    pub last: Option<Arc<Map>>,
    /// Everything that was committed, for the results of the run.
    pub values: Vec<(Arc<str>, Value)>,
    /// What goes out was shown by an earlier process: it is not shown again.
    pub replaying: bool,
}

/// How the lineage of an emission comes about.
pub(crate) struct Origin<'a> {
    /// The invocation, or what was consumed last.
    pub lineage: &'a Lineage,
    /// Lineages of what was consumed, by input.
    pub sources: &'a [(usize, Lineage)],
    /// Whether an output called `index` gets the number of the item that it opens.
    pub numbers: bool,
}

impl Emitter {
    pub fn new(
        core: Arc<Core>,
        at: usize,
        node: Arc<PlanNode>,
        cancel: CancellationToken,
        generation_ids: Arc<Mutex<Vec<String>>>,
    ) -> Self {
        let (slots, closed) = (Arc::clone(&node.slots), vec![false; node.slots.len()]);
        let (counters, values) = (HashMap::default(), Vec::new());
        Self {
            core,
            at,
            node,
            cancel,
            generation_ids,
            slots,
            closed,
            counters,
            last: None,
            values,
            replaying: false,
        }
    }
    /// The place of an output; one that was never declared gets a place when it is first used.
    pub fn place(&mut self, name: &str) -> usize {
        if let Some(at) = self.slots.iter().position(|slot| &*slot.name == name) {
            return at;
        }
        Arc::make_mut(&mut self.slots).push(slot(&self.node.node, &plain(&name.into()), Vec::new()));
        self.closed.push(false);
        self.slots.len() - 1
    }
    /// The next item of an iteration under a parent.
    fn mint(&mut self, root: Root, base: &Lineage, scope: &crate::graph::facts::Scope) -> (u32, Lineage) {
        let parent = base.project(&scope.parent()).unwrap_or_default();
        let next = self.counters.entry((root, parent)).or_default();
        let index = *next;
        *next += 1;
        (index, base.with(root, index))
    }

    /// Mints one item for each iteration that the values belong to, and overwrites `index` where that is
    /// asked for and it is part of one.
    fn lineages(&mut self, values: &mut Map, origin: &Origin<'_>) -> Vec<(usize, Lineage)> {
        let mut minted: Vec<(Root, u32, Lineage)> = Vec::new();
        let mut lineages = Vec::with_capacity(values.len());
        for (name, value) in values.iter_mut() {
            let place = self.place(name);
            let Some(slot) = self.slots.get(place) else {
                continue;
            };
            let (kind, root, source) = (slot.kind, slot.root, slot.source);
            let lineage = match (kind, root) {
                (CorrelationKind::Iteration, Some(root)) => {
                    let known = minted.iter().find(|(other, ..)| *other == root).cloned();
                    let (_, index, lineage) = known.unwrap_or_else(|| {
                        let scope = self
                            .slots
                            .get(place)
                            .map(|slot| slot.scope.clone())
                            .unwrap_or_default();
                        let (index, lineage) = self.mint(root, origin.lineage, &scope);
                        minted.push((root, index, lineage.clone()));
                        (root, index, lineage)
                    });
                    if origin.numbers && name == "index" {
                        *value = i64::from(index).into();
                    }
                    lineage
                }
                (CorrelationKind::Forward, _) => {
                    let found = origin.sources.iter().find(|(handle, _)| Some(*handle) == source);
                    found.map_or_else(Lineage::default, |(_, lineage)| lineage.clone())
                }
                (CorrelationKind::Aggregate, _) => {
                    let handle = source.and_then(|at| self.node.facts.handles.get(at));
                    let innermost = handle.and_then(|handle| handle.scope.innermost());
                    innermost.map_or_else(|| origin.lineage.clone(), |root| origin.lineage.without(root))
                }
                _ => origin.lineage.clone(),
            };
            lineages.push((place, lineage));
        }
        lineages
    }

    /// Routes the outputs of an invocation, or one frame of it.
    pub async fn route(
        &mut self,
        values: &mut Map,
        origin: &Origin<'_>,
        append: bool,
    ) -> Result<(), NodeError> {
        let lineages = self.lineages(values, origin);
        self.send(values, &lineages, append).await
    }

    /// Puts values on the edges in order of the graph, then shows them.
    pub async fn send(
        &mut self,
        values: &Map,
        lineages: &[(usize, Lineage)],
        append: bool,
    ) -> Result<(), NodeError> {
        for (place, _) in lineages {
            if self.closed.get(*place) == Some(&true) {
                let name = self
                    .slots
                    .get(*place)
                    .map(|slot| slot.name.to_string())
                    .unwrap_or_default();
                let text = format!(
                    "output {name} of node {} has a value after it was completed",
                    self.node.node.id
                );
                return Err(NodeError::new(text).code(AFTER_COMPLETE));
            }
        }
        // What no message can carry could be recorded, but never be read again.
        if let Some((name, _)) = values.iter().find(|(_, value)| is_value_too_deep(value)) {
            let text = format!(
                "the value at output {name} of node {} is nested too deeply",
                self.node.node.id
            );
            return Err(NodeError::new(text).code(TOO_DEEP));
        }
        if self.cancel.is_cancelled() {
            return Ok(());
        }
        if let Some(desk) = &self.core.desk {
            desk.saw(self.at, values, lineages, &self.slots);
        }
        for at in &self.node.edges_out {
            let Some(edge) = self.core.plan.edges.get(*at) else {
                continue;
            };
            let Some(value) = values.get(&*edge.source_handle) else {
                continue;
            };
            let own = |(place, _): &&(usize, Lineage)| {
                self.slots
                    .get(*place)
                    .is_some_and(|slot| slot.name == edge.source_handle)
            };
            let lineage = lineages
                .iter()
                .find(own)
                .map(|(_, lineage)| lineage.clone())
                .unwrap_or_default();
            self.core
                .deliver(*at, Envelope::new(value.clone(), lineage), &self.cancel)
                .await?;
        }
        if !self.node.control_out.is_empty() {
            self.control(values).await;
        }
        if self.replaying || self.cancel.is_cancelled() {
            return Ok(());
        }
        for ((name, value), (place, _)) in values.iter().zip(lineages) {
            let Some(slot) = self
                .slots
                .get(*place)
                .filter(|slot| slot.shown && *slot.name == **name)
            else {
                continue;
            };
            let chunk = is_chunk(value);
            let done = chunk && value.get("done").is_some_and(|done| done == Value::Bool(true));
            let event = Event::Output {
                node: Arc::clone(&self.node.label),
                output_name: Arc::clone(&slot.display),
                value: value.clone(),
                output_type: Arc::clone(&slot.ty),
                disposition: if append || chunk {
                    Disposition::Append
                } else {
                    Disposition::Replace
                },
                done,
            };
            self.core.say(event).await;
        }
        Ok(())
    }
    /// Control events: one for all from the reserved output, and what a control edge's own handle carries.
    async fn control(&self, values: &Map) {
        let for_all = values
            .get(CONTROL_OUTPUT)
            .filter(|value| value.as_map().is_some());
        for at in &self.node.control_out {
            if let Some(value) = for_all {
                let properties = value.get("properties").filter(|inner| inner.as_map().is_some());
                self.core
                    .deliver_event(
                        *at,
                        run_event(properties.unwrap_or_else(|| value.clone())),
                        &self.cancel,
                    )
                    .await;
            }
            let Some(edge) = self.core.plan.edges.get(*at) else {
                continue;
            };
            if &*edge.source_handle != CONTROL_OUTPUT
                && let Some(event) = values.get(&*edge.source_handle).and_then(wrap)
            {
                self.core.deliver_event(*at, event, &self.cancel).await;
            }
        }
    }
    /// Ends an output while the node goes on. The final count is published when the node ends.
    pub fn complete(&mut self, name: &str) {
        let place = self.place(name);
        if let Some(closed) = self.closed.get_mut(place) {
            *closed = true;
        }
        for edge in self.slots.get(place).into_iter().flat_map(|slot| &slot.edges) {
            self.core.close_edge(*edge);
        }
    }
    /// Whether an output was completed early.
    pub fn has_completed(&self) -> bool {
        self.closed.contains(&true)
    }
    /// An invocation brings nothing: its key is done on every edge; iterations that it opened have no items
    /// under it.
    pub fn skip(&self, key: &Lineage, opened: bool) {
        for slot in self.slots.iter().filter(|slot| !slot.edges.is_empty()) {
            match slot.root {
                None => self.core.signal(slot, &Item::Done(key.clone())),
                Some(root) if opened => {
                    self.core.signal(
                        slot,
                        &Item::ScopeClosed {
                            parent: key.clone(),
                            root,
                        },
                    );
                }
                Some(_) => {}
            }
        }
    }
    /// Passes on that no more items of an iteration come under a parent.
    pub fn scope_closed(&self, parent: &Lineage, root: Root) {
        for slot in self
            .slots
            .iter()
            .filter(|slot| !slot.edges.is_empty() && slot.scope.0.contains(&root))
        {
            self.core.signal(
                slot,
                &Item::ScopeClosed {
                    parent: parent.clone(),
                    root,
                },
            );
        }
    }
    /// The iterations that an invocation opens, each once.
    pub fn roots(&self) -> Vec<Root> {
        let mut roots: Vec<Root> = Vec::new();
        for root in self.slots.iter().filter_map(|slot| slot.root) {
            if !roots.contains(&root) {
                roots.push(root);
            }
        }
        roots
    }
    /// An invocation opens its iterations under its key.
    pub fn open(&self, key: &Lineage) {
        for root in self.roots() {
            self.core.open(root, key.clone());
        }
    }
    /// What an earlier process committed under a key of this node.
    pub async fn committed(&self, invocation: &str) -> Option<Map> {
        self.core
            .journal
            .as_ref()?
            .committed(&self.node.label.id, invocation)
            .await
    }
    /// Keeps what an invocation emitted for a later process.
    pub async fn remember(&self, invocation: &str, frames: Option<Arc<[Map]>>) {
        if let Some(frames) = frames {
            let (node, invocation) = (Arc::clone(&self.node.label), invocation.to_owned());
            self.core
                .say(Event::Frames {
                    node,
                    invocation,
                    frames,
                })
                .await;
        }
    }
    /// Commits a whole result: the one place where artifacts come from.
    pub async fn commit(&mut self, mut outputs: Map, invocation: &str, properties: Option<Map>) {
        outputs.retain(|name, _| name != CONTROL && name != CONTROL_OUTPUT);
        let node = &self.node.node;
        if self.node.terminal {
            for (name, value) in &outputs {
                let at = self.slots.iter().find(|slot| *slot.name == **name);
                let name = at.map_or_else(|| name.as_str().into(), |slot| Arc::clone(&slot.name));
                self.values.push((name, value.clone()));
            }
        }
        let outputs = Arc::new(outputs);
        let generation_ids =
            std::mem::take(&mut *self.generation_ids.lock().unwrap_or_else(PoisonError::into_inner));
        if !node.is_constant() && !node.is_input() {
            let event = Event::Artifact {
                node: Arc::clone(&self.node.label),
                invocation: invocation.to_owned(),
                outputs: Arc::clone(&outputs),
                properties,
                generation_ids,
            };
            self.core.say(event).await;
        }
        self.last = Some(outputs);
    }
}

/// Whether a value is a piece of a stream.
pub(crate) fn is_chunk(value: &Value) -> bool {
    value
        .as_map()
        .is_some_and(|map| map.get("type").and_then(Value::as_str) == Some("chunk"))
}

/// Inputs of an invocation that an artifact is stored with: texts, numbers and truth values; `None` when
/// there are none.
pub(crate) fn scalars(inputs: &Map) -> Option<Map> {
    let plain = |value: &Value| {
        matches!(
            value,
            Value::Str(_) | Value::Int(_) | Value::Float(_) | Value::Bool(_)
        )
    };
    let kept = inputs
        .iter()
        .filter(|(name, value)| !name.starts_with('_') && plain(value));
    let kept: Map = kept.map(|(name, value)| (name.clone(), value.clone())).collect();
    (!kept.is_empty()).then_some(kept)
}

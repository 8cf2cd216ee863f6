//! Where a node that reads its own stream puts its values.

use std::sync::{Mutex, PoisonError};

use atelier_proto::value::{Map, Value};

use super::{Consumed, Group};
use crate::{
    node::{CorrelationKind, NodeError},
    run::{
        inbox::{Envelope, Item},
        lineage::Lineage,
        routing::{Emitter, Origin},
    },
};

/// The outputs of a node that reads its own stream. Waits while consumers are full; after a cancel nothing is
/// delivered.
///
/// Every method that emits fails with `output.after_complete` when the output was completed before.
pub struct Outputs<'a> {
    emitter: &'a mut Emitter,
    consumed: &'a Mutex<Consumed>,
    /// The last value of each output.
    pub(crate) collected: Map,
    /// What no artifact has yet.
    pub(crate) uncommitted: Map,
    /// Artifacts so far.
    pub(crate) commits: usize,
}

impl<'a> Outputs<'a> {
    pub(crate) fn new(emitter: &'a mut Emitter, consumed: &'a Mutex<Consumed>) -> Self {
        Self {
            emitter,
            consumed,
            collected: Map::new(),
            uncommitted: Map::new(),
            commits: 0,
        }
    }
    /// Emits a value; an empty name is `output`. It belongs to what was consumed last, when exactly one input
    /// was consumed, else to no iteration. Outputs that open an iteration make one item of it a call; use
    /// [`emit_group`](Self::emit_group) for outputs that share it.
    ///
    /// # Errors
    /// See the type.
    pub async fn emit(&mut self, output: &str, value: Value) -> Result<(), NodeError> {
        self.emit_group([(output.to_owned(), value)].into_iter().collect(), None)
            .await
    }
    /// Emits a value with a lineage of the node's own choice, as it is.
    ///
    /// # Errors
    /// See the type.
    pub async fn emit_with(
        &mut self,
        output: &str,
        value: Value,
        lineage: &Lineage,
    ) -> Result<(), NodeError> {
        let output = name(output);
        let place = self.emitter.place(output);
        let append = self.appends(place);
        let values: Map = [(output.to_owned(), value)].into_iter().collect();
        self.emitter
            .send(&values, &[(place, lineage.clone())], append)
            .await?;
        self.keep(values);
        Ok(())
    }
    /// Emits values that belong together: outputs of one iteration get one item of it, under the given
    /// lineage, or under what was consumed last.
    ///
    /// # Errors
    /// See the type.
    pub async fn emit_group(&mut self, values: Map, lineage: Option<&Lineage>) -> Result<(), NodeError> {
        let mut values: Map = values
            .into_iter()
            .map(|(output, value)| (name(&output).to_owned(), value))
            .collect();
        let only = self
            .consumed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .only(&self.emitter.node);
        let base = lineage
            .cloned()
            .or_else(|| only.as_ref().map(|(_, lineage)| lineage.clone()))
            .unwrap_or_default();
        let place = values
            .first()
            .map(|(output, _)| output.clone())
            .map(|output| self.emitter.place(&output));
        let append = place.is_some_and(|place| self.appends(place));
        let sources: Vec<(usize, Lineage)> = only.into_iter().collect();
        self.emitter
            .route(
                &mut values,
                &Origin {
                    lineage: &base,
                    sources: &sources,
                    numbers: false,
                },
                append,
            )
            .await?;
        self.keep(values);
        Ok(())
    }
    /// Passes a value on as it came.
    ///
    /// # Errors
    /// See the type.
    pub async fn forward(&mut self, output: &str, envelope: &Envelope) -> Result<(), NodeError> {
        self.emit_with(output, envelope.value.clone(), &envelope.lineage)
            .await
    }
    /// Passes something else on in the place of a value; null is delivered.
    ///
    /// # Errors
    /// See the type.
    pub async fn forward_value(
        &mut self,
        output: &str,
        envelope: &Envelope,
        value: Value,
    ) -> Result<(), NodeError> {
        self.emit_with(output, value, &envelope.lineage).await
    }
    /// Says that an output brings nothing for the item that a value belongs to.
    pub fn drop(&mut self, output: &str, envelope: &Envelope) {
        let place = self.emitter.place(name(output));
        if let Some(slot) = self.emitter.slots.get(place) {
            self.emitter
                .core
                .signal(slot, &Item::Done(envelope.lineage.clone()));
        }
    }
    /// Ends an output while the node goes on: its consumers see the end at once.
    pub fn complete(&mut self, output: &str) {
        self.emitter.complete(name(output));
    }
    /// Emits the result of a group where its iteration began, and commits it as an artifact of its own.
    ///
    /// # Errors
    /// See the type.
    pub async fn finish_group(&mut self, group: &Group, output: &str, value: Value) -> Result<(), NodeError> {
        let output = name(output);
        let scope = self
            .emitter
            .slots
            .iter()
            .find(|slot| &*slot.name == output)
            .map(|slot| slot.scope.clone());
        let key = group
            .parent
            .text(&scope.unwrap_or_default(), &self.emitter.core.plan.roots);
        let key = format!("{key}#0");
        let before = self
            .emitter
            .committed(&key)
            .await
            .and_then(|before| before.get(output).cloned());
        self.emitter.replaying = before.is_some();
        let value = before.unwrap_or(value);
        let emitted = self.emit_with(output, value.clone(), &group.parent).await;
        self.emitter.replaying = false;
        emitted?;
        self.uncommitted.shift_remove(output);
        self.commits += 1;
        let values = [(output.to_owned(), value)].into_iter().collect();
        self.emitter.commit(values, &key, None).await;
        Ok(())
    }
    /// The last value of each output.
    #[must_use]
    pub fn collected(&self) -> &Map {
        &self.collected
    }
    fn keep(&mut self, values: Map) {
        self.uncommitted.extend(
            values
                .iter()
                .map(|(output, value)| (output.clone(), value.clone())),
        );
        self.collected.extend(values);
    }
    /// Whether an output gives on what came in, value by value.
    pub(crate) fn forwards(&self, output: &str) -> bool {
        let output = name(output);
        let mut slots = self.emitter.slots.iter();
        slots.any(|slot| &*slot.name == output && slot.kind == CorrelationKind::Forward)
    }
    /// Whether values on an output are pieces rather than a whole.
    fn appends(&self, place: usize) -> bool {
        self.emitter.slots.get(place).is_some_and(|slot| match slot.kind {
            CorrelationKind::Chunk | CorrelationKind::Iteration | CorrelationKind::Forward => true,
            CorrelationKind::Single | CorrelationKind::Aggregate => false,
        })
    }
}

fn name(output: &str) -> &str {
    if output.is_empty() { "output" } else { output }
}

//! Modes 6 and 7: one invocation for each key that is ready.

use std::{collections::VecDeque, sync::Arc};

use atelier_proto::{
    kernel::v1::Severity,
    value::{Map, Value},
};

use crate::{
    event::{Event, Note},
    node::{NodeError, NodeErrorKind},
    run::{
        actor::Actor,
        inbox::Item,
        lineage::Lineage,
        scheduler::{Firing, Forward, Given, Limits, Overflow, Scheduler},
    },
};

/// Values that are taken out of the inbox at a time when it has no limit.
const BATCH: usize = 256;
/// Failed items that the error of a node tells of.
const TOLD: usize = 10;

/// One invocation.
pub(super) struct Invocation {
    pub key: Lineage,
    /// The key; of values that lack an iteration, what they have.
    pub lineage: Lineage,
    pub sources: Vec<(usize, Lineage)>,
    pub inputs: Map,
    /// The key as text, with its number.
    pub name: Arc<str>,
    /// Whether a repeating input drives it.
    pub driven: bool,
}

impl Actor {
    pub(crate) async fn keyed(&mut self, streamed: bool) -> Result<(), NodeError> {
        for warning in self.node.facts.warnings.clone() {
            self.core.warn(&self.node, warning).await;
        }
        let options = &self.core.options;
        let limits = Limits {
            keys: options.max_pending_keys,
            per_key: options.max_pending_messages_per_key,
        };
        let mut scheduler = Scheduler::new(Arc::clone(&self.node), Arc::clone(&self.core.plan.roots), limits);
        let mut batch = VecDeque::new();
        let outcome = self.pump(&mut scheduler, &mut batch, streamed).await;
        if !batch.is_empty() {
            self.inbox.put_back(batch);
        }
        for warning in scheduler.leftovers() {
            self.core.warn(&self.node, warning).await;
        }
        outcome.and_then(|()| self.lost())
    }
    /// The failure of the node whose items failed one by one.
    fn lost(&mut self) -> Result<(), NodeError> {
        let mut lost = std::mem::take(&mut self.lost).into_iter();
        let Some((item, first)) = lost.next() else {
            return Ok(());
        };
        let mut message = format!("item {item}: {}", first.message);
        for (item, error) in lost {
            message.push_str(&format!("; item {item}: {}", error.message));
        }
        if self.lost_more > 0 {
            message.push_str(&format!("; and {} more", self.lost_more));
        }
        Err(NodeError {
            message,
            kind: NodeErrorKind::Failed,
            ..first
        })
    }
    async fn pump(
        &mut self,
        scheduler: &mut Scheduler,
        batch: &mut VecDeque<(usize, Item)>,
        streamed: bool,
    ) -> Result<(), NodeError> {
        let (core, inbox) = (Arc::clone(&self.core), Arc::clone(&self.inbox));
        let among = self.node.facts.handles.len();
        let most = if core.options.buffer_limit.is_some() {
            1
        } else {
            BATCH
        };
        while let Some(version) = inbox.take_batch(among, most, batch) {
            if self.cancel.is_cancelled() {
                return Err(NodeError::cancelled());
            }
            if batch.is_empty() {
                if !self.note_ends(scheduler, streamed).await? {
                    inbox.wait(version).await;
                }
                continue;
            }
            while let Some((handle, item)) = batch.pop_front() {
                scheduler
                    .arrive(handle, item, core.options.strict)
                    .map_err(overflow)?;
                self.fire_ready(scheduler, streamed).await?;
            }
            // Not only when the inbox is empty: keys that wait for an input that has ended must not add up meanwhile.
            self.note_ends(scheduler, streamed).await?;
        }
        (0..among).for_each(|handle| scheduler.close(handle));
        scheduler.finish();
        self.fire_ready(scheduler, streamed).await?;
        if let Some(firing) = scheduler.last() {
            self.fire(scheduler, firing, streamed).await?;
        }
        self.pass_on(scheduler);
        Ok(())
    }
    /// Tells the scheduler which inputs have ended; true when one of them was news.
    async fn note_ends(&mut self, scheduler: &mut Scheduler, streamed: bool) -> Result<bool, NodeError> {
        let watched: Vec<usize> = scheduler.watched().collect();
        if watched.is_empty() {
            return Ok(false);
        }
        let ended: Vec<usize> = self.inbox.view(|view| {
            watched
                .into_iter()
                .filter(|handle| view.is_done(*handle))
                .collect()
        });
        let news = !ended.is_empty();
        ended.into_iter().for_each(|handle| scheduler.close(handle));
        self.fire_ready(scheduler, streamed).await?;
        Ok(news)
    }
    async fn fire_ready(&mut self, scheduler: &mut Scheduler, streamed: bool) -> Result<(), NodeError> {
        while let Some(firing) = scheduler.next() {
            self.fire(scheduler, firing, streamed).await?;
        }
        self.pass_on(scheduler);
        for warning in std::mem::take(&mut scheduler.warnings) {
            self.core.warn(&self.node, warning).await;
        }
        Ok(())
    }
    fn pass_on(&self, scheduler: &mut Scheduler) {
        for signal in scheduler.forward.drain(..) {
            match signal {
                Forward::Done(key) => self.emitter.skip(&key, false),
                Forward::ScopeClosed(parent, root) => self.emitter.scope_closed(&parent, root),
            }
        }
    }
    async fn fire(
        &mut self,
        scheduler: &mut Scheduler,
        firing: Firing,
        streamed: bool,
    ) -> Result<(), NodeError> {
        if self.cancel.is_cancelled() {
            return Err(NodeError::cancelled());
        }
        let Firing {
            key,
            ordinal,
            given,
            driven,
            starved,
        } = firing;
        if let Some(handle) = starved {
            let name = self
                .node
                .facts
                .handles
                .get(handle)
                .map(|facts| facts.name.to_string())
                .unwrap_or_default();
            scheduler.warnings.push(format!(
                "node {} was not run: its required input {name} brought nothing",
                self.node.node.id
            ));
            if !key.is_empty() {
                self.emitter.skip(&key, false);
            }
            return Ok(());
        }
        let mut inputs = (*self.node.statics).clone();
        let mut sources = Vec::with_capacity(given.len());
        let mut lineage = key.clone();
        let incomplete = key.is_empty() && !self.node.facts.scope.is_empty();
        for (handle, given) in given {
            let Some(facts) = self.node.facts.handles.get(handle) else {
                continue;
            };
            let value = match given {
                Given::One(envelope) => {
                    if incomplete {
                        lineage = lineage.merge(&envelope.lineage);
                    }
                    sources.push((handle, envelope.lineage));
                    envelope.value
                }
                Given::Many(envelopes) => {
                    if let Some(last) = envelopes.last().filter(|_| incomplete) {
                        lineage = lineage.merge(&last.lineage);
                    }
                    Value::list(envelopes.into_iter().map(|envelope| envelope.value).collect())
                }
            };
            inputs.insert(facts.name.to_string(), value);
        }
        self.complete_inputs(&mut inputs)?;
        let name = self.begin(&lineage, ordinal);
        self.emitter.open(&key);
        let invocation = Invocation {
            key: key.clone(),
            lineage,
            sources,
            inputs,
            name,
            driven,
        };
        let outcome = if streamed {
            Box::pin(self.invoke_streamed(invocation)).await
        } else {
            self.invoke_buffered(invocation).await
        };
        match outcome {
            Err(error) if error.kind == NodeErrorKind::Refused && !key.is_empty() => {
                Box::pin(self.leave_out(&key, driven, &error, Severity::Warning)).await;
                Ok(())
            }
            Err(error) if error.kind == NodeErrorKind::Item && !key.is_empty() => {
                let item = Box::pin(self.leave_out(&key, driven, &error, Severity::Error)).await;
                if self.lost.len() < TOLD {
                    self.lost.push((item, error));
                } else {
                    self.lost_more += 1;
                }
                Ok(())
            }
            other => other,
        }
    }
    /// An item is lost; the others go on. Gives the item's name: its index, below those of its parents.
    async fn leave_out(
        &mut self,
        key: &Lineage,
        driven: bool,
        error: &NodeError,
        severity: Severity,
    ) -> String {
        // Other pieces of the same item may still bring something.
        if !driven {
            self.emitter.skip(key, true);
        }
        let indexes: Vec<String> = key
            .position(&self.node.facts.scope)
            .iter()
            .map(ToString::to_string)
            .collect();
        let item = indexes.join(".");
        let name = self.node.label.name.as_ref().unwrap_or(&self.node.label.id);
        let content = format!("node {name} left out item {item}: {}", error.message);
        let (node, note) = (Arc::clone(&self.node.label), Note::Log { content, severity });
        self.core.say(Event::Note { node, note }).await;
        item
    }
}

fn overflow(overflow: Overflow) -> NodeError {
    NodeError::new(overflow.message).code(overflow.code)
}

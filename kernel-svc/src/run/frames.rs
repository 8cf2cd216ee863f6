//! What a node with streamed output sends its frames into.

use atelier_proto::value::Map;

use super::{
    journal::Recorder,
    lineage::Lineage,
    routing::{Emitter, Origin},
};
use crate::node::NodeError;

/// Takes the frames of one invocation, one after the other.
pub struct Frames<'a> {
    pub(crate) emitter: &'a mut Emitter,
    pub(crate) lineage: &'a Lineage,
    pub(crate) sources: &'a [(usize, Lineage)],
    pub(crate) invocation: &'a str,
    pub(crate) properties: Option<Map>,
    /// The last value of each output.
    pub(crate) merged: Map,
    /// What no artifact has yet.
    pub(crate) uncommitted: Map,
    /// Frames that were artifacts of their own.
    pub(crate) artifacts: usize,
    /// What is kept for a later process.
    pub(crate) recorder: Recorder,
}

impl Frames<'_> {
    /// Sends a frame: values by output. Nulls count as absent, an empty frame is nothing. Waits while
    /// consumers are full; after a cancel nothing is delivered.
    ///
    /// # Errors
    /// `output.after_complete` when an output of the frame was completed before.
    pub async fn send(&mut self, mut frame: Map) -> Result<(), NodeError> {
        frame.retain(|_, value| !value.is_null());
        if frame.is_empty() {
            return Ok(());
        }
        let whole = self
            .emitter
            .slots
            .iter()
            .any(|slot| slot.artifact && frame.contains_key(&*slot.name));
        let key = whole.then(|| format!("{}.{}", self.invocation, self.artifacts));
        // Consumers of an earlier process had the frame that it committed: those of this one get the same.
        let before = match &key {
            Some(key) => self.emitter.committed(key).await,
            None => None,
        };
        let replaying = self.emitter.replaying;
        if let Some(before) = before {
            frame = before;
            self.emitter.replaying = true;
        }
        self.recorder.keep(&frame);
        let origin = Origin {
            lineage: self.lineage,
            sources: self.sources,
            numbers: true,
        };
        let routed = self.emitter.route(&mut frame, &origin, true).await;
        self.emitter.replaying = replaying;
        routed?;
        self.merged
            .extend(frame.iter().map(|(name, value)| (name.clone(), value.clone())));
        let Some(key) = key else {
            self.uncommitted.extend(frame);
            return Ok(());
        };
        self.uncommitted.retain(|name, _| !frame.contains_key(name));
        self.artifacts += 1;
        self.emitter.commit(frame, &key, self.properties.clone()).await;
        Ok(())
    }
    /// Ends an output while the node goes on: its consumers see the end at once.
    pub fn complete(&mut self, output: &str) {
        self.emitter.complete(output);
    }
    /// Which items it was called for.
    #[must_use]
    pub fn lineage(&self) -> &Lineage {
        self.lineage
    }
}

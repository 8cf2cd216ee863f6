//! What a run did before another process took it up: finished invocations answer from here instead of running again.
//!
//! Keys are those of the log's commits: node, and lineage with ordinal. Filled from the database by `jobs/`; the engine only
//! reads it. An invocation that is not here runs; what it asks of providers is found again by its idempotency key.

use std::{collections::HashMap, sync::Arc};

use atelier_proto::value::{Map, Value};

/// Frames of one invocation that are kept for a later process, at most. One that has more runs again.
const MAX_FRAMES: usize = 10_000;
/// The same in bytes, about.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// Finished invocations of an earlier process.
#[derive(Debug, Default)]
pub struct Journal {
    frames: HashMap<String, HashMap<String, Vec<Map>>>,
    committed: HashMap<String, HashMap<String, Map>>,
}
impl Journal {
    /// Adds what a whole invocation emitted, frame by frame.
    pub fn add_frames(&mut self, node: &str, invocation: &str, frames: Vec<Map>) {
        let node = self.frames.entry(node.to_owned()).or_default();
        node.insert(invocation.to_owned(), frames);
    }
    /// Adds a committed result.
    pub fn add_committed(&mut self, node: &str, invocation: &str, outputs: Map) {
        let node = self.committed.entry(node.to_owned()).or_default();
        node.insert(invocation.to_owned(), outputs);
    }
    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty() && self.committed.is_empty()
    }
    /// All that an invocation with streamed output emitted.
    pub(crate) fn frames(&self, node: &str, invocation: &str) -> Option<Vec<Map>> {
        self.frames.get(node)?.get(invocation).cloned()
    }
    /// What an invocation, or one marked frame of it, committed.
    pub(crate) fn committed(&self, node: &str, invocation: &str) -> Option<Map> {
        self.committed.get(node)?.get(invocation).cloned()
    }
    /// What a buffered invocation returned: all of it where that was kept, else what it committed.
    pub(crate) fn returned(&self, node: &str, invocation: &str) -> Option<Map> {
        let whole = self
            .frames(node, invocation)
            .and_then(|frames| frames.into_iter().next());
        whole.or_else(|| self.committed(node, invocation))
    }
}

/// Collects the frames of a running invocation, within bounds.
#[derive(Debug)]
pub(crate) struct Recorder {
    frames: Option<Vec<Map>>,
    bytes: usize,
}
impl Recorder {
    /// A recorder; one that is not wanted keeps nothing.
    pub fn new(wanted: bool) -> Self {
        Self {
            frames: wanted.then(Vec::new),
            bytes: 0,
        }
    }
    /// Keeps a frame.
    pub fn keep(&mut self, frame: &Map) {
        let Some(frames) = &mut self.frames else { return };
        self.bytes = self.bytes.saturating_add(frame.values().map(weight).sum());
        if frames.len() >= MAX_FRAMES || self.bytes > MAX_BYTES {
            self.frames = None;
        } else {
            frames.push(frame.clone());
        }
    }
    /// What was kept; `None` when it was too much, or not wanted.
    pub fn take(self) -> Option<Arc<[Map]>> {
        self.frames.map(Into::into)
    }
}
/// About how many bytes of text a value holds. Media count little: saved ones are kept by reference.
fn weight(value: &Value) -> usize {
    match value {
        Value::Str(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        Value::List(list) => list.iter().map(weight).sum::<usize>() + 16,
        Value::Map(map) => map.iter().map(|(key, value)| key.len() + weight(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Media(_) => 16,
    }
}

//! What a run did before another process took it up: finished invocations answer from here instead of running again.
//!
//! Keys are those of the log's commits: node, and lineage with ordinal. The engine only asks; who knows is outside of it
//! (`log/`). An invocation that is not here runs; what it asks of providers is found again by its idempotency key.

use std::sync::Arc;

use atelier_proto::value::{Map, Value};

/// Frames of one invocation that are kept for a later process, at most. One that has more runs again.
const MAX_FRAMES: usize = 10_000;
/// The same in bytes, about.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// Knows what an earlier process did. One that cannot tell does not answer: a run must not go on without.
#[async_trait::async_trait]
pub trait Recorded: Send + Sync {
    /// All that an invocation with streamed output emitted.
    async fn frames(&self, node: &str, invocation: &str) -> Option<Vec<Map>>;
    /// What an invocation, or one marked frame of it, committed.
    async fn committed(&self, node: &str, invocation: &str) -> Option<Map>;
}

/// Finished invocations of an earlier process; of a new run there are none, and nobody is asked.
#[derive(Clone, Default)]
pub struct Journal(Option<Arc<dyn Recorded>>);
impl Journal {
    /// Of a run that an earlier process began.
    #[must_use]
    pub fn of(recorded: Arc<dyn Recorded>) -> Self {
        Self(Some(recorded))
    }
    pub(crate) async fn frames(&self, node: &str, invocation: &str) -> Option<Vec<Map>> {
        self.0.as_ref()?.frames(node, invocation).await
    }
    pub(crate) async fn committed(&self, node: &str, invocation: &str) -> Option<Map> {
        self.0.as_ref()?.committed(node, invocation).await
    }
    /// What a buffered invocation returned: all of it where that was kept, else what it committed.
    pub(crate) async fn returned(&self, node: &str, invocation: &str) -> Option<Map> {
        let recorded = self.0.as_ref()?;
        let whole = recorded.frames(node, invocation).await;
        match whole.and_then(|frames| frames.into_iter().next()) {
            Some(whole) => Some(whole),
            None => recorded.committed(node, invocation).await,
        }
    }
}
impl std::fmt::Debug for Journal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Journal").field(&self.0.is_some()).finish()
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

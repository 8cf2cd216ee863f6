//! Variables of a run: channels by name that some nodes write and others read, without an edge between them
//! (kernel specification 2.8).
//!
//! A channel keeps what was written, so that a reader that comes late sees all of it. It ends when the last of
//! its writers has ended; one that no node writes ends at once. A reader that waits counts as waiting for
//! somebody else, so that a reader that its writer depends on is found by the watchdog.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use atelier_proto::value::Value;
use tokio::sync::Notify;

use super::activity::Activity;
use crate::{
    graph::{model::Node, plan::Plan},
    node::NodeError,
};

/// The type of the nodes that write variables.
pub(crate) const WRITER: &str = "nodetool.variable.SetVariable";
/// Values that a variable keeps at most: readers may come late, but not for ever.
const MOST_VALUES: usize = 100_000;
/// Variables of a run at most.
const MOST_CHANNELS: usize = 10_000;

/// The variables of a run.
#[derive(Debug, Default)]
pub struct Variables {
    channels: Mutex<HashMap<String, Arc<Channel>>>,
    activity: Arc<Activity>,
}

#[derive(Debug, Default)]
struct Channel {
    state: Mutex<State>,
    changed: Notify,
}
#[derive(Debug, Default)]
struct State {
    values: Vec<Value>,
    writers: usize,
    closed: bool,
    /// Readers that wait, and the number of their waking.
    parked: usize,
    waking: u64,
}
impl Channel {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn wake(&self, state: &mut State, activity: &Activity) {
        for _ in 0..std::mem::take(&mut state.parked) {
            activity.begin();
        }
        state.waking += 1;
        self.changed.notify_waiters();
    }
}

/// The name of the variable that a node writes.
fn written(node: &Node) -> Option<&str> {
    node.property_name().filter(|_| &*node.node_type == WRITER)
}

impl Variables {
    /// The variables that the nodes of a plan write.
    pub(crate) fn of(plan: &Plan, activity: Arc<Activity>) -> Self {
        let mut writers: HashMap<&str, usize> = HashMap::new();
        for name in plan.nodes.iter().filter_map(|node| written(&node.node)) {
            *writers.entry(name).or_default() += 1;
        }
        let channel = |(name, writers): (&str, usize)| {
            let state = Mutex::new(State {
                writers,
                ..State::default()
            });
            let changed = Notify::new();
            (name.to_owned(), Arc::new(Channel { state, changed }))
        };
        Self {
            channels: Mutex::new(writers.into_iter().map(channel).collect()),
            activity,
        }
    }
    fn channel(&self, name: &str) -> Option<Arc<Channel>> {
        let mut channels = self.channels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(channel) = channels.get(name) {
            return Some(Arc::clone(channel));
        }
        if channels.len() >= MOST_CHANNELS {
            return None;
        }
        let made: Arc<Channel> = Arc::default();
        channels.insert(name.to_owned(), Arc::clone(&made));
        Some(made)
    }
    /// Writes a value. The name is trimmed; an empty one is ignored.
    ///
    /// # Errors
    /// `variable.too_many` when the variable, or the run, holds too many.
    pub fn publish(&self, name: &str, value: Value) -> Result<(), NodeError> {
        let name = name.trim();
        if name.is_empty() {
            return Ok(());
        }
        let full = |what: &str| NodeError::new(format!("variable {name}: {what}")).code("variable.too_many");
        let channel = self
            .channel(name)
            .ok_or_else(|| full("the run has too many variables"))?;
        let mut state = channel.lock();
        if state.values.len() >= MOST_VALUES {
            return Err(full("it holds too many values"));
        }
        state.values.push(value);
        channel.wake(&mut state, &self.activity);
        Ok(())
    }
    /// Reads a variable from its first value on.
    #[must_use]
    pub fn read(self: &Arc<Self>, name: &str) -> Reader {
        let name = name.trim();
        let channel = self.channel(name).filter(|_| !name.is_empty());
        if let Some(channel) = &channel {
            let mut state = channel.lock();
            state.closed |= state.writers == 0;
        }
        Reader {
            channel,
            activity: Arc::clone(&self.activity),
            seen: 0,
        }
    }
    /// One of the writers of a variable has ended, if the node is one.
    pub(crate) fn node_ended(&self, node: &Node) {
        let Some(channel) = written(node).and_then(|name| self.channel(name)) else {
            return;
        };
        let mut state = channel.lock();
        state.writers = state.writers.saturating_sub(1);
        if state.writers == 0 {
            state.closed = true;
            channel.wake(&mut state, &self.activity);
        }
    }
    /// The run ends: nobody waits any longer.
    pub(crate) fn close(&self) {
        let channels: Vec<_> = {
            let channels = self.channels.lock().unwrap_or_else(PoisonError::into_inner);
            channels.values().cloned().collect()
        };
        for channel in channels {
            let mut state = channel.lock();
            state.closed = true;
            channel.wake(&mut state, &self.activity);
        }
    }
}

/// Reads one variable.
#[derive(Debug)]
pub struct Reader {
    channel: Option<Arc<Channel>>,
    activity: Arc<Activity>,
    seen: usize,
}
impl Reader {
    /// The next value; waits for it. `None` when no more can come.
    ///
    /// Cancel safe.
    pub async fn next(&mut self) -> Option<Value> {
        let channel = Arc::clone(self.channel.as_ref()?);
        loop {
            let changed = channel.changed.notified();
            tokio::pin!(changed);
            let _parked = {
                let mut state = channel.lock();
                if let Some(value) = state.values.get(self.seen) {
                    self.seen += 1;
                    return Some(value.clone());
                }
                if state.closed {
                    return None;
                }
                changed.as_mut().enable();
                state.parked += 1;
                self.activity.end();
                Parked {
                    channel: &channel,
                    activity: &self.activity,
                    waking: state.waking,
                }
            };
            changed.await;
        }
    }
}

/// A reader waits; given up early it is busy again.
struct Parked<'a> {
    channel: &'a Channel,
    activity: &'a Activity,
    waking: u64,
}
impl Drop for Parked<'_> {
    fn drop(&mut self) {
        let mut state = self.channel.lock();
        if state.waking == self.waking && state.parked > 0 {
            state.parked -= 1;
            self.activity.begin();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn k_284_a_variable_that_nobody_writes_ends_at_once() {
        let variables = Arc::new(Variables::default());
        assert_eq!(variables.read("nobody").next().await, None);
        assert_eq!(variables.read("  ").next().await, None);
    }
    #[tokio::test]
    async fn a_late_reader_sees_everything() {
        let variables = Arc::new(Variables::default());
        for number in 0..3 {
            variables.publish(" x ", number.into()).expect("room");
        }
        variables.publish("", 9.into()).expect("ignored");
        let mut reader = variables.read("x");
        let mut seen = Vec::new();
        while let Some(value) = reader.next().await {
            seen.extend(value.as_i64());
        }
        assert_eq!(seen, [0, 1, 2]);
    }
    #[tokio::test]
    async fn a_reader_that_waits_is_not_busy() {
        let activity = Arc::new(Activity::default());
        activity.begin();
        let channel = Arc::new(Channel::default());
        channel.lock().writers = 1;
        let variables = Arc::new(Variables {
            channels: Mutex::new([("x".to_owned(), channel)].into()),
            activity: Arc::clone(&activity),
        });
        let mut reader = variables.read("x");
        {
            let waits = reader.next();
            tokio::pin!(waits);
            assert!(futures_util::poll!(&mut waits).is_pending());
            assert!(activity.is_stuck());
            variables.publish("x", 1.into()).expect("room");
            assert!(!activity.is_stuck(), "whoever is woken is busy");
            assert_eq!(waits.await, Some(1.into()));
        }
        {
            let waits = reader.next();
            tokio::pin!(waits);
            assert!(futures_util::poll!(&mut waits).is_pending());
        }
        assert!(!activity.is_stuck(), "a reader that gave up is busy again");
    }
}

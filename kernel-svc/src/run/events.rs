//! Events that are sent to a trigger while it runs, and their delivery: once each, whoever repeats it (kernel
//! specification 2.8).

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use atelier_proto::value::{Map, Value};
use chrono::{DateTime, Utc};
use tokio::{sync::Notify, time::timeout};

use crate::node::{Context, NodeError, NodeErrorKind};

/// Events that wait for their trigger at most.
const MOST_EVENTS: usize = 10_000;
/// How long a trigger waits for the next event when it does not say.
pub const INACTIVITY: Duration = Duration::from_secs(300);
/// The shortest time that it may wait.
const LEAST_INACTIVITY: Duration = Duration::from_secs(1);
/// Input ids that are remembered; those before them are known to the log alone.
const MOST_SEEN: usize = 10_000;

/// Events of one trigger, in order of arrival.
#[derive(Debug, Default)]
pub struct EventQueue {
    state: Mutex<Queue>,
    changed: Notify,
}
#[derive(Debug, Default)]
struct Queue {
    events: VecDeque<Map>,
    closed: bool,
}

/// Why an event is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QueueError {
    /// The trigger takes no more events.
    #[error("the trigger takes no more events")]
    Closed,
    /// Too many events wait.
    #[error("too many events wait for the trigger")]
    Full,
}

impl EventQueue {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Adds an event.
    ///
    /// # Errors
    /// The queue is closed, or full.
    pub fn push(&self, event: Map) -> Result<(), QueueError> {
        let mut state = self.lock();
        if state.closed {
            return Err(QueueError::Closed);
        }
        if state.events.len() >= MOST_EVENTS {
            return Err(QueueError::Full);
        }
        state.events.push_back(event);
        self.changed.notify_one();
        Ok(())
    }
    /// No event comes after those that are there.
    pub fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_one();
    }
    /// The next event; `None` after the last one. One reader at a time.
    ///
    /// Cancel safe.
    pub async fn next(&self) -> Option<Map> {
        loop {
            {
                let mut state = self.lock();
                if let Some(event) = state.events.pop_front() {
                    return Some(event);
                }
                if state.closed {
                    return None;
                }
            }
            self.changed.notified().await;
        }
    }
}

impl Context {
    /// The next event that is sent to the node, a trigger; `None` when no more can come. When none comes for a while
    /// (five minutes, unless something else is asked for; at least a second) the node suspends the run.
    ///
    /// # Errors
    /// The run was cancelled, or is to be suspended: node code passes both on.
    pub async fn next_event(&self, inactivity: Option<Duration>) -> Result<Option<Map>, NodeError> {
        let limit = inactivity.unwrap_or(INACTIVITY).max(LEAST_INACTIVITY);
        let since = self.clock.now();
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(NodeError::cancelled()),
            event = timeout(limit, self.events.next()) => event.map_err(|_| self.inactive(since, limit)),
        }
    }
    /// The suspension of a trigger that no event comes to.
    fn inactive(&self, since: DateTime<Utc>, limit: Duration) -> NodeError {
        let entry = |name: &str, value: Value| (name.to_owned(), value);
        let state = Map::from_iter([
            entry("suspended_at", self.clock.now().to_rfc3339().into()),
            entry("last_activity", since.to_rfc3339().into()),
            entry("inactivity_timeout_seconds", limit.as_secs_f64().into()),
        ]);
        let metadata = Map::from_iter([
            entry("trigger_node", true.into()),
            entry("inactivity_suspension", true.into()),
        ]);
        let reason = format!("no event came for {} seconds", limit.as_secs());
        NodeError {
            kind: NodeErrorKind::Suspended { state, metadata },
            ..NodeError::new(reason)
        }
    }
}

/// Where inputs of a run are kept for good.
#[async_trait]
pub trait InputLog: Send + Sync {
    /// Why it cannot keep one.
    type Error: Send;
    /// Keeps an input under its id. False: it was kept before, and nothing has changed.
    async fn append(&self, id: &str, input: &Value) -> Result<bool, Self::Error>;
}
/// What became of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Appended {
    /// It is kept.
    Stored,
    /// It had been kept before.
    Exists,
}

/// Delivers inputs by id, each once: it is kept first and marked as seen after that, so that one that could not
/// be kept can be delivered again.
#[derive(Debug, Default)]
pub struct Deliveries {
    seen: Mutex<Seen>,
}
#[derive(Debug, Default)]
struct Seen {
    /// Ids that are being delivered or were; deliveries of one id come one after the other.
    ids: HashMap<String, Arc<tokio::sync::Mutex<bool>>>,
    order: VecDeque<String>,
}
impl Deliveries {
    fn gate(&self, id: &str) -> Arc<tokio::sync::Mutex<bool>> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(gate) = seen.ids.get(id) {
            return Arc::clone(gate);
        }
        let gate: Arc<tokio::sync::Mutex<bool>> = Arc::default();
        seen.ids.insert(id.to_owned(), Arc::clone(&gate));
        seen.order.push_back(id.to_owned());
        if seen.order.len() > MOST_SEEN
            && let Some(oldest) = seen.order.pop_front()
        {
            seen.ids.remove(&oldest);
        }
        gate
    }
    /// Keeps an input in the log, then hands it over, unless it was delivered before. A repeat that comes while
    /// the first delivery goes on waits for its outcome.
    ///
    /// # Errors
    /// What the log says, when it cannot keep the input: nothing is handed over, and it may be delivered again.
    pub async fn deliver<L: InputLog + ?Sized>(
        &self,
        log: &L,
        id: &str,
        input: Value,
        hand_over: impl FnOnce(Value),
    ) -> Result<Appended, L::Error> {
        let gate = self.gate(id);
        let mut seen = gate.lock().await;
        if *seen {
            return Ok(Appended::Exists);
        }
        let new = log.append(id, &input).await?;
        *seen = true;
        if !new {
            return Ok(Appended::Exists);
        }
        hand_over(input);
        Ok(Appended::Stored)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Fails as often as it is told to; slow enough for deliveries to overlap.
    #[derive(Default)]
    struct Kept {
        inputs: Mutex<Vec<(String, Value)>>,
        failures: AtomicUsize,
    }
    #[async_trait]
    impl InputLog for Kept {
        type Error = &'static str;
        async fn append(&self, id: &str, input: &Value) -> Result<bool, Self::Error> {
            tokio::task::yield_now().await;
            let fails = |left: usize| left.checked_sub(1);
            if self
                .failures
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, fails)
                .is_ok()
            {
                return Err("disk full");
            }
            self.inputs
                .lock()
                .expect("inputs")
                .push((id.to_owned(), input.clone()));
            Ok(true)
        }
    }

    #[tokio::test]
    async fn k_282_two_deliveries_of_one_id_are_one_message() {
        let (log, deliveries, queue) = (Kept::default(), Deliveries::default(), EventQueue::default());
        let deliver = || {
            deliveries.deliver(&log, "i1", 7.into(), |value| {
                let event = Map::from_iter([("data".to_owned(), value)]);
                queue.push(event).expect("room");
            })
        };
        let (one, two) = tokio::join!(deliver(), deliver());
        assert_eq!((one, two), (Ok(Appended::Stored), Ok(Appended::Exists)));
        assert_eq!(deliver().await, Ok(Appended::Exists));
        assert_eq!(log.inputs.lock().expect("inputs").len(), 1);
        queue.close();
        assert!(queue.next().await.is_some());
        assert_eq!(queue.next().await, None);
    }
    #[tokio::test]
    async fn k_283_what_could_not_be_kept_is_delivered_again() {
        let (log, deliveries) = (Kept::default(), Deliveries::default());
        log.failures.store(1, Ordering::SeqCst);
        let handed = AtomicUsize::new(0);
        let deliver = || {
            deliveries.deliver(&log, "i1", 7.into(), |_| {
                handed.fetch_add(1, Ordering::SeqCst);
            })
        };
        assert_eq!(deliver().await, Err("disk full"));
        assert_eq!(handed.load(Ordering::SeqCst), 0);
        assert_eq!(deliver().await, Ok(Appended::Stored));
        assert_eq!(handed.load(Ordering::SeqCst), 1);
    }
    #[tokio::test]
    async fn a_queue_is_bounded_and_ends() {
        let queue = EventQueue::default();
        for _ in 0..MOST_EVENTS {
            queue.push(Map::new()).expect("room");
        }
        assert_eq!(queue.push(Map::new()), Err(QueueError::Full));
        queue.close();
        assert_eq!(queue.push(Map::new()), Err(QueueError::Closed));
    }
}

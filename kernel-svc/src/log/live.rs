//! The tail of a running job's log in memory, for readers that are close to the end.
//!
//! Bounded by events and bytes; a reader that falls behind it reads the database. Publishing never waits for a reader.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use atelier_proto::kernel::v1::JobEvent;
use dashmap::DashMap;
use prost::Message;
use tokio::sync::watch;

/// Events that the tail holds at most.
const MAX_EVENTS: usize = 4_096;
/// Bytes that the tail holds at most.
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// The live end of one run's log.
#[derive(Debug)]
pub struct Live {
    tail: Mutex<Tail>,
    newest: watch::Sender<Newest>,
}
/// Where the log ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Newest {
    /// Number of the newest event.
    pub seq: i64,
    /// Whether no event follows.
    pub ended: bool,
    /// Whether this process drives the run no more; what follows, if anything, is in the database.
    pub left: bool,
}
#[derive(Debug, Default)]
struct Tail {
    events: VecDeque<Arc<JobEvent>>,
    bytes: usize,
}
impl Live {
    /// A log that ends at `seq`.
    #[must_use]
    pub fn new(seq: i64) -> Self {
        Self {
            tail: Mutex::default(),
            newest: watch::Sender::new(Newest {
                seq,
                ended: false,
                left: false,
            }),
        }
    }
    /// Shows events that are durable.
    pub fn publish(&self, events: &[Arc<JobEvent>], ended: bool) {
        let Some(last) = events.last() else { return };
        {
            let mut tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
            for event in events {
                tail.bytes += event.encoded_len();
                tail.events.push_back(Arc::clone(event));
            }
            while tail.events.len() > MAX_EVENTS || (tail.bytes > MAX_BYTES && tail.events.len() > 1) {
                if let Some(event) = tail.events.pop_front() {
                    tail.bytes = tail.bytes.saturating_sub(event.encoded_len());
                }
            }
        }
        self.newest.send_replace(Newest {
            seq: last.seq,
            ended,
            left: false,
        });
    }
    /// Sends readers to the database: nothing more will be shown here. Does nothing after the end.
    pub fn leave(&self) {
        self.newest.send_if_modified(|newest| {
            newest.left = !newest.ended;
            newest.left
        });
    }
    /// Number of the oldest event that the tail holds.
    #[must_use]
    pub fn oldest(&self) -> Option<i64> {
        self.tail
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .events
            .front()
            .map(|event| event.seq)
    }
    /// Watches where the log ends.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Newest> {
        self.newest.subscribe()
    }
    /// Up to `limit` events after a cursor, if the tail reaches back that far; `None`: read the database.
    #[must_use]
    pub fn after(&self, seq: i64, limit: usize) -> Option<Vec<Arc<JobEvent>>> {
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(first) = tail.events.front() else {
            return (self.newest.borrow().seq <= seq).then(Vec::new);
        };
        if first.seq > seq + 1 {
            return None;
        }
        let start = tail.events.partition_point(|event| event.seq <= seq);
        Some(tail.events.iter().skip(start).take(limit).cloned().collect())
    }
}

/// The runs that this process drives, by internal key.
#[derive(Debug, Clone, Default)]
pub struct LiveJobs(Arc<DashMap<String, Arc<Live>>>);

impl LiveJobs {
    /// Adds a run.
    pub fn insert(&self, job_key: &str, live: Arc<Live>) {
        self.0.insert(job_key.to_owned(), live);
    }
    /// Removes the live end of a run that ended, unless another one stands there by now.
    pub fn remove(&self, job_key: &str, own: &Arc<Live>) {
        self.0.remove_if(job_key, |_, live| Arc::ptr_eq(live, own));
    }
    /// The live end of a run, if this process drives it.
    #[must_use]
    pub fn get(&self, job_key: &str) -> Option<Arc<Live>> {
        self.0.get(job_key).map(|live| Arc::clone(&live))
    }
}

//! Callers that sent a control event and wait for the outcome of its invocation, found by the event's id.

use std::{
    collections::HashMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use atelier_proto::value::Map;
use tokio::sync::oneshot;

type Waiting = HashMap<u64, (usize, oneshot::Sender<Result<Map, String>>)>;

/// Callers that wait.
#[derive(Default)]
pub(crate) struct Waiters {
    waiting: Mutex<Waiting>,
    last: AtomicU64,
}
impl Waiters {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// An id for an event of a caller in this process.
    pub fn next_id(&self) -> u64 {
        self.last.fetch_add(1, Ordering::Relaxed) + 1
    }
    /// Waits for the outcome of an event at a node.
    pub fn wait(&self, node: usize, event: u64) -> oneshot::Receiver<Result<Map, String>> {
        let (sender, receiver) = oneshot::channel();
        self.lock().insert(event, (node, sender));
        receiver
    }
    /// Events whose outcome is waited for, and the nodes that they were sent to.
    pub fn all(&self) -> Vec<(u64, usize)> {
        let waiting = self.lock();
        waiting.iter().map(|(event, (node, _))| (*event, *node)).collect()
    }
    /// Settles an event. Events that nobody waits for have the id 0.
    pub fn settle(&self, event: u64, outcome: Result<Map, String>) {
        if event == 0 {
            return;
        }
        if let Some((_, waiter)) = self.lock().remove(&event) {
            let _ = waiter.send(outcome);
        }
    }
    /// A node ended: nothing more will come from it.
    pub fn node_ended(&self, node: usize, error: Option<&str>) {
        let mut waiting = self.lock();
        let events: Vec<u64> = waiting
            .iter()
            .filter(|(_, (at, _))| *at == node)
            .map(|(event, _)| *event)
            .collect();
        for event in events {
            if let Some((_, waiter)) = waiting.remove(&event) {
                let text = error.unwrap_or("the node ended before it answered");
                let _ = waiter.send(Err(text.to_owned()));
            }
        }
    }
    /// The run ended: nobody will answer.
    pub fn end_all(&self) {
        for (_, (_, waiter)) in self.lock().drain() {
            let _ = waiter.send(Err("the run has ended".to_owned()));
        }
    }
    /// How many wait.
    pub fn len(&self) -> usize {
        self.lock().len()
    }
}

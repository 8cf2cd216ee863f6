//! Who gets an invocation, and what becomes of it when its worker is away, restarted or gone.

use std::{collections::HashMap, sync::Arc, time::Duration};

use tokio::time::Instant;

use super::{Call, Pending, Spec};
use crate::{
    node::NodeError,
    workers::hub::{State, WorkerKey},
};

/// Workers that may lose one invocation before it fails: it may be what kills them.
const MAX_ATTEMPTS: i32 = 3;
/// Nodes that read streams which one worker may have at once, beside its slots: they wait for each other, so that slots
/// could lock them up.
const MAX_STREAMS: usize = 256;

impl State {
    /// Gives waiting invocations to the least loaded workers that have room.
    pub fn dispatch(&mut self) {
        let waiting = std::mem::take(&mut self.calls.waiting);
        for number in waiting {
            let Some(call) = self.calls.all.get_mut(&number) else {
                continue;
            };
            let streams = call.spec.streams;
            let room = |running: &HashMap<u64, bool>, slots: usize| {
                let used = running.values().filter(|other| **other == streams).count();
                let most = if streams { MAX_STREAMS } else { slots };
                (used < most).then_some((used, most))
            };
            let fits = self.workers.iter_mut().filter(|(key, worker)| {
                key.scope == call.spec.key.scope && worker.serves(&call.spec.key.node_type)
            });
            let free =
                fits.filter_map(|(key, worker)| Some((room(&worker.running, worker.slots)?, key, worker)));
            // Shares of the slots, without division: a/b < c/d as a*d < c*b.
            let least = free.min_by(|((a, b), ..), ((c, d), ..)| (a * d).cmp(&(c * b)).then(a.cmp(c)));
            let Some((_, key, worker)) = least else {
                self.calls.waiting.push_back(number);
                continue;
            };
            worker.running.insert(number, streams);
            call.attempt += 1;
            call.id = fresh_id(call, number, &self.calls.by_id);
            self.calls.by_id.insert(Arc::clone(&call.id), number);
            call.worker = Some(key.clone());
            call.link.clone_from(&worker.link);
            call.pending = Some(Pending::Start);
            (call.arrived, call.accepted, call.repeats) = (0, 0, call.yields);
            call.read.clear();
            call.alone_since = None;
            call.fetches.clear();
            call.changed.notify_one();
        }
    }
    /// Notes which waiting invocations nobody serves any more, or somebody serves again.
    pub fn note_alone(&mut self) {
        for number in &self.calls.waiting {
            let Some(call) = self.calls.all.get_mut(number) else {
                continue;
            };
            let key = &call.spec.key;
            let served = self
                .workers
                .iter()
                .any(|(worker, state)| worker.scope == key.scope && state.serves(&key.node_type));
            if served {
                call.alone_since = None;
            } else if call.alone_since.is_none() {
                call.alone_since = Some(Instant::now());
                call.changed.notify_one();
            }
        }
    }
    /// A worker is away: its invocations wait for it.
    pub fn unlink(&mut self, key: &WorkerKey) {
        for call in self.calls.all.values_mut() {
            if call.worker.as_ref() == Some(key) {
                call.link = None;
                call.pending = Some(match call.pending {
                    Some(Pending::Start) => Pending::Start,
                    _ => Pending::Detached,
                });
                call.changed.notify_one();
            }
        }
    }
    /// A worker is gone for good.
    pub fn expire(&mut self, key: &WorkerKey, label: &str, grace: Duration) {
        let own = |(number, call): (&u64, &Call)| (call.worker.as_ref() == Some(key)).then_some(*number);
        let lost: Vec<u64> = self.calls.all.iter().filter_map(own).collect();
        let why = format!("is gone for {grace:?}");
        for call in lost {
            // It may still work somewhere behind a broken network: only what is harmless is run beside it.
            let safe = self.calls.all.get(&call).is_some_and(|call| call.spec.retry_safe);
            let key = self.calls.all.get(&call).map(|call| call.spec.key.clone());
            let served = key.is_some_and(|key| {
                self.workers
                    .iter()
                    .any(|(worker, state)| worker.scope == key.scope && state.serves(&key.node_type))
            });
            self.lose(call, label, &why, safe && served);
        }
    }
    /// The worker of an invocation does not have it any more: another one gets it if that is harmless, else it fails.
    pub fn lose(&mut self, number: u64, label: &str, why: &str, again: bool) {
        let Some(call) = self.calls.all.get_mut(&number) else {
            return;
        };
        if let Some(worker) = call.worker.take().and_then(|key| self.workers.get_mut(&key)) {
            worker.running.remove(&number);
        }
        self.calls.by_id.remove(&call.id);
        call.link = None;
        call.changed.notify_one();
        if call.ended {
            return;
        }
        // One that was never handed over is not lost at all.
        let untouched = matches!(call.pending, Some(Pending::Start));
        let harmless = call.spec.retry_safe || call.yields == 0;
        let tries = untouched || call.attempt < MAX_ATTEMPTS;
        if (again || untouched) && harmless && call.replayable && tries && !call.cancelled {
            if untouched {
                call.attempt -= 1;
            }
            call.pending = Some(Pending::Detached);
            self.calls.waiting.push_front(number);
            return;
        }
        let (node, ty) = (&call.spec.node_id, &call.spec.key.node_type);
        let then = if !harmless {
            "; it gave values out before and is not declared retry safe"
        } else if again && !tries {
            "; it was lost by several workers"
        } else if again && !call.replayable {
            "; its inputs are too many to be given again"
        } else {
            ""
        };
        let text = format!("node {node} ({ty}): its worker {label} {why}{then}");
        call.failed
            .get_or_insert(NodeError::new(text).code("worker.lost"));
    }
}
/// An id that no other invocation has: jobs of two users may be called the same.
fn fresh_id(call: &Call, number: u64, taken: &HashMap<Arc<str>, u64>) -> Arc<str> {
    let Spec {
        job_id,
        node_id,
        invocation,
        ..
    } = &call.spec;
    let id: Arc<str> = format!("{job_id}/{node_id}/{invocation}/{}", call.attempt).into();
    if taken.contains_key(&id) {
        format!("{id}~{number}").into()
    } else {
        id
    }
}

//! The workers: who is connected, what each declares, and what becomes of them when their streams end.
//!
//! One lock over workers and invocations (`calls`), held for a few look-ups at a time and never across a wait.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use atelier_proto::kernel::v1::{
    ConnectResponse, DeclaredType, ResumedInvocation, WorkerDeclaration, WorkerDeclared, WorkerHello,
    WorkerNodeType, WorkerWelcome, connect_response::Message as Said,
};
use indexmap::IndexMap;
use tokio::sync::{mpsc, watch};
use tonic::Status;

pub(super) use super::worker::{End, Link, TypeKey, Worker, WorkerKey, message};
use super::{
    FRAME_WINDOW, INPUT_WINDOW, MAX_UPLOAD, MAX_WORKER_MESSAGE, NodeTypes, PROTOCOL_VERSION, Scope, Timing,
    calls::Calls,
    declare, remote,
    session::{overloaded, violation},
};
use crate::node::{Factory, NodeMeta};

/// Workers of one user that a process knows, those in their grace period included; more are refused.
const MAX_WORKERS: usize = 256;
/// Types of one worker.
const MAX_TYPES: usize = 256;
/// Invocations that a worker may say that it holds.
const MAX_HELD: usize = 4_096;
/// Longest name of a worker or an instance, in bytes.
const MAX_NAME: usize = 128;
/// Most invocations that a worker may ask for at once.
const MAX_SLOTS: u32 = 1_024;

/// Workers and invocations.
#[derive(Default)]
pub(super) struct State {
    pub workers: IndexMap<WorkerKey, Worker>,
    pub calls: Calls,
    sessions: u64,
}
pub(super) struct Hub {
    types: NodeTypes,
    pub timing: Timing,
    state: Mutex<State>,
    me: Weak<Self>,
}
impl Hub {
    pub fn new(types: NodeTypes, timing: Timing) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            types,
            timing,
            state: Mutex::default(),
            me: Weak::clone(me),
        })
    }
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    pub fn connected(&self) -> usize {
        self.lock()
            .workers
            .values()
            .filter(|worker| worker.link.is_some())
            .count()
    }
    pub fn invocations(&self) -> usize {
        self.lock().calls.len()
    }
    /// Opens a stream: the greeting goes out on it before anything else. Gives the worker and the number of the stream.
    pub fn attach(
        &self,
        scope: Scope,
        hello: WorkerHello,
        out: mpsc::Sender<Result<ConnectResponse, Status>>,
    ) -> Result<(WorkerKey, Link), Status> {
        let WorkerHello {
            worker_name,
            instance_id,
            protocol_version,
            max_invocations,
            held_ids: held,
        } = hello;
        if protocol_version != PROTOCOL_VERSION {
            return Err(violation(format!(
                "hello: protocol_version {protocol_version} is not served, only {PROTOCOL_VERSION}"
            )));
        }
        for (field, text) in [("worker_name", &worker_name), ("instance_id", &instance_id)] {
            if text.is_empty() || text.len() > MAX_NAME || text.chars().any(char::is_control) {
                return Err(violation(format!(
                    "hello: {field} must have 1 to {MAX_NAME} bytes and no control characters"
                )));
            }
        }
        if !(1..=MAX_SLOTS).contains(&max_invocations) {
            return Err(violation(format!(
                "hello: max_invocations must be 1 to {MAX_SLOTS}"
            )));
        }
        if held.len() > MAX_HELD {
            return Err(violation(format!(
                "hello: more than {MAX_HELD} invocations are held"
            )));
        }
        let key = WorkerKey {
            scope,
            instance: instance_id.into(),
        };
        let mut state = self.lock();
        let own = state
            .workers
            .keys()
            .filter(|other| other.scope == key.scope)
            .count();
        if own >= MAX_WORKERS && !state.workers.contains_key(&key) {
            return Err(overloaded("too many workers are connected"));
        }
        state.sessions += 1;
        let link = Link {
            session: state.sessions,
            out,
            end: watch::Sender::new(End::No),
        };
        let worker = state.workers.entry(key.clone()).or_insert_with(|| Worker {
            name: String::new(),
            link: None,
            session: 0,
            types: IndexMap::new(),
            ready: false,
            slots: 0,
            draining: false,
            running: HashMap::new(),
        });
        if let Some(older) = worker.link.replace(link.clone()) {
            older.end.send_replace(End::Replaced);
        }
        worker.name = worker_name;
        worker.session = link.session;
        worker.slots = usize::try_from(max_invocations).unwrap_or(1);
        (worker.ready, worker.draining) = (false, false);
        let (resumed, forgotten_ids) = state.resume(&key, &link, held);
        state.dispatch();
        state.note_alone();
        let welcome = self.welcome(resumed, forgotten_ids);
        // The stream is new: there is room.
        link.try_say(Said::Welcome(welcome));
        Ok((key, link))
    }
    fn welcome(&self, resumed: Vec<ResumedInvocation>, forgotten_ids: Vec<String>) -> WorkerWelcome {
        let duration = |duration: std::time::Duration| prost_types::Duration::try_from(duration).ok();
        let bytes = |bytes: usize| i64::try_from(bytes).unwrap_or(i64::MAX);
        WorkerWelcome {
            protocol_version: PROTOCOL_VERSION,
            heartbeat_interval: duration(self.timing.heartbeat),
            heartbeat_timeout: duration(self.timing.timeout()),
            grace: duration(self.timing.grace),
            max_message_bytes: bytes(MAX_WORKER_MESSAGE),
            max_part_bytes: i32::try_from(atelier_proto::CHUNK_BYTES).unwrap_or(i32::MAX),
            frame_window: i32::try_from(FRAME_WINDOW).unwrap_or(i32::MAX),
            input_window: i32::try_from(INPUT_WINDOW).unwrap_or(i32::MAX),
            max_media_bytes: bytes(MAX_UPLOAD),
            resumed,
            forgotten_ids,
        }
    }
    /// Takes what a worker serves; says which types it may not.
    pub fn declare(&self, key: &WorkerKey, declaration: WorkerDeclaration) -> Result<WorkerDeclared, Status> {
        let declared = declaration.node_types;
        if declared.len() > MAX_TYPES {
            return Err(violation(format!(
                "declaration: more than {MAX_TYPES} node types"
            )));
        }
        let mut state = self.lock();
        let (mut accepted, mut answers) = (IndexMap::new(), Vec::with_capacity(declared.len()));
        for declared in declared {
            let node_type = declared
                .node_type
                .as_ref()
                .map(|node_type| node_type.node_type.clone())
                .unwrap_or_default();
            let reason = if accepted.contains_key(&node_type) {
                Some(format!("{node_type:?} is declared twice"))
            } else {
                self.refusal(&state, key, &node_type, &declared)
            };
            answers.push(DeclaredType {
                node_type: node_type.chars().take(256).collect(),
                accepted: reason.is_none(),
                reason: reason.clone().unwrap_or_default(),
            });
            if reason.is_none() {
                accepted.insert(node_type, declared);
            }
        }
        if let Some(worker) = state.workers.get_mut(key) {
            worker.types = accepted;
            worker.ready = true;
        }
        self.publish(&state);
        state.dispatch();
        state.note_alone();
        Ok(WorkerDeclared { types: answers })
    }
    /// Why a worker may not serve a type.
    fn refusal(
        &self,
        state: &State,
        key: &WorkerKey,
        node_type: &str,
        declared: &WorkerNodeType,
    ) -> Option<String> {
        if let Err(wrong) = declare::meta(declared) {
            return Some(wrong);
        }
        if self.types.is_builtin(node_type) {
            return Some(format!("{node_type} is a built-in type"));
        }
        let others = state.workers.iter().filter(|(other, _)| *other != key);
        for (other, worker) in others {
            let Some(known) = worker.types.get(node_type) else {
                continue;
            };
            if other.scope == key.scope && known != declared {
                return Some(format!(
                    "{node_type} is served by {} with other metadata: {}",
                    worker.label(other),
                    differs(known, declared)
                ));
            }
            if other.scope == Scope::Deployment && key.scope != Scope::Deployment {
                return Some(format!("{node_type} is served for the whole deployment"));
            }
        }
        None
    }
    /// Makes the declared types known to those who may see them.
    fn publish(&self, state: &State) {
        let mut seen = HashSet::new();
        let mut all: Vec<(Scope, NodeMeta, Factory)> = Vec::new();
        for (key, worker) in &state.workers {
            for declared in worker.types.values() {
                let Ok(meta) = declare::meta(declared) else {
                    continue;
                };
                let key = TypeKey {
                    scope: key.scope.clone(),
                    node_type: meta.node_type.as_str().into(),
                };
                if seen.insert(key.clone()) {
                    let factory = remote::factory(Weak::clone(&self.me), key.clone(), &meta);
                    all.push((key.scope, meta, factory));
                }
            }
        }
        self.types.publish(all);
    }
    /// A worker takes no further invocations.
    pub fn goodbye(&self, key: &WorkerKey) {
        let mut state = self.lock();
        if let Some(worker) = state.workers.get_mut(key) {
            worker.draining = true;
            worker.leave_if_done();
        }
        state.note_alone();
    }
    /// A stream ended. True when the worker is gone with it, as far as anybody knows: then [`Self::forget`] must follow
    /// after the grace period.
    pub fn detach(&self, key: &WorkerKey, session: u64) -> bool {
        let mut state = self.lock();
        let Some(worker) = state.workers.get_mut(key) else {
            return false;
        };
        if worker.session != session {
            return false;
        }
        worker.link = None;
        worker.ready = false;
        let left = worker.running.is_empty() && (worker.draining || worker.types.is_empty());
        state.unlink(key);
        state.note_alone();
        if left {
            state.workers.shift_remove(key);
            self.publish(&state);
        }
        !left
    }
    /// The grace period of a worker is over.
    pub fn forget(&self, key: &WorkerKey, session: u64) {
        let mut state = self.lock();
        let gone = |worker: &Worker| worker.session == session && worker.link.is_none();
        let Some(worker) = state.workers.get(key).filter(|worker| gone(worker)) else {
            return;
        };
        let label = worker.label(key);
        state.workers.shift_remove(key);
        state.expire(key, &label, self.timing.grace);
        self.publish(&state);
        state.note_alone();
        state.dispatch();
    }
}
impl State {
    fn resume(
        &mut self,
        key: &WorkerKey,
        link: &Link,
        held: Vec<String>,
    ) -> (Vec<ResumedInvocation>, Vec<String>) {
        let worker = self.workers.get(key);
        let label = worker.map(|worker| worker.label(key)).unwrap_or_default();
        let running: Vec<u64> = worker
            .map(|worker| worker.running.keys().copied().collect())
            .unwrap_or_default();
        let mut held: HashSet<String> = held.into_iter().collect();
        let mut resumed = Vec::new();
        for call in running {
            match self.calls.id(call).and_then(|id| held.take(&*id)) {
                Some(invocation_id) => {
                    let next_frame = self.calls.resume(call, link);
                    resumed.push(ResumedInvocation {
                        invocation_id,
                        next_frame,
                    });
                }
                None => self.lose(call, &label, "restarted and does not know it any more", true),
            }
        }
        (resumed, held.into_iter().collect())
    }
}
/// What differs between two declarations of a type, in a word.
fn differs(one: &WorkerNodeType, other: &WorkerNodeType) -> &'static str {
    match (&one.node_type, &other.node_type) {
        (Some(one), Some(other)) if one.properties != other.properties => "the inputs differ",
        (Some(one), Some(other)) if one.outputs != other.outputs => "the outputs differ",
        (Some(one), Some(other)) if one != other => "texts or flags differ",
        _ => "correlations or flags differ",
    }
}

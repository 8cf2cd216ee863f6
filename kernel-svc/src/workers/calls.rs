//! The invocations of all workers: who has them, what arrived of them, and who gets those that nobody has.

mod arrive;
mod assign;

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use atelier_proto::{
    kernel::v1::{FrameReceipt, InvocationCancel, connect_response::Message as Said},
    value::MediaRef,
};
use tokio::{sync::Notify, time::Instant};

use super::{
    FRAME_WINDOW,
    frame::Frame,
    hub::{Hub, Link, State, TypeKey, WorkerKey},
};
use crate::node::NodeError;

/// Streams over which an invocation may go on without a single frame: something in it ends them.
const MAX_FRUITLESS: u32 = 8;

/// What an invocation is.
#[derive(Debug, Clone)]
pub(super) struct Spec {
    pub key: TypeKey,
    pub job_id: Arc<str>,
    pub node_id: Arc<str>,
    pub invocation: Arc<str>,
    pub retry_safe: bool,
    /// Whether it reads streams.
    pub streams: bool,
}
/// A change that its driver must act on before anything else.
enum Pending {
    Start,
    Resume,
    Detached,
}
/// What the driver of an invocation does next.
pub(super) enum Step {
    /// Hand it to a worker that does not know it.
    Start {
        id: Arc<str>,
        attempt: i32,
        accepted: i64,
        link: Link,
    },
    /// The worker that has it is back.
    Resume(Link),
    /// The worker is away.
    Detached,
    /// Something arrived.
    Frame { attempt: i32, frame: Frame },
    /// The worker asks for bytes.
    Fetch { fetch_id: i64, media: MediaRef },
    /// The node has read inputs.
    Read(Vec<i64>),
    /// It is over.
    Failed(NodeError),
}
/// One invocation.
struct Call {
    spec: Spec,
    id: Arc<str>,
    attempt: i32,
    worker: Option<WorkerKey>,
    link: Option<Link>,
    pending: Option<Pending>,
    frames: VecDeque<(i32, Frame)>,
    /// Frames of this attempt that arrived, and that were accepted.
    arrived: i64,
    accepted: i64,
    /// Yields over all attempts, and those that this attempt repeats.
    yields: i64,
    repeats: i64,
    /// The last frame has arrived.
    ended: bool,
    fetches: VecDeque<(i64, MediaRef)>,
    read: Vec<i64>,
    /// All inputs that were streamed to it are still there.
    replayable: bool,
    cancelled: bool,
    failed: Option<NodeError>,
    /// Since when nobody serves its type.
    alone_since: Option<Instant>,
    fruitless: u32,
    changed: Arc<Notify>,
}
impl Call {
    fn protocol(&mut self, text: &str) {
        let (node, ty) = (&self.spec.node_id, &self.spec.key.node_type);
        let error = NodeError::new(format!("node {node} ({ty}): the worker sent {text}"));
        self.failed.get_or_insert(error.code("worker.protocol"));
        self.changed.notify_one();
    }
}
/// All invocations.
#[derive(Default)]
pub(super) struct Calls {
    all: HashMap<u64, Call>,
    by_id: HashMap<Arc<str>, u64>,
    /// Those that no worker has, in order of asking.
    waiting: VecDeque<u64>,
    last: u64,
}
impl Calls {
    pub fn len(&self) -> usize {
        self.all.len()
    }
    pub fn id(&self, call: u64) -> Option<Arc<str>> {
        self.all.get(&call).map(|call| Arc::clone(&call.id))
    }
    /// An invocation goes on over a new stream; gives the next frame that is wanted.
    pub fn resume(&mut self, call: u64, link: &Link) -> i64 {
        let Some(call) = self.all.get_mut(&call) else {
            return 0;
        };
        call.link = Some(link.clone());
        call.fetches.clear();
        call.pending = Some(match call.pending {
            // It was never handed over, so the worker cannot hold it; but ids are the worker's word.
            Some(Pending::Start) => Pending::Start,
            _ => Pending::Resume,
        });
        call.fruitless += 1;
        if call.fruitless > MAX_FRUITLESS {
            call.protocol("nothing over several streams");
        }
        call.changed.notify_one();
        call.arrived
    }
}
impl State {
    /// Asks for a worker.
    fn open(&mut self, spec: Spec) -> (u64, Arc<Notify>) {
        self.calls.last += 1;
        let (call, changed) = (self.calls.last, Arc::new(Notify::new()));
        self.calls.all.insert(
            call,
            Call {
                spec,
                id: Arc::default(),
                attempt: 0,
                worker: None,
                link: None,
                pending: None,
                frames: VecDeque::new(),
                arrived: 0,
                accepted: 0,
                yields: 0,
                repeats: 0,
                ended: false,
                fetches: VecDeque::new(),
                read: Vec::new(),
                replayable: true,
                cancelled: false,
                failed: None,
                alone_since: None,
                fruitless: 0,
                changed: Arc::clone(&changed),
            },
        );
        self.calls.waiting.push_back(call);
        self.dispatch();
        self.note_alone();
        (call, changed)
    }
}
impl Hub {
    /// Asks for a worker for an invocation. It must be closed.
    pub fn open(&self, spec: Spec) -> (u64, Arc<Notify>) {
        self.lock().open(spec)
    }
    /// What the driver does next; else until when it waits at most for a change.
    /// `fetching`: it is busy with bytes that were asked for.
    pub fn step(&self, number: u64, fetching: bool) -> Result<Step, Option<Instant>> {
        let mut state = self.lock();
        let Some(call) = state.calls.all.get_mut(&number) else {
            return Ok(Step::Failed(NodeError::new("the invocation is over")));
        };
        // What an earlier attempt gave comes before the next attempt, together with the media that it refers to.
        let earlier = |(attempt, _): &(i32, Frame)| *attempt != call.attempt;
        if call.frames.front().is_some_and(earlier)
            && let Some((attempt, frame)) = call.frames.pop_front()
        {
            return Ok(Step::Frame { attempt, frame });
        }
        match call.pending.take() {
            Some(Pending::Start) => match &call.link {
                Some(link) => {
                    return Ok(Step::Start {
                        id: Arc::clone(&call.id),
                        attempt: call.attempt,
                        accepted: call.repeats,
                        link: link.clone(),
                    });
                }
                None => call.pending = Some(Pending::Start),
            },
            Some(Pending::Resume) => {
                if let Some(link) = call.link.clone() {
                    return Ok(Step::Resume(link));
                }
            }
            Some(Pending::Detached) => return Ok(Step::Detached),
            None => {}
        }
        if let Some((attempt, frame)) = call.frames.pop_front() {
            return Ok(Step::Frame { attempt, frame });
        }
        if let Some(error) = call.failed.clone() {
            return Ok(Step::Failed(error));
        }
        // After a cancel nothing is waited for that is not there.
        if call.cancelled && (call.worker.is_none() || call.link.is_none()) {
            return Ok(Step::Failed(NodeError::cancelled()));
        }
        if !call.read.is_empty() {
            return Ok(Step::Read(std::mem::take(&mut call.read)));
        }
        if let Some((fetch_id, media)) = call.fetches.front().filter(|_| !fetching).cloned() {
            return Ok(Step::Fetch { fetch_id, media });
        }
        let alone = call.alone_since.map(|since| since + self.timing.grace);
        if alone.is_some_and(|end| end <= Instant::now()) {
            let (node, ty) = (&call.spec.node_id, &call.spec.key.node_type);
            let text = format!(
                "node {node} ({ty}): no worker serves it for {:?}",
                self.timing.grace
            );
            return Ok(Step::Failed(NodeError::new(text).code("worker.absent")));
        }
        Err(alone)
    }
    /// A fetch was answered.
    pub fn fetched(&self, number: u64, fetch_id: i64) {
        if let Some(call) = self.lock().calls.all.get_mut(&number) {
            call.fetches.retain(|(other, _)| *other != fetch_id);
        }
    }
    /// A frame was accepted: gives the receipt, when it is time for one.
    pub fn accept(&self, number: u64, attempt: i32) -> Option<FrameReceipt> {
        let mut state = self.lock();
        let call = state
            .calls
            .all
            .get_mut(&number)
            .filter(|call| call.attempt == attempt)?;
        call.accepted += 1;
        (call.frames.is_empty() || call.accepted % (FRAME_WINDOW / 4) == 0).then(|| FrameReceipt {
            invocation_id: call.id.to_string(),
            next_frame: call.accepted,
            closed: call.ended && call.frames.is_empty(),
        })
    }
    /// The run was cancelled; whether a worker has the invocation.
    pub fn cancel(&self, number: u64) -> bool {
        let mut state = self.lock();
        let Some(call) = state.calls.all.get_mut(&number) else {
            return false;
        };
        call.cancelled = true;
        call.changed.notify_one();
        call.link.is_some()
    }
    /// Lends the slot of an invocation to others while nobody reads what it gives out: until it is taken back it counts
    /// like one that reads streams.
    pub fn lend(&self, number: u64, lent: bool) {
        let mut state = self.lock();
        let Some(call) = state.calls.all.get(&number) else {
            return;
        };
        let (key, streams) = (call.worker.clone(), call.spec.streams);
        let worker = key.and_then(|key| state.workers.get_mut(&key));
        if let Some(counts) = worker.and_then(|worker| worker.running.get_mut(&number)) {
            *counts = lent || streams;
        }
        if lent {
            state.dispatch();
        }
    }
    /// Not all inputs that were streamed are kept: no other worker can take over.
    pub fn outgrown(&self, number: u64) {
        if let Some(call) = self.lock().calls.all.get_mut(&number) {
            call.replayable = false;
        }
    }
    /// Nobody waits for an invocation any more.
    pub fn close(&self, number: u64) {
        let mut state = self.lock();
        let Some(call) = state.calls.all.remove(&number) else {
            return;
        };
        state.calls.by_id.remove(&call.id);
        state.calls.waiting.retain(|other| *other != number);
        if let Some(link) = call
            .link
            .filter(|_| !call.ended && !matches!(call.pending, Some(Pending::Start)))
        {
            link.try_say(Said::Cancel(InvocationCancel {
                invocation_id: call.id.to_string(),
                forgotten: true,
            }));
        }
        if let Some(worker) = call.worker.and_then(|key| state.workers.get_mut(&key)) {
            worker.running.remove(&number);
            worker.leave_if_done();
        }
        state.dispatch();
    }
}

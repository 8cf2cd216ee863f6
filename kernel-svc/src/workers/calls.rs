//! The invocations of all workers: who has them, what arrived of them, and who gets those that nobody has.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use atelier_proto::{
    kernel::v1::{
        FrameReceipt, InvocationCancel, InvocationFrame, MediaPart, connect_response::Message as Said,
    },
    value::MediaRef,
};
use tokio::{sync::Notify, time::Instant};

use super::{
    FRAME_WINDOW,
    frame::Frame,
    hub::{Hub, Link, State, TypeKey, WorkerKey},
};
use crate::node::NodeError;

/// Workers that may lose one invocation before it fails: it may be what kills them.
const MAX_ATTEMPTS: i32 = 3;
/// Streams over which an invocation may go on without a single frame: something in it ends them.
const MAX_FRUITLESS: u32 = 8;
/// Nodes that read streams which one worker may have at once, beside its slots: they wait for each other, so that slots
/// could lock them up.
const MAX_STREAMS: usize = 256;
/// Fetches of one invocation that may wait.
const MAX_FETCHES: usize = 8;

/// Receipts for inputs of one invocation that were not looked at yet.
const MAX_RECEIPTS: usize = 4_096;

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
    /// A frame came over a worker's stream. The answer, if there is one; the error ends the stream.
    pub fn frame(&self, key: &WorkerKey, frame: InvocationFrame) -> Result<Option<Said>, String> {
        let InvocationFrame {
            invocation_id,
            ordinal,
            body,
        } = frame;
        let mut state = self.lock();
        let Some(call) = state.call_of(key, &invocation_id) else {
            return Ok(Some(forgotten(invocation_id)));
        };
        if ordinal < call.arrived {
            let receipt = FrameReceipt {
                invocation_id,
                next_frame: call.accepted,
                closed: false,
            };
            return Ok((ordinal < call.accepted).then_some(Said::FrameReceipt(receipt)));
        }
        if ordinal > call.arrived {
            return Err(format!(
                "frame: ordinal {ordinal} came where {} was due",
                call.arrived
            ));
        }
        if call.arrived - call.accepted >= FRAME_WINDOW {
            return Err(format!(
                "frame: more than {FRAME_WINDOW} frames are not accepted yet"
            ));
        }
        if call.ended {
            return Err("frame: one came after the last one".to_owned());
        }
        call.arrived += 1;
        call.fruitless = 0;
        let frame = match Frame::read(body) {
            Ok(frame) => frame,
            Err(wrong) => {
                call.protocol(&format!("something that is no value: {wrong}"));
                return Ok(None);
            }
        };
        call.ended = frame.is_last();
        let frame = if !frame.is_yield() {
            frame
        } else if call.repeats > 0 {
            call.repeats -= 1;
            Frame::Nothing
        } else {
            call.yields += 1;
            frame
        };
        call.frames.push_back((call.attempt, frame));
        call.changed.notify_one();
        Ok(None)
    }
    /// A node has read inputs. An error ends the stream.
    pub fn read(&self, key: &WorkerKey, invocation_id: &str, numbers: &[i64]) -> Result<(), String> {
        let mut state = self.lock();
        let Some(call) = state.call_of(key, invocation_id) else {
            return Ok(());
        };
        if call.read.len() + numbers.len() > MAX_RECEIPTS {
            return Err(format!(
                "input_receipt: more than {MAX_RECEIPTS} numbers at a time"
            ));
        }
        call.read.extend_from_slice(numbers);
        call.changed.notify_one();
        Ok(())
    }
    /// A worker asks for bytes.
    pub fn fetch(
        &self,
        key: &WorkerKey,
        invocation_id: String,
        fetch_id: i64,
        media: MediaRef,
    ) -> Option<Said> {
        let mut state = self.lock();
        let Some(call) = state.call_of(key, &invocation_id) else {
            return Some(forgotten(invocation_id));
        };
        if call.fetches.len() >= MAX_FETCHES {
            return Some(Said::MediaPart(MediaPart {
                invocation_id,
                fetch_id,
                last: true,
                error: Some(format!("at most {MAX_FETCHES} fetches may be open at a time")),
                ..MediaPart::default()
            }));
        }
        if call.fetches.iter().all(|(other, _)| *other != fetch_id) {
            call.fetches.push_back((fetch_id, media));
            call.changed.notify_one();
        }
        None
    }
}
impl State {
    fn call_of(&mut self, key: &WorkerKey, invocation_id: &str) -> Option<&mut Call> {
        let number = self.calls.by_id.get(invocation_id)?;
        let call = self.calls.all.get_mut(number)?;
        (call.worker.as_ref() == Some(key)).then_some(call)
    }
}
fn forgotten(invocation_id: String) -> Said {
    Said::Cancel(InvocationCancel {
        invocation_id,
        forgotten: true,
    })
}

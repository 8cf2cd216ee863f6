//! The inbox of a node: a queue per input, bounded if asked for, and the count of producers that are still
//! open.
//!
//! Every operation takes constant time in the number of values. One consumer, the node's actor; any number of
//! producers. Full means that the producer waits in line for a place; closing the inbox or releasing its back-pressure frees all
//! of them.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use atelier_proto::value::Value;
use tokio::sync::Notify;

use super::{
    activity::Activity,
    budget::{Account, Budget, Hold, weigh},
    lineage::Lineage,
};
use crate::graph::facts::Root;

/// A value on its way.
#[derive(Debug, Clone, Default)]
pub struct Envelope {
    /// The value.
    pub value: Value,
    /// The iteration items it belongs to.
    pub lineage: Lineage,
    /// Who waits for the outcome of this control event; 0: nobody.
    pub(crate) event: u64,
    /// The room that it takes in the budget of the run.
    pub(crate) hold: Hold,
}
impl Envelope {
    /// A value of some iteration items.
    #[must_use]
    pub fn new(value: Value, lineage: Lineage) -> Self {
        Self {
            value,
            lineage,
            event: 0,
            hold: Hold::default(),
        }
    }
}

/// What comes along an edge.
#[derive(Debug, Clone)]
pub(crate) enum Item {
    /// A value.
    Value(Envelope),
    /// This edge brings no value for this key.
    Done(Lineage),
    /// This edge brings no more items of an iteration under this parent.
    ScopeClosed { parent: Lineage, root: Root },
}

/// Outcome of taking from an input.
#[derive(Debug)]
pub(crate) enum Taken {
    Item(usize, Item),
    /// Nothing yet; the number is what to wait on.
    Empty(u64),
    /// Nothing any more.
    End,
}

#[derive(Debug, Default)]
struct Handle {
    queue: VecDeque<(u64, Item)>,
    values: usize,
    /// Whether a value ever came.
    seen: bool,
    open: usize,
    limit: Option<usize>,
    /// Producers that wait, the longest first.
    waiting: VecDeque<Arc<Waiter>>,
    /// Places that are kept for producers which were woken.
    granted: usize,
}
impl Handle {
    fn is_full(&self) -> bool {
        self.limit
            .is_some_and(|limit| self.values + self.granted >= limit)
    }
    fn is_done(&self) -> bool {
        self.open == 0 && self.queue.is_empty()
    }
}

/// A producer that waits for a place.
#[derive(Debug, Default)]
struct Waiter {
    woken: Notify,
    /// It has a place; changed under the lock of the inbox only.
    granted: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    handles: Vec<Handle>,
    number: u64,
    /// Counts changes, for waiting without a gap.
    version: u64,
    closed: bool,
    released: bool,
    /// The run stands still.
    quiet: bool,
    /// The consumer waits.
    parked: bool,
}

/// The inbox of a node.
#[derive(Debug)]
pub(crate) struct Inbox {
    state: Mutex<State>,
    consumer: Notify,
    activity: Arc<Activity>,
    account: Arc<Account>,
}

impl Inbox {
    /// An inbox without a limit whose inputs have this many open producers each.
    pub fn new(open: impl Iterator<Item = usize>, activity: Arc<Activity>, budget: Arc<Budget>) -> Self {
        let handles = open
            .map(|open| Handle {
                open,
                ..Handle::default()
            })
            .collect();
        let state = Mutex::new(State {
            handles,
            ..State::default()
        });
        Self {
            state,
            consumer: Notify::new(),
            activity,
            account: Arc::new(Account::new(budget)),
        }
    }
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Lets each input hold so many values before its producers wait.
    pub fn set_limit(&self, limit: Option<usize>) {
        self.lock()
            .handles
            .iter_mut()
            .for_each(|handle| handle.limit = limit);
    }
    fn wake_consumer(&self, state: &mut State) {
        state.version += 1;
        if std::mem::take(&mut state.parked) {
            self.activity.begin();
            self.consumer.notify_one();
        }
    }
    /// Wakes as many producers of an input as there are places, the longest waiting first. Each has its place from then on,
    /// so that nobody who comes later takes it.
    fn wake_producers(&self, state: &mut State, handle: usize) {
        let free = state.closed || state.released;
        let Some(queue) = state.handles.get_mut(handle) else {
            return;
        };
        while (free || !queue.is_full())
            && let Some(waiter) = queue.waiting.pop_front()
        {
            queue.granted += 1;
            waiter.granted.store(true, Ordering::Relaxed);
            self.activity.begin();
            waiter.woken.notify_one();
        }
    }
    fn wake_all_producers(&self, state: &mut State) {
        for handle in 0..state.handles.len() {
            self.wake_producers(state, handle);
        }
    }

    /// Stores a value; waits while the input is full. False: the inbox is closed and the value is gone.
    ///
    /// Cancel safe: dropped while waiting, the value was not stored.
    pub async fn put(&self, handle: usize, envelope: Envelope) -> bool {
        let bytes = weigh(&envelope.value);
        self.put_weighed(handle, envelope, bytes).await
    }
    /// The same for a value whose size is known; waits for room in the budget of the run as well.
    pub async fn put_weighed(&self, handle: usize, mut envelope: Envelope, bytes: i64) -> bool {
        envelope.hold = self.account.hold(bytes).await;
        let mut waiting = {
            let mut state = self.lock();
            let (closed, released) = (state.closed, state.released);
            let Some(queue) = state.handles.get_mut(handle).filter(|_| !closed) else {
                return false;
            };
            // Whoever waits comes first.
            if released || (!queue.is_full() && queue.waiting.is_empty()) {
                self.store(&mut state, handle, envelope);
                return true;
            }
            let waiter = Arc::new(Waiter::default());
            queue.waiting.push_back(Arc::clone(&waiter));
            self.activity.end();
            Waiting {
                inbox: self,
                handle,
                waiter,
                done: false,
            }
        };
        waiting.waiter.woken.notified().await;
        let mut state = self.lock();
        waiting.use_place(&mut state);
        waiting.done = true;
        let closed = state.closed;
        if !closed {
            self.store(&mut state, handle, envelope);
        }
        drop(state);
        !closed
    }
    fn store(&self, state: &mut State, handle: usize, envelope: Envelope) {
        if let Some(queue) = state.handles.get_mut(handle) {
            queue.values += 1;
            queue.seen = true;
        }
        self.push(state, handle, Item::Value(envelope));
    }
    fn push(&self, state: &mut State, handle: usize, item: Item) {
        let number = state.number;
        state.number += 1;
        if let Some(queue) = state.handles.get_mut(handle) {
            queue.queue.push_back((number, item));
        }
        self.wake_consumer(state);
    }
    /// Stores a signal; it never waits.
    pub fn signal(&self, handle: usize, item: Item) {
        let mut state = self.lock();
        if !state.closed {
            self.push(&mut state, handle, item);
        }
    }
    /// One producer of an input has ended.
    pub fn source_done(&self, handle: usize) {
        let mut state = self.lock();
        if let Some(queue) = state.handles.get_mut(handle) {
            queue.open = queue.open.saturating_sub(1);
        }
        self.wake_consumer(&mut state);
    }

    /// Takes the oldest item of an input.
    pub fn take(&self, handle: usize) -> Taken {
        let mut state = self.lock();
        self.take_from(&mut state, handle)
    }
    fn take_from(&self, state: &mut State, handle: usize) -> Taken {
        let (closed, version) = (state.closed, state.version);
        let Some(queue) = state.handles.get_mut(handle) else {
            return Taken::End;
        };
        let Some((_, item)) = queue.queue.pop_front() else {
            return if closed || queue.open == 0 {
                Taken::End
            } else {
                Taken::Empty(version)
            };
        };
        if matches!(item, Item::Value(_)) {
            queue.values -= 1;
            self.wake_producers(state, handle);
        }
        Taken::Item(handle, item)
    }
    fn oldest(state: &State, among: usize) -> Option<usize> {
        let fronts = state.handles.iter().take(among).enumerate();
        let fronts = fronts.filter_map(|(at, handle)| Some((handle.queue.front()?.0, at)));
        fronts.min().map(|(_, at)| at)
    }
    /// Takes the oldest item of the first `among` inputs.
    pub fn take_any(&self, among: usize) -> Taken {
        let mut state = self.lock();
        match Self::oldest(&state, among) {
            Some(handle) => self.take_from(&mut state, handle),
            None if state.closed || state.handles.iter().take(among).all(Handle::is_done) => Taken::End,
            None => Taken::Empty(state.version),
        }
    }
    /// Moves up to `most` of the oldest items of the first `among` inputs. Gives what to wait on when there
    /// is nothing, and `None` when nothing can come any more.
    pub fn take_batch(&self, among: usize, most: usize, into: &mut VecDeque<(usize, Item)>) -> Option<u64> {
        let mut state = self.lock();
        while into.len() < most
            && let Some(handle) = Self::oldest(&state, among)
            && let Taken::Item(handle, item) = self.take_from(&mut state, handle)
        {
            into.push_back((handle, item));
        }
        let end = into.is_empty() && (state.closed || state.handles.iter().take(among).all(Handle::is_done));
        (!end).then_some(state.version)
    }
    /// Waits for the first item of the first `among` inputs, or until none can come. Looks at nothing: a consumer that has
    /// not begun needs nothing else until then.
    ///
    /// Cancel safe.
    pub async fn first(&self, among: usize) {
        while let Some(version) = self.nothing(among) {
            self.wait(version).await;
        }
    }
    /// What to wait on while there is nothing to take and something can come.
    fn nothing(&self, among: usize) -> Option<u64> {
        let state = self.lock();
        let ended = state.closed || state.handles.iter().take(among).all(Handle::is_done);
        (!ended && Self::oldest(&state, among).is_none()).then_some(state.version)
    }
    /// Puts items back that were taken but not looked at.
    pub fn put_back(&self, items: VecDeque<(usize, Item)>) {
        let mut state = self.lock();
        for (handle, item) in items.into_iter().rev() {
            if let Some(queue) = state.handles.get_mut(handle) {
                queue.values += usize::from(matches!(item, Item::Value(_)));
                queue.queue.push_front((0, item));
            }
        }
    }
    /// Waits until something has changed since a version was read. A closed inbox is never waited on.
    ///
    /// Cancel safe.
    pub async fn wait(&self, version: u64) {
        {
            let mut state = self.lock();
            if state.version != version || state.closed {
                return;
            }
            state.parked = true;
            self.activity.end();
        }
        let parked = Parked(self);
        self.consumer.notified().await;
        drop(parked);
    }
    /// Tells the consumer that the run stands still: nothing more comes unless it moves.
    pub fn hush(&self) {
        let mut state = self.lock();
        state.quiet = true;
        self.wake_consumer(&mut state);
    }
    /// Whether the consumer was told so, once; values that came since win.
    pub fn take_quiet(&self) -> bool {
        let mut state = self.lock();
        let empty = state.handles.iter().all(|handle| handle.queue.is_empty());
        std::mem::take(&mut state.quiet) && empty
    }
    /// Looks at the state.
    pub fn view<T>(&self, look: impl FnOnce(&View<'_>) -> T) -> T {
        look(&View(&self.lock()))
    }
    /// Closes for good: producers and the consumer stop waiting; what is buffered stays readable.
    pub fn close(&self) {
        {
            let mut state = self.lock();
            state.closed = true;
            self.wake_consumer(&mut state);
            self.wake_all_producers(&mut state);
        }
        self.account.free();
    }
    /// Producers wait no longer; what they bring is still kept.
    pub fn release(&self) {
        {
            let mut state = self.lock();
            state.released = true;
            self.wake_all_producers(&mut state);
        }
        self.account.free();
    }
    /// Doubles the room of full inputs for whose sake producers wait; false when nobody waits.
    pub fn make_room(&self) -> bool {
        let mut state = self.lock();
        if state.handles.iter().all(|handle| handle.waiting.is_empty()) {
            return false;
        }
        for handle in state.handles.iter_mut().filter(|handle| handle.is_full()) {
            handle.limit = handle.limit.map(|limit| limit.saturating_mul(2));
        }
        self.wake_all_producers(&mut state);
        true
    }
}

/// A look at the state of an inbox.
pub(crate) struct View<'a>(&'a State);
impl View<'_> {
    /// Values of an input that wait to be read.
    pub fn buffered(&self, handle: usize) -> usize {
        self.0.handles.get(handle).map_or(0, |handle| handle.values)
    }
    /// Whether a value ever came to an input.
    pub fn seen(&self, handle: usize) -> bool {
        self.0.handles.get(handle).is_some_and(|handle| handle.seen)
    }
    /// Whether the consumer waits.
    pub fn parked(&self) -> bool {
        self.0.parked
    }
    /// Whether a producer of an input is still open.
    pub fn is_open(&self, handle: usize) -> bool {
        !self.0.closed && self.0.handles.get(handle).is_some_and(|handle| handle.open > 0)
    }
    /// Producers of an input that have not ended.
    pub fn open(&self, handle: usize) -> usize {
        self.0.handles.get(handle).map_or(0, |handle| handle.open)
    }
    /// Whether an input has ended and is read.
    pub fn is_done(&self, handle: usize) -> bool {
        self.0.handles.get(handle).is_none_or(Handle::is_done)
    }
    /// Counts changes; see [`Inbox::wait`].
    pub fn version(&self) -> u64 {
        self.0.version
    }
    /// Whether the inbox is closed.
    pub fn closed(&self) -> bool {
        self.0.closed
    }
}

/// The consumer waits; given up early it is busy again.
struct Parked<'a>(&'a Inbox);
impl Drop for Parked<'_> {
    fn drop(&mut self) {
        if std::mem::take(&mut self.0.lock().parked) {
            self.0.activity.begin();
        }
    }
}
/// A producer waits; given up early it is busy again, and its place is the next one's.
struct Waiting<'a> {
    inbox: &'a Inbox,
    handle: usize,
    waiter: Arc<Waiter>,
    /// It has taken its place.
    done: bool,
}
impl Waiting<'_> {
    /// Takes the place that it was given: from then on there is nothing to give up.
    fn use_place(&self, state: &mut State) {
        if self.waiter.granted.swap(false, Ordering::Relaxed)
            && let Some(queue) = state.handles.get_mut(self.handle)
        {
            queue.granted = queue.granted.saturating_sub(1);
        }
    }
}
impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        let mut state = self.inbox.lock();
        let Some(queue) = state.handles.get_mut(self.handle) else {
            return;
        };
        let before = queue.waiting.len();
        queue.waiting.retain(|other| !Arc::ptr_eq(other, &self.waiter));
        if queue.waiting.len() < before {
            self.inbox.activity.begin();
        }
        if self.waiter.granted.load(Ordering::Relaxed) {
            self.use_place(&mut state);
            self.inbox.wake_producers(&mut state, self.handle);
        }
    }
}

#[cfg(test)]
mod tests;

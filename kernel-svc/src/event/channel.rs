//! The way of events from the parts of a run to its reader: bounded, any number of senders, one reader that takes all that
//! is there at once.
//!
//! Why not a channel of the runtime: every event of every node passes here, and those pay with each for a permit, a place
//! and a reference of its own, all of them shared with the reader. Here it is one short lock, which the reader takes once
//! for all that waits.

use std::{
    collections::VecDeque,
    future::poll_fn,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Poll, Waker},
};

use tokio::{sync::Notify, task::coop::consume_budget};

use super::Event;

/// A channel for so many events at most; then senders wait.
#[must_use]
pub fn channel(capacity: usize) -> (EventSender, EventReceiver) {
    let shared = Arc::new(Shared {
        state: Mutex::new(State {
            queue: VecDeque::new(),
            senders: 1,
            reader: None,
            read: true,
        }),
        capacity: capacity.max(1),
        room: Notify::new(),
        empty: AtomicBool::new(true),
    });
    (EventSender(Arc::clone(&shared)), EventReceiver(shared))
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    capacity: usize,
    room: Notify,
    /// Whether nothing is queued, to be looked at without the lock.
    empty: AtomicBool,
}
#[derive(Debug)]
struct State {
    queue: VecDeque<Event>,
    /// Senders that keep the channel open.
    senders: usize,
    /// The reader, while it waits.
    reader: Option<Waker>,
    /// Whether somebody still reads.
    read: bool,
}

/// Nobody reads any more, or the channel has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("nobody reads the events")]
pub struct Closed;

/// An event that was not taken, because there is no room; `None`: nobody reads.
type Refused = Option<Event>;

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn try_send(&self, event: Event) -> Result<(), Refused> {
        let mut state = self.lock();
        if !state.read || state.senders == 0 {
            return Err(None);
        }
        if state.queue.len() >= self.capacity {
            return Err(Some(event));
        }
        if state.queue.is_empty() {
            self.empty.store(false, Ordering::Release);
        }
        state.queue.push_back(event);
        let reader = state.reader.take();
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
        Ok(())
    }
    /// Waits until there is room. Cancel safe: dropped while waiting, the event was not sent.
    async fn send(&self, mut event: Event) -> Result<(), Closed> {
        loop {
            let room = self.room.notified();
            tokio::pin!(room);
            room.as_mut().enable();
            event = match self.try_send(event) {
                Ok(()) => return Ok(()),
                Err(None) => return Err(Closed),
                Err(Some(event)) => event,
            };
            room.await;
        }
    }
    #[expect(
        clippy::manual_async_fn,
        reason = "an async fn would hold the event twice, for every node"
    )]
    fn deliver(&self, event: Event) -> impl Future<Output = Result<(), Closed>> + Send {
        async move {
            consume_budget().await;
            match self.try_send(event) {
                Ok(()) => Ok(()),
                Err(None) => Err(Closed),
                Err(Some(event)) => Box::pin(self.send(event)).await,
            }
        }
    }
}

/// Sends events, and keeps the channel open.
#[derive(Debug)]
pub struct EventSender(Arc<Shared>);
impl EventSender {
    /// Sends an event; waits while the reader is behind.
    ///
    /// # Errors
    /// Nobody reads any more.
    pub fn send(&self, event: Event) -> impl Future<Output = Result<(), Closed>> + Send {
        self.0.deliver(event)
    }
    /// A sender that does not keep the channel open.
    #[must_use]
    pub fn downgrade(&self) -> WeakEventSender {
        WeakEventSender(Arc::clone(&self.0))
    }
}
impl Clone for EventSender {
    fn clone(&self) -> Self {
        self.0.lock().senders += 1;
        Self(Arc::clone(&self.0))
    }
}
impl Drop for EventSender {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.senders -= 1;
        if state.senders > 0 {
            return;
        }
        let reader = state.reader.take();
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
        self.0.room.notify_waiters();
    }
}

/// Sends events as long as somebody else keeps the channel open.
#[derive(Debug, Clone)]
pub struct WeakEventSender(Arc<Shared>);
impl WeakEventSender {
    /// Sends an event; waits while the reader is behind.
    ///
    /// # Errors
    /// Nobody reads any more, or the channel has ended.
    pub fn send(&self, event: Event) -> impl Future<Output = Result<(), Closed>> + Send {
        self.0.deliver(event)
    }
}

/// Reads events.
#[derive(Debug)]
pub struct EventReceiver(Arc<Shared>);
impl EventReceiver {
    /// The next event; `None` when the channel has ended and is read.
    ///
    /// Cancel safe.
    pub async fn recv(&mut self) -> Option<Event> {
        let mut one = Vec::with_capacity(1);
        self.recv_many(&mut one, 1).await;
        one.pop()
    }
    /// Moves what is there, up to `most` events; waits for the first. Gives how many; 0 when the channel has ended and is
    /// read.
    ///
    /// Cancel safe: dropped while waiting, nothing was taken.
    pub async fn recv_many(&mut self, into: &mut Vec<Event>, most: usize) -> usize {
        consume_budget().await;
        poll_fn(|cx| {
            let mut state = self.0.lock();
            if state.queue.is_empty() {
                if state.senders == 0 {
                    return Poll::Ready(0);
                }
                let known = state.reader.as_ref();
                if known.is_none_or(|reader| !reader.will_wake(cx.waker())) {
                    state.reader = Some(cx.waker().clone());
                }
                return Poll::Pending;
            }
            Poll::Ready(self.take(state, into, most))
        })
        .await
    }
    /// The next event, if one is there.
    pub fn try_recv(&mut self) -> Option<Event> {
        let mut state = self.0.lock();
        let full = state.queue.len() >= self.0.capacity;
        let event = state.queue.pop_front();
        self.0.empty.store(state.queue.is_empty(), Ordering::Release);
        drop(state);
        if full {
            self.0.room.notify_waiters();
        }
        event
    }
    fn take(&self, mut state: MutexGuard<'_, State>, into: &mut Vec<Event>, most: usize) -> usize {
        let (count, full) = (most.min(state.queue.len()), state.queue.len() >= self.0.capacity);
        into.extend(state.queue.drain(..count));
        self.0.empty.store(state.queue.is_empty(), Ordering::Release);
        drop(state);
        if full {
            self.0.room.notify_waiters();
        }
        count
    }
    /// Whether nothing is there to be read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.empty.load(Ordering::Acquire)
    }
}
impl Drop for EventReceiver {
    fn drop(&mut self) {
        let left = {
            let mut state = self.0.lock();
            state.read = false;
            std::mem::take(&mut state.queue)
        };
        drop(left);
        self.0.room.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::poll;

    use super::*;

    fn queued(position: u32) -> Event {
        Event::Queued { position }
    }
    fn position(event: Option<Event>) -> Option<u32> {
        match event {
            Some(Event::Queued { position }) => Some(position),
            _ => None,
        }
    }

    #[tokio::test]
    async fn senders_wait_for_room_and_lose_nothing() {
        let (sender, mut events) = channel(2);
        for at in 0..2 {
            sender.send(queued(at)).await.unwrap();
        }
        let weak = sender.downgrade();
        let third = weak.send(queued(2));
        tokio::pin!(third);
        assert!(poll!(&mut third).is_pending());
        {
            let given_up = sender.send(queued(9));
            tokio::pin!(given_up);
            assert!(poll!(&mut given_up).is_pending());
        }
        assert_eq!(position(events.recv().await), Some(0));
        third.await.unwrap();
        let mut rest = Vec::new();
        assert_eq!(events.recv_many(&mut rest, 10).await, 2);
        assert!(events.is_empty() && events.try_recv().is_none());
    }
    #[tokio::test]
    async fn the_reader_is_woken_and_sees_the_end() {
        let (sender, mut events) = channel(4);
        let weak = sender.downgrade();
        {
            let next = events.recv();
            tokio::pin!(next);
            assert!(poll!(&mut next).is_pending());
            weak.send(queued(7)).await.unwrap();
            assert_eq!(position(next.await), Some(7));
        }
        let second = sender.clone();
        drop(sender);
        second.send(queued(8)).await.unwrap();
        drop(second);
        assert_eq!(position(events.recv().await), Some(8));
        assert!(events.recv().await.is_none());
        assert_eq!(weak.send(queued(9)).await, Err(Closed), "it keeps nothing open");
    }
    #[tokio::test]
    async fn senders_learn_that_nobody_reads() {
        let (sender, events) = channel(1);
        sender.send(queued(0)).await.unwrap();
        let waits = sender.send(queued(1));
        tokio::pin!(waits);
        assert!(poll!(&mut waits).is_pending());
        drop(events);
        assert_eq!(waits.await, Err(Closed));
        assert_eq!(sender.send(queued(2)).await, Err(Closed));
    }
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn many_senders_and_a_slow_reader_lose_nothing() {
        let (sender, mut events) = channel(8);
        let mut tasks = tokio::task::JoinSet::new();
        for sender_number in 0..16_u32 {
            let sender = sender.clone();
            tasks.spawn(async move {
                for at in 0..500 {
                    sender.send(queued(sender_number * 1_000 + at)).await.unwrap();
                }
            });
        }
        drop(sender);
        let (mut last, mut count) = (vec![None; 16], 0);
        while let Some(number) = position(events.recv().await) {
            let (from, at) = (usize::try_from(number / 1_000).unwrap(), number % 1_000);
            assert!(last[from].is_none_or(|last| at == last + 1), "{from}: {at}");
            last[from] = Some(at);
            count += 1;
        }
        assert_eq!(count, 16 * 500);
    }
}

//! What waits to go out to one client. Bounded in frames and bytes. When it is full, audio is given up first, then
//! progress, then traffic on edges, the oldest first; everything else waits for room, and a client that makes none is cut
//! off. The run is never slowed: what waits here is read from its log.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use atelier_proto::value::Map;
use axum::extract::ws::Message;
use tokio::sync::Notify;

use super::encode::{Mode, encode, weight};
use crate::metrics::{DROPPED, SLOW};
use crate::settings::Ws;
use crate::wire::frame::Class;

/// Kinds of frames in the order in which they are given up, and their label in metrics.
const GIVEN_UP: [(Class, &str); 3] = [
    (Class::Audio, "audio"),
    (Class::Progress, "progress"),
    (Class::Edge, "edge"),
];

/// Why and how a connection is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Closing {
    /// The code of the protocol.
    pub(crate) code: u16,
    /// The text beside it.
    pub(crate) reason: &'static str,
}

impl Closing {
    pub(crate) const RATE: Self = Self {
        code: 1008,
        reason: "Message rate limit exceeded",
    };
    pub(crate) const TOO_LARGE: Self = Self {
        code: 1009,
        reason: "Message too large",
    };
    pub(crate) const DRAINING: Self = Self {
        code: 1012,
        reason: "Server draining",
    };
    pub(crate) const SLOW: Self = Self {
        code: 1013,
        reason: "slow consumer",
    };
}

/// The connection is closing; nothing more goes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Closed;

struct Waiting {
    message: Message,
    class: Class,
    weight: usize,
}

#[derive(Default)]
struct State {
    mode: Mode,
    frames: VecDeque<Waiting>,
    bytes: usize,
    closing: Option<Closing>,
}

/// The queue of one connection.
pub(crate) struct Queue {
    max_frames: usize,
    max_bytes: usize,
    patience: Duration,
    state: Mutex<State>,
    /// Something to send, or the end.
    filled: Notify,
    /// Room for more, or the end.
    emptied: Notify,
    /// The connection is to be cut off, whatever waits.
    cut: Notify,
}

impl Queue {
    pub(crate) fn new(limits: &Ws) -> Self {
        Self {
            max_frames: limits.queue_frames.max(1),
            max_bytes: limits.queue_bytes,
            patience: limits.slow_limit,
            state: Mutex::default(),
            filled: Notify::new(),
            emptied: Notify::new(),
            cut: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets how frames that are queued from here on go out.
    pub(crate) fn set_mode(&self, mode: Mode) {
        self.state().mode = mode;
    }

    /// Queues a frame that is never given up; waits for room, and cuts the connection off when none comes in time.
    /// Not cancel safe: a frame that waits is lost.
    ///
    /// # Errors
    /// The connection is closing.
    pub(crate) async fn keep(&self, frame: Map) -> Result<(), Closed> {
        self.push(frame, Class::Keep).await
    }

    /// Queues a frame; one of a kind that may be given up does not wait for room.
    ///
    /// # Errors
    /// The connection is closing.
    pub(crate) async fn push(&self, frame: Map, class: Class) -> Result<(), Closed> {
        let mode = self.state().mode;
        let mut message = Some(encode(mode, frame));
        let deadline = tokio::time::Instant::now() + self.patience;
        loop {
            let room = self.emptied.notified();
            tokio::pin!(room);
            room.as_mut().enable();
            if self.offer(&mut message, class)? {
                return Ok(());
            }
            if tokio::time::timeout_at(deadline, room).await.is_err() {
                metrics::counter!(SLOW).increment(1);
                self.cut_off(Closing::SLOW);
                return Err(Closed);
            }
        }
    }

    /// Queues a frame if there is room, and leaves it otherwise.
    ///
    /// # Errors
    /// The connection is closing.
    pub(crate) fn try_keep(&self, frame: Map) -> Result<(), Closed> {
        let mode = self.state().mode;
        self.offer(&mut Some(encode(mode, frame)), Class::Keep)
            .map(|_| ())
    }

    /// Queues the message if there is room or room can be made; true when it is dealt with.
    fn offer(&self, message: &mut Option<Message>, class: Class) -> Result<bool, Closed> {
        let mut state = self.state();
        if state.closing.is_some() {
            return Err(Closed);
        }
        let weight = message.as_ref().map_or(0, weight);
        while !self.fits(&state, weight) && give_up_one(&mut state) {}
        if !self.fits(&state, weight) {
            if class != Class::Keep {
                count_dropped(class);
            }
            return Ok(class != Class::Keep);
        }
        if let Some(message) = message.take() {
            state.bytes += weight;
            state.frames.push_back(Waiting {
                message,
                class,
                weight,
            });
        }
        drop(state);
        self.filled.notify_one();
        Ok(true)
    }

    /// A frame that is larger than the whole queue goes out alone.
    fn fits(&self, state: &State, weight: usize) -> bool {
        state.frames.is_empty()
            || (state.frames.len() < self.max_frames && state.bytes.saturating_add(weight) <= self.max_bytes)
    }

    /// The next message, or how to close once nothing waits. Cancel safe.
    pub(crate) async fn next(&self) -> Result<Message, Closing> {
        loop {
            let filled = self.filled.notified();
            tokio::pin!(filled);
            filled.as_mut().enable();
            {
                let mut state = self.state();
                if let Some(Waiting { message, weight, .. }) = state.frames.pop_front() {
                    state.bytes = state.bytes.saturating_sub(weight);
                    drop(state);
                    self.emptied.notify_waiters();
                    return Ok(message);
                }
                if let Some(closing) = state.closing {
                    return Err(closing);
                }
            }
            filled.await;
        }
    }

    /// Closes the connection once what waits is sent. The first reason counts.
    pub(crate) fn close(&self, closing: Closing) {
        self.state().closing.get_or_insert(closing);
        self.filled.notify_one();
        self.emptied.notify_waiters();
    }

    /// Closes the connection without sending what waits.
    fn cut_off(&self, closing: Closing) {
        {
            let mut state = self.state();
            state.closing.get_or_insert(closing);
            state.frames.clear();
            state.bytes = 0;
        }
        self.filled.notify_one();
        self.emptied.notify_waiters();
        self.cut.notify_one();
    }

    /// Waits until the connection is to be cut off. Cancel safe.
    pub(crate) async fn until_cut(&self) {
        self.cut.notified().await;
    }

    /// How the connection is to be closed, if it is.
    pub(crate) fn closing(&self) -> Option<Closing> {
        self.state().closing
    }
}

/// Gives up the oldest frame of the kind that is missed least.
fn give_up_one(state: &mut State) -> bool {
    for (class, _) in GIVEN_UP {
        if let Some(at) = state.frames.iter().position(|waiting| waiting.class == class)
            && let Some(dropped) = state.frames.remove(at)
        {
            state.bytes = state.bytes.saturating_sub(dropped.weight);
            count_dropped(class);
            return true;
        }
    }
    false
}

fn count_dropped(class: Class) {
    if let Some((_, label)) = GIVEN_UP.iter().find(|(kind, _)| *kind == class) {
        metrics::counter!(DROPPED, "kind" => *label).increment(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(frames: usize) -> Queue {
        Queue::new(&Ws {
            queue_frames: frames,
            slow_limit: Duration::from_secs(1),
            ..Ws::default()
        })
    }

    fn frame(n: i64) -> Map {
        Map::from_iter([("n".to_owned(), n.into())])
    }

    async fn numbers(queue: &Queue, count: usize) -> Vec<i64> {
        queue.set_mode(Mode::Binary);
        let mut numbers = Vec::new();
        for _ in 0..count {
            let Ok(Message::Binary(bytes)) = queue.next().await else {
                panic!("not binary")
            };
            numbers.push(i64::from(*bytes.last().expect("number")));
        }
        numbers
    }

    #[tokio::test(start_paused = true)]
    async fn r_012_audio_goes_first_then_progress_then_edges_the_oldest_first() {
        let queue = queue(4);
        for (n, class) in [
            (1, Class::Edge),
            (2, Class::Audio),
            (3, Class::Progress),
            (4, Class::Audio),
        ] {
            queue.push(frame(n), class).await.expect("room");
        }
        for n in 5..8 {
            queue.keep(frame(n)).await.expect("room is made");
        }
        // Audio 2 and 4, then progress 3 were given up.
        assert_eq!(numbers(&queue, 4).await, [1, 5, 6, 7]);
    }

    #[tokio::test(start_paused = true)]
    async fn r_012_what_may_not_be_given_up_waits_and_then_cuts_the_client_off() {
        let queue = queue(2);
        queue.keep(frame(1)).await.expect("room");
        queue.keep(frame(2)).await.expect("room");
        queue
            .push(frame(3), Class::Audio)
            .await
            .expect("given up without waiting");
        assert_eq!(queue.keep(frame(4)).await, Err(Closed));
        assert_eq!(queue.closing(), Some(Closing::SLOW));
        assert_eq!(queue.next().await, Err(Closing::SLOW));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_makes_room() {
        let queue = queue(1);
        queue.keep(frame(1)).await.expect("room");
        let (pushed, read) = tokio::join!(queue.keep(frame(2)), numbers(&queue, 2));
        assert_eq!((pushed, read), (Ok(()), vec![1, 2]));
    }

    #[tokio::test]
    async fn closing_sends_what_waits() {
        let queue = queue(4);
        queue.keep(frame(1)).await.expect("room");
        queue.close(Closing::DRAINING);
        assert_eq!(queue.keep(frame(2)).await, Err(Closed));
        assert_eq!(numbers(&queue, 1).await, [1]);
        assert_eq!(queue.next().await, Err(Closing::DRAINING));
    }
}

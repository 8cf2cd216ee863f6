//! The calls that this process drives, and the last ones it settled (generations specification 8.1).
//!
//! It makes cancelling and waiting quick; the truth is the row. An entry goes away when its [`Driving`] guard is
//! dropped, so a panic cannot leak one.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use atelier_proto::ids::GenerationId;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::seam::outcome::Outcome;

/// How many settled calls are remembered; the oldest go first.
const SETTLED: usize = 1_000;

/// Why a call is to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopCause {
    /// Its row is cancelled already.
    RowCancelled,
    /// Its caller is gone, and asked for it to end then.
    Disconnected,
    /// Another driver has its row.
    Fenced,
    /// This process goes down, and another one takes the job up.
    Released,
}

/// All calls of the process. Clones are the same registry.
#[derive(Clone, Default)]
pub struct Registry {
    inner: Arc<Inner>,
}
struct Inner {
    state: Mutex<State>,
    /// Rises with every settled call; waiters look again when it does.
    version: watch::Sender<u64>,
}
impl Default for Inner {
    fn default() -> Self {
        Self {
            state: Mutex::default(),
            version: watch::Sender::new(0),
        }
    }
}
#[derive(Default)]
struct State {
    running: HashMap<GenerationId, Entry>,
    settled: VecDeque<(GenerationId, String, Outcome)>,
}
struct Entry {
    user: String,
    stop: Stop,
}

/// The stop signal of one call, with its cause. Clones are the same signal.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    token: CancellationToken,
    cause: Arc<OnceLock<StopCause>>,
    leavable: Arc<AtomicBool>,
}
impl Stop {
    /// Says that from here on another process can take the call up.
    pub fn can_be_left(&self) {
        self.leavable.store(true, Ordering::SeqCst);
    }

    /// Trips the signal; only the first cause counts.
    pub fn trip(&self, cause: StopCause) {
        let _ = self.cause.set(cause);
        self.token.cancel();
    }

    /// Why it was tripped; `None` while it was not.
    #[must_use]
    pub fn cause(&self) -> Option<StopCause> {
        if self.token.is_cancelled() {
            self.cause.get().copied()
        } else {
            None
        }
    }

    /// The token that is tripped.
    #[must_use]
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }
}

/// What the registry knows of a call.
#[derive(Debug, Clone)]
pub enum Known {
    /// It runs here.
    Running,
    /// It was settled here.
    Settled(Box<Outcome>),
}

/// A call that is driven here. Dropped without an outcome, it just disappears.
#[must_use]
pub struct Driving {
    registry: Registry,
    id: GenerationId,
    user: String,
    stop: Stop,
    done: bool,
}

impl Registry {
    /// Enters a call. The guard takes it out again.
    pub fn enter(&self, id: GenerationId, user: &str) -> Driving {
        let stop = Stop::default();
        let entry = Entry {
            user: user.to_owned(),
            stop: stop.clone(),
        };
        self.lock().running.insert(id, entry);
        Driving {
            registry: self.clone(),
            id,
            user: user.to_owned(),
            stop,
            done: false,
        }
    }

    /// Trips the call of a user; false when it does not run here. A foreign call does not exist.
    pub fn trip(&self, id: GenerationId, user: &str, cause: StopCause) -> bool {
        self.trip_where(id, cause, |entry| entry.user == user)
    }

    /// Trips a call on the word of the ledger, whoever owns it.
    pub fn trip_by_order(&self, id: GenerationId) -> bool {
        self.trip_where(id, StopCause::RowCancelled, |_| true)
    }

    fn trip_where(&self, id: GenerationId, cause: StopCause, allowed: impl Fn(&Entry) -> bool) -> bool {
        let stop = self
            .lock()
            .running
            .get(&id)
            .filter(|entry| allowed(entry))
            .map(|entry| entry.stop.clone());
        stop.is_some_and(|stop| {
            stop.trip(cause);
            true
        })
    }

    /// Lets go of the calls that another process can take up; how many.
    pub fn release(&self) -> usize {
        let stops: Vec<Stop> = {
            let state = self.lock();
            let leavable = |entry: &&Entry| entry.stop.leavable.load(Ordering::SeqCst);
            state
                .running
                .values()
                .filter(leavable)
                .map(|entry| entry.stop.clone())
                .collect()
        };
        for stop in &stops {
            stop.trip(StopCause::Released);
        }
        stops.len()
    }

    /// Whether a call runs here, whoever owns it.
    #[must_use]
    pub fn drives(&self, id: GenerationId) -> bool {
        self.lock().running.contains_key(&id)
    }

    /// Ids of the calls that run here.
    #[must_use]
    pub fn running(&self) -> Vec<GenerationId> {
        self.lock().running.keys().copied().collect()
    }

    /// What is known of a call of a user; `None` when nothing is.
    #[must_use]
    pub fn look(&self, id: GenerationId, user: &str) -> Option<Known> {
        let state = self.lock();
        if let Some(entry) = state.running.get(&id) {
            return (entry.user == user).then_some(Known::Running);
        }
        let mut settled = state.settled.iter().rev();
        settled
            .find(|(known, owner, _)| *known == id && owner == user)
            .map(|(_, _, outcome)| Known::Settled(Box::new(outcome.clone())))
    }

    /// Waits for the outcome of a call; `None` at once when it is not known, or when it went away without one. Cancel
    /// safe.
    pub async fn wait(&self, id: GenerationId, user: &str) -> Option<Outcome> {
        let mut version = self.inner.version.subscribe();
        loop {
            match self.look(id, user) {
                None => return None,
                Some(Known::Settled(outcome)) => return Some(*outcome),
                Some(Known::Running) => version.changed().await.ok()?,
            }
        }
    }

    /// Waits until no call runs here. Cancel safe.
    pub async fn idle(&self) {
        let mut version = self.inner.version.subscribe();
        while !self.lock().running.is_empty() {
            if version.changed().await.is_err() {
                return;
            }
        }
    }

    fn leave(&self, id: GenerationId, outcome: Option<(String, Outcome)>) {
        let mut state = self.lock();
        state.running.remove(&id);
        if let Some((user, outcome)) = outcome {
            while state.settled.len() >= SETTLED {
                state.settled.pop_front();
            }
            state.settled.push_back((id, user, outcome));
        }
        drop(state);
        self.inner.version.send_modify(|version| *version += 1);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Driving {
    /// Id of the call.
    #[must_use]
    pub fn id(&self) -> GenerationId {
        self.id
    }

    /// Its stop signal.
    #[must_use]
    pub fn stop(&self) -> &Stop {
        &self.stop
    }

    /// Settles the call and wakes who waits for it.
    pub fn settle(mut self, outcome: Outcome) {
        self.done = true;
        self.registry.leave(self.id, Some((self.user.clone(), outcome)));
    }
}
impl Drop for Driving {
    fn drop(&mut self) {
        if !self.done {
            self.registry.leave(self.id, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome() -> Outcome {
        Outcome::default()
    }

    #[tokio::test]
    async fn waiting_ends_with_the_outcome_and_unknown_calls_at_once() {
        let registry = Registry::default();
        let id = GenerationId::new();
        assert!(registry.wait(id, "u1").await.is_none());
        let driving = registry.enter(id, "u1");
        assert!(registry.wait(id, "u2").await.is_none());
        let waiter = registry.wait(id, "u1");
        let settle = async { driving.settle(outcome()) };
        let (found, ()) = tokio::join!(waiter, settle);
        assert!(found.is_some());
        assert!(registry.wait(id, "u1").await.is_some());
        assert!(registry.running().is_empty());
    }

    #[tokio::test]
    async fn a_guard_that_is_dropped_leaves_nothing() {
        let registry = Registry::default();
        let id = GenerationId::new();
        let driving = registry.enter(id, "u1");
        let stop = driving.stop().clone();
        assert!(!registry.trip(id, "u2", StopCause::RowCancelled));
        assert!(registry.trip(id, "u1", StopCause::RowCancelled));
        stop.trip(StopCause::Disconnected);
        assert_eq!(stop.cause(), Some(StopCause::RowCancelled));
        drop(driving);
        assert!(registry.look(id, "u1").is_none());
        assert!(!registry.trip_by_order(id));
    }

    #[test]
    fn the_ring_of_settled_calls_is_bounded() {
        let registry = Registry::default();
        let first = GenerationId::new();
        registry.enter(first, "u1").settle(outcome());
        for _ in 0..SETTLED {
            registry.enter(GenerationId::new(), "u1").settle(outcome());
        }
        assert!(registry.look(first, "u1").is_none());
        assert_eq!(registry.lock().settled.len(), SETTLED);
    }
}

//! Planned failures at named places, for tests that kill or break a process at an exact point.
//!
//! Without a plan a place costs one read of a flag. A plan comes from [`VARIABLE`] (child processes) or from
//! [`arm`] (the test's own process): `seam.after_submit=kill@3;ledger.close=error`. Actions: `kill` (the process is gone
//! at once, nothing is cleaned up), `error`, `pause` (until [`resume`]). `@3` means the third time only, no number every
//! time.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard, watch};

/// The environment variable that holds a plan.
pub const VARIABLE: &str = "ATELIER_FAILPOINTS";

static ARMED: AtomicBool = AtomicBool::new(false);

/// Fails here if the plan says so.
///
/// - `failpoint!("name")` in async code: `kill` and `pause` work; `error` panics, as a bug would.
/// - `failpoint!("name", error)` in async code: `error` returns `Err(error.into())` from the surrounding function.
/// - `failpoint!(sync "name")` and `failpoint!(sync "name", error)` where nothing can be awaited; `pause` is ignored.
#[macro_export]
macro_rules! failpoint {
    (sync $name:expr) => {
        if $crate::failpoint::armed() {
            $crate::failpoint::break_off($name, $crate::failpoint::hit_sync($name));
        }
    };
    (sync $name:expr, $error:expr) => {
        if $crate::failpoint::armed() && $crate::failpoint::hit_sync($name).is_err() {
            return ::core::result::Result::Err(::core::convert::Into::into($error));
        }
    };
    ($name:expr) => {
        if $crate::failpoint::armed() {
            $crate::failpoint::break_off($name, $crate::failpoint::hit($name).await);
        }
    };
    ($name:expr, $error:expr) => {
        if $crate::failpoint::armed() && $crate::failpoint::hit($name).await.is_err() {
            return ::core::result::Result::Err(::core::convert::Into::into($error));
        }
    };
}

/// The plan asked for an error here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("failure injected by a plan")]
pub struct Injected;

/// The plan cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("failure plan has no meaning at {0:?}, expected place=kill|error|pause[@nth]")]
pub struct PlanError(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Kill,
    Error,
    Pause,
}

#[derive(Debug)]
struct Place {
    action: Action,
    /// Counted from 1; 0 means every time.
    nth: u64,
    hits: u64,
}

struct State {
    places: HashMap<String, Place>,
    /// Places where somebody is paused.
    paused: watch::Sender<Vec<String>>,
}

fn state() -> MutexGuard<'static, State> {
    static STATE: OnceLock<Mutex<State>> = OnceLock::new();
    STATE
        .get_or_init(|| {
            Mutex::new(State {
                places: HashMap::new(),
                paused: watch::Sender::new(Vec::new()),
            })
        })
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

fn parse(plan: &str) -> Result<HashMap<String, Place>, PlanError> {
    let parts = plan
        .split([';', ','])
        .map(str::trim)
        .filter(|part| !part.is_empty());
    let place = |part: &str| {
        let (name, what) = part.split_once('=')?;
        let (action, nth) = match what.split_once('@') {
            Some((action, nth)) => (action, nth.trim().parse().ok().filter(|nth| *nth > 0)?),
            None => (what, 0),
        };
        let action = match action.trim() {
            "kill" => Action::Kill,
            "error" => Action::Error,
            "pause" => Action::Pause,
            _ => return None,
        };
        Some((name.trim().to_owned(), Place { action, nth, hits: 0 }))
    };
    parts
        .map(|part| place(part).ok_or_else(|| PlanError(part.to_owned())))
        .collect()
}

/// Sets the plan for the rest of the process's life.
///
/// # Errors
/// [`PlanError`], which changes nothing.
pub fn install(plan: &str) -> Result<(), PlanError> {
    let places = parse(plan)?;
    ARMED.store(!places.is_empty(), Ordering::Release);
    state().places = places;
    Ok(())
}

/// Keeps a plan; dropping it removes the plan and frees who is paused.
#[must_use = "dropping it removes the plan"]
pub struct Armed {
    _turn: OwnedMutexGuard<()>,
}

impl fmt::Debug for Armed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Armed")
    }
}

impl Drop for Armed {
    fn drop(&mut self) {
        ARMED.store(false, Ordering::Release);
        let mut state = state();
        state.places.clear();
        state.paused.send_modify(Vec::clear);
    }
}

/// Sets the plan until the result is dropped. The plan is the process's, so tests with plans take turns here.
///
/// # Errors
/// [`PlanError`].
pub async fn arm(plan: &str) -> Result<Armed, PlanError> {
    static TURN: OnceLock<Arc<AsyncMutex<()>>> = OnceLock::new();
    let turn = Arc::clone(TURN.get_or_init(Arc::default)).lock_owned().await;
    install(plan)?;
    Ok(Armed { _turn: turn })
}

/// Whether there is a plan.
#[inline]
pub fn armed() -> bool {
    ARMED.load(Ordering::Acquire)
}

/// How often a place of the plan was passed.
pub fn hits(name: &str) -> u64 {
    state().places.get(name).map_or(0, |place| place.hits)
}

fn due(name: &str) -> Option<Action> {
    let mut state = state();
    let place = state.places.get_mut(name)?;
    place.hits += 1;
    if place.nth != 0 && place.hits != place.nth {
        return None;
    }
    match place.action {
        Action::Kill => {
            tracing::error!(place = name, "process killed by a plan");
            std::process::abort()
        }
        action @ (Action::Error | Action::Pause) => Some(action),
    }
}

/// What [`failpoint!`](crate::failpoint!) calls in async code. Cancel safe.
///
/// # Errors
/// [`Injected`] when the plan says `error` here.
pub async fn hit(name: &str) -> Result<(), Injected> {
    match due(name) {
        None | Some(Action::Kill) => Ok(()),
        Some(Action::Error) => Err(Injected),
        Some(Action::Pause) => {
            let mut paused = {
                let state = state();
                state.paused.send_modify(|paused| paused.push(name.to_owned()));
                state.paused.subscribe()
            };
            // The sender lives as long as the process.
            let _ = paused
                .wait_for(|paused| !paused.iter().any(|place| place == name))
                .await;
            Ok(())
        }
    }
}

/// What `failpoint!(sync …)` calls.
///
/// # Errors
/// [`Injected`] when the plan says `error` here.
pub fn hit_sync(name: &str) -> Result<(), Injected> {
    match due(name) {
        Some(Action::Error) => Err(Injected),
        None | Some(Action::Kill | Action::Pause) => Ok(()),
    }
}

/// Waits until somebody is paused at a place. Cancel safe.
pub async fn until_paused(name: &str) {
    let mut paused = state().paused.subscribe();
    let _ = paused
        .wait_for(|paused| paused.iter().any(|place| place == name))
        .await;
}

/// Frees everybody who is paused at a place.
pub fn resume(name: &str) {
    state()
        .paused
        .send_modify(|paused| paused.retain(|place| place != name));
}

/// Panics at a place that has no way to return an error, when the plan asks for one.
#[doc(hidden)]
#[expect(
    clippy::panic,
    reason = "the plan asked for a failure where no error can be returned"
)]
pub fn break_off(name: &str, outcome: Result<(), Injected>) {
    if outcome.is_err() {
        panic!("failure injected at {name}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn works() -> Result<u32, Injected> {
        failpoint!("test.works", Injected);
        failpoint!("test.pauses");
        Ok(7)
    }

    #[tokio::test]
    async fn follows_the_plan_and_only_while_it_is_armed() {
        assert_eq!(works().await, Ok(7));
        let armed_here = arm("test.works=error@2; test.pauses=pause@2").await.unwrap();
        assert_eq!(works().await, Ok(7));
        assert_eq!(works().await, Err(Injected));
        assert_eq!(hits("test.works"), 2);
        let tasks = crate::tasks::Tasks::new();
        let paused = tasks.spawn("paused", works());
        until_paused("test.pauses").await;
        assert!(!paused.is_finished());
        resume("test.pauses");
        assert_eq!(paused.await.unwrap(), Ok(7));
        drop(armed_here);
        assert!(!armed());
        assert_eq!(works().await, Ok(7));
    }

    #[test]
    fn refuses_a_plan_without_meaning() {
        for bad in ["x", "x=explode", "x=kill@0", "x=kill@y"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        assert!(parse("").unwrap().is_empty());
    }
}

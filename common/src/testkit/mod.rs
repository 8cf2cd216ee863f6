//! What tests of every crate need (feature `testkit`): waiting for a state, a database per engine. Planned failures are
//! in [`crate::failpoint`]. Panics are how tests fail, so they are allowed here.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "for tests only"
)]

mod database;

use std::future::Future;
use std::time::Duration;

pub use database::{TestDb, engines};

/// The first pause between two looks; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// Looks at a state until it holds: `until(async || rows().await == 3).within(Duration::from_secs(5)).await`.
#[must_use = "it looks only once it is given a limit"]
pub fn until<F>(condition: F) -> Until<F> {
    Until { condition }
}

/// A state to wait for. Made by [`until`].
pub struct Until<F> {
    condition: F,
}

impl<F, Fut, T> Until<F>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = T>,
    T: State,
{
    /// Waits until the state holds, and gives what it found (`()` for a bool, the value for an `Option`).
    ///
    /// # Panics
    /// When it does not hold within the limit; the place of the call is named.
    #[track_caller]
    pub fn within(mut self, limit: Duration) -> impl Future<Output = T::Found> {
        let place = std::panic::Location::caller();
        async move {
            let look = async {
                let mut pause = FIRST_PAUSE;
                loop {
                    if let Some(found) = (self.condition)().await.found() {
                        return found;
                    }
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            };
            match tokio::time::timeout(limit, look).await {
                Ok(found) => found,
                Err(_) => panic!("the state waited for at {place} did not come within {limit:?}"),
            }
        }
    }
}

/// What a condition may answer.
pub trait State {
    /// What is found when it holds.
    type Found;

    /// The finding, if it holds.
    fn found(self) -> Option<Self::Found>;
}

impl State for bool {
    type Found = ();

    fn found(self) -> Option<()> {
        self.then_some(())
    }
}

impl<T> State for Option<T> {
    type Found = T;

    fn found(self) -> Option<T> {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waits_for_a_state_and_not_longer_than_the_limit() {
        let mut looks = 0;
        let found = until(|| {
            looks += 1;
            std::future::ready((looks == 4).then_some("found"))
        });
        assert_eq!(found.within(Duration::from_secs(5)).await, "found");
        let never = async { until(|| async { false }).within(Duration::from_secs(5)).await };
        let panic = futures_util::FutureExt::catch_unwind(std::panic::AssertUnwindSafe(never)).await;
        assert!(panic.is_err());
    }
}

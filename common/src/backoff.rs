//! Schedules: how long to wait before which attempt, as iterators of `Duration`.

use std::future::Future;
use std::time::Duration;

use backon::Retryable;
use rand::Rng;
use serde::{Deserialize, Serialize};

/// A schedule that grows by a factor up to a limit, as a setting and as a builder of iterators.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Exponential {
    /// The first pause. Default 100 ms.
    #[serde(with = "humantime_serde")]
    pub first: Duration,
    /// What each pause is multiplied by for the next one; below 1 counts as 1. Default 2.
    pub factor: f64,
    /// The longest pause. Default 30 s.
    #[serde(with = "humantime_serde")]
    pub max: Duration,
    /// The share of each pause that is random, 0 to 1: a pause of 10 s with 0.25 lasts 7.5 to 10 s. Default 0.25.
    pub jitter: f64,
    /// How many pauses, so one less than attempts; absent means without end. Default absent.
    pub pauses: Option<u32>,
}

impl Default for Exponential {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(100),
            factor: 2.0,
            max: Duration::from_secs(30),
            jitter: 0.25,
            pauses: None,
        }
    }
}

impl Exponential {
    /// A schedule from `first` to `max`, doubling, without end.
    pub fn new(first: Duration, max: Duration) -> Self {
        Self {
            first,
            max,
            ..Self::default()
        }
    }

    /// Ends the schedule after `pauses` pauses.
    #[must_use]
    pub fn pauses(mut self, pauses: u32) -> Self {
        self.pauses = Some(pauses);
        self
    }

    /// The pause after `failures` failures (1 or more) without randomness, for schedules kept in a database.
    pub fn after(&self, failures: u32) -> Duration {
        let exponent = i32::try_from(failures.saturating_sub(1)).unwrap_or(i32::MAX);
        let seconds = self.first.as_secs_f64() * self.factor.max(1.0).powi(exponent);
        Duration::try_from_secs_f64(seconds)
            .unwrap_or(self.max)
            .min(self.max)
    }

    /// The pauses in order.
    pub fn iter(&self) -> Pauses {
        Pauses {
            schedule: self.clone(),
            failures: 0,
        }
    }
}

impl IntoIterator for &Exponential {
    type Item = Duration;
    type IntoIter = Pauses;

    fn into_iter(self) -> Pauses {
        self.iter()
    }
}

/// The pauses of an [`Exponential`] schedule.
#[derive(Debug, Clone)]
pub struct Pauses {
    schedule: Exponential,
    failures: u32,
}

impl Iterator for Pauses {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        if self.schedule.pauses.is_some_and(|limit| self.failures >= limit) {
            return None;
        }
        self.failures = self.failures.saturating_add(1);
        Some(jittered(self.schedule.after(self.failures), self.schedule.jitter))
    }
}

/// A fixed list of pauses, after which the schedule ends. `fixed(list).chain(repeat(last))` goes on for ever.
pub fn fixed(pauses: &[Duration]) -> impl Iterator<Item = Duration> + Clone + Send + Sync + Unpin + '_ {
    pauses.iter().copied()
}

/// Takes a random share of up to `jitter` (0 to 1) off a pause.
pub fn jittered(pause: Duration, jitter: f64) -> Duration {
    pause.mul_f64(1.0 - jitter.clamp(0.0, 1.0) * rand::rng().random::<f64>())
}

/// Calls `attempt` until it succeeds, fails with an error that `retriable` refuses, or the schedule ends; then answers
/// with the last result. Dropping it stops between or inside attempts, so it is as cancel safe as one attempt.
///
/// # Errors
/// The last attempt's.
pub async fn retry<T, E, F, Fut>(
    schedule: impl Iterator<Item = Duration> + Send + Sync + Unpin,
    attempt: F,
    retriable: impl FnMut(&E) -> bool,
) -> Result<T, E>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    attempt.retry(schedule).when(retriable).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_the_limit_and_end() {
        let schedule = Exponential {
            first: Duration::from_secs(1),
            max: Duration::from_secs(5),
            jitter: 0.0,
            ..Exponential::default()
        };
        let seconds: Vec<_> = schedule
            .clone()
            .pauses(5)
            .iter()
            .map(|pause| pause.as_secs())
            .collect();
        assert_eq!(seconds, [1, 2, 4, 5, 5]);
        assert_eq!(schedule.after(u32::MAX), Duration::from_secs(5));
        let shaken = jittered(Duration::from_secs(8), 0.5);
        assert!(shaken >= Duration::from_secs(4) && shaken <= Duration::from_secs(8));
    }

    #[tokio::test(start_paused = true)]
    async fn retry_stops_at_a_final_error_and_at_the_end() {
        let mut calls = 0;
        let result: Result<(), u32> = retry(
            fixed(&[Duration::from_secs(1); 5]),
            || {
                calls += 1;
                let calls = calls;
                async move { Err(calls) }
            },
            |error| *error < 3,
        )
        .await;
        assert_eq!(result, Err(3));
        let result: Result<(), &str> =
            retry(fixed(&[Duration::from_secs(1)]), || async { Err("no") }, |_| true).await;
        assert_eq!(result, Err("no"));
    }
}

//! Time that a test can set. Ledger code takes its time from the database instead.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, SubsecRound, Utc};

/// Tells the time, in UTC and whole microseconds. Clones are the same clock.
#[derive(Debug, Clone, Default)]
pub struct Clock {
    manual: Option<Arc<Mutex<DateTime<Utc>>>>,
}

impl Clock {
    /// The system's clock.
    pub fn system() -> Self {
        Self::default()
    }

    /// A clock that stands still at `start` until a test moves it.
    pub fn manual(start: DateTime<Utc>) -> Self {
        Self {
            manual: Some(Arc::new(Mutex::new(start.trunc_subsecs(6)))),
        }
    }

    /// The current instant, cut to microseconds (what the databases keep, so that it compares equal when read back).
    pub fn now(&self) -> DateTime<Utc> {
        match &self.manual {
            Some(at) => *at.lock().unwrap_or_else(PoisonError::into_inner),
            None => Utc::now().trunc_subsecs(6),
        }
    }

    /// Time passed since `start`; zero when the clock went backwards.
    pub fn elapsed(&self, start: DateTime<Utc>) -> Duration {
        (self.now() - start).to_std().unwrap_or_default()
    }

    /// Moves a manual clock on. Does nothing to the system's clock.
    pub fn advance(&self, by: Duration) {
        if let Some(at) = &self.manual {
            let mut at = at.lock().unwrap_or_else(PoisonError::into_inner);
            *at = (*at + by).trunc_subsecs(6);
        }
    }

    /// Sets a manual clock. Does nothing to the system's clock.
    pub fn set(&self, to: DateTime<Utc>) {
        if let Some(at) = &self.manual {
            *at.lock().unwrap_or_else(PoisonError::into_inner) = to.trunc_subsecs(6);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_moves_only_when_told_and_keeps_microseconds() {
        let clock = Clock::manual(DateTime::from_timestamp_nanos(1_700_000_000_123_456_789));
        let start = clock.now();
        assert_eq!(start.timestamp_subsec_nanos(), 123_456_000);
        assert_eq!(clock.now(), start);
        clock.clone().advance(Duration::from_secs(60));
        assert_eq!(clock.elapsed(start), Duration::from_secs(60));
        assert_eq!(clock.elapsed(start + Duration::from_secs(90)), Duration::ZERO);
    }
}

//! How many frames a client may send within a second.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

const WINDOW: Duration = Duration::from_secs(1);

/// Counts frames over a sliding second.
pub(crate) struct Rate {
    limit: usize,
    seen: VecDeque<Instant>,
}

impl Rate {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            seen: VecDeque::new(),
        }
    }

    /// Counts a frame; false when it is one too many.
    pub(crate) fn allows(&mut self) -> bool {
        let at = Instant::now();
        while self
            .seen
            .front()
            .is_some_and(|first| at.duration_since(*first) >= WINDOW)
        {
            self.seen.pop_front();
        }
        if self.seen.len() >= self.limit {
            return false;
        }
        self.seen.push_back(at);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn w_008_one_frame_too_many_within_a_second() {
        let mut rate = Rate::new(200);
        for _ in 0..200 {
            assert!(rate.allows());
        }
        assert!(!rate.allows());
        tokio::time::advance(WINDOW).await;
        assert!(rate.allows());
    }
}

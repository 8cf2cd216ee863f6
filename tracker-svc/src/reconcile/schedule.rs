//! When a bill is looked for. Pure.

use std::time::Duration;

/// Pauses before the looks that happen by themselves: after the settling, then after each look in vain.
const PAUSES: [Duration; 5] = [
    crate::ledger::FIRST_LOOK,
    Duration::from_mins(5),
    Duration::from_mins(30),
    Duration::from_mins(120),
    Duration::from_mins(720),
];

/// The pause after so many looks in vain; `None` when that was the last.
#[must_use]
pub fn after(attempts: i32) -> Option<Duration> {
    usize::try_from(attempts)
        .ok()
        .and_then(|attempts| PAUSES.get(attempts))
        .copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g_067_five_looks_within_876_minutes_and_no_sixth() {
        let mut at = Duration::ZERO;
        let mut minutes = Vec::new();
        for attempts in 0.. {
            let Some(pause) = after(attempts) else { break };
            at += pause;
            minutes.push(at.as_secs() / 60);
        }
        assert_eq!(minutes, [1, 6, 36, 156, 876]);
        assert_eq!(after(-1), None);
    }
}

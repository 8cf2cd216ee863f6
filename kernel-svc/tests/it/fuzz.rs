//! Whatever comes in is answered: no panic, no hang, no overflow of the stack.
//!
//! Each test runs for about two seconds, or for `ATELIER_FUZZ_SECONDS`. A failure names the seed of its input;
//! `ATELIER_FUZZ_SEED` starts from there, and `ATELIER_FUZZ_TRACE` prints every seed before its input is tried, for
//! those failures that end the process.

mod correlation;
mod loader;
mod random;
mod values;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::{Duration, Instant},
};

use random::Random;

/// Longest time for one input. Generous: the machine may be busy with other things.
const BOX: Duration = Duration::from_secs(20);

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}
/// Tries inputs until the time is up.
fn fuzz(name: &str, mut attempt: impl FnMut(&mut Random)) {
    let time = Duration::from_secs(number("ATELIER_FUZZ_SECONDS").unwrap_or(2));
    let clock = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
    let first = number("ATELIER_FUZZ_SEED").unwrap_or(u64::try_from(clock % u128::from(u64::MAX)).unwrap());
    let trace = std::env::var_os("ATELIER_FUZZ_TRACE").is_some();
    let start = Instant::now();
    let (mut tried, mut slowest, mut worst) = (0_u64, Duration::ZERO, first);
    while start.elapsed() < time || tried == 0 {
        let seed = first.wrapping_add(tried);
        if trace {
            eprintln!("{name}: seed {seed}");
        }
        let began = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| attempt(&mut Random::new(seed))));
        let took = began.elapsed();
        if let Err(panic) = outcome {
            eprintln!("{name}: failed with ATELIER_FUZZ_SEED={seed}");
            std::panic::resume_unwind(panic);
        }
        assert!(took < BOX, "{name}: {took:?} with ATELIER_FUZZ_SEED={seed}");
        if took > slowest {
            (slowest, worst) = (took, seed);
        }
        tried += 1;
    }
    eprintln!("{name}: {tried} inputs, the slowest took {slowest:?} (seed {worst})");
}

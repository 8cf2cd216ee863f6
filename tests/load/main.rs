//! How fast it is, printed as tables, with what the machine can do at best beside it; nothing here asserts a time. Small by
//! default, so that it runs with the tests; `ATELIER_LOAD=full` measures for longer, best in a release build:
//! `ATELIER_LOAD=full cargo test --release --workspace --test load -- --nocapture --test-threads 1`.

mod engine;
mod floor;
mod graphs;
mod growth;
mod memory;
mod socket;
mod stored;

use std::time::Duration;

/// As in the command itself.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Whether to measure for as long as it takes to see more than noise.
fn full() -> bool {
    std::env::var_os("ATELIER_LOAD").is_some()
}
/// How long one figure is measured for.
fn seconds() -> Duration {
    Duration::from_secs(if full() { 10 } else { 1 })
}
/// How often a measurement is repeated; the best one counts, since only others' work makes it slower.
fn rounds() -> usize {
    if full() { 7 } else { 1 }
}
/// So many a second.
fn rate(count: usize, took: Duration) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX)) / took.as_secs_f64()
}
/// Microseconds for one.
fn per(took: Duration, count: usize) -> f64 {
    took.as_secs_f64() * 1e6 / f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}
/// The largest resident memory that this process had so far, in MiB.
fn peak_mib() -> Option<u64> {
    status_mib("self", "VmHWM:")
}
/// A line of a process's status, in MiB.
fn status_mib(process: &str, name: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with(name))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1024)
}

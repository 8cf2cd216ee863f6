//! How a run is to behave.

use std::{fmt, sync::Arc, time::Duration};

use super::supervise::Supervisor;

use atelier_common::clock::Clock;

/// Options of a run.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// Values that nobody read, edges that stayed open and control events without an answer fail the run.
    /// Default off.
    pub strict: bool,
    /// Values that an input holds before its producers wait; `None`: as many as come. Default none.
    pub buffer_limit: Option<usize>,
    /// Bytes that the values of the run may take while they wait for their consumers, roughly; producers wait
    /// beyond it, and one value that is larger fails its node. Default 256 MiB.
    pub byte_budget: usize,
    /// How long running node code may go on after a cancel before it is dropped. Default 5 seconds.
    pub cancel_grace: Duration,
    /// How long the code of a node may take to clean up when it is over, before it is dropped with a warning; that of a
    /// cancelled run has the grace period. Default 30 seconds.
    pub finalize_limit: Duration,
    /// Keys for which an input may hold values that cannot be used yet. Default 10,000.
    pub max_pending_keys: usize,
    /// Values that an input may hold for one key. Default 10,000.
    pub max_pending_messages_per_key: usize,
    /// How long a run may stand still, with everybody waiting for somebody else and nothing to come from
    /// outside, before it fails. Default 10 seconds.
    pub stall_timeout: Duration,
    /// Waits that are longer than this suspend the run, for a host that wakes runs at a time; `None`: they keep
    /// it running. Default none.
    pub longest_wait: Option<Duration>,
    /// The time that node code sees. Default the system's.
    pub clock: Clock,
    /// Who is asked what to do when node code fails. Default nobody: failures stand.
    pub supervision: Supervision,
}
/// Who supervises a run.
#[derive(Clone, Default)]
pub struct Supervision(pub Option<Arc<dyn Supervisor>>);
impl fmt::Debug for Supervision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() {
            "supervised"
        } else {
            "unsupervised"
        })
    }
}
impl Default for RunOptions {
    fn default() -> Self {
        Self {
            strict: false,
            buffer_limit: None,
            byte_budget: 256 * 1024 * 1024,
            cancel_grace: Duration::from_secs(5),
            finalize_limit: Duration::from_secs(30),
            max_pending_keys: 10_000,
            max_pending_messages_per_key: 10_000,
            stall_timeout: Duration::from_secs(10),
            longest_wait: None,
            clock: Clock::system(),
            supervision: Supervision::default(),
        }
    }
}

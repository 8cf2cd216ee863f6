//! The metrics of this service.

use std::time::Duration;

use atelier_common::metrics::{Kind, Metric};
use metrics::Unit;

/// Calls that were settled, by `provider`, `capability` and `outcome`.
pub const CALLS: &str = "atelier_provider_calls_total";
/// Seconds that a call took, by `provider` and `capability`.
pub const CALL_DURATION: &str = "atelier_provider_call_duration_seconds";
/// Calls that are driven.
pub const RUNNING: &str = "atelier_provider_running";
/// Paid requests that were sent, by `provider`.
pub const SUBMITS: &str = "atelier_provider_submits_total";
/// Cancels that were sent to a provider, by `provider` and `outcome`.
pub const CANCELS: &str = "atelier_provider_cancels_total";
/// Receipts that were recorded outside of a call, by `provider`.
pub const RECEIPT_OUTSIDE_SCOPE: &str = "atelier_provider_receipt_outside_scope_total";
/// Progress messages that a slow client did not get.
pub const PROGRESS_DROPPED: &str = "atelier_provider_progress_dropped_total";
/// Writes that wait for the ledger.
pub const SPOOL_ENTRIES: &str = "atelier_provider_spool_entries";
/// Jobs of gone drivers that were taken up, by `provider`.
pub const RESUMED: &str = "atelier_provider_resumed_total";
/// Looks at bills, by `provider` and `outcome`.
pub const RECONCILES: &str = "atelier_provider_reconciles_total";

/// Unit and sentence of each.
pub const ALL: &[Metric] = &[
    Metric {
        name: CALLS,
        kind: Kind::Counter,
        unit: Unit::Count,
        help: "Calls that were settled.",
    },
    Metric {
        name: CALL_DURATION,
        kind: Kind::Histogram,
        unit: Unit::Seconds,
        help: "Time that a call took.",
    },
    Metric {
        name: RUNNING,
        kind: Kind::Gauge,
        unit: Unit::Count,
        help: "Calls that are driven.",
    },
    Metric {
        name: SUBMITS,
        kind: Kind::Counter,
        unit: Unit::Count,
        help: "Paid requests that were sent.",
    },
    Metric {
        name: CANCELS,
        kind: Kind::Counter,
        unit: Unit::Count,
        help: "Cancels that were sent to a provider.",
    },
    Metric {
        name: RECEIPT_OUTSIDE_SCOPE,
        kind: Kind::Counter,
        unit: Unit::Count,
        help: "Receipts that were recorded outside of a call.",
    },
    Metric {
        name: PROGRESS_DROPPED,
        kind: Kind::Counter,
        unit: Unit::Count,
        help: "Progress messages that a slow client did not get.",
    },
    Metric {
        name: RESUMED,
        kind: Kind::Counter,
        unit: Unit::Count,
        help: "Jobs of drivers that were gone and that were taken up.",
    },
    Metric {
        name: RECONCILES,
        kind: Kind::Counter,
        unit: Unit::Count,
        help: "Looks at bills.",
    },
    Metric {
        name: SPOOL_ENTRIES,
        kind: Kind::Gauge,
        unit: Unit::Count,
        help: "Writes that wait for the ledger.",
    },
];

/// Counts a settled call.
pub(crate) fn call(provider: &'static str, capability: &'static str, outcome: &'static str, took: Duration) {
    metrics::counter!(CALLS, "provider" => provider, "capability" => capability, "outcome" => outcome)
        .increment(1);
    metrics::histogram!(CALL_DURATION, "provider" => provider, "capability" => capability)
        .record(took.as_secs_f64());
}

/// Counts a call in, and out again when dropped.
#[must_use]
pub(crate) struct InFlight(());
impl InFlight {
    pub(crate) fn enter() -> Self {
        metrics::gauge!(RUNNING).increment(1.0);
        Self(())
    }
}
impl Drop for InFlight {
    fn drop(&mut self) {
        metrics::gauge!(RUNNING).decrement(1.0);
    }
}

/// Counts a paid request.
pub(crate) fn submit(provider: &'static str) {
    metrics::counter!(SUBMITS, "provider" => provider).increment(1);
}

/// Counts a cancel.
pub(crate) fn cancel(provider: &'static str, outcome: &'static str) {
    metrics::counter!(CANCELS, "provider" => provider, "outcome" => outcome).increment(1);
}

/// Counts a job that was taken up.
pub(crate) fn resumed(provider: &'static str) {
    metrics::counter!(RESUMED, "provider" => provider).increment(1);
}

/// Counts a look at a bill.
pub(crate) fn reconcile(provider: &'static str, outcome: &'static str) {
    metrics::counter!(RECONCILES, "provider" => provider, "outcome" => outcome).increment(1);
}

/// Counts a receipt that belongs to no call.
pub(crate) fn receipt_outside_scope(provider: &'static str) {
    metrics::counter!(RECEIPT_OUTSIDE_SCOPE, "provider" => provider).increment(1);
}

/// Counts progress that was dropped.
pub(crate) fn progress_dropped() {
    metrics::counter!(PROGRESS_DROPPED).increment(1);
}

/// Tells how many writes wait.
pub(crate) fn spool_entries(count: usize) {
    metrics::gauge!(SPOOL_ENTRIES).set(f64::from(u32::try_from(count).unwrap_or(u32::MAX)));
}

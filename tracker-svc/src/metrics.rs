//! The metrics of the ledger. Names are a public interface.

use atelier_common::metrics::{Kind, Metric};
use metrics::Unit;

/// Rows opened, by `provider` and `capability`.
pub const OPENED: &str = "atelier_tracker_opened_total";
/// Rows that were not opened because of a budget or a bound.
pub const REFUSED: &str = "atelier_tracker_refused_total";
/// Rows that left running, by `status`.
pub const SETTLED: &str = "atelier_tracker_settled_total";
/// Rows that settled with an unknown cost although something was sent.
pub const UNPRICED: &str = "atelier_tracker_unpriced_total";
/// Writes of drivers that were refused because they lost their row.
pub const FENCED: &str = "atelier_tracker_fenced_total";
/// Outcomes that came after another one, by `status` of the late one.
pub const CONFLICTS: &str = "atelier_tracker_conflicts_total";
/// Amounts that were refused and left out.
pub const BAD_AMOUNTS: &str = "atelier_tracker_refused_amounts_total";
/// Open rows.
pub const RUNNING: &str = "atelier_tracker_running";
/// Rows that wait for their bill.
pub const RECONCILE_QUEUE: &str = "atelier_tracker_reconcile_queue";
/// Drivers connected here.
pub const FOLLOWERS: &str = "atelier_tracker_followers";
/// Seconds that a sweep took.
pub const SWEEP_DURATION: &str = "atelier_tracker_sweep_duration_seconds";

/// Looks at bills that were reported, by `outcome`.
pub const RECONCILED: &str = "atelier_tracker_reconciled_total";
/// Bills that were more than ten times, or less than a tenth, of what the row said before.
pub const BILL_SURPRISES: &str = "atelier_tracker_bill_surprises_total";
/// Rows that were given to another driver.
pub const ADOPTED: &str = "atelier_tracker_adopted_total";

/// All of them.
pub const ALL: &[Metric] = &[
    Metric {
        name: RECONCILED,
        kind: Kind::Counter,
        unit: Unit::Count,
        help: "Looks at bills that were reported.",
    },
    Metric {
        name: BILL_SURPRISES,
        kind: Kind::Counter,
        unit: Unit::Count,
        help: "Bills that differ from the cost before by more than ten times.",
    },
    Metric {
        name: ADOPTED,
        kind: Kind::Counter,
        unit: Unit::Count,
        help: "Generations given to another driver because theirs was gone.",
    },
    Metric {
        name: OPENED,
        kind: Kind::Counter,
        unit: Unit::Count,
        help: "Generations opened.",
    },
    Metric {
        name: REFUSED,
        kind: Kind::Counter,
        unit: Unit::Count,
        help: "Generations not opened because of a budget or a bound.",
    },
    Metric {
        name: SETTLED,
        kind: Kind::Counter,
        unit: Unit::Count,
        help: "Generations that left running.",
    },
    Metric {
        name: UNPRICED,
        kind: Kind::Counter,
        unit: Unit::Count,
        help: "Generations settled without a cost although something was sent.",
    },
    Metric {
        name: FENCED,
        kind: Kind::Counter,
        unit: Unit::Count,
        help: "Writes refused because the driver lost the row.",
    },
    Metric {
        name: CONFLICTS,
        kind: Kind::Counter,
        unit: Unit::Count,
        help: "Outcomes that came after another one.",
    },
    Metric {
        name: BAD_AMOUNTS,
        kind: Kind::Counter,
        unit: Unit::Count,
        help: "Amounts that were no amounts and were left out.",
    },
    Metric {
        name: RUNNING,
        kind: Kind::Gauge,
        unit: Unit::Count,
        help: "Open generations.",
    },
    Metric {
        name: RECONCILE_QUEUE,
        kind: Kind::Gauge,
        unit: Unit::Count,
        help: "Generations that wait for their bill.",
    },
    Metric {
        name: FOLLOWERS,
        kind: Kind::Gauge,
        unit: Unit::Count,
        help: "Drivers connected here.",
    },
    Metric {
        name: SWEEP_DURATION,
        kind: Kind::Histogram,
        unit: Unit::Seconds,
        help: "Time that a sweep took.",
    },
];

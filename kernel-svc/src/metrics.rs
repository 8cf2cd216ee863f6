//! The metrics of the kernel. Names are a public interface.

use atelier_common::metrics::{Kind, Metric};
use metrics::Unit;

/// Events shown to subscribers.
pub const EVENTS: &str = "atelier_kernel_events_total";
/// Runs that this process drives, waiting ones included.
pub const RUNNING: &str = "atelier_kernel_running";
/// Streams of workers that are open.
pub const WORKERS: &str = "atelier_kernel_workers";

/// All of them.
pub const ALL: &[Metric] = &[
    Metric {
        name: EVENTS,
        kind: Kind::Counter,
        unit: Unit::Count,
        help: "Events shown to subscribers of runs.",
    },
    Metric {
        name: RUNNING,
        kind: Kind::Gauge,
        unit: Unit::Count,
        help: "Runs that this process drives, waiting ones included.",
    },
    Metric {
        name: WORKERS,
        kind: Kind::Gauge,
        unit: Unit::Count,
        help: "Streams of workers that are open.",
    },
];

//! The metrics of the gateway.

use atelier_common::metrics::{Kind, Metric};
use metrics::Unit;

/// HTTP requests answered, by `method`, `route` and `status`.
pub const REQUESTS: &str = "atelier_gateway_requests_total";
/// Open sockets.
pub const SOCKETS: &str = "atelier_gateway_sockets";
/// Clients that watch a run, over a socket or server-sent events.
pub const WATCHERS: &str = "atelier_gateway_watchers";
/// Frames given up for a slow client, by `kind`.
pub const DROPPED: &str = "atelier_gateway_frames_dropped_total";
/// Sockets closed because their client did not read.
pub const SLOW: &str = "atelier_gateway_slow_consumers_total";

/// The metrics of this crate.
pub const ALL: &[Metric] = &[
    Metric {
        name: REQUESTS,
        kind: Kind::Counter,
        unit: Unit::Count,
        help: "HTTP requests answered.",
    },
    Metric {
        name: SOCKETS,
        kind: Kind::Gauge,
        unit: Unit::Count,
        help: "Open sockets.",
    },
    Metric {
        name: WATCHERS,
        kind: Kind::Gauge,
        unit: Unit::Count,
        help: "Clients that watch a run.",
    },
    Metric {
        name: DROPPED,
        kind: Kind::Counter,
        unit: Unit::Count,
        help: "Frames given up for a slow client.",
    },
    Metric {
        name: SLOW,
        kind: Kind::Counter,
        unit: Unit::Count,
        help: "Sockets closed because their client did not read.",
    },
];

/// Counts up a gauge for as long as it lives.
pub(crate) struct Counted(&'static str);

impl Counted {
    pub(crate) fn new(gauge: &'static str) -> Self {
        metrics::gauge!(gauge).increment(1.0);
        Self(gauge)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        metrics::gauge!(self.0).decrement(1.0);
    }
}

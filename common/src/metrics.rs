//! The Prometheus page and the metrics of this crate. Each service keeps its own constants in its own `metrics.rs`.

use std::sync::OnceLock;

use metrics::Unit;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

/// Calls answered, by `method` and `code`.
pub const RPC_SERVER_CALLS: &str = "atelier_rpc_server_calls_total";
/// Seconds from a call's arrival to its last byte, by `method`.
pub const RPC_SERVER_DURATION: &str = "atelier_rpc_server_duration_seconds";
/// Calls being answered.
pub const RPC_SERVER_RUNNING: &str = "atelier_rpc_server_running";
/// Calls refused because too many were being answered.
pub const RPC_SERVER_SHED: &str = "atelier_rpc_server_shed_total";
/// Operations per group commit, by `queue`.
pub const GROUP_COMMIT_SIZE: &str = "atelier_db_group_commit_size";
/// Seconds a group commit took, by `queue`.
pub const GROUP_COMMIT_DURATION: &str = "atelier_db_group_commit_duration_seconds";
/// Group commits that failed as a whole and were taken apart, by `queue`.
pub const GROUP_COMMIT_SPLIT: &str = "atelier_db_group_commit_split_total";

/// Upper bounds of the buckets of every histogram whose name ends in `_seconds`.
const SECONDS: [f64; 15] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0, 600.0,
];

static HANDLE: OnceLock<PrometheusHandle> = OnceLock::new();

/// What a metric is, for the page and the documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// A distribution.
    Histogram,
}

/// A metric's name, kind, unit and sentence: one row of `docs/metrics.md`.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// The name on the page.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
    /// Its unit.
    pub unit: Unit,
    /// What it counts, in a sentence.
    pub help: &'static str,
}

/// The metrics of this crate.
pub const ALL: &[Metric] = &[
    Metric {
        name: RPC_SERVER_CALLS,
        kind: Kind::Counter,
        unit: Unit::Count,
        help: "Calls answered.",
    },
    Metric {
        name: RPC_SERVER_DURATION,
        kind: Kind::Histogram,
        unit: Unit::Seconds,
        help: "Time from a call's arrival to its last byte.",
    },
    Metric {
        name: RPC_SERVER_RUNNING,
        kind: Kind::Gauge,
        unit: Unit::Count,
        help: "Calls being answered.",
    },
    Metric {
        name: RPC_SERVER_SHED,
        kind: Kind::Counter,
        unit: Unit::Count,
        help: "Calls refused because too many were being answered.",
    },
    Metric {
        name: GROUP_COMMIT_SIZE,
        kind: Kind::Histogram,
        unit: Unit::Count,
        help: "Operations per group commit.",
    },
    Metric {
        name: GROUP_COMMIT_DURATION,
        kind: Kind::Histogram,
        unit: Unit::Seconds,
        help: "Time that a group commit took.",
    },
    Metric {
        name: GROUP_COMMIT_SPLIT,
        kind: Kind::Counter,
        unit: Unit::Count,
        help: "Group commits that failed as a whole and were taken apart.",
    },
];

/// Installs the process's recorder, once; later calls do nothing. Call it before the first metric is touched.
/// When a program brought its own recorder, that one stays and the page is empty.
pub fn install() {
    HANDLE.get_or_init(|| {
        let builder = PrometheusBuilder::new();
        let builder = match builder.set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS) {
            Ok(builder) => builder,
            Err(_) => PrometheusBuilder::new(),
        };
        let recorder = builder.build_recorder();
        let handle = recorder.handle();
        if metrics::set_global_recorder(recorder).is_err() {
            tracing::warn!("another metrics recorder is installed, the metrics page will be empty");
        }
        handle
    });
    describe(ALL);
}

/// Tells the recorder unit and sentence of metrics. Safe to repeat.
pub fn describe(metrics: &[Metric]) {
    for metric in metrics {
        match metric.kind {
            Kind::Counter => metrics::describe_counter!(metric.name, metric.unit, metric.help),
            Kind::Gauge => metrics::describe_gauge!(metric.name, metric.unit, metric.help),
            Kind::Histogram => metrics::describe_histogram!(metric.name, metric.unit, metric.help),
        }
    }
}

/// The page in the Prometheus text format; empty before [`install`].
pub fn render() -> String {
    HANDLE.get().map(PrometheusHandle::render).unwrap_or_default()
}

/// Moves samples of histograms to where they are counted. Without it they pile up until the page is read; the process
/// calls it every few seconds.
pub fn upkeep() {
    if let Some(handle) = HANDLE.get() {
        handle.run_upkeep();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_what_was_counted_with_its_sentence() {
        install();
        install();
        metrics::counter!(RPC_SERVER_CALLS, "method" => "test", "code" => "ok").increment(2);
        metrics::histogram!(RPC_SERVER_DURATION, "method" => "test").record(0.02);
        upkeep();
        let page = render();
        assert!(
            page.contains("atelier_rpc_server_calls_total{method=\"test\",code=\"ok\"} 2"),
            "{page}"
        );
        assert!(
            page.contains("# HELP atelier_rpc_server_calls_total Calls answered."),
            "{page}"
        );
        assert!(page.contains("le=\"0.025\""), "{page}");
    }
}

//! Names of the kernel's metrics; they are a public interface.

/// Events shown to subscribers. Counter.
pub const EVENTS: &str = "atelier_kernel_events_total";
/// Runs that this process drives, waiting ones included. Gauge.
pub const RUNNING: &str = "atelier_kernel_running";

/// Describes the metrics to the recorder.
pub fn describe() {
    metrics::describe_counter!(EVENTS, metrics::Unit::Count, "events shown to subscribers of runs");
    metrics::describe_gauge!(RUNNING, metrics::Unit::Count, "runs that this process drives, waiting ones included");
}

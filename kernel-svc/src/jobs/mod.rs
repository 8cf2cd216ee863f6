//! Runs: their rows, their slots, who drives them, and what becomes of those whose process died.
//!
//! What does not live here: how a graph runs (`run/`) and what is shown of it (`relay/`, `log/`).

mod admission;
mod drive;
mod driver;
mod escalations;
mod inputs;
mod inside;
mod leases;
mod recovery;
mod saved;
mod store;
mod suspended;

pub use admission::{Admission, Ticket};
pub use driver::{Jobs, Started, read_graph};
pub use inside::Inner;
pub use store::{NewJob, Page, Parent, Store, to_proto};

use atelier_proto::kernel::v1::JobStatus;

/// The word of a status, in rows and on the wire.
#[must_use]
pub fn status_name(status: JobStatus) -> &'static str {
    match status {
        JobStatus::Unspecified | JobStatus::Running => "running",
        JobStatus::Queued => "queued",
        JobStatus::Completed => "completed",
        JobStatus::Failed => "failed",
        JobStatus::Cancelled => "cancelled",
        JobStatus::Suspended => "suspended",
    }
}
/// The status of a word.
#[must_use]
pub fn status_of(name: &str) -> JobStatus {
    match name {
        "queued" => JobStatus::Queued,
        "running" => JobStatus::Running,
        "completed" => JobStatus::Completed,
        "failed" => JobStatus::Failed,
        "cancelled" => JobStatus::Cancelled,
        "suspended" => JobStatus::Suspended,
        _ => JobStatus::Unspecified,
    }
}
/// Whether nothing follows a status.
#[must_use]
pub fn is_terminal(name: &str) -> bool {
    matches!(name, "completed" | "failed" | "cancelled" | "suspended")
}

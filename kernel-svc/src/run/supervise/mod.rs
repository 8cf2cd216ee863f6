//! Asks somebody what is to become of an invocation whose code failed (kernel specification 8.7).
//!
//! Here: what a supervisor is told and may answer, the bounds of asking, and the account of what an attempt cost. Not
//! here: who the supervisor is; one that people answer is in `jobs/escalations.rs`. Without a supervisor nothing of this
//! exists in a run.

mod account;
mod check;
mod desk;
mod escalation;
mod hook;
mod known;
mod redact;
mod signature;
#[cfg(test)]
mod tests;
mod view;

use async_trait::async_trait;

pub(crate) use account::Account;
pub(crate) use desk::Desk;
pub use desk::Intervention;
pub use escalation::{Action, DecidedBy, Decision, Escalation, Scope, Verdict};
pub(crate) use hook::{Effect, Failed, Shape, Tries};
pub(crate) use known::secrets;
pub use view::{NodeOutputs, RunView};

/// Decides what is to become of failed invocations. One at a time in a run, at most ten in all, each within a minute;
/// whoever fails, panics, is too slow or answers what was not offered lets the failure stand.
#[async_trait]
pub trait Supervisor: Send + Sync {
    /// Called once in a run, before the first question.
    ///
    /// # Errors
    /// It cannot be reached: the run goes on, and its failures stand.
    async fn attach(&self) -> Result<(), SupervisorError> {
        Ok(())
    }
    /// Answers one question. Dropped when it takes longer than a minute, or when the run is cancelled.
    ///
    /// # Errors
    /// It has no answer.
    async fn decide(&self, escalation: std::sync::Arc<Escalation>) -> Result<Verdict, SupervisorError>;
}

/// A supervisor has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SupervisorError(pub String);

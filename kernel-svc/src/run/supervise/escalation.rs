//! The question and the answer.

use std::sync::Arc;

use atelier_proto::value::Map;
use rust_decimal::Decimal;

use super::view::RunView;

/// An invocation failed: what is known about it, redacted and cut, and what may be done.
#[derive(Debug, Clone)]
pub struct Escalation {
    /// Names the question.
    pub id: String,
    /// The node.
    pub node_id: Arc<str>,
    /// Its type.
    pub node_type: Arc<str>,
    /// The items that the invocation belongs to: iteration and index, outermost first.
    pub lineage: Vec<(Arc<str>, u32)>,
    /// The same as text, for instance `foreach:items=1`; empty outside of iterations.
    pub invocation_key: String,
    /// What may be answered. `fail` always is.
    pub allowed: Vec<Action>,
    /// What went wrong.
    pub detail: String,
    /// Machine-readable cause.
    pub code: Option<String>,
    /// Equal for failures of the same kind; `None` when nothing is known about it.
    pub failure_signature: Option<String>,
    /// Outputs that the node has at hand for the case.
    pub candidate_output: Option<Map>,
    /// What the code was called with; empty for a node that reads its own stream.
    pub inputs: Map,
    /// Which attempt failed, from 1.
    pub attempt: u32,
    /// What calls of this attempt cost, in US dollars; `None`: not known.
    pub spent_usd: Option<Decimal>,
    /// Assets that this attempt made; at most 100 are named.
    pub created_assets: Vec<String>,
    /// Whether running the code again with equal inputs is harmless.
    pub retry_safe: bool,
    /// Whether something of the invocation went out already.
    pub emitted: bool,
    /// Outputs of the run that belong to the same items. No part of the event.
    pub view: RunView,
}

/// What may be done about a failed invocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Calls the code again with the same inputs.
    Retry,
    /// Takes the given outputs, else those that the node proposed, for its result.
    Substitute,
    /// Leaves the invocation out: it brings nothing, the node goes on.
    Skip,
    /// Keeps what went out and ends the stream there.
    EndStream,
    /// Lets the failure stand.
    Fail,
}
impl Action {
    /// Its name in events.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Substitute => "substitute",
            Self::Skip => "skip",
            Self::EndStream => "end_stream",
            Self::Fail => "fail",
        }
    }
}

/// For what an answer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    /// This invocation.
    #[default]
    Invocation,
    /// All later failures of the node with the same signature. Only `skip` and `fail` stick.
    Signature,
}

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// What to do.
    pub action: Action,
    /// For what it holds.
    pub scope: Scope,
    /// With `substitute`: a value for every output that the node declares.
    pub outputs: Option<Map>,
    /// Why, for people.
    pub reason: Option<String>,
    /// What it cost to decide, in US dollars.
    pub cost_usd: Option<Decimal>,
}
impl Verdict {
    /// An answer for this invocation alone.
    #[must_use]
    pub fn new(action: Action) -> Self {
        Self {
            action,
            scope: Scope::Invocation,
            outputs: None,
            reason: None,
            cost_usd: None,
        }
    }
    pub(super) fn fail(reason: impl Into<String>) -> Self {
        Self {
            reason: Some(reason.into()),
            ..Self::new(Action::Fail)
        }
    }
}

/// Who decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecidedBy {
    /// The supervisor.
    Agent,
    /// An earlier answer that holds for all failures of this kind.
    Sticky,
    /// Nobody was asked, or the answer did not count: the run has used up its questions or the invocation its attempts.
    Bounds,
    /// There was no answer.
    Default,
    /// The answer was not allowed.
    Kernel,
}
impl DecidedBy {
    /// Its name in events.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Sticky => "sticky",
            Self::Bounds => "bounds",
            Self::Default => "default",
            Self::Kernel => "kernel",
        }
    }
}

/// What became of a question.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// What is done. Not what was answered, when that was not allowed: then it is `fail`, with the reason.
    pub verdict: Verdict,
    /// Who decided.
    pub decided_by: DecidedBy,
}

//! What can go wrong, and its one form on the wire.

use atelier_common::db::DbError;
use atelier_proto::reason::{self, Problem};
use sea_orm::DbErr;
use tonic::{Code, Status};

use crate::budgets::{Exceeded, Usage};
use crate::charge;

const DOMAIN: &str = "tracker.atelier";

/// What can go wrong, by what the caller can do about it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No such row of this user.
    #[error("no such generation")]
    NotFound,
    /// A field is wrong.
    #[error("{field} {wrong}")]
    Invalid {
        /// The field.
        field: &'static str,
        /// What is wrong with it.
        wrong: String,
    },
    /// The token is of another list, or was edited.
    #[error("the page token does not belong to this list")]
    PageToken,
    /// The prefix fits several rows.
    #[error("several generations start with {0}")]
    Ambiguous(String),
    /// The key was used with another request.
    #[error("the idempotency key was used with another request")]
    KeyConflict {
        /// The row that has the key, when it is the caller's.
        generation_id: Option<String>,
    },
    /// Another driver has the row, or the driver was declared dead.
    #[error("the row is not driven by {instance} at epoch {epoch}")]
    Fenced {
        /// The driver that was refused.
        instance: String,
        /// Its epoch.
        epoch: i64,
    },
    /// The row is settled and its attempt has another request id.
    #[error("the attempt has another request id")]
    AttemptBound,
    /// Outputs are still being saved.
    #[error("outputs are still being saved")]
    OutputsOpen,
    /// Somebody is looking for the bill already.
    #[error("the bill of the generation is being looked for")]
    ReconcileInProgress,
    /// The row is not in the status that the call needs.
    #[error("the generation is {0}")]
    NotInStatus(&'static str),
    /// The instance is not known, or its lease ended.
    #[error("the lease of the instance has ended")]
    LeaseEnded,
    /// The call would go over a budget.
    #[error("the call would go over the budget of this {}", .0.scope.kind())]
    Exceeded(Box<Exceeded>),
    /// The call has no known price, and a budget does not let it pass.
    #[error("the price of the call is not known, and a budget lets no such call pass")]
    Unpriced {
        /// The budget.
        budget_id: String,
    },
    /// As many background calls of the scope go on as may.
    #[error("{} background calls go on, which is as many as may", .open.len())]
    BackgroundLimit {
        /// The calls that go on.
        open: Vec<String>,
    },
    /// No such budget of this user.
    #[error("no such budget")]
    BudgetNotFound,
    /// Only an admin may change this budget.
    #[error("the budget was set by an admin")]
    BudgetManaged,
    /// Only an admin may ask this.
    #[error("this takes the scope admin")]
    AdminOnly,
    /// Too many wait already.
    #[error("too many callers wait for rows")]
    Overloaded,
    /// The service is going down.
    #[error("the ledger is going down")]
    Draining,
    /// The database cannot be reached or refused.
    #[error("cannot reach the ledger")]
    Store(#[source] DbError),
    /// A row holds what no writer of ours writes.
    #[error("a row of the ledger cannot be read")]
    Corrupt(&'static str),
}

impl From<DbError> for Error {
    fn from(error: DbError) -> Self {
        Self::Store(error)
    }
}

impl From<DbErr> for Error {
    fn from(error: DbErr) -> Self {
        Self::Store(error.into())
    }
}

impl Error {
    /// A field is wrong.
    pub fn invalid(field: &'static str, wrong: impl Into<String>) -> Self {
        Self::Invalid {
            field,
            wrong: wrong.into(),
        }
    }

    /// Code and reason.
    #[must_use]
    pub const fn parts(&self) -> (Code, &'static str) {
        match self {
            Self::NotFound => (Code::NotFound, reason::GENERATION_NOT_FOUND),
            Self::Invalid { .. } => (Code::InvalidArgument, reason::INVALID_FIELD),
            Self::PageToken => (Code::InvalidArgument, reason::INVALID_PAGE_TOKEN),
            Self::Ambiguous(_) => (Code::InvalidArgument, reason::AMBIGUOUS_ID),
            Self::KeyConflict { .. } => (Code::AlreadyExists, reason::IDEMPOTENCY_CONFLICT),
            Self::Fenced { .. } | Self::LeaseEnded => (Code::Aborted, reason::FENCED),
            Self::AttemptBound => (Code::AlreadyExists, reason::ATTEMPT_BOUND),
            Self::OutputsOpen => (Code::FailedPrecondition, reason::OUTPUTS_OPEN),
            Self::ReconcileInProgress => (Code::FailedPrecondition, reason::RECONCILE_IN_PROGRESS),
            Self::NotInStatus(_) => (Code::FailedPrecondition, reason::NOT_RUNNING),
            Self::Exceeded(_) => (Code::ResourceExhausted, reason::BUDGET_EXCEEDED),
            Self::Unpriced { .. } => (Code::FailedPrecondition, reason::UNPRICED_DENIED),
            Self::BackgroundLimit { .. } => (Code::ResourceExhausted, reason::BACKGROUND_LIMIT),
            Self::BudgetNotFound => (Code::NotFound, reason::BUDGET_NOT_FOUND),
            Self::BudgetManaged => (Code::PermissionDenied, reason::BUDGET_MANAGED),
            Self::AdminOnly => (Code::PermissionDenied, reason::ADMIN_ONLY),
            Self::Overloaded => (Code::ResourceExhausted, reason::OVERLOADED),
            Self::Draining => (Code::Unavailable, reason::DRAINING),
            Self::Store(_) => (Code::Unavailable, reason::LEDGER_UNAVAILABLE),
            Self::Corrupt(_) => (Code::Internal, reason::INTERNAL),
        }
    }
}

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        let (code, reason) = error.parts();
        let problem = Problem::new(code, reason, DOMAIN, error.to_string());
        let problem = match &error {
            Error::Invalid { field, wrong } => problem.field(*field, wrong.clone()),
            Error::Ambiguous(prefix) => problem
                .field("generation_id", "fits several")
                .with("prefix", prefix),
            Error::PageToken => problem.field("page_token", "does not belong to this list"),
            Error::KeyConflict { generation_id } => match generation_id {
                Some(id) => problem.with("generation_id", id),
                None => problem,
            },
            Error::Fenced { instance, epoch } => problem.with("instance_id", instance).with("epoch", epoch),
            Error::NotInStatus(status) => problem.with("status", status),
            Error::Exceeded(exceeded) => with_usage(problem, exceeded),
            Error::Unpriced { budget_id } => problem.with("budget_id", budget_id),
            // As many ids as fit a header.
            Error::BackgroundLimit { open } => problem.with("limit", open.len()).with(
                "generation_ids",
                open.iter()
                    .take(6)
                    .map(String::as_str)
                    .collect::<Vec<_>>()
                    .join(" "),
            ),
            Error::Store(source) => {
                tracing::warn!(error = %source, "the ledger's database failed");
                problem
            }
            Error::Corrupt(what) => {
                tracing::error!(what, "a row of the ledger cannot be read");
                problem
            }
            Error::NotFound
            | Error::BudgetNotFound
            | Error::BudgetManaged
            | Error::AdminOnly
            | Error::Overloaded
            | Error::AttemptBound
            | Error::OutputsOpen
            | Error::ReconcileInProgress
            | Error::LeaseEnded
            | Error::Draining => problem,
        };
        problem.into()
    }
}

/// Says how much of a budget is used, to whom may know.
fn with_usage(problem: Problem, exceeded: &Exceeded) -> Problem {
    let problem = problem
        .with("budget_id", &exceeded.budget_id)
        .with("scope", exceeded.scope.text());
    match &exceeded.usage {
        None => problem,
        Some(Usage::Calls { max_calls, calls }) => problem.with("max_calls", max_calls).with("calls", calls),
        Some(Usage::Amount {
            cap,
            spent,
            held,
            estimate,
            currency,
        }) => [
            ("limit", cap),
            ("spent", spent),
            ("reserved", held),
            ("estimate", estimate),
        ]
        .into_iter()
        .fold(problem.with("currency", currency), |problem, (key, nanos)| {
            problem.with(key, atelier_proto::money::exact(charge::decimal(*nanos)))
        }),
    }
}

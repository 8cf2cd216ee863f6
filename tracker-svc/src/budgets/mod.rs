//! Budgets: limits of what may be spent, held for a call in the transaction that opens its row.
//!
//! A hold belongs to the row, not to a process: it is made with the row, settled in the transaction that settles the row,
//! and released only when nothing was sent. Nothing that crashes frees spend.
//!
//! What is used of a budget is a number on the budget and one per period, so that a decision reads two rows and not a
//! month of them. They cannot drift from the holds: both are written in one transaction, under the lock of the budget's
//! row, and a hold that is settled already moves nothing when it is settled again.
//!
//! - [`book`]: the budgets of one batch of transitions: what is admitted, held, settled.
//! - `page`: one of them.
//! - [`store`]: setting and reading budgets.
//! - [`due`]: holds that the row they belong to has outrun.
//!
//! What does not live here: when a row is opened or settled ([`crate::ledger`]), prices (provider-svc).

pub(crate) mod book;
pub(crate) mod due;
mod page;
pub mod store;

pub use due::statement as due_statement;

use crate::entity::generations;
use crate::ledger::Origin;

/// Stands for every user.
pub const EVERYBODY: &str = "*";

/// Which calls of a user a budget bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// All of them.
    User,
    /// Those of a project.
    Project(String),
    /// Those of a workflow.
    Workflow(String),
    /// Those of a run.
    Run(String),
    /// Those to a provider.
    Provider(String),
}

impl Scope {
    /// The form that a column holds.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::User => self.kind().to_owned(),
            Self::Project(key) | Self::Workflow(key) | Self::Run(key) | Self::Provider(key) => {
                format!("{}:{key}", self.kind())
            }
        }
    }

    /// What kind of thing it is, for people.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project(_) => "project",
            Self::Workflow(_) => "workflow",
            Self::Run(_) => "run",
            Self::Provider(_) => "provider",
        }
    }

    /// The id of that thing; empty for all calls of a user.
    #[must_use]
    pub fn key(&self) -> &str {
        match self {
            Self::User => "",
            Self::Project(key) | Self::Workflow(key) | Self::Run(key) | Self::Provider(key) => key,
        }
    }

    /// Reads the form that a column holds.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, key) = text.split_once(':').unwrap_or((text, ""));
        let key = key.to_owned();
        match kind {
            "user" => Some(Self::User),
            "project" => Some(Self::Project(key)),
            "workflow" => Some(Self::Workflow(key)),
            "run" => Some(Self::Run(key)),
            "provider" => Some(Self::Provider(key)),
            _ => None,
        }
    }

    /// Every scope that a call of this origin and provider is in.
    #[must_use]
    pub fn of(origin: &Origin, provider: &str) -> Vec<Self> {
        let key = |key: &Option<String>, scope: fn(String) -> Self| key.clone().map(scope);
        [
            Some(Self::User),
            key(&origin.project_id, Self::Project),
            key(&origin.workflow_id, Self::Workflow),
            key(&origin.job_id, Self::Run),
            Some(Self::Provider(provider.to_owned())),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// Why a call is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exceeded {
    /// The budget.
    pub budget_id: String,
    /// Which calls it bounds.
    pub scope: Scope,
    /// What it bounds, and how much of it is used. `None` for a budget of everybody: what others spend is not told.
    pub usage: Option<Usage>,
}

/// How much of a budget is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Usage {
    /// Of its amount, in billionths.
    Amount {
        /// The limit.
        cap: i64,
        /// Settled in this period.
        spent: i64,
        /// Held.
        held: i64,
        /// What the call was going to hold.
        estimate: i64,
        /// Currency of all of it.
        currency: String,
    },
    /// Of its calls.
    Calls {
        /// The limit.
        max_calls: i64,
        /// Calls of this period.
        calls: i64,
    },
}

/// What a row comes to for what it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    /// The estimate stays held.
    Held,
    /// The row's own cost is booked.
    Cost,
    /// The estimate is booked, as no better number will come.
    Estimate,
    /// Nothing was sent.
    Released,
}

/// How long a row that was sent without a request id keeps what it holds, before it counts as spent.
const UNKNOWN_FOR: i64 = 24 * 3_600 * 1_000_000;

/// What a row comes to at an instant.
fn target(row: &generations::Model, now: i64) -> Target {
    use crate::entity::words::{ReconcileState as Reconcile, Status, Submission};
    match row.status {
        Status::Running => return Target::Held,
        Status::Completed if row.cost.is_none() => return Target::Estimate,
        Status::Completed | Status::Failed | Status::Cancelled | Status::Interrupted => {}
    }
    if row.cost.is_some() {
        return Target::Cost;
    }
    if row.submission == Submission::Accepted {
        return Target::Released;
    }
    let old = row
        .completed_at
        .is_some_and(|at| at.saturating_add(UNKNOWN_FOR) <= now);
    match row.reconcile_state {
        Reconcile::Queued => Target::Held,
        Reconcile::Nothing if !old => Target::Held,
        Reconcile::Nothing
        | Reconcile::Done
        | Reconcile::Unavailable
        | Reconcile::Denied
        | Reconcile::Exhausted => Target::Estimate,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_read_back() {
        let origin = Origin {
            project_id: Some("p:1".into()),
            workflow_id: Some("w1".into()),
            job_id: Some(String::new()),
            ..Default::default()
        };
        let scopes = Scope::of(&origin, "acme");
        assert_eq!(scopes.len(), 5);
        for scope in scopes {
            assert_eq!(Scope::parse(&scope.text()), Some(scope));
        }
        assert_eq!(Scope::parse("planet:x"), None);
    }
}

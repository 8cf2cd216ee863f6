//! What a look at the bill changes (T13). Whoever lost the claim changes nothing.

use sea_orm::{ColumnTrait, Condition, Set};

use super::{Reconciliations, schedule};
use crate::charge::{self, Charge, Nanos};
use crate::entity::generations::{Column, Model};
use crate::entity::words::{PriceSource, ReconcileState};
use crate::error::Error;
use crate::ledger::{AttemptBook, Changes, Computed, Row, clock, load, lock, priced, write};
use crate::metadata::Metadata;
use crate::metrics as names;
use crate::text::{ERROR_LIMIT, sanitise};

/// A difference by more than this is worth a look at the catalog.
const SURPRISE: Nanos = 10;

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Bills.
    Billed,
    /// No bill yet.
    NotYet,
    /// The provider states none.
    Unsupported,
    /// The key may not read them.
    Denied,
    /// The provider could not be asked, or not be understood.
    Error,
}

impl Outcome {
    /// Its word in metrics.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Billed => "billed",
            Self::NotYet => "not_yet",
            Self::Unsupported => "unsupported",
            Self::Denied => "denied",
            Self::Error => "error",
        }
    }
}

/// A report.
#[derive(Debug, Clone)]
pub struct Report {
    /// Owner of the row.
    pub user_id: String,
    /// The row.
    pub id: String,
    /// The claim.
    pub claim: String,
    /// Whether a user asked: no attempt is spent, and nothing changes unless the bill was found.
    pub manual: bool,
    /// What was found.
    pub outcome: Outcome,
    /// Bills by number of attempt, also when some are missing.
    pub bills: Vec<(i32, Charge)>,
    /// What was said when there was none.
    pub error: Option<String>,
    /// Names the key that was denied.
    pub credential: Option<String>,
}

impl Reconciliations {
    /// Takes a report; whether it counted, and the row as it is then.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn report(&self, report: &Report) -> Result<(bool, Row), Error> {
        let tx = self.db.begin().await?;
        let row = lock(&*tx, &report.user_id, &report.id).await?;
        if row.reconcile_claim.as_deref() != Some(report.claim.as_str()) {
            return Ok((false, load(&*tx, &report.user_id, &report.id).await?));
        }
        let mut book = AttemptBook::load(&*tx, &row.id).await?;
        for (number, bill) in &report.bills {
            if !book.bill_attempt(*number, bill) {
                return Err(Error::invalid(
                    "bills.attempt_number",
                    "names no attempt of the row",
                ));
            }
        }
        let now = clock(&*tx, &self.time).await?;
        let mut change = Change {
            metadata: Metadata::read(&row.metadata)?,
            changes: Changes {
                reconcile_claim: Set(None),
                reconcile_lease_until: Set(None),
                ..Default::default()
            },
            computed: Computed::new(),
        };
        if report.manual {
            change.metadata.count_manual_reconcile();
        }
        let total = book
            .all_billed()
            .then(|| charge::sum_of_known(book.attempts()))
            .flatten();
        match (report.outcome, total) {
            (Outcome::Billed, Some(total)) => change.done(&row, &total, report, now),
            // A bill for some of the submissions is none for the row.
            (Outcome::Billed | Outcome::NotYet | Outcome::Error, _) => change.later(&row, report, &self.time),
            (Outcome::Unsupported, _) => change.given_up(ReconcileState::Unavailable, report, now),
            (Outcome::Denied, _) => {
                change.given_up(ReconcileState::Denied, report, now);
                if !report.manual {
                    change.changes.reconcile_denied_for =
                        Set(Some(report.credential.clone().unwrap_or_default()));
                }
            }
        }
        let Change {
            metadata,
            mut changes,
            computed,
        } = change;
        changes.metadata = Set(metadata.text());
        let guard = Condition::all().add(Column::ReconcileClaim.eq(report.claim.as_str()));
        write(&*tx, &self.time, (&row).into(), changes, computed, guard).await?;
        book.save(&*tx, &self.time).await?;
        let row = load(&*tx, &report.user_id, &report.id).await?;
        tx.commit().await?;
        metrics::counter!(names::RECONCILED, "outcome" => report.outcome.word()).increment(1);
        Ok((true, row))
    }
}

/// A report on its way into the row.
struct Change {
    metadata: Metadata,
    changes: Changes,
    computed: Computed,
}

impl Change {
    fn done(&mut self, row: &Model, total: &Charge, report: &Report, now: i64) {
        let text = |nanos: Nanos, currency: &str| charge::to_proto(nanos, currency).amount;
        let before = charge::of_row(row);
        if let Some((cost, currency)) = before
            && currency == total.currency
            && (total.cost > cost.saturating_mul(SURPRISE) || cost > total.cost.saturating_mul(SURPRISE))
        {
            metrics::counter!(names::BILL_SURPRISES).increment(1);
            tracing::warn!(
                provider = row.provider,
                model = row.model,
                "a bill is far from what was expected"
            );
        }
        let source = PriceSource::Billing;
        self.metadata.add_reconcile_history(
            now,
            before.map(|(cost, currency)| text(cost, currency)),
            text(total.cost, &total.currency),
            source.word(),
        );
        self.metadata.set_reconcile(None);
        self.metadata.set_unpriced_reason(None);
        self.metadata.set_price_breakdown(total.breakdown.clone());
        priced(&mut self.changes, total, source);
        self.changes.reconcile_state = Set(ReconcileState::Done);
        self.changes.reconcile_error = Set(None);
        self.changes.reconcile_next_at = Set(None);
        self.changes.reconciled_at = Set(Some(now));
        if !report.manual {
            self.changes.reconcile_attempts = Set(row.reconcile_attempts.saturating_add(1));
        }
    }

    fn later(&mut self, row: &Model, report: &Report, time: &crate::time::LedgerTime) {
        let said = report.error.as_deref().unwrap_or("billing not posted");
        self.changes.reconcile_error = Set(Some(sanitise(said, ERROR_LIMIT)));
        if report.manual || row.reconcile_state != ReconcileState::Queued {
            return;
        }
        let attempts = row.reconcile_attempts.saturating_add(1);
        self.changes.reconcile_attempts = Set(attempts);
        match schedule::after(attempts) {
            Some(pause) => self.computed.push((Column::ReconcileNextAt, time.later(pause))),
            None => {
                self.metadata.set_reconcile(Some("exhausted"));
                self.changes.reconcile_state = Set(ReconcileState::Exhausted);
                self.changes.reconcile_next_at = Set(None);
            }
        }
    }

    fn given_up(&mut self, state: ReconcileState, report: &Report, now: i64) {
        self.changes.reconcile_error = Set(report.error.as_deref().map(|said| sanitise(said, ERROR_LIMIT)));
        if report.manual {
            return;
        }
        self.metadata.set_reconcile(Some(state.word()));
        self.changes.reconcile_state = Set(state);
        self.changes.reconcile_next_at = Set(None);
        if state == ReconcileState::Unavailable {
            self.changes.reconciled_at = Set(Some(now));
        }
    }
}

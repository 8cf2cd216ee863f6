//! The queue of rows that wait for their bill: which are due, and who looks (generations specification 6).
//!
//! A row enters when it settles with a request id and without a bill ([`crate::ledger`]). It is due by the database's
//! clock, is claimed for a minute by one statement that steps around what others have in hand, and is reported by the one
//! who has the claim ([`report`]). Nobody holds a transaction while a provider is asked: asking is provider-svc's, which
//! hears of due rows on its stream.

pub mod report;
pub mod schedule;

use std::time::Duration;

use atelier_common::db::Db;
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{ColumnTrait, ConnectionTrait, DbBackend, EntityTrait, QueryFilter, QueryOrder, Statement};
use uuid::Uuid;

use crate::entity::generations::{Column, Entity, Model};
use crate::entity::words::{ReconcileState, Status};
use crate::error::Error;
use crate::ledger::{Row, load, lock};
use crate::time::{LedgerTime, micros_of};

pub use report::{Outcome, Report};

/// How long a claim holds.
const CLAIM: Duration = Duration::from_mins(1);
/// Rows that one look claims at most.
const BATCH: usize = 50;

/// The queue. Clones are the same one.
#[derive(Clone)]
pub struct Reconciliations {
    db: Db,
    time: LedgerTime,
}

/// A row whose bill is to be looked for.
#[derive(Debug, Clone)]
pub struct Claimed {
    /// The row.
    pub row: Row,
    /// Names the claim.
    pub claim: String,
}

/// What came of asking for a claim.
#[derive(Debug, Clone)]
pub enum Asked {
    /// The bill may be looked for.
    Claimed(Claimed),
    /// There is no bill to look for, and why.
    Nothing(Row, &'static str),
}

impl Reconciliations {
    /// The queue of this ledger.
    #[must_use]
    pub fn new(db: Db, time: LedgerTime) -> Self {
        Self { db, time }
    }

    /// Claims what is due, the longest due first, at most a batch.
    ///
    /// # Errors
    /// The database's.
    pub async fn due(&self) -> Result<Vec<Claimed>, Error> {
        let now = self.time.sql();
        let due = format!(
            "SELECT id FROM generations
             WHERE reconcile_state = 'queued' AND reconcile_next_at <= {now} AND status <> 'running'
             AND (reconcile_lease_until IS NULL OR reconcile_lease_until < {now})
             ORDER BY reconcile_next_at LIMIT {BATCH}"
        );
        let backend = self.db.backend();
        // Most looks find nothing, and need not wait for the writer.
        let look = Statement::from_string(backend, due.clone());
        if self.db.read().query_one_raw(look).await?.is_none() {
            return Ok(Vec::new());
        }
        let skip = if backend == DbBackend::Postgres {
            "FOR UPDATE SKIP LOCKED"
        } else {
            ""
        };
        let claim = Uuid::now_v7().to_string();
        let lease = micros_of(CLAIM);
        let statement = format!(
            "WITH due AS MATERIALIZED ({due} {skip})
             UPDATE generations SET reconcile_claim = '{claim}', reconcile_lease_until = {now} + {lease}
             WHERE reconcile_state = 'queued' AND id IN (SELECT id FROM due)"
        );
        let tx = self.db.begin().await?;
        tx.execute_unprepared(&statement).await?;
        tx.commit().await?;
        self.claimed(claim).await
    }

    async fn claimed(&self, claim: String) -> Result<Vec<Claimed>, Error> {
        let rows = Entity::find()
            .filter(Column::ReconcileClaim.eq(claim.as_str()))
            .order_by_asc(Column::ReconcileNextAt)
            .all(self.db.read())
            .await?;
        let mut claimed = Vec::with_capacity(rows.len());
        for Model { user_id, id, .. } in rows {
            let row = load(self.db.read(), &user_id, &id).await?;
            claimed.push(Claimed {
                row,
                claim: claim.clone(),
            });
        }
        Ok(claimed)
    }

    /// Takes the claim on a settled row of the user, whatever its schedule and state.
    ///
    /// # Errors
    /// `NotFound`; `ReconcileInProgress`.
    pub async fn ask(&self, user_id: &str, id: &str) -> Result<Asked, Error> {
        let tx = self.db.begin().await?;
        let model = lock(&*tx, user_id, id).await?;
        let row = load(&*tx, user_id, id).await?;
        if model.status == Status::Running {
            return Ok(Asked::Nothing(row, "still running"));
        }
        if row
            .attempts
            .iter()
            .all(|attempt| attempt.provider_request_id.is_none())
        {
            return Ok(Asked::Nothing(row, "no request id"));
        }
        let claim = Uuid::now_v7().to_string();
        let free = Column::ReconcileLeaseUntil
            .is_null()
            .or(Expr::col(Column::ReconcileLeaseUntil).lt(self.time.now()));
        let taken = Entity::update_many()
            .col_expr(Column::ReconcileClaim, Expr::value(claim.as_str()))
            .col_expr(Column::ReconcileLeaseUntil, self.time.later(CLAIM))
            .filter(Column::Id.eq(id))
            .filter(Column::UserId.eq(user_id))
            .filter(free)
            .exec(&*tx)
            .await?;
        if taken.rows_affected == 0 {
            return Err(Error::ReconcileInProgress);
        }
        tx.commit().await?;
        Ok(Asked::Claimed(Claimed { row, claim }))
    }

    /// Queues what was denied to another key than the one that a driver has.
    ///
    /// # Errors
    /// The database's.
    pub async fn rekeyed(&self, provider: &str, credential: &str) -> Result<u64, Error> {
        if credential.is_empty() {
            return Ok(0);
        }
        let denied = || {
            Entity::find()
                .filter(Column::Provider.eq(provider))
                .filter(Column::ReconcileState.eq(ReconcileState::Denied))
                .filter(Column::ReconcileDeniedFor.ne(credential))
        };
        if denied().one(self.db.read()).await?.is_none() {
            return Ok(0);
        }
        let tx = self.db.begin().await?;
        let queued = Entity::update_many()
            .col_expr(Column::ReconcileState, Expr::value(ReconcileState::Queued))
            .col_expr(Column::ReconcileNextAt, self.time.now())
            .col_expr(Column::Version, Expr::col(Column::Version).add(1))
            .col_expr(Column::UpdatedAt, self.time.now())
            .filter(Column::Provider.eq(provider))
            .filter(Column::ReconcileState.eq(ReconcileState::Denied))
            .filter(Column::ReconcileDeniedFor.ne(credential))
            .exec(&*tx)
            .await?;
        tx.commit().await?;
        tracing::info!(
            provider,
            rows = queued.rows_affected,
            "another key may read the bills"
        );
        Ok(queued.rows_affected)
    }
}

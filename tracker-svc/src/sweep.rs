//! Closes rows whose driver is gone, and that no other one can take up, as interrupted. A row that is driven is never
//! touched.
//!
//! One statement claims and closes a batch: its WHERE holds the status and the lease, and on PostgreSQL it steps around
//! rows that another replica, or a driver, has in hand.

use std::time::{Duration, Instant};

use atelier_common::db::Db;
use atelier_common::health::{Gate, Health};
use atelier_common::tasks::Tasks;
use futures_util::future::join_all;
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, ConnectionTrait, DbBackend, EntityTrait, PaginatorTrait, QueryFilter, Statement};

use crate::adopt::{RESUMABLE, worth_it};
use crate::budgets::due;
use crate::entity::words::{ReconcileState, Status, Submission};
use crate::entity::{attempts, generations};
use crate::error::Error;
use crate::ledger::Ledger;
use crate::metrics as names;
use crate::time::LedgerTime;
use crate::waiting::Waiting;

/// The health gate of the ledger's database.
pub const GATE: &str = "tracker.database";
/// Rows that one statement closes at most.
const BATCH: usize = 100;

/// The sweep. Clones are the same one.
#[derive(Clone)]
pub struct Sweep {
    db: Db,
    time: LedgerTime,
    ledger: Ledger,
    waiting: Waiting,
}

impl Sweep {
    /// A sweep over this ledger.
    #[must_use]
    pub fn new(db: Db, time: LedgerTime, ledger: Ledger, waiting: Waiting) -> Self {
        Self {
            db,
            time,
            ledger,
            waiting,
        }
    }

    /// Closes every row that nobody drives, and brings what settled rows hold of budgets up to date; how many rows were
    /// closed. Cancel safe: a batch is closed wholly or not at all, and what is left is found by the next sweep.
    ///
    /// # Errors
    /// The database's.
    pub async fn run(&self) -> Result<u64, Error> {
        let start = Instant::now();
        let mut interrupted = 0;
        loop {
            let batch = self.batch().await?;
            interrupted += u64::try_from(batch).unwrap_or(u64::MAX);
            if batch < BATCH {
                break;
            }
        }
        if interrupted > 0 {
            tracing::info!(interrupted, "swept generations whose driver is gone");
            metrics::counter!(names::SETTLED, "status" => Status::Interrupted.word()).increment(interrupted);
        }
        self.recount().await?;
        metrics::histogram!(names::SWEEP_DURATION).record(start.elapsed());
        Ok(interrupted)
    }

    /// Has the holds looked at that their rows have outrun. Through the ledger's own queue, which alone locks budgets and
    /// rows in the right order.
    async fn recount(&self) -> Result<(), Error> {
        let mut before = Vec::new();
        loop {
            let due = due::all_users_due(self.db.read(), &self.time).await?;
            if due.is_empty() || due == before {
                return Ok(());
            }
            for done in join_all(due.iter().map(|(user_id, id)| self.ledger.recount(user_id, id))).await {
                done?;
            }
            before = due;
        }
    }

    async fn gate(&self) -> Gate {
        match self.db.ping().await {
            Ok(()) => Gate::Ready,
            Err(_) => Gate::NotReady("the database does not answer".to_owned()),
        }
    }

    async fn batch(&self) -> Result<usize, Error> {
        let tx = self.db.begin().await?;
        let now = self.time.sql();
        // Forgotten from here on: a late heartbeat is refused.
        tx.execute_unprepared(&format!(
            "DELETE FROM service_instances WHERE expires_at <= {now}"
        ))
        .await?;
        let statement = Statement::from_string(self.db.backend(), self.statement(&now));
        let hit = tx.query_all_raw(statement).await?;
        let ids = hit
            .iter()
            .map(|row| row.try_get("", "id"))
            .collect::<Result<Vec<String>, _>>()?;
        if !ids.is_empty() {
            attempts::Entity::update_many()
                .col_expr(attempts::Column::Submission, Expr::value(Submission::Unknown))
                .filter(attempts::Column::GenerationId.is_in(ids.iter().map(String::as_str)))
                .filter(attempts::Column::Submission.eq(Submission::Submitting))
                .exec(&*tx)
                .await?;
        }
        tx.commit().await?;
        ids.iter().for_each(|id| self.waiting.settled(id));
        Ok(ids.len())
    }

    fn statement(&self, now: &str) -> String {
        let skip = if self.db.backend() == DbBackend::Postgres {
            "FOR UPDATE OF g SKIP LOCKED"
        } else {
            ""
        };
        let bill = "provider_request_id IS NOT NULL AND reconcile_state = 'none' \
                    AND (price_source IS NULL OR price_source <> 'provider-billing')";
        let minute = crate::time::micros_of(Duration::from_mins(1));
        // What another driver can take up waits for one.
        let worth_it = worth_it(now);
        format!(
            "WITH orphans AS MATERIALIZED (
                SELECT g.id FROM generations g
                WHERE g.status = 'running' AND NOT EXISTS (
                    SELECT 1 FROM service_instances i
                    WHERE i.instance_id = g.owner_instance AND i.expires_at > {now})
                AND NOT ({RESUMABLE} AND {worth_it})
                ORDER BY g.created_at LIMIT {BATCH} {skip})
            UPDATE generations AS g SET
                status = 'interrupted',
                interrupted_reason =
                    CASE WHEN submission = 'accepted' THEN 'never submitted'
                         WHEN {RESUMABLE} THEN 'recovery exhausted' ELSE 'process restart' END,
                submission = CASE WHEN submission = 'submitting' THEN 'submission_unknown' ELSE submission END,
                error_code = 'INTERRUPTED',
                reconcile_state = CASE WHEN {bill} THEN 'queued' ELSE reconcile_state END,
                reconcile_next_at = CASE WHEN {bill} THEN {now} + {minute} ELSE reconcile_next_at END,
                completed_at = {now},
                updated_at = {now},
                version = version + 1
            WHERE status = 'running' AND id IN (SELECT id FROM orphans)
            RETURNING id"
        )
    }

    /// Sweeps at once and then in every interval, until `tasks` is told to stop.
    pub async fn forever(self, interval: Duration, health: &Health, tasks: &Tasks) {
        loop {
            health.set(GATE, self.gate().await);
            if let Err(error) = self.run().await {
                tracing::warn!(error = %error, "sweep failed");
            }
            if let Err(error) = self.gauge().await {
                tracing::debug!(error = %error, "counting rows failed");
            }
            if !tasks.pause(interval).await {
                return;
            }
        }
    }

    async fn gauge(&self) -> Result<(), Error> {
        use generations::{Column, Entity};
        let running = Entity::find()
            .filter(Column::Status.eq(Status::Running))
            .count(self.db.read())
            .await?;
        let queued = Entity::find()
            .filter(Column::ReconcileState.eq(ReconcileState::Queued))
            .count(self.db.read())
            .await?;
        let number = |count: u64| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        metrics::gauge!(names::RUNNING).set(number(running));
        metrics::gauge!(names::RECONCILE_QUEUE).set(number(queued));
        Ok(())
    }
}

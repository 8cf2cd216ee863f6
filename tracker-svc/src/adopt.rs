//! Gives the jobs of drivers that are gone to drivers that live: running → running, with the next epoch.
//!
//! What can be taken up is a row whose latest submission left a request id and a token to poll it by. It waits for a
//! driver that knows its provider; the sweep leaves it alone for so long. The order goes down the new driver's stream,
//! again and again until the driver says that it has it, so an order that was lost on its way costs time and nothing else.
//! A cancelled row whose driver died before it heard of that is given away as well: somebody has to tell the provider.

use std::time::Duration;

use atelier_common::db::Db;
use sea_orm::sea_query::Expr;
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, DbBackend, EntityTrait, QueryFilter, QueryOrder, QuerySelect,
    Statement, Value,
};

use crate::entity::generations::{Column, Entity};
use crate::entity::words::Status;
use crate::error::Error;
use crate::ledger::{Row, clock, load};
use crate::metrics as names;
use crate::time::{LedgerTime, micros_of};

/// Rows that one statement gives away at most.
const BATCH: usize = 50;
/// Orders that one driver is told at a time.
const ORDERS: u64 = 200;
/// How often a row is given away before it is called lost (generations specification 7.2).
const LIMIT: i32 = 20;
/// How long a job may be taken up again, by its capability.
const AGE: Duration = Duration::from_hours(24);
/// The same for films and models, which take long.
const LONG_AGE: Duration = Duration::from_hours(72);

/// A job to take up.
#[derive(Debug, Clone)]
pub struct Resume {
    /// The row.
    pub row: Row,
    /// How long ago it was submitted.
    pub age: Duration,
}

/// Whether row `g` left what is needed to take its job up, in SQL.
pub(crate) const RESUMABLE: &str = "EXISTS (SELECT 1 FROM generation_attempts a WHERE a.generation_id = g.id \
     AND a.provider_request_id = g.provider_request_id AND a.resume_token IS NOT NULL)";

/// Whether it is worth it at this instant, in SQL.
pub(crate) fn worth_it(now: &str) -> String {
    let (age, long) = (micros_of(AGE), micros_of(LONG_AGE));
    format!(
        "g.adoptions < {LIMIT} AND g.created_at > {now} - CASE WHEN g.capability LIKE '%video%' \
         OR g.capability LIKE '%3d%' OR g.capability = 'lip_sync' THEN {long} ELSE {age} END"
    )
}

/// Gives rows away. Clones are the same one.
#[derive(Clone)]
pub struct Adoption {
    db: Db,
    time: LedgerTime,
}

impl Adoption {
    /// Over this ledger.
    #[must_use]
    pub fn new(db: Db, time: LedgerTime) -> Self {
        Self { db, time }
    }

    /// Gives a driver what it can take up, and returns all of it that it has not said to have.
    ///
    /// # Errors
    /// The database's.
    pub async fn orders(&self, instance_id: &str, providers: &[String]) -> Result<Vec<Resume>, Error> {
        if !providers.is_empty() {
            for which in ["g.status = 'running'", "g.cancel_pending"] {
                self.claim(which, instance_id, providers).await?;
            }
        }
        self.pending(instance_id).await
    }

    async fn claim(&self, which: &str, instance_id: &str, providers: &[String]) -> Result<(), Error> {
        let now = self.time.sql();
        let mut values: Vec<Value> = vec![instance_id.into()];
        values.extend(providers.iter().map(|provider| Value::from(provider.as_str())));
        let places: Vec<String> = (2..=values.len()).map(|place| format!("${place}")).collect();
        let orphans = format!(
            "SELECT g.id FROM generations g
             WHERE {which} AND g.owner_instance <> $1 AND g.provider IN ({}) AND {RESUMABLE} AND {}
             AND NOT EXISTS (SELECT 1 FROM service_instances i
                 WHERE i.instance_id = g.owner_instance AND i.expires_at > {now})
             ORDER BY g.created_at LIMIT {BATCH}",
            places.join(", "),
            worth_it(&now),
        );
        let backend = self.db.backend();
        // Most looks find nothing, and need not wait for the writer.
        let look = Statement::from_sql_and_values(backend, &orphans, values.clone());
        if self.db.read().query_one_raw(look).await?.is_none() {
            return Ok(());
        }
        let skip = if backend == DbBackend::Postgres {
            "FOR UPDATE OF g SKIP LOCKED"
        } else {
            ""
        };
        let claim = format!(
            "WITH orphans AS MATERIALIZED ({orphans} {skip})
             UPDATE generations SET owner_instance = $1, owner_epoch = owner_epoch + 1,
                 adoptions = adoptions + 1, resume_pending = TRUE,
                 updated_at = {now}, version = version + 1
             WHERE id IN (SELECT id FROM orphans) AND (status = 'running' OR cancel_pending)
             RETURNING id"
        );
        let tx = self.db.begin().await?;
        let taken = tx
            .query_all_raw(Statement::from_sql_and_values(backend, claim, values))
            .await?;
        tx.commit().await?;
        if !taken.is_empty() {
            tracing::info!(
                instance_id,
                rows = taken.len(),
                "a driver takes up the jobs of one that is gone"
            );
            metrics::counter!(names::ADOPTED).increment(taken.len() as u64);
        }
        Ok(())
    }

    async fn pending(&self, instance_id: &str) -> Result<Vec<Resume>, Error> {
        let open = Condition::any()
            .add(Column::Status.eq(Status::Running))
            .add(Expr::col(Column::CancelPending));
        let ids: Vec<(String, String)> = Entity::find()
            .select_only()
            .columns([Column::UserId, Column::Id])
            .filter(Column::OwnerInstance.eq(instance_id))
            .filter(Expr::col(Column::ResumePending))
            .filter(open)
            .order_by_asc(Column::CreatedAt)
            .limit(ORDERS)
            .into_tuple()
            .all(self.db.read())
            .await?;
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let now = clock(self.db.read(), &self.time).await?;
        let mut orders = Vec::with_capacity(ids.len());
        for (user_id, id) in ids {
            let row = load(self.db.read(), &user_id, &id).await?;
            let age = u64::try_from(now.saturating_sub(row.generation.started_at)).unwrap_or_default();
            orders.push(Resume {
                row,
                age: Duration::from_micros(age),
            });
        }
        Ok(orders)
    }

    /// Notes that the driver has a job. What is not its own any more stays as it is.
    ///
    /// # Errors
    /// The database's.
    pub async fn resumed(&self, instance_id: &str, generation_id: &str, epoch: i64) -> Result<(), Error> {
        let tx = self.db.begin().await?;
        Entity::update_many()
            .col_expr(Column::ResumePending, Expr::value(false))
            .filter(Column::Id.eq(generation_id))
            .filter(Column::OwnerInstance.eq(instance_id))
            .filter(Column::OwnerEpoch.eq(epoch))
            .exec(&*tx)
            .await?;
        Ok(tx.commit().await?)
    }
}

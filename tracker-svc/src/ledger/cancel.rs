//! Cancels a running row for its user: running → cancelled, at once. Whoever drives it hears of it afterwards.

use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, Condition, ConnectionTrait, EntityTrait, QueryFilter, QuerySelect, Select, Set};

use super::row::{Changes, Computed, write};
use super::settle::queue;
use crate::entity::generations::{Column, Entity};
use crate::entity::words::Status;
use crate::error::Error;
use crate::time::LedgerTime;

/// The row to cancel.
#[derive(Debug, Clone)]
pub struct Cancel {
    /// Who asks.
    pub user_id: String,
    /// The row.
    pub id: String,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cancelled {
    /// This call cancelled the row; this instance drives it.
    Now {
        /// The instance.
        owner_instance: String,
    },
    /// The user had cancelled it before.
    Before,
    /// Settled otherwise, unknown, or somebody else's: the caller cannot tell which.
    NotRunning,
}

/// Cancels.
///
/// # Errors
/// Only the database's.
pub(super) async fn cancel<C: ConnectionTrait>(
    tx: &C,
    time: &LedgerTime,
    cancel: &Cancel,
) -> Result<Cancelled, Error> {
    let row = match super::row::lock(tx, &cancel.user_id, &cancel.id).await {
        Ok(row) => row,
        Err(Error::NotFound) => return Ok(Cancelled::NotRunning),
        Err(error) => return Err(error),
    };
    if row.status == Status::Running {
        let mut changes = Changes {
            status: Set(Status::Cancelled),
            error_code: Set(Some("CANCELLED".to_owned())),
            cancel_pending: Set(true),
            ..Default::default()
        };
        let mut computed: Computed = vec![
            (Column::CompletedAt, time.now()),
            (Column::CancelRequestedAt, time.now()),
        ];
        queue(
            &mut changes,
            &mut computed,
            time,
            &row,
            row.provider_request_id.is_some(),
        );
        let guard = Condition::all().add(Column::Status.eq(Status::Running));
        if write(tx, time, (&row).into(), changes, computed, guard)
            .await?
            .is_some()
        {
            return Ok(Cancelled::Now {
                owner_instance: row.owner_instance,
            });
        }
    }
    let settled = Entity::of(&cancel.user_id)
        .filter(Column::Id.eq(cancel.id.as_str()))
        .one(tx)
        .await?;
    match settled {
        Some(row) if row.status == Status::Cancelled => Ok(Cancelled::Before),
        Some(_) | None => Ok(Cancelled::NotRunning),
    }
}

/// Rows of an instance that were cancelled and whose driver has not shown that it knows. At most `limit`.
pub(crate) async fn all_users_untold<C: ConnectionTrait>(
    connection: &C,
    instance_id: &str,
    limit: u64,
) -> Result<Vec<String>, Error> {
    Ok(untold(instance_id, limit).into_tuple().all(connection).await?)
}

/// The same of several instances: instance and row. At most a thousand; the rest comes with the heartbeats.
pub(crate) async fn all_users_untold_of<C: ConnectionTrait>(
    connection: &C,
    instances: &[String],
) -> Result<Vec<(String, String)>, Error> {
    Ok(Entity::find()
        .select_only()
        .column(Column::OwnerInstance)
        .column(Column::Id)
        .filter(Column::OwnerInstance.is_in(instances.iter().map(String::as_str)))
        .filter(Expr::col(Column::CancelPending))
        .limit(1_000)
        .into_tuple()
        .all(connection)
        .await?)
}

fn untold(instance_id: &str, limit: u64) -> Select<Entity> {
    Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(Column::OwnerInstance.eq(instance_id))
        // As the index says it: SQLite takes a partial index only for its own words.
        .filter(Expr::col(Column::CancelPending))
        .limit(limit)
}

#[cfg(test)]
mod tests {
    use atelier_common::testkit::TestDb;
    use sea_orm::{DbBackend, QueryTrait, Statement};

    use super::*;
    use crate::migration::Migrator;

    /// It is asked with every heartbeat, so it must not read the ledger.
    #[tokio::test]
    async fn untold_cancels_are_found_by_their_index() {
        let db = TestDb::sqlite().await;
        db.migrate::<Migrator>().await.unwrap();
        let query = untold("instance", 10).build(DbBackend::Sqlite).to_string();
        let plan = Statement::from_string(DbBackend::Sqlite, format!("EXPLAIN QUERY PLAN {query}"));
        let steps = db.read().query_all_raw(plan).await.unwrap();
        let steps: Vec<String> = steps
            .iter()
            .map(|step| step.try_get("", "detail").unwrap())
            .collect();
        assert!(
            steps.iter().any(|step| step.contains("generations_untold")),
            "{steps:?}"
        );
    }
}

//! The bound of background calls: so many of one run, chat thread or user go on at a time, whatever replica opened them.
//!
//! They are counted in the transaction that opens the row, under a lock of the scope, so that two replicas cannot both
//! see the last place free.

use std::collections::BTreeSet;

use sea_orm::sea_query::Expr;
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, DbBackend, EntityTrait, QueryFilter, QuerySelect, Select,
    Statement,
};

use super::Open;
use crate::entity::generations::{Column, Entity};
use crate::error::Error;

/// Background calls of one scope that may go on.
pub(super) const MOST: u64 = 16;

/// Keeps other writers from counting the same scopes until the transaction ends. In order, so that two writers do not
/// wait for each other. SQLite has one writer anyway.
pub(super) async fn lock<C: ConnectionTrait>(tx: &C, opens: &[&Open]) -> Result<(), Error> {
    if tx.get_database_backend() != DbBackend::Postgres {
        return Ok(());
    }
    let scopes: BTreeSet<i64> = opens
        .iter()
        .filter(|open| open.background)
        .map(|open| number(open))
        .collect();
    for scope in scopes {
        tx.execute_raw(Statement::from_sql_and_values(
            DbBackend::Postgres,
            "SELECT pg_advisory_xact_lock($1)",
            [scope.into()],
        ))
        .await?;
    }
    Ok(())
}

/// Whether one more may go on.
///
/// # Errors
/// `BackgroundLimit`.
pub(super) async fn room<C: ConnectionTrait>(tx: &C, open: &Open) -> Result<(), Error> {
    let going_on: Vec<String> = going_on(open).into_tuple().all(tx).await?;
    if u64::try_from(going_on.len()).unwrap_or(u64::MAX) < MOST {
        Ok(())
    } else {
        Err(Error::BackgroundLimit { open: going_on })
    }
}

fn going_on(open: &Open) -> Select<Entity> {
    let of = |column: Column, value: &Option<String>| match value {
        Some(value) => column.eq(value.as_str()),
        None => column.is_null(),
    };
    let mut scope = Condition::all().add(of(Column::JobId, &open.origin.job_id));
    if open.origin.job_id.is_none() {
        scope = scope.add(of(Column::ThreadId, &open.origin.thread_id));
    }
    Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(Column::UserId.eq(open.user_id.as_str()))
        // As the index says it: SQLite takes a partial index only for its own words.
        .filter(Expr::cust("status = 'running' AND background"))
        .filter(scope)
        .limit(MOST)
}

/// The scope as a number; two that share one only wait for each other.
fn number(open: &Open) -> i64 {
    let text = serde_json::json!([
        "atelier background",
        open.user_id,
        open.origin.job_id,
        if open.origin.job_id.is_none() {
            open.origin.thread_id.as_deref()
        } else {
            None
        },
    ]);
    let digest: [u8; 32] = blake3::hash(text.to_string().as_bytes()).into();
    digest
        .first_chunk::<8>()
        .map_or_else(i64::default, |bytes| i64::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use atelier_common::testkit::TestDb;
    use sea_orm::QueryTrait;

    use super::super::Origin;
    use super::*;
    use crate::migration::Migrator;

    /// It is counted with every background call, so it must not read the user's other rows.
    #[tokio::test]
    async fn background_calls_are_counted_by_their_index() {
        let db = TestDb::sqlite().await;
        db.migrate::<Migrator>().await.unwrap();
        let open = |job_id: Option<&str>| Open {
            user_id: "u1".into(),
            id: String::new(),
            provider: String::new(),
            model: String::new(),
            capability: String::new(),
            origin: Origin {
                job_id: job_id.map(Into::into),
                ..Default::default()
            },
            parameters: String::new(),
            idempotency_key: None,
            input_fingerprint: String::new(),
            estimate: None,
            warning: None,
            unpriced_reason: None,
            background: true,
            instance_id: String::new(),
            parent: None,
            plan: None,
        };
        for job_id in [None, Some("j1")] {
            let query = going_on(&open(job_id)).build(DbBackend::Sqlite).to_string();
            let plan = Statement::from_string(DbBackend::Sqlite, format!("EXPLAIN QUERY PLAN {query}"));
            let steps = db.read().query_all_raw(plan).await.unwrap();
            let steps: Vec<String> = steps
                .iter()
                .map(|step| step.try_get("", "detail").unwrap())
                .collect();
            assert!(
                steps.iter().all(|step| step.contains("generations_background")),
                "{steps:?}"
            );
        }
        assert_ne!(number(&open(None)), number(&open(Some("j1"))));
    }
}

//! Holds that their row has outrun: the row was settled by a statement that knows nothing of budgets (the sweep), or time
//! passed, and with it the hope for a bill. The sweep has them looked at again.

use sea_orm::{ConnectionTrait, Statement};

use super::UNKNOWN_FOR;
use crate::error::Error;
use crate::time::LedgerTime;

/// Rows that are looked at at a time.
pub(crate) const BATCH: u64 = 500;

/// Rows whose holds are to be looked at again: user and id, oldest first, at most [`BATCH`].
pub(crate) async fn all_users_due<C: ConnectionTrait>(
    connection: &C,
    time: &LedgerTime,
) -> Result<Vec<(String, String)>, Error> {
    let statement = Statement::from_string(connection.get_database_backend(), statement(&time.sql()));
    let rows = connection.query_all_raw(statement).await?;
    let read = |row: &sea_orm::QueryResult| Ok((row.try_get("", "user_id")?, row.try_get("", "id")?));
    rows.iter().map(read).collect()
}

/// The statement behind it; `now` is the SQL of the instant. The same cases as the settling of a row knows.
#[must_use]
pub fn statement(now: &str) -> String {
    format!(
        "SELECT DISTINCT g.user_id, g.id FROM budget_holds h JOIN generations g ON g.id = h.generation_id
         WHERE h.state = 'held' AND g.status <> 'running' AND (
             g.status = 'completed' OR g.cost IS NOT NULL OR g.submission = 'accepted'
             OR g.reconcile_state IN ('done', 'unavailable', 'denied', 'exhausted')
             OR (g.reconcile_state = 'none' AND g.completed_at <= {now} - {UNKNOWN_FOR}))
         ORDER BY g.id LIMIT {BATCH}"
    )
}

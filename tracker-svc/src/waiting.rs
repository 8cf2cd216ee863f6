//! Who waits for a row to be settled.
//!
//! What is settled through this process wakes its waiters at once. What another process settles is found by one look at
//! all awaited rows together, twice a second: ten thousand waiters cost twenty statements and not ten thousand.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use atelier_common::db::Db;
use atelier_common::tasks::Tasks;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QuerySelect};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::entity::generations::{Column, Entity};
use crate::entity::words::Status;
use crate::error::Error;
use crate::ledger::Row;
use crate::queries::Queries;

/// Pause between looks at rows that other processes may settle.
const LOOK: Duration = Duration::from_millis(500);
/// Rows of one statement.
const CHUNK: usize = 500;
/// Waiters of a process at most; beyond it one is refused.
const MOST: usize = 50_000;

/// The waiters of this process. Clones are the same ones.
#[derive(Clone, Default)]
pub struct Waiting {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    rows: Mutex<Rows>,
    some: Notify,
}

#[derive(Default)]
struct Rows {
    waiters: usize,
    by_id: HashMap<String, watch::Sender<()>>,
}

/// A place among those who wait for a row; dropping it gives it up.
pub struct Ticket {
    shared: Arc<Shared>,
    id: String,
    woken: watch::Receiver<()>,
}

impl Waiting {
    fn rows(&self) -> MutexGuard<'_, Rows> {
        self.shared.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to wait for a row. Whoever does reads it once more afterwards: it may have been settled just before.
    ///
    /// # Errors
    /// `Overloaded` when too many wait already.
    pub fn join(&self, id: &str) -> Result<Ticket, Error> {
        let mut rows = self.rows();
        if rows.waiters >= MOST {
            return Err(Error::Overloaded);
        }
        rows.waiters += 1;
        let sender = rows
            .by_id
            .entry(id.to_owned())
            .or_insert_with(|| watch::channel(()).0);
        let woken = sender.subscribe();
        drop(rows);
        self.shared.some.notify_one();
        Ok(Ticket {
            shared: Arc::clone(&self.shared),
            id: id.to_owned(),
            woken,
        })
    }

    /// The row of the user once it is settled; as it is when the patience ends. Cancel safe.
    ///
    /// # Errors
    /// What finding it says, at once; `Overloaded`.
    pub async fn settled_row(
        &self,
        queries: &Queries,
        user_id: &str,
        id: &str,
        patience: Duration,
    ) -> Result<Row, Error> {
        let mut row = queries.get(user_id, id).await?;
        let deadline = Instant::now() + patience;
        while row.generation.status == Status::Running {
            let mut ticket = self.join(&row.generation.id)?;
            // Once more: it may have been settled before this began to wait.
            row = queries.get(user_id, &row.generation.id).await?;
            if row.generation.status != Status::Running {
                break;
            }
            if tokio::time::timeout_at(deadline, ticket.woken()).await.is_err() {
                return queries.get(user_id, &row.generation.id).await;
            }
        }
        Ok(row)
    }

    /// Wakes whoever waits for this row.
    pub fn settled(&self, id: &str) {
        if let Some(sender) = self.rows().by_id.get(id) {
            sender.send_replace(());
        }
    }

    /// Looks out for rows that other processes settle, until told to stop.
    pub async fn look_out(self, db: Db, tasks: Tasks) {
        let stop = tasks.token();
        loop {
            if self.rows().by_id.is_empty() {
                let some = stop.run_until_cancelled(self.shared.some.notified()).await;
                if some.is_none() {
                    return;
                }
            }
            if !tasks.pause(LOOK).await {
                return;
            }
            if let Err(error) = self.look(&db).await {
                tracing::debug!(error = %error, "looking at awaited rows failed");
            }
        }
    }

    async fn look(&self, db: &Db) -> Result<(), Error> {
        let ids: Vec<String> = self.rows().by_id.keys().cloned().collect();
        for some in ids.chunks(CHUNK) {
            let settled: Vec<String> = Entity::find()
                .select_only()
                .column(Column::Id)
                .filter(Column::Id.is_in(some.iter().map(String::as_str)))
                .filter(Column::Status.ne(Status::Running))
                .into_tuple()
                .all(db.read())
                .await?;
            settled.iter().for_each(|id| self.settled(id));
        }
        Ok(())
    }
}

impl Ticket {
    /// Waits until the row may have been settled. Cancel safe.
    pub async fn woken(&mut self) {
        // The sender lives as long as this ticket.
        let _ = self.woken.changed().await;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut rows = self.shared.rows.lock().unwrap_or_else(PoisonError::into_inner);
        rows.waiters = rows.waiters.saturating_sub(1);
        // This ticket's receiver still counts.
        if rows
            .by_id
            .get(&self.id)
            .is_some_and(|sender| sender.receiver_count() <= 1)
        {
            rows.by_id.remove(&self.id);
        }
    }
}

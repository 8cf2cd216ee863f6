//! What is done to all rows of a run.

use atelier_common::db::Db;
use futures_util::future::join_all;
use sea_orm::{ColumnTrait, Condition, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect};

use crate::entity::generations::{Column, Entity};
use crate::entity::words::Status;
use crate::error::Error;
use crate::follow::Hub;
use crate::ledger::{Cancel, Cancelled, Ledger};

/// Rows that are cancelled at a time: they share a transaction.
const CHUNK: u64 = 256;

/// The run whose rows are to be cancelled.
#[derive(Debug, Clone)]
pub struct CancelRun {
    /// Who asks.
    pub user_id: String,
    /// The run.
    pub job_id: String,
    /// Also rows whose caller went on without waiting.
    pub background: bool,
}

/// What became of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CancelledRun {
    /// Rows that were cancelled by this.
    pub cancelled: u64,
    /// Rows of the run that were settled before, or were left running.
    pub skipped: u64,
}

/// Cancels every running row of a run, each as if it had been asked for alone. Rows that are opened meanwhile may be
/// missed. Cancel safe: what is cancelled stays so.
///
/// # Errors
/// The database's.
pub async fn cancel(ledger: &Ledger, hub: &Hub, db: &Db, run: &CancelRun) -> Result<CancelledRun, Error> {
    let mut cancelled = 0;
    let mut after = String::new();
    loop {
        let mut running = Condition::all()
            .add(Column::JobId.eq(run.job_id.as_str()))
            .add(Column::Status.eq(Status::Running))
            .add(Column::Id.gt(after.as_str()));
        if !run.background {
            running = running.add(Column::Background.eq(false));
        }
        let ids: Vec<String> = Entity::of(&run.user_id)
            .select_only()
            .column(Column::Id)
            .filter(running)
            .order_by_asc(Column::Id)
            .limit(CHUNK)
            .into_tuple()
            .all(db.read())
            .await?;
        let Some(last) = ids.last() else { break };
        after.clone_from(last);
        let one = |id: String| async move {
            let user_id = run.user_id.clone();
            let answer = ledger
                .cancel(Cancel {
                    user_id,
                    id: id.clone(),
                })
                .await?;
            if let Cancelled::Now { owner_instance } = &answer {
                hub.order(owner_instance, &id);
                return Ok(1);
            }
            Ok::<u64, Error>(0)
        };
        for answer in join_all(ids.into_iter().map(one)).await {
            cancelled += answer?;
        }
    }
    let all = Entity::of(&run.user_id)
        .filter(Column::JobId.eq(run.job_id.as_str()))
        .count(db.read())
        .await?;
    Ok(CancelledRun {
        cancelled,
        skipped: all.saturating_sub(cancelled),
    })
}

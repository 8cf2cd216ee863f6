//! Marks that the paid request is about to leave: accepted → submitting, unless a cancel came first.

use sea_orm::{ColumnTrait, ConnectionTrait, Set};

use super::attempt_book::Book;
use super::row::{Changes, Driver, Named, cancel_told, lock, write};
use crate::entity::generations::Column;
use crate::entity::words::{Status, Submission};
use crate::error::Error;
use crate::time::LedgerTime;

/// The row that is about to be submitted.
#[derive(Debug, Clone)]
pub struct Mark {
    /// Owner of the row.
    pub user_id: String,
    /// The row.
    pub id: String,
    /// Its driver.
    pub driver: Driver,
}

/// Marks; whether the row was cancelled, and nothing may be sent.
///
/// # Errors
/// `NotFound`; `Fenced`; `NotInStatus` when the row has an outcome.
pub(super) async fn mark<C: ConnectionTrait>(tx: &C, time: &LedgerTime, mark: &Mark) -> Result<bool, Error> {
    let guard = mark
        .driver
        .guard()
        .add(Column::Status.eq(Status::Running))
        .add(Column::Submission.eq(Submission::Accepted))
        .add(Column::CancelRequestedAt.is_null());
    let changes = Changes {
        submission: Set(Submission::Submitting),
        ..Default::default()
    };
    let started = vec![(Column::StartedAt, time.now())];
    if write(
        tx,
        time,
        Named {
            user_id: &mark.user_id,
            id: &mark.id,
        },
        changes,
        started,
        guard,
    )
    .await?
    .is_some()
    {
        // A row that is accepted has had no submission, or one that was proved not to have left.
        Book::submit(tx, time, &mark.id).await?;
        return Ok(false);
    }
    let row = lock(tx, &mark.user_id, &mark.id).await?;
    mark.driver.fence(&row)?;
    match row.status {
        Status::Running => Ok(false),
        Status::Cancelled => {
            cancel_told(tx, &row).await?;
            Ok(true)
        }
        Status::Completed | Status::Failed | Status::Interrupted => {
            Err(Error::NotInStatus(row.status.word()))
        }
    }
}

//! Marks that the paid request is about to leave: accepted → submitting, unless a cancel came first.

use sea_orm::{ColumnTrait, Condition, ConnectionTrait, Set};

use super::attempt_book::Book;
use super::row::{Changes, Driver, cancel_told, lock, write};
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
    let row = lock(tx, &mark.user_id, &mark.id).await?;
    mark.driver.fence(&row)?;
    let guard = mark
        .driver
        .guard()
        .add(Column::Status.eq(Status::Running))
        .add(Column::Submission.eq(Submission::Accepted))
        .add(Column::CancelRequestedAt.is_null());
    let changes = Changes { submission: Set(Submission::Submitting), ..Default::default() };
    if row.submission == Submission::Accepted
        && write(tx, time, &row, changes, vec![(Column::StartedAt, time.now())], Condition::all().add(guard)).await?
    {
        let mut book = Book::load(tx, &row.id).await?;
        book.submit();
        book.save(tx, time).await?;
        return Ok(false);
    }
    match row.status {
        Status::Running => Ok(false),
        Status::Cancelled => {
            cancel_told(tx, &row).await?;
            Ok(true)
        }
        Status::Completed | Status::Failed | Status::Interrupted => Err(Error::NotInStatus(row.status.word())),
    }
}

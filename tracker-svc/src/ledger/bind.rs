//! Binds what a driver learned of a submission: its request id, how to poll it, what it cost.
//!
//! Also on a row that was cancelled in between: the money is out and the id is how it will be known.

use sea_orm::{ColumnTrait, ConnectionTrait, Set};

use super::attempt_book::{Book, Told, priced};
use super::row::{Changes, Computed, Driver, cancel_told, lock, write};
use super::settle::queue;
use crate::charge;
use crate::entity::generations::Column;
use crate::entity::words::{PriceSource, Status, Submission};
use crate::error::Error;
use crate::metadata::Metadata;
use crate::time::LedgerTime;

/// What to bind.
#[derive(Debug, Clone)]
pub struct Bind {
    /// Owner of the row.
    pub user_id: String,
    /// The row.
    pub id: String,
    /// Its driver.
    pub driver: Driver,
    /// What was learned.
    pub told: Told,
    /// What was wrong with the charge.
    pub warning: Option<String>,
}

/// The attempt that carries it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// Its number.
    pub attempt_number: i32,
    /// Whether the row was cancelled.
    pub cancelled: bool,
}

/// Binds.
///
/// # Errors
/// `NotFound`; `Fenced`; `AttemptBound` when the row has an outcome and another request id.
pub(super) async fn bind<C: ConnectionTrait>(tx: &C, time: &LedgerTime, bind: &Bind) -> Result<Bound, Error> {
    let row = lock(tx, &bind.user_id, &bind.id).await?;
    bind.driver.fence(&row)?;
    let mut book = Book::load(tx, &row.id).await?;
    let number = book.tell(&bind.told, row.status)?;
    let cancelled = row.status == Status::Cancelled;
    if cancelled {
        cancel_told(tx, &row).await?;
    }
    if book.changed() {
        let latest = book.latest().ok_or(Error::Corrupt("attempts"))?;
        let mut changes = Changes {
            submission: Set(row.submission.moved(Some(latest.submission))),
            // The row shows its latest attempt, which starts over.
            provider_state: Set(latest.provider_state),
            ..Default::default()
        };
        if latest.provider_request_id.is_some() {
            changes.provider_request_id = Set(latest.provider_request_id.clone());
        }
        match charge::sum(book.attempts()) {
            Some(total)
                if row
                    .price_source
                    .is_none_or(|source| source <= PriceSource::Provider) =>
            {
                priced(&mut changes, &total, PriceSource::Provider);
            }
            None if row.status == Status::Running && row.cost.is_some() => {
                // What was a whole is a part: the next attempt's charge is not known.
                changes.cost = Set(None);
                changes.currency = Set(None);
                changes.price_source = Set(None);
            }
            Some(_) | None => {}
        }
        if let Some(warning) = bind.warning.clone() {
            let mut metadata = Metadata::read(&row.metadata)?;
            metadata.add_price_warning(warning);
            changes.metadata = Set(metadata.text());
        }
        let mut computed = Computed::new();
        if row.submission == Submission::Accepted {
            computed.push((Column::StartedAt, time.now()));
        }
        if row.status != Status::Running {
            queue(&mut changes, &mut computed, time, &row, book.has_request_id());
        }
        let guard = bind.driver.guard().add(Column::Status.eq(row.status));
        if write(tx, time, (&row).into(), changes, computed, guard)
            .await?
            .is_none()
        {
            return Err(bind.driver.fenced());
        }
        book.save(tx, time).await?;
    }
    Ok(Bound {
        attempt_number: number.unwrap_or_default(),
        cancelled,
    })
}

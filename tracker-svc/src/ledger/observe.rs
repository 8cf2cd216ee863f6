//! Records a change of the facets of a running row. They move only forward.

use sea_orm::{ColumnTrait, ConnectionTrait, Set};

use super::attempt_book::Book;
use super::row::{Changes, Driver, cancel_told, lock, write};
use crate::entity::generations::Column;
use crate::entity::words::{OutputState, ProviderState, Status, Submission};
use crate::error::Error;
use crate::time::LedgerTime;

/// Facets as told; `None` stays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Facets {
    /// How far the latest submission got.
    pub submission: Option<Submission>,
    /// What the provider says.
    pub provider: Option<ProviderState>,
    /// How far the outputs got.
    pub output: Option<OutputState>,
}

/// What was observed.
#[derive(Debug, Clone)]
pub struct Observe {
    /// Owner of the row.
    pub user_id: String,
    /// The row.
    pub id: String,
    /// Its driver.
    pub driver: Driver,
    /// The facets.
    pub facets: Facets,
}

/// Records; whether the row was cancelled.
///
/// # Errors
/// `NotFound`; `Fenced`.
pub(super) async fn observe<C: ConnectionTrait>(
    tx: &C,
    time: &LedgerTime,
    observe: &Observe,
) -> Result<bool, Error> {
    let row = lock(tx, &observe.user_id, &observe.id).await?;
    observe.driver.fence(&row)?;
    if row.status == Status::Running {
        let Facets {
            submission,
            provider,
            output,
        } = observe.facets;
        let mut book = Book::load(tx, &row.id).await?;
        // Nothing is taken back once the provider gave an id.
        let submission = submission.filter(|told| *told != Submission::Accepted || !book.has_request_id());
        book.observe(submission, provider);
        let moved = (
            row.submission.moved(submission),
            row.provider_state.moved(provider),
            row.output.moved(output),
        );
        // What the latest attempt came to is a part of the row: a second attempt may catch up with facets that the first
        // had moved already.
        if moved != (row.submission, row.provider_state, row.output) || book.changed() {
            let changes = Changes {
                submission: Set(moved.0),
                provider_state: Set(moved.1),
                output: Set(moved.2),
                ..Default::default()
            };
            let guard = observe.driver.guard().add(Column::Status.eq(Status::Running));
            if write(tx, time, (&row).into(), changes, Vec::new(), guard)
                .await?
                .is_none()
            {
                return Err(observe.driver.fenced());
            }
        }
        book.save(tx, time).await?;
    }
    let cancelled = row.status == Status::Cancelled;
    if cancelled {
        cancel_told(tx, &row).await?;
    }
    Ok(cancelled)
}

//! Adds what a late driver knows to a settled row: settled → the same status. Nothing that is there gets weaker.

use sea_orm::{ColumnTrait, Condition, ConnectionTrait, Set};

use super::attempt_book::{Book, Told, priced};
use super::row::{Changes, Computed, Row, cancel_told, clock, load, lock, read_ids, union, write, write_ids};
use super::settle::queue;
use crate::charge::{self, Charge};
use crate::entity::generations::{Column, Model};
use crate::entity::words::{PriceSource, Status};
use crate::error::Error;
use crate::metadata::Metadata;
use crate::time::LedgerTime;

/// What a late driver knows.
#[derive(Debug, Clone)]
pub struct Annotate {
    /// Owner of the row.
    pub user_id: String,
    /// The row.
    pub id: String,
    /// What is known.
    pub late: Late,
}

/// The facts themselves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Late {
    /// The provider's id of the request.
    pub request_id: Option<String>,
    /// What the provider stated for the whole generation.
    pub charge: Option<Charge>,
    /// Assets that were stored all the same.
    pub asset_ids: Vec<String>,
    /// What the provider answered to our cancel.
    pub provider_cancel: Option<String>,
}

/// Annotates; the row as it is then.
///
/// # Errors
/// `NotFound`; `NotInStatus` when the row is open.
pub(super) async fn annotate<C: ConnectionTrait>(
    tx: &C,
    time: &LedgerTime,
    annotate: &Annotate,
) -> Result<Row, Error> {
    let row = lock(tx, &annotate.user_id, &annotate.id).await?;
    if row.status == Status::Running {
        return Err(Error::NotInStatus(row.status.word()));
    }
    cancel_told(tx, &row).await?;
    annotate_late(tx, time, &row, &annotate.late).await?;
    load(tx, &annotate.user_id, &annotate.id).await
}

/// The same for a settled row that is locked already.
pub(super) async fn annotate_late<C: ConnectionTrait>(
    tx: &C,
    time: &LedgerTime,
    row: &Model,
    late: &Late,
) -> Result<(), Error> {
    let Late {
        request_id,
        charge,
        asset_ids,
        provider_cancel,
    } = late;
    let mut metadata = Metadata::read(&row.metadata)?;
    let mut changes = Changes::default();
    let mut computed = Computed::new();
    let mut book = Book::load(tx, &row.id).await?;
    let told = Told {
        request_id: request_id.clone(),
        ..Default::default()
    };
    match (book.tell(&told, row.status), request_id) {
        (Ok(_), _) => {}
        (Err(Error::AttemptBound), Some(id)) => {
            metadata.add_conflict(&format!("another request id, {id}"), clock(tx, time).await?);
        }
        (Err(error), _) => return Err(error),
    }
    if let Some(charge) = charge {
        if row.price_source.is_none_or(|have| have < PriceSource::Provider) {
            book.bill_single(charge);
            priced(&mut changes, charge, PriceSource::Provider);
            metadata.set_price_breakdown(charge.breakdown.clone());
            metadata.set_unpriced_reason(None);
        } else if charge::of_row(row) != Some((charge.cost, charge.currency.as_str())) {
            let amount = charge::to_proto(charge.cost, &charge.currency);
            let what = format!("another charge, {} {}", amount.amount, amount.currency);
            metadata.add_conflict(&what, clock(tx, time).await?);
        }
    }
    if book.changed()
        && let Some(latest) = book.latest()
    {
        changes.submission = Set(latest.submission);
        changes.provider_state = Set(latest.provider_state);
        if latest.provider_request_id.is_some() {
            changes.provider_request_id = Set(latest.provider_request_id.clone());
        }
    }
    let (assets, grown) = union(read_ids(row.asset_ids.as_deref())?, asset_ids);
    if grown {
        changes.asset_ids = Set(Some(write_ids(&assets)));
        metadata.set_late_result();
    }
    if let Some(result) = provider_cancel {
        metadata.set_provider_cancel(result, clock(tx, time).await?);
    }
    let text = metadata.text();
    if text != row.metadata {
        changes.metadata = Set(text);
    }
    queue(&mut changes, &mut computed, time, row, book.has_request_id());
    if changes == Changes::default() && !book.changed() {
        return Ok(());
    }
    let guard = Condition::all().add(Column::Status.eq(row.status));
    if write(tx, time, row.into(), changes, computed, guard)
        .await?
        .is_some()
    {
        book.save(tx, time).await?;
    }
    Ok(())
}

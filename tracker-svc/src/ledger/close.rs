//! Closes a row: running → completed, failed or cancelled; and the one way out of interrupted, by evidence.
//!
//! Exactly one outcome is ever written. Who comes later is told what stands; what they knew is kept as a conflict.

use std::time::Duration;

use sea_orm::{ColumnTrait, Condition, ConnectionTrait, Set};

use super::annotate::{Late, annotate_late};
use super::attempt_book::{Book, Told};
use super::observe::Facets;
use super::row::{
    Changes, Computed, Driver, Row, cancel_told, clock, load, lock, read_ids, union, write, write_ids,
};
use super::settle::{Prices, price, queue};
use crate::charge::Charge;
use crate::entity::generations::{Column, Model};
use crate::entity::words::{OutputState, ProviderState, Status, Submission};
use crate::error::Error;
use crate::metadata::Metadata;
use crate::time::{LedgerTime, micros_of};

/// An outcome.
#[derive(Debug, Clone)]
pub struct Close {
    /// Owner of the row.
    pub user_id: String,
    /// The row.
    pub id: String,
    /// Its driver.
    pub driver: Driver,
    /// Completed, failed or cancelled.
    pub status: Status,
    /// The provider's id of the request.
    pub request_id: Option<String>,
    /// What the provider stated for the whole generation.
    pub charge: Option<Charge>,
    /// What the catalog makes of the output.
    pub catalog_charge: Option<Charge>,
    /// What was wrong with the charges.
    pub warnings: Vec<String>,
    /// Why there is no price.
    pub unpriced_reason: Option<String>,
    /// Assets that were stored.
    pub asset_ids: Vec<String>,
    /// What became of the outputs; one of [`crate::metadata::PERSISTED`].
    pub persisted: Option<String>,
    /// Why it failed, sanitised.
    pub error: Option<String>,
    /// Machine-readable reason.
    pub error_code: Option<String>,
    /// How long it took.
    pub duration: Option<Duration>,
    /// Final facets.
    pub facets: Facets,
    /// Input tokens.
    pub input_tokens: Option<i64>,
    /// Output tokens.
    pub output_tokens: Option<i64>,
    /// Whether the driver knows that it was fenced.
    pub evidence: bool,
}

/// How the race ended.
#[derive(Debug, Clone)]
pub struct Closed {
    /// Whether this call changed the outcome.
    pub changed: bool,
    /// Whether another outcome stands.
    pub lost_race: bool,
    /// The row as it is.
    pub row: Row,
}

/// Closes.
///
/// # Errors
/// `NotFound`; `Fenced`; `OutputsOpen` for a completed row whose outputs are still being saved.
pub(super) async fn close<C: ConnectionTrait>(
    tx: &C,
    time: &LedgerTime,
    close: &Close,
) -> Result<Closed, Error> {
    let row = lock(tx, &close.user_id, &close.id).await?;
    let guard = match row.status {
        Status::Running => {
            close.driver.fence(&row)?;
            Some(close.driver.guard())
        }
        Status::Interrupted if close.evidence => evidence_guard(close, &row),
        Status::Interrupted => return Err(close.driver.fenced()),
        Status::Completed | Status::Failed | Status::Cancelled => {
            if !close.evidence {
                close.driver.fence(&row)?;
            }
            None
        }
    };
    if let Some(guard) = guard
        && let Some(row) = settle(tx, time, close, &row, guard).await?
    {
        return Ok(Closed {
            changed: true,
            lost_race: false,
            row,
        });
    }
    cancel_told(tx, &row).await?;
    let lost_race = row.status != close.status;
    if lost_race {
        conflict(tx, time, close, &row).await?;
    } else {
        // The same outcome, told again or by two: what else it says may be news all the same.
        let late = Late {
            request_id: close.request_id.clone(),
            charge: close.charge.clone(),
            asset_ids: close.asset_ids.clone(),
            provider_cancel: None,
        };
        annotate_late(tx, time, &row, &late).await?;
    }
    Ok(Closed {
        changed: false,
        lost_race,
        row: load(tx, &close.user_id, &close.id).await?,
    })
}

/// Evidence fits an interrupted row when it is of the same request; or when the row's own driver, which nobody replaced,
/// tells the id that did not reach the row any more.
fn evidence_guard(close: &Close, row: &Model) -> Option<Condition> {
    let same = row.provider_request_id == close.request_id;
    let own = row.provider_request_id.is_none() && close.driver.drives(row);
    let own_silent = close.request_id.is_none() && close.driver.drives(row);
    (same || own || own_silent).then(|| match &row.provider_request_id {
        Some(id) => Condition::all().add(Column::ProviderRequestId.eq(id.as_str())),
        None => Condition::all().add(Column::ProviderRequestId.is_null()),
    })
}

async fn settle<C: ConnectionTrait>(
    tx: &C,
    time: &LedgerTime,
    close: &Close,
    row: &Model,
    guard: Condition,
) -> Result<Option<Row>, Error> {
    let output = final_output(close, row)?;
    let mut book = Book::load(tx, &row.id).await?;
    let told = Told {
        request_id: close.request_id.clone(),
        ..Default::default()
    };
    book.tell(&told, row.status)?;
    book.observe(close.facets.submission, Some(final_provider(close)));
    if let Some(charge) = &close.charge {
        book.bill_single(charge);
    }
    let mut metadata = Metadata::read(&row.metadata)?;
    close
        .warnings
        .iter()
        .for_each(|warning| metadata.add_price_warning(warning.clone()));
    if let Some(word) = &close.persisted {
        metadata.set_persisted(word);
    }
    if row.status == Status::Interrupted {
        metadata.set_superseded_status(row.status.word());
    }
    let latest = book.latest();
    let mut changes = Changes {
        status: Set(close.status),
        submission: Set(
            latest.map_or(row.submission.moved(close.facets.submission), |latest| {
                latest.submission
            }),
        ),
        provider_state: Set(latest.map_or(row.provider_state, |latest| latest.provider_state)),
        output: Set(output),
        error: Set(close.error.clone()),
        error_code: Set(close.error_code.clone()),
        cancel_pending: Set(false),
        ..Default::default()
    };
    if let Some(id) = latest.and_then(|latest| latest.provider_request_id.clone()) {
        changes.provider_request_id = Set(Some(id));
    }
    let (assets, _) = union(read_ids(row.asset_ids.as_deref())?, &close.asset_ids);
    if close.status == Status::Completed || !assets.is_empty() {
        changes.asset_ids = Set(Some(write_ids(&assets)));
    }
    if let Some(duration) = close.duration {
        changes.duration = Set(Some(micros_of(duration)));
    }
    if close.input_tokens.is_some() || close.output_tokens.is_some() {
        changes.input_tokens = Set(close.input_tokens);
        changes.output_tokens = Set(close.output_tokens);
    }
    let prices = Prices {
        receipt: close.charge.as_ref(),
        attempts: book.attempts(),
        catalog: close.catalog_charge.as_ref(),
        unpriced_reason: close.unpriced_reason.as_deref(),
    };
    price(&mut changes, &mut metadata, row, close.status, prices);
    changes.metadata = Set(metadata.text());
    let mut computed: Computed = vec![(Column::CompletedAt, time.now())];
    if close.status == Status::Cancelled {
        computed.push((Column::CancelRequestedAt, time.now()));
    }
    queue(&mut changes, &mut computed, time, row, book.has_request_id());
    let guard = guard.add(Column::Status.eq(row.status));
    let Some(generation) = write(tx, time, row.into(), changes, computed, guard).await? else {
        return Ok(None);
    };
    book.save(tx, time).await?;
    Ok(Some(Row {
        generation,
        attempts: book.into_attempts(),
    }))
}

/// Where the outputs stand at the end.
fn final_output(close: &Close, row: &Model) -> Result<OutputState, Error> {
    let output = row.output.moved(close.facets.output);
    if close.status != Status::Completed {
        return Ok(output);
    }
    if output.open() {
        return Err(Error::OutputsOpen);
    }
    if output != OutputState::Pending {
        return Ok(output);
    }
    Ok(match close.persisted.as_deref() {
        Some("lost") => OutputState::Unavailable,
        Some("assets") => OutputState::Ready,
        _ if close.asset_ids.is_empty() => OutputState::NotAsked,
        _ => OutputState::Ready,
    })
}

fn final_provider(close: &Close) -> ProviderState {
    match close.facets.provider {
        Some(state) => state,
        None if close.status == Status::Completed => ProviderState::Succeeded,
        None => ProviderState::Unknown,
    }
}

/// Keeps an outcome that came after another one.
async fn conflict<C: ConnectionTrait>(
    tx: &C,
    time: &LedgerTime,
    close: &Close,
    row: &Model,
) -> Result<(), Error> {
    let mut metadata = Metadata::read(&row.metadata)?;
    let what = match &close.request_id {
        Some(id) => format!(
            "{} after {}, request {id}",
            close.status.word(),
            row.status.word()
        ),
        None => format!("{} after {}", close.status.word(), row.status.word()),
    };
    let at = clock(tx, time).await?;
    if metadata.add_conflict(&what, at) {
        let changes = Changes {
            metadata: Set(metadata.text()),
            ..Default::default()
        };
        let guard = Condition::all().add(Column::Status.eq(row.status));
        write(tx, time, row.into(), changes, Vec::new(), guard).await?;
    }
    Ok(())
}

/// Whether something left for the provider.
#[must_use]
pub fn sent(row: &Model) -> bool {
    row.submission != Submission::Accepted
}

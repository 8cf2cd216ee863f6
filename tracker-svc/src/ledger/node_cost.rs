//! Books what a node says that its invocation cost: nodes that call providers past the seam, and nodes that know the price
//! of calls that the seam made for them.
//!
//! No charge counts twice: what providers stated for rows of the invocation is part of the node's amount, and only the
//! rest is spread over the rows that have no such statement. Where the invocation has no row, one is made, by an id that
//! follows from the invocation, so that a message that is replayed finds it there.

use sea_orm::sea_query::OnConflict;
use sea_orm::{ColumnTrait, Condition, ConnectionTrait, QueryFilter, QueryOrder, QuerySelect, Set};

use super::attempt_book::{Book, Told, priced};
use super::open::{Open, Origin, values};
use super::row::{Changes, Computed, clock, insert_with, write};
use super::settle::queue;
use crate::charge::{self, Charge, Nanos};
use crate::entity::generations::{Column, Entity, Model};
use crate::entity::words::{OutputState, PriceSource, ProviderState, Status, Submission};
use crate::error::Error;
use crate::metadata::Metadata;
use crate::time::LedgerTime;

/// What a node said.
#[derive(Debug, Clone)]
pub struct NodeCost {
    /// Owner of the rows.
    pub user_id: String,
    /// Whose invocation it was; it has an invocation id.
    pub origin: Origin,
    /// The provider that was paid.
    pub provider: String,
    /// The model, when the node knows it.
    pub model: String,
    /// The amount of the whole invocation.
    pub charge: Charge,
    /// The provider's id of the request, when the node knows it.
    pub request_id: Option<String>,
}

/// Rows of one invocation that are looked at: a node makes a few calls, not thousands.
const ROWS: u64 = 1_000;

/// The row that stands for an invocation without one.
pub(super) fn row_id(user_id: &str, invocation_id: &str) -> String {
    let text = serde_json::json!(["atelier node cost", user_id, invocation_id]).to_string();
    let digest: [u8; 32] = blake3::hash(text.as_bytes()).into();
    let bytes = digest.first_chunk::<16>().copied().unwrap_or_default();
    uuid::Builder::from_custom_bytes(bytes).into_uuid().to_string()
}

/// Books; the ids of rows that changed.
///
/// # Errors
/// Only the database's.
pub(super) async fn record<C: ConnectionTrait>(
    tx: &C,
    time: &LedgerTime,
    cost: &NodeCost,
) -> Result<Vec<String>, Error> {
    let Some(invocation_id) = &cost.origin.invocation_id else {
        return Err(Error::invalid("origin.invocation_id", "must be set"));
    };
    let rows = Entity::of(&cost.user_id)
        .filter(Column::InvocationId.eq(invocation_id.as_str()))
        .order_by_asc(Column::CreatedAt)
        .order_by_asc(Column::Id)
        .limit(ROWS)
        .lock_exclusive()
        .all(tx)
        .await?;
    if rows.is_empty() {
        return insert(tx, time, cost, invocation_id).await;
    }
    let stated = |row: &&Model| {
        row.price_source
            .is_some_and(|source| source >= PriceSource::Provider)
    };
    let (known, lacking): (Vec<&Model>, Vec<&Model>) = rows.iter().partition(stated);
    let [first, ..] = lacking.as_slice() else {
        return Ok(Vec::new());
    };
    let mut rest = cost.charge.cost;
    for row in known {
        match charge::of_row(row) {
            Some((nanos, currency)) if currency == cost.charge.currency => rest = rest.saturating_sub(nanos),
            Some(_) | None => return conflict(tx, time, first, cost).await,
        }
    }
    if rest < 0 {
        return conflict(tx, time, first, cost).await;
    }
    let estimates: Vec<_> = lacking.iter().map(|row| row.estimated_cost).collect();
    let mut changed = Vec::new();
    for (row, share) in lacking.into_iter().zip(spread(rest, &estimates)) {
        if book(tx, time, row, share, cost).await? {
            changed.push(row.id.clone());
        }
    }
    Ok(changed)
}

/// The parts of an amount in proportion to the estimates, equal when one is not known; what cannot be divided is the
/// last one's.
fn spread(amount: Nanos, estimates: &[Option<Nanos>]) -> Vec<Nanos> {
    let known: Option<Vec<Nanos>> = estimates.iter().copied().collect();
    let weights = known
        .filter(|known| known.iter().any(|weight| *weight > 0))
        .unwrap_or_else(|| vec![1; estimates.len()]);
    let whole: i128 = weights.iter().map(|weight| i128::from(*weight)).sum();
    let mut parts: Vec<Nanos> = weights
        .iter()
        .map(|weight| {
            let part = i128::from(amount) * i128::from(*weight) / whole.max(1);
            Nanos::try_from(part).unwrap_or(Nanos::MAX)
        })
        .collect();
    let given: Nanos = parts.iter().sum();
    if let Some(last) = parts.last_mut() {
        *last += amount.saturating_sub(given);
    }
    parts
}

/// Books a share on a settled row; on an open one it waits for the close.
async fn book<C: ConnectionTrait>(
    tx: &C,
    time: &LedgerTime,
    row: &Model,
    share: Nanos,
    cost: &NodeCost,
) -> Result<bool, Error> {
    let mut changes = Changes::default();
    let mut metadata = Metadata::read(&row.metadata)?;
    if row.status == Status::Running {
        metadata.set_node_cost(share, &cost.charge.currency);
    } else if charge::of_row(row) == Some((share, cost.charge.currency.as_str()))
        && row.price_source == Some(PriceSource::Node)
    {
        return Ok(false);
    } else {
        let charge = Charge {
            cost: share,
            // The units are those of the whole invocation.
            billing_unit: None,
            quantity: None,
            unit_price: None,
            ..cost.charge.clone()
        };
        priced(&mut changes, &charge, PriceSource::Node);
        metadata.set_unpriced_reason(None);
    }
    let text = metadata.text();
    if text != row.metadata {
        changes.metadata = Set(text);
    }
    if changes == Changes::default() {
        return Ok(false);
    }
    let guard = Condition::all().add(Column::Status.eq(row.status));
    let done = write(tx, time, row.into(), changes, Computed::new(), guard).await?;
    Ok(done.is_some())
}

/// Keeps an amount that does not fit what providers stated.
async fn conflict<C: ConnectionTrait>(
    tx: &C,
    time: &LedgerTime,
    row: &Model,
    cost: &NodeCost,
) -> Result<Vec<String>, Error> {
    let mut metadata = Metadata::read(&row.metadata)?;
    let amount = charge::to_proto(cost.charge.cost, &cost.charge.currency);
    let what = format!("the node says {} {}", amount.amount, amount.currency);
    if !metadata.add_conflict(&what, clock(tx, time).await?) {
        return Ok(Vec::new());
    }
    let changes = Changes {
        metadata: Set(metadata.text()),
        ..Default::default()
    };
    let guard = Condition::all().add(Column::Status.eq(row.status));
    write(tx, time, row.into(), changes, Computed::new(), guard).await?;
    Ok(vec![row.id.clone()])
}

/// Makes the one row of an invocation without any.
async fn insert<C: ConnectionTrait>(
    tx: &C,
    time: &LedgerTime,
    cost: &NodeCost,
    invocation_id: &str,
) -> Result<Vec<String>, Error> {
    let id = row_id(&cost.user_id, invocation_id);
    let open = Open {
        user_id: cost.user_id.clone(),
        id: id.clone(),
        provider: cost.provider.clone(),
        model: cost.model.clone(),
        capability: "node".to_owned(),
        origin: cost.origin.clone(),
        parameters: "{}".to_owned(),
        idempotency_key: None,
        input_fingerprint: String::new(),
        estimate: None,
        warning: None,
        unpriced_reason: None,
        background: false,
        instance_id: String::new(),
        parent: None,
        plan: None,
    };
    let mut row = Changes {
        status: Set(Status::Completed),
        submission: Set(Submission::Submitted),
        provider_state: Set(ProviderState::Succeeded),
        output: Set(OutputState::NotAsked),
        asset_ids: Set(Some("[]".to_owned())),
        ..values(&open)
    };
    priced(&mut row, &cost.charge, PriceSource::Node);
    let now = time.now();
    let times = [
        Column::CreatedAt,
        Column::StartedAt,
        Column::UpdatedAt,
        Column::CompletedAt,
    ];
    let mut insert = insert_with(&row, times.map(|column| (column, now.clone())))?;
    insert.on_conflict(OnConflict::new().do_nothing().to_owned());
    if tx.execute(&insert).await?.rows_affected() == 0 {
        return Ok(Vec::new());
    }
    if let Some(request_id) = &cost.request_id {
        let mut attempts = Book::load(tx, &id).await?;
        let told = Told {
            request_id: Some(request_id.clone()),
            ..Default::default()
        };
        attempts.tell(&told, Status::Running)?;
        attempts.save(tx, time).await?;
        let row = super::row::lock(tx, &cost.user_id, &id).await?;
        let mut changes = Changes {
            provider_request_id: Set(Some(request_id.clone())),
            ..Default::default()
        };
        let mut computed = Computed::new();
        queue(&mut changes, &mut computed, time, &row, true);
        write(tx, time, (&row).into(), changes, computed, Condition::all()).await?;
    }
    Ok(vec![id])
}

impl NodeCost {
    /// What decides which queue it goes through: the same for one invocation.
    pub(super) fn queue_key(&self) -> String {
        let invocation_id = self.origin.invocation_id.as_deref().unwrap_or_default();
        row_id(&self.user_id, invocation_id)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn g_143_an_amount_is_spread_to_the_digit() {
        let third = [33_333_333, 33_333_333, 33_333_334];
        assert_eq!(spread(100_000_000, &[None, None, None]), third);
        assert_eq!(spread(100_000_000, &[Some(1), None, Some(5)]), third);
        assert_eq!(spread(100_000_000, &[Some(0), Some(0), Some(0)]), third);
        let estimates = [Some(25_000_000), Some(25_000_000), Some(50_000_000)];
        assert_eq!(
            spread(100_000_000, &estimates),
            [25_000_000, 25_000_000, 50_000_000]
        );
        assert_eq!(spread(1, &estimates), [0, 0, 1]);
        assert_eq!(
            spread(Nanos::MAX, &[Some(Nanos::MAX), Some(1)])
                .iter()
                .sum::<i64>(),
            Nanos::MAX
        );
        assert!(Uuid::parse_str(&row_id("u1", "i1")).is_ok());
        assert_ne!(row_id("u1", "i1"), row_id("u2", "i1"));
    }
}

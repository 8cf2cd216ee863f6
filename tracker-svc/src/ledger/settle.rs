//! What every way to settle a row has in common: which cost it carries, and whether it waits for its bill.

use std::time::Duration;

use sea_orm::Set;

use super::attempt_book::priced;
use super::row::{Changes, Computed};
use crate::charge::{self, Charge};
use crate::entity::attempts;
use crate::entity::generations::{Column, Model};
use crate::entity::words::{PriceSource, ReconcileState, Status};
use crate::metadata::Metadata;
use crate::time::LedgerTime;

/// How long after the settling the first look at the bill is due: bills lag behind the calls.
pub(crate) const FIRST_LOOK: Duration = Duration::from_mins(1);

/// Queues a settled row for its bill, when the provider knows of it and the bill is not the source already.
pub(super) fn queue(
    changes: &mut Changes,
    computed: &mut Computed,
    time: &LedgerTime,
    row: &Model,
    has_request_id: bool,
) {
    if has_request_id
        && row.reconcile_state == ReconcileState::Nothing
        && row.price_source != Some(PriceSource::Billing)
    {
        changes.reconcile_state = Set(ReconcileState::Queued);
        computed.push((Column::ReconcileNextAt, time.later(FIRST_LOOK)));
    }
}

/// What there is to price a row with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Prices<'a> {
    /// What the provider stated for the whole generation.
    pub receipt: Option<&'a Charge>,
    /// What the submissions cost.
    pub attempts: &'a [attempts::Model],
    /// What the catalog makes of the output.
    pub catalog: Option<&'a Charge>,
    /// Why there is no price.
    pub unpriced_reason: Option<&'a str>,
}

/// Prices a row that leaves running: the provider's own word before the sum of its attempts before the node's word before
/// the catalog, and the catalog only for what completed. A call that made another one inside of it costs nothing of its own unless its
/// provider says so: the inner row carries the charge, and no charge counts twice. A stronger source that is there stays.
pub(super) fn price(
    changes: &mut Changes,
    metadata: &mut Metadata,
    row: &Model,
    status: Status,
    prices: Prices<'_>,
) {
    let Prices {
        receipt,
        attempts,
        catalog,
        unpriced_reason,
    } = prices;
    let summed = charge::sum(attempts);
    let bare = |cost, currency| Charge {
        cost,
        currency,
        billing_unit: None,
        quantity: None,
        unit_price: None,
        breakdown: None,
    };
    let node = metadata
        .take_node_cost()
        .map(|(nanos, currency)| bare(nanos, currency));
    let nothing = metadata.delegated().then(|| {
        let currency = row.estimated_currency.clone();
        bare(0, currency.unwrap_or_else(|| "USD".to_owned()))
    });
    let catalog = catalog.filter(|_| status == Status::Completed);
    let best = receipt
        .or(summed.as_ref())
        .or(nothing.as_ref())
        .map(|charge| (charge, PriceSource::Provider))
        .or(node.as_ref().map(|charge| (charge, PriceSource::Node)))
        .or(catalog.map(|charge| (charge, PriceSource::Catalog)));
    match best {
        Some((charge, source)) if row.price_source.is_none_or(|have| have <= source) => {
            priced(changes, charge, source);
            metadata.set_price_breakdown(charge.breakdown.clone());
            metadata.set_unpriced_reason(None);
        }
        Some(_) => {}
        None if row.cost.is_none() => {
            if let Some(reason) = unpriced_reason {
                metadata.set_unpriced_reason(Some(reason.to_owned()));
            }
        }
        None => metadata.set_unpriced_reason(None),
    }
}

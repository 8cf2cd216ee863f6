//! Rows and reports as messages.

use std::collections::BTreeMap;

use atelier_proto::common::v1::{MapValue, Money, Origin};
use atelier_proto::time::{proto_duration, proto_from_micros};
use atelier_proto::tracker::v1;
use atelier_proto::value::{Map, map_from_json};
use rust_decimal::Decimal;

use crate::charge;
use crate::costs::Summary;
use crate::entity::words::{Status, Submission};
use crate::entity::{attempts, generations};
use crate::error::Error;
use crate::ledger::{Row, read_ids};
use crate::metadata::Metadata;
use crate::reconcile::Claimed;

/// The message of a row.
///
/// # Errors
/// `Corrupt` when a column holds what nobody writes.
pub(super) fn generation(row: Row) -> Result<v1::Generation, Error> {
    let Row { generation, attempts } = row;
    let metadata = metadata_of(&generation)?;
    let generations::Model {
        id,
        user_id,
        status,
        submission,
        provider_state,
        output,
        provider,
        model,
        capability,
        surface,
        thread_id,
        tool_call_id,
        request_id,
        job_id,
        node_id,
        node_type,
        invocation_id,
        workflow_id,
        project_id,
        parent_generation_id,
        idempotency_key: _,
        input_fingerprint: _,
        background,
        parameters,
        cost,
        currency,
        billing_unit,
        quantity,
        unit_price,
        estimated_cost,
        estimated_currency,
        price_source,
        input_tokens,
        output_tokens,
        provider_request_id,
        asset_ids,
        error,
        error_code,
        reconcile_state,
        reconcile_attempts,
        reconcile_next_at,
        reconciled_at,
        reconcile_error,
        reconcile_claim: _,
        reconcile_lease_until: _,
        reconcile_denied_for: _,
        owner_instance: _,
        owner_epoch,
        plan: _,
        resume_pending: _,
        adoptions: _,
        cancel_requested_at: _,
        cancel_pending: _,
        interrupted_reason: _,
        metadata: _,
        version,
        created_at,
        started_at,
        completed_at,
        updated_at: _,
        duration,
    } = generation;
    Ok(v1::Generation {
        generation_id: id,
        user_id,
        status: status.to_proto().into(),
        provider,
        model,
        capability,
        origin: Some(Origin {
            surface,
            thread_id,
            tool_call_id,
            request_id,
            job_id,
            node_id,
            node_type,
            invocation_id,
            workflow_id,
            project_id,
        }),
        parameters: Some(map_of(&parameters)?),
        cost: money(cost, currency.as_deref()),
        estimated_cost: money(estimated_cost, estimated_currency.as_deref()),
        billing_unit,
        quantity,
        unit_price,
        price_source: price_source.map(|source| source.word().to_owned()),
        provider_request_id,
        assets_known: status != Status::Running && asset_ids.is_some(),
        asset_ids: read_ids(asset_ids.as_deref())?,
        error,
        error_code,
        facets: Some(v1::Facets {
            submission: submission.to_proto().into(),
            provider: provider_state.to_proto().into(),
            output: output.to_proto().into(),
        }),
        attempts: attempts.into_iter().map(attempt).collect(),
        reconciliation: Some(v1::Reconciliation {
            state: reconcile_state.word().to_owned(),
            reconciled_at: reconciled_at.map(proto_from_micros),
            attempts: reconcile_attempts,
            next_at: reconcile_next_at.map(proto_from_micros),
            error: reconcile_error,
        }),
        background,
        created_at: Some(proto_from_micros(created_at)),
        started_at: Some(proto_from_micros(started_at)),
        completed_at: completed_at.map(proto_from_micros),
        duration: duration
            .and_then(|micros| u64::try_from(micros).ok())
            .map(|micros| proto_duration(std::time::Duration::from_micros(micros))),
        owner_epoch,
        version,
        metadata: Some((&metadata).into()),
        input_tokens,
        output_tokens,
        parent_generation_id,
    })
}

/// The facts of a row; an unknown cost always has a reason.
fn metadata_of(row: &generations::Model) -> Result<Map, Error> {
    let mut metadata = Metadata::read(&row.metadata)?;
    if let Some(reason) = &row.interrupted_reason {
        metadata.set_interrupted_reason(reason);
    }
    if row.cost.is_none() && metadata.unpriced_reason().is_none() {
        let reason = match (row.status, row.submission) {
            (Status::Running, _) => None,
            (_, Submission::Accepted) => Some("nothing was sent"),
            (Status::Completed, _) => Some("no price is known"),
            (Status::Failed | Status::Cancelled | Status::Interrupted, _) => {
                Some("the provider stated no charge")
            }
        };
        metadata.set_unpriced_reason(reason.map(ToOwned::to_owned));
    }
    Ok(metadata.to_map())
}

/// The order to look for a bill.
///
/// # Errors
/// `Corrupt` when a column holds what nobody writes.
pub(super) fn reconcile_order(claimed: Claimed, manual: bool) -> Result<v1::ReconcileOrder, Error> {
    let Claimed { row, claim } = claimed;
    Ok(v1::ReconcileOrder {
        generation: Some(generation(row)?),
        claim,
        manual,
    })
}

fn attempt(attempt: attempts::Model) -> v1::Attempt {
    let attempts::Model {
        generation_id: _,
        attempt_number,
        kind,
        provider_request_id,
        resume_token,
        submission,
        provider_state,
        cost,
        currency,
        billing_unit: _,
        quantity: _,
        unit_price: _,
        price_source: _,
        created_at: _,
        updated_at: _,
    } = attempt;
    v1::Attempt {
        attempt_number,
        kind: kind.word().to_owned(),
        provider_request_id,
        cost: money(cost, currency.as_deref()),
        submission: submission.to_proto().into(),
        provider: provider_state.to_proto().into(),
        resume_token,
    }
}

fn money(nanos: Option<charge::Nanos>, currency: Option<&str>) -> Option<Money> {
    nanos
        .zip(currency)
        .map(|(nanos, currency)| charge::to_proto(nanos, currency))
}

fn map_of(text: &str) -> Result<MapValue, Error> {
    let json = serde_json::from_str(text).map_err(|_| Error::Corrupt("parameters"))?;
    let map = map_from_json(json).ok_or(Error::Corrupt("parameters"))?;
    Ok((&map).into())
}

/// The message of a sum.
pub(super) fn summary(summary: Summary) -> v1::CostSummary {
    let Summary {
        key,
        costs,
        calls,
        completed,
        failed,
        cancelled,
        interrupted,
        unpriced,
        unsent,
        running,
        pending,
    } = summary;
    v1::CostSummary {
        key,
        costs: amounts(costs),
        call_count: calls,
        completed_count: completed,
        failed_count: failed,
        cancelled_count: cancelled,
        interrupted_count: interrupted,
        unpriced_count: unpriced,
        unsent_count: unsent,
        running_count: running,
        pending: amounts(pending),
    }
}

/// Sums, dollars first, the others by name.
fn amounts(sums: BTreeMap<String, Decimal>) -> Vec<Money> {
    let mut amounts: Vec<Money> = sums
        .into_iter()
        .map(|(currency, amount)| Money {
            amount: atelier_proto::money::exact(amount),
            currency,
        })
        .collect();
    amounts.sort_by_key(|money| money.currency != "USD");
    amounts
}

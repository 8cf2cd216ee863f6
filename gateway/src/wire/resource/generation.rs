//! A row of the ledger.

use atelier_proto::common::v1::Origin as OriginMessage;
use atelier_proto::time::{iso, micros_from_proto};
use atelier_proto::tracker::v1;
use serde::Serialize;
use serde_json::Value as Json;
use utoipa::ToSchema;

use crate::wire::words;

/// A call to a provider, as the ledger has it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Generation {
    /// Its id.
    id: String,
    /// `running`, `completed`, `failed`, `cancelled` or `interrupted`.
    status: &'static str,
    /// The provider.
    provider: String,
    /// The provider's name of the model.
    model: String,
    /// What was asked, for instance `text_to_image`.
    capability: String,
    /// What it cost; null while that is not known.
    #[schema(required, example = "0.04")]
    cost: Option<String>,
    /// The currency of the cost, else of the estimate.
    #[schema(required, example = "USD")]
    currency: Option<String>,
    /// What the catalog said before the call.
    #[schema(required)]
    estimated_cost: Option<String>,
    /// What was counted.
    #[schema(required)]
    billing_unit: Option<String>,
    /// How many units.
    #[schema(required)]
    quantity: Option<String>,
    /// The price of one.
    #[schema(required)]
    unit_price: Option<String>,
    /// Where the cost comes from.
    #[schema(required)]
    price_source: Option<String>,
    /// The assets that came out of it.
    asset_ids: Vec<String>,
    /// The run that asked.
    #[schema(required)]
    job_id: Option<String>,
    /// The node that asked.
    #[schema(required)]
    node_id: Option<String>,
    /// The workflow of that run.
    #[schema(required)]
    workflow_id: Option<String>,
    /// Who asked.
    origin: Origin,
    /// The request, without bytes and secrets.
    #[schema(value_type = Object)]
    params: Json,
    /// The provider's id of the latest attempt.
    #[schema(required)]
    provider_request_id: Option<String>,
    /// The submissions, in order.
    attempts: Vec<Attempt>,
    /// Whether and how the estimate was replaced by the bill.
    reconcile: Reconcile,
    /// Facets that move on their own.
    facets: Facets,
    /// When the row was opened.
    created_at: String,
    /// When it was first submitted.
    started_at: String,
    /// When it was settled.
    #[schema(required)]
    completed_at: Option<String>,
    /// How long the call took, in milliseconds.
    #[schema(required)]
    duration_ms: Option<i64>,
    /// Why it failed.
    #[schema(required)]
    error: Option<String>,
    /// Machine-readable reason.
    #[schema(required)]
    error_code: Option<String>,
    /// Whether its caller went on without waiting.
    background: bool,
    /// Rises by one with every write.
    version: i64,
    /// Further facts.
    #[schema(value_type = Object)]
    metadata: Json,
    /// Input tokens, when billed by tokens.
    #[schema(required)]
    input_tokens: Option<i64>,
    /// Output tokens, when billed by tokens.
    #[schema(required)]
    output_tokens: Option<i64>,
    /// The call inside of which this one was made.
    #[schema(required)]
    parent_generation_id: Option<String>,
}

/// Who asked for a generation.
#[derive(Debug, Default, Serialize, ToSchema)]
struct Origin {
    /// `workflow`, `capability`, `chat`, `rpc`, `cli` or `app`.
    #[schema(required)]
    surface: Option<&'static str>,
    #[schema(required)]
    thread_id: Option<String>,
    #[schema(required)]
    tool_call_id: Option<String>,
    #[schema(required)]
    request_id: Option<String>,
    #[schema(required)]
    job_id: Option<String>,
    #[schema(required)]
    node_id: Option<String>,
    #[schema(required)]
    node_type: Option<String>,
    #[schema(required)]
    invocation_id: Option<String>,
}

/// One submission to the provider.
#[derive(Debug, Serialize, ToSchema)]
struct Attempt {
    /// Its number, from 1.
    no: i32,
    /// `main`, `retry`, `preview`, `refine` or `resubmit`.
    kind: String,
    #[schema(required)]
    request_id: Option<String>,
    #[schema(required)]
    cost: Option<String>,
    #[schema(required)]
    currency: Option<String>,
    #[schema(required)]
    submission_status: Option<&'static str>,
    #[schema(required)]
    provider_status: Option<&'static str>,
}

/// Whether and how the estimate was replaced by the bill.
#[derive(Debug, Serialize, ToSchema)]
struct Reconcile {
    /// `none`, `queued`, `done`, `unavailable`, `denied` or `exhausted`.
    state: String,
    attempts: i32,
    #[schema(required)]
    next_at: Option<String>,
    #[schema(required)]
    reconciled_at: Option<String>,
    #[schema(required)]
    error: Option<String>,
}

/// Facets that move on their own.
#[derive(Debug, Serialize, ToSchema)]
struct Facets {
    #[schema(required)]
    submission: Option<&'static str>,
    #[schema(required)]
    provider: Option<&'static str>,
    #[schema(required)]
    output: Option<&'static str>,
}

impl From<&OriginMessage> for Origin {
    fn from(origin: &OriginMessage) -> Self {
        let OriginMessage {
            surface,
            thread_id,
            tool_call_id,
            request_id,
            job_id,
            node_id,
            node_type,
            invocation_id,
            // Of the row itself.
            workflow_id: _,
            project_id: _,
        } = origin.clone();
        let surface = words::surface(surface);
        Self {
            surface,
            thread_id,
            tool_call_id,
            request_id,
            job_id,
            node_id,
            node_type,
            invocation_id,
        }
    }
}

impl From<v1::Attempt> for Attempt {
    fn from(attempt: v1::Attempt) -> Self {
        // The token to poll again is of the adapter, not of the client.
        let v1::Attempt {
            attempt_number,
            kind,
            provider_request_id,
            cost,
            submission,
            provider,
            resume_token: _,
        } = attempt;
        Self {
            no: attempt_number,
            kind,
            request_id: provider_request_id,
            cost: super::short_of(cost.as_ref()),
            currency: cost.map(|cost| cost.currency),
            submission_status: words::submission(submission),
            provider_status: words::provider(provider),
        }
    }
}

impl From<v1::Reconciliation> for Reconcile {
    fn from(reconciliation: v1::Reconciliation) -> Self {
        let v1::Reconciliation {
            state,
            reconciled_at,
            attempts,
            next_at,
            error,
        } = reconciliation;
        Self {
            state: if state.is_empty() {
                "none".to_owned()
            } else {
                state
            },
            attempts,
            next_at: next_at.as_ref().map(iso),
            reconciled_at: reconciled_at.as_ref().map(iso),
            error,
        }
    }
}

impl From<v1::Facets> for Facets {
    fn from(facets: v1::Facets) -> Self {
        let v1::Facets {
            submission,
            provider,
            output,
        } = facets;
        Self {
            submission: words::submission(submission),
            provider: words::provider(provider),
            output: words::output(output),
        }
    }
}

impl From<v1::Generation> for Generation {
    fn from(row: v1::Generation) -> Self {
        let v1::Generation {
            generation_id,
            user_id,
            status,
            provider,
            model,
            capability,
            origin,
            parameters,
            cost,
            estimated_cost,
            billing_unit,
            quantity,
            unit_price,
            price_source,
            provider_request_id,
            asset_ids,
            assets_known: _,
            error,
            error_code,
            facets,
            attempts,
            reconciliation,
            background,
            created_at,
            started_at,
            completed_at,
            duration,
            owner_epoch: _,
            version,
            metadata,
            input_tokens,
            output_tokens,
            parent_generation_id,
        } = row;
        let created_at = created_at.as_ref().map(iso).unwrap_or_default();
        let open_ms = started_at
            .as_ref()
            .zip(completed_at.as_ref())
            .map(|(start, end)| {
                let micros = micros_from_proto(end).saturating_sub(micros_from_proto(start));
                micros.max(0) / 1_000
            });
        let asked = origin.unwrap_or_default();
        Self {
            id: generation_id,
            status: words::generation_status(status),
            provider,
            model,
            capability,
            cost: super::short_of(cost.as_ref()),
            estimated_cost: super::short_of(estimated_cost.as_ref()),
            currency: cost.or(estimated_cost).map(|money| money.currency),
            billing_unit,
            quantity,
            unit_price,
            price_source,
            asset_ids,
            job_id: asked.job_id.clone(),
            node_id: asked.node_id.clone(),
            workflow_id: asked.workflow_id.clone(),
            origin: (&asked).into(),
            params: super::redacted_object(parameters, &user_id),
            provider_request_id,
            attempts: attempts.into_iter().map(Into::into).collect(),
            reconcile: reconciliation.unwrap_or_default().into(),
            facets: facets.unwrap_or_default().into(),
            started_at: started_at.as_ref().map_or_else(|| created_at.clone(), iso),
            created_at,
            completed_at: completed_at.as_ref().map(iso),
            // A row that its driver did not close has no measured duration: then it is the time it was open.
            duration_ms: duration.as_ref().map(super::millis).or(open_ms),
            error: error.and_then(super::text),
            error_code: error_code.and_then(super::text),
            background,
            version,
            metadata: super::object(metadata, &user_id),
            input_tokens,
            output_tokens,
            parent_generation_id,
        }
    }
}

//! `prediction`: a call to a provider as its row tells it (wire specification 3.5, R-32, R-33).

use atelier_proto::common::v1::{Money, Origin};
use atelier_proto::kernel::v1::Prediction;
use atelier_proto::money;
use atelier_proto::time::{iso, seconds};
use atelier_proto::tracker::v1::{Facets, Generation, GenerationStatus};
use atelier_proto::value::{Map, Value};

use super::{Body, Class, Frame, Stamp};
use crate::wire::{value, words};

pub(super) fn prediction(stamp: &Stamp<'_>, prediction: Prediction) -> Frame {
    let Prediction {
        node_id,
        node_type,
        generation,
    } = prediction;
    let row = generation.unwrap_or_default();
    let mut body = stamp.body("prediction");
    body.put("id", row.generation_id.as_str());
    body.put("user_id", row.user_id.as_str());
    body.put("node_id", node_id);
    body.optional("node_type", Some(&node_type));
    body.put("provider", row.provider.as_str());
    body.put("model", row.model.as_str());
    body.put("capability", row.capability.as_str());
    let (status, detail) = status_words(row.status);
    body.put("status", status);
    body.optional("detail_status", detail);
    if let Some(origin) = &row.origin {
        body.put("origin", origin_of(origin));
        body.optional("thread_id", origin.thread_id.as_deref());
    }
    body.put(
        "asset_ids",
        Value::list(row.asset_ids.iter().map(|id| id.as_str().into()).collect()),
    );
    body.put("receipt", receipt(&row));
    body.put("params", params(&row, stamp.user_id));
    body.put("data", Value::Null);
    amount(
        &mut body,
        "cost",
        row.cost.as_ref().map(|cost| cost.amount.as_str()),
    );
    body.nullable("error", row.error.as_deref());
    body.optional("error_code", row.error_code.as_deref());
    if let Some(duration) = &row.duration {
        body.put("duration", seconds(duration));
    }
    for (key, at) in [
        ("created_at", row.created_at),
        ("started_at", row.started_at),
        ("completed_at", row.completed_at),
    ] {
        if let Some(at) = at {
            body.put(key, iso(&at));
        }
    }
    if let Some(Facets {
        submission,
        provider,
        output,
    }) = row.facets
    {
        body.optional("submission_status", words::submission(submission));
        body.optional("provider_status", words::provider(provider));
        body.optional("output_status", words::output(output));
    }
    stamp.frame("prediction", Class::Keep, body)
}

/// One of the four statuses that clients know, and the finer one beside it.
fn status_words(status: i32) -> (&'static str, Option<&'static str>) {
    match GenerationStatus::try_from(status).unwrap_or_default() {
        GenerationStatus::Interrupted => ("failed", Some("interrupted")),
        GenerationStatus::Unspecified
        | GenerationStatus::Running
        | GenerationStatus::Completed
        | GenerationStatus::Failed
        | GenerationStatus::Cancelled => (words::generation_status(status), None),
    }
}

fn origin_of(origin: &Origin) -> Value {
    let mut out = Body(Map::new());
    out.optional("surface", words::surface(origin.surface));
    out.optional("thread_id", origin.thread_id.as_deref());
    out.optional("tool_call_id", origin.tool_call_id.as_deref());
    out.optional("job_id", origin.job_id.as_deref());
    out.optional("node_id", origin.node_id.as_deref());
    out.optional("request_id", origin.request_id.as_deref());
    out.0.into()
}

fn params(row: &Generation, user_id: &str) -> Value {
    let params = row
        .parameters
        .clone()
        .and_then(|params| Map::try_from(params).ok())
        .unwrap_or_default();
    value::redacted(&params.into(), user_id)
}

fn receipt(row: &Generation) -> Value {
    if row.provider_request_id.is_none() && row.cost.is_none() {
        return Value::Null;
    }
    let mut out = Body(Map::new());
    out.optional("provider_request_id", row.provider_request_id.as_deref());
    if let Some(Money {
        amount: sum,
        currency,
    }) = &row.cost
    {
        let mut cost = Body(Map::new());
        amount(&mut cost, "amount", Some(sum));
        cost.put("currency", currency.as_str());
        cost.optional("billing_unit", row.billing_unit.as_deref());
        for (key, text) in [("quantity", &row.quantity), ("unit_price", &row.unit_price)] {
            if let Some(text) = text {
                amount(&mut cost, key, Some(text));
            }
        }
        out.put("cost", cost.0);
    }
    out.0.into()
}

/// A decimal as a number, and its exact text beside it; null when it is not known.
fn amount(body: &mut Body, key: &str, text: Option<&str>) {
    let exact = text.and_then(|text| Some(money::exact(text.parse().ok()?)));
    let number = text.and_then(|text| text.parse::<f64>().ok());
    body.put(
        key,
        number
            .filter(|_| exact.is_some())
            .map_or(Value::Null, Value::Float),
    );
    body.optional(&format!("{key}_exact"), exact.as_deref());
}

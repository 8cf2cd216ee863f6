//! The resources of the REST interface and how messages of the contracts become them. One file per resource. Times are
//! ISO 8601 with `Z`, money is decimal text, what is not known is null.

mod asset;
mod budget;
mod cost;
mod generation;
mod job;
mod node;
mod workflow;

pub(crate) use asset::Asset;
pub(crate) use budget::Budget;
pub(crate) use cost::{CostSummary, JobCost};
pub(crate) use generation::Generation;
pub(crate) use job::{Issue, Job};
pub(crate) use node::{Model, NodeType};
pub(crate) use workflow::{Workflow, WorkflowVersion};

use atelier_proto::common::v1::{MapValue, Money};
use atelier_proto::money;
use atelier_proto::value::{BytesForm, Map, Value, to_json};
use serde_json::Value as Json;

use super::value;

/// A map as JSON; an empty object when there is none.
fn object(map: Option<MapValue>, user_id: &str) -> Json {
    to_json(
        &Value::map(value::map_for(map, user_id).unwrap_or_default()),
        BytesForm::Tagged,
    )
}

/// Outputs as their owner sees them.
pub(crate) fn outputs_of(outputs: MapValue, user_id: &str) -> Json {
    object(Some(outputs), user_id)
}

/// The request of a row as JSON, without bytes.
fn redacted_object(map: Option<MapValue>, user_id: &str) -> Json {
    let map = map.and_then(|map| Map::try_from(map).ok()).unwrap_or_default();
    to_json(&value::redacted(&map.into(), user_id), BytesForm::Tagged)
}

/// The shortest text of an amount; as it came when it is no decimal.
fn short(amount: &str) -> String {
    amount.parse().map_or_else(|_| amount.to_owned(), money::short)
}

fn short_of(amount: Option<&Money>) -> Option<String> {
    amount.map(|money| short(&money.amount))
}

/// Milliseconds of a duration.
fn millis(duration: &prost_types::Duration) -> i64 {
    duration
        .seconds
        .saturating_mul(1000)
        .saturating_add(i64::from(duration.nanos) / 1_000_000)
}

/// A text, or null when it is empty.
fn text(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

//! Secrets that a run holds: whatever its parameters and the properties of its nodes keep under the name of a secret.

use std::sync::Arc;

use atelier_common::secrets::is_secret_key;
use atelier_proto::value::{Map, Value};

use crate::graph::plan::Plan;

/// Shorter texts are not looked for: they would tear ordinary words apart.
const MIN_CHARS: usize = 6;
/// Secrets that are looked for.
const MAX_SECRETS: usize = 256;
/// Values within values that are searched.
const MAX_DEPTH: usize = 6;

/// The secrets of a run.
pub(crate) fn secrets(plan: &Plan, params: &Map) -> Vec<Arc<str>> {
    let mut found = Vec::new();
    search(params, 0, &mut found);
    for node in &plan.nodes {
        search(&node.statics, 0, &mut found);
        // An input of the run that is called like a secret brings one.
        if node.external && is_secret_key(node.node.input_name()) {
            let own = [node.statics.get("value"), params.get(node.node.input_name())];
            own.into_iter()
                .flatten()
                .for_each(|value| keep(value, &mut found));
        }
    }
    found
}
fn search(map: &Map, depth: usize, found: &mut Vec<Arc<str>>) {
    for (name, value) in map {
        if is_secret_key(name) {
            keep(value, found);
        } else if depth < MAX_DEPTH {
            inner(value, depth, found);
        }
    }
}
fn inner(value: &Value, depth: usize, found: &mut Vec<Arc<str>>) {
    match value {
        Value::Map(map) => search(map, depth + 1, found),
        Value::List(values) if depth < MAX_DEPTH => {
            values.iter().for_each(|value| inner(value, depth + 1, found));
        }
        Value::List(_)
        | Value::Null
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Float(_)
        | Value::Str(_)
        | Value::Bytes(_)
        | Value::Media(_) => {}
    }
}
fn keep(value: &Value, found: &mut Vec<Arc<str>>) {
    if let Some(text) = value.as_str()
        && text.chars().count() >= MIN_CHARS
        && found.len() < MAX_SECRETS
    {
        found.push(text.into());
    }
}

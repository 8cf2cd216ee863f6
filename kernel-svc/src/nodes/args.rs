//! Reading the inputs of an invocation, and writing any value as text.

use atelier_proto::value::{BytesForm, Map, MediaRef, Value, to_json};

use crate::node::NodeError;

/// Inputs of an invocation with typed reads.
#[derive(Debug, Clone, Copy)]
pub(super) struct Args<'a>(pub &'a Map);

impl<'a> Args<'a> {
    /// The value; null when it is absent.
    pub fn value(self, name: &str) -> Value {
        self.0.get(name).cloned().unwrap_or_default()
    }
    /// Any value as text; empty when it is absent or null.
    pub fn text(self, name: &str) -> String {
        self.0.get(name).map(text_of).unwrap_or_default()
    }
    /// Text, or another one when it is absent or null.
    pub fn text_or(self, name: &str, default: &str) -> String {
        self.0
            .get(name)
            .filter(|value| !value.is_null())
            .map_or_else(|| default.to_owned(), text_of)
    }
    /// A whole number, also written as text.
    pub fn int(self, name: &str, default: i64) -> Result<i64, NodeError> {
        let Some(value) = self.0.get(name).filter(|value| !value.is_null()) else {
            return Ok(default);
        };
        let written = || value.as_str().and_then(|text| text.trim().parse().ok());
        value
            .as_i64()
            .or_else(written)
            .ok_or_else(|| wrong(name, "int", value))
    }
    /// A number, also written as text.
    pub fn number(self, name: &str, default: f64) -> Result<f64, NodeError> {
        let Some(value) = self.0.get(name).filter(|value| !value.is_null()) else {
            return Ok(default);
        };
        let written = || value.as_str().and_then(|text| text.trim().parse().ok());
        let number: Option<f64> = value.as_f64().or_else(written);
        number
            .filter(|number| number.is_finite())
            .ok_or_else(|| wrong(name, "float", value))
    }
    /// Whether a condition holds.
    pub fn flag(self, name: &str, default: bool) -> bool {
        self.0
            .get(name)
            .filter(|value| !value.is_null())
            .map_or(default, Value::truthy)
    }
    /// The items of a list; one item when it is something else; none when it is absent or null.
    pub fn list(self, name: &str) -> Vec<Value> {
        match self.0.get(name) {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::List(items)) => items.as_ref().clone(),
            Some(other) => vec![other.clone()],
        }
    }
    /// Inputs that the type does not declare and that are not the engine's own.
    pub fn others(self, declared: &'a [&'a str]) -> impl Iterator<Item = (&'a String, &'a Value)> {
        self.0
            .iter()
            .filter(move |(name, _)| !declared.contains(&name.as_str()) && !name.starts_with('_'))
    }
}

/// A map of one entry.
pub(super) fn one(handle: &str, value: impl Into<Value>) -> Map {
    Map::from_iter([(handle.to_owned(), value.into())])
}
/// A map of several entries.
pub(super) fn map<const N: usize>(entries: [(&str, Value); N]) -> Map {
    entries
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}
/// The fault of an input of the wrong type.
pub(super) fn wrong(name: &str, expected: &str, value: &Value) -> NodeError {
    NodeError::new(format!(
        "the input `{name}` expects {expected}, got {}",
        type_of(value)
    ))
    .code("input.type")
}
/// The fault of an input that was left out.
pub(super) fn missing(name: &str, why: &str) -> NodeError {
    NodeError::new(format!("the input `{name}` is empty: {why}")).code("input.missing")
}
/// What a value is, by the names that types have in graphs.
pub(super) fn type_of(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        Value::Int(_) => "int".to_owned(),
        Value::Float(_) => "float".to_owned(),
        Value::Str(_) => "str".to_owned(),
        Value::Bytes(_) => "bytes".to_owned(),
        Value::List(_) => "list".to_owned(),
        Value::Map(map) => map
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or("dict")
            .chars()
            .take(40)
            .collect(),
        Value::Media(media) => media.kind.chars().take(40).collect(),
    }
}

/// Any value as text: texts as they are, null as nothing, references as their address, lists and maps as JSON.
pub(super) fn text_of(value: &Value) -> String {
    match value {
        Value::Null | Value::Bytes(_) => String::new(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
        Value::Str(text) => text.to_string(),
        Value::Media(media) => media.uri.clone(),
        Value::List(_) | Value::Map(_) => json_of(value).to_string(),
    }
}
/// The JSON of a value without the bytes of media.
pub(super) fn json_of(value: &Value) -> serde_json::Value {
    to_json(&without_bytes(value), BytesForm::Tagged)
}
fn without_bytes(value: &Value) -> Value {
    match value {
        Value::Bytes(_) => Value::Null,
        Value::Media(media) => MediaRef {
            data: None,
            ..media.as_ref().clone()
        }
        .into(),
        Value::List(items) => Value::list(items.iter().map(without_bytes).collect()),
        Value::Map(map) => Value::map(
            map.iter()
                .map(|(key, value)| (key.clone(), without_bytes(value)))
                .collect(),
        ),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Str(_) => value.clone(),
    }
}
/// A whole count as a value.
pub(super) fn count(number: usize) -> Value {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}
/// A number of items that a property names; negative ones are none.
pub(super) fn size(number: i64) -> usize {
    usize::try_from(number.max(0)).unwrap_or(usize::MAX)
}

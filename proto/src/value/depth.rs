//! How deeply values may be nested: no deeper than a message can be read again.

use super::{Map, Value};

/// Messages within messages that a decoder of the contracts takes (100), less what stands around a value.
const MAX_NESTED: usize = 80;

/// Whether the entries of a map are nested deeper than messages between services can be.
#[must_use]
pub fn is_too_deep(map: &Map) -> bool {
    deeper(map.values().filter(nests).map(|value| (value, 3)).collect())
}
/// Whether a value is nested deeper than messages between services can be.
#[must_use]
pub fn is_value_too_deep(value: &Value) -> bool {
    nests(&value) && deeper(vec![(value, 3)])
}
/// Whether anything can lie within a value.
fn nests(value: &&Value) -> bool {
    matches!(value, Value::List(_) | Value::Map(_) | Value::Media(_))
}
/// Walks with a list of its own, not on the stack.
fn deeper(mut level: Vec<(&Value, usize)>) -> bool {
    while let Some((value, depth)) = level.pop() {
        if depth > MAX_NESTED {
            return true;
        }
        match value {
            Value::List(values) => level.extend(values.iter().filter(nests).map(|value| (value, depth + 2))),
            Value::Map(map) => level.extend(map.values().filter(nests).map(|value| (value, depth + 3))),
            Value::Media(media) => {
                level.extend(media.extra.values().filter(nests).map(|value| (value, depth + 4)));
            }
            Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Str(_)
            | Value::Bytes(_) => {}
        }
    }
    false
}

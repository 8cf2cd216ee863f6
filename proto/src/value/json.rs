//! `Value` to and from JSON.
//!
//! An object with a media `type` and a `uri`, `data` or `asset_id` is a reference. Bytes have two forms: `{"$bytes":
//! "<base64>"}`, which comes back as bytes, and the array of integers that old clients of the socket know.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Map as JsonMap, Number, Value as Json};

use super::{MEDIA_KINDS, Map, MediaRef, Value};

/// How bytes are written in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BytesForm {
    /// `{"$bytes": "<base64>"}`.
    Tagged,
    /// An array of integers.
    Integers,
}
const TAG: &str = "$bytes";

/// The JSON of a value. NaN and infinities become null.
#[must_use]
pub fn to_json(value: &Value, form: BytesForm) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(value) => Json::Bool(*value),
        Value::Int(value) => Json::Number((*value).into()),
        Value::Float(value) => Number::from_f64(*value).map_or(Json::Null, Json::Number),
        Value::Str(text) => Json::String(text.to_string()),
        Value::Bytes(bytes) => bytes_to_json(bytes, form),
        Value::List(values) => Json::Array(values.iter().map(|value| to_json(value, form)).collect()),
        Value::Map(map) => map_to_json(map, form),
        Value::Media(media) => media_to_json(media, form),
    }
}
fn map_to_json(map: &Map, form: BytesForm) -> Json {
    Json::Object(
        map.iter()
            .map(|(key, value)| (key.clone(), to_json(value, form)))
            .collect(),
    )
}
fn bytes_to_json(bytes: &[u8], form: BytesForm) -> Json {
    match form {
        BytesForm::Integers => Json::Array(bytes.iter().map(|byte| Json::Number((*byte).into())).collect()),
        BytesForm::Tagged => {
            let mut object = JsonMap::new();
            object.insert(TAG.to_owned(), Json::String(STANDARD.encode(bytes)));
            Json::Object(object)
        }
    }
}
fn media_to_json(media: &MediaRef, form: BytesForm) -> Json {
    let MediaRef {
        kind,
        uri,
        asset_id,
        data,
        mime_type,
        extra,
    } = media;
    let mut object = JsonMap::new();
    object.insert("type".to_owned(), Json::String(kind.clone()));
    object.insert("uri".to_owned(), Json::String(uri.clone()));
    object.insert(
        "asset_id".to_owned(),
        asset_id.clone().map_or(Json::Null, Json::String),
    );
    object.insert(
        "data".to_owned(),
        data.as_ref().map_or(Json::Null, |data| bytes_to_json(data, form)),
    );
    if let Some(mime_type) = mime_type {
        object.insert("mime_type".to_owned(), Json::String(mime_type.clone()));
    }
    for (key, value) in extra {
        object.entry(key.clone()).or_insert_with(|| to_json(value, form));
    }
    Json::Object(object)
}
/// The value of some JSON. Whole numbers are integers when they fit.
#[must_use]
pub fn from_json(json: Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(value),
        Json::Number(number) => number
            .as_i64()
            .map_or_else(|| Value::Float(number.as_f64().unwrap_or(f64::NAN)), Value::Int),
        Json::String(text) => Value::Str(text.into()),
        Json::Array(values) => Value::list(values.into_iter().map(from_json).collect()),
        Json::Object(object) => object_from_json(object),
    }
}
/// The map of a JSON object; `None` for other JSON.
#[must_use]
pub fn map_from_json(json: Json) -> Option<Map> {
    if let Json::Object(object) = json {
        Some(entries(object))
    } else {
        None
    }
}
fn entries(object: JsonMap<String, Json>) -> Map {
    object
        .into_iter()
        .map(|(key, value)| (key, from_json(value)))
        .collect()
}
fn object_from_json(object: JsonMap<String, Json>) -> Value {
    if object.len() == 1
        && let Some(Json::String(text)) = object.get(TAG)
        && let Ok(bytes) = STANDARD.decode(text)
    {
        return Value::Bytes(bytes.into());
    }
    media_or_map(entries(object))
}
/// A map that looks like a reference becomes one.
pub(super) fn media_or_map(mut map: Map) -> Value {
    let is_media = map
        .get("type")
        .and_then(Value::as_str)
        .is_some_and(|kind| MEDIA_KINDS.contains(&kind))
        && ["uri", "data", "asset_id"]
            .iter()
            .any(|key| map.contains_key(*key))
        && map
            .get("uri")
            .is_none_or(|uri| uri.is_null() || uri.as_str().is_some())
        && map
            .get("asset_id")
            .is_none_or(|id| id.is_null() || id.as_str().is_some());
    let data = map.get("data").map_or(Some(None), inline_bytes);
    let Some(data) = data.filter(|_| is_media) else {
        return Value::map(map);
    };
    let mut text = |key: &str| {
        map.shift_remove(key)
            .and_then(|value| value.as_str().map(ToOwned::to_owned))
    };
    let (kind, uri, asset_id) = (
        text("type").unwrap_or_default(),
        text("uri").unwrap_or_default(),
        text("asset_id"),
    );
    map.shift_remove("data");
    let mime_type = match map.get("mime_type") {
        Some(Value::Str(mime)) => {
            let mime = mime.to_string();
            map.shift_remove("mime_type");
            Some(mime)
        }
        _ => None,
    };
    Value::media(MediaRef {
        kind,
        uri,
        asset_id,
        data,
        mime_type,
        extra: map,
    })
}
/// Inline data of a reference: bytes, an array of integers, base64 text, or null. `None` when it is something else.
#[expect(
    clippy::option_option,
    reason = "outer: is it data at all; inner: null or bytes"
)]
fn inline_bytes(value: &Value) -> Option<Option<bytes::Bytes>> {
    match value {
        Value::Null => Some(None),
        Value::Bytes(bytes) => Some(Some(bytes.clone())),
        Value::Str(text) => STANDARD
            .decode(text.as_bytes())
            .ok()
            .map(|bytes| Some(bytes.into())),
        Value::List(values) => {
            let bytes: Option<Vec<u8>> = values
                .iter()
                .map(|value| value.as_i64().and_then(|byte| u8::try_from(byte).ok()))
                .collect();
            bytes.map(|bytes| Some(bytes.into()))
        }
        _ => None,
    }
}

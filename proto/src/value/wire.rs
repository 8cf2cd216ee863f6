//! `Value` to and from its protobuf message.

use super::{Map, MediaRef, Value};
use crate::common::v1::{self, value::Kind};

/// The message is no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// No kind is set.
    #[error("a value has no kind")]
    Unset,
    /// A key occurs twice.
    #[error("the key {0:?} occurs twice in a map")]
    DuplicateKey(String),
    /// Nested too deeply.
    #[error("a value is nested more than {MAX_DEPTH} levels deep")]
    TooDeep,
}
/// Deepest nesting that is taken.
pub(super) const MAX_DEPTH: usize = 64;

impl From<&Value> for v1::Value {
    fn from(value: &Value) -> Self {
        let kind = match value {
            Value::Null => Kind::NullValue(0),
            Value::Bool(value) => Kind::BoolValue(*value),
            Value::Int(value) => Kind::IntValue(*value),
            Value::Float(value) => Kind::DoubleValue(*value),
            Value::Str(text) => Kind::StringValue(text.to_string()),
            Value::Bytes(bytes) => Kind::BytesValue(bytes.clone()),
            Value::List(values) => Kind::ListValue(v1::ListValue {
                values: values.iter().map(Into::into).collect(),
            }),
            Value::Map(map) => Kind::MapValue(map_to_proto(map)),
            Value::Media(media) => Kind::MediaValue(v1::MediaRef::from(media.as_ref())),
        };
        Self { kind: Some(kind) }
    }
}
/// The message of a map.
#[must_use]
pub fn map_to_proto(map: &Map) -> v1::MapValue {
    let entries = map
        .iter()
        .map(|(key, value)| v1::MapEntry {
            key: key.clone(),
            value: Some(value.into()),
        })
        .collect();
    v1::MapValue { entries }
}
impl From<&Map> for v1::MapValue {
    fn from(map: &Map) -> Self {
        map_to_proto(map)
    }
}
impl From<&MediaRef> for v1::MediaRef {
    fn from(media: &MediaRef) -> Self {
        let MediaRef {
            kind,
            uri,
            asset_id,
            data,
            mime_type,
            extra,
        } = media;
        Self {
            r#type: kind.clone(),
            uri: uri.clone(),
            asset_id: asset_id.clone(),
            data: data.clone(),
            mime_type: mime_type.clone(),
            extra: (!extra.is_empty()).then(|| extra.into()),
        }
    }
}
impl TryFrom<v1::Value> for Value {
    type Error = ValueError;
    fn try_from(value: v1::Value) -> Result<Self, Self::Error> {
        from_proto(value, 0)
    }
}
impl TryFrom<v1::MapValue> for Map {
    type Error = ValueError;
    fn try_from(map: v1::MapValue) -> Result<Self, Self::Error> {
        map_from_proto(map, 0)
    }
}
impl TryFrom<v1::MediaRef> for MediaRef {
    type Error = ValueError;
    fn try_from(media: v1::MediaRef) -> Result<Self, Self::Error> {
        media_from_proto(media, 0)
    }
}
fn media_from_proto(media: v1::MediaRef, depth: usize) -> Result<MediaRef, ValueError> {
    let v1::MediaRef {
        r#type,
        uri,
        asset_id,
        data,
        mime_type,
        extra,
    } = media;
    let extra = extra
        .map(|extra| map_from_proto(extra, depth))
        .transpose()?
        .unwrap_or_default();
    Ok(MediaRef {
        kind: r#type,
        uri,
        asset_id,
        data,
        mime_type,
        extra,
    })
}
fn map_from_proto(map: v1::MapValue, depth: usize) -> Result<Map, ValueError> {
    if depth > MAX_DEPTH {
        return Err(ValueError::TooDeep);
    }
    let mut out = Map::with_capacity(map.entries.len());
    for v1::MapEntry { key, value } in map.entries {
        let value = from_proto(value.ok_or(ValueError::Unset)?, depth + 1)?;
        if out.contains_key(&key) {
            return Err(ValueError::DuplicateKey(key));
        }
        out.insert(key, value);
    }
    Ok(out)
}
fn from_proto(value: v1::Value, depth: usize) -> Result<Value, ValueError> {
    if depth > MAX_DEPTH {
        return Err(ValueError::TooDeep);
    }
    Ok(match value.kind.ok_or(ValueError::Unset)? {
        Kind::NullValue(_) => Value::Null,
        Kind::BoolValue(value) => Value::Bool(value),
        Kind::IntValue(value) => Value::Int(value),
        Kind::DoubleValue(value) => Value::Float(value),
        Kind::StringValue(text) => Value::Str(text.into()),
        Kind::BytesValue(bytes) => Value::Bytes(bytes),
        Kind::ListValue(list) => Value::list(
            list.values
                .into_iter()
                .map(|value| from_proto(value, depth + 1))
                .collect::<Result<_, _>>()?,
        ),
        Kind::MapValue(map) => Value::map(map_from_proto(map, depth)?),
        Kind::MediaValue(media) => Value::media(media_from_proto(media, depth)?),
    })
}

//! `Value` to and from msgpack, by the profile of the socket: maps with string keys, shortest integers, bin for bytes,
//! no extension types going out; the timestamp extension coming in becomes ISO text.

use chrono::SecondsFormat;
use rmpv::Value as Pack;

use super::{Map, MediaRef, Value, json::media_or_map, wire::MAX_DEPTH};

/// The msgpack is no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MsgpackError {
    /// A map has a key that is not text.
    #[error("a map has a key that is not text")]
    Key,
    /// An extension type that is not a timestamp.
    #[error("extension type {0} is not known")]
    Extension(i8),
    /// Text that is not UTF-8.
    #[error("a text is not UTF-8")]
    Utf8,
    /// Nested too deeply.
    #[error("nested more than {MAX_DEPTH} levels deep")]
    TooDeep,
}
/// The msgpack of a value.
#[must_use]
pub fn to_msgpack(value: &Value) -> Pack {
    match value {
        Value::Null => Pack::Nil,
        Value::Bool(value) => Pack::Boolean(*value),
        Value::Int(value) => Pack::from(*value),
        Value::Float(value) => Pack::F64(*value),
        Value::Str(text) => Pack::from(text.as_ref()),
        Value::Bytes(bytes) => Pack::Binary(bytes.to_vec()),
        Value::List(values) => Pack::Array(values.iter().map(to_msgpack).collect()),
        Value::Map(map) => Pack::Map(entries(map)),
        Value::Media(media) => media_to_msgpack(media),
    }
}
fn entries(map: &Map) -> Vec<(Pack, Pack)> {
    map.iter()
        .map(|(key, value)| (Pack::from(key.as_str()), to_msgpack(value)))
        .collect()
}
fn media_to_msgpack(media: &MediaRef) -> Pack {
    let MediaRef {
        kind,
        uri,
        asset_id,
        data,
        mime_type,
        extra,
    } = media;
    let mut out = vec![
        (Pack::from("type"), Pack::from(kind.as_str())),
        (Pack::from("uri"), Pack::from(uri.as_str())),
        (
            Pack::from("asset_id"),
            asset_id.as_deref().map_or(Pack::Nil, Pack::from),
        ),
        (
            Pack::from("data"),
            data.as_ref()
                .map_or(Pack::Nil, |data| Pack::Binary(data.to_vec())),
        ),
    ];
    if let Some(mime_type) = mime_type {
        out.push((Pack::from("mime_type"), Pack::from(mime_type.as_str())));
    }
    let own = ["type", "uri", "asset_id", "data", "mime_type"];
    out.extend(
        extra
            .iter()
            .filter(|(key, _)| !own.contains(&key.as_str()))
            .map(|(key, value)| (Pack::from(key.as_str()), to_msgpack(value))),
    );
    Pack::Map(out)
}
/// The value of some msgpack.
///
/// # Errors
/// A map key that is not text, text that is not UTF-8, an unknown extension, too deep nesting.
pub fn from_msgpack(pack: Pack) -> Result<Value, MsgpackError> {
    convert(pack, 0)
}
fn convert(pack: Pack, depth: usize) -> Result<Value, MsgpackError> {
    if depth > MAX_DEPTH {
        return Err(MsgpackError::TooDeep);
    }
    Ok(match pack {
        Pack::Nil => Value::Null,
        Pack::Boolean(value) => Value::Bool(value),
        Pack::Integer(number) => number
            .as_i64()
            .map_or_else(|| Value::Float(number.as_f64().unwrap_or(f64::NAN)), Value::Int),
        Pack::F32(value) => Value::Float(value.into()),
        Pack::F64(value) => Value::Float(value),
        Pack::String(text) => Value::Str(text.into_str().ok_or(MsgpackError::Utf8)?.into()),
        Pack::Binary(bytes) => Value::Bytes(bytes.into()),
        Pack::Array(values) => Value::list(
            values
                .into_iter()
                .map(|value| convert(value, depth + 1))
                .collect::<Result<_, _>>()?,
        ),
        Pack::Map(pairs) => {
            let mut map = Map::with_capacity(pairs.len());
            for (key, value) in pairs {
                let Pack::String(key) = key else {
                    return Err(MsgpackError::Key);
                };
                map.insert(
                    key.into_str().ok_or(MsgpackError::Utf8)?,
                    convert(value, depth + 1)?,
                );
            }
            media_or_map(map)
        }
        Pack::Ext(-1, data) => {
            timestamp(&data).map_or(Err(MsgpackError::Extension(-1)), |text| Ok(text.into()))?
        }
        Pack::Ext(kind, _) => return Err(MsgpackError::Extension(kind)),
    })
}
/// ISO text of a msgpack timestamp in one of its three widths.
fn timestamp(data: &[u8]) -> Option<String> {
    let (seconds, nanos) = match data.len() {
        4 => (i64::from(u32::from_be_bytes(data.try_into().ok()?)), 0),
        8 => {
            let both = u64::from_be_bytes(data.try_into().ok()?);
            (
                i64::try_from(both & 0x3_ffff_ffff).ok()?,
                u32::try_from(both >> 34).ok()?,
            )
        }
        12 => {
            let (nanos, seconds) = data.split_at(4);
            (
                i64::from_be_bytes(seconds.try_into().ok()?),
                u32::from_be_bytes(nanos.try_into().ok()?),
            )
        }
        _ => return None,
    };
    let at = chrono::DateTime::from_timestamp(seconds, nanos)?;
    Some(at.to_rfc3339_opts(SecondsFormat::Millis, true))
}

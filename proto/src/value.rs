//! [`Value`], what nodes pass to each other, and its mappings to protobuf, JSON and msgpack.
//!
//! Values are cheap to clone: texts, lists, maps and media are shared. Absent is a missing key; null is [`Value::Null`].

mod depth;
mod json;
mod msgpack;
mod wire;

use std::sync::Arc;

use bytes::Bytes;
use indexmap::IndexMap;

pub use depth::{is_too_deep, is_value_too_deep};
pub use json::{BytesForm, from_json, map_from_json, to_json};
pub use msgpack::{MsgpackError, from_msgpack, to_msgpack};
pub use wire::ValueError;

/// A map in insertion order.
pub type Map = IndexMap<String, Value>;

/// One typed value.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Value {
    /// An explicit null.
    #[default]
    Null,
    /// A truth value.
    Bool(bool),
    /// A 64-bit integer.
    Int(i64),
    /// A double.
    Float(f64),
    /// Text.
    Str(Arc<str>),
    /// Raw bytes.
    Bytes(Bytes),
    /// A list.
    List(Arc<Vec<Value>>),
    /// A map.
    Map(Arc<Map>),
    /// A reference to media.
    Media(Arc<MediaRef>),
}

/// Media by reference; see the contract for its fields.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MediaRef {
    /// `image`, `audio`, `video`, …
    pub kind: String,
    /// Where the bytes are; empty when only inline.
    pub uri: String,
    /// The stored asset.
    pub asset_id: Option<String>,
    /// Inline bytes.
    pub data: Option<Bytes>,
    /// Media type, when known.
    pub mime_type: Option<String>,
    /// All other keys.
    pub extra: Map,
}

/// Kinds of references that are media when they carry `uri`, `data` or `asset_id`.
pub const MEDIA_KINDS: &[&str] = &[
    "image", "audio", "video", "text", "html", "document", "model_3d", "folder", "sketch", "timeline",
];

impl Value {
    /// A list.
    #[must_use]
    pub fn list(values: Vec<Self>) -> Self {
        Self::List(Arc::new(values))
    }
    /// A map.
    #[must_use]
    pub fn map(map: Map) -> Self {
        Self::Map(Arc::new(map))
    }
    /// A reference to media.
    #[must_use]
    pub fn media(media: MediaRef) -> Self {
        Self::Media(Arc::new(media))
    }
    /// The text, if this is text.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        if let Self::Str(text) = self {
            Some(text)
        } else {
            None
        }
    }
    /// The truth value, if this is one.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(value) = self {
            Some(*value)
        } else {
            None
        }
    }
    /// The integer, if this is one or a whole double.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(*value),
            #[expect(clippy::cast_possible_truncation, reason = "checked to be whole and in range")]
            Self::Float(value) if value.fract() == 0.0 && value.abs() < 9.0e15 => Some(*value as i64),
            _ => None,
        }
    }
    /// The number, if this is one.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            #[expect(
                clippy::cast_precision_loss,
                reason = "a number for arithmetic, not for storing"
            )]
            Self::Int(value) => Some(*value as f64),
            Self::Float(value) => Some(*value),
            _ => None,
        }
    }
    /// The list, if this is one.
    #[must_use]
    pub fn as_list(&self) -> Option<&[Self]> {
        if let Self::List(values) = self {
            Some(values)
        } else {
            None
        }
    }
    /// The map, if this is one.
    #[must_use]
    pub fn as_map(&self) -> Option<&Map> {
        if let Self::Map(map) = self {
            Some(map)
        } else {
            None
        }
    }
    /// The reference, if this is one.
    #[must_use]
    pub fn as_media(&self) -> Option<&MediaRef> {
        if let Self::Media(media) = self {
            Some(media)
        } else {
            None
        }
    }
    /// Whether this is null.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }
    /// A field of a map; of a reference, its own fields (`type`, `uri`, …) or an extra one.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Self> {
        match self {
            Self::Map(map) => map.get(key).cloned(),
            Self::Media(media) => match key {
                "type" => Some(media.kind.as_str().into()),
                "uri" => Some(media.uri.as_str().into()),
                "asset_id" => media.asset_id.as_deref().map(Into::into),
                "data" => media.data.clone().map(Self::Bytes),
                "mime_type" => media.mime_type.as_deref().map(Into::into),
                _ => media.extra.get(key).cloned(),
            },
            _ => None,
        }
    }
    /// Whether a condition holds: null, false, zero, and empty text, list or map do not.
    #[must_use]
    pub fn truthy(&self) -> bool {
        match self {
            Self::Null => false,
            Self::Bool(value) => *value,
            Self::Int(value) => *value != 0,
            Self::Float(value) => *value != 0.0 && !value.is_nan(),
            Self::Str(text) => !text.is_empty(),
            Self::Bytes(bytes) => !bytes.is_empty(),
            Self::List(values) => !values.is_empty(),
            Self::Map(map) => !map.is_empty(),
            Self::Media(_) => true,
        }
    }
    /// What it weighs in memory, roughly, in bytes.
    #[must_use]
    pub fn weight(&self) -> usize {
        match self {
            Self::Null | Self::Bool(_) | Self::Int(_) | Self::Float(_) => 16,
            Self::Str(text) => 16 + text.len(),
            Self::Bytes(bytes) => 16 + bytes.len(),
            Self::List(values) => 32 + values.iter().map(Self::weight).sum::<usize>(),
            Self::Map(map) => {
                32 + map
                    .iter()
                    .map(|(key, value)| key.len() + value.weight())
                    .sum::<usize>()
            }
            Self::Media(media) => {
                64 + media.uri.len()
                    + media.data.as_ref().map_or(0, Bytes::len)
                    + media
                        .extra
                        .iter()
                        .map(|(key, value)| key.len() + value.weight())
                        .sum::<usize>()
            }
        }
    }
}
impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}
impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}
impl From<i32> for Value {
    fn from(value: i32) -> Self {
        Self::Int(value.into())
    }
}
impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}
impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Str(value.into())
    }
}
impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::Str(value.into())
    }
}
impl From<Vec<Value>> for Value {
    fn from(values: Vec<Value>) -> Self {
        Self::list(values)
    }
}
impl From<Map> for Value {
    fn from(map: Map) -> Self {
        Self::map(map)
    }
}
impl From<MediaRef> for Value {
    fn from(media: MediaRef) -> Self {
        Self::media(media)
    }
}

#[cfg(test)]
mod tests;

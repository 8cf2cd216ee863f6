//! What of a request may be stored and told: everything but bytes and secrets (generations specification 4.2).
//!
//! Pure, total and applied once, before the row is opened and the first message is sent.

#[cfg(test)]
mod tests;
mod text;

use atelier_common::secrets::{is_secret_key, without_signature};
use atelier_proto::value::{BytesForm, Map, MediaRef, Value, to_json};

pub use text::scrub;

/// Deepest level that is kept; the bag itself is level 0.
const MAX_DEPTH: usize = 16;
/// Largest bag, as JSON, in bytes.
const MAX_BAG: usize = 64 * 1024;
/// Shortest list or base64 text that counts as bytes.
const MIN_BLOB: usize = 256;
/// Keys whose texts are kept far longer than others.
const TEXT_KEYS: &[&str] = &["prompt", "negative_prompt", "text", "lyrics", "instructions"];

/// The parameters without bytes and secrets. Never fails; a value that is too deep or too long is cut.
#[must_use]
pub fn redact(params: &Map) -> Map {
    fit(map(params, 1))
}

fn map(entries: &Map, depth: usize) -> Map {
    entries
        .iter()
        .map(|(key, inner)| (key.clone(), value(Some(key), inner, depth)))
        .collect()
}

fn value(key: Option<&str>, inner: &Value, depth: usize) -> Value {
    if key.is_some_and(is_secret_key) {
        return "[redacted]".into();
    }
    if depth > MAX_DEPTH {
        return note([("truncated", true.into()), ("depth", count(MAX_DEPTH))]);
    }
    match inner {
        Value::Null | Value::Bool(_) | Value::Int(_) => inner.clone(),
        Value::Float(number) => {
            if number.is_finite() {
                inner.clone()
            } else {
                Value::Null
            }
        }
        Value::Str(content) => string(key, content),
        Value::Bytes(content) => blob(content.len()),
        Value::List(values) => list(values, depth),
        Value::Map(entries) => object(entries, depth),
        Value::Media(media) => reference(media, depth),
    }
}

fn list(values: &[Value], depth: usize) -> Value {
    if values.len() >= MIN_BLOB && values.iter().all(is_byte) {
        return blob(values.len());
    }
    Value::list(values.iter().map(|inner| value(None, inner, depth + 1)).collect())
}

fn object(entries: &Map, depth: usize) -> Value {
    if let (Some("Buffer"), Some(data)) = (
        entries.get("type").and_then(Value::as_str),
        entries.get("data").and_then(Value::as_list),
    ) && data.iter().all(is_byte)
    {
        return blob(data.len());
    }
    let numbered = entries.len() >= MIN_BLOB
        && (0..entries.len()).all(|index| entries.get(&index.to_string()).is_some_and(is_byte));
    if numbered {
        blob(entries.len())
    } else {
        Value::map(map(entries, depth + 1))
    }
}

/// A reference keeps what names the media; inline bytes become their count.
fn reference(media: &MediaRef, depth: usize) -> Value {
    let uri = string(Some("uri"), &media.uri);
    let extra = map(&media.extra, depth + 1);
    if media.data.is_none()
        && let Value::Str(uri) = &uri
    {
        return Value::media(MediaRef {
            uri: uri.to_string(),
            data: None,
            extra,
            ..media.clone()
        });
    }
    let mut out = Map::from([
        ("type".to_owned(), Value::from(media.kind.as_str())),
        ("uri".to_owned(), uri),
    ]);
    for (key, field) in [("asset_id", &media.asset_id), ("mime_type", &media.mime_type)] {
        if let Some(field) = field {
            out.insert(key.to_owned(), field.as_str().into());
        }
    }
    if let Some(data) = &media.data {
        out.insert("data".to_owned(), blob(data.len()));
    }
    for (key, inner) in extra {
        out.entry(key).or_insert(inner);
    }
    Value::map(out)
}

fn string(key: Option<&str>, content: &str) -> Value {
    if let Some(length) = text::data_url(content) {
        return blob(length);
    }
    if let Some(bare) = without_signature(content) {
        return bare.into();
    }
    if key.is_some_and(|key| TEXT_KEYS.contains(&key)) {
        return kept_text(content);
    }
    if let Some(length) = text::base64_length(content, MIN_BLOB) {
        return blob(length);
    }
    let length = content.chars().count();
    if length > 2_000 {
        cut(length)
    } else {
        content.into()
    }
}

fn kept_text(content: &str) -> Value {
    let length = content.chars().count();
    if length <= 20_000 {
        return content.into();
    }
    let head: String = content.chars().take(2_000).collect();
    note([
        ("truncated", true.into()),
        ("length", count(length)),
        ("head", head.into()),
    ])
}

/// Replaces the largest values until the bag is small enough.
fn fit(mut bag: Map) -> Map {
    let size = |inner: &Value| to_json(inner, BytesForm::Tagged).to_string().len();
    let mut sizes: Vec<(usize, String)> = bag
        .iter()
        .map(|(key, inner)| (size(inner) + key.len() + 4, key.clone()))
        .collect();
    let mut total: usize = sizes.iter().map(|(size, _)| size).sum();
    if total <= MAX_BAG {
        return bag;
    }
    sizes.sort();
    while total > MAX_BAG
        && let Some((before, key)) = sizes.pop()
    {
        let length = match bag.get(&key) {
            Some(Value::Str(content)) => content.chars().count(),
            Some(_) | None => before.saturating_sub(key.len() + 4),
        };
        let mark = cut(length);
        let after = size(&mark) + key.len() + 4;
        if after >= before {
            // Only small values are left, so there are very many of them.
            return Map::from([
                ("truncated".to_owned(), true.into()),
                ("length".to_owned(), count(total)),
            ]);
        }
        bag.insert(key, mark);
        total = total - before + after;
    }
    bag
}

fn is_byte(inner: &Value) -> bool {
    matches!(inner, Value::Int(0..=255))
}

fn blob(length: usize) -> Value {
    note([("bytes", count(length))])
}

fn cut(length: usize) -> Value {
    note([("truncated", true.into()), ("length", count(length))])
}

fn note<const N: usize>(facts: [(&str, Value); N]) -> Value {
    Value::map(
        facts
            .into_iter()
            .map(|(key, fact)| (key.to_owned(), fact))
            .collect(),
    )
}

fn count(length: usize) -> Value {
    Value::Int(i64::try_from(length).unwrap_or(i64::MAX))
}

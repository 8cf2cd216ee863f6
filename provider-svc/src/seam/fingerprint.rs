//! The fingerprint of a request: equal requests have equal ones, on every host (generations specification 3.3).

use std::fmt::Write as _;

use atelier_proto::value::{Map, MediaRef, Value};
use sha2::{Digest, Sha256};

/// SHA-256, in lower-case hex, of the canonical JSON of a request: keys sorted by their UTF-8 bytes at every depth,
/// numbers in their shortest form, bytes replaced by their length and digest, null kept.
#[must_use]
pub fn fingerprint(provider: &str, model: &str, capability: &str, params: &Map) -> String {
    let mut text = String::from("{\"capability\":");
    string(&mut text, capability);
    text.push_str(",\"model\":");
    string(&mut text, model);
    text.push_str(",\"params\":");
    map(&mut text, params.iter());
    text.push_str(",\"provider\":");
    string(&mut text, provider);
    text.push('}');
    hex(&Sha256::digest(text.as_bytes()))
}

/// Lower-case hex of some bytes.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

fn value(text: &mut String, value_: &Value) {
    match value_ {
        Value::Null => text.push_str("null"),
        Value::Bool(flag) => text.push_str(if *flag { "true" } else { "false" }),
        Value::Int(number) => {
            let _ = write!(text, "{number}");
        }
        Value::Float(number) => float(text, *number),
        Value::Str(inner) => string(text, inner),
        Value::Bytes(bytes) => digest(text, bytes),
        Value::List(values) => {
            text.push('[');
            for (index, inner) in values.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                value(text, inner);
            }
            text.push(']');
        }
        Value::Map(inner) => map(text, inner.iter()),
        Value::Media(inner) => media(text, inner),
    }
}

fn float(text: &mut String, number: f64) {
    if number.is_finite() {
        // The shortest digits that read back as the same number; a whole one looks like the integer it equals.
        let _ = write!(text, "{}", if number == 0.0 { 0.0 } else { number });
    } else {
        text.push_str("null");
    }
}

fn digest(text: &mut String, bytes: &[u8]) {
    let _ = write!(
        text,
        "{{\"byte_length\":{},\"sha256\":\"{}\"}}",
        bytes.len(),
        hex(&Sha256::digest(bytes))
    );
}

fn media(text: &mut String, media: &MediaRef) {
    let MediaRef {
        kind,
        uri,
        asset_id,
        data,
        mime_type,
        extra,
    } = media;
    let mut fields = extra.clone();
    fields.insert("type".to_owned(), kind.as_str().into());
    fields.insert("uri".to_owned(), uri.as_str().into());
    for (key, field) in [("asset_id", asset_id), ("mime_type", mime_type)] {
        if let Some(field) = field {
            fields.insert(key.to_owned(), field.as_str().into());
        }
    }
    if let Some(data) = data {
        fields.insert("data".to_owned(), Value::Bytes(data.clone()));
    }
    map(text, fields.iter());
}

fn map<'a>(text: &mut String, entries: impl Iterator<Item = (&'a String, &'a Value)>) {
    let mut entries: Vec<_> = entries.collect();
    entries.sort_by(|a, b| a.0.as_bytes().cmp(b.0.as_bytes()));
    text.push('{');
    for (index, (key, inner)) in entries.into_iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        string(text, key);
        text.push(':');
        value(text, inner);
    }
    text.push('}');
}

fn string(text: &mut String, inner: &str) {
    // Escaping as JSON does; a text is always valid JSON.
    text.push_str(&serde_json::Value::from(inner).to_string());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(json: serde_json::Value) -> Map {
        atelier_proto::value::map_from_json(json).expect("an object")
    }

    #[test]
    fn the_order_of_keys_does_not_matter_and_everything_else_does() {
        let of = |json| fingerprint("acme", "m1", "text_to_image", &params(json));
        let first = of(serde_json::json!({"prompt": "fog", "options": {"b": 1, "a": [1, 2]}}));
        assert_eq!(
            first,
            of(serde_json::json!({"options": {"a": [1, 2], "b": 1.0}, "prompt": "fog"}))
        );
        assert_eq!(first.len(), 64);
        assert_ne!(
            first,
            of(serde_json::json!({"prompt": "fog", "options": {"b": 1, "a": [2, 1]}}))
        );
        assert_ne!(
            first,
            of(serde_json::json!({"prompt": "fog", "options": {"b": 1, "a": [1, 2]}, "seed": null}))
        );
        assert_ne!(
            first,
            fingerprint(
                "acme",
                "m2",
                "text_to_image",
                &params(serde_json::json!({"prompt": "fog"}))
            )
        );
    }

    #[test]
    fn bytes_count_by_length_and_digest() {
        let with = |bytes: &'static [u8]| {
            let map = Map::from([("image".to_owned(), Value::Bytes(bytes::Bytes::from_static(bytes)))]);
            fingerprint("acme", "m1", "image_to_image", &map)
        };
        assert_eq!(with(b"abc"), with(b"abc"));
        assert_ne!(with(b"abc"), with(b"abd"));
    }

    #[test]
    fn the_canonical_text_is_what_the_specification_says() {
        let mut text = String::new();
        map(
            &mut text,
            params(serde_json::json!({"é": 1, "z": 1.5, "a": null, "B": "x\n"})).iter(),
        );
        assert_eq!(text, "{\"B\":\"x\\n\",\"a\":null,\"z\":1.5,\"é\":1}");
    }
}

//! What is known of the making of an asset: prompt, provider, model, and the scalar inputs without secrets. Pure.

use atelier_common::secrets::{is_secret_key, without_signature};
use atelier_proto::value::{Map, Value};

use super::Artifact;
use crate::assets::names::cut;

/// Longest text of an ordinary input, in bytes.
const MAX_TEXT: usize = 2_000;
/// Longest prompt, in bytes.
const MAX_PROMPT: usize = 20_000;
/// Base64 of this length is media and not text.
const BASE64: usize = 256;
/// Most inputs that are kept.
const MAX_PARAMS: usize = 200;

const TEXT_KEYS: [&str; 5] = ["prompt", "negative_prompt", "text", "lyrics", "instructions"];

/// The metadata of an asset of an artifact, over what was known of it before.
pub fn metadata(artifact: &Artifact, handle: &str, generation_ids: &[String], before: Map) -> Map {
    let mut metadata = before;
    metadata.insert("generation_index".to_owned(), artifact.index.into());
    let ids: Vec<Value> = generation_ids.iter().map(|id| Value::from(id.as_str())).collect();
    metadata.insert("generation_ids".to_owned(), ids.into());
    metadata.insert("output_name".to_owned(), handle.into());
    let mut fill = |key: &str, value: Option<Value>| {
        if let Some(value) = value.filter(|_| !metadata.contains_key(key)) {
            metadata.insert(key.to_owned(), value);
        }
    };
    fill(
        "node_type",
        Some(artifact.node_type.as_str().into()).filter(|_| !artifact.node_type.is_empty()),
    );
    let properties = &artifact.properties;
    let text = |key: &str| {
        properties
            .get(key)
            .filter(|value| value.as_str().is_some_and(|text| !text.is_empty()))
    };
    fill("prompt", text("prompt").and_then(|value| kept("prompt", value)));
    let model = properties.get("model").and_then(Value::as_map);
    let of_model = |key: &str| {
        model
            .and_then(|model| model.get(key))
            .and_then(|value| kept(key, value))
    };
    fill(
        "provider",
        text("provider")
            .and_then(|value| kept("provider", value))
            .or_else(|| of_model("provider")),
    );
    fill(
        "model",
        text("model")
            .and_then(|value| kept("model", value))
            .or_else(|| of_model("id")),
    );
    let params: Map = properties
        .iter()
        .filter_map(|(key, value)| Some((key.clone(), kept(key, value)?)))
        .take(MAX_PARAMS)
        .collect();
    fill("params", (!params.is_empty()).then(|| params.into()));
    metadata
}

/// What is kept of an input: scalars and references to models, no secrets, no media.
fn kept(key: &str, value: &Value) -> Option<Value> {
    if is_secret_key(key) {
        return Some("[redacted]".into());
    }
    match value {
        Value::Bool(_) | Value::Int(_) => Some(value.clone()),
        Value::Float(number) => number.is_finite().then(|| value.clone()),
        Value::Str(text) => kept_text(key, text).map(Into::into),
        Value::Map(map) => kept_model(map),
        Value::Null | Value::Bytes(_) | Value::List(_) | Value::Media(_) => None,
    }
}

fn kept_model(map: &Map) -> Option<Value> {
    map.get("type")
        .and_then(Value::as_str)
        .filter(|kind| kind.ends_with("_model"))?;
    let keys = ["type", "provider", "id", "name"];
    let model: Map = keys
        .iter()
        .filter_map(|key| {
            let text = map.get(*key)?.as_str()?;
            Some(((*key).to_owned(), cut(text, MAX_TEXT).into()))
        })
        .collect();
    Some(model.into())
}

fn kept_text(key: &str, text: &str) -> Option<String> {
    let start = text.trim_start();
    if start
        .get(..5)
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:"))
        || is_base64(text)
    {
        return None;
    }
    if let Some(bare) = without_signature(text) {
        return Some(cut(&bare, MAX_TEXT).to_owned());
    }
    let limit = if TEXT_KEYS.contains(&key) {
        MAX_PROMPT
    } else {
        MAX_TEXT
    };
    Some(cut(text, limit).to_owned())
}

fn is_base64(text: &str) -> bool {
    text.len() >= BASE64
        && text.bytes().all(|b| {
            b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'-' | b'_' | b'=' | b'\r' | b'\n')
        })
}

#[cfg(test)]
mod tests {
    use atelier_proto::value::{BytesForm, map_from_json, to_json};
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_and_media_are_not_kept() {
        let properties = json!({
            "prompt": "a cat", "api_key": "sk-1", "API_KEY": "sk-2", "steps": 4, "strength": 0.5, "tile": true,
            "seed_image": "data:image/png;base64,AAAA", "mask": "A".repeat(400), "none": null,
            "image": {"type": "image", "uri": "asset://x"}, "list": [1], "n": {"$bytes": "AAAA"},
            "link": "https://h/x.png?X-Amz-Signature=ab", "plain": "https://h/x.png?a=b",
            "keyed": "https://h/x.png?key=AIza1",
            "model": {"type": "image_model", "provider": "sketch", "id": "sketch/sketch-image", "name": "S", "path": "p"},
        });
        let artifact = Artifact {
            node_type: "a.B".into(),
            index: 3,
            properties: map_from_json(properties).unwrap(),
            ..Artifact::default()
        };
        let metadata = metadata(&artifact, "out", &["g".to_owned()], Map::new());
        let model =
            json!({"type": "image_model", "provider": "sketch", "id": "sketch/sketch-image", "name": "S"});
        let expected = json!({
            "generation_index": 3, "generation_ids": ["g"], "output_name": "out", "node_type": "a.B",
            "prompt": "a cat", "provider": "sketch", "model": "sketch/sketch-image",
            "params": {
                "prompt": "a cat", "api_key": "[redacted]", "API_KEY": "[redacted]", "steps": 4, "strength": 0.5,
                "tile": true, "link": "https://h/x.png?redacted", "plain": "https://h/x.png?a=b",
                "keyed": "https://h/x.png?redacted", "model": model,
            },
        });
        assert_eq!(to_json(&metadata.into(), BytesForm::Tagged), expected);
    }

    #[test]
    fn what_the_seam_knew_stays() {
        let before = map_from_json(json!({"provider": "openai", "params": {"n": 1}})).unwrap();
        let properties = map_from_json(json!({"provider": "other", "n": 2})).unwrap();
        let artifact = Artifact {
            properties,
            ..Artifact::default()
        };
        let metadata = metadata(&artifact, "out", &[], before);
        assert_eq!(metadata.get("provider").and_then(Value::as_str), Some("openai"));
        assert_eq!(
            metadata.get("params"),
            Some(&map_from_json(json!({"n": 1})).unwrap().into())
        );
    }
}

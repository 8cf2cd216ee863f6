//! Our parameters and outputs in the JSON of FAL's models: the input is the model's own object, media go in by address.

use atelier_proto::value::{BytesForm, Map, MediaRef, Value, to_json};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map as Json, Value as JsonValue, json};

use crate::adapters::tasks::medium;
use crate::adapters::web::Web;
use crate::provider::{Class, Failure, Finished, Output, Usage};

/// Keys of a result that hold outputs, in the order in which they are looked for, and what they hold.
const OUTPUTS: &[(&str, &str)] = &[
    ("images", "image"),
    ("image", "image"),
    ("videos", "video"),
    ("video", "video"),
    ("audios", "audio"),
    ("audio", "audio"),
    ("audio_file", "audio"),
    ("audio_url", "audio"),
    ("model_mesh", "model_3d"),
    ("model_glb", "model_3d"),
    ("model_urls", "model_3d"),
    ("mask", "image"),
];
/// Keys that hold a text.
const TEXTS: &[&str] = &["text", "output", "transcription"];

/// The input of a model.
///
/// # Errors
/// A failure of a request that was not sent, for a reference without bytes and address.
pub(super) fn input(params: &Map) -> Result<JsonValue, Failure> {
    let mut body = Json::new();
    for (key, value) in params {
        match value {
            Value::Null => {}
            Value::Media(media) => {
                body.insert(singular(key), address(media)?.into());
            }
            Value::List(values) if values.iter().any(|value| value.as_media().is_some()) => {
                let addresses: Result<Vec<_>, _> =
                    values.iter().filter_map(Value::as_media).map(address).collect();
                body.insert(plural(key), addresses?.into());
            }
            other => {
                body.insert(key.clone(), to_json(other, BytesForm::Tagged));
            }
        }
    }
    // One size for the models that take a pair.
    if let (Some(width), Some(height)) = (body.get("width").cloned(), body.get("height").cloned())
        && !body.contains_key("image_size")
    {
        body.insert("image_size".to_owned(), json!({"width": width, "height": height}));
        body.remove("width");
        body.remove("height");
    }
    if let Some(count) = body.remove("n") {
        body.entry("num_images").or_insert(count);
    }
    Ok(JsonValue::Object(body))
}

fn singular(key: &str) -> String {
    if key.ends_with("_url") {
        key.to_owned()
    } else {
        format!("{key}_url")
    }
}

fn plural(key: &str) -> String {
    if key.ends_with("_urls") {
        key.to_owned()
    } else {
        format!("{}_urls", key.strip_suffix('s').unwrap_or(key))
    }
}

/// The address of a medium: its own, or its bytes as one.
fn address(media: &MediaRef) -> Result<String, Failure> {
    if let Some(data) = &media.data {
        let mime = match media.mime_type.as_deref() {
            // It refuses the one and takes the other.
            Some("audio/wav") => "audio/x-wav",
            Some(mime) => mime,
            None => "application/octet-stream",
        };
        return Ok(format!("data:{mime};base64,{}", STANDARD.encode(data)));
    }
    let usable = ["https://", "http://", "data:"]
        .iter()
        .any(|scheme| media.uri.starts_with(scheme));
    usable.then(|| media.uri.clone()).ok_or_else(|| {
        Failure::new(Class::InvalidInput, "a reference in the parameters has no bytes").unsent()
    })
}

/// The outputs of a result, fetched.
///
/// # Errors
/// No usable output; an output that cannot be had.
pub(super) async fn outputs(web: &Web, result: &JsonValue) -> Result<Finished, Failure> {
    let flags: Vec<bool> = result
        .get("has_nsfw_concepts")
        .and_then(JsonValue::as_array)
        .map(|flags| {
            flags
                .iter()
                .map(|flag| flag.as_bool().unwrap_or_default())
                .collect()
        })
        .unwrap_or_default();
    let mut outputs = Vec::new();
    let mut filtered = 0;
    for (key, kind) in OUTPUTS {
        let Some(value) = result.get(*key) else { continue };
        for (index, file) in files(value).into_iter().enumerate() {
            if *key == "images" && flags.get(index).copied().unwrap_or_default() {
                filtered += 1;
                tracing::warn!(
                    index,
                    "a picture was blackened by the provider's filter and is left out"
                );
                continue;
            }
            let (bytes, served) = web.media(file.url).await?;
            let stated = file.stated.map(ToOwned::to_owned).or(served);
            let mut extra = Map::new();
            for (name, number) in [("width", file.width), ("height", file.height)] {
                if let Some(number) = number {
                    extra.insert(name.to_owned(), Value::Int(number));
                }
            }
            if let Some(seed) = result.get("seed").and_then(JsonValue::as_i64) {
                extra.insert("seed".to_owned(), Value::Int(seed));
            }
            outputs.push(Output::Media(medium(kind, bytes, stated.as_deref(), extra)));
        }
        if !outputs.is_empty() {
            break;
        }
    }
    if outputs.is_empty() && filtered == 0 {
        let texts = TEXTS.iter().filter_map(|key| result.get(*key)?.as_str());
        outputs.extend(texts.take(1).map(|text| Output::Text(text.to_owned())));
    }
    match (outputs.is_empty(), filtered) {
        (false, _) => Ok(Finished {
            outputs,
            usage: Usage::default(),
        }),
        (true, 0) => {
            Err(Failure::new(Class::ProviderPermanent, "the provider gave no output").because("no_output"))
        }
        (true, _) => Err(Failure::new(
            Class::ContentPolicy,
            "every picture was refused by the provider's filter",
        )),
    }
}

struct File<'a> {
    url: &'a str,
    stated: Option<&'a str>,
    width: Option<i64>,
    height: Option<i64>,
}

fn files(value: &JsonValue) -> Vec<File<'_>> {
    match value {
        JsonValue::Array(values) => values.iter().flat_map(files).collect(),
        JsonValue::String(url) => vec![File {
            url,
            stated: None,
            width: None,
            height: None,
        }],
        JsonValue::Object(file) => match file.get("url").and_then(JsonValue::as_str) {
            Some(url) => vec![File {
                url,
                stated: file.get("content_type").and_then(JsonValue::as_str),
                width: file.get("width").and_then(JsonValue::as_i64),
                height: file.get("height").and_then(JsonValue::as_i64),
            }],
            None => file
                .values()
                .filter(|value| value.is_object())
                .flat_map(files)
                .collect(),
        },
        JsonValue::Null | JsonValue::Bool(_) | JsonValue::Number(_) => Vec::new(),
    }
}

//! Requests in Gemini's words.

use atelier_proto::value::{MediaRef, Value};
use serde_json::{Value as Json, json};

use crate::adapters::http::{base64_of, references, sniffed};
use crate::adapters::jobs::{Answer, Fields, Order, lacks, pictures, plain, told_text};
use crate::provider::{Call, Capability, Class, Failure, Params};

/// The paid request of a call.
pub(super) fn order(call: &Call) -> Result<Order, Failure> {
    let model = &call.model;
    let generate = |body: Json| Order::post(format!("models/{model}:generateContent"), body);
    match call.capability {
        Capability::TextToImage | Capability::ImageToImage | Capability::Inpainting => {
            Ok(generate(picture(call)))
        }
        Capability::TextToSpeech => Ok(generate(speech(call))),
        Capability::AutomaticSpeechRecognition => transcript(call).map(generate),
        Capability::GenerateMessage => {
            let path = format!("models/{model}:streamGenerateContent?alt=sse");
            Ok(Order::post(path, chat(call)?).answered(Answer::Events))
        }
        Capability::TextToVideo | Capability::ImageToVideo => Ok(Order::post(
            format!("models/{model}:predictLongRunning"),
            film(call),
        )),
        Capability::Embedding => Ok(embedding(call)),
        _ => Err(Failure::new(Class::InvalidInput, "the provider cannot do this").unsent()),
    }
}

/// A medium as a part, when its bytes are there.
fn inline(media: &MediaRef) -> Option<Json> {
    let data = media.data.as_ref()?;
    Some(json!({"inlineData": {"mimeType": mime(media, data), "data": base64_of(data)}}))
}

fn mime(media: &MediaRef, data: &[u8]) -> String {
    let stated = media.mime_type.as_deref().filter(|mime| !mime.is_empty());
    let usual = if media.kind == "audio" {
        "audio/wav"
    } else {
        "image/png"
    };
    sniffed(data).or(stated).unwrap_or(usual).to_owned()
}

fn user(parts: Vec<Json>) -> Json {
    json!([{"role": "user", "parts": parts}])
}

fn picture(call: &Call) -> Json {
    let params = Params(&call.params);
    let mut parts = vec![json!({"text": told_text(call)})];
    parts.extend(pictures(call).into_iter().filter_map(inline));
    let mut shape = serde_json::Map::new();
    if let Some(ratio) = params.text("aspect_ratio") {
        shape.insert("aspectRatio".to_owned(), ratio.into());
    }
    if let Some(size) = params.first_text(&["resolution", "image_size"]) {
        shape.insert("imageSize".to_owned(), size.to_ascii_uppercase().into());
    }
    let mut config = json!({"responseModalities": ["TEXT", "IMAGE"]});
    if let (false, Some(config)) = (shape.is_empty(), config.as_object_mut()) {
        config.insert("imageConfig".to_owned(), shape.into());
    }
    json!({"contents": user(parts), "generationConfig": config})
}

fn speech(call: &Call) -> Json {
    let voice = Params(&call.params).text("voice").unwrap_or("Kore");
    json!({
        "contents": user(vec![json!({"text": told_text(call)})]),
        "generationConfig": {
            "responseModalities": ["AUDIO"],
            "speechConfig": {"voiceConfig": {"prebuiltVoiceConfig": {"voiceName": voice}}},
        },
    })
}

fn transcript(call: &Call) -> Result<Json, Failure> {
    let sound = ["audio", "file"]
        .iter()
        .find_map(|key| references(call.params.get(*key)).into_iter().next())
        .and_then(inline)
        .ok_or_else(|| lacks("a sound file"))?;
    let wish = Params(&call.params)
        .text("prompt")
        .unwrap_or("Write down what is said, and nothing else.");
    Ok(json!({"contents": user(vec![json!({"text": wish}), sound])}))
}

fn chat(call: &Call) -> Result<Json, Failure> {
    if call
        .params
        .get("tools")
        .and_then(Value::as_list)
        .is_some_and(|tools| !tools.is_empty())
    {
        return Err(Failure::new(Class::InvalidInput, "tools are not passed on to this provider").unsent());
    }
    let params = Params(&call.params);
    let mut system = params.text("system").unwrap_or_default().to_owned();
    let mut contents = Vec::new();
    for message in call
        .params
        .get("messages")
        .and_then(Value::as_list)
        .unwrap_or_default()
    {
        let parts = parts(message.get("content").as_ref());
        let role = message.get("role");
        match role.as_ref().and_then(Value::as_str) {
            Some("system" | "developer") => {
                for text in parts.iter().filter_map(|part| part.get("text")?.as_str()) {
                    system.push('\n');
                    system.push_str(text);
                }
            }
            Some("assistant") => contents.push(json!({"role": "model", "parts": parts})),
            Some(_) | None => contents.push(json!({"role": "user", "parts": parts})),
        }
    }
    if let Some(prompt) = params.text("prompt") {
        contents.push(json!({"role": "user", "parts": [{"text": prompt}]}));
    }
    let mut config = serde_json::Map::new();
    let named = [
        ("temperature", "temperature"),
        ("top_p", "topP"),
        ("max_tokens", "maxOutputTokens"),
        ("max_completion_tokens", "maxOutputTokens"),
        ("seed", "seed"),
    ];
    for (ours, theirs) in named {
        if let Some(value) = call.params.get(ours).filter(|value| !value.is_null()) {
            config.insert(theirs.to_owned(), plain(value));
        }
    }
    let schema = params.0.get("schema").map(plain);
    let wants_json = matches!(params.text("response_format"), Some("json" | "json_object"));
    if wants_json || schema.is_some() {
        config.insert("responseMimeType".to_owned(), "application/json".into());
    }
    if let Some(schema) = schema {
        config.insert("responseJsonSchema".to_owned(), schema);
    }
    let system = system.trim();
    Ok(Fields::of(call)
        .set("contents", contents)
        .maybe(
            "systemInstruction",
            (!system.is_empty()).then(|| json!({"parts": [{"text": system}]})),
        )
        .maybe(
            "generationConfig",
            (!config.is_empty()).then(|| Json::Object(config)),
        )
        .json())
}

/// The content of a message as parts.
fn parts(content: Option<&Value>) -> Vec<Json> {
    match content {
        Some(Value::Str(text)) => vec![json!({"text": text.as_ref()})],
        Some(Value::List(list)) => list.iter().filter_map(part).collect(),
        Some(other) => part(other).into_iter().collect(),
        None => Vec::new(),
    }
}

fn part(value: &Value) -> Option<Json> {
    match value {
        Value::Str(text) => Some(json!({"text": text.as_ref()})),
        Value::Media(media) => inline(media),
        other => {
            let text = other.get("text")?;
            Some(json!({"text": text.as_str()?}))
        }
    }
}

fn film(call: &Call) -> Json {
    let params = Params(&call.params);
    let mut instance = json!({"prompt": told_text(call)});
    let first = pictures(call).into_iter().find_map(|media| {
        let data = media.data.as_ref()?;
        Some(json!({"bytesBase64Encoded": base64_of(data), "mimeType": mime(media, data)}))
    });
    if let (Some(first), Some(instance)) = (first, instance.as_object_mut()) {
        instance.insert("image".to_owned(), first);
    }
    let seconds = ["duration", "seconds", "duration_seconds"]
        .iter()
        .find_map(|key| params.int(key));
    let wishes = Fields::of(call)
        .maybe("aspectRatio", params.text("aspect_ratio"))
        .maybe("durationSeconds", seconds)
        .maybe("resolution", params.text("resolution"))
        .maybe("negativePrompt", params.text("negative_prompt"))
        .maybe("sampleCount", params.int("num_outputs"))
        .json();
    json!({"instances": [instance], "parameters": wishes})
}

fn embedding(call: &Call) -> Order {
    let model = &call.model;
    let one =
        |text: &str| json!({"model": format!("models/{model}"), "content": {"parts": [{"text": text}]}});
    match call.params.get("input") {
        Some(Value::List(texts)) => {
            let requests: Vec<Json> = texts.iter().filter_map(Value::as_str).map(one).collect();
            Order::post(
                format!("models/{model}:batchEmbedContents"),
                json!({"requests": requests}),
            )
        }
        other => {
            let text = other.and_then(Value::as_str).unwrap_or_default();
            Order::post(format!("models/{model}:embedContent"), one(text))
        }
    }
}

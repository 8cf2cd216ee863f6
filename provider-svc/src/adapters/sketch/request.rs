//! What is asked of the offline provider, read from parameters and settings.

use std::time::Duration;

use atelier_proto::value::{BytesForm, Map, Value, to_json};
use bytes::Bytes;

use super::write;
use crate::provider::{Call, Capability, Finished, Media, Output, Params, Usage};
use crate::settings;

/// Shortest and longest side of a picture.
const SIDES: (u32, u32) = (64, 2_048);
/// Most pictures of one call.
const MAX_IMAGES: i64 = 16;
/// Most steps of progress.
const MAX_STEPS: i64 = 100;
/// Longest delay.
const MAX_DELAY: Duration = Duration::from_secs(60 * 60);

/// How a text is to be written.
#[derive(Debug, Clone)]
pub(super) enum Form {
    /// As text.
    Text,
    /// As JSON, by a schema when there is one.
    Json(Option<serde_json::Value>),
    /// As a JSON list of texts, of so many.
    List(Option<usize>),
}

/// A request to the offline provider.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) capability: Capability,
    pub(super) model: String,
    pub(super) params: Map,
    pub(super) system: String,
    pub(super) prompt: String,
    pub(super) seed: u64,
    pub(super) delay: Duration,
    pub(super) steps: u32,
    pub(super) size: (u32, u32),
    pub(super) images: u32,
    pub(super) voice: String,
    pub(super) speed: f32,
    pub(super) stream: bool,
    pub(super) form: Form,
    pub(super) input_tokens: i64,
    pub(super) failure: Option<String>,
    pub(super) bill_on_failure: bool,
    /// Tools that are to be called now.
    pub(super) calls: Option<Value>,
    /// Results of tools that were called for the last question: the tool and what it said.
    pub(super) results: Vec<(String, String)>,
}

impl Request {
    /// Reads a call; `number` is its place among all calls of the process, from 1.
    pub(super) fn read(call: &Call, settings: &settings::Sketch, number: u64) -> Self {
        let params = Params(&call.params);
        let conversation = Conversation::read(params);
        let prompt = match call.capability {
            Capability::TextToSpeech => params
                .first_text(&["text", "input", "prompt"])
                .unwrap_or_default()
                .to_owned(),
            Capability::TextToMusic if conversation.prompt.is_empty() => params
                .first_text(&["text", "lyrics", "tags"])
                .unwrap_or_default()
                .to_owned(),
            Capability::Embedding => texts(params).join("\n"),
            _ => conversation.prompt,
        };
        let seed = params
            .int("seed")
            .filter(|seed| *seed >= 0)
            .map(i64::cast_unsigned);
        let delay = params.int("delay_ms").and_then(|delay| u64::try_from(delay).ok());
        let steps = params
            .int("steps")
            .or_else(|| params.int("progress"))
            .map(|steps| steps.clamp(0, MAX_STEPS));
        let failure = failure(params, settings, &prompt, number);
        let seed = seed.unwrap_or_else(|| low_bits(call.generation_id.uuid().as_u128()));
        let calls = if conversation.results.is_empty() {
            calls(params, &conversation.system, &prompt, seed)
        } else {
            None
        };
        Self {
            capability: call.capability,
            model: call.model.clone(),
            params: call.params.clone(),
            seed,
            delay: Duration::from_millis(delay.unwrap_or(settings.delay_ms)).min(MAX_DELAY),
            steps: steps
                .and_then(|steps| u32::try_from(steps).ok())
                .unwrap_or(settings.steps),
            size: size(params),
            images: u32::try_from(params.outputs().min(MAX_IMAGES)).unwrap_or(1),
            voice: params.text("voice").unwrap_or("alloy").to_owned(),
            speed: speed(params),
            stream: params.flag("stream").unwrap_or(false),
            form: form(params),
            input_tokens: match call.capability {
                Capability::Embedding => tokens(&prompt),
                _ => tokens(&conversation.everything),
            },
            bill_on_failure: params.flag("bill_on_failure").unwrap_or(settings.bill_on_failure),
            system: conversation.system,
            results: conversation.results,
            calls,
            prompt,
            failure,
        }
    }

    /// What the result would have been, for a charge on a failed call.
    pub(super) fn as_if_done(&self) -> Finished {
        let usage = Usage {
            input_tokens: Some(self.input_tokens),
            output_tokens: Some(0),
            ..Usage::default()
        };
        let media = Media {
            kind: "image",
            bytes: Bytes::new(),
            mime: String::new(),
            extra: Map::new(),
        };
        let count = usize::try_from(self.images).unwrap_or(1);
        Finished {
            outputs: vec![Output::Media(media); count],
            usage,
        }
    }
}

/// The message that calls tools, when the request has some and wants them.
fn calls(params: Params<'_>, system: &str, prompt: &str, seed: u64) -> Option<Value> {
    let tools = super::tools::tools(&json(params.0.get("tools")?));
    let choice = params.0.get("tool_choice").map(json).unwrap_or_default();
    if choice == "none" {
        return None;
    }
    let demanded = choice == "required" || choice.is_object();
    let wanted = super::tools::wanted(&tools, system, prompt, demanded);
    (!wanted.is_empty()).then(|| super::tools::message(&wanted, prompt, seed))
}

fn low_bits(id: u128) -> u64 {
    // The seed is what a caller may send back to get the same again, so it stays a positive 53-bit number.
    u64::try_from(id & ((1 << 53) - 1)).unwrap_or(0)
}

fn failure(params: Params<'_>, settings: &settings::Sketch, prompt: &str, number: u64) -> Option<String> {
    if let Some(message) = params.text("fail") {
        return Some(message.to_owned());
    }
    let matches = |text: &str| !text.is_empty() && prompt.contains(text);
    let told = params.flag("fail") == Some(true)
        || params.text("fail_prompt").is_some_and(matches)
        || matches(&settings.fail_match)
        || (settings.fail_nth > 0 && settings.fail_nth == number);
    told.then(|| "the sketch provider was told to fail".to_owned())
}

fn speed(params: Params<'_>) -> f32 {
    #[expect(clippy::cast_possible_truncation, reason = "a speed between 0.25 and 4")]
    let speed = params.number("speed").unwrap_or(1.0).clamp(0.25, 4.0) as f32;
    speed
}

/// The size of a picture: stated by sides, by a pair, or by proportions and a tier; else a square of 512.
fn size(params: Params<'_>) -> (u32, u32) {
    let side = |key| {
        params
            .int(key)
            .and_then(|side| u32::try_from(side).ok())
            .filter(|side| *side > 0)
    };
    let pair = ["size", "image_size", "resolution"]
        .iter()
        .find_map(|key| Params::pixels(params.text(key)?));
    let (width, height) = match (side("width"), side("height"), pair) {
        (Some(width), Some(height), _) => (width, height),
        (Some(one), None, _) | (None, Some(one), _) => (one, one),
        (None, None, Some(pair)) => pair,
        (None, None, None) => proportions(params).unwrap_or((512, 512)),
    };
    (width.clamp(SIDES.0, SIDES.1), height.clamp(SIDES.0, SIDES.1))
}

fn proportions(params: Params<'_>) -> Option<(u32, u32)> {
    let long: u32 = match params.text("resolution") {
        Some("2K" | "4K") => 2_048,
        Some("1K") => 1_024,
        Some(_) | None => 512,
    };
    let ratio = params.text("aspect_ratio");
    if ratio.is_none() && params.text("resolution").is_none() {
        return None;
    }
    let (width, height) = ratio.unwrap_or("1:1").split_once(':')?;
    let (width, height): (u32, u32) = (width.trim().parse().ok()?, height.trim().parse().ok()?);
    let short = |part: u32, whole: u32| long.checked_mul(part)?.checked_div(whole);
    if width >= height {
        Some((long, short(height, width)?))
    } else {
        Some((short(width, height)?, long))
    }
}

/// `response_format` in the forms that callers use: a word, OpenAI's object, or a schema of its own.
fn form(params: Params<'_>) -> Form {
    let format = params.0.get("response_format").or_else(|| params.0.get("format"));
    let count = params.int("count").and_then(|count| usize::try_from(count).ok());
    let schema = params
        .0
        .get("schema")
        .or_else(|| params.0.get("json_schema"))
        .map(json);
    match format {
        Some(Value::Str(word)) if matches!(word.as_ref(), "json" | "json_object" | "json_schema") => {
            Form::Json(schema)
        }
        Some(Value::Str(word)) if word.as_ref() == "list" => Form::List(count),
        Some(object @ Value::Map(_)) => match object.get("type").as_ref().and_then(Value::as_str) {
            Some("list") => Form::List(count),
            Some("json_object") => Form::Json(schema),
            Some("json_schema") => {
                let inner = object.get("json_schema").unwrap_or_default();
                Form::Json(
                    inner
                        .get("schema")
                        .or(Some(inner))
                        .filter(|inner| !inner.is_null())
                        .as_ref()
                        .map(json),
                )
            }
            Some("text") => Form::Text,
            Some(_) | None => Form::Json(Some(json(object))),
        },
        _ if schema.is_some() => Form::Json(schema),
        _ => Form::Text,
    }
}

fn json(value: &Value) -> serde_json::Value {
    to_json(value, BytesForm::Tagged)
}

/// A conversation, cut down to what the offline provider reads.
struct Conversation {
    system: String,
    prompt: String,
    everything: String,
    results: Vec<(String, String)>,
}
impl Conversation {
    fn read(params: Params<'_>) -> Self {
        let mut system = params.text("system").unwrap_or_default().to_owned();
        let mut prompt = String::new();
        let mut everything = String::new();
        let mut results = Vec::new();
        for message in params
            .0
            .get("messages")
            .and_then(Value::as_list)
            .unwrap_or_default()
        {
            let text = content(message.get("content").as_ref());
            everything.push_str(&text);
            everything.push('\n');
            match message.get("role").as_ref().and_then(Value::as_str) {
                Some("system" | "developer") => system = text,
                Some("user") | None => {
                    prompt = text;
                    results.clear();
                }
                Some("tool") => {
                    let named = message
                        .get("name")
                        .and_then(|name| name.as_str().map(ToOwned::to_owned));
                    results.push((named.unwrap_or_else(|| "tool".to_owned()), text));
                }
                Some(_) => {}
            }
        }
        if let Some(stated) = params.text("prompt") {
            stated.clone_into(&mut prompt);
            everything.push_str(stated);
        }
        everything.push_str(&system);
        Self {
            system,
            prompt,
            everything,
            results,
        }
    }
}

/// The texts that vectors are asked for.
pub(super) fn texts(params: Params<'_>) -> Vec<String> {
    match params.0.get("input") {
        Some(Value::Str(text)) => vec![text.to_string()],
        Some(Value::List(texts)) => texts
            .iter()
            .filter_map(|text| text.as_str().map(ToOwned::to_owned))
            .collect(),
        _ => Vec::new(),
    }
}

/// The text of a message's content: text, or the texts among its parts.
fn content(content: Option<&Value>) -> String {
    match content {
        Some(Value::Str(text)) => text.to_string(),
        Some(Value::List(parts)) => {
            let texts = parts.iter().filter_map(|part| part.get("text"));
            texts
                .filter_map(|text| text.as_str().map(ToOwned::to_owned))
                .collect::<Vec<_>>()
                .join("\n")
        }
        Some(_) | None => String::new(),
    }
}

pub(super) fn tokens(text: &str) -> i64 {
    i64::try_from(write::token_count(text)).unwrap_or(i64::MAX)
}

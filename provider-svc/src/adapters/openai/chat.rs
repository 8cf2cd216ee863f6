//! Chat, streamed.

use atelier_proto::value::{BytesForm, MediaRef, Value, to_json};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map as JsonMap, Value as Json, json};

use super::errors::{in_stream, said_json};
use super::http::cancelled;
use super::sse::Cutter;
use super::tools::Calls;
use super::wire::{ChatUsage, Completion};
use super::{ID, OpenAi};
use crate::adapters::web::content_type;
use crate::provider::{Call, Class, Emit, Failure, Finished, Output, Params, Usage};
use crate::seam::receipt;

/// Parameters that are passed on as they are.
const PASSED: &[&str] = &[
    "temperature",
    "top_p",
    "max_tokens",
    "max_completion_tokens",
    "stop",
    "seed",
    "presence_penalty",
    "frequency_penalty",
    "reasoning_effort",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
];
/// Longest answer that is taken, in bytes.
const MAX_ANSWER: u64 = 32 * 1024 * 1024;

/// An answer while it comes in.
#[derive(Default)]
struct Answer {
    text: String,
    usage: Option<ChatUsage>,
    id_known: bool,
    finished: bool,
    done: bool,
    calls: Calls,
}

impl OpenAi {
    /// Asks for an answer and tells its pieces as they come.
    pub(super) async fn chat(&self, call: &Call, emit: &dyn Emit) -> Result<Finished, Failure> {
        let url = self.url("chat/completions")?;
        let body = request(call);
        let build = || Ok(self.client.post(url.clone()).json(&body));
        let mut response = self.send(call, true, build).await?;
        let mut answer = Answer {
            id_known: response.headers().contains_key("x-request-id"),
            ..Answer::default()
        };
        if content_type(response.headers()).starts_with("application/json") {
            let bytes = self.body(response, MAX_ANSWER).await?;
            let json: Json = serde_json::from_slice(&bytes).map_err(|_| self.unreadable(&bytes))?;
            self.event(json, &mut answer, emit).await?;
            answer.done = true;
        } else {
            let mut cutter = Cutter::default();
            loop {
                let chunk = call
                    .cancel
                    .run_until_cancelled(response.chunk())
                    .await
                    .ok_or_else(cancelled)?;
                let Some(chunk) = chunk.map_err(|_| broken(&answer))? else {
                    break;
                };
                let events = cutter.push(&chunk).map_err(|_| too_large())?;
                self.events(events, &mut answer, emit).await?;
                if answer.text.len() as u64 > MAX_ANSWER {
                    return Err(too_large());
                }
            }
            self.events(cutter.finish().into_iter().collect(), &mut answer, emit)
                .await?;
        }
        if !answer.done && !answer.finished {
            return Err(broken(&answer));
        }
        if answer.text.is_empty() && answer.calls.is_empty() && !answer.finished {
            return Err(Failure::new(Class::ProviderPermanent, "the answer is empty").because("no_output"));
        }
        emit.end("text");
        let output = if answer.calls.is_empty() {
            Output::Text(answer.text)
        } else {
            Output::Value(answer.calls.message(answer.text))
        };
        Ok(Finished {
            outputs: vec![output],
            usage: usage(answer.usage),
        })
    }

    async fn events(&self, events: Vec<String>, answer: &mut Answer, emit: &dyn Emit) -> Result<(), Failure> {
        for event in events {
            if event.trim() == "[DONE]" {
                answer.done = true;
                continue;
            }
            let json: Json = serde_json::from_str(&event).map_err(|_| self.unreadable(event.as_bytes()))?;
            self.event(json, answer, emit).await?;
        }
        Ok(())
    }

    async fn event(&self, json: Json, answer: &mut Answer, emit: &dyn Emit) -> Result<(), Failure> {
        if json.get("error").is_some_and(|error| !error.is_null()) {
            let mut failure = in_stream(&said_json(&json));
            failure.message = self.scrub(&failure.message);
            // Pieces may have been told already; without a last piece they stay marked as partial.
            return Err(if answer.text.is_empty() {
                failure
            } else {
                failure.because("partial_output")
            });
        }
        let Ok(piece) = serde_json::from_value::<Completion>(json) else {
            return Ok(());
        };
        if let Some(id) = piece.id.filter(|id| !id.is_empty() && !answer.id_known) {
            answer.id_known = true;
            receipt::record(ID, Some(&id), None).await;
        }
        answer.usage = piece.usage.or(answer.usage);
        let Some(choice) = piece.choices.into_iter().next() else {
            return Ok(());
        };
        if let Some(message) = choice.delta.or(choice.message) {
            if let Some(thought) = message.reasoning_content.filter(|thought| !thought.is_empty()) {
                emit.text(&thought, true);
            }
            let text = text_of(message.content.as_ref())
                .or(message.refusal)
                .unwrap_or_default();
            if !text.is_empty() {
                emit.text(&text, false);
                answer.text.push_str(&text);
            }
            for call in message.tool_calls.unwrap_or_default() {
                answer.calls.take(call).map_err(|_| too_large())?;
            }
        }
        if choice.finish_reason.as_deref() == Some("content_filter") {
            return Err(
                Failure::new(Class::ContentPolicy, "the provider filtered the answer").because("output"),
            );
        }
        answer.finished |= choice.finish_reason.is_some();
        Ok(())
    }
}

fn broken(answer: &Answer) -> Failure {
    let failure = Failure::unknown_submit("the stream broke off");
    if answer.text.is_empty() {
        failure
    } else {
        failure.because("submit_outcome_unknown")
    }
}

fn too_large() -> Failure {
    Failure::new(Class::ProviderPermanent, "the answer is too large").because("bad_output")
}

fn usage(usage: Option<ChatUsage>) -> Usage {
    Usage {
        input_tokens: usage.and_then(|usage| usage.prompt_tokens),
        cached_tokens: usage.and_then(|usage| usage.prompt_tokens_details?.cached_tokens),
        output_tokens: usage.and_then(|usage| usage.completion_tokens),
        seconds: None,
    }
}

fn text_of(content: Option<&Json>) -> Option<String> {
    match content? {
        Json::String(text) => Some(text.clone()),
        Json::Array(parts) => Some(
            parts
                .iter()
                .filter_map(|part| part.get("text")?.as_str())
                .collect::<Vec<_>>()
                .concat(),
        ),
        _ => None,
    }
}

/// The request's body.
fn request(call: &Call) -> Json {
    let params = Params(&call.params);
    let mut body = JsonMap::new();
    body.insert("model".to_owned(), call.model.clone().into());
    body.insert("messages".to_owned(), messages(params).into());
    body.insert("stream".to_owned(), true.into());
    body.insert("stream_options".to_owned(), json!({"include_usage": true}));
    for key in PASSED {
        if let Some(value) = call.params.get(*key).filter(|value| !value.is_null()) {
            body.insert((*key).to_owned(), to_json(value, BytesForm::Tagged));
        }
    }
    if let Some(format) = format(params) {
        body.insert("response_format".to_owned(), format);
    }
    body.into()
}

/// `response_format` as the provider knows it: a word, an object of its own, or a schema.
fn format(params: Params<'_>) -> Option<Json> {
    let schema =
        |schema: Json| json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}});
    match params.0.get("response_format") {
        Some(Value::Str(word)) if matches!(word.as_ref(), "json" | "json_object") => {
            let own = params.0.get("schema").map(|own| to_json(own, BytesForm::Tagged));
            Some(own.map_or_else(|| json!({"type": "json_object"}), schema))
        }
        Some(object @ Value::Map(_))
            if object
                .get("type")
                .is_some_and(|kind| kind.as_str() != Some("object")) =>
        {
            Some(to_json(object, BytesForm::Tagged))
                .filter(|format| format.get("type") != Some(&"list".into()))
        }
        Some(object @ Value::Map(_)) => Some(schema(to_json(object, BytesForm::Tagged))),
        Some(_) | None => params
            .0
            .get("schema")
            .map(|own| schema(to_json(own, BytesForm::Tagged))),
    }
}

/// Whether a list of texts is asked for, which the provider has no word for.
fn wants_list(params: Params<'_>) -> bool {
    let format = params.0.get("response_format");
    let kind = format.and_then(|format| {
        format
            .as_str()
            .map(ToOwned::to_owned)
            .or_else(|| format.get("type")?.as_str().map(ToOwned::to_owned))
    });
    kind.as_deref() == Some("list")
}

fn messages(params: Params<'_>) -> Vec<Json> {
    let mut messages = Vec::new();
    let mut system = params.text("system").unwrap_or_default().to_owned();
    if wants_list(params) {
        system.push_str("\nAnswer with a JSON array of strings and nothing else.");
    }
    if !system.trim().is_empty() {
        messages.push(json!({"role": "system", "content": system.trim()}));
    }
    for message in params
        .0
        .get("messages")
        .and_then(Value::as_list)
        .unwrap_or_default()
    {
        let mut json = to_json(message, BytesForm::Tagged);
        if let (Some(Value::List(parts)), Some(object)) = (message.get("content"), json.as_object_mut()) {
            object.insert(
                "content".to_owned(),
                parts.iter().map(part).collect::<Vec<_>>().into(),
            );
        }
        messages.push(json);
    }
    if let Some(prompt) = params.text("prompt") {
        messages.push(json!({"role": "user", "content": prompt}));
    }
    messages
}

/// A part of a message; a picture goes as its address, or as a data URL.
fn part(part: &Value) -> Json {
    match part {
        Value::Str(text) => json!({"type": "text", "text": text.as_ref()}),
        Value::Media(media) if media.kind == "image" => {
            json!({"type": "image_url", "image_url": {"url": address(media)}})
        }
        other => to_json(other, BytesForm::Tagged),
    }
}

fn address(media: &MediaRef) -> String {
    match &media.data {
        Some(data) => {
            let mime = media.mime_type.as_deref().unwrap_or("image/png");
            format!("data:{mime};base64,{}", STANDARD.encode(data))
        }
        None => media.uri.clone(),
    }
}

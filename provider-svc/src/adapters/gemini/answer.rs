//! Answers in Gemini's words.

use atelier_proto::value::from_json;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{BufMut, Bytes, BytesMut};
use serde_json::Value as Json;

use crate::adapters::jobs::{Found, Place, Said, State, Ticket, words};
use crate::provider::{Class, Failure, Usage};

/// Samples a second when the type does not say.
const USUAL_RATE: u32 = 24_000;

/// What an answer says: an operation, an embedding, one answer, or the events of one.
pub(super) fn said(ticket: &Ticket, json: &Json) -> Said {
    if let Some(name) = json.get("name").and_then(Json::as_str) {
        return Said::new(operation(json)).of(Some(name));
    }
    if let Some(vector) = json.pointer("/embedding/values") {
        return Said::new(vectors(vector.clone()));
    }
    if let Some(list) = json.get("embeddings").and_then(Json::as_array) {
        let all = list
            .iter()
            .filter_map(|one| one.get("values").cloned())
            .collect::<Vec<_>>();
        return Said::new(vectors(all.into()));
    }
    let events = match json {
        Json::Array(events) => events.as_slice(),
        other => std::slice::from_ref(other),
    };
    let id = events
        .iter()
        .rev()
        .find_map(|event| event.get("responseId")?.as_str());
    Said::new(content(ticket, events)).of(id)
}

fn vectors(numbers: Json) -> State {
    let usage = Usage {
        output_tokens: Some(0),
        ..Usage::default()
    };
    State::done(vec![Found::at("text", Place::Value(from_json(numbers)))], usage)
}

/// A film: a key `done`, and then an error or an answer.
fn operation(json: &Json) -> State {
    if json.get("done").and_then(Json::as_bool) != Some(true) {
        return State::RUNNING;
    }
    if let Some(error) = json.get("error") {
        let class = match error.get("code").and_then(Json::as_i64) {
            Some(3) => Class::InvalidInput,
            Some(8 | 13 | 14) => Class::ProviderTransient,
            _ => Class::ProviderPermanent,
        };
        return State::failed(class, words(error));
    }
    let answer = json
        .pointer("/response/generateVideoResponse")
        .unwrap_or(&Json::Null);
    let samples = answer.get("generatedSamples").and_then(Json::as_array);
    let found: Vec<Found> = samples
        .into_iter()
        .flatten()
        .filter_map(|sample| Some(Found::url("video", sample.pointer("/video/uri")?.as_str()?)))
        .collect();
    let filtered = answer
        .get("raiMediaFilteredCount")
        .and_then(Json::as_i64)
        .unwrap_or(0)
        > 0
        || answer.get("raiMediaFilteredReasons").is_some();
    if found.is_empty() && filtered {
        let why = answer
            .get("raiMediaFilteredReasons")
            .map(words)
            .unwrap_or_default();
        let mut failure = Failure::new(Class::ContentPolicy, why).because("output");
        // Films that were filtered are not charged.
        failure.maybe_billed = false;
        return State::Failed(failure);
    }
    State::done(found, Usage::default())
}

/// One answer, in one piece or in events.
fn content(ticket: &Ticket, events: &[Json]) -> State {
    if let Some(error) = events.iter().find_map(|event| event.get("error")) {
        let status = error.get("code").and_then(Json::as_u64).unwrap_or(500);
        let status = u16::try_from(status)
            .ok()
            .and_then(|code| reqwest::StatusCode::from_u16(code).ok())
            .unwrap_or(reqwest::StatusCode::INTERNAL_SERVER_ERROR);
        let mut failure = super::named(status, error);
        failure.maybe_billed = true;
        return State::Failed(failure);
    }
    if let Some(reason) = events
        .iter()
        .find_map(|event| event.pointer("/promptFeedback/blockReason")?.as_str())
    {
        return refused(reason, "input");
    }
    let finish = events
        .iter()
        .rev()
        .find_map(|event| event.pointer("/candidates/0/finishReason")?.as_str())
        .unwrap_or_default();
    let (mut media, mut text) = (Vec::new(), String::new());
    for part in events.iter().flat_map(parts).filter(|part| !thought(part)) {
        if let Some(piece) = part.get("text").and_then(Json::as_str) {
            text.push_str(piece);
        }
        match part.get("inlineData").map(|data| output(ticket, data)) {
            Some(Some(found)) => media.push(found),
            Some(None) => {
                return State::Failed(crate::adapters::http::bad("the output is not base64"));
            }
            None => {}
        }
    }
    let usage = usage(events);
    match finish {
        "SAFETY"
        | "PROHIBITED_CONTENT"
        | "BLOCKLIST"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT" => refused(finish, "output"),
        _ if ticket.capability == "generate_message"
            || ticket.capability == "automatic_speech_recognition" =>
        {
            if text.is_empty() && finish.is_empty() {
                return State::Failed(Failure::unknown_submit("the stream broke off"));
            }
            State::Done(vec![Found::at("text", Place::Text(text))], usage)
        }
        _ if !media.is_empty() => {
            let caption = Some(text.trim().to_owned()).filter(|text| !text.is_empty());
            let media = media
                .into_iter()
                .map(|found| found.fact("caption", caption.clone()))
                .collect();
            State::Done(media, usage)
        }
        _ => {
            let why = if finish.is_empty() { "no reason" } else { finish };
            let message = format!("the answer has no output ({why}) {text}");
            State::Failed(Failure::new(Class::ProviderPermanent, message.trim()).because("no_output"))
        }
    }
}

fn refused(reason: &str, stage: &'static str) -> State {
    let message = format!("the provider refused the content: {reason}");
    State::Failed(Failure::new(Class::ContentPolicy, message).because(stage))
}

fn parts(event: &Json) -> impl Iterator<Item = &Json> {
    let parts = event
        .pointer("/candidates/0/content/parts")
        .and_then(Json::as_array);
    parts.into_iter().flatten()
}

fn thought(part: &Json) -> bool {
    part.get("thought").and_then(Json::as_bool) == Some(true)
}

/// The texts of an event, and whether they are thoughts.
pub(super) fn texts(event: &Json) -> Vec<(String, bool)> {
    parts(event)
        .filter_map(|part| Some((part.get("text")?.as_str()?.to_owned(), thought(part))))
        .filter(|(text, _)| !text.is_empty())
        .collect()
}

/// Tokens: each event states them for everything so far, so the last one counts.
fn usage(events: &[Json]) -> Usage {
    let Some(last) = events.iter().rev().find_map(|event| event.get("usageMetadata")) else {
        return Usage::default();
    };
    let count = |key: &str| last.get(key).and_then(Json::as_i64);
    let input = count("promptTokenCount");
    // Thoughts are paid like an answer, and are only in the total.
    let output = match (count("totalTokenCount"), input) {
        (Some(total), Some(input)) => Some((total - input).max(0)),
        _ => count("candidatesTokenCount"),
    };
    Usage {
        input_tokens: input,
        cached_tokens: count("cachedContentTokenCount"),
        output_tokens: output,
        seconds: None,
    }
}

/// A medium of a part; raw sound gets a head.
fn output(ticket: &Ticket, data: &Json) -> Option<Found> {
    let mime = data.get("mimeType").and_then(Json::as_str).unwrap_or_default();
    let text = data.get("data").and_then(Json::as_str)?;
    if !mime.starts_with("audio/L16") && !mime.starts_with("audio/pcm") {
        return Some(Found::at(ticket.kind(), Place::Base64(text.to_owned())).named(mime));
    }
    let rate = mime
        .split("rate=")
        .nth(1)
        .and_then(|rest| rest.split(';').next()?.trim().parse().ok())
        .unwrap_or(USUAL_RATE);
    let samples = STANDARD.decode(text).ok()?;
    Some(Found::at("audio", Place::Bytes(wave(&samples, rate)?)).named("audio/wav"))
}

/// A WAV file of one channel with 16 bits a sample.
fn wave(samples: &[u8], rate: u32) -> Option<Bytes> {
    let length = u32::try_from(samples.len()).ok()?;
    let mut file = BytesMut::with_capacity(44 + samples.len());
    file.put_slice(b"RIFF");
    file.put_u32_le(length.checked_add(36)?);
    file.put_slice(b"WAVEfmt ");
    file.put_u32_le(16);
    file.put_u16_le(1);
    file.put_u16_le(1);
    file.put_u32_le(rate);
    file.put_u32_le(rate.checked_mul(2)?);
    file.put_u16_le(2);
    file.put_u16_le(16);
    file.put_slice(b"data");
    file.put_u32_le(length);
    file.put_slice(samples);
    Some(file.freeze())
}

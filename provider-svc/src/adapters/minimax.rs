//! MiniMax (providers specification 8): speech, music and pictures at once, films as jobs.
//!
//! An answer of success says nothing: the code in `base_resp` does. Sound comes as hex. A film that is done has the name
//! of a file, whose address must be asked for.

use bytes::Bytes;
use serde_json::{Value as Json, json};

use super::http::{Refusal, Reply, address, bad, by_status};
use super::jobs::{
    Context, Dialect, Fields, Found, Order, Place, Said, State, Ticket, model, pictures, told_text, words,
};
use crate::provider::{Call, Capability, Class, Failure, Model, Params, Usage};

/// Voice of a request that names none.
const USUAL_VOICE: &str = "English_Graceful_Lady";

/// Its words.
pub struct MiniMax;

impl Dialect for MiniMax {
    fn id(&self) -> &'static str {
        "minimax"
    }
    fn address(&self) -> &'static str {
        "https://api.minimax.io"
    }
    fn variable(&self) -> &'static str {
        "MINIMAX_API_KEY"
    }

    fn models(&self) -> Vec<Model> {
        vec![
            model("image-01", &[Capability::TextToImage, Capability::ImageToImage]),
            model(
                "MiniMax-Hailuo-2.3",
                &[Capability::TextToVideo, Capability::ImageToVideo],
            ),
            model("MiniMax-Hailuo-2.3-Fast", &[Capability::ImageToVideo]),
            model("speech-2.6-hd", &[Capability::TextToSpeech]),
            model("speech-2.6-turbo", &[Capability::TextToSpeech]),
            model("music-2.0", &[Capability::TextToMusic]),
        ]
    }

    fn order(&self, call: &Call) -> Result<Order, Failure> {
        let params = Params(&call.params);
        let body = Fields::of(call).set("model", call.model.clone());
        let first = pictures(call).into_iter().next().map(address);
        match call.capability {
            Capability::TextToVideo | Capability::ImageToVideo => {
                let seconds = ["duration", "seconds"].iter().find_map(|key| params.int(key));
                let body = body
                    .set("prompt", told_text(call))
                    .maybe("first_frame_image", first)
                    .maybe("duration", seconds)
                    .maybe(
                        "resolution",
                        params.text("resolution").map(str::to_ascii_uppercase),
                    )
                    .pass(&["prompt_optimizer"]);
                Ok(Order::post("v1/video_generation", body.json()))
            }
            Capability::TextToSpeech => {
                let body = body
                    .set(
                        "text",
                        params
                            .first_text(&["text", "input", "prompt"])
                            .unwrap_or_default(),
                    )
                    .set("stream", false)
                    .set(
                        "voice_setting",
                        json!({
                            "voice_id": params.first_text(&["voice", "voice_id"]).unwrap_or(USUAL_VOICE),
                            "speed": params.number("speed").unwrap_or(1.0),
                        }),
                    )
                    .set("audio_setting", json!({"format": "mp3"}))
                    .set("output_format", "hex")
                    .pass(&["language_boost"]);
                Ok(Order::post("v1/t2a_v2", body.json()))
            }
            Capability::TextToMusic => {
                let body = body
                    .set("prompt", told_text(call))
                    .set("output_format", "hex")
                    .pass(&["lyrics"]);
                Ok(Order::post("v1/music_generation", body.json()))
            }
            Capability::TextToImage | Capability::ImageToImage => {
                let body = body
                    .set("prompt", told_text(call))
                    .set("n", params.outputs())
                    .set("response_format", "base64")
                    .pass(&["aspect_ratio"])
                    .maybe(
                        "subject_reference",
                        first.map(|url| json!([{"type": "character", "image_file": url}])),
                    );
                Ok(Order::post("v1/image_generation", body.json()))
            }
            _ => Err(Failure::new(Class::InvalidInput, "the provider cannot do this").unsent()),
        }
    }

    fn refusal(&self, reply: &Reply, polling: bool) -> Option<Refusal> {
        let json = reply.json();
        let text = json.get("base_resp").map_or_else(|| words(&json), words);
        if !reply.status.is_success() {
            return Some(Refusal::new(by_status(reply.status, &text)));
        }
        // A job that failed says why in the same place; the word for it comes first.
        if polling
            && json
                .get("status")
                .and_then(Json::as_str)
                .is_some_and(|word| word.starts_with("Fail"))
        {
            return None;
        }
        let code = json.pointer("/base_resp/status_code").and_then(Json::as_i64)?;
        named(code, text).map(Refusal::new)
    }

    fn said(&self, context: Context<'_>, reply: &Reply) -> Said {
        let json = reply.json();
        if let Some(audio) = json.pointer("/data/audio").and_then(Json::as_str) {
            let trace = json.get("trace_id").and_then(Json::as_str);
            return Said::new(sound(audio)).of(trace);
        }
        if let Some(list) = json.pointer("/data/image_base64").and_then(Json::as_array) {
            let found = list
                .iter()
                .filter_map(|one| Some(Found::at("image", Place::Base64(one.as_str()?.to_owned()))))
                .collect();
            return Said::new(State::done(found, Usage::default())).of(json.get("id").and_then(Json::as_str));
        }
        let id = json
            .get("task_id")
            .and_then(Json::as_str)
            .filter(|id| !id.is_empty());
        let state = match json.get("status").and_then(Json::as_str) {
            Some("Success") => match file_of(&json) {
                Some(_) => State::Ready,
                None => State::done(Vec::new(), Usage::default()),
            },
            Some("Fail" | "Failed") => {
                let code = json
                    .pointer("/base_resp/status_code")
                    .and_then(Json::as_i64)
                    .unwrap_or(0);
                let text = json.get("base_resp").map(words).unwrap_or_default();
                let permanent = Failure::new(Class::ProviderPermanent, text.clone());
                match named(code, text) {
                    Some(failure) if failure.class == Class::ContentPolicy => State::Failed(failure),
                    Some(_) | None => State::Failed(permanent),
                }
            }
            Some("Preparing" | "Queueing") => State::QUEUED,
            Some(_) => State::RUNNING,
            None if id.is_some() => State::QUEUED,
            None if context.ticket.id.is_empty() => State::Unreadable,
            None => State::RUNNING,
        };
        Said::new(state).of(id)
    }

    fn look(&self, ticket: &Ticket) -> Order {
        Order::get(format!("v1/query/video_generation?task_id={}", ticket.id))
    }

    fn claim(&self, ticket: &Ticket) -> Order {
        self.look(ticket)
    }

    fn next_claim(&self, _ticket: &Ticket, reply: &Reply) -> Option<Order> {
        let file = file_of(&reply.json())?;
        Some(Order::get(format!("v1/files/retrieve?file_id={file}")))
    }

    fn claimed(&self, _context: Context<'_>, reply: &Reply) -> Result<Vec<Found>, Failure> {
        let json = reply.json();
        let url = json.pointer("/file/download_url").and_then(Json::as_str);
        Ok(url.map(|url| Found::url("video", url)).into_iter().collect())
    }
}

/// The name of a film's file, which is a text or a number.
fn file_of(json: &Json) -> Option<String> {
    match json.get("file_id")? {
        Json::String(text) if !text.is_empty() => Some(text.clone()),
        Json::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The failure of an inner code; none when it means success.
fn named(code: i64, text: String) -> Option<Failure> {
    let class = match code {
        0 => return None,
        1002 => Class::RateLimit,
        1004 | 2049 => Class::Auth,
        1008 | 1028 | 1030 | 2056 | 2061 => Class::Quota,
        1026 | 1027 => Class::ContentPolicy,
        1039 | 2013 => Class::InvalidInput,
        1000 | 1001 | 1024 | 1033 => Class::ProviderTransient,
        _ => Class::Unknown,
    };
    let failure = Failure::new(class, format!("{text} (code {code})"));
    Some(match code {
        1026 => failure.because("input"),
        1027 => failure.because("output"),
        _ => failure,
    })
}

fn sound(hex: &str) -> State {
    let digits = hex.as_bytes();
    let pairs = digits.chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return State::Failed(bad("the sound is no hex"));
    }
    let bytes: Option<Vec<u8>> = pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect();
    match bytes {
        Some(bytes) if !bytes.is_empty() => {
            let found = Found::at("audio", Place::Bytes(Bytes::from(bytes)));
            State::Done(vec![found], Usage::default())
        }
        Some(_) => State::done(Vec::new(), Usage::default()),
        None => State::Failed(bad("the sound is no hex")),
    }
}

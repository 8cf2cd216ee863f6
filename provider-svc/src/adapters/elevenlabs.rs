//! ElevenLabs (providers specification 14): speech, sounds, music and transcripts, all at once.
//!
//! The id and the charge, in credits, are in the head of the answer, so that they stand also when the sound breaks off.
//! A refusal for an empty account has the status of a wrong key; the words tell them apart.

use reqwest::header::HeaderMap;
use rust_decimal::Decimal;
use serde_json::Value as Json;

use super::http::{Auth, Refusal, Reply, by_status, references};
use super::jobs::{
    Answer, Context, Dialect, Field, Fields, Found, Order, Place, Said, State, credits, lacks, model,
    told_text, words,
};
use crate::pricing::Catalog;
use crate::provider::{Call, Capability, Class, Failure, Model, Params, Usage};
use crate::seam::receipt::Stated;

/// Voice of a request that names none: Rachel, which every account has.
const USUAL_VOICE: &str = "21m00Tcm4TlvDq8ikWAM";
/// Form of sound of a request that names none.
const USUAL_FORMAT: &str = "mp3_44100_128";
/// The effects model, which has a path of its own.
const EFFECTS: &str = "eleven_text_to_sound_v2";

/// Its words.
pub struct ElevenLabs;

impl Dialect for ElevenLabs {
    fn id(&self) -> &'static str {
        "elevenlabs"
    }
    fn address(&self) -> &'static str {
        "https://api.elevenlabs.io"
    }
    fn variable(&self) -> &'static str {
        "ELEVENLABS_API_KEY"
    }
    fn auth(&self) -> Auth {
        Auth::Header("xi-api-key")
    }
    fn inlines(&self) -> bool {
        true
    }

    fn models(&self) -> Vec<Model> {
        vec![
            model("eleven_multilingual_v2", &[Capability::TextToSpeech]),
            model("eleven_flash_v2_5", &[Capability::TextToSpeech]),
            model("eleven_v3", &[Capability::TextToSpeech]),
            model("music_v1", &[Capability::TextToMusic]),
            model(EFFECTS, &[Capability::TextToMusic]),
            model("scribe_v1", &[Capability::AutomaticSpeechRecognition]),
        ]
    }

    fn order(&self, call: &Call) -> Result<Order, Failure> {
        let params = Params(&call.params);
        match call.capability {
            Capability::TextToSpeech => {
                let voice = params.first_text(&["voice", "voice_id"]).unwrap_or(USUAL_VOICE);
                if !voice
                    .chars()
                    .all(|letter| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-')
                {
                    return Err(Failure::new(Class::InvalidInput, "a voice is named by its id").unsent());
                }
                let body = Fields::of(call)
                    .set(
                        "text",
                        params
                            .first_text(&["text", "input", "prompt"])
                            .unwrap_or_default(),
                    )
                    .set("model_id", call.model.clone())
                    .pass(&["language_code", "voice_settings", "seed"])
                    .json();
                let path = format!("v1/text-to-speech/{voice}?output_format={}", format(params)?);
                Ok(Order::post(path, body).answered(Answer::Sound))
            }
            Capability::TextToMusic if call.model == EFFECTS => {
                let body = Fields::of(call)
                    .set("text", told_text(call))
                    .set("model_id", call.model.clone())
                    .maybe("duration_seconds", params.number("duration"))
                    .pass(&["duration_seconds", "prompt_influence", "loop"])
                    .json();
                Ok(Order::post("v1/sound-generation", body).answered(Answer::Sound))
            }
            Capability::TextToMusic => {
                let body = Fields::of(call)
                    .set("prompt", told_text(call))
                    .set("model_id", call.model.clone())
                    .maybe(
                        "music_length_ms",
                        params
                            .int("duration")
                            .map(|seconds| seconds.saturating_mul(1_000)),
                    )
                    .pass(&["music_length_ms", "force_instrumental", "seed"])
                    .json();
                Ok(Order::post("v1/music", body).answered(Answer::Sound))
            }
            Capability::AutomaticSpeechRecognition => {
                let sound = ["audio", "file"]
                    .iter()
                    .find_map(|key| references(call.params.get(*key)).into_iter().next())
                    .and_then(|media| media.data.clone())
                    .ok_or_else(|| lacks("a sound file"))?;
                let mut fields = vec![
                    Field::Text("model_id", call.model.clone()),
                    Field::File("file", sound),
                ];
                if let Some(language) = params.first_text(&["language", "language_code"]) {
                    fields.push(Field::Text("language_code", language.to_owned()));
                }
                Ok(Order::form("v1/speech-to-text", fields))
            }
            _ => Err(Failure::new(Class::InvalidInput, "the provider cannot do this").unsent()),
        }
    }

    fn request_id(&self, headers: &HeaderMap) -> Option<String> {
        let id = headers.get("request-id").or_else(|| headers.get("x-trace-id"))?;
        id.to_str().ok().map(ToOwned::to_owned)
    }

    fn charge(&self, headers: &HeaderMap, catalog: &Catalog) -> Option<Stated> {
        let count: Decimal = headers
            .get("character-cost")?
            .to_str()
            .ok()?
            .trim()
            .parse()
            .ok()?;
        Some(credits(catalog, self.id(), count))
    }

    fn refusal(&self, reply: &Reply, _polling: bool) -> Option<Refusal> {
        if reply.status.is_success() {
            return None;
        }
        let json = reply.json();
        let detail = json.get("detail").cloned().unwrap_or_default();
        let word = ["status", "code"]
            .iter()
            .find_map(|key| detail.get(*key)?.as_str())
            .unwrap_or_default();
        let text = match words(&detail) {
            text if text.is_empty() => word.to_owned(),
            text => text,
        };
        let failure = |class| Failure::new(class, text.clone());
        Some(match (reply.status.as_u16(), word) {
            (401, "quota_exceeded") => Refusal::last(failure(Class::Quota).because("INSUFFICIENT_CREDIT")),
            (401, "missing_permissions") => Refusal::last(failure(Class::Auth).because("permission")),
            (429, "too_many_concurrent_requests") => {
                Refusal::passing(failure(Class::RateLimit).because("concurrency"))
            }
            // No sound was made.
            (429, "system_busy") => Refusal::passing(failure(Class::ProviderTransient)),
            (400 | 403, word) if word.contains("policy") || word.contains("moderation") => {
                Refusal::last(failure(Class::ContentPolicy).because("input"))
            }
            _ => Refusal::new(by_status(reply.status, &text)),
        })
    }

    fn said(&self, context: Context<'_>, reply: &Reply) -> Said {
        if context.ticket.capability == Capability::AutomaticSpeechRecognition.as_str() {
            let json = reply.json();
            return Said::new(match json.get("text").and_then(Json::as_str) {
                Some(text) => State::Done(
                    vec![Found::at("text", Place::Text(text.to_owned()))],
                    length(&json),
                ),
                None => State::Unreadable,
            });
        }
        let stated = reply.header("content-type").unwrap_or_default().to_owned();
        if stated.starts_with("application/json") {
            return Said::new(State::Unreadable);
        }
        if reply.body.is_empty() {
            return Said::new(State::done(Vec::new(), Usage::default()));
        }
        let sound = Found::at("audio", Place::Bytes(reply.body.clone())).named(&stated);
        let sound = sound.fact("song_id", reply.header("song-id").map(ToOwned::to_owned));
        Said::new(State::Done(vec![sound], Usage::default()))
    }
}

/// Seconds of sound, by the end of its last word.
fn length(json: &Json) -> Usage {
    let ends = json.get("words").and_then(Json::as_array);
    let last = ends
        .into_iter()
        .flatten()
        .filter_map(|word| super::jobs::number(word.get("end")?))
        .max();
    Usage {
        seconds: last,
        ..Usage::default()
    }
}

/// The form of sound, as the provider names it.
fn format(params: Params<'_>) -> Result<String, Failure> {
    let named = params.first_text(&["output_format", "response_format", "format"]);
    let known = match named.unwrap_or(USUAL_FORMAT) {
        "mp3" => USUAL_FORMAT,
        "pcm" => "pcm_24000",
        "opus" => "opus_48000_64",
        own if own
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || letter == '_') =>
        {
            own
        }
        _ => return Err(Failure::new(Class::InvalidInput, "no such form of sound").unsent()),
    };
    Ok(known.to_owned())
}

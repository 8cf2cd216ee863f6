//! Hugging Face's own inference (providers specification 16): pictures, sound and transcripts of small models, at once. A
//! model that is being loaded is waited for; nothing states a charge.

use std::time::Duration;

use reqwest::header::HeaderMap;
use serde_json::{Value as Json, json};

use super::http::{Refusal, Reply, by_status, references};
use super::jobs::{
    Context, Dialect, Fields, Found, Order, Place, Said, State, lacks, model, number, told_text, words,
};
use crate::provider::{Call, Capability, Class, Failure, Model, Usage};

/// Its words.
pub struct HuggingFace;

impl Dialect for HuggingFace {
    fn id(&self) -> &'static str {
        "huggingface"
    }
    fn address(&self) -> &'static str {
        "https://router.huggingface.co"
    }
    fn variable(&self) -> &'static str {
        "HUGGINGFACE_API_KEY"
    }
    fn inlines(&self) -> bool {
        true
    }

    fn models(&self) -> Vec<Model> {
        vec![
            model("black-forest-labs/FLUX.1-schnell", &[Capability::TextToImage]),
            model("facebook/mms-tts-eng", &[Capability::TextToSpeech]),
            model(
                "openai/whisper-large-v3",
                &[Capability::AutomaticSpeechRecognition],
            ),
        ]
    }

    fn order(&self, call: &Call) -> Result<Order, Failure> {
        let path = format!("hf-inference/models/{}", call.model);
        let wishes = Fields::of(call).pass(&[
            "width",
            "height",
            "seed",
            "num_inference_steps",
            "guidance_scale",
            "negative_prompt",
        ]);
        match call.capability {
            Capability::TextToImage | Capability::TextToSpeech => Ok(Order::post(
                path,
                json!({"inputs": told_text(call), "parameters": wishes.json()}),
            )),
            Capability::AutomaticSpeechRecognition => {
                let sound = ["audio", "file"]
                    .iter()
                    .find_map(|key| references(call.params.get(*key)).into_iter().next())
                    .and_then(|media| media.data.as_ref())
                    .ok_or_else(|| lacks("a sound file"))?;
                Ok(Order::post(
                    path,
                    json!({"inputs": super::http::base64_of(sound)}),
                ))
            }
            _ => Err(Failure::new(Class::InvalidInput, "the provider cannot do this").unsent()),
        }
    }

    fn request_id(&self, headers: &HeaderMap) -> Option<String> {
        let id = headers
            .get("inference-id")
            .or_else(|| headers.get("x-request-id"))?;
        Some(id.to_str().ok()?.to_owned())
    }

    fn refusal(&self, reply: &Reply, _polling: bool) -> Option<Refusal> {
        if reply.status.is_success() {
            return None;
        }
        let json = reply.json();
        let mut failure = by_status(reply.status, &words(&json));
        let loading = json.get("estimated_time").and_then(number);
        if let (503, Some(seconds)) = (reply.status.as_u16(), loading) {
            failure.retry_after = seconds
                .to_string()
                .parse()
                .ok()
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            return Some(Refusal::passing(failure));
        }
        Some(Refusal::new(failure))
    }

    fn said(&self, context: Context<'_>, reply: &Reply) -> Said {
        let stated = reply.header("content-type").unwrap_or_default();
        if stated.starts_with("application/json") {
            let json = reply.json();
            return Said::new(match json.get("text").and_then(Json::as_str) {
                Some(text) => State::Done(
                    vec![Found::at("text", Place::Text(text.to_owned()))],
                    Usage::default(),
                ),
                None => State::Unreadable,
            });
        }
        let found = Found::at(context.ticket.kind(), Place::Bytes(reply.body.clone())).named(stated);
        let found = (!reply.body.is_empty()).then_some(found);
        Said::new(State::done(found.into_iter().collect(), Usage::default()))
    }
}

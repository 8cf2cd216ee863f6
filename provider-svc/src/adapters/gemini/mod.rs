//! Google Gemini (providers specification 2): pictures, speech, transcripts, chat and embeddings at once, films by Veo as
//! long-running operations.
//!
//! [`request`] says what is asked, [`answer`] what comes back. A refusal of content is an answer of success here: it is
//! told by `promptFeedback`, by a `finishReason`, or by the filter marks of a film.

mod answer;
mod request;

use reqwest::StatusCode;
use serde_json::Value as Json;
use std::time::Duration;

use super::http::{Auth, Refusal, Reply, by_status};
use super::jobs::{Context, Dialect, Order, Said, model, words};
use crate::provider::{Call, Capability, Class, Failure, Model};

/// Its words.
pub struct Gemini;

impl Dialect for Gemini {
    fn id(&self) -> &'static str {
        "gemini"
    }
    fn address(&self) -> &'static str {
        "https://generativelanguage.googleapis.com/v1beta"
    }
    fn variable(&self) -> &'static str {
        "GEMINI_API_KEY"
    }
    fn auth(&self) -> Auth {
        Auth::Header("x-goog-api-key")
    }
    fn inlines(&self) -> bool {
        true
    }

    fn models(&self) -> Vec<Model> {
        let pictures = [
            Capability::TextToImage,
            Capability::ImageToImage,
            Capability::Inpainting,
        ];
        let films = [Capability::TextToVideo, Capability::ImageToVideo];
        let words = [
            Capability::GenerateMessage,
            Capability::AutomaticSpeechRecognition,
        ];
        vec![
            model("gemini-2.5-flash-image", &pictures),
            model("gemini-3-pro-image-preview", &pictures),
            model("veo-3.1-generate-preview", &films),
            model("veo-3.1-fast-generate-preview", &films),
            model("gemini-2.5-flash-preview-tts", &[Capability::TextToSpeech]),
            model("gemini-2.5-flash", &words),
            model("gemini-2.5-pro", &words),
            model("gemini-embedding-001", &[Capability::Embedding]),
        ]
    }

    fn order(&self, call: &Call) -> Result<Order, Failure> {
        request::order(call)
    }

    fn refusal(&self, reply: &Reply, _polling: bool) -> Option<Refusal> {
        if reply.status.is_success() {
            return None;
        }
        let json = reply.json();
        // Streams wrap the error in a list of one.
        let error = json
            .get(0)
            .unwrap_or(&json)
            .get("error")
            .cloned()
            .unwrap_or_default();
        Some(Refusal::new(named(reply.status, &error)))
    }

    fn said(&self, context: Context<'_>, reply: &Reply) -> Said {
        answer::said(context.ticket, &reply.json())
    }

    fn piece(&self, event: &Json) -> Vec<(String, bool)> {
        answer::texts(event)
    }
}

/// The failure of an error object.
fn named(status: StatusCode, error: &Json) -> Failure {
    let text = words(error);
    let lower = text.to_lowercase();
    let about_money = lower.contains("billing") || lower.contains("your plan");
    let details = error.get("details").and_then(Json::as_array);
    let detail = |key: &str| {
        details
            .into_iter()
            .flatten()
            .find_map(|detail| detail.get(key)?.as_str())
    };
    let mut failure = match status.as_u16() {
        400 if detail("reason") == Some("API_KEY_INVALID") || lower.contains("api key not valid") => {
            Failure::new(Class::Auth, text)
        }
        403 | 429 if about_money => Failure::new(Class::Quota, text).because("INSUFFICIENT_CREDIT"),
        _ => by_status(status, &text),
    };
    failure.retry_after = detail("retryDelay")
        .and_then(|text| text.trim_end_matches('s').parse::<f64>().ok())
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    failure
}

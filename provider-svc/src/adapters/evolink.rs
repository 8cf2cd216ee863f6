//! Evolink (providers specification 12): pictures, films and music, as jobs.
//!
//! The one provider with a key for a request: it gets the id of the generation, so a request whose fate is unknown is
//! sent again and makes no second task. The credits that it holds back are an upper bound and no charge.

use std::time::Duration;

use chrono::{Days, NaiveTime, Utc};
use serde_json::Value as Json;

use super::http::{Refusal, Reply, address, by_status};
use super::jobs::{
    Context, Dialect, Fields, Found, Order, Said, State, Ticket, model, number, pictures, told_text, words,
};
use crate::provider::{Call, Capability, Class, Failure, Medium, Model, Params, Usage};

/// Its words.
pub struct Evolink;

impl Dialect for Evolink {
    fn id(&self) -> &'static str {
        "evolink"
    }
    fn address(&self) -> &'static str {
        "https://api.evolink.ai"
    }
    fn variable(&self) -> &'static str {
        "EVOLINK_API_KEY"
    }
    fn repeatable(&self) -> bool {
        true
    }

    fn models(&self) -> Vec<Model> {
        vec![
            model(
                "nano-banana-pro",
                &[Capability::TextToImage, Capability::ImageToImage],
            ),
            model("veo-3.1", &[Capability::TextToVideo, Capability::ImageToVideo]),
            model("suno-v5", &[Capability::TextToMusic]),
        ]
    }

    fn order(&self, call: &Call) -> Result<Order, Failure> {
        let params = Params(&call.params);
        let images: Vec<Json> = pictures(call)
            .into_iter()
            .map(|media| address(media).into())
            .collect();
        let body = Fields::of(call)
            .set("model", call.model.clone())
            .set("prompt", told_text(call))
            .maybe("image_urls", (!images.is_empty()).then_some(images));
        let (path, body) = match call.capability.medium() {
            Medium::Image => {
                let size = params.first_text(&["size", "aspect_ratio"]);
                (
                    "v1/images/generations",
                    body.maybe("size", size).set("n", params.outputs()),
                )
            }
            Medium::Video => {
                let seconds = ["duration", "seconds"].iter().find_map(|key| params.int(key));
                let quality = params.first_text(&["quality", "resolution"]);
                let body = body.maybe("duration", seconds).maybe("quality", quality);
                (
                    "v1/videos/generations",
                    body.pass(&["aspect_ratio", "generate_audio"]),
                )
            }
            Medium::Audio => (
                "v1/audios/generations",
                body.pass(&["custom_mode", "instrumental", "style", "title"]),
            ),
            Medium::Model3d | Medium::Text => {
                return Err(Failure::new(Class::InvalidInput, "the provider cannot do this").unsent());
            }
        };
        Ok(Order::post(path, body.json()).header("idempotency-key", call.generation_id.to_string()))
    }

    fn refusal(&self, reply: &Reply, polling: bool) -> Option<Refusal> {
        if reply.status.is_success() {
            return None;
        }
        let json = reply.json();
        let text = words(&json);
        let code = json
            .pointer("/error/code")
            .and_then(Json::as_str)
            .unwrap_or_default();
        let failure = |class| Failure::new(class, format!("{code}: {text}"));
        Some(match (reply.status.as_u16(), code) {
            (409, "idempotency_conflict") => {
                tracing::error!("a request key was used for two requests");
                Refusal::last(failure(Class::Unknown).because("idempotency_conflict"))
            }
            (402, "token_daily_quota_exceeded") => {
                let mut failure = failure(Class::Quota).because("INSUFFICIENT_CREDIT");
                failure.retry_after = until_midnight();
                Refusal::last(failure)
            }
            (402, _) => Refusal::last(failure(Class::Quota).because("INSUFFICIENT_CREDIT")),
            (503, "no_available_channel" | "model_unavailable") if !polling => {
                Refusal::passing(failure(Class::ProviderTransient))
            }
            (_, "content_policy_violation") => Refusal::last(failure(Class::ContentPolicy).because("input")),
            (_, "paid_outcome_unknown") => Refusal::last(Failure::unknown_submit(text)),
            _ => Refusal::new(by_status(reply.status, &text)),
        })
    }

    fn said(&self, context: Context<'_>, reply: &Reply) -> Said {
        let json = reply.json();
        let id = json.get("id").and_then(Json::as_str);
        if id.is_none() {
            return Said::new(State::Unreadable);
        }
        let state = match json.get("status").and_then(Json::as_str) {
            Some("completed") => {
                let list = json.get("results").and_then(Json::as_array);
                let found = list
                    .into_iter()
                    .flatten()
                    .filter_map(Json::as_str)
                    .map(|url| Found::url(context.ticket.kind(), url))
                    .collect();
                let usage = Usage {
                    seconds: json.pointer("/result_data/0/duration").and_then(number),
                    ..Usage::default()
                };
                State::done(found, usage)
            }
            Some("failed") => State::Failed(failed(&json)),
            Some("pending") => State::QUEUED,
            Some(_) | None => State::at(json.get("progress")),
        };
        Said::new(state).of(id)
    }

    fn look(&self, ticket: &Ticket) -> Order {
        Order::get(format!("v1/tasks/{}", ticket.id))
    }
}

/// A task that failed; its credits are given back.
fn failed(json: &Json) -> Failure {
    let code = json
        .pointer("/error/code")
        .and_then(Json::as_str)
        .unwrap_or_default();
    let text = json.get("error").map(words).unwrap_or_default();
    let class = match code {
        "content_policy_violation" => Class::ContentPolicy,
        "invalid_parameters" => Class::InvalidInput,
        code if code.starts_with("image_") => Class::InvalidInput,
        "request_cancelled" => Class::Cancelled,
        "quota_exceeded" => Class::Quota,
        "resource_exhausted" => Class::RateLimit,
        "resource_not_found" => Class::ProviderPermanent,
        _ => Class::ProviderTransient,
    };
    let mut failure = Failure::new(class, format!("{code}: {text}"));
    failure.maybe_billed = false;
    failure
}

fn until_midnight() -> Option<Duration> {
    let now = Utc::now();
    let midnight = now
        .date_naive()
        .checked_add_days(Days::new(1))?
        .and_time(NaiveTime::MIN);
    (midnight.and_utc() - now).to_std().ok()
}

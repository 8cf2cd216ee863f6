//! Replicate (providers specification 5): predictions of any model, held open for a moment and polled from then on.
//!
//! Official models are priced per output by the catalog. Models that are paid by time have a price per second of
//! computing there, which also counts when they fail or are cancelled after the start.

use std::time::Duration;

use atelier_proto::money::Money;
use rust_decimal::Decimal;
use serde_json::{Value as Json, json};

use super::http::{Refusal, Reply, by_status, refuses_content};
use super::jobs::{
    Body, Context, Dialect, Fields, Found, Order, Said, State, Ticket, model, number, plain, words,
};
use crate::pricing::catalog::Unit;
use crate::provider::{Call, CancelAnswer, Capability, Class, Failure, Model, Usage};
use crate::seam::receipt::Stated;

/// Parameters that are for us.
const OURS: &[&str] = &["stream", "model", "provider"];

/// Its words.
pub struct Replicate;

impl Dialect for Replicate {
    fn id(&self) -> &'static str {
        "replicate"
    }
    fn address(&self) -> &'static str {
        "https://api.replicate.com/v1"
    }
    fn variable(&self) -> &'static str {
        "REPLICATE_API_TOKEN"
    }

    fn models(&self) -> Vec<Model> {
        vec![
            model("black-forest-labs/flux-schnell", &[Capability::TextToImage]),
            model("black-forest-labs/flux-dev", &[Capability::TextToImage]),
            model("black-forest-labs/flux-1.1-pro", &[Capability::TextToImage]),
            model("black-forest-labs/flux-kontext-pro", &[Capability::ImageToImage]),
            model(
                "google/veo-3",
                &[Capability::TextToVideo, Capability::ImageToVideo],
            ),
            model(
                "bytedance/seedance-1-pro",
                &[Capability::TextToVideo, Capability::ImageToVideo],
            ),
            model("minimax/speech-02-hd", &[Capability::TextToSpeech]),
            model("minimax/music-1.5", &[Capability::TextToMusic]),
        ]
    }

    fn order(&self, call: &Call) -> Result<Order, Failure> {
        let mut input = Fields::of(call).json();
        if let Some(input) = input.as_object_mut() {
            for (key, value) in &call.params {
                if !OURS.contains(&key.as_str()) && !value.is_null() {
                    input.insert(key.clone(), plain(value));
                }
            }
        }
        let (path, body) = match (
            call.model.strip_prefix("deployments/"),
            call.model.split_once(':'),
        ) {
            (Some(rest), _) => (format!("deployments/{rest}/predictions"), json!({"input": input})),
            (None, Some(_)) => (
                "predictions".to_owned(),
                json!({"version": call.model, "input": input}),
            ),
            (None, None) if call.model.contains('/') => (
                format!("models/{}/predictions", call.model),
                json!({"input": input}),
            ),
            (None, None) => (
                "predictions".to_owned(),
                json!({"version": call.model, "input": input}),
            ),
        };
        Ok(Order::post(path, body).header("prefer", "wait=5"))
    }

    fn refusal(&self, reply: &Reply, _polling: bool) -> Option<Refusal> {
        if reply.status.is_success() {
            return None;
        }
        let json = reply.json();
        let text = json
            .get("detail")
            .filter(|detail| !detail.is_null())
            .map_or_else(|| words(&json), words);
        let mut failure = by_status(reply.status, &text);
        if failure.class == Class::RateLimit && json.get("retry_after").is_none() {
            failure.retry_after = named_wait(&text);
        }
        Some(Refusal::new(failure))
    }

    fn said(&self, context: Context<'_>, reply: &Reply) -> Said {
        let json = reply.json();
        let id = json.get("id").and_then(Json::as_str);
        if id.is_none() {
            return Said::new(State::Unreadable);
        }
        let computed = json.pointer("/metrics/predict_time").and_then(number);
        let text = json.get("error").map(words).unwrap_or_default();
        let by_time = || time_charge(context, computed);
        let (state, charge) = match json.get("status").and_then(Json::as_str) {
            Some("starting") => (State::QUEUED, None),
            Some("succeeded") => {
                let usage = Usage {
                    seconds: computed.filter(|_| paid_by_time(context).is_some()),
                    ..Usage::default()
                };
                (
                    State::done(outputs(context.ticket.kind(), json.get("output")), usage),
                    None,
                )
            }
            Some("failed") => (State::Failed(failed(&text)), by_time()),
            Some("canceled") => (State::Cancelled, by_time()),
            Some("aborted") => {
                let free = Stated {
                    breakdown: Some("stopped before it started, which is not charged".to_owned()),
                    ..Stated::of(Money::usd(Decimal::ZERO))
                };
                let message = "the provider stopped the job before it started";
                (State::failed(Class::Timeout, message), Some(free))
            }
            // An output may be there before the last word is: only the word counts.
            Some(_) | None => (State::RUNNING, None),
        };
        Said::new(state).of(id).charging(charge)
    }

    fn look(&self, ticket: &Ticket) -> Order {
        Order::get(format!("predictions/{}", ticket.id))
    }

    fn stop(&self, ticket: &Ticket) -> Option<Order> {
        let path = format!("predictions/{}/cancel", ticket.id);
        Some(Order::new(reqwest::Method::POST, path, Body::Empty))
    }

    fn stopped(&self, context: Context<'_>, reply: &Reply) -> (CancelAnswer, Option<Stated>) {
        let answer = match reply.status.as_u16() {
            200..=299 => CancelAnswer::Requested,
            404 => CancelAnswer::NotFound,
            _ => CancelAnswer::Error,
        };
        let said = self.said(context, reply);
        let answer = match (answer, &said.state) {
            (CancelAnswer::Requested, State::Done(..)) => CancelAnswer::AlreadyDone,
            (answer, _) => answer,
        };
        (answer, said.charge)
    }
}

/// The price of a second of computing, of a model that is paid by it.
fn paid_by_time(context: Context<'_>) -> Option<Decimal> {
    let entry = context.catalog.get("replicate", &context.ticket.model)?;
    entry.price.filter(|_| entry.unit == Unit::ComputeSecond)
}

/// What the time so far costs, when the model is paid by it.
fn time_charge(context: Context<'_>, seconds: Option<Decimal>) -> Option<Stated> {
    let (price, seconds) = (paid_by_time(context)?, seconds?);
    Some(Stated {
        billing_unit: Some("seconds".to_owned()),
        quantity: Some(seconds),
        unit_price: Some(price),
        breakdown: Some(format!("{} s of computing x {price}", seconds.normalize())),
        ..Stated::of(Money::usd(price.checked_mul(seconds)?))
    })
}

fn failed(text: &str) -> Failure {
    let lower = text.to_lowercase();
    if lower.contains("nsfw") || lower.contains("flagged") || refuses_content(text) {
        return Failure::new(Class::ContentPolicy, text).because("output");
    }
    let passing = lower.contains("cuda") || lower.contains("interrupted");
    let class = if passing {
        Class::ProviderTransient
    } else {
        Class::ProviderPermanent
    };
    Failure::new(class, if text.is_empty() { "the job failed" } else { text })
}

/// Every address in an output, whatever its form.
fn outputs(kind: &'static str, output: Option<&Json>) -> Vec<Found> {
    match output {
        Some(Json::String(text)) if text.starts_with("http") || text.starts_with("data:") => {
            vec![Found::url(kind, text.clone())]
        }
        Some(Json::Array(list)) => list.iter().flat_map(|one| outputs(kind, Some(one))).collect(),
        Some(Json::Object(object)) => object.values().flat_map(|one| outputs(kind, Some(one))).collect(),
        Some(_) | None => Vec::new(),
    }
}

/// A wait that is only told in words: `resets in ~3s`.
fn named_wait(text: &str) -> Option<Duration> {
    let rest = text.split("resets in").nth(1)?;
    let digits: String = rest
        .chars()
        .skip_while(|letter| !letter.is_ascii_digit())
        .take_while(|letter| letter.is_ascii_digit() || *letter == '.')
        .collect();
    Duration::try_from_secs_f64(digits.parse().ok()?).ok()
}

//! xAI (providers specification 10): pictures at once, films as jobs.
//!
//! The charge comes with the answer, in ticks of 10⁻¹⁰ dollars, also when the result was withheld.

use atelier_proto::money::Money;
use rust_decimal::Decimal;
use serde_json::{Value as Json, json};

use super::http::{Refusal, Reply, address, by_status};
use super::jobs::{
    Context, Dialect, Fields, Found, Order, Place, Said, State, Ticket, lacks, model, number, pictures,
    told_text, words,
};
use crate::provider::{Call, Capability, Class, Failure, Model, Params, Usage};
use crate::seam::receipt::Stated;

/// Most pictures of an edit.
const MAX_REFERENCES: usize = 3;
/// Digits after the point of a tick.
const TICK: u32 = 10;

/// Its words.
pub struct Xai;

impl Dialect for Xai {
    fn id(&self) -> &'static str {
        "xai"
    }
    fn address(&self) -> &'static str {
        "https://api.x.ai/v1"
    }
    fn variable(&self) -> &'static str {
        "XAI_API_KEY"
    }

    fn models(&self) -> Vec<Model> {
        let pictures = [Capability::TextToImage, Capability::ImageToImage];
        vec![
            model("grok-imagine-image", &pictures),
            model("grok-imagine-image-quality", &pictures),
            model("grok-imagine-image-pro", &pictures),
            model(
                "grok-imagine-video",
                &[Capability::TextToVideo, Capability::ImageToVideo],
            ),
        ]
    }

    fn order(&self, call: &Call) -> Result<Order, Failure> {
        let params = Params(&call.params);
        let base = Fields::of(call)
            .set("model", call.model.clone())
            .set("prompt", told_text(call))
            .pass(&["aspect_ratio", "resolution"]);
        let reference = |url: String| json!({"url": url, "type": "image_url"});
        match call.capability {
            Capability::TextToImage => {
                let body = base.set("n", params.outputs()).set("response_format", "b64_json");
                Ok(Order::post("images/generations", body.json()))
            }
            Capability::ImageToImage => {
                let mut images: Vec<Json> = pictures(call).into_iter().map(address).map(reference).collect();
                if images.is_empty() || images.len() > MAX_REFERENCES {
                    return Err(lacks("one to three pictures"));
                }
                let image = if images.len() == 1 {
                    images.remove(0)
                } else {
                    images.into()
                };
                let body = base
                    .set("n", params.outputs())
                    .set("response_format", "b64_json")
                    .set("image", image);
                Ok(Order::post("images/edits", body.json()))
            }
            Capability::TextToVideo | Capability::ImageToVideo => {
                let seconds = ["duration", "seconds"].iter().find_map(|key| params.int(key));
                let first = pictures(call).into_iter().next().map(address);
                let body = base
                    .maybe("duration", seconds)
                    .maybe("image", first.map(|url| json!({"url": url})));
                Ok(Order::post("videos/generations", body.json()))
            }
            _ => Err(Failure::new(Class::InvalidInput, "the provider cannot do this").unsent()),
        }
    }

    fn refusal(&self, reply: &Reply, _polling: bool) -> Option<Refusal> {
        if reply.status.is_success() {
            return None;
        }
        let text = words(&reply.json());
        let lower = text.to_lowercase();
        let failure = match reply.status.as_u16() {
            400 if lower.contains("incorrect api key") => Failure::new(Class::Auth, text),
            403 if lower.contains("credit") || lower.contains("balance") => {
                Failure::new(Class::Quota, text).because("INSUFFICIENT_CREDIT")
            }
            400..=499 if lower.contains("moderation") && reply.status != 429 && reply.status != 401 => {
                Failure::new(Class::ContentPolicy, text).because("input")
            }
            _ => by_status(reply.status, &text),
        };
        Some(Refusal::new(failure))
    }

    fn said(&self, context: Context<'_>, reply: &Reply) -> Said {
        let json = reply.json();
        let charge = ticks(&json);
        if let Some(list) = json.get("data").and_then(Json::as_array) {
            let found = list.iter().filter_map(picture).collect();
            return Said::new(State::done(found, Usage::default()))
                .of(reply.header("x-request-id"))
                .charging(charge);
        }
        let id = json.get("request_id").and_then(Json::as_str);
        let state = match json.get("status").and_then(Json::as_str) {
            Some("done") => film(&json),
            Some("failed") => State::Failed(failed(&json)),
            Some("expired") => State::Failed(
                Failure::new(Class::ProviderPermanent, "the provider gave the job up")
                    .because("result_expired"),
            ),
            // Nothing but the id means that it runs.
            Some(_) => State::at(json.get("progress")),
            None if id.is_some() || !context.ticket.id.is_empty() => State::at(json.get("progress")),
            None => State::Unreadable,
        };
        Said::new(state).of(id).charging(charge)
    }

    fn look(&self, ticket: &Ticket) -> Order {
        Order::get(format!("videos/{}", ticket.id))
    }
}

/// The stated charge, exact.
fn ticks(json: &Json) -> Option<Stated> {
    let ticks = json.pointer("/usage/cost_in_usd_ticks").and_then(number)?;
    let amount = ticks.checked_mul(Decimal::new(1, TICK))?;
    Some(Stated::of(Money::usd(amount)))
}

fn picture(one: &Json) -> Option<Found> {
    let text = |key: &str| {
        one.get(key)
            .and_then(Json::as_str)
            .filter(|text| !text.is_empty())
    };
    let place = match (text("b64_json"), text("url")) {
        (Some(data), _) => Place::Base64(data.to_owned()),
        (None, Some(url)) => Place::Url(url.to_owned()),
        (None, None) => return None,
    };
    let found = Found::at("image", place).named(text("mime_type").unwrap_or_default());
    Some(found.fact("revised_prompt", text("revised_prompt").map(ToOwned::to_owned)))
}

fn film(json: &Json) -> State {
    let film = json.get("video").unwrap_or(&Json::Null);
    if film.get("respect_moderation").and_then(Json::as_bool) == Some(false) {
        return State::Failed(
            Failure::new(Class::ContentPolicy, "the provider withheld the film").because("output"),
        );
    }
    let url = film
        .get("url")
        .and_then(Json::as_str)
        .filter(|url| !url.is_empty());
    let usage = Usage {
        seconds: film.get("duration").and_then(number),
        ..Usage::default()
    };
    State::done(
        url.map(|url| Found::url("video", url)).into_iter().collect(),
        usage,
    )
}

fn failed(json: &Json) -> Failure {
    let text = json.get("error").map(words).unwrap_or_default();
    let class = match json.pointer("/error/code").and_then(Json::as_str) {
        Some("internal_error") => Class::ProviderTransient,
        _ if super::http::refuses_content(&text) => Class::ContentPolicy,
        _ => Class::ProviderPermanent,
    };
    Failure::new(
        class,
        if text.is_empty() {
            "the job failed".to_owned()
        } else {
            text
        },
    )
}

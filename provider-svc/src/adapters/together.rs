//! Together (providers specification 9): pictures at once, films as jobs that state their charge when they are done.

use serde_json::{Value as Json, json};

use super::http::{Refusal, Reply, address, by_status};
use super::jobs::{
    Context, Dialect, Fields, Found, Order, Place, Said, State, Ticket, model, number, pictures, stated_usd,
    told_text, words,
};
use crate::provider::{Call, Capability, Class, Failure, Model, Params, Usage};

/// Its words.
pub struct Together;

impl Dialect for Together {
    fn id(&self) -> &'static str {
        "together"
    }
    fn address(&self) -> &'static str {
        "https://api.together.xyz"
    }
    fn variable(&self) -> &'static str {
        "TOGETHER_API_KEY"
    }

    fn models(&self) -> Vec<Model> {
        let films = [Capability::TextToVideo, Capability::ImageToVideo];
        vec![
            model("black-forest-labs/FLUX.1-schnell", &[Capability::TextToImage]),
            model(
                "black-forest-labs/FLUX.1-kontext-pro",
                &[Capability::ImageToImage],
            ),
            model("minimax/hailuo-02", &films),
        ]
    }

    fn order(&self, call: &Call) -> Result<Order, Failure> {
        let params = Params(&call.params);
        let body = Fields::of(call)
            .set("model", call.model.clone())
            .set("prompt", told_text(call))
            .pass(&[
                "width",
                "height",
                "steps",
                "seed",
                "negative_prompt",
                "guidance_scale",
            ]);
        let first = pictures(call).into_iter().next().map(address);
        match call.capability {
            Capability::TextToImage | Capability::ImageToImage => {
                let body = body
                    .set("n", params.outputs())
                    .set("response_format", "b64_json")
                    .maybe("image_url", first);
                Ok(Order::post("v1/images/generations", body.json()))
            }
            Capability::TextToVideo | Capability::ImageToVideo => {
                // The provider wants seconds as text.
                let seconds = ["duration", "seconds"]
                    .iter()
                    .find_map(|key| params.decimal(key))
                    .map(|seconds| seconds.normalize().to_string());
                let body = body.maybe("seconds", seconds).pass(&["fps"]).maybe(
                    "frame_images",
                    first.map(|url| json!([{"input_image": url, "frame": "first"}])),
                );
                Ok(Order::post("v2/videos", body.json()))
            }
            _ => Err(Failure::new(Class::InvalidInput, "the provider cannot do this").unsent()),
        }
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
        Some(match reply.status.as_u16() {
            // Older servers.
            400 if code == "rate_limit" => Refusal::new(Failure::new(Class::RateLimit, text)),
            400..=499 if text.to_lowercase().contains("nsfw") && reply.status != 429 => {
                Refusal::last(Failure::new(Class::ContentPolicy, text).because("input"))
            }
            // Its word for being overloaded: nothing was taken.
            503 if !polling => Refusal::passing(by_status(reply.status, &text)),
            _ => Refusal::new(by_status(reply.status, &text)),
        })
    }

    fn said(&self, _context: Context<'_>, reply: &Reply) -> Said {
        let json = reply.json();
        let id = json.get("id").and_then(Json::as_str);
        if let Some(list) = json.get("data").and_then(Json::as_array) {
            let mut list: Vec<&Json> = list.iter().collect();
            list.sort_by_key(|one| one.get("index").and_then(Json::as_i64));
            let found = list.into_iter().filter_map(picture).collect();
            return Said::new(State::done(found, Usage::default())).of(id);
        }
        if id.is_none() {
            return Said::new(State::Unreadable);
        }
        let state = match json.get("status").and_then(Json::as_str) {
            None | Some("queued") => State::QUEUED,
            Some("completed") => {
                let url = json.pointer("/outputs/video_url").and_then(Json::as_str);
                let usage = Usage {
                    seconds: json.get("seconds").and_then(number),
                    ..Usage::default()
                };
                State::done(
                    url.map(|url| Found::url("video", url)).into_iter().collect(),
                    usage,
                )
            }
            Some("failed") => {
                let text = json.get("error").map(words).unwrap_or_default();
                let code = json
                    .pointer("/error/code")
                    .and_then(Json::as_str)
                    .unwrap_or("failed");
                let class = if text.to_lowercase().contains("nsfw") || super::http::refuses_content(&text) {
                    Class::ContentPolicy
                } else {
                    Class::ProviderPermanent
                };
                State::failed(class, format!("{code}: {text}"))
            }
            Some("cancelled") => State::Cancelled,
            Some(_) => State::RUNNING,
        };
        Said::new(state)
            .of(id)
            .charging(stated_usd(json.pointer("/outputs/cost")))
    }

    fn look(&self, ticket: &Ticket) -> Order {
        Order::get(format!("v2/videos/{}", ticket.id))
    }
}

fn picture(one: &Json) -> Option<Found> {
    if let Some(data) = one.get("b64_json").and_then(Json::as_str) {
        return Some(Found::at("image", Place::Base64(data.to_owned())));
    }
    Some(Found::url("image", one.get("url")?.as_str()?))
}

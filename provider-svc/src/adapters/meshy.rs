//! Meshy (providers specification 6): 3D models from a text or a picture, as jobs that state their credits.
//!
//! A preview and its refinement are two tasks and two charges: a call with `preview_task_id` refines, every other makes a
//! preview.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value as Json, json};

use super::http::{Refusal, Reply, address, by_status};
use super::jobs::{
    Body, Context, Dialect, Fields, Found, Order, Said, State, Ticket, credits, lacks, model, number,
    pictures, told_text, words,
};
use crate::provider::{Call, CancelAnswer, Capability, Class, Failure, Model, Params, Usage};
use crate::seam::receipt::Stated;

/// Shortest wait until one of the tasks that run may have ended.
const TASK_WAIT: Duration = Duration::from_secs(30);
/// Shortest wait after too many requests a second.
const RATE_WAIT: Duration = Duration::from_secs(1);

/// Its words.
pub struct Meshy;

impl Dialect for Meshy {
    fn id(&self) -> &'static str {
        "meshy"
    }
    fn address(&self) -> &'static str {
        "https://api.meshy.ai/openapi"
    }
    fn variable(&self) -> &'static str {
        "MESHY_API_KEY"
    }

    fn models(&self) -> Vec<Model> {
        let both = [Capability::TextTo3d, Capability::ImageTo3d];
        vec![model("meshy-6", &both), model("meshy-5", &both)]
    }

    fn order(&self, call: &Call) -> Result<Order, Failure> {
        let params = Params(&call.params);
        let shape = [
            "topology",
            "target_polycount",
            "should_remesh",
            "symmetry_mode",
            "moderation",
        ];
        match call.capability {
            Capability::TextTo3d => {
                let body = match params.text("preview_task_id") {
                    Some(preview) => Fields::of(call)
                        .set("mode", "refine")
                        .set("preview_task_id", preview)
                        .pass(&["enable_pbr", "texture_prompt", "texture_image_url"]),
                    None => Fields::of(call)
                        .set("mode", "preview")
                        .set("prompt", told_text(call))
                        .set("ai_model", call.model.clone())
                        .pass(&shape),
                };
                Ok(Order::post("v2/text-to-3d", body.json()))
            }
            Capability::ImageTo3d => {
                let image = pictures(call).into_iter().next().map(address);
                let body = Fields::of(call)
                    .set("image_url", image.ok_or_else(|| lacks("a picture"))?)
                    .set("ai_model", call.model.clone())
                    .pass(&shape)
                    .pass(&["enable_pbr", "should_texture", "texture_prompt"]);
                Ok(Order::post("v1/image-to-3d", body.json()))
            }
            _ => Err(Failure::new(Class::InvalidInput, "the provider cannot do this").unsent()),
        }
    }

    fn refusal(&self, reply: &Reply, _polling: bool) -> Option<Refusal> {
        if reply.status.is_success() {
            return None;
        }
        let text = words(&reply.json());
        let concurrent = text.contains("NoMoreConcurrentTasks");
        let failure = by_status(reply.status, &text);
        Some(match (failure.class, concurrent) {
            (Class::RateLimit, true) => Refusal {
                failure: failure.because("concurrency"),
                again: Some(TASK_WAIT),
            },
            (Class::RateLimit, false) => Refusal {
                failure,
                again: Some(RATE_WAIT),
            },
            _ => Refusal::new(failure),
        })
    }

    fn said(&self, context: Context<'_>, reply: &Reply) -> Said {
        let json = reply.json();
        if let Some(task) = json.get("result").and_then(Json::as_str) {
            let kind = match context.ticket.capability.as_str() {
                "image_to_3d" => "v1/image-to-3d",
                _ => "v2/text-to-3d",
            };
            return Said::new(State::QUEUED)
                .of(Some(task))
                .with(json!({"path": kind}));
        }
        let id = json.get("id").and_then(Json::as_str);
        let charge = json
            .get("consumed_credits")
            .and_then(number)
            .map(|count| credits(context.catalog, "meshy", count));
        let ended = |state| Said::new(state).of(id).charging(charge.clone());
        match json.get("status").and_then(Json::as_str) {
            Some("SUCCEEDED") => {
                let glb = json.pointer("/model_urls/glb").and_then(Json::as_str);
                let found = glb
                    .filter(|url| !url.is_empty())
                    .map(|url| Found::url("model_3d", url).fact("task_id", id.map(ToOwned::to_owned)));
                ended(State::done(found.into_iter().collect(), Usage::default()))
            }
            Some("FAILED") => {
                let text = json.get("task_error").map(words).unwrap_or_default();
                let class = if text.contains("server is busy") {
                    Class::ProviderTransient
                } else if super::http::refuses_content(&text) {
                    Class::ContentPolicy
                } else {
                    Class::ProviderPermanent
                };
                ended(State::failed(
                    class,
                    if text.is_empty() {
                        "the task failed".to_owned()
                    } else {
                        text
                    },
                ))
            }
            Some("CANCELED") => ended(State::Cancelled),
            Some("EXPIRED") => ended(State::Failed(
                Failure::new(Class::ProviderPermanent, "the task expired").because("result_expired"),
            )),
            Some("PENDING") => Said::new(State::QUEUED).of(id),
            Some(_) => Said::new(State::at(json.get("progress"))).of(id),
            None => Said::new(State::Unreadable),
        }
    }

    fn look(&self, ticket: &Ticket) -> Order {
        Order::get(format!("{}/{}", ticket.more("path"), ticket.id))
    }

    fn stop(&self, ticket: &Ticket) -> Option<Order> {
        let path = format!("{}/{}", ticket.more("path"), ticket.id);
        Some(Order::new(Method::DELETE, path, Body::Empty))
    }

    fn stopped(&self, context: Context<'_>, reply: &Reply) -> (CancelAnswer, Option<Stated>) {
        match reply.status.as_u16() {
            // Only a task that waits can be deleted, and its credits are given back.
            200..=299 => {
                let none = credits(context.catalog, "meshy", rust_decimal::Decimal::ZERO);
                (CancelAnswer::Requested, Some(none))
            }
            404 => (CancelAnswer::NotFound, None),
            400..=499 => (CancelAnswer::Unsupported, None),
            _ => (CancelAnswer::Error, None),
        }
    }
}

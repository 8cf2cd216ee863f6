//! AtlasCloud (providers specification 11): pictures, films, sound and 3D models, as jobs.
//!
//! Its words for an end vary, so they are read without regard to case and out of two lists. Its paid request is never
//! sent again, not even after a refusal for its speed: the vendor's rule, since it may have made a task.

use serde_json::Value as Json;

use super::http::{Refusal, Reply, by_status, refuses_content};
use super::jobs::{Context, Dialect, Fields, Found, Order, Said, State, Ticket, model, plain, words};
use crate::provider::{Call, Capability, Class, Failure, Medium, Model, Usage};

/// Words for a job that succeeded.
const GOOD: &[&str] = &["completed", "complete", "succeeded", "success", "done"];
/// Words for a job that was stopped.
const STOPPED: &[&str] = &["canceled", "cancelled"];

/// Its words.
pub struct AtlasCloud;

impl Dialect for AtlasCloud {
    fn id(&self) -> &'static str {
        "atlascloud"
    }
    fn address(&self) -> &'static str {
        "https://api.atlascloud.ai"
    }
    fn variable(&self) -> &'static str {
        "ATLASCLOUD_API_KEY"
    }

    fn models(&self) -> Vec<Model> {
        vec![
            model("bytedance/seedream-v4", &[Capability::TextToImage]),
            model("bytedance/seedance-2.0/text-to-video", &[Capability::TextToVideo]),
            model(
                "bytedance/seedance-2.0/image-to-video",
                &[Capability::ImageToVideo],
            ),
        ]
    }

    fn order(&self, call: &Call) -> Result<Order, Failure> {
        let path = match call.capability.medium() {
            Medium::Image | Medium::Model3d => "api/v1/model/generateImage",
            Medium::Video => "api/v1/model/generateVideo",
            Medium::Audio => "api/v1/model/generateAudio",
            Medium::Text => {
                return Err(Failure::new(Class::InvalidInput, "the provider cannot do this").unsent());
            }
        };
        // Its worker reads the top level only.
        let mut body = Fields::of(call).set("model", call.model.clone()).json();
        if let Some(body) = body.as_object_mut() {
            for (key, value) in call
                .params
                .iter()
                .filter(|(key, _)| *key != "stream" && *key != "model")
            {
                body.insert(key.clone(), plain(value));
            }
        }
        Ok(Order::post(path, body))
    }

    fn refusal(&self, reply: &Reply, polling: bool) -> Option<Refusal> {
        let json = reply.json();
        let code = json
            .get("code")
            .and_then(Json::as_u64)
            .and_then(|code| u16::try_from(code).ok());
        let inner = code.and_then(|code| reqwest::StatusCode::from_u16(code).ok());
        let status = inner.filter(|inner| !inner.is_success()).unwrap_or(reply.status);
        // A job that failed may come with any status.
        let structured = polling && json.pointer("/data/status").is_some();
        if status.is_success() || structured {
            return None;
        }
        Some(Refusal::last(by_status(status, &words(&json))))
    }

    fn said(&self, context: Context<'_>, reply: &Reply) -> Said {
        let json = reply.json();
        let data = json.get("data").unwrap_or(&Json::Null);
        let Some(id) = data
            .get("id")
            .and_then(Json::as_str)
            .or(Some(context.ticket.id.as_str()))
            .filter(|id| !id.is_empty())
        else {
            return Said::new(State::Unreadable);
        };
        let word = data
            .get("status")
            .and_then(Json::as_str)
            .unwrap_or_default()
            .to_lowercase();
        let text = data.get("error").map(words).unwrap_or_default();
        let state = match word.as_str() {
            good if GOOD.contains(&good) => {
                let list = data.get("outputs").and_then(Json::as_array);
                let url = |one: &Json| {
                    one.as_str()
                        .or_else(|| one.get("url")?.as_str())
                        .map(ToOwned::to_owned)
                };
                let found = list
                    .into_iter()
                    .flatten()
                    .filter_map(url)
                    .map(|url| Found::url(context.ticket.kind(), url))
                    .collect();
                State::done(found, Usage::default())
            }
            stopped if STOPPED.contains(&stopped) => State::Cancelled,
            "timeout" => State::failed(Class::Timeout, "the provider's own time ran out"),
            "failed" | "error" => {
                let class = if refuses_content(&text) {
                    Class::ContentPolicy
                } else if text.to_lowercase().contains("internal") {
                    Class::ProviderTransient
                } else {
                    Class::ProviderPermanent
                };
                State::failed(
                    class,
                    if text.is_empty() {
                        "the job failed".to_owned()
                    } else {
                        text
                    },
                )
            }
            "created" | "queued" | "pending" | "starting" => State::QUEUED,
            _ => State::RUNNING,
        };
        Said::new(state).of(Some(id))
    }

    fn look(&self, ticket: &Ticket) -> Order {
        Order::get(format!("api/v1/model/prediction/{}", ticket.id))
    }
}

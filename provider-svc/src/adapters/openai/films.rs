//! Films, which are jobs: made, asked for, and fetched as bytes. They cannot be cancelled.

use std::time::Duration;

use reqwest::header::HeaderMap;
use serde_json::Value as Json;

use super::errors::{classify, said, said_json};
use super::{ID, OWN_URL, id_of};
use crate::adapters::http::{Refusal, Reply, refuses_content};
use crate::adapters::jobs::{
    Context, Dialect, Field, Fields, Found, Order, Said, State, Ticket, number, pictures, told_text,
};
use crate::provider::{Call, Class, Failure, Model, Params, Usage};

/// Its words for films.
pub(super) struct Films;

impl Dialect for Films {
    fn id(&self) -> &'static str {
        ID
    }
    fn address(&self) -> &'static str {
        OWN_URL
    }
    fn variable(&self) -> &'static str {
        "OPENAI_API_KEY"
    }
    fn inlines(&self) -> bool {
        true
    }
    fn models(&self) -> Vec<Model> {
        Vec::new()
    }

    fn order(&self, call: &Call) -> Result<Order, Failure> {
        let params = Params(&call.params);
        // The provider takes and gives seconds as text.
        let seconds = ["duration", "seconds", "duration_seconds"]
            .iter()
            .find_map(|key| params.decimal(key))
            .map(|seconds| seconds.normalize().to_string());
        let size = params
            .text("size")
            .map(ToOwned::to_owned)
            .or_else(|| Some(format!("{}x{}", params.int("width")?, params.int("height")?)));
        let first = pictures(call).into_iter().find_map(|media| media.data.clone());
        if let Some(first) = first {
            let texts = [
                ("model", Some(call.model.clone())),
                ("prompt", Some(told_text(call).to_owned())),
                ("seconds", seconds),
                ("size", size),
            ];
            let mut fields: Vec<Field> = texts
                .into_iter()
                .filter_map(|(name, text)| Some(Field::Text(name, text?)))
                .collect();
            fields.push(Field::File("input_reference", first));
            return Ok(Order::form("videos", fields));
        }
        let body = Fields::of(call)
            .set("model", call.model.clone())
            .set("prompt", told_text(call))
            .maybe("seconds", seconds)
            .maybe("size", size)
            .json();
        Ok(Order::post("videos", body))
    }

    fn request_id(&self, _headers: &HeaderMap) -> Option<String> {
        // The job's own id is what can be asked for, and it is in the body.
        None
    }

    fn refusal(&self, reply: &Reply, polling: bool) -> Option<Refusal> {
        if reply.status.is_success() {
            return None;
        }
        let failure = classify(reply.status, &said(&reply.body));
        if let (false, Some(id)) = (polling, id_of(&reply.headers)) {
            tracing::debug!(request_id = id, "a film was refused");
        }
        Some(Refusal::new(failure))
    }

    fn said(&self, context: Context<'_>, reply: &Reply) -> Said {
        let json = reply.json();
        let id = json.get("id").and_then(Json::as_str);
        let Some(known) = id else {
            return Said::new(State::Unreadable);
        };
        let hint = reply
            .header("openai-poll-after-ms")
            .and_then(|text| text.parse().ok())
            .map(Duration::from_millis);
        let state = match json.get("status").and_then(Json::as_str) {
            Some("queued") => State::Queued { poll_after: hint },
            Some("completed") => {
                let seconds = json.get("seconds").and_then(number);
                let usage = Usage {
                    seconds,
                    ..Usage::default()
                };
                let film = Found::url("video", format!("videos/{known}/content?variant=video"));
                State::Done(vec![film.named("video/mp4")], usage)
            }
            Some("failed") => State::Failed(failed(&json)),
            Some(_) | None => match State::at(json.get("progress")) {
                State::Running { progress, .. } => State::Running {
                    progress,
                    poll_after: hint,
                },
                other => other,
            },
        };
        let _ = context;
        Said::new(state).of(id)
    }

    fn look(&self, ticket: &Ticket) -> Order {
        Order::get(format!("videos/{}", ticket.id))
    }
}

fn failed(json: &Json) -> Failure {
    let said = said_json(json);
    let policy = said.code.contains("policy") || refuses_content(&said.message);
    let class = match said.code.as_str() {
        _ if policy => Class::ContentPolicy,
        "server_error" => Class::ProviderTransient,
        _ => Class::ProviderPermanent,
    };
    let failure = Failure::new(
        class,
        if said.message.is_empty() {
            said.code
        } else {
            said.message
        },
    );
    if policy {
        failure.because("output")
    } else {
        failure
    }
}

//! ComfyUI (providers specification 18): a server of one's own that runs graphs, which a request brings along as
//! `workflow`, in the form that ComfyUI exports for its API.
//!
//! A text `{{prompt}}` in the graph stands for the prompt of the request, `{{seed}}` for its seed. A job that waits is
//! taken out of the queue, one that runs is interrupted by its id; older servers do not look at the id and stop whatever
//! runs, so nothing is interrupted that does not run.

use atelier_proto::money::Money;
use rust_decimal::Decimal;
use serde_json::{Value as Json, json};

use super::http::{Refusal, Reply, by_status};
use super::jobs::{
    Context, Dialect, Found, Order, Said, State, Ticket, lacks, model, plain, told_text, words,
};
use crate::provider::{Call, CancelAnswer, Capability, Class, Failure, Model, Params, Usage};
use crate::seam::receipt::Stated;

/// Its words.
pub struct ComfyUi;

impl Dialect for ComfyUi {
    fn id(&self) -> &'static str {
        "comfyui"
    }
    fn address(&self) -> &'static str {
        "http://127.0.0.1:8188"
    }
    fn variable(&self) -> &'static str {
        "COMFYUI_BASE_URL"
    }

    fn volunteers(&self) -> bool {
        // Without a workflow it can do nothing.
        false
    }

    fn models(&self) -> Vec<Model> {
        vec![model(
            "workflow",
            &[
                Capability::TextToImage,
                Capability::ImageToImage,
                Capability::UpscaleImage,
                Capability::TextToVideo,
                Capability::ImageToVideo,
            ],
        )]
    }

    fn order(&self, call: &Call) -> Result<Order, Failure> {
        let mut graph = match call.params.get("workflow").map(plain) {
            Some(graph @ Json::Object(_)) => graph,
            Some(Json::String(text)) => {
                serde_json::from_str(&text).map_err(|_| lacks("a workflow that is JSON"))?
            }
            Some(_) | None => return Err(lacks("a workflow for ComfyUI")),
        };
        let seed = Params(&call.params).int("seed").unwrap_or(0);
        fill(&mut graph, told_text(call), seed);
        let body = json!({"prompt": graph, "client_id": call.generation_id.to_string()});
        Ok(Order::post("prompt", body))
    }

    fn refusal(&self, reply: &Reply, _polling: bool) -> Option<Refusal> {
        if reply.status.is_success() {
            return None;
        }
        let json = reply.json();
        let mut text = words(&json);
        let nodes = json.get("node_errors").and_then(Json::as_object);
        for (node, wrong) in nodes.into_iter().flatten() {
            let kind = wrong.get("class_type").and_then(Json::as_str).unwrap_or_default();
            let details = wrong.get("errors").and_then(Json::as_array);
            for error in details.into_iter().flatten() {
                let detail = error.get("details").and_then(Json::as_str).unwrap_or_default();
                text.push_str(&format!("; node {node} ({kind}): {} {detail}", words(error)));
            }
        }
        Some(Refusal::new(by_status(reply.status, &text)))
    }

    fn said(&self, context: Context<'_>, reply: &Reply) -> Said {
        let json = reply.json();
        // A server of one's own states no charge because it has none.
        let free = Some(Stated::of(Money::usd(Decimal::ZERO)));
        if let Some(id) = json.get("prompt_id").and_then(Json::as_str) {
            return Said::new(State::QUEUED).of(Some(id)).charging(free);
        }
        let Some(job) = json.get(&context.ticket.id) else {
            // Nothing of it yet.
            return Said::new(State::RUNNING);
        };
        if let Some(error) = message(job, "execution_error") {
            return Said::new(State::Failed(failed(&error)));
        }
        if message(job, "execution_interrupted").is_some() {
            return Said::new(State::Cancelled);
        }
        Said::new(State::done(outputs(context.ticket.kind(), job), Usage::default()))
    }

    fn look(&self, ticket: &Ticket) -> Order {
        Order::get(format!("history/{}", ticket.id))
    }

    fn look_to_stop(&self, _ticket: &Ticket) -> Option<Order> {
        Some(Order::get("queue"))
    }

    fn stop_seen(&self, ticket: &Ticket, reply: &Reply) -> Option<Order> {
        let json = reply.json();
        let holds = |list: &str| {
            let jobs = json.get(list).and_then(Json::as_array);
            jobs.into_iter()
                .flatten()
                .any(|job| job.get(1).and_then(Json::as_str) == Some(ticket.id.as_str()))
        };
        if holds("queue_pending") {
            return Some(Order::post("queue", json!({"delete": [ticket.id]})));
        }
        holds("queue_running").then(|| Order::post("interrupt", json!({"prompt_id": ticket.id})))
    }

    fn stopped(&self, _context: Context<'_>, reply: &Reply) -> (CancelAnswer, Option<Stated>) {
        let answer = if reply.status.is_success() {
            CancelAnswer::Requested
        } else {
            CancelAnswer::Error
        };
        (answer, None)
    }
}

/// Puts the words of the request where the graph wants them.
fn fill(graph: &mut Json, prompt: &str, seed: i64) {
    match graph {
        Json::String(text) if text == "{{seed}}" => *graph = seed.into(),
        Json::String(text) if text.contains("{{prompt}}") => *text = text.replace("{{prompt}}", prompt),
        Json::Array(list) => list.iter_mut().for_each(|inner| fill(inner, prompt, seed)),
        Json::Object(object) => object.values_mut().for_each(|inner| fill(inner, prompt, seed)),
        Json::String(_) | Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
}

/// A message of a job's status.
fn message(job: &Json, kind: &str) -> Option<Json> {
    let messages = job.pointer("/status/messages")?.as_array()?;
    let found = messages
        .iter()
        .find(|message| message.get(0).and_then(Json::as_str) == Some(kind))?;
    Some(found.get(1).cloned().unwrap_or_default())
}

fn failed(error: &Json) -> Failure {
    let text = |key: &str| error.get(key).and_then(Json::as_str).unwrap_or_default();
    let said = format!(
        "node {} ({}): {}",
        text("node_id"),
        text("node_type"),
        text("exception_message")
    );
    let class = if text("exception_type").contains("OutOfMemory") {
        Class::ProviderTransient
    } else {
        Class::ProviderPermanent
    };
    Failure::new(class, said)
}

/// The files of a job, without those that are only previews.
fn outputs(kind: &'static str, job: &Json) -> Vec<Found> {
    let nodes = job.get("outputs").and_then(Json::as_object);
    nodes
        .into_iter()
        .flat_map(|nodes| nodes.values())
        .filter_map(Json::as_object)
        .flat_map(|outputs| outputs.values())
        .filter_map(Json::as_array)
        .flatten()
        .filter(|file| file.get("type").and_then(Json::as_str) == Some("output"))
        .filter_map(|file| {
            let text = |key: &str| file.get(key).and_then(Json::as_str);
            let query = url::form_urlencoded::Serializer::new(String::new())
                .append_pair("filename", text("filename")?)
                .append_pair("subfolder", text("subfolder").unwrap_or_default())
                .append_pair("type", "output")
                .finish();
            Some(Found::url(kind, format!("view?{query}")))
        })
        .collect()
}

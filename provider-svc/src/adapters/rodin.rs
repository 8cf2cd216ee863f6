//! Rodin, by Hyper3D (providers specification 7): 3D models, as a task with several jobs.
//!
//! A task is done when each of its jobs is. Its state is asked for with one key and its files with another, so a ticket
//! holds both. An `error` can come with a success, and `OK` is none.

use serde_json::{Value as Json, json};

use super::http::{Refusal, Reply, by_status};
use super::jobs::{
    Context, Dialect, Field, Found, Order, Said, State, Ticket, model, pictures, told_text, words,
};
use crate::provider::{Call, Capability, Class, Failure, Model, Params};

/// Most pictures of a task.
const MAX_PICTURES: usize = 5;

/// Its words.
pub struct Rodin;

impl Dialect for Rodin {
    fn id(&self) -> &'static str {
        "rodin"
    }
    fn address(&self) -> &'static str {
        "https://api.hyper3d.com/api/v2"
    }
    fn variable(&self) -> &'static str {
        "RODIN_API_KEY"
    }
    fn inlines(&self) -> bool {
        true
    }

    fn models(&self) -> Vec<Model> {
        let both = [Capability::TextTo3d, Capability::ImageTo3d];
        ["Regular", "Gen-2", "Sketch"]
            .map(|tier| model(tier, &both))
            .into()
    }

    fn order(&self, call: &Call) -> Result<Order, Failure> {
        let params = Params(&call.params);
        let mut fields: Vec<Field> = pictures(call)
            .into_iter()
            .filter_map(|media| Some(Field::File("images", media.data.clone()?)))
            .take(MAX_PICTURES)
            .collect();
        let prompt = told_text(call);
        if !prompt.is_empty() {
            fields.push(Field::Text("prompt", prompt.to_owned()));
        }
        fields.push(Field::Text("tier", call.model.clone()));
        fields.push(Field::Text("geometry_file_format", "glb".to_owned()));
        for key in ["material", "quality", "addons"] {
            if let Some(text) = params.text(key) {
                fields.push(Field::Text(key, text.to_owned()));
            }
        }
        if let Some(seed) = params.int("seed") {
            fields.push(Field::Text("seed", seed.to_string()));
        }
        Ok(Order::form("rodin", fields))
    }

    fn refusal(&self, reply: &Reply, _polling: bool) -> Option<Refusal> {
        let json = reply.json();
        if !reply.status.is_success() {
            return Some(Refusal::new(by_status(reply.status, &words(&json))));
        }
        let error = json.get("error").and_then(Json::as_str).unwrap_or_default();
        let text = || format!("{error}: {}", json.get("message").map(words).unwrap_or_default());
        match error {
            "" | "OK" => None,
            "INSUFFICIENT_FUND" => Some(Refusal::last(
                Failure::new(Class::Quota, text()).because("INSUFFICIENT_CREDIT"),
            )),
            "UNAUTHORIZED" => Some(Refusal::last(Failure::new(Class::Auth, text()))),
            // A task that was taken all the same is followed.
            _ if json.get("uuid").is_some_and(Json::is_string) => None,
            _ => Some(Refusal::last(Failure::new(Class::ProviderPermanent, text()))),
        }
    }

    fn said(&self, _context: Context<'_>, reply: &Reply) -> Said {
        let json = reply.json();
        let key = json.pointer("/jobs/subscription_key").and_then(Json::as_str);
        if let (Some(task), Some(key)) = (json.get("uuid").and_then(Json::as_str), key) {
            return Said::new(State::QUEUED)
                .of(Some(task))
                .with(json!({"subscription_key": key}));
        }
        let jobs = json.get("jobs").and_then(Json::as_array);
        let states: Vec<&str> = jobs
            .into_iter()
            .flatten()
            .filter_map(|job| job.get("status")?.as_str())
            .collect();
        let done = states.iter().filter(|state| **state == "Done").count();
        Said::new(if states.contains(&"Failed") {
            State::failed(Class::ProviderPermanent, "a job of the task failed")
        } else if states.contains(&"Canceled") {
            State::Cancelled
        } else if states.is_empty() {
            State::Unreadable
        } else if done == states.len() {
            State::Ready
        } else if states.iter().all(|state| *state == "Waiting") {
            State::QUEUED
        } else {
            State::Running {
                progress: i64::try_from(done).ok().zip(i64::try_from(states.len()).ok()),
                poll_after: None,
            }
        })
    }

    fn look(&self, ticket: &Ticket) -> Order {
        let key = ticket.more("subscription_key");
        Order::post("status", json!({"subscription_key": key}))
    }

    fn claim(&self, ticket: &Ticket) -> Order {
        Order::post("download", json!({"task_uuid": ticket.id}))
    }

    fn claimed(&self, _context: Context<'_>, reply: &Reply) -> Result<Vec<Found>, Failure> {
        let json = reply.json();
        let files = json.get("list").and_then(Json::as_array);
        let of = |file: &Json, key: &str| file.get(key).and_then(Json::as_str).map(ToOwned::to_owned);
        let named: Vec<(String, String)> = files
            .into_iter()
            .flatten()
            .filter_map(|file| Some((of(file, "name")?, of(file, "url")?)))
            .collect();
        if named.is_empty() {
            // Sometimes the files come a moment after the word.
            return Err(
                Failure::new(Class::ProviderTransient, "the task has no files yet").because("no_output"),
            );
        }
        let ends = |ending: &str| named.iter().find(|(name, _)| name.ends_with(ending));
        let preview = named
            .iter()
            .find(|(name, _)| name.starts_with("preview"))
            .map(|(_, url)| url.clone());
        Ok(ends(".glb")
            .map(|(_, url)| Found::url("model_3d", url.clone()).fact("thumbnail_url", preview))
            .into_iter()
            .collect())
    }
}

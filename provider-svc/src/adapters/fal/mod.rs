//! FAL: a queue that is submitted to, asked and fetched from by the addresses that it gives, and bills that are read from
//! its platform (providers specification 3).
//!
//! [`map`] is our parameters and outputs in its JSON, [`errors`] names what it refuses, [`bill`] reads its billing events,
//! this file is the calls. A job can be taken up by another process: the resume token holds its three addresses.

mod bill;
mod errors;
mod map;

use std::time::Duration;

use async_trait::async_trait;
use atelier_common::backoff;
use atelier_common::component::BuildError;
use reqwest::{Method, RequestBuilder};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::Url;

use crate::adapters::tasks::{self, models};
use crate::adapters::web::{Answer, NoAnswer, Waits, Web, name_of_key, same_host};
use crate::provider::{
    Bill, Call, CancelAnswer, Class, Emit, Failure, Finished, Job, Model, Polled, Provider, SeamPermit,
    Submitted,
};
use crate::seam::receipt;
use crate::seam::redact::scrub;
use crate::settings;

/// Its id.
pub const ID: &str = "fal_ai";
/// Times that a request is sent again after a hiccup of the gateway before it.
const MAX_HICCUPS: u32 = 2;

/// The adapter.
pub struct Fal {
    settings: settings::Fal,
    queue: Url,
    platform: Url,
    key: Option<SecretString>,
    models: Vec<Model>,
    web: Web,
}

/// What is kept of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Token {
    status_url: String,
    response_url: String,
    cancel_url: String,
}

impl Fal {
    /// An adapter by its settings.
    ///
    /// # Errors
    /// When an address or a capability is not one, or the HTTP client cannot be made.
    pub fn new(settings: settings::Fal) -> Result<Self, BuildError> {
        let key = settings
            .api_key
            .clone()
            .filter(|key| !key.expose_secret().is_empty());
        let manners = &settings.manners;
        let waits = Waits {
            connect: manners.connect_timeout,
            answer: manners.answer_timeout,
        };
        let web = Web::new(ID, waits, &manners.allowed_hosts, manners.max_media_bytes)?;
        Ok(Self {
            queue: tasks::address("provider.fal.queue_url", &settings.queue_url)?,
            platform: tasks::address("provider.fal.platform_url", &settings.platform_url)?,
            models: models("provider.fal.models", &settings.models)?,
            key,
            web,
            settings,
        })
    }

    fn secret(&self) -> &str {
        self.key.as_ref().map_or("", |key| key.expose_secret())
    }

    fn request(&self, method: Method, url: Url) -> RequestBuilder {
        let request = self.web.client.request(method, url);
        match self.secret() {
            "" => request,
            secret => request.header("authorization", format!("Key {secret}")),
        }
    }

    fn scrubbed(&self, mut failure: Failure) -> Failure {
        failure.message = scrub(&failure.message, &[self.secret()]);
        failure
    }

    /// An address that the queue gave. The key goes to the queue's own host only.
    fn own(&self, address: &str) -> Result<Url, Failure> {
        Url::parse(address)
            .ok()
            .filter(|url| same_host(url, &self.queue))
            .ok_or_else(|| Failure::new(Class::ProviderPermanent, "the job has no address at the provider"))
    }

    async fn question(&self, method: Method, address: &str) -> Result<Answer, Failure> {
        let request = self.request(method, self.own(address)?);
        self.web.ask(request).await.map_err(NoAnswer::of_question)
    }

    /// The addresses of a job: those that the queue gave, else those that it documents, which leave out all of a model's
    /// name behind its first two parts.
    fn token(&self, model: &str, request_id: &str, answer: &Value) -> Option<Token> {
        let parts = if model.starts_with("workflows/") || model.starts_with("comfy/") {
            3
        } else {
            2
        };
        let app: Vec<&str> = model.split('/').take(parts).collect();
        let job = self
            .queue
            .join(&format!("{}/requests/{request_id}", app.join("/")))
            .ok()?;
        let given = |name: &str, end: &str| {
            let given = answer.get(name).and_then(Value::as_str);
            given
                .filter(|given| self.own(given).is_ok())
                .map_or_else(|| format!("{job}{end}"), ToOwned::to_owned)
        };
        Some(Token {
            status_url: given("status_url", "/status"),
            response_url: given("response_url", ""),
            cancel_url: given("cancel_url", "/cancel"),
        })
    }

    /// Takes an answer to a submit that says that there is a job.
    async fn accepted(&self, call: &Call, answer: &Answer) -> Result<Submitted, Failure> {
        let json = answer.json();
        let stated = json
            .as_ref()
            .and_then(|json| json.get("request_id")?.as_str())
            .or(answer.header("x-fal-request-id"));
        // The id first: an answer that cannot be read was paid for like any other.
        receipt::record(ID, stated, None).await;
        let token = json
            .as_ref()
            .zip(stated)
            .and_then(|(json, id)| self.token(&call.model, id, json));
        match (stated, token) {
            (Some(request_id), Some(token)) => Ok(Submitted::Accepted {
                request_id: request_id.to_owned(),
                resume_token: serde_json::to_string(&token).unwrap_or_default(),
            }),
            _ => Err(self.scrubbed(Failure::unknown_submit(format!(
                "the answer cannot be read: {}",
                answer.glimpse()
            )))),
        }
    }

    async fn result(&self, response_url: &str) -> Result<Value, Failure> {
        let answer = self.question(Method::GET, response_url).await?;
        if !answer.ok() {
            return Err(self.scrubbed(errors::of_result(&answer)));
        }
        answer
            .json()
            .ok_or_else(|| Failure::new(Class::ProviderTransient, "the result cannot be read"))
    }

    fn pause(&self) -> Option<Duration> {
        self.settings.manners.poll_pause
    }
}

fn token_of(text: &str) -> Result<Token, Failure> {
    serde_json::from_str(text)
        .map_err(|_| Failure::new(Class::ProviderPermanent, "the resume token cannot be read"))
}

#[async_trait]
impl Provider for Fal {
    fn id(&self) -> &'static str {
        ID
    }

    fn missing(&self) -> Option<String> {
        self.key
            .is_none()
            .then(|| "set provider.fal.api_key (FAL_API_KEY)".to_owned())
    }

    fn models(&self) -> Vec<Model> {
        self.models.clone()
    }

    fn takes_any_model(&self) -> bool {
        true
    }

    fn wants_bytes(&self) -> bool {
        true
    }

    fn resumable(&self) -> bool {
        true
    }

    fn credential(&self) -> String {
        name_of_key(self.secret())
    }

    async fn submit(
        &self,
        _permit: &SeamPermit,
        call: &Call,
        _emit: &dyn Emit,
    ) -> Result<Submitted, Failure> {
        let url = self
            .queue
            .join(&call.model)
            .ok()
            .filter(|url| same_host(url, &self.queue))
            .ok_or_else(|| Failure::new(Class::InvalidInput, "the model has no usable name").unsent())?;
        let body = map::input(&call.params)?;
        let mut tries = tasks::Tries::new(&self.settings.manners, &call.cancel);
        let mut hiccups = 0;
        loop {
            let request = self.request(Method::POST, url.clone()).json(&body);
            let answer = match self.web.ask(request).await {
                Ok(answer) => answer,
                Err(NoAnswer::Unsent) if tries.connect().await? => continue,
                Err(none) => return Err(none.of_submit()),
            };
            if answer.ok() {
                return self.accepted(call, &answer).await;
            }
            let request_id = answer.header("x-fal-request-id");
            // What the gateway says on its own account, before the queue has seen the request.
            if request_id.is_none() && matches!(answer.status, 502..=504) && hiccups < MAX_HICCUPS {
                hiccups += 1;
                tasks::wait(
                    &call.cancel,
                    backoff::jittered(self.settings.manners.first_pause, 0.2),
                )
                .await?;
                continue;
            }
            let failure = self.scrubbed(errors::of_submit(&answer));
            if failure.class == Class::RateLimit && tries.refused(failure.retry_after).await? {
                continue;
            }
            receipt::record(ID, request_id, None).await;
            return Err(failure);
        }
    }

    async fn poll(
        &self,
        _permit: &SeamPermit,
        resume_token: &str,
        _emit: &dyn Emit,
    ) -> Result<Polled, Failure> {
        let token = token_of(resume_token)?;
        let answer = self.question(Method::GET, &token.status_url).await?;
        match answer.status {
            200..=299 => {}
            404 | 410 => return Ok(Polled::Lost),
            _ => return Err(self.scrubbed(errors::of_submit(&answer))),
        }
        let Some(json) = answer.json() else {
            return Err(Failure::new(Class::ProviderTransient, "the state cannot be read"));
        };
        let poll_after = self.pause();
        let word = json.get("status").and_then(Value::as_str).unwrap_or_default();
        Ok(match word {
            "IN_QUEUE" => Polled::Queued { poll_after },
            "IN_PROGRESS" => Polled::Running { poll_after },
            "COMPLETED" => match json.get("error").filter(|error| !error.is_null()) {
                Some(_) => Polled::Failed(self.scrubbed(errors::of_job(&json))),
                None => Polled::Done(token.response_url),
            },
            word => Polled::Strange {
                word: word.to_owned(),
                poll_after,
            },
        })
    }

    async fn fetch(&self, _permit: &SeamPermit, result: &str) -> Result<Finished, Failure> {
        let json = self.result(result).await?;
        match map::outputs(&self.web, &json).await {
            // The address of an output ended before it was fetched: the result is asked for once more.
            Err(failure) if failure.reason == Some("result_expired") => {
                map::outputs(&self.web, &self.result(result).await?).await
            }
            outputs => outputs,
        }
        .map_err(|failure| self.scrubbed(failure))
    }

    async fn cancel(&self, _permit: &SeamPermit, resume_token: &str) -> CancelAnswer {
        let Ok(token) = token_of(resume_token) else {
            return CancelAnswer::NotFound;
        };
        match self.question(Method::PUT, &token.cancel_url).await {
            Ok(answer) if answer.ok() => CancelAnswer::Requested,
            Ok(answer) if answer.status == 404 => CancelAnswer::NotFound,
            Ok(answer) if answer.status == 400 => CancelAnswer::AlreadyDone,
            Ok(_) | Err(_) => CancelAnswer::Error,
        }
    }

    async fn reconcile(&self, _permit: &SeamPermit, job: &Job) -> Result<Bill, Failure> {
        self.bill(job).await.map_err(|failure| self.scrubbed(failure))
    }
}

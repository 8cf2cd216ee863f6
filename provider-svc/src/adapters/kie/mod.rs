//! kie.ai: tasks that are created and asked for, with the charge in the task itself (providers specification 4).
//!
//! Every answer is HTTP 200 with a code of its own inside ([`wire`]); families of models have their own paths and words
//! ([`family`]); this file is the calls. There is no cancel and no idempotency key. A task can be taken up by another
//! process: the resume token is its id and the path it is asked for by.

mod family;
mod wire;

use std::time::Duration;

use async_trait::async_trait;
use atelier_common::component::BuildError;
use atelier_proto::money::Money;
use atelier_proto::value::{BytesForm, Map, Value, to_json};
use reqwest::{Method, RequestBuilder};
use rust_decimal::Decimal;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::{Map as Json, Value as JsonValue};
use url::Url;

use self::family::{Family, State};
use self::wire::Envelope;
use crate::adapters::tasks::{self, medium, models};
use crate::adapters::web::{NoAnswer, Waits, Web, name_of_key};
use crate::provider::{
    Bill, Call, Class, Emit, Failure, Finished, Job, Model, Output, Polled, Provider, SeamPermit, Submitted,
    Usage,
};
use crate::seam::receipt::{self, Stated};
use crate::seam::redact::scrub;
use crate::settings;

/// Its id.
pub const ID: &str = "kie";

/// The adapter.
pub struct Kie {
    settings: settings::Kie,
    base: Url,
    key: Option<SecretString>,
    models: Vec<Model>,
    web: Web,
}

/// What is kept of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Token {
    task: String,
    family: Family,
}

impl Kie {
    /// An adapter by its settings.
    ///
    /// # Errors
    /// When an address or a capability is not one, or the HTTP client cannot be made.
    pub fn new(settings: settings::Kie) -> Result<Self, BuildError> {
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
            base: tasks::address("provider.kie.base_url", &settings.base_url)?,
            models: models("provider.kie.models", &settings.models)?,
            key,
            web,
            settings,
        })
    }

    fn secret(&self) -> &str {
        self.key.as_ref().map_or("", |key| key.expose_secret())
    }

    fn url(&self, path: &str) -> Result<Url, Failure> {
        self.base
            .join(path)
            .map_err(|_| Failure::new(Class::InvalidInput, "the provider has no usable address").unsent())
    }

    fn request(&self, method: Method, url: Url) -> RequestBuilder {
        let request = self.web.client.request(method, url);
        match self.secret() {
            "" => request,
            secret => request.bearer_auth(secret),
        }
    }

    fn scrubbed(&self, mut failure: Failure) -> Failure {
        failure.message = scrub(&failure.message, &[self.secret()]);
        failure
    }

    /// What the task says of itself. Failures say nothing of it.
    async fn record(&self, token: &Token) -> Result<Envelope, Failure> {
        let mut url = self.url(token.family.record_path())?;
        url.query_pairs_mut().append_pair("taskId", &token.task);
        let answer = self
            .web
            .ask(self.request(Method::GET, url))
            .await
            .map_err(NoAnswer::of_question)?;
        // Its gateway answers in HTML.
        Envelope::read(&answer).ok_or_else(|| {
            Failure::new(
                Class::ProviderTransient,
                format!("the task answered {}", answer.status),
            )
        })
    }

    /// Credits as the charge that they are.
    fn charge(&self, credits: Decimal) -> Option<Stated> {
        let price = self.settings.credit_usd;
        Some(Stated {
            billing_unit: Some("credits".to_owned()),
            quantity: Some(credits),
            unit_price: Some(price),
            ..Stated::of(Money::usd(credits.checked_mul(price)?))
        })
    }

    fn stated(&self, data: &JsonValue) -> Option<Stated> {
        self.charge(wire::credits(data)?)
    }

    fn body(&self, family: Family, call: &Call) -> Result<JsonValue, Failure> {
        let mut body = Json::new();
        let callback = self.settings.callback_url.trim();
        if !callback.is_empty() {
            // Beside the input, not inside: there it is ignored.
            body.insert("callBackUrl".to_owned(), callback.into());
        } else if family.needs_callback() {
            return Err(Failure::new(
                Class::InvalidInput,
                "set provider.kie.callback_url to use this model",
            )
            .unsent());
        }
        let input = input(&call.params)?;
        match family {
            Family::Jobs => {
                body.insert("model".to_owned(), call.model.clone().into());
                body.insert("input".to_owned(), input.into());
            }
            Family::Suno => {
                let model = call.model.rsplit('/').next().unwrap_or_default();
                body.insert("model".to_owned(), model.into());
                for (key, default) in [("customMode", false), ("instrumental", false)] {
                    body.insert(key.to_owned(), default.into());
                }
                body.extend(input);
            }
        }
        Ok(JsonValue::Object(body))
    }

    async fn created(
        &self,
        family: Family,
        envelope: &Envelope,
        glimpse: &str,
    ) -> Result<Submitted, Failure> {
        let Some(task) = wire::task_id(&envelope.data) else {
            return Err(self.scrubbed(Failure::unknown_submit(format!(
                "the answer has no task: {glimpse}"
            ))));
        };
        receipt::record(ID, Some(&task), None).await;
        let token = Token {
            task: task.clone(),
            family,
        };
        Ok(Submitted::Accepted {
            request_id: task,
            resume_token: serde_json::to_string(&token).unwrap_or_default(),
        })
    }

    fn pause(&self) -> Option<Duration> {
        self.settings.manners.poll_pause
    }
}

fn token_of(text: &str) -> Result<Token, Failure> {
    serde_json::from_str(text)
        .map_err(|_| Failure::new(Class::ProviderPermanent, "the resume token cannot be read"))
}

/// The parameters of a model. Media go in by public address only.
fn input(params: &Map) -> Result<Json<String, JsonValue>, Failure> {
    let mut input = Json::new();
    for (key, value) in params {
        let media: Vec<_> = match value {
            Value::Media(media) => vec![media.as_ref()],
            Value::List(values) => values.iter().filter_map(Value::as_media).collect(),
            _ => Vec::new(),
        };
        if media.is_empty() {
            if *value != Value::Null {
                input.insert(key.clone(), to_json(value, BytesForm::Tagged));
            }
            continue;
        }
        if media.iter().any(|media| !media.uri.starts_with("http")) {
            return Err(Failure::new(
                Class::InvalidInput,
                format!("{key} must be a public address: the provider takes no bytes"),
            )
            .unsent());
        }
        let addresses: Vec<JsonValue> = media.iter().map(|media| media.uri.clone().into()).collect();
        if matches!(value, Value::List(_)) {
            let key = key.strip_suffix('s').unwrap_or(key);
            input.insert(format!("{key}_urls"), addresses.into());
        } else {
            input.extend(
                addresses
                    .into_iter()
                    .map(|address| (format!("{key}_url"), address)),
            );
        }
    }
    Ok(input)
}

#[async_trait]
impl Provider for Kie {
    fn id(&self) -> &'static str {
        ID
    }

    fn missing(&self) -> Option<String> {
        self.key
            .is_none()
            .then(|| "set provider.kie.api_key (KIE_API_KEY)".to_owned())
    }

    fn models(&self) -> Vec<Model> {
        self.models.clone()
    }

    fn takes_any_model(&self) -> bool {
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
        let family = Family::of(&call.model);
        let url = self.url(family.submit_path())?;
        let body = self.body(family, call)?;
        let mut tries = tasks::Tries::new(&self.settings.manners, &call.cancel);
        loop {
            let request = self.request(Method::POST, url.clone()).json(&body);
            let answer = match self.web.ask(request).await {
                Ok(answer) => answer,
                Err(NoAnswer::Unsent) if tries.connect().await? => continue,
                Err(none) => return Err(none.of_submit()),
            };
            let Some(envelope) = Envelope::read(&answer) else {
                return Err(self.scrubbed(Failure::unknown_submit(format!(
                    "the answer cannot be read: {}",
                    answer.glimpse()
                ))));
            };
            if envelope.code == 200 {
                return self.created(family, &envelope, &answer.glimpse()).await;
            }
            let mut failure = self.scrubbed(wire::refusal(envelope.code, &envelope.message));
            failure.retry_after = answer.retry_after();
            if failure.class == Class::RateLimit && tries.refused(failure.retry_after).await? {
                continue;
            }
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
        let envelope = self.record(&token).await?;
        if envelope.code != 200 {
            return match envelope.code {
                404 => Ok(Polled::Lost),
                code => Err(self.scrubbed(wire::refusal(code, &envelope.message))),
            };
        }
        let poll_after = self.pause();
        let state = token.family.state(&envelope.data);
        if matches!(state, State::Done | State::Failed { .. })
            && let Some(stated) = self.stated(&envelope.data)
        {
            receipt::record(ID, None, Some(stated)).await;
        }
        Ok(match state {
            State::Waiting => Polled::Queued { poll_after },
            State::Running => Polled::Running { poll_after },
            State::Strange(word) => Polled::Strange { word, poll_after },
            State::Done => Polled::Done(token.family.result(&envelope.data).to_string()),
            State::Failed { code, message } => Polled::Failed(self.scrubbed(wire::failed(&code, &message))),
        })
    }

    async fn fetch(&self, _permit: &SeamPermit, result: &str) -> Result<Finished, Failure> {
        let found = wire::outputs(result)?;
        let mut outputs = Vec::new();
        for address in &found.addresses {
            let (bytes, served) = self.web.media(address).await?;
            let kind = wire::kind_of(served.as_deref(), address);
            outputs.push(Output::Media(medium(kind, bytes, served.as_deref(), Map::new())));
        }
        outputs.extend(found.text.map(Output::Text));
        Ok(Finished {
            outputs,
            usage: Usage::default(),
        })
    }

    async fn reconcile(&self, _permit: &SeamPermit, job: &Job) -> Result<Bill, Failure> {
        let token = match &job.resume_token {
            Some(token) => token_of(token)?,
            None => Token {
                task: job.request_id.clone(),
                family: Family::Jobs,
            },
        };
        let envelope = self.record(&token).await?;
        if envelope.code != 200 {
            let failure = self.scrubbed(wire::refusal(envelope.code, &envelope.message));
            return match envelope.code {
                401 => Ok(Bill::Denied(failure.message)),
                _ => Err(failure),
            };
        }
        let ended = matches!(
            token.family.state(&envelope.data),
            State::Done | State::Failed { .. }
        );
        Ok(match self.stated(&envelope.data).filter(|_| ended) {
            Some(stated) => Bill::Stated(stated),
            None => Bill::NotYet("billing not posted"),
        })
    }
}

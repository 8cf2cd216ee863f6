//! One implementation of [`Provider`] for all that answer in JSON, whether at once or through a job that is polled.
//!
//! A provider's own words are a [`Dialect`]: what to send, and what an answer means. This engine does the rest the same
//! way for each of them: it records ids and charges before anything else is looked at, keeps what a restart needs in a
//! [`Ticket`], fetches outputs, renews an address that has run out once, and asks a job to stop. [`order`] is what is
//! sent, [`said`] what is understood, [`body`] puts requests together.

mod body;
mod dialect;
mod fetch;
mod order;
mod said;

use std::sync::Arc;

use async_trait::async_trait;
use atelier_common::component::BuildError;
use reqwest::header::HeaderMap;

use body::inline;
pub(crate) use body::{Fields, lacks, pictures, plain, told_text};
pub(crate) use dialect::{Dialect, model};
pub(crate) use order::{Answer, Body, Field, Order, Ticket};
pub(crate) use said::{Found, Place, Said, State, credits, number, stated_usd, words};

use crate::adapters::http::{Habits, Link, Refusal, Reply};
use crate::pricing::Catalog;
use crate::provider::{
    Call, CancelAnswer, Capability, Emit, Failure, Finished, Model, Polled, Provider, SeamPermit, Submitted,
};
use crate::seam::receipt::{self, Stated};
use crate::settings::Remote;

/// Longest JSON answer that is taken beside the media in it, in bytes.
const MAX_JSON: u64 = 4 * 1024 * 1024;
/// Longest answer that is taken at once, media in it included; films and models come by their address.
const MAX_ANSWER: u64 = 128 * 1024 * 1024;

/// A provider that a dialect describes.
pub struct Jobs<D> {
    dialect: D,
    link: Link,
    models: Vec<Model>,
    catalog: Arc<Catalog>,
    missing: String,
}

/// What a dialect may need to understand an answer.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    /// The prices, for credits and for time that is paid.
    pub(crate) catalog: &'a Catalog,
    /// What the job is about.
    pub(crate) ticket: &'a Ticket,
}

impl<D: Dialect> Jobs<D> {
    /// The provider by its settings.
    ///
    /// # Errors
    /// When the address is not one, a model of the settings has no capability, or the HTTP client cannot be made.
    pub fn new(dialect: D, settings: &Remote, catalog: Arc<Catalog>) -> Result<Self, BuildError> {
        let id = dialect.id();
        let link = Link::new(id, dialect.address(), dialect.auth(), settings)?;
        let mut models = own_models(id, &settings.models)?;
        models.extend(dialect.models());
        Ok(Self {
            link,
            models,
            catalog,
            missing: missing(id, dialect.variable()),
            dialect,
        })
    }

    /// Builds the HTTP request of an order.
    fn request(&self, order: &Order) -> Result<reqwest::RequestBuilder, Failure> {
        order.build(&self.link)
    }

    async fn record(&self, said: &Said) {
        if said.id.is_some() || said.charge.is_some() {
            receipt::record(self.dialect.id(), said.id.as_deref(), said.charge.clone()).await;
        }
    }

    /// Reads how a job is.
    async fn look(&self, ticket: &Ticket, emit: Option<&dyn Emit>) -> Result<State, Failure> {
        let order = self.dialect.look(ticket);
        let reply = self.link.ask(self.request(&order)?).await?;
        let said = match self.dialect.refusal(&reply, true) {
            Some(refusal) => return self.unasked(refusal, &reply),
            None => self.dialect.said(
                Context {
                    catalog: &self.catalog,
                    ticket,
                },
                &reply,
            ),
        };
        self.record(&Said {
            id: None,
            ..said.clone()
        })
        .await;
        if let (
            Some(emit),
            State::Running {
                progress: Some((done, total)),
                ..
            },
        ) = (emit, &said.state)
        {
            emit.progress(*done, *total, None);
        }
        Ok(said.state)
    }

    /// How to ask for a stop, or why it cannot be asked for.
    async fn stop_order(&self, ticket: &Ticket) -> Result<Order, CancelAnswer> {
        let Some(look) = self.dialect.look_to_stop(ticket) else {
            return self.dialect.stop(ticket).ok_or(CancelAnswer::Unsupported);
        };
        let look = self.request(&look).map_err(|_| CancelAnswer::Error)?;
        let reply = self.link.ask(look).await.map_err(|_| CancelAnswer::Error)?;
        self.dialect
            .stop_seen(ticket, &reply)
            .ok_or(CancelAnswer::AlreadyDone)
    }

    /// A job that the provider does not know is lost; everything else says nothing of it.
    fn unasked(&self, refusal: Refusal, reply: &Reply) -> Result<State, Failure> {
        if matches!(reply.status.as_u16(), 404 | 410) {
            return Ok(State::Lost);
        }
        let mut failure = refusal.failure;
        failure.message = self.link.scrub(&failure.message);
        failure.retry_after = failure
            .retry_after
            .or_else(|| crate::adapters::http::retry_after(&reply.headers, &reply.body, chrono::Utc::now()));
        Err(failure)
    }
}

/// What has to be set before it can be called: the key, or the address of a server of one's own.
fn missing(id: &str, variable: &str) -> String {
    let setting = if variable.ends_with("_BASE_URL") {
        "base_url"
    } else {
        "api_key"
    };
    format!("set provider.{id}.{setting} ({variable})")
}

/// Reads the models that an operator adds.
fn own_models(provider: &str, texts: &[String]) -> Result<Vec<Model>, BuildError> {
    let wrong = |text: &str| {
        BuildError::invalid(format!(
            "provider.{provider}.models: `{text}` is not `capability:model`"
        ))
    };
    let mut models = Vec::new();
    for text in texts {
        let (capability, id) = text.split_once(':').ok_or_else(|| wrong(text))?;
        let capability = Capability::parse(capability).ok_or_else(|| wrong(text))?;
        models.push(model(id, &[capability]));
    }
    Ok(models)
}

impl<D: Dialect> Habits for Jobs<D> {
    fn request_id(&self, headers: &HeaderMap) -> Option<String> {
        self.dialect.request_id(headers)
    }

    fn charge(&self, headers: &HeaderMap) -> Option<Stated> {
        self.dialect.charge(headers, &self.catalog)
    }

    fn repeatable(&self) -> bool {
        self.dialect.repeatable()
    }

    fn refusal(&self, reply: &Reply) -> Option<Refusal> {
        self.dialect.refusal(reply, false)
    }
}

#[async_trait]
impl<D: Dialect> Provider for Jobs<D> {
    fn id(&self) -> &'static str {
        self.dialect.id()
    }

    fn missing(&self) -> Option<String> {
        self.link.base().is_none().then(|| self.missing.clone())
    }

    fn models(&self) -> Vec<Model> {
        self.models.clone()
    }

    fn takes_any_model(&self) -> bool {
        true
    }

    fn volunteers(&self) -> bool {
        self.dialect.volunteers()
    }

    fn wants_bytes(&self) -> bool {
        true
    }

    async fn submit(&self, _permit: &SeamPermit, call: &Call, emit: &dyn Emit) -> Result<Submitted, Failure> {
        let call = if self.dialect.inlines() {
            Call {
                params: inline(&self.link, &call.params).await?,
                ..call.clone()
            }
        } else {
            call.clone()
        };
        let order = self.dialect.order(&call)?;
        let mut ticket = Ticket::of(&call);
        let reply = self.answered(&call, &order, emit).await?;
        let said = self.dialect.said(
            Context {
                catalog: &self.catalog,
                ticket: &ticket,
            },
            &reply,
        );
        // Before anything else of the answer counts.
        self.record(&said).await;
        match said.state {
            State::Queued { .. } | State::Running { .. } => {
                let Some(request_id) = said.id else {
                    return Err(self.link.unreadable(&reply.body));
                };
                ticket.id.clone_from(&request_id);
                ticket.more = said.more;
                Ok(Submitted::Accepted {
                    request_id,
                    resume_token: ticket.text(),
                })
            }
            State::Done(found, usage) => {
                ticket.id = said.id.unwrap_or_default();
                let outputs = self.outputs(found).await?;
                if matches!(order.answer, Answer::Events) {
                    emit.end("text");
                }
                Ok(Submitted::Finished(Finished { outputs, usage }))
            }
            State::Failed(mut failure) => {
                failure.message = self.link.scrub(&failure.message);
                Err(failure)
            }
            State::Unreadable => Err(self.link.unreadable(&reply.body)),
            State::Ready | State::Cancelled | State::Lost => {
                Err(Failure::unknown_submit("the provider ended the job at once"))
            }
        }
    }

    async fn poll(&self, _permit: &SeamPermit, resume: &str, emit: &dyn Emit) -> Result<Polled, Failure> {
        let ticket = Ticket::read(resume)?;
        Ok(match self.look(&ticket, Some(emit)).await? {
            State::Queued { poll_after } => Polled::Queued { poll_after },
            State::Running { poll_after, .. } => Polled::Running { poll_after },
            State::Unreadable => Polled::Running { poll_after: None },
            State::Done(found, usage) => Polled::Done(fetch::note(&ticket, Some((&found, usage)))),
            State::Ready => Polled::Done(fetch::note(&ticket, None)),
            State::Failed(mut failure) => {
                failure.message = self.link.scrub(&failure.message);
                Polled::Failed(failure)
            }
            State::Cancelled => Polled::Cancelled,
            State::Lost => Polled::Lost,
        })
    }

    async fn fetch(&self, _permit: &SeamPermit, result: &str) -> Result<Finished, Failure> {
        self.fetched(result).await
    }

    async fn cancel(&self, _permit: &SeamPermit, resume: &str) -> CancelAnswer {
        let Ok(ticket) = Ticket::read(resume) else {
            return CancelAnswer::Error;
        };
        let request = match self.stop_order(&ticket).await {
            Err(answer) => return answer,
            Ok(order) => self.request(&order),
        };
        let Ok(request) = request else {
            return CancelAnswer::Error;
        };
        match self.link.ask(request).await {
            Err(_) => CancelAnswer::Error,
            Ok(reply) => {
                let context = Context {
                    catalog: &self.catalog,
                    ticket: &ticket,
                };
                let (answer, charge) = self.dialect.stopped(context, &reply);
                if charge.is_some() {
                    receipt::record(self.dialect.id(), None, charge).await;
                }
                answer
            }
        }
    }
}

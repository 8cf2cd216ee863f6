//! What a provider is to the seam: submit, poll, fetch, cancel, and the bill afterwards.
//!
//! What lives here: the trait that every adapter implements and the words it answers with. What does not: rows, prices
//! of calls and messages to the caller (that is `seam`), and anything of one provider (that is `adapters`).
//!
//! Every method that may cost money takes a [`SeamPermit`], which only the seam can make. An adapter tells the id that
//! the provider gave to the request with [`receipt::record`](crate::seam::receipt::record) as soon as it can read it,
//! before it looks at anything else of the answer.

mod capability;
mod failure;
mod params;

use std::time::Duration;

use async_trait::async_trait;
use atelier_proto::ids::GenerationId;
use atelier_proto::value::{Map, MediaRef, Value};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use tokio_util::sync::CancellationToken;

pub use crate::seam::permit::SeamPermit;
use crate::seam::receipt::Stated;
pub use capability::{Capability, Medium};
pub use failure::{Class, Failure};
pub use params::Params;

/// One request to a provider, as the seam hands it over.
#[derive(Debug, Clone)]
pub struct Call {
    /// Id of the row.
    pub generation_id: GenerationId,
    /// The provider's own name of the model.
    pub model: String,
    /// What is asked.
    pub capability: Capability,
    /// The capability's parameters, unredacted.
    pub params: Map,
    /// Tripped when the call is cancelled. A method that takes long and can stop without losing anything listens to it;
    /// one that cannot goes on, and its result is thrown away.
    pub cancel: CancellationToken,
}

/// Where an adapter tells what happens while a call runs. Nothing here waits: a slow reader gets pieces put together,
/// and progress it has no room for is dropped.
pub trait Emit: Send + Sync {
    /// How far the provider is, with a picture of it so far.
    fn progress(&self, done: i64, total: i64, preview: Option<MediaRef>);
    /// A piece of text; `thinking` for a model's thoughts.
    fn text(&self, piece: &str, thinking: bool);
    /// A piece of audio.
    fn audio(&self, piece: Bytes);
    /// The last piece of a kind was told: `text` or `audio`.
    fn end(&self, content_type: &str);
}

/// What became of a submit.
#[derive(Debug, Clone)]
pub enum Submitted {
    /// The provider has a job that can be polled.
    Accepted {
        /// Its id of the job.
        request_id: String,
        /// What is needed to poll it from another process, opaque JSON.
        resume_token: String,
    },
    /// The answer was the result.
    Finished(Finished),
}

/// What a poll says.
#[derive(Debug, Clone)]
pub enum Polled {
    /// Waiting; ask again after the pause.
    Queued {
        /// The provider's own hint; absent means the seam's schedule.
        poll_after: Option<Duration>,
    },
    /// Running; ask again after the pause.
    Running {
        /// The provider's own hint; absent means the seam's schedule.
        poll_after: Option<Duration>,
    },
    /// A word that is not known; ask again after the pause.
    Strange {
        /// The word.
        word: String,
        /// The provider's own hint; absent means the seam's schedule.
        poll_after: Option<Duration>,
    },
    /// Done; the result can be fetched with this reference, opaque JSON.
    Done(String),
    /// The provider says that it failed.
    Failed(Failure),
    /// The provider says that it was cancelled.
    Cancelled,
    /// The provider does not know the job, although it did before.
    Lost,
}

/// The outputs of a call that succeeded.
#[derive(Debug, Clone, Default)]
pub struct Finished {
    /// The outputs, in order.
    pub outputs: Vec<Output>,
    /// What was used, as far as the provider says so.
    pub usage: Usage,
}

/// One output.
#[derive(Debug, Clone)]
pub enum Output {
    /// Media.
    Media(Media),
    /// Text.
    Text(String),
    /// Anything else, as it is: a message that calls tools, the numbers of an embedding. It is never stored as an asset.
    Value(Value),
}

/// Media with their bytes.
#[derive(Debug, Clone)]
pub struct Media {
    /// `image`, `audio`, `video`, …
    pub kind: &'static str,
    /// The bytes.
    pub bytes: Bytes,
    /// The media type.
    pub mime: String,
    /// Facts for the reference: `width`, `height`, `duration`, `seed`, …
    pub extra: Map,
}

/// What a call used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Input tokens, cached ones included.
    pub input_tokens: Option<i64>,
    /// Input tokens that were read from a cache.
    pub cached_tokens: Option<i64>,
    /// Output tokens.
    pub output_tokens: Option<i64>,
    /// Seconds of media.
    pub seconds: Option<Decimal>,
}

/// A job whose bill is looked for.
#[derive(Debug, Clone)]
pub struct Job {
    /// The provider's id of it.
    pub request_id: String,
    /// What was kept to poll it by; absent for a provider whose jobs cannot be taken up.
    pub resume_token: Option<String>,
    /// When it was submitted, by the ledger's clock.
    pub submitted_at: DateTime<Utc>,
}

/// What a provider says of the bill of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bill {
    /// The bill.
    Stated(Stated),
    /// There is none yet, in these words.
    NotYet(&'static str),
    /// It states no bills.
    Unsupported,
    /// The key may not read bills, in these words.
    Denied(String),
}

/// What a provider answered to a cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelAnswer {
    /// It will stop, or has.
    Requested,
    /// It had finished already.
    AlreadyDone,
    /// It does not know the job.
    NotFound,
    /// It cannot cancel.
    Unsupported,
    /// It could not be asked.
    Error,
}
impl CancelAnswer {
    /// The word for the ledger.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Requested => "requested",
            Self::AlreadyDone => "already_done",
            Self::NotFound => "not_found",
            Self::Unsupported => "unsupported",
            Self::Error => "error",
        }
    }
}

/// A model that a provider offers.
#[derive(Debug, Clone)]
pub struct Model {
    /// The provider's own name.
    pub id: String,
    /// Name for people.
    pub name: String,
    /// What it can do.
    pub capabilities: Vec<Capability>,
}

/// An adapter to one provider. It writes no rows and knows no caller.
#[async_trait]
pub trait Provider: Send + Sync {
    /// Its id, for instance `openai`.
    fn id(&self) -> &'static str;

    /// What is missing for it to be called; `None` when it can be.
    fn missing(&self) -> Option<String> {
        None
    }

    /// The models it offers; the first that has a capability is the default for it.
    fn models(&self) -> Vec<Model>;

    /// Whether a model that is not in the list may be asked for all the same, because only the server knows.
    fn takes_any_model(&self) -> bool {
        false
    }

    /// Whether it takes calls that name no provider.
    fn volunteers(&self) -> bool {
        true
    }

    /// Whether the bytes of assets that the parameters name must be in the call.
    fn wants_bytes(&self) -> bool {
        false
    }

    /// Whether a job can be polled, fetched and cancelled by a process that did not submit it.
    fn resumable(&self) -> bool {
        false
    }

    /// Names the key in use, without telling anything of it: another name is another key. Empty when there is none.
    fn credential(&self) -> String {
        String::new()
    }

    /// Sends the request. The seam waits for the end of this also when the call is cancelled, so that no id is lost.
    ///
    /// # Errors
    /// [`Failure`] with its class, and whether anything was sent.
    async fn submit(&self, permit: &SeamPermit, call: &Call, emit: &dyn Emit) -> Result<Submitted, Failure>;

    /// Asks how a job is. A pure read, safe to repeat. Cancel safe.
    ///
    /// # Errors
    /// [`Failure`] when it could not be asked, which says nothing of the job.
    async fn poll(
        &self,
        _permit: &SeamPermit,
        _resume_token: &str,
        _emit: &dyn Emit,
    ) -> Result<Polled, Failure> {
        Ok(Polled::Lost)
    }

    /// Fetches the result of a job that is done. Safe to repeat.
    ///
    /// # Errors
    /// [`Failure`] when it cannot be had or read.
    async fn fetch(&self, _permit: &SeamPermit, _result: &str) -> Result<Finished, Failure> {
        Err(Failure::new(
            Class::ProviderPermanent,
            "the provider has no result to fetch",
        ))
    }

    /// Asks the provider to stop a job.
    async fn cancel(&self, _permit: &SeamPermit, _resume_token: &str) -> CancelAnswer {
        CancelAnswer::Unsupported
    }

    /// Looks for what a job cost in the end. A pure read, safe to repeat.
    ///
    /// # Errors
    /// [`Failure`] when it could not be asked, or its answer could not be read.
    async fn reconcile(&self, _permit: &SeamPermit, _job: &Job) -> Result<Bill, Failure> {
        Ok(Bill::Unsupported)
    }
}

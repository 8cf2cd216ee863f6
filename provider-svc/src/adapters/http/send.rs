//! Sending a request until there is an answer that counts.
//!
//! A paid request is sent again when the connection could not be made (nothing left), and when the provider refused it
//! in a way that proves that nothing came of it and the wait it asks for is bearable. Everything else is sent once
//! (providers specification 0.3, R-2 and R-3).

use std::time::Duration;

use bytes::Bytes;
use chrono::Utc;
use reqwest::header::HeaderMap;
use reqwest::{RequestBuilder, Response, StatusCode};

use super::Link;
use super::answer::{ReadError, Reply, content_type, read, retry_after};
use crate::provider::{Call, Class, Failure};
use crate::seam::receipt::{self, Stated};

/// Times that a request is sent again after a refusal for its speed.
const MAX_REFUSALS: u32 = 3;
/// Times that a connection is tried again.
const MAX_CONNECTS: u32 = 2;
/// Longest pause that is chosen here between two tries.
const LONGEST_PAUSE: Duration = Duration::from_secs(8);
/// Largest error body that is read.
const MAX_ERROR: usize = 64 * 1024;
/// Largest answer of a read that is no media, in bytes.
const MAX_STATE: usize = 16 * 1024 * 1024;
/// How much of an answer that is no answer is kept.
const MAX_GLIMPSE: usize = 200;

/// An answer that refuses.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    /// What is wrong. A wait in it counts before those of the head and the body.
    pub(crate) failure: Failure,
    /// The shortest pause before the request may be sent again; absent means that it must not be.
    pub(crate) again: Option<Duration>,
}
impl Refusal {
    /// A refusal with the usual consequence: a request that was too fast is sent again, no other is.
    pub(crate) fn new(failure: Failure) -> Self {
        let again = (failure.class == Class::RateLimit).then_some(Duration::ZERO);
        Self { failure, again }
    }

    /// A refusal after which the request may be sent again, because nothing came of it.
    pub(crate) fn passing(failure: Failure) -> Self {
        Self {
            failure,
            again: Some(Duration::ZERO),
        }
    }

    /// A refusal that is the last word.
    pub(crate) fn last(failure: Failure) -> Self {
        Self { failure, again: None }
    }
}

/// How a provider answers.
pub(crate) trait Habits: Sync {
    /// The id of the request, when it is in the head.
    fn request_id(&self, _headers: &HeaderMap) -> Option<String> {
        None
    }

    /// A charge that the head states.
    fn charge(&self, _headers: &HeaderMap) -> Option<Stated> {
        None
    }

    /// Whether a request whose fate is unknown may be sent again, because the provider knows one that it has taken.
    fn repeatable(&self) -> bool {
        false
    }

    /// Whether an answer refuses, also one with a status of success.
    fn refusal(&self, reply: &Reply) -> Option<Refusal>;
}

impl Link {
    /// Sends a request until there is an answer of success, whose head is then recorded; its body is not read. With
    /// `abandon` a cancel closes the connection; without it the request runs to its end.
    pub(crate) async fn open(
        &self,
        call: &Call,
        abandon: bool,
        habits: &dyn Habits,
        build: impl Fn() -> Result<RequestBuilder, Failure>,
    ) -> Result<Response, Failure> {
        let mut tries = Tries::default();
        loop {
            let Some(response) = self.sent(call, abandon, habits, &mut tries, &build).await? else {
                continue;
            };
            if response.status().is_success() {
                self.record_head(response.headers(), habits).await;
                return self.readable(response).await;
            }
            let reply = told(response).await;
            let refusal = habits
                .refusal(&reply)
                .unwrap_or_else(|| Refusal::last(unknown(reply.status)));
            self.refused(call, refusal, &reply, habits, &mut tries).await?;
        }
    }

    /// The same to the end of the body, of at most `limit` bytes; then also answers of success are looked at for
    /// refusals.
    pub(crate) async fn whole(
        &self,
        call: &Call,
        limit: u64,
        habits: &dyn Habits,
        build: impl Fn() -> Result<RequestBuilder, Failure>,
    ) -> Result<Reply, Failure> {
        let mut tries = Tries::default();
        loop {
            let Some(response) = self.sent(call, false, habits, &mut tries, &build).await? else {
                continue;
            };
            let reply = if response.status().is_success() {
                self.record_head(response.headers(), habits).await;
                let response = self.readable(response).await?;
                let (status, headers) = (response.status(), response.headers().clone());
                let body = self.body(response, limit).await?;
                Reply {
                    status,
                    headers,
                    body,
                }
            } else {
                told(response).await
            };
            let refusal = match habits.refusal(&reply) {
                None if reply.status.is_success() => return Ok(reply),
                None => Refusal::last(unknown(reply.status)),
                Some(refusal) => refusal,
            };
            self.refused(call, refusal, &reply, habits, &mut tries).await?;
        }
    }

    /// Asks once, for a read that costs nothing and says nothing of a job when it fails. Cancel safe.
    pub(crate) async fn ask(&self, request: RequestBuilder) -> Result<Reply, Failure> {
        let response = self.authorised(request).send().await.map_err(|_| unreachable())?;
        let (status, headers) = (response.status(), response.headers().clone());
        if status.is_success() && content_type(&headers).starts_with("text/html") {
            return Err(unreachable());
        }
        let body = read(response, MAX_STATE).await.map_err(|_| unreachable())?;
        Ok(Reply {
            status,
            headers,
            body,
        })
    }

    /// One try; `None` when the connection could not be made and may be tried again.
    async fn sent(
        &self,
        call: &Call,
        abandon: bool,
        habits: &dyn Habits,
        tries: &mut Tries,
        build: &impl Fn() -> Result<RequestBuilder, Failure>,
    ) -> Result<Option<Response>, Failure> {
        let request = self.authorised(build()?);
        let sent = if abandon {
            call.cancel
                .run_until_cancelled(request.send())
                .await
                .ok_or_else(cancelled)?
        } else {
            request.send().await
        };
        match sent {
            Ok(response) => Ok(Some(response)),
            Err(error) if (error.is_connect() || habits.repeatable()) && tries.connects < MAX_CONNECTS => {
                wait(call, self.pause_after(tries.connects)).await?;
                tries.connects += 1;
                Ok(None)
            }
            Err(error) => Err(broken(&error)),
        }
    }

    /// Waits until a refused request may be sent again, or says that it may not be.
    async fn refused(
        &self,
        call: &Call,
        refusal: Refusal,
        reply: &Reply,
        habits: &dyn Habits,
        tries: &mut Tries,
    ) -> Result<(), Failure> {
        let Refusal { mut failure, again } = refusal;
        failure.message = self.scrub(&failure.message);
        if failure.retry_after.is_none() {
            failure.retry_after = retry_after(&reply.headers, &reply.body, Utc::now());
        }
        let vetoed = reply.header("x-should-retry") == Some("false");
        let pause = again.map(|least| {
            let chosen = failure
                .retry_after
                .unwrap_or_else(|| self.pause_after(tries.refusals));
            chosen.max(least)
        });
        match pause {
            Some(pause) if !vetoed && tries.refusals < MAX_REFUSALS && pause <= self.longest_wait => {
                wait(call, pause.max(self.first_pause)).await?;
                tries.refusals += 1;
                Ok(())
            }
            Some(_) | None => {
                if !reply.status.is_success() {
                    self.record_head(&reply.headers, habits).await;
                }
                Err(failure)
            }
        }
    }

    async fn record_head(&self, headers: &HeaderMap, habits: &dyn Habits) {
        let (id, charge) = (habits.request_id(headers), habits.charge(headers));
        if id.is_some() || charge.is_some() {
            receipt::record(self.provider, id.as_deref(), charge).await;
        }
    }

    /// An answer of success that is a page for people came from something in between.
    async fn readable(&self, response: Response) -> Result<Response, Failure> {
        if content_type(response.headers()).starts_with("text/html") {
            let body = read(response, MAX_ERROR).await.unwrap_or_default();
            return Err(self.unreadable(&body));
        }
        Ok(response)
    }

    /// A failure for an answer of success that cannot be read: the request may have been carried out.
    pub(crate) fn unreadable(&self, body: &[u8]) -> Failure {
        let glimpse: String = String::from_utf8_lossy(body).chars().take(MAX_GLIMPSE).collect();
        Failure::unknown_submit(format!("the answer cannot be read: {}", self.scrub(&glimpse)))
    }

    /// The whole body of an answer of success, at most `limit` bytes of it.
    pub(crate) async fn body(&self, response: Response, limit: u64) -> Result<Bytes, Failure> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        match read(response, limit).await {
            Ok(bytes) => Ok(bytes),
            Err(ReadError::TooLarge) => {
                Err(Failure::new(Class::ProviderPermanent, "the answer is too large").because("bad_output"))
            }
            Err(ReadError::Broken) => Err(Failure::unknown_submit("the answer broke off")),
        }
    }

    /// The pause before a request is sent again after so many failures.
    fn pause_after(&self, failures: u32) -> Duration {
        self.first_pause
            .saturating_mul(2_u32.saturating_pow(failures.min(16)))
            .min(LONGEST_PAUSE)
    }
}

/// How often a request was sent in vain.
#[derive(Debug, Default)]
struct Tries {
    refusals: u32,
    connects: u32,
}

/// An answer that is no success, as far as it can be read.
async fn told(response: Response) -> Reply {
    let (status, headers) = (response.status(), response.headers().clone());
    let body = read(response, MAX_ERROR).await.unwrap_or_default();
    Reply {
        status,
        headers,
        body,
    }
}

async fn wait(call: &Call, pause: Duration) -> Result<(), Failure> {
    call.cancel
        .run_until_cancelled(tokio::time::sleep(pause))
        .await
        .ok_or_else(|| cancelled().unsent())
}

/// The call was cancelled while it was sent.
pub(crate) fn cancelled() -> Failure {
    Failure::new(Class::Cancelled, "the call was cancelled")
}

fn unknown(status: StatusCode) -> Failure {
    Failure::unknown_submit(format!("the provider answered {status}"))
}

fn unreachable() -> Failure {
    Failure::new(Class::ProviderTransient, "the provider cannot be asked")
}

/// A request that got no answer.
fn broken(error: &reqwest::Error) -> Failure {
    if error.is_connect() || error.is_builder() {
        return Failure::new(Class::ProviderTransient, "the provider cannot be reached").unsent();
    }
    let what = if error.is_timeout() {
        "the provider did not answer in time"
    } else {
        "the connection broke off"
    };
    Failure::unknown_submit(what)
}

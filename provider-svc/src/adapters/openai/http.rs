//! Sending a paid request, and reading answers with a limit.
//!
//! A request is sent again when the connection could not be made (nothing left), and when the server refused it for its
//! speed and the wait it asks for is bearable. Everything else is sent once (providers specification 0.3, R-2 and R-3).

use std::time::Duration;

use bytes::Bytes;
use chrono::Utc;
use reqwest::header::HeaderMap;
use reqwest::{RequestBuilder, Response, StatusCode};

use super::errors::{classify, said};
use super::{ID, OpenAi, pause_after};
use crate::adapters::web::{ReadError, content_type, read, retry_after};
use crate::provider::{Call, Class, Failure};
use crate::seam::receipt;

/// Times that a request is sent again after a refusal for its speed.
const MAX_REFUSALS: u32 = 3;
/// Times that a connection is tried again.
const MAX_CONNECTS: u32 = 2;
/// Largest error body that is read.
const MAX_ERROR: usize = 64 * 1024;
/// How much of an answer that is no answer is kept.
const MAX_GLIMPSE: usize = 200;

impl OpenAi {
    /// Sends a request until there is an answer of success, whose head is then recorded. With `abandon` a cancel closes
    /// the connection; without it the request runs to its end.
    pub(super) async fn send(
        &self,
        call: &Call,
        abandon: bool,
        build: impl Fn() -> Result<RequestBuilder, Failure>,
    ) -> Result<Response, Failure> {
        let (mut refusals, mut connects) = (0, 0);
        loop {
            let request = self.authorised(build()?);
            let sent = if abandon {
                call.cancel
                    .run_until_cancelled(request.send())
                    .await
                    .ok_or_else(cancelled)?
            } else {
                request.send().await
            };
            let response = match sent {
                Ok(response) => response,
                Err(error) if error.is_connect() && connects < MAX_CONNECTS => {
                    wait(call, pause_after(self.settings.first_pause, connects)).await?;
                    connects += 1;
                    continue;
                }
                Err(error) => return Err(broken(&error)),
            };
            if response.status().is_success() {
                receipt::record(ID, request_id(response.headers()).as_deref(), None).await;
                return self.answer(response).await;
            }
            let (mut failure, again) = self.refusal(response).await;
            let Some(pause) = again.filter(|_| refusals < MAX_REFUSALS) else {
                return Err(failure);
            };
            let pause = pause.unwrap_or_else(|| pause_after(self.settings.first_pause, refusals));
            if pause > self.settings.longest_wait {
                failure.retry_after = Some(pause);
                return Err(failure);
            }
            wait(call, pause.max(self.settings.first_pause)).await?;
            refusals += 1;
        }
    }

    /// The key goes to the provider's own host only; every request built here goes there.
    pub(super) fn authorised(&self, request: RequestBuilder) -> RequestBuilder {
        if self.secret().is_empty() {
            request
        } else {
            request.bearer_auth(self.secret())
        }
    }

    /// An answer of success that is a page for people came from something in between.
    async fn answer(&self, response: Response) -> Result<Response, Failure> {
        if content_type(response.headers()).starts_with("text/html") {
            let body = read(response, MAX_ERROR).await.unwrap_or_default();
            return Err(self.unreadable(&body));
        }
        Ok(response)
    }

    /// A failure for an answer of success that cannot be read: the request may have been carried out.
    pub(super) fn unreadable(&self, body: &[u8]) -> Failure {
        let glimpse: String = String::from_utf8_lossy(body).chars().take(MAX_GLIMPSE).collect();
        Failure::unknown_submit(format!("the answer cannot be read: {}", self.scrub(&glimpse)))
    }

    /// Names a refusal, and says whether and after which pause the request may be sent again. An id is recorded when it
    /// is the last word.
    async fn refusal(&self, response: Response) -> (Failure, Option<Option<Duration>>) {
        let (status, headers) = (response.status(), response.headers().clone());
        let body = read(response, MAX_ERROR).await.unwrap_or_default();
        let said = said(&body);
        let mut failure = classify(status, &said);
        failure.message = self.scrub(&failure.message);
        failure.retry_after = retry_after(&headers, &body, Utc::now());
        let vetoed = headers
            .get("x-should-retry")
            .is_some_and(|value| value == "false");
        let refused = failure.class == Class::RateLimit
            || (self.compatible() && status == StatusCode::SERVICE_UNAVAILABLE);
        let hopeless = failure
            .retry_after
            .is_some_and(|wait| wait > self.settings.longest_wait);
        if refused && !vetoed && !hopeless {
            return (failure.clone(), Some(failure.retry_after));
        }
        receipt::record(ID, request_id(&headers).as_deref(), None).await;
        (failure, None)
    }

    /// The whole body of an answer of success, at most `limit` bytes of it.
    pub(super) async fn body(&self, response: Response, limit: u64) -> Result<Bytes, Failure> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        match read(response, limit).await {
            Ok(bytes) => Ok(bytes),
            Err(ReadError::TooLarge) => {
                Err(Failure::new(Class::ProviderPermanent, "the answer is too large").because("bad_output"))
            }
            Err(ReadError::Broken) => Err(Failure::unknown_submit("the answer broke off")),
        }
    }
}

fn request_id(headers: &HeaderMap) -> Option<String> {
    headers
        .get("x-request-id")
        .and_then(|value| value.to_str().ok())
        .map(ToOwned::to_owned)
}

async fn wait(call: &Call, pause: Duration) -> Result<(), Failure> {
    call.cancel
        .run_until_cancelled(tokio::time::sleep(pause))
        .await
        .ok_or_else(|| cancelled().unsent())
}

pub(super) fn cancelled() -> Failure {
    Failure::new(Class::Cancelled, "the call was cancelled")
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

//! HTTP as adapters use it: answers with a limit, waits that a server asks for, media by their address, and failures of
//! transport named (providers specification 0.3 and 24). Nothing here knows a provider.

use std::time::Duration;

use atelier_common::component::BuildError;
use atelier_common::egress::{self, Egress, EgressError, Limits};
use bytes::{Bytes, BytesMut};
use chrono::Utc;
use reqwest::header::HeaderMap;
use reqwest::redirect::Policy;
use reqwest::{RequestBuilder, Response};
use rust_decimal::Decimal;
use serde_json::Value;
use url::Url;

use super::http::retry_after;
use crate::provider::{Class, Failure};

/// Largest answer that is no medium.
const MAX_ANSWER: usize = 32 * 1024 * 1024;
/// How much of an answer that is no answer is kept, in characters.
const MAX_GLIMPSE: usize = 200;

/// The two clients of an adapter: one for the provider's own host, and the guarded one for addresses that it names.
pub(in crate::adapters) struct Web {
    pub(in crate::adapters) client: reqwest::Client,
    egress: Egress,
    max_media: u64,
}

/// A whole answer.
#[derive(Debug, Clone)]
pub(in crate::adapters) struct Answer {
    pub(in crate::adapters) status: u16,
    pub(in crate::adapters) headers: HeaderMap,
    pub(in crate::adapters) body: Bytes,
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::adapters) enum NoAnswer {
    /// No byte of the request left.
    Unsent,
    /// It may have arrived.
    Broken(&'static str),
    /// It arrived, and the answer is larger than anything that is one.
    TooLarge,
}

impl NoAnswer {
    /// The failure of a paid request.
    pub(in crate::adapters) fn of_submit(self) -> Failure {
        match self {
            Self::Unsent => Failure::new(Class::ProviderTransient, "the provider cannot be reached").unsent(),
            Self::Broken(what) => Failure::unknown_submit(what),
            Self::TooLarge => Failure::unknown_submit("the answer is too large"),
        }
    }

    /// The failure of a question, which says nothing of the job.
    pub(in crate::adapters) fn of_question(self) -> Failure {
        let what = match self {
            Self::Unsent => "the provider cannot be reached",
            Self::Broken(what) => what,
            Self::TooLarge => "the answer is too large",
        };
        Failure::new(Class::ProviderTransient, what)
    }
}

/// How long an adapter waits.
#[derive(Debug, Clone, Copy)]
pub(in crate::adapters) struct Waits {
    pub(in crate::adapters) connect: Duration,
    pub(in crate::adapters) answer: Duration,
}

impl Web {
    pub(in crate::adapters) fn new(
        who: &'static str,
        waits: Waits,
        allowed_hosts: &[String],
        max_media: u64,
    ) -> Result<Self, BuildError> {
        egress::install_crypto();
        let client = reqwest::Client::builder()
            .user_agent(concat!("atelier/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(waits.connect)
            .timeout(waits.answer)
            // The key must not go where an answer points.
            .redirect(Policy::none())
            .no_proxy()
            .build()
            .map_err(|error| BuildError::new(format!("cannot make the http client for {who}"), error))?;
        let egress = Egress::new(allowed_hosts)
            .map_err(|error| BuildError::new("cannot make the guarded http client", error))?;
        Ok(Self {
            client,
            egress,
            max_media,
        })
    }

    /// Sends a request and reads the whole answer.
    pub(in crate::adapters) async fn ask(&self, request: RequestBuilder) -> Result<Answer, NoAnswer> {
        let response = request.send().await.map_err(|error| {
            if error.is_connect() || error.is_builder() {
                NoAnswer::Unsent
            } else if error.is_timeout() {
                NoAnswer::Broken("the provider did not answer in time")
            } else {
                NoAnswer::Broken("the connection broke off")
            }
        })?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = read(response, MAX_ANSWER).await.map_err(|error| match error {
            ReadError::TooLarge => NoAnswer::TooLarge,
            ReadError::Broken => NoAnswer::Broken("the answer broke off"),
        })?;
        Ok(Answer {
            status,
            headers,
            body,
        })
    }

    /// Media by their address, through the guard and without a key.
    pub(in crate::adapters) async fn media(&self, address: &str) -> Result<(Bytes, Option<String>), Failure> {
        let limits = Limits {
            max_bytes: self.max_media,
            timeout: Duration::from_mins(5),
            ..Limits::default()
        };
        let fetched = self
            .egress
            .get(address, &limits)
            .await
            .map_err(|error| match error {
                EgressError::Status { status, .. } => gone(status.as_u16()),
                error if error.transient() => Failure::new(Class::ProviderTransient, error.to_string()),
                error => bad(error.to_string()),
            })?;
        if fetched.bytes.is_empty() {
            return Err(bad("the output is empty"));
        }
        Ok((fetched.bytes, fetched.content_type))
    }
}

impl Answer {
    pub(in crate::adapters) fn ok(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The body as JSON; `None` for a page of something in between.
    pub(in crate::adapters) fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.body).ok()
    }

    pub(in crate::adapters) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    pub(in crate::adapters) fn retry_after(&self) -> Option<Duration> {
        retry_after(&self.headers, &self.body, Utc::now())
    }

    /// The beginning of the body, for people.
    pub(in crate::adapters) fn glimpse(&self) -> String {
        String::from_utf8_lossy(&self.body)
            .chars()
            .take(MAX_GLIMPSE)
            .collect()
    }
}

/// An exact number out of JSON, also when it comes as text. Through the shortest text, so that 0.1 stays 0.1.
pub(in crate::adapters) fn decimal(value: &Value) -> Option<Decimal> {
    match value {
        Value::Number(number) => {
            let text = number.to_string();
            text.parse().ok().or_else(|| Decimal::from_scientific(&text).ok())
        }
        Value::String(text) => text.trim().parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Whether two addresses are of one server.
pub(in crate::adapters) fn same_host(a: &Url, b: &Url) -> bool {
    a.scheme() == b.scheme() && a.host() == b.host() && a.port_or_known_default() == b.port_or_known_default()
}

/// Whether a provider's words say that it refused the content (providers specification 24).
pub(in crate::adapters) fn refuses_content(text: &str) -> bool {
    let text = text.to_lowercase();
    let both = |a: &str, b: &str| text.contains(a) && text.contains(b);
    both("content policy", "violat")
        || both("usage policy", "violat")
        || both("safety system", "reject")
        || both("blocked", "safety")
        || both("rai", "filtered")
        || both("nsfw", "detect")
        || [
            "prohibited_content",
            "flagged as sensitive",
            "sensitive word",
            "sensitive_word",
            "content filter",
            "safety filter",
            "content_policy_violation",
            "moderation_blocked",
            "content management policy",
        ]
        .iter()
        .any(|words| text.contains(words))
}

/// Names a key without telling anything of it: keys are long and random, and this is a hash of one with a purpose of its
/// own.
pub(in crate::adapters) fn name_of_key(secret: &str) -> String {
    if secret.is_empty() {
        return String::new();
    }
    let hash = blake3::derive_key(
        "atelier 2026-12-01 the name of a provider's key",
        secret.as_bytes(),
    );
    hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// Why a body was not read.
#[derive(Debug)]
pub(in crate::adapters) enum ReadError {
    TooLarge,
    Broken,
}

/// Reads a body piece by piece, so that one without end is given up at the limit.
pub(in crate::adapters) async fn read(mut response: Response, limit: usize) -> Result<Bytes, ReadError> {
    let stated = response
        .content_length()
        .and_then(|length| usize::try_from(length).ok());
    if stated.is_some_and(|length| length > limit) {
        return Err(ReadError::TooLarge);
    }
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await.map_err(|_| ReadError::Broken)? {
        if body.len() + chunk.len() > limit {
            return Err(ReadError::TooLarge);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

pub(in crate::adapters) fn bad(message: impl Into<String>) -> Failure {
    Failure::new(Class::ProviderPermanent, message).because("bad_output")
}

pub(in crate::adapters) fn gone(status: u16) -> Failure {
    let message = format!("the output's address answered {status}");
    match status {
        401 | 403 | 404 | 410 => Failure::new(Class::ProviderPermanent, message).because("result_expired"),
        408 | 429 | 500..=599 => Failure::new(Class::ProviderTransient, message),
        _ => bad(message),
    }
}

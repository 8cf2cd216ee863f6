//! Requests of any method to addresses that users name, with the whole answer whatever its status.

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, Method, StatusCode, header};
use tokio::time::Instant;
use url::Url;

use super::{Download, Egress, EgressError, Limits, failed, next, parse};

/// Headers that a caller sets and that another host may see after a redirect.
const HARMLESS: &[HeaderName] = &[
    header::ACCEPT,
    header::ACCEPT_LANGUAGE,
    header::CONTENT_TYPE,
    header::USER_AGENT,
];

/// What is sent.
#[derive(Debug, Clone)]
pub struct Outgoing {
    /// The method.
    pub method: Method,
    /// The address.
    pub url: String,
    /// Headers beside those that the client sets itself.
    pub headers: HeaderMap,
    /// The body.
    pub body: Option<Bytes>,
}

/// What came back.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The status, which may be an error.
    pub status: StatusCode,
    /// What the server called the body; sniff before believing.
    pub content_type: Option<String>,
    /// The body.
    pub bytes: Bytes,
}

impl Egress {
    /// Sends a request and reads the whole answer. Redirects are judged like the address itself; headers of the caller are
    /// not told to another host, and a body is not sent again unless the status asks for it. Cancel safe: dropping it
    /// closes the connection.
    ///
    /// # Errors
    /// See [`EgressError`]; a status is none.
    pub async fn send(&self, request: Outgoing, limits: &Limits) -> Result<Reply, EgressError> {
        let Outgoing {
            mut method,
            url,
            mut headers,
            mut body,
        } = request;
        let deadline = Instant::now() + limits.timeout;
        let mut url = parse(&url)?;
        for _ in 0..=limits.max_redirects {
            let host = url.host_str().unwrap_or_default().to_owned();
            let mut sending = self
                .judge(&url)?
                .request(method.clone(), url.clone())
                .headers(headers.clone());
            if let Some(body) = &body {
                sending = sending.body(body.clone());
            }
            let response = match tokio::time::timeout_at(deadline, sending.send()).await {
                Err(_) => return Err(EgressError::TooSlow(limits.timeout)),
                Ok(Err(error)) => return Err(failed(host, error)),
                Ok(Ok(response)) => response,
            };
            let status = response.status();
            if status.is_redirection() && response.headers().contains_key(header::LOCATION) {
                let target = next(&url, response.headers())?;
                if !same_origin(&url, &target) {
                    headers = harmless(&headers);
                }
                let kept = matches!(
                    status,
                    StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
                );
                if !kept && method != Method::HEAD {
                    method = Method::GET;
                    body = None;
                    headers.remove(header::CONTENT_TYPE);
                }
                url = target;
                continue;
            }
            if response
                .content_length()
                .is_some_and(|length| length > limits.max_bytes)
            {
                return Err(EgressError::TooLarge(limits.max_bytes));
            }
            let mut download = Download {
                response,
                host,
                deadline,
                limits: limits.clone(),
                received: 0,
            };
            let content_type = download.content_type().map(str::to_owned);
            let mut bytes = BytesMut::new();
            while let Some(chunk) = download.chunk().await? {
                bytes.extend_from_slice(&chunk);
            }
            return Ok(Reply {
                status,
                content_type,
                bytes: bytes.freeze(),
            });
        }
        Err(EgressError::Redirects)
    }
}

fn same_origin(one: &Url, other: &Url) -> bool {
    one.scheme() == other.scheme()
        && one.host() == other.host()
        && one.port_or_known_default() == other.port_or_known_default()
}

fn harmless(headers: &HeaderMap) -> HeaderMap {
    headers
        .iter()
        .filter(|(name, _)| HARMLESS.contains(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

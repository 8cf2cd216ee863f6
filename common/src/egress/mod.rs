//! The HTTP client for addresses that users or providers name.
//!
//! It must not be a way into the deployment's own network: addresses are judged when they are resolved, so a name that
//! changes its mind between check and connection gains nothing; literal addresses and every redirect are judged too.

mod address;
mod error;
mod send;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode, header};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use url::{Host, Url};

pub use address::forbidden;
pub use error::EgressError;
pub use send::{Outgoing, Reply};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const LONGEST_URL: usize = 8 * 1024;
const AGENT: &str = concat!("atelier/", env!("CARGO_PKG_VERSION"));

/// How much one fetch may cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// The largest body, in bytes. Default 64 MiB.
    pub max_bytes: u64,
    /// The longest time for everything, redirects and body included. Default 60 s.
    #[serde(with = "humantime_serde")]
    pub timeout: Duration,
    /// How many redirects are followed. Default 5.
    pub max_redirects: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_bytes: 64 * 1024 * 1024,
            timeout: Duration::from_secs(60),
            max_redirects: 5,
        }
    }
}

/// A whole body.
#[derive(Debug, Clone)]
pub struct Fetched {
    /// The body.
    pub bytes: Bytes,
    /// What the server called it; sniff before believing.
    pub content_type: Option<String>,
}

/// The guarded client. Cheap to clone; clones share connections.
#[derive(Clone)]
pub struct Egress {
    guarded: reqwest::Client,
    exempt: reqwest::Client,
    allowed: Arc<Vec<Allowed>>,
}

impl fmt::Debug for Egress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Egress")
            .field("allowed", &self.allowed)
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Allowed {
    host: String,
    port: Option<u16>,
}

impl Egress {
    /// Makes a client. `allowed` are hosts that may be in private ranges all the same, as `host` or `host:port`
    /// (`[::1]:9000` for version 6): an operator's own stores, a test's servers.
    ///
    /// # Errors
    /// [`EgressError::Client`]; [`EgressError::Address`] for an entry of `allowed` that is not a host.
    pub fn new<S: AsRef<str>>(allowed: impl IntoIterator<Item = S>) -> Result<Self, EgressError> {
        install_crypto();
        let allowed = allowed
            .into_iter()
            .map(|entry| Allowed::parse(entry.as_ref()))
            .collect::<Result<Vec<_>, _>>()?;
        let builder = || {
            // No proxy: it would connect on our behalf, and to where we cannot judge. Redirects are followed by hand.
            reqwest::Client::builder()
                .user_agent(AGENT)
                .connect_timeout(CONNECT_TIMEOUT)
                .redirect(Policy::none())
                .referer(false)
                .no_proxy()
        };
        let guarded = builder()
            .dns_resolver(Arc::new(Guard))
            .build()
            .map_err(EgressError::Client)?;
        let exempt = builder().build().map_err(EgressError::Client)?;
        Ok(Self {
            guarded,
            exempt,
            allowed: Arc::new(allowed),
        })
    }

    /// Fetches a whole body. Cancel safe: dropping it closes the connection.
    ///
    /// # Errors
    /// See [`EgressError`].
    pub async fn get(&self, url: &str, limits: &Limits) -> Result<Fetched, EgressError> {
        let mut download = self.open(url, limits).await?;
        let content_type = download.content_type().map(str::to_owned);
        let mut body = BytesMut::new();
        while let Some(chunk) = download.chunk().await? {
            body.extend_from_slice(&chunk);
        }
        Ok(Fetched {
            bytes: body.freeze(),
            content_type,
        })
    }

    /// Fetches the head and leaves the body to be read in pieces, for content that should not be held in memory.
    /// The limits hold for the whole. Cancel safe.
    ///
    /// # Errors
    /// See [`EgressError`].
    pub async fn open(&self, url: &str, limits: &Limits) -> Result<Download, EgressError> {
        let deadline = Instant::now() + limits.timeout;
        let mut url = parse(url)?;
        for _ in 0..=limits.max_redirects {
            let host = url.host_str().unwrap_or_default().to_owned();
            let request = self.judge(&url)?.get(url.clone()).send();
            let response = match tokio::time::timeout_at(deadline, request).await {
                Err(_) => return Err(EgressError::TooSlow(limits.timeout)),
                Ok(Err(error)) => return Err(failed(host, error)),
                Ok(Ok(response)) => response,
            };
            let status = response.status();
            if status.is_redirection() && status != StatusCode::NOT_MODIFIED {
                url = next(&url, response.headers())?;
                continue;
            }
            if !status.is_success() {
                return Err(EgressError::Status { host, status });
            }
            if response
                .content_length()
                .is_some_and(|length| length > limits.max_bytes)
            {
                return Err(EgressError::TooLarge(limits.max_bytes));
            }
            return Ok(Download {
                response,
                host,
                deadline,
                limits: limits.clone(),
                received: 0,
            });
        }
        Err(EgressError::Redirects)
    }

    /// The client to use for an address, if it may be fetched at all.
    fn judge(&self, url: &Url) -> Result<&reqwest::Client, EgressError> {
        let host = url.host().ok_or(EgressError::Address("it has no host"))?;
        let name = host.to_string();
        if self
            .allowed
            .iter()
            .any(|allowed| allowed.covers(&name, url.port_or_known_default()))
        {
            return Ok(&self.exempt);
        }
        let literal = match host {
            Host::Ipv4(address) => Some(IpAddr::V4(address)),
            Host::Ipv6(address) => Some(IpAddr::V6(address)),
            Host::Domain(_) => None,
        };
        if literal.is_some_and(forbidden) {
            return Err(EgressError::Forbidden(name));
        }
        Ok(&self.guarded)
    }

    /// Checks an address without connecting: its form, scheme and, if it is literal, its range. For early answers to
    /// whoever names it; fetching checks again.
    ///
    /// # Errors
    /// [`EgressError::Address`], [`EgressError::Scheme`], [`EgressError::Forbidden`].
    pub fn check(&self, url: &str) -> Result<(), EgressError> {
        self.judge(&parse(url)?).map(|_| ())
    }
}

impl Allowed {
    fn parse(entry: &str) -> Result<Self, EgressError> {
        let invalid = EgressError::Address("an allowed host is not a host");
        let (host, port) = match entry.rsplit_once(':') {
            Some((host, port))
                if !host.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) && !port.is_empty() =>
            {
                match port.parse() {
                    Ok(port) => (host, Some(port)),
                    Err(_) => return Err(invalid),
                }
            }
            Some(_) | None => (entry, None),
        };
        match Host::parse(host) {
            Ok(host) => Ok(Self {
                host: host.to_string(),
                port,
            }),
            Err(_) => Err(invalid),
        }
    }

    fn covers(&self, host: &str, port: Option<u16>) -> bool {
        self.host.eq_ignore_ascii_case(host) && (self.port.is_none() || self.port == port)
    }
}

fn parse(url: &str) -> Result<Url, EgressError> {
    if url.len() > LONGEST_URL {
        return Err(EgressError::Address("it is too long"));
    }
    let url = Url::parse(url).map_err(|_| EgressError::Address("it cannot be read"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(EgressError::Scheme(url.scheme().to_owned()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(EgressError::Address("it carries a user name"));
    }
    Ok(url)
}

fn next(url: &Url, headers: &HeaderMap) -> Result<Url, EgressError> {
    let location = headers
        .get(header::LOCATION)
        .and_then(|value| value.to_str().ok())
        .ok_or(EgressError::Redirects)?;
    let next = parse(url.join(location).map_err(|_| EgressError::Redirects)?.as_str())?;
    if url.scheme() == "https" && next.scheme() == "http" {
        return Err(EgressError::Scheme("http after https".to_owned()));
    }
    Ok(next)
}

fn failed(host: String, error: reqwest::Error) -> EgressError {
    let mut below = std::error::Error::source(&error);
    while let Some(cause) = below {
        if cause.is::<Refused>() {
            return EgressError::Forbidden(host);
        }
        below = cause.source();
    }
    // The address may hold a signature.
    EgressError::Unreachable {
        host,
        source: error.without_url(),
    }
}

/// A body that arrives.
pub struct Download {
    response: reqwest::Response,
    host: String,
    deadline: Instant,
    limits: Limits,
    received: u64,
}

impl Download {
    /// What the server calls the content; sniff before believing.
    pub fn content_type(&self) -> Option<&str> {
        self.response.headers().get(header::CONTENT_TYPE)?.to_str().ok()
    }

    /// How many bytes the server promises.
    pub fn content_length(&self) -> Option<u64> {
        self.response.content_length()
    }

    /// The next piece; `None` at the end. Cancel safe.
    ///
    /// # Errors
    /// [`EgressError::TooLarge`], [`EgressError::TooSlow`], [`EgressError::Unreachable`].
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, EgressError> {
        let chunk = match tokio::time::timeout_at(self.deadline, self.response.chunk()).await {
            Err(_) => return Err(EgressError::TooSlow(self.limits.timeout)),
            Ok(Err(error)) => return Err(failed(self.host.clone(), error)),
            Ok(Ok(chunk)) => chunk,
        };
        let length = chunk.as_ref().map_or(0, Bytes::len);
        self.received = self
            .received
            .saturating_add(u64::try_from(length).unwrap_or(u64::MAX));
        if self.received > self.limits.max_bytes {
            return Err(EgressError::TooLarge(self.limits.max_bytes));
        }
        Ok(chunk)
    }
}

/// A name has only addresses that are not public.
#[derive(Debug, thiserror::Error)]
#[error("the name leads to no public address")]
struct Refused;

/// Resolves names to their public addresses only.
struct Guard;

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let public: Vec<_> = found.filter(|address| !forbidden(address.ip())).collect();
            if public.is_empty() {
                return Err(Refused.into());
            }
            let addresses: Addrs = Box::new(public.into_iter());
            Ok(addresses)
        })
    }
}

/// A client for base addresses that the operator configured: any range, the system's proxy, redirects followed.
///
/// # Errors
/// [`EgressError::Client`].
pub fn plain_client() -> Result<reqwest::Client, EgressError> {
    install_crypto();
    reqwest::Client::builder()
        .user_agent(AGENT)
        .connect_timeout(CONNECT_TIMEOUT)
        .build()
        .map_err(EgressError::Client)
}

/// Chooses the process's TLS implementation, once; later calls do nothing. Without it no HTTPS client can be made.
pub fn install_crypto() {
    // An error means that one is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

#[cfg(test)]
mod tests;

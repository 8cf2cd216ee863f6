//! The connection to one provider, which all adapters that speak HTTP share.
//!
//! [`Link`] knows the address, the key and the limits; [`send`] carries a paid request to an answer and repeats it only
//! where nothing can have come of it; [`answer`] reads bodies with a limit; [`media`] decodes and fetches outputs;
//! [`refusal`] names refusals by their status and words; [`sse`] cuts streams. What a provider's JSON means is not here.

mod answer;
mod media;
mod refusal;
mod send;
mod sse;

use std::time::Duration;

use atelier_common::component::BuildError;
use atelier_common::egress::{self, Egress};
use reqwest::RequestBuilder;
use reqwest::redirect::Policy;
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use crate::provider::{Class, Failure};
use crate::settings::Remote;

pub(crate) use answer::{Reply, content_type, retry_after};
pub(crate) use media::{address, bad, base64_of, picture, references, sniffed};
pub(crate) use refusal::{by_status, refuses_content};
pub(crate) use send::{Habits, Refusal, cancelled};
pub(crate) use sse::Cutter;

/// Where the key goes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Auth {
    /// `Authorization: Bearer <key>`.
    Bearer,
    /// A header of the provider's own.
    Header(&'static str),
}

/// The connection to one provider.
pub(crate) struct Link {
    provider: &'static str,
    /// The address of the API; `None` when there is none.
    base: Option<Url>,
    key: Option<SecretString>,
    auth: Auth,
    client: reqwest::Client,
    egress: Egress,
    first_pause: Duration,
    longest_wait: Duration,
    max_media_bytes: u64,
}

impl Link {
    /// A connection by its settings. `own` is the provider's own address, which counts when the settings name none and
    /// there is a key.
    ///
    /// # Errors
    /// When the address is not one, or the HTTP client cannot be made.
    pub(crate) fn new(
        provider: &'static str,
        own: &str,
        auth: Auth,
        settings: &Remote,
    ) -> Result<Self, BuildError> {
        let key = settings
            .api_key
            .clone()
            .filter(|key| !key.expose_secret().is_empty());
        let base = match (settings.base_url.trim().trim_end_matches('/'), &key) {
            ("", None) => None,
            ("", Some(_)) => Some(own),
            (other, _) => Some(other),
        };
        let base = base
            .map(|base| Url::parse(&format!("{base}/")))
            .transpose()
            .map_err(|error| {
                BuildError::new(format!("provider.{provider}.base_url is not an address"), error)
            })?;
        egress::install_crypto();
        let client = reqwest::Client::builder()
            .user_agent(concat!("atelier/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(settings.connect_timeout)
            .read_timeout(settings.read_timeout)
            .redirect(Policy::none())
            .no_proxy()
            .build()
            .map_err(|error| BuildError::new(format!("cannot make the http client for {provider}"), error))?;
        let egress = Egress::new(&settings.allowed_hosts)
            .map_err(|error| BuildError::new("cannot make the guarded http client", error))?;
        Ok(Self {
            provider,
            base,
            key,
            auth,
            client,
            egress,
            first_pause: settings.first_pause,
            longest_wait: settings.longest_wait,
            max_media_bytes: settings.max_media_bytes,
        })
    }

    /// The address of the API, when there is one.
    pub(crate) fn base(&self) -> Option<&Url> {
        self.base.as_ref()
    }

    /// The client, for building requests to the provider's own host.
    pub(crate) fn client(&self) -> &reqwest::Client {
        &self.client
    }

    /// Largest picture, sound or film that is taken, in bytes.
    pub(crate) fn max_media_bytes(&self) -> u64 {
        self.max_media_bytes
    }

    /// The address of a call: a path below the API's address, or an absolute path on its host.
    pub(crate) fn url(&self, path: &str) -> Result<Url, Failure> {
        let base = self.base.as_ref().and_then(|base| base.join(path).ok());
        base.ok_or_else(|| Failure::new(Class::Auth, "the provider has no address").unsent())
    }

    /// The key goes to the provider's own host only (providers specification 0.3, R-11).
    pub(crate) fn authorised(&self, request: RequestBuilder) -> RequestBuilder {
        match (self.secret(), self.auth) {
            ("", _) => request,
            (key, Auth::Bearer) => request.bearer_auth(key),
            (key, Auth::Header(name)) => request.header(name, key),
        }
    }

    /// A message without the key, media and signed addresses.
    pub(crate) fn scrub(&self, message: &str) -> String {
        crate::seam::redact::scrub(message, &[self.secret()])
    }

    fn secret(&self) -> &str {
        self.key.as_ref().map_or("", |key| key.expose_secret())
    }
}

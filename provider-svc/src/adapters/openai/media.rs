//! Media of answers: decoding, fetching by address, and naming their type by their first bytes.

use atelier_common::egress::{EgressError, Limits};
use atelier_proto::value::{Map, MediaRef, Value};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use bytes::Bytes;
use url::Url;

use super::OpenAi;
use crate::adapters::web::{ReadError, bad, content_type, gone, read};
use crate::provider::{Class, Failure, Media};

/// Redirects that are followed on the way to media.
const MAX_REDIRECTS: usize = 5;

impl OpenAi {
    /// The bytes of base64 text, with or without line ends.
    pub(super) fn decoded(&self, text: &str) -> Result<Bytes, Failure> {
        if text.len() as u64 / 4 * 3 > self.settings.max_media_bytes {
            return Err(bad("the output is too large"));
        }
        let text: String = text
            .chars()
            .filter(|letter| !letter.is_ascii_whitespace())
            .collect();
        let bytes = STANDARD.decode(&text).or_else(|_| URL_SAFE.decode(&text));
        let bytes = bytes.map_err(|_| bad("the output is not base64"))?;
        if bytes.is_empty() {
            Err(bad("the output is empty"))
        } else {
            Ok(bytes.into())
        }
    }

    /// Fetches media by their address. The key goes along to the provider's own host only, everything else goes
    /// through the guard.
    pub(super) async fn fetched(&self, address: &str) -> Result<Bytes, Failure> {
        let base = self.url("")?;
        let mut url = base
            .join(address)
            .map_err(|_| bad("the output has no usable address"))?;
        for _ in 0..MAX_REDIRECTS {
            if !same_host(&url, &base) {
                return self.guarded(&url).await;
            }
            let response = self.authorised(self.client.get(url.clone())).send().await;
            let response = response
                .map_err(|_| Failure::new(Class::ProviderTransient, "the output cannot be fetched"))?;
            if response.status().is_redirection() {
                let next = response
                    .headers()
                    .get("location")
                    .and_then(|value| value.to_str().ok());
                url = next
                    .and_then(|next| url.join(next).ok())
                    .ok_or_else(|| bad("the output is nowhere"))?;
                continue;
            }
            if !response.status().is_success() {
                return Err(gone(response.status().as_u16()));
            }
            if content_type(response.headers()).starts_with("text/html") {
                return Err(bad("the output is a page"));
            }
            let limit = usize::try_from(self.settings.max_media_bytes).unwrap_or(usize::MAX);
            return match read(response, limit).await {
                Ok(bytes) if bytes.is_empty() => Err(bad("the output is empty")),
                Ok(bytes) => Ok(bytes),
                Err(ReadError::TooLarge) => Err(bad("the output is too large")),
                Err(ReadError::Broken) => Err(Failure::new(Class::ProviderTransient, "the output broke off")),
            };
        }
        Err(bad("the output redirects too often"))
    }

    async fn guarded(&self, url: &Url) -> Result<Bytes, Failure> {
        let limits = Limits {
            max_bytes: self.settings.max_media_bytes,
            ..Limits::default()
        };
        let fetched = self
            .egress
            .get(url.as_str(), &limits)
            .await
            .map_err(|error| match error {
                EgressError::Status { status, .. } => gone(status.as_u16()),
                error if error.transient() => Failure::new(Class::ProviderTransient, error.to_string()),
                error => bad(error.to_string()),
            })?;
        if fetched.bytes.is_empty() {
            Err(bad("the output is empty"))
        } else {
            Ok(fetched.bytes)
        }
    }

    /// The bytes of a reference in a request: inline, as a `data:` URL, or by an address.
    pub(super) async fn input(&self, media: &MediaRef) -> Result<Bytes, Failure> {
        if let Some(data) = &media.data {
            return Ok(data.clone());
        }
        let unusable = |what: &str| Failure::new(Class::InvalidInput, what.to_owned()).unsent();
        if let Some((head, payload)) = media
            .uri
            .strip_prefix("data:")
            .and_then(|rest| rest.split_once(','))
        {
            let bytes = if head.ends_with(";base64") {
                STANDARD.decode(payload).ok()
            } else {
                None
            };
            return bytes
                .map(Into::into)
                .ok_or_else(|| unusable("a data address in the parameters cannot be read"));
        }
        let url =
            Url::parse(&media.uri).map_err(|_| unusable("a reference in the parameters has no bytes"))?;
        self.guarded(&url)
            .await
            .map_err(|failure| unusable(&failure.message))
    }
}

/// All references below a parameter.
pub(super) fn references(value: Option<&Value>) -> Vec<&MediaRef> {
    match value {
        Some(Value::Media(media)) => vec![media.as_ref()],
        Some(Value::List(values)) => values.iter().filter_map(Value::as_media).collect(),
        Some(_) | None => Vec::new(),
    }
}

/// A picture with its type, by its first bytes.
pub(super) fn picture(bytes: Bytes, stated: Option<&str>) -> Media {
    let mime = sniffed(&bytes).unwrap_or(match stated {
        Some("jpeg" | "jpg") => "image/jpeg",
        Some("webp") => "image/webp",
        Some(_) | None => "image/png",
    });
    Media {
        kind: "image",
        bytes,
        mime: mime.to_owned(),
        extra: Map::new(),
    }
}

pub(super) fn sniffed(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        _ => None,
    }
}

fn same_host(a: &Url, b: &Url) -> bool {
    a.scheme() == b.scheme() && a.host() == b.host() && a.port_or_known_default() == b.port_or_known_default()
}

//! What adapters of providers with jobs have in common: settings read, a paid request sent again only where nothing came
//! of it, and media named by their bytes.

use std::time::Duration;

use atelier_common::component::BuildError;
use atelier_proto::value::Map;
use bytes::Bytes;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::provider::{Capability, Class, Failure, Media, Model};
use crate::settings::{Manners, Offer};

/// Times that a request is sent again after a refusal for its speed.
const MAX_REFUSALS: u32 = 3;
/// Times that a connection is tried again.
const MAX_CONNECTS: u32 = 2;

/// An address out of the settings, ready to be joined to.
pub(super) fn address(name: &'static str, text: &str) -> Result<Url, BuildError> {
    Url::parse(&format!("{}/", text.trim().trim_end_matches('/')))
        .map_err(|error| BuildError::new(format!("{name} is not an address"), error))
}

/// Models out of the settings.
pub(super) fn models(name: &'static str, offers: &[Offer]) -> Result<Vec<Model>, BuildError> {
    let model = |offer: &Offer| {
        let capabilities = offer.capabilities.iter().map(|capability| {
            Capability::parse(capability)
                .ok_or_else(|| BuildError::invalid(format!("{name}: {capability} is no capability")))
        });
        Ok(Model {
            id: offer.id.clone(),
            name: offer.id.clone(),
            capabilities: capabilities.collect::<Result<_, _>>()?,
        })
    };
    offers.iter().map(model).collect()
}

/// How often a paid request may still be sent again.
pub(super) struct Tries<'a> {
    manners: &'a Manners,
    cancel: &'a CancellationToken,
    connects: u32,
    refusals: u32,
}

impl<'a> Tries<'a> {
    pub(super) fn new(manners: &'a Manners, cancel: &'a CancellationToken) -> Self {
        Self {
            manners,
            cancel,
            connects: 0,
            refusals: 0,
        }
    }

    /// The connection could not be made, so nothing was sent. Waits, and says whether to try again.
    pub(super) async fn connect(&mut self) -> Result<bool, Failure> {
        let again = self.connects < MAX_CONNECTS;
        if again {
            wait(self.cancel, self.doubled(self.connects)).await?;
            self.connects += 1;
        }
        Ok(again)
    }

    /// The request was refused for its speed, so there is no job. Waits as long as was asked for, and says whether to try
    /// again; not when the wait is longer than is bearable.
    pub(super) async fn refused(&mut self, asked: Option<Duration>) -> Result<bool, Failure> {
        let pause = asked.unwrap_or_else(|| self.doubled(self.refusals));
        let again = self.refusals < MAX_REFUSALS && pause <= self.manners.longest_wait;
        if again {
            wait(self.cancel, pause.max(self.manners.first_pause)).await?;
            self.refusals += 1;
        }
        Ok(again)
    }

    fn doubled(&self, times: u32) -> Duration {
        self.manners.first_pause.saturating_mul(1 << times.min(16))
    }
}

/// Waits unless the call is cancelled, in which case nothing was sent.
pub(super) async fn wait(cancel: &CancellationToken, pause: Duration) -> Result<(), Failure> {
    cancel
        .run_until_cancelled(tokio::time::sleep(pause))
        .await
        .ok_or_else(|| Failure::new(Class::Cancelled, "the call was cancelled").unsent())
}

/// A medium with its type: by its first bytes, else as the provider says, else as its kind has it.
pub(super) fn medium(kind: &'static str, bytes: Bytes, stated: Option<&str>, extra: Map) -> Media {
    let mime = match (sniffed(&bytes), stated, kind) {
        (Some(mime), ..) => mime,
        (None, Some(stated), _) if stated.contains('/') && stated != "application/octet-stream" => stated,
        (None, _, "image") => "image/png",
        (None, _, "audio") => "audio/mpeg",
        (None, _, "video") => "video/mp4",
        (None, _, "model_3d") => "model/gltf-binary",
        (None, ..) => "application/octet-stream",
    };
    Media {
        kind,
        mime: mime.to_owned(),
        bytes,
        extra,
    }
}

fn sniffed(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E', ..] => Some("audio/wav"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'g', b'l', b'T', b'F', ..] => Some("model/gltf-binary"),
        [_, _, _, _, b'f', b't', b'y', b'p', ..] => Some("video/mp4"),
        [b'I', b'D', b'3', ..] | [0xff, 0xfb, ..] => Some("audio/mpeg"),
        _ => None,
    }
}

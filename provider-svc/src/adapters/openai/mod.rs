//! OpenAI, and any server that speaks its language (providers specification 1 and 17).
//!
//! Every call is synchronous: the id of the request comes with the head of the answer and is recorded before the body is
//! looked at. A request is sent again only when it is certain that nothing came of it ([`http`]). [`chat`], [`embed`], [`images`],
//! [`speech`] and [`transcribe`] are the calls, [`tools`] puts calls of tools together, [`sse`] cuts streams, [`errors`] names failures, [`wire`] is their JSON.

mod chat;
mod embed;
mod errors;
mod http;
mod images;
mod media;
mod speech;
mod sse;
mod tools;
mod transcribe;
mod wire;

use std::time::Duration;

use async_trait::async_trait;
use atelier_common::component::BuildError;
use atelier_common::egress::{self, Egress};
use reqwest::redirect::Policy;
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use crate::provider::{
    Call, Capability, Class, Emit, Failure, Finished, Model, Provider, SeamPermit, Submitted,
};
use crate::seam::receipt::{self, Stated};
use crate::settings;

/// Its id.
pub const ID: &str = "openai";
/// OpenAI's own address.
const OWN_URL: &str = "https://api.openai.com/v1";

/// The adapter.
pub struct OpenAi {
    settings: settings::OpenAi,
    /// The address of the API; `None` when the settings name none and there is no key.
    base: Option<Url>,
    key: Option<SecretString>,
    client: reqwest::Client,
    egress: Egress,
}

impl OpenAi {
    /// An adapter by its settings.
    ///
    /// # Errors
    /// When the address is not one, or the HTTP client cannot be made.
    pub fn new(settings: settings::OpenAi) -> Result<Self, BuildError> {
        let key = settings
            .api_key
            .clone()
            .filter(|key| !key.expose_secret().is_empty());
        let base = match (settings.base_url.trim().trim_end_matches('/'), &key) {
            ("", None) => None,
            ("", Some(_)) => Some(OWN_URL),
            (own, _) => Some(own),
        };
        let base = base
            .map(|base| Url::parse(&format!("{base}/")))
            .transpose()
            .map_err(|error| BuildError::new("provider.openai.base_url is not an address", error))?;
        egress::install_crypto();
        let client = reqwest::Client::builder()
            .user_agent(concat!("atelier/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(settings.connect_timeout)
            .read_timeout(settings.read_timeout)
            .redirect(Policy::none())
            .no_proxy()
            .build()
            .map_err(|error| BuildError::new("cannot make the http client for openai", error))?;
        let egress = Egress::new(&settings.allowed_hosts)
            .map_err(|error| BuildError::new("cannot make the guarded http client", error))?;
        Ok(Self {
            settings,
            base,
            key,
            client,
            egress,
        })
    }

    fn url(&self, path: &str) -> Result<Url, Failure> {
        let base = self.base.as_ref().and_then(|base| base.join(path).ok());
        base.ok_or_else(|| Failure::new(Class::Auth, "the provider has no address").unsent())
    }

    /// Whether it is a server of somebody else, with habits of its own.
    fn compatible(&self) -> bool {
        self.base
            .as_ref()
            .is_some_and(|base| base.host_str() != Some("api.openai.com"))
    }

    fn secret(&self) -> &str {
        self.key.as_ref().map_or("", |key| key.expose_secret())
    }

    /// A message without the key, media and signed addresses.
    fn scrub(&self, message: &str) -> String {
        crate::seam::redact::scrub(message, &[self.secret()])
    }
}

#[async_trait]
impl Provider for OpenAi {
    fn id(&self) -> &'static str {
        ID
    }

    fn missing(&self) -> Option<String> {
        let missing = "set provider.openai.api_key (OPENAI_API_KEY), or provider.openai.base_url for a server of your own";
        self.base.is_none().then(|| missing.to_owned())
    }

    fn models(&self) -> Vec<Model> {
        let of = |names: &[String], capabilities: &[Capability]| -> Vec<Model> {
            let model = |name: &String| Model {
                id: name.clone(),
                name: name.clone(),
                capabilities: capabilities.to_vec(),
            };
            names.iter().map(model).collect()
        };
        let pictures = [
            Capability::TextToImage,
            Capability::ImageToImage,
            Capability::Inpainting,
        ];
        let mut models = of(&self.settings.image_models, &pictures);
        models.extend(of(&self.settings.speech_models, &[Capability::TextToSpeech]));
        models.extend(of(&self.settings.chat_models, &[Capability::GenerateMessage]));
        models.extend(of(
            &self.settings.transcription_models,
            &[Capability::AutomaticSpeechRecognition],
        ));
        models.extend(of(&self.settings.embedding_models, &[Capability::Embedding]));
        models
    }

    fn takes_any_model(&self) -> bool {
        true
    }

    fn wants_bytes(&self) -> bool {
        true
    }

    async fn submit(&self, _permit: &SeamPermit, call: &Call, emit: &dyn Emit) -> Result<Submitted, Failure> {
        let finished: Finished = match call.capability {
            Capability::TextToImage => self.images(call, emit).await?,
            Capability::ImageToImage | Capability::Inpainting => self.edit(call).await?,
            Capability::TextToSpeech => self.speech(call, emit).await?,
            Capability::GenerateMessage => self.chat(call, emit).await?,
            Capability::Embedding => self.embedding(call).await?,
            Capability::AutomaticSpeechRecognition => self.transcription(call).await?,
            _ => return Err(Failure::new(Class::InvalidInput, "the provider cannot do this").unsent()),
        };
        if self.settings.free {
            // A server at home: a stated zero, not a missing price.
            receipt::record(ID, None, Stated::from_f64(0.0)).await;
        }
        Ok(Submitted::Finished(finished))
    }
}

/// First pause before a request is sent again, and the pause after each further refusal.
fn pause_after(first: Duration, refusals: u32) -> Duration {
    first
        .saturating_mul(2_u32.saturating_pow(refusals.min(16)))
        .min(Duration::from_secs(8))
}

//! OpenAI, and any server that speaks its language (providers specification 1 and 17).
//!
//! Calls are synchronous: the id of the request comes with the head of the answer and is recorded before the body is
//! looked at. Films alone are jobs. [`chat`], [`embed`], [`images`], [`speech`] and [`transcribe`] are the calls,
//! [`films`] the jobs, [`tools`] puts calls of tools together, [`errors`] names failures, [`wire`] is their JSON.

mod chat;
mod embed;
mod errors;
mod films;
mod images;
mod speech;
mod tools;
mod transcribe;
mod wire;

use std::sync::Arc;

use async_trait::async_trait;
use atelier_common::component::BuildError;
use reqwest::StatusCode;
use reqwest::header::HeaderMap;

use self::errors::{classify, said};
use self::films::Films;
use super::http::{Auth, Habits, Link, Refusal, Reply};
use super::jobs::Jobs;
use crate::pricing::Catalog;
use crate::provider::{
    Call, CancelAnswer, Capability, Class, Emit, Failure, Finished, Model, Polled, Provider, SeamPermit,
    Submitted,
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
    link: Link,
    films: Jobs<Films>,
}

impl OpenAi {
    /// An adapter by its settings.
    ///
    /// # Errors
    /// When the address is not one, or the HTTP client cannot be made.
    pub fn new(settings: settings::OpenAi, catalog: Arc<Catalog>) -> Result<Self, BuildError> {
        let remote = settings.remote();
        Ok(Self {
            link: Link::new(ID, OWN_URL, Auth::Bearer, &remote)?,
            films: Jobs::new(Films, &remote, catalog)?,
            settings,
        })
    }

    /// Whether it is a server of somebody else, with habits of its own.
    fn compatible(&self) -> bool {
        self.link
            .base()
            .is_some_and(|base| base.host_str() != Some("api.openai.com"))
    }

    /// Sends a request until there is an answer of success.
    async fn send(
        &self,
        call: &Call,
        abandon: bool,
        build: impl Fn() -> Result<reqwest::RequestBuilder, Failure>,
    ) -> Result<reqwest::Response, Failure> {
        self.link.open(call, abandon, self, build).await
    }
}

/// The id that the head of an answer states.
fn id_of(headers: &HeaderMap) -> Option<String> {
    let id = headers.get("x-request-id")?.to_str().ok()?;
    Some(id.to_owned())
}

impl Habits for OpenAi {
    fn request_id(&self, headers: &HeaderMap) -> Option<String> {
        id_of(headers)
    }

    fn refusal(&self, reply: &Reply) -> Option<Refusal> {
        if reply.status.is_success() {
            return None;
        }
        let failure = classify(reply.status, &said(&reply.body));
        Some(
            if self.compatible() && reply.status == StatusCode::SERVICE_UNAVAILABLE {
                Refusal::passing(failure)
            } else {
                Refusal::new(failure)
            },
        )
    }
}

#[async_trait]
impl Provider for OpenAi {
    fn id(&self) -> &'static str {
        ID
    }

    fn missing(&self) -> Option<String> {
        let missing = "set provider.openai.api_key (OPENAI_API_KEY), or provider.openai.base_url for a server of your own";
        self.link.base().is_none().then(|| missing.to_owned())
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
        let films = [Capability::TextToVideo, Capability::ImageToVideo];
        models.extend(of(&self.settings.video_models, &films));
        models.extend(of(&self.settings.embedding_models, &[Capability::Embedding]));
        models
    }

    fn takes_any_model(&self) -> bool {
        true
    }

    fn wants_bytes(&self) -> bool {
        true
    }

    async fn submit(&self, permit: &SeamPermit, call: &Call, emit: &dyn Emit) -> Result<Submitted, Failure> {
        let finished: Finished = match call.capability {
            Capability::TextToImage => self.images(call, emit).await?,
            Capability::ImageToImage | Capability::Inpainting => self.edit(call).await?,
            Capability::TextToSpeech => self.speech(call, emit).await?,
            Capability::GenerateMessage => self.chat(call, emit).await?,
            Capability::Embedding => self.embedding(call).await?,
            Capability::AutomaticSpeechRecognition => self.transcription(call).await?,
            Capability::TextToVideo | Capability::ImageToVideo => {
                return self.films.submit(permit, call, emit).await;
            }
            _ => return Err(Failure::new(Class::InvalidInput, "the provider cannot do this").unsent()),
        };
        if self.settings.free {
            // A server at home: a stated zero, not a missing price.
            receipt::record(ID, None, Stated::from_f64(0.0)).await;
        }
        Ok(Submitted::Finished(finished))
    }

    async fn poll(&self, permit: &SeamPermit, resume: &str, emit: &dyn Emit) -> Result<Polled, Failure> {
        self.films.poll(permit, resume, emit).await
    }

    async fn fetch(&self, permit: &SeamPermit, result: &str) -> Result<Finished, Failure> {
        self.films.fetch(permit, result).await
    }

    async fn cancel(&self, permit: &SeamPermit, resume: &str) -> CancelAnswer {
        self.films.cancel(permit, resume).await
    }
}

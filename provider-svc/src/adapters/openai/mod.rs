//! stub
use async_trait::async_trait;
use atelier_common::component::BuildError;
use crate::provider::*;
use crate::settings;
pub struct OpenAi {}
impl OpenAi {
    pub fn new(_settings: settings::OpenAi) -> Result<Self, BuildError> { Ok(Self {}) }
}
#[async_trait]
impl Provider for OpenAi {
    fn id(&self) -> &'static str { "openai" }
    fn missing(&self) -> Option<String> { Some("no key".to_owned()) }
    fn models(&self) -> Vec<Model> { vec![] }
    async fn submit(&self, _permit: &SeamPermit, _call: &Call, _emit: &dyn Emit) -> Result<Submitted, Failure> { Err(Failure::unknown_submit("x")) }
}

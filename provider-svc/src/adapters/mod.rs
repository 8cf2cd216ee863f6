//! Adapters to providers, one folder or file each. They know nothing of rows, callers and messages.
//!
//! [`http`] is the connection that those on the network share, [`jobs`] the engine behind all that answer in JSON.

mod http;
mod jobs;
mod tasks;
mod web;

pub mod atlascloud;
pub mod automatic1111;
pub mod comfyui;
pub mod elevenlabs;
pub mod evolink;
pub mod fal;
pub mod gemini;
pub mod huggingface;
pub mod kie;
pub mod meshy;
pub mod minimax;
pub mod openai;
pub mod replicate;
pub mod reve;
pub mod rodin;
pub mod sketch;
pub mod together;
pub mod topaz;
pub mod xai;

use std::sync::Arc;

use atelier_common::component::BuildError;

use self::jobs::{Dialect, Jobs};
use crate::pricing::Catalog;
use crate::provider::Provider;
use crate::settings::{Remote, Settings};

/// All providers that a dialect describes, by the settings.
///
/// # Errors
/// When an address is not one, or an HTTP client cannot be made.
pub fn remotes(settings: &Settings, catalog: &Arc<Catalog>) -> Result<Vec<Arc<dyn Provider>>, BuildError> {
    fn of<D: Dialect>(
        dialect: D,
        settings: &Remote,
        catalog: &Arc<Catalog>,
    ) -> Result<Arc<dyn Provider>, BuildError> {
        Ok(Arc::new(Jobs::new(dialect, settings, catalog.clone())?))
    }
    Ok(vec![
        of(atlascloud::AtlasCloud, &settings.atlascloud, catalog)?,
        of(automatic1111::Automatic1111, &settings.automatic1111, catalog)?,
        of(comfyui::ComfyUi, &settings.comfyui, catalog)?,
        of(elevenlabs::ElevenLabs, &settings.elevenlabs, catalog)?,
        of(evolink::Evolink, &settings.evolink, catalog)?,
        of(gemini::Gemini, &settings.gemini, catalog)?,
        of(huggingface::HuggingFace, &settings.huggingface, catalog)?,
        of(meshy::Meshy, &settings.meshy, catalog)?,
        of(minimax::MiniMax, &settings.minimax, catalog)?,
        of(replicate::Replicate, &settings.replicate, catalog)?,
        of(reve::Reve, &settings.reve, catalog)?,
        of(rodin::Rodin, &settings.rodin, catalog)?,
        of(together::Together, &settings.together, catalog)?,
        of(topaz::Topaz, &settings.topaz, catalog)?,
        of(xai::Xai, &settings.xai, catalog)?,
    ])
}

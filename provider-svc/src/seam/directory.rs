//! The providers by id.

use std::collections::BTreeMap;
use std::sync::Arc;

use atelier_proto::provider::v1::Model;

use crate::error::Error;
use crate::pricing::Catalog;
use crate::provider::{Capability, Provider};

/// All providers.
#[derive(Clone, Default)]
pub struct Directory {
    providers: BTreeMap<&'static str, Arc<dyn Provider>>,
}

impl Directory {
    /// Adds a provider; one with the same id is replaced.
    pub fn add(&mut self, provider: Arc<dyn Provider>) {
        self.providers.insert(provider.id(), provider);
    }

    /// The provider of an id.
    ///
    /// # Errors
    /// [`Error::UnknownProvider`].
    pub fn get(&self, id: &str) -> Result<Arc<dyn Provider>, Error> {
        self.providers
            .get(id)
            .cloned()
            .ok_or_else(|| Error::UnknownProvider(id.to_owned()))
    }

    /// All models, by provider and id.
    #[must_use]
    pub fn models(
        &self,
        provider: Option<&str>,
        capability: Option<Capability>,
        catalog: &Catalog,
    ) -> Vec<Model> {
        let mut models = Vec::new();
        for own in self
            .providers
            .values()
            .filter(|own| provider.is_none_or(|id| id == own.id()))
        {
            let missing = own.missing();
            for model in own.models() {
                if capability.is_some_and(|wanted| !model.capabilities.contains(&wanted)) {
                    continue;
                }
                models.push(Model {
                    provider: own.id().to_owned(),
                    price: catalog
                        .get(own.id(), &model.id)
                        .map(crate::pricing::Entry::label)
                        .unwrap_or_default(),
                    capabilities: model
                        .capabilities
                        .iter()
                        .map(|own| own.as_str().to_owned())
                        .collect(),
                    model: model.id,
                    name: model.name,
                    available: missing.is_none(),
                    unavailable_reason: missing.clone().unwrap_or_default(),
                });
            }
        }
        models.sort_by(|a, b| (&a.provider, &a.model).cmp(&(&b.provider, &b.model)));
        models
    }
}

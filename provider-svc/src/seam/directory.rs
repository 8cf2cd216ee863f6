//! The providers by id.

use std::collections::BTreeMap;
use std::sync::Arc;

use atelier_proto::provider::v1::Model;
use atelier_proto::tracker::v1::ProviderSeat;

use crate::error::Error;
use crate::pricing::Catalog;
use crate::provider::{Capability, Provider};
use crate::settings::StandIn;

/// The provider that works offline and needs no key.
const OFFLINE: &str = crate::adapters::sketch::ID;

/// All providers.
#[derive(Clone, Default)]
pub struct Directory {
    providers: BTreeMap<&'static str, Arc<dyn Provider>>,
    stand_in: StandIn,
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
        let canonical = match id {
            // What it is called elsewhere.
            "fal" => crate::adapters::fal::ID,
            id => id,
        };
        self.providers
            .get(canonical)
            .cloned()
            .ok_or_else(|| Error::UnknownProvider(id.to_owned()))
    }

    /// Says whether the offline provider stands in for those that cannot be called.
    #[must_use]
    pub fn with_stand_in(mut self, stand_in: StandIn) -> Self {
        self.stand_in = stand_in;
        self
    }

    /// Who carries a request out, and with which model (empty: its default). An empty name asks for any provider that can:
    /// a configured one before the offline one.
    ///
    /// # Errors
    /// [`Error::UnknownProvider`], [`Error::MissingCredential`], or that nobody has the capability.
    pub fn choose(
        &self,
        name: &str,
        model: String,
        capability: Capability,
    ) -> Result<(Arc<dyn Provider>, String), Error> {
        if name.is_empty() {
            return self.any(&model, capability).map(|provider| (provider, model));
        }
        let refused = match self.get(name) {
            Err(unknown) => unknown,
            Ok(provider) => match provider.missing() {
                None => return Ok((provider, model)),
                Some(missing) => Error::MissingCredential {
                    provider: name.to_owned(),
                    missing,
                },
            },
        };
        match self.providers.get(OFFLINE) {
            // The model is one of the provider that is not here.
            Some(offline) if self.stands_in() && can(offline.as_ref(), capability) => {
                Ok((Arc::clone(offline), String::new()))
            }
            _ => Err(refused),
        }
    }

    fn any(&self, model: &str, capability: Capability) -> Result<Arc<dyn Provider>, Error> {
        let able = |provider: &&Arc<dyn Provider>| {
            provider.missing().is_none() && provider.volunteers() && can(provider.as_ref(), capability)
        };
        // Who lists the model comes before those that would try any.
        let rank = |provider: &Arc<dyn Provider>| {
            let lists = || provider.models().iter().any(|own| own.id == model);
            match () {
                () if model.is_empty() || lists() => 0,
                () if provider.takes_any_model() => 1,
                () => 2,
            }
        };
        let mut able: Vec<_> = self.providers.values().filter(able).collect();
        able.sort_by_key(|provider| (rank(provider), provider.id() == OFFLINE));
        able.first()
            .map(|provider| Arc::clone(provider))
            .ok_or_else(|| Error::UnknownCapability {
                capability: capability.as_str().to_owned(),
                who: "no provider".to_owned(),
            })
    }

    fn stands_in(&self) -> bool {
        match self.stand_in {
            StandIn::Always => true,
            StandIn::Never => false,
            StandIn::Auto => self
                .providers
                .values()
                .all(|provider| provider.id() == OFFLINE || provider.missing().is_some()),
        }
    }

    /// The providers that can be called here, as the ledger is told of them.
    #[must_use]
    pub fn seats(&self) -> Vec<ProviderSeat> {
        self.providers
            .values()
            .map(|provider| ProviderSeat {
                provider: provider.id().to_owned(),
                resumable: provider.resumable() && provider.missing().is_none(),
                credential: provider.credential(),
            })
            .collect()
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

fn can(provider: &dyn Provider, capability: Capability) -> bool {
    provider
        .models()
        .iter()
        .any(|model| model.capabilities.contains(&capability))
}

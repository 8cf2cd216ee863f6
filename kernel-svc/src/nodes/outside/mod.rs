//! Types that have no code of their own: those that only call a model of a provider, driven by their line in the catalog,
//! and those that need something from outside.
//!
//! What lives here: telling the two apart ([`register`]), and one implementation of each. What does not: types with code, which
//! always win, and workers, whose declaration of a type wins over what is here.

mod capability;
mod connector;
mod provider;

use std::sync::Arc;

use crate::node::{Executor, NodeMeta, Registry, Runner};

/// Namespaces of types that are models of a provider; the first part of the type names it.
const PROVIDERS: &[&str] = &[
    "anthropic",
    "elevenlabs",
    "fal",
    "gemini",
    "groq",
    "huggingface",
    "kie",
    "meshy",
    "minimax",
    "mistral",
    "openai",
    "replicate",
    "together",
    "topaz",
    "xai",
];

/// Registers a type that has no code.
pub(super) fn register(registry: &mut Registry, meta: &NodeMeta) {
    let mut meta = meta.clone();
    meta.runner = runner(&meta);
    if meta.description.is_empty() {
        meta.description = describe(&meta);
    }
    let known = Arc::new(meta.clone());
    let factory = move || -> Box<dyn Executor> {
        let meta = Arc::clone(&known);
        match meta.runner {
            Runner::Provider => Box::new(provider::Call(meta)),
            Runner::Connector | Runner::BuiltIn => Box::new(connector::Missing(meta)),
        }
    };
    registry.register(meta, Arc::new(factory));
}

/// A model gives something for whole inputs; what reads a live stream is a session, which no single call is.
fn runner(meta: &NodeMeta) -> Runner {
    let known = PROVIDERS.contains(&provider_of(&meta.node_type));
    let session = meta.streaming_input == Some(true) || meta.outputs.is_empty();
    if known && !session {
        Runner::Provider
    } else {
        Runner::Connector
    }
}
fn provider_of(node_type: &str) -> &str {
    node_type.split('.').next().unwrap_or_default()
}
fn describe(meta: &NodeMeta) -> String {
    let gives = meta
        .outputs
        .iter()
        .map(|output| output.name.as_str())
        .collect::<Vec<_>>()
        .join(", ");
    match meta.runner {
        Runner::Provider => format!(
            "Calls the model {} of {}.",
            meta.title,
            provider_of(&meta.node_type)
        ),
        Runner::Connector | Runner::BuiltIn if gives.is_empty() => {
            format!("{}: needs a connector.", meta.title)
        }
        Runner::Connector | Runner::BuiltIn => {
            format!("{}: needs a connector, and gives {gives}.", meta.title)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::{catalog, registry};

    #[test]
    fn every_type_of_the_catalog_is_there_and_says_what_runs_it() {
        let registry = registry();
        for name in catalog::all().keys() {
            let meta = registry.meta(name).expect("a type");
            assert!(
                registry.executor(name).is_some() && meta.description.ends_with('.'),
                "{name}"
            );
        }
        let runner = |name: &str| registry.meta(name).expect("a type").runner;
        assert_eq!(runner("nodetool.agents.Agent"), Runner::BuiltIn);
        assert_eq!(
            runner("replicate.image.generate.Flux_Kontext_Pro"),
            Runner::Provider
        );
        assert_eq!(runner("openai.agents.RealtimeAgent"), Runner::Connector);
        assert_eq!(runner("search.google.GoogleSearch"), Runner::Connector);
    }
}

//! The built-in node types.
//!
//! What lives here: the code of each type by family, and [`registry`], which joins it with the metadata of
//! `catalog/*.jsonl`. What does not: actors, inboxes and correlation (`run/`), and providers (behind the seam).
//!
//! To add a type, give it a line in a file of `catalog/` and its code in a family's `types()`. A line without code is a
//! model of a provider, or needs a connector (`outside/`).

mod args;
mod audio;
mod boolean;
mod catalog;
mod charts;
mod check;
mod code;
mod commands;
mod constants;
mod control;
mod dates;
mod document;
mod files;
mod http;
mod image;
mod inputs;
mod inside;
mod lists;
mod markup;
mod media_files;
mod media_io;
mod media_paths;
#[cfg(test)]
mod media_testing;
mod model3d;
mod models;
mod nlp;
mod outside;
mod sinks;
mod sqlite;
mod svg;
mod table;
mod text;
mod triggers;
mod validate;
mod variables;
mod video;
mod work;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock},
};

use crate::node::{Factory, Registry};

/// All built-in types, in the order of the catalog; made once a process.
#[must_use]
pub fn registry() -> Arc<Registry> {
    static REGISTRY: LazyLock<Arc<Registry>> = LazyLock::new(|| Arc::new(build()));
    Arc::clone(&REGISTRY)
}
fn build() -> Registry {
    let mut registry = Registry::default();
    let mut code: HashMap<&str, Factory> = all().into_iter().collect();
    for (name, meta) in catalog::all() {
        let Some(factory) = code.remove(name.as_str()) else {
            outside::register(&mut registry, meta);
            continue;
        };
        let mut meta = meta.clone();
        if let Some(about) = models::about(name).filter(|_| meta.description.is_empty()) {
            about.clone_into(&mut meta.description);
        }
        registry.register(meta, factory);
    }
    for name in code.keys() {
        tracing::error!(node_type = name, "a node type has no line in the catalog");
    }
    registry
}

fn all() -> code::Types {
    [
        inputs::types(),
        inside::types(),
        constants::types(),
        control::types(),
        text::types(),
        models::types(),
        audio::types(),
        charts::types(),
        image::types(),
        media_files::types(),
        model3d::types(),
        svg::types(),
        video::types(),
        sinks::types(),
        triggers::types(),
        variables::types(),
        boolean::types(),
        commands::types(),
        dates::types(),
        document::types(),
        files::types(),
        http::types(),
        lists::types(),
        markup::types(),
        nlp::types(),
        sqlite::types(),
        table::types(),
        validate::types(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

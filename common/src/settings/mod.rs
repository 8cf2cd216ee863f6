//! Settings in layers: defaults → file (TOML) → environment → flags.
//!
//! A section is one struct. The environment speaks of `[tracker] reconcile.interval` as
//! `ATELIER_TRACKER__RECONCILE__INTERVAL`; a name with `_FILE` behind it gives the path of a file that holds the value.
//! Every layer is checked when it is added, so an error can say which one is wrong. This is the only module that reads
//! the environment.

mod layer;
pub mod secret;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A section of the settings. `deny_unknown_fields` on the struct and everything in it is what catches typos, and
/// `#[serde(default)]` lets a file name only what it changes.
pub trait Settings: Serialize + DeserializeOwned + Default + Clone + Send + Sync + 'static {
    /// The section's name in the file, e.g. `tracker`.
    const SECTION: &'static str;
    /// Second names of variables, with the key each sets: `("ATELIER_SKETCH_DELAY_MS", "sketch.delay_ms")`. The key does
    /// not repeat the section. The regular name wins when both are set.
    const ALIASES: &'static [(&'static str, &'static str)] = &[];
}

/// Why settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The file cannot be read.
    #[error("cannot read {path}", path = .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The file is not TOML.
    #[error("{path} is not valid TOML: {text}", path = .path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Where and what, without the offending line (it may hold a secret).
        text: String,
    },
    /// A key does not exist.
    #[error("{layer} sets unknown key `{key}`, known here: {known}")]
    UnknownKey {
        /// The layer: a file, an environment variable or a flag.
        layer: String,
        /// The whole key, e.g. `tracker.reconcile.intervall`.
        key: String,
        /// The keys that exist at this place.
        known: String,
    },
    /// A value cannot be used.
    #[error("{layer} sets `{key}` to something that cannot be used: {text}")]
    Invalid {
        /// The layer: a file, an environment variable or a flag.
        layer: String,
        /// The key or, when a group of keys disagrees, the group.
        key: String,
        /// What is wrong.
        text: String,
    },
    /// The defaults of the section are not usable; a bug of ours.
    #[error("the defaults of [{section}] cannot be used: {text}")]
    Defaults {
        /// The section.
        section: &'static str,
        /// What is wrong.
        text: String,
    },
}

/// What won, and where it came from.
#[derive(Debug, Clone)]
pub struct Loaded<S> {
    /// The settings.
    pub settings: S,
    /// Key → layer, for every key that is not at its default. Keys do not repeat the section.
    pub origins: BTreeMap<String, String>,
}

impl<S: Settings> Loaded<S> {
    /// The section as commented TOML: every key, its value (secrets as `***`) and the layer that set it.
    pub fn print(&self) -> String {
        layer::print(S::SECTION, &self.settings, &self.origins)
    }
}

/// The layers to read settings from.
#[derive(Debug, Clone, Default)]
pub struct Loader {
    file: Option<PathBuf>,
    environment: BTreeMap<String, String>,
    flags: Vec<(String, String, Value)>,
}

impl Loader {
    /// Defaults and the environment of the process.
    pub fn new() -> Self {
        // A variable that is not Unicode cannot be one of ours.
        let environment = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        Self {
            environment: environment.collect(),
            ..Self::default()
        }
    }

    /// Only the defaults: nothing of the process leaks in. For tests.
    pub fn bare() -> Self {
        Self::default()
    }

    /// Adds a TOML file. A file that is named has to exist.
    #[must_use]
    pub fn file(mut self, path: Option<&Path>) -> Self {
        self.file = path.map(Path::to_owned);
        self
    }

    /// Sets or replaces an environment variable, as seen by this loader only.
    #[must_use]
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.environment.insert(name.into(), value.into());
        self
    }

    /// Sets a key, section first (`process.listen`), from a command-line flag, over all other layers.
    #[must_use]
    pub fn flag(mut self, flag: impl Into<String>, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.flags.push((flag.into(), key.into(), value.into()));
        self
    }

    /// Reads one section.
    ///
    /// # Errors
    /// See [`SettingsError`].
    pub fn load<S: Settings>(&self) -> Result<Loaded<S>, SettingsError> {
        let mut layers = layer::Layers::<S>::new()?;
        if let Some(path) = &self.file
            && let Some(section) = read(path)?.remove(S::SECTION)
        {
            layers.merge(&path.display().to_string(), section)?;
        }
        let prefix = format!("ATELIER_{}__", S::SECTION.to_uppercase());
        let aliased = S::ALIASES.iter().filter_map(|(name, key)| {
            let path = key.split('.').map(str::to_owned).collect::<Vec<_>>();
            self.environment.get(*name).map(|value| (*name, path, value))
        });
        let regular = self.environment.iter().filter_map(|(name, value)| {
            let key = name.strip_prefix(&prefix)?;
            let path = key.split("__").map(str::to_lowercase).collect::<Vec<_>>();
            Some((name.as_str(), path, value))
        });
        for (name, path, value) in aliased.chain(regular) {
            layers.variable(name, path, value)?;
        }
        for (flag, key, value) in &self.flags {
            let path: Vec<_> = key.split('.').map(str::to_owned).collect();
            if let Some((section, path)) = path.split_first()
                && section == S::SECTION
            {
                layers.set(flag, path, [value.clone()])?;
            }
        }
        layers.finish()
    }

    /// Refuses a file with sections that nobody reads. For a program that knows all of them.
    ///
    /// # Errors
    /// [`SettingsError::UnknownKey`] for the first unknown section; reading errors as in [`load`](Self::load).
    pub fn check_sections(&self, known: &[&str]) -> Result<(), SettingsError> {
        let Some(path) = &self.file else { return Ok(()) };
        match read(path)?
            .keys()
            .find(|section| !known.contains(&section.as_str()))
        {
            None => Ok(()),
            Some(section) => Err(SettingsError::UnknownKey {
                layer: path.display().to_string(),
                key: section.clone(),
                known: known.join(", "),
            }),
        }
    }
}

/// Reads one section: defaults → the file, if one is named → the environment.
///
/// # Errors
/// See [`SettingsError`].
pub fn load<S: Settings>(file: Option<&Path>) -> Result<S, SettingsError> {
    Ok(Loader::new().file(file).load::<S>()?.settings)
}

/// An environment variable that is not a setting, such as `CI`; `None` when it is absent, empty or not Unicode.
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn read(path: &Path) -> Result<serde_json::Map<String, Value>, SettingsError> {
    let text = std::fs::read_to_string(path).map_err(|source| SettingsError::Read {
        path: path.to_owned(),
        source,
    })?;
    let table: toml::Table = toml::from_str(&text).map_err(|error: toml::de::Error| {
        let line = error.span().map(|span| {
            text.bytes()
                .take(span.start)
                .filter(|byte| *byte == b'\n')
                .count()
                + 1
        });
        let place = line.map(|line| format!("line {line}: ")).unwrap_or_default();
        SettingsError::Syntax {
            path: path.to_owned(),
            text: format!("{place}{}", error.message()),
        }
    })?;
    Ok(table
        .into_iter()
        .map(|(key, value)| (key, layer::from_toml(value)))
        .collect())
}

#[cfg(test)]
mod tests;

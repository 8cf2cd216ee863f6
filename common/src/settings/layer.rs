//! Merging of layers, one checked step at a time.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::marker::PhantomData;

use serde::Serialize;
use serde_json::{Map, Value};

use super::{Loaded, Settings, SettingsError};

pub(super) struct Layers<S> {
    tree: Value,
    origins: BTreeMap<String, String>,
    section: PhantomData<S>,
}

impl<S: Settings> Layers<S> {
    pub(super) fn new() -> Result<Self, SettingsError> {
        let defaults = |text: String| SettingsError::Defaults {
            section: S::SECTION,
            text,
        };
        let tree = serde_json::to_value(S::default()).map_err(|error| defaults(error.to_string()))?;
        S::deserialize(&tree).map_err(|error| defaults(error.to_string()))?;
        Ok(Self {
            tree,
            origins: BTreeMap::new(),
            section: PhantomData,
        })
    }

    /// Adds a tree of values: at once if that works, else key by key, so that the error can name the key.
    pub(super) fn merge(&mut self, layer: &str, values: Value) -> Result<(), SettingsError> {
        let mut leaves = Vec::new();
        flatten(&mut Vec::new(), values, &mut leaves);
        let mut tree = self.tree.clone();
        let whole = leaves
            .iter()
            .all(|(path, value)| insert(&mut tree, path, value.clone()).is_ok());
        if whole && S::deserialize(&tree).is_ok() {
            self.tree = tree;
            self.origins.extend(
                leaves
                    .into_iter()
                    .map(|(path, _)| (path.join("."), layer.to_owned())),
            );
            return Ok(());
        }
        for (path, value) in leaves {
            self.set(layer, &path, [value])?;
        }
        Ok(())
    }

    /// Adds an environment variable, whose text may mean several things.
    pub(super) fn variable(
        &mut self,
        name: &str,
        mut path: Vec<String>,
        text: &str,
    ) -> Result<(), SettingsError> {
        let mut text = text.to_owned();
        if let Some(plain) = path
            .last()
            .and_then(|last| last.strip_suffix("_file"))
            .map(str::to_owned)
            && self.at(&path).is_none()
        {
            path.pop();
            path.push(plain);
            let file = std::path::PathBuf::from(&text);
            text = std::fs::read_to_string(&file)
                .map_err(|source| SettingsError::Read { path: file, source })?
                .trim_end_matches(['\r', '\n'])
                .to_owned();
        }
        let readings = readings(&text, self.at(&path));
        self.set(name, &path, readings)
    }

    /// Sets one key to the first of several readings of its value that the section accepts.
    pub(super) fn set(
        &mut self,
        layer: &str,
        path: &[String],
        readings: impl IntoIterator<Item = Value>,
    ) -> Result<(), SettingsError> {
        let mut first = None;
        for reading in readings {
            let mut tree = self.tree.clone();
            if let Err(known) = insert(&mut tree, path, reading) {
                return Err(unknown::<S>(layer, path, &known));
            }
            match S::deserialize(&tree) {
                Ok(_) => {
                    self.tree = tree;
                    self.origins.insert(path.join("."), layer.to_owned());
                    return Ok(());
                }
                Err(error) => first = first.or(Some(error.to_string())),
            }
        }
        let text = first.unwrap_or_default();
        if let Some(known) = self.unknown_key(path, &text) {
            return Err(unknown::<S>(layer, path, &known));
        }
        Err(SettingsError::Invalid {
            layer: layer.to_owned(),
            key: full::<S>(path),
            text,
        })
    }

    pub(super) fn finish(self) -> Result<Loaded<S>, SettingsError> {
        let settings = S::deserialize(&self.tree).map_err(|error| SettingsError::Defaults {
            section: S::SECTION,
            text: error.to_string(),
        })?;
        Ok(Loaded {
            settings,
            origins: self.origins,
        })
    }

    fn at(&self, path: &[String]) -> Option<&Value> {
        path.iter()
            .try_fold(&self.tree, |node, key| node.as_object()?.get(key))
    }

    /// The keys beside an unknown one: serde told that a field is unknown, and this path adds a key.
    fn unknown_key(&self, path: &[String], text: &str) -> Option<Vec<String>> {
        if !text.starts_with("unknown field") {
            return None;
        }
        let mut node = &self.tree;
        for key in path {
            let map = node.as_object()?;
            match map.get(key) {
                Some(below) => node = below,
                None => return Some(map.keys().cloned().collect()),
            }
        }
        None
    }
}

fn full<S: Settings>(path: &[String]) -> String {
    format!("{}.{}", S::SECTION, path.join("."))
}

fn unknown<S: Settings>(layer: &str, path: &[String], known: &[String]) -> SettingsError {
    let known = if known.is_empty() {
        "none".to_owned()
    } else {
        known.join(", ")
    };
    SettingsError::UnknownKey {
        layer: layer.to_owned(),
        key: full::<S>(path),
        known,
    }
}

/// Puts a value at a path; the error is the known keys (none) where the path goes through something that is not a group.
fn insert(node: &mut Value, path: &[String], value: Value) -> Result<(), Vec<String>> {
    let Some((key, rest)) = path.split_first() else {
        *node = value;
        return Ok(());
    };
    if node.is_null() {
        *node = Value::Object(Map::new());
    }
    match node.as_object_mut() {
        Some(map) => insert(map.entry(key.clone()).or_insert(Value::Null), rest, value),
        None => Err(Vec::new()),
    }
}

fn flatten(path: &mut Vec<String>, value: Value, leaves: &mut Vec<(Vec<String>, Value)>) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                path.push(key);
                flatten(path, value, leaves);
                path.pop();
            }
        }
        value @ (Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_)) => {
            leaves.push((path.clone(), value));
        }
    }
}

/// What a text may mean, the likeliest first, given what is at its place.
fn readings(text: &str, present: Option<&Value>) -> Vec<Value> {
    let string = Value::String(text.to_owned());
    let json = serde_json::from_str::<Value>(text).ok();
    let list = || {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        Value::Array(parts.map(|part| Value::String(part.to_owned())).collect())
    };
    match present {
        Some(Value::String(_)) => std::iter::once(string).chain(json).collect(),
        Some(Value::Bool(_) | Value::Number(_)) => json.into_iter().chain([string]).collect(),
        Some(Value::Array(_)) => match json {
            Some(json @ Value::Array(_)) => vec![json],
            Some(_) | None => vec![list()],
        },
        Some(Value::Object(_)) => json.into_iter().chain([string]).collect(),
        Some(Value::Null) | None => std::iter::once(string).chain(json).chain([list()]).collect(),
    }
}

pub(super) fn from_toml(value: toml::Value) -> Value {
    match value {
        toml::Value::String(text) => Value::String(text),
        toml::Value::Integer(number) => Value::from(number),
        toml::Value::Float(number) => Value::from(number),
        toml::Value::Boolean(value) => Value::Bool(value),
        toml::Value::Datetime(instant) => Value::String(instant.to_string()),
        toml::Value::Array(values) => Value::Array(values.into_iter().map(from_toml).collect()),
        toml::Value::Table(table) => Value::Object(
            table
                .into_iter()
                .map(|(key, value)| (key, from_toml(value)))
                .collect(),
        ),
    }
}

pub(super) fn print(section: &str, settings: &impl Serialize, origins: &BTreeMap<String, String>) -> String {
    let mut leaves = Vec::new();
    flatten(
        &mut Vec::new(),
        serde_json::to_value(settings).unwrap_or_default(),
        &mut leaves,
    );
    let mut page = format!("[{section}]\n");
    for (path, value) in leaves {
        let key = path.join(".");
        let origin = origins
            .iter()
            .find(|(set, _)| **set == key || key.starts_with(&format!("{set}.")))
            .map_or("default", |(_, layer)| layer.as_str());
        // Writing into a string cannot fail.
        let _ = match value {
            Value::Null => writeln!(page, "# {key} is not set"),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                writeln!(page, "{key} = {value}  # {origin}")
            }
        };
    }
    page
}

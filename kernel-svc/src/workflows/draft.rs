//! What may be saved: every field checked once, at the door, with its limit.

use atelier_proto::{common::v1::MapValue, value::Map};
use prost::Message;
use serde_json::Value as Json;

use crate::{error::Error, graph};

/// Longest id that a caller may choose, in bytes.
const MAX_ID: usize = 128;
/// Longest name, in characters.
const MAX_NAME: usize = 200;
/// Longest description, in bytes.
const MAX_DESCRIPTION: usize = 20_000;
/// Most tags.
const MAX_TAGS: usize = 64;
/// Longest tag, in characters.
const MAX_TAG: usize = 100;
/// Largest settings, in bytes of JSON.
const MAX_SETTINGS: usize = 256 * 1024;
/// Largest parameters, in bytes; and largest other fields of a file, in bytes of JSON.
const MAX_EXTRA: usize = 1024 * 1024;
/// Largest graph, in bytes of JSON.
pub(super) const MAX_GRAPH: usize = 8 * 1024 * 1024;
/// Longest note about a version, in bytes.
const MAX_NOTE: usize = 2_000;
/// Longest idempotency key, in bytes.
const MAX_KEY: usize = 200;
/// What a workflow may be used as.
const RUN_MODES: &[&str] = &["workflow", "chat", "app", "tool", "clip", "layer", "image"];

/// A workflow as somebody wants it saved, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// Name for people.
    pub name: String,
    /// What it does.
    pub description: String,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// Settings, a JSON object.
    pub settings: String,
    /// Values of its inputs.
    pub params: MapValue,
    /// What it is used as.
    pub run_mode: Option<String>,
    /// Other fields of its file, a JSON object.
    pub extra: String,
    /// The graph.
    pub graph: Graph,
    /// About the version.
    pub note: String,
}
/// A graph whose shape is in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    /// It, as JSON.
    pub json: Json,
    /// The same as text.
    pub text: String,
    /// How many nodes it has.
    pub node_count: i64,
}
impl Graph {
    /// Reads a graph: an object with nodes and edges, below `graph` or at the top, each with the fields that it needs.
    ///
    /// # Errors
    /// [`Error::MalformedGraph`] that names what is wrong; [`Error::InvalidField`] when it is too large.
    pub fn read(text: &str) -> Result<Self, Error> {
        // Before it is parsed: a text that is too large costs nothing more.
        let json = sized("graph_json", text, MAX_GRAPH).and_then(|text| {
            serde_json::from_str(text).map_err(|error| Error::MalformedGraph(format!("not JSON: {error}")))
        })?;
        Self::of(json)
    }
    /// The same for JSON that was parsed.
    ///
    /// # Errors
    /// As [`Graph::read`].
    pub fn of(json: Json) -> Result<Self, Error> {
        let json = match json {
            Json::Object(mut object) if object.get("graph").is_some_and(Json::is_object) => {
                object.remove("graph").unwrap_or_default()
            }
            other => other,
        };
        let mut issues = Vec::new();
        let raw =
            graph::load::parse(&json, &mut issues).map_err(|issue| Error::MalformedGraph(issue.message))?;
        if !issues.is_empty() {
            let texts: Vec<&str> = issues.iter().map(|issue| issue.message.as_str()).collect();
            return Err(Error::MalformedGraph(texts.join("; ")));
        }
        let text = json.to_string();
        sized("graph_json", &text, MAX_GRAPH)?;
        let node_count = i64::try_from(raw.nodes.len()).unwrap_or(i64::MAX);
        Ok(Self {
            json,
            text,
            node_count,
        })
    }
}
fn invalid(field: &'static str, wrong: impl Into<String>) -> Error {
    Error::InvalidField {
        field,
        wrong: wrong.into(),
    }
}
fn sized<'a>(field: &'static str, text: &'a str, limit: usize) -> Result<&'a str, Error> {
    if text.len() <= limit {
        return Ok(text);
    }
    Err(invalid(
        field,
        format!("has {} bytes; at most {limit} are allowed", text.len()),
    ))
}
/// The id that a caller chose.
///
/// # Errors
/// It is too long or has control characters.
pub(super) fn id(text: &str) -> Result<&str, Error> {
    if text.len() > MAX_ID || text.chars().any(char::is_control) {
        let wrong = format!("must have at most {MAX_ID} bytes and no control characters");
        return Err(invalid("workflow_id", wrong));
    }
    Ok(text)
}
/// The idempotency key of a caller; none when it is empty.
///
/// # Errors
/// It is too long or has control characters.
pub(super) fn key(text: &str) -> Result<Option<&str>, Error> {
    if text.len() > MAX_KEY || text.chars().any(char::is_control) {
        let wrong = format!("must have at most {MAX_KEY} bytes and no control characters");
        return Err(invalid("idempotency_key", wrong));
    }
    Ok(Some(text).filter(|text| !text.is_empty()))
}
/// A name, without spaces around it.
///
/// # Errors
/// It is empty, too long, or has control characters.
pub(super) fn name(text: &str) -> Result<String, Error> {
    let text = text.trim();
    if text.is_empty() {
        return Err(invalid("name", "is missing"));
    }
    if text.chars().count() > MAX_NAME || text.chars().any(char::is_control) {
        let wrong = format!("must have at most {MAX_NAME} characters, none of them a control character");
        return Err(invalid("name", wrong));
    }
    Ok(text.to_owned())
}
/// A text of several lines.
fn lines(field: &'static str, text: &str, limit: usize) -> Result<String, Error> {
    sized(field, text, limit)?;
    // Not all engines can store it.
    if text.contains('\0') {
        return Err(invalid(field, "has a character with the code 0"));
    }
    Ok(text.to_owned())
}
/// A description.
///
/// # Errors
/// It is too long.
pub(super) fn description(text: &str) -> Result<String, Error> {
    lines("description", text, MAX_DESCRIPTION)
}
/// A note about a version.
///
/// # Errors
/// It is too long.
pub(super) fn note(text: &str) -> Result<String, Error> {
    lines("note", text, MAX_NOTE)
}
/// Tags, each once.
///
/// # Errors
/// There are too many, or one is empty, too long, or has control characters.
pub(super) fn tags(values: &[String]) -> Result<Vec<String>, Error> {
    if values.len() > MAX_TAGS {
        return Err(invalid(
            "tags",
            format!("are {}; at most {MAX_TAGS} are allowed", values.len()),
        ));
    }
    let mut tags = Vec::new();
    for value in values {
        let tag = value.trim();
        if tag.is_empty() || tag.chars().count() > MAX_TAG || tag.chars().any(char::is_control) {
            let wrong = format!("must have 1 to {MAX_TAG} characters each, none of them a control character");
            return Err(invalid("tags", wrong));
        }
        if !tags.iter().any(|other| other == tag) {
            tags.push(tag.to_owned());
        }
    }
    Ok(tags)
}
fn object(field: &'static str, text: &str, limit: usize) -> Result<String, Error> {
    if text.is_empty() {
        return Ok("{}".to_owned());
    }
    sized(field, text, limit)?;
    match serde_json::from_str::<Json>(text) {
        Ok(json) if json.is_object() => Ok(json.to_string()),
        Ok(_) => Err(invalid(field, "must be an object")),
        Err(error) => Err(invalid(field, format!("is not JSON: {error}"))),
    }
}
/// Settings.
///
/// # Errors
/// They are no object, or too large.
pub(super) fn settings(text: &str) -> Result<String, Error> {
    object("settings_json", text, MAX_SETTINGS)
}
/// Other fields of a file.
///
/// # Errors
/// They are no object, or too large.
pub(super) fn extra(text: &str) -> Result<String, Error> {
    object("extra_json", text, MAX_EXTRA)
}
/// Values of inputs.
///
/// # Errors
/// They are no values, or too large.
pub(super) fn params(map: MapValue) -> Result<MapValue, Error> {
    let size = map.encoded_len();
    if size > MAX_EXTRA {
        return Err(invalid(
            "params",
            format!("have {size} bytes; at most {MAX_EXTRA} are allowed"),
        ));
    }
    Map::try_from(map.clone()).map_err(|error| invalid("params", error.to_string()))?;
    Ok(map)
}
/// What a workflow is used as; none for the ordinary one.
///
/// # Errors
/// It is none of the known words.
pub(super) fn run_mode(text: Option<&str>) -> Result<Option<String>, Error> {
    match text {
        None | Some("") => Ok(None),
        Some(word) if RUN_MODES.contains(&word) => Ok(Some(word.to_owned())),
        Some(_) => Err(invalid(
            "run_mode",
            format!("must be one of {}", RUN_MODES.join(", ")),
        )),
    }
}

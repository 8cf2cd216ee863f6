//! Workflow files: from a file to a draft, and from a saved workflow to a file that imports to the same graph.
//!
//! A file is a record with a `graph`, or a record whose `nodes` and `edges` stand at the top. Names of fields come in snake
//! and in camel case, values of nodes below `data` or `properties`; the loader of graphs reads all of it, so a graph is kept
//! as it was written. Fields that nobody here knows are kept too.

use atelier_proto::{
    kernel::v1::{FileSpelling, FileValues, Workflow},
    value::{BytesForm, Map, map_from_json, to_json},
};
use serde_json::{Map as JsonMap, Value as Json};

use super::draft::{self, Draft, Graph, MAX_GRAPH};
use crate::error::Error;

/// What a file may weigh beside its graph, in bytes.
const MAX_REST: usize = 4 * 1024 * 1024;
/// Name of a workflow whose file has none.
const UNNAMED: &str = "Untitled workflow";

/// Names of a node's fields in snake and in camel case.
const NODE_FIELDS: &[(&str, &str)] = &[
    ("parent_id", "parentId"),
    ("ui_properties", "uiProperties"),
    ("dynamic_properties", "dynamicProperties"),
    ("dynamic_inputs", "dynamicInputs"),
    ("dynamic_outputs", "dynamicOutputs"),
    ("sync_mode", "syncMode"),
    ("is_streaming_input", "isStreamingInput"),
    ("is_streaming_output", "isStreamingOutput"),
    ("is_controlled", "isControlled"),
    ("is_join_node", "isJoinNode"),
];
/// The same for an edge. Its handles are in camel case in all files of the field.
const EDGE_FIELDS: &[(&str, &str)] = &[("ui_properties", "uiProperties"), ("edge_type", "edgeType")];
/// Handles as some tools write them.
const EDGE_HANDLES: &[(&str, &str)] = &[
    ("source_handle", "sourceHandle"),
    ("target_handle", "targetHandle"),
];

fn wrong(text: impl Into<String>) -> Error {
    Error::InvalidField {
        field: "file",
        wrong: text.into(),
    }
}

/// Reads a file. A name that is given wins over the file's own.
///
/// # Errors
/// [`Error::InvalidField`] that names the field of the file, or [`Error::MalformedGraph`].
pub fn read_file(text: &str, name: Option<&str>) -> Result<Draft, Error> {
    if text.len() > MAX_GRAPH + MAX_REST {
        let limit = MAX_GRAPH + MAX_REST;
        return Err(wrong(format!(
            "has {} bytes; at most {limit} are allowed",
            text.len()
        )));
    }
    let json: Json = serde_json::from_str(text).map_err(|error| wrong(format!("is not JSON: {error}")))?;
    let Json::Object(mut record) = json else {
        return Err(wrong("is no workflow: a workflow is an object with a graph"));
    };
    let graph = Graph::of(take_graph(&mut record)?)?;
    for ours in ["id", "workflow_id", "workflowId", "version", "etag"] {
        record.remove(ours);
    }
    for ours in ["created_at", "createdAt", "updated_at", "updatedAt"] {
        record.remove(ours);
    }
    let name = match (name, text_of(&mut record, &["name"])?) {
        (Some(name), _) => draft::name(name)?,
        (None, Some(name)) if !name.trim().is_empty() => draft::name(&name)?,
        (None, _) => UNNAMED.to_owned(),
    };
    let description = text_of(&mut record, &["description"])?.unwrap_or_default();
    let run_mode = text_of(&mut record, &["run_mode", "runMode"])?;
    let tags = match take(&mut record, &["tags"]) {
        None => Vec::new(),
        Some(Json::Array(tags)) => tags
            .into_iter()
            .map(|tag| match tag {
                Json::String(tag) => Ok(tag),
                _ => Err(wrong("has a field tags that is no list of texts")),
            })
            .collect::<Result<_, _>>()?,
        Some(_) => return Err(wrong("has a field tags that is no list of texts")),
    };
    let settings = match take(&mut record, &["settings"]) {
        None => String::new(),
        Some(settings) if settings.is_object() => settings.to_string(),
        Some(_) => return Err(wrong("has a field settings that is no object")),
    };
    let params = match take(&mut record, &["params"]) {
        None => Map::new(),
        Some(params) => map_from_json(params).ok_or_else(|| wrong("has a field params that is no object"))?,
    };
    Ok(Draft {
        name,
        description: draft::description(&description)?,
        tags: draft::tags(&tags)?,
        settings: draft::settings(&settings)?,
        params: draft::params((&params).into())?,
        run_mode: draft::run_mode(run_mode.as_deref())?,
        extra: draft::extra(&Json::Object(record).to_string())?,
        graph,
        note: String::new(),
    })
}
/// Takes the graph out of a record, which keeps its other fields.
fn take_graph(record: &mut JsonMap<String, Json>) -> Result<Json, Error> {
    match record.remove("graph").filter(|graph| !graph.is_null()) {
        Some(graph) if graph.is_object() => Ok(graph),
        Some(_) => Err(wrong("has a field graph that is no object")),
        None if record.contains_key("nodes") => {
            let mut graph = JsonMap::new();
            graph.insert("nodes".to_owned(), record.remove("nodes").unwrap_or_default());
            let edges = record.remove("edges");
            graph.insert(
                "edges".to_owned(),
                edges.unwrap_or_else(|| Json::Array(Vec::new())),
            );
            Ok(Json::Object(graph))
        }
        None => Err(wrong(
            "is no workflow: it has neither a graph nor nodes and edges",
        )),
    }
}
/// The first of these fields that is there; null counts as absent.
fn take(record: &mut JsonMap<String, Json>, names: &[&str]) -> Option<Json> {
    let mut found = None;
    for name in names {
        let value = record.remove(*name).filter(|value| !value.is_null());
        found = found.or(value);
    }
    found
}
fn text_of(record: &mut JsonMap<String, Json>, names: &[&str]) -> Result<Option<String>, Error> {
    match take(record, names) {
        None => Ok(None),
        Some(Json::String(text)) => Ok(Some(text)),
        Some(_) => {
            let name = names.first().copied().unwrap_or_default();
            Err(wrong(format!("has a field {name} that is no text")))
        }
    }
}

/// Writes a file: the record of a workflow, and a graph of it.
///
/// # Errors
/// The row is damaged.
pub fn write_file(
    workflow: &Workflow,
    version: i64,
    graph: &str,
    spelling: FileSpelling,
    values: FileValues,
    flat: bool,
) -> Result<String, Error> {
    let read = |text: &str| serde_json::from_str::<Json>(text).map_err(|_| Error::DamagedLog);
    let mut graph = read(graph)?;
    respell(&mut graph, spelling, values);
    let at = |at: &Option<prost_types::Timestamp>| at.as_ref().map(atelier_proto::time::iso).into();
    let mut record = JsonMap::new();
    let mut put = |name: &str, value: Json| record.insert(name.to_owned(), value);
    put("id", workflow.workflow_id.as_str().into());
    put("name", workflow.name.as_str().into());
    put("description", workflow.description.as_str().into());
    put("tags", workflow.tags.clone().into());
    put(
        "run_mode",
        workflow.run_mode.as_deref().unwrap_or("workflow").into(),
    );
    put("created_at", at(&workflow.created_at));
    put("updated_at", at(&workflow.updated_at));
    put("version", version.into());
    put("etag", workflow.etag.as_str().into());
    put("settings", read(&workflow.settings_json)?);
    let params = Map::try_from(workflow.params.clone().unwrap_or_default()).map_err(|_| Error::DamagedLog)?;
    if !params.is_empty() {
        put("params", to_json(&params.into(), BytesForm::Tagged));
    }
    if let Json::Object(extra) = read(&workflow.extra_json)? {
        for (name, value) in extra {
            record.entry(name).or_insert(value);
        }
    }
    match graph {
        Json::Object(graph) if flat => record.extend(graph),
        graph => {
            record.insert("graph".to_owned(), graph);
        }
    }
    Ok(Json::Object(record).to_string())
}
/// Gives the fields of nodes and edges other names. What has both names already is left alone.
fn respell(graph: &mut Json, spelling: FileSpelling, values: FileValues) {
    let objects = |graph: &mut Json, key: &str, change: &dyn Fn(&mut JsonMap<String, Json>)| {
        let list = graph.get_mut(key).and_then(Json::as_array_mut);
        list.into_iter()
            .flatten()
            .filter_map(Json::as_object_mut)
            .for_each(change);
    };
    objects(graph, "nodes", &|node| {
        match spelling {
            FileSpelling::Unspecified => {}
            FileSpelling::Snake => rename(node, NODE_FIELDS, false),
            FileSpelling::Camel => rename(node, NODE_FIELDS, true),
        }
        match values {
            FileValues::Unspecified => {}
            FileValues::Data => move_values(node, "properties", "data"),
            FileValues::Properties => move_values(node, "data", "properties"),
        }
    });
    objects(graph, "edges", &|edge| match spelling {
        FileSpelling::Unspecified => {}
        FileSpelling::Snake => {
            rename(edge, EDGE_FIELDS, false);
            rename(edge, EDGE_HANDLES, true);
        }
        FileSpelling::Camel => {
            rename(edge, EDGE_FIELDS, true);
            rename(edge, EDGE_HANDLES, true);
        }
    });
}
fn rename(object: &mut JsonMap<String, Json>, fields: &[(&str, &str)], camel: bool) {
    for (snake, camel_name) in fields {
        let (from, to) = if camel {
            (*snake, *camel_name)
        } else {
            (*camel_name, *snake)
        };
        if !object.contains_key(to)
            && let Some(value) = object.shift_remove(from)
        {
            object.insert(to.to_owned(), value);
        }
    }
}
/// The values of a node stand below one name; `properties` wins over `data` where a file has both.
fn move_values(node: &mut JsonMap<String, Json>, from: &str, to: &str) {
    let read = ["properties", "data"]
        .into_iter()
        .find(|name| node.get(*name).is_some_and(Json::is_object));
    if read == Some(from)
        && let Some(values) = node.shift_remove(from)
    {
        node.insert(to.to_owned(), values);
    }
}

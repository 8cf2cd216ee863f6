//! Graphs: as they stand in a file ([`RawGraph`]) and as the engine takes them ([`HydratedGraph`]).

use std::sync::Arc;

use atelier_proto::{
    kernel::v1::Issue,
    value::{Map, from_json, map_from_json},
};
use indexmap::IndexMap;
use serde_json::{Map as JsonMap, Value as Json};

use crate::node::NodeMeta;

/// The handle that control edges enter.
pub const CONTROL: &str = "__control__";
/// The output that goes to all controlled nodes as one event.
pub const CONTROL_OUTPUT: &str = "__control_output__";
/// Types that are inputs of a run when nothing feeds them.
pub const INPUT_PREFIX: &str = "nodetool.input.";
/// Types that are constants.
pub const CONSTANT_PREFIX: &str = "nodetool.constant.";
/// Types that are outputs of a run.
pub const OUTPUT_PREFIX: &str = "nodetool.output.";

/// Types by handle.
pub type Types = IndexMap<Arc<str>, Arc<str>>;

/// A graph as written in a file.
#[derive(Debug, Clone, Default)]
pub struct RawGraph {
    /// Its nodes.
    pub nodes: Vec<RawNode>,
    /// Its edges.
    pub edges: Vec<RawEdge>,
}

/// A node as written in a file.
#[derive(Debug, Clone, Default)]
pub struct RawNode {
    /// Unique in the graph.
    pub id: String,
    /// The dotted type.
    pub node_type: String,
    /// Display and output name.
    pub name: Option<String>,
    /// Static values.
    pub properties: Map,
    /// Values of inputs that the user added.
    pub dynamic_properties: Map,
    /// Inputs that the user added.
    pub dynamic_inputs: IndexMap<String, Slot>,
    /// Outputs that the user added, with their types.
    pub dynamic_outputs: IndexMap<String, String>,
    /// The group it is in; for people only.
    pub parent_id: Option<String>,
    /// Whether it is left out, its input going straight to its consumers.
    pub bypassed: bool,
    /// Saved output types.
    pub outputs: IndexMap<String, String>,
    /// Saved input types.
    pub inputs: IndexMap<String, String>,
    /// Saved flags.
    pub flags: SavedFlags,
}

/// Flags that a file may carry; what the registry says wins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SavedFlags {
    /// It drains its own inbox.
    pub streaming_input: Option<bool>,
    /// It yields frames.
    pub streaming_output: Option<bool>,
    /// It is run by control events.
    pub controlled: Option<bool>,
    /// It may take inputs of unrelated iterations.
    pub join: Option<bool>,
}

/// The declaration of an input that the user added.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Slot {
    /// Its type.
    pub ty: String,
    /// What it means.
    pub description: String,
    /// Whether a value must be given.
    pub required: bool,
    /// Smallest value.
    pub min: Option<f64>,
    /// Largest value.
    pub max: Option<f64>,
}

/// An edge as written in a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RawEdge {
    /// Its id, made from its ends when the file has none.
    pub id: String,
    /// The node it leaves.
    pub source: String,
    /// The output it leaves.
    pub source_handle: String,
    /// The node it enters.
    pub target: String,
    /// The input it enters.
    pub target_handle: String,
    /// Whether it carries control events.
    pub control: bool,
}

/// A graph whose nodes know what their types say about them.
#[derive(Debug, Clone, Default)]
pub struct HydratedGraph {
    /// Its nodes.
    pub nodes: Vec<Node>,
    /// Its edges.
    pub edges: Vec<Edge>,
}

/// A node together with its type.
#[derive(Debug, Clone)]
pub struct Node {
    /// Unique in the graph.
    pub id: Arc<str>,
    /// The dotted type.
    pub node_type: Arc<str>,
    /// Display and output name.
    pub name: Option<Arc<str>>,
    /// Static values.
    pub properties: Arc<Map>,
    /// Values of inputs that the user added.
    pub dynamic_properties: Arc<Map>,
    /// Inputs that the user added.
    pub dynamic_inputs: IndexMap<String, Slot>,
    /// The group it is in.
    pub parent_id: Option<Arc<str>>,
    /// Whether it is left out.
    pub bypassed: bool,
    /// Types of its declared outputs.
    pub outputs: Arc<Types>,
    /// Types of its declared inputs.
    pub inputs: IndexMap<String, Arc<str>>,
    /// How it runs.
    pub flags: Flags,
    /// What its type says.
    pub meta: Arc<NodeMeta>,
}

/// How a node runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "four independent flags of the file format"
)]
pub struct Flags {
    /// It drains its own inbox.
    pub streaming_input: bool,
    /// It yields frames.
    pub streaming_output: bool,
    /// It is run by control events.
    pub controlled: bool,
    /// It may take inputs of unrelated iterations.
    pub join: bool,
}

/// An edge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    /// Its id.
    pub id: Arc<str>,
    /// The node it leaves.
    pub source: Arc<str>,
    /// The output it leaves.
    pub source_handle: Arc<str>,
    /// The node it enters.
    pub target: Arc<str>,
    /// The input it enters.
    pub target_handle: Arc<str>,
    /// Whether it carries control events.
    pub control: bool,
}

impl Node {
    /// Whether it is a constant.
    #[must_use]
    pub fn is_constant(&self) -> bool {
        self.node_type.starts_with(CONSTANT_PREFIX)
    }
    /// Whether its type is one of the run's inputs.
    #[must_use]
    pub fn is_input(&self) -> bool {
        self.node_type.starts_with(INPUT_PREFIX)
    }
    /// The trimmed property `name`, when there is one.
    #[must_use]
    pub fn property_name(&self) -> Option<&str> {
        self.properties
            .get("name")
            .and_then(|name| name.as_str())
            .map(str::trim)
            .filter(|name| !name.is_empty())
    }
    /// What a parameter of the run is called to reach this input.
    #[must_use]
    pub fn input_name(&self) -> &str {
        self.property_name().or(self.name.as_deref()).unwrap_or(&self.id)
    }
    /// Static values in order of precedence: defaults of the type, properties, dynamic properties.
    #[must_use]
    pub fn static_values(&self) -> Map {
        let defaults = self
            .meta
            .inputs
            .iter()
            .filter_map(|input| Some((input.name.clone(), input.default.clone()?)));
        let own = self.properties.iter().chain(self.dynamic_properties.iter());
        defaults
            .chain(own.map(|(key, value)| (key.clone(), value.clone())))
            .collect()
    }
}

/// One thing that is wrong with a graph.
#[must_use]
pub fn issue(code: &str, node: Option<&Node>, property: &str, message: impl Into<String>) -> Issue {
    Issue {
        code: code.to_owned(),
        node_id: node.map(|node| node.id.to_string()).unwrap_or_default(),
        node_type: node.map(|node| node.node_type.to_string()).unwrap_or_default(),
        property: property.to_owned(),
        message: message.into(),
    }
}

/// The type string of a type in the file: text, or an object `{type, type_args}`.
fn type_text(json: &Json) -> Option<String> {
    if let Json::String(text) = json {
        return Some(text.clone());
    }
    let name = type_text(json.get("type")?)?;
    let args = json.get("type_args").and_then(Json::as_array);
    let args: Vec<String> = args.into_iter().flatten().filter_map(type_text).collect();
    Some(if args.is_empty() {
        name
    } else {
        format!("{name}[{}]", args.join(", "))
    })
}
fn types(json: Option<&Json>) -> IndexMap<String, String> {
    let Some(Json::Object(object)) = json else {
        return IndexMap::new();
    };
    object
        .iter()
        .filter_map(|(name, ty)| Some((name.clone(), type_text(ty)?)))
        .collect()
}
fn text(object: &JsonMap<String, Json>, key: &str) -> Option<String> {
    object.get(key)?.as_str().map(ToOwned::to_owned)
}
/// A field by its name in snake case, else in camel case: files have both.
fn either<'a>(object: &'a JsonMap<String, Json>, snake: &str, camel: &str) -> Option<&'a Json> {
    object.get(snake).or_else(|| object.get(camel))
}
fn either_text(object: &JsonMap<String, Json>, snake: &str, camel: &str) -> Option<String> {
    either(object, snake, camel)?.as_str().map(ToOwned::to_owned)
}
fn values(json: Option<&Json>) -> Option<Map> {
    json.filter(|json| json.is_object())
        .and_then(|json| map_from_json(json.clone()))
}
fn number(json: &Json, key: &str) -> Option<f64> {
    json.get(key).and_then(Json::as_f64)
}
fn slots(json: Option<&Json>) -> IndexMap<String, Slot> {
    let Some(Json::Object(object)) = json else {
        return IndexMap::new();
    };
    let slot = |json: &Json| {
        let ty = json.get("type").and_then(type_text).unwrap_or_default();
        let description = json
            .get("description")
            .and_then(Json::as_str)
            .unwrap_or_default()
            .to_owned();
        let required = json.get("required").and_then(Json::as_bool).unwrap_or(false);
        Slot {
            ty,
            description,
            required,
            min: number(json, "min"),
            max: number(json, "max"),
        }
    };
    object
        .iter()
        .map(|(name, json)| (name.clone(), slot(json)))
        .collect()
}

impl RawNode {
    /// Reads a node; `None` when it has no id or type.
    #[must_use]
    pub fn from_json(json: &Json) -> Option<Self> {
        let object = json.as_object()?;
        let flag = |snake: &str, camel: &str| either(object, snake, camel).and_then(Json::as_bool);
        let dynamic_properties =
            values(either(object, "dynamic_properties", "dynamicProperties")).unwrap_or_default();
        let saved_slots = either(object, "dynamic_inputs", "dynamicInputs");
        let dynamic_inputs = slots(saved_slots);
        let mut properties = values(object.get("properties"))
            .or_else(|| values(object.get("data")))
            .unwrap_or_default();
        for (name, json) in saved_slots.and_then(Json::as_object).into_iter().flatten() {
            if let Some(default) = json.get("default").filter(|_| !properties.contains_key(name)) {
                properties.insert(name.clone(), from_json(default.clone()));
            }
        }
        properties.extend(
            dynamic_properties
                .iter()
                .map(|(key, value)| (key.clone(), value.clone())),
        );
        Some(Self {
            id: text(object, "id")?,
            node_type: text(object, "type")?,
            name: text(object, "name").filter(|name| !name.is_empty()),
            properties,
            dynamic_properties,
            dynamic_inputs,
            dynamic_outputs: types(either(object, "dynamic_outputs", "dynamicOutputs")),
            parent_id: either_text(object, "parent_id", "parentId"),
            bypassed: either(object, "ui_properties", "uiProperties").and_then(|ui| ui.get("bypassed"))
                == Some(&Json::Bool(true)),
            outputs: types(object.get("outputs")),
            inputs: types(object.get("propertyTypes")),
            flags: SavedFlags {
                streaming_input: flag("is_streaming_input", "isStreamingInput"),
                streaming_output: flag("is_streaming_output", "isStreamingOutput"),
                controlled: flag("is_controlled", "isControlled"),
                join: flag("is_join_node", "isJoinNode"),
            },
        })
    }
}
impl RawEdge {
    /// Reads an edge; `None` when one of its ends is missing.
    #[must_use]
    pub fn from_json(json: &Json) -> Option<Self> {
        let object = json.as_object()?;
        let handle = |snake: &str, camel: &str| either_text(object, snake, camel);
        let (source, source_handle) = (text(object, "source")?, handle("source_handle", "sourceHandle")?);
        let (target, target_handle) = (text(object, "target")?, handle("target_handle", "targetHandle")?);
        let made = || format!("{source}:{source_handle}->{target}:{target_handle}");
        let id = text(object, "id")
            .filter(|id| !id.is_empty())
            .unwrap_or_else(made);
        // Older files call it `type`.
        let kind = either_text(object, "edge_type", "edgeType").or_else(|| text(object, "type"));
        let control = kind.as_deref() == Some("control");
        Some(Self {
            id,
            source,
            source_handle,
            target,
            target_handle,
            control,
        })
    }
}

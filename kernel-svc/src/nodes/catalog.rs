//! The metadata of the built-in types, read once from the data files in the folder of the same name.
//!
//! A file holds the types of a family, one JSON object a line. A type has code (`nodes/`), or it is data only.

use std::{collections::BTreeMap, sync::OnceLock};

use atelier_proto::value::{Value, from_json};
use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::Value as Json;

use crate::node::{Correlation, CorrelationKind, InputMeta, InputMode, NodeMeta, OutputMeta, Runner};

/// One JSON object a line.
const FILES: [&str; 7] = [
    include_str!("catalog/core.jsonl"),
    include_str!("catalog/data.jsonl"),
    include_str!("catalog/media.jsonl"),
    include_str!("catalog/models.jsonl"),
    include_str!("catalog/outside.jsonl"),
    OLDER_MEDIA,
    include_str!("catalog/older.jsonl"),
];
/// Types of older files that the field no longer has.
const OLDER_MEDIA: &str = include_str!("catalog/older_media.jsonl");

fn lines() -> impl Iterator<Item = &'static str> {
    FILES
        .iter()
        .flat_map(|file| file.lines())
        .filter(|line| !line.trim().is_empty())
}

/// The metadata of a type; `None` when the file does not have it.
pub(super) fn meta(node_type: &str) -> Option<&'static NodeMeta> {
    all().get(node_type)
}

/// All types by name, in the order of the file.
pub(super) fn all() -> &'static IndexMap<String, NodeMeta> {
    static ALL: OnceLock<IndexMap<String, NodeMeta>> = OnceLock::new();
    ALL.get_or_init(|| {
        let read = lines().filter_map(|line| match serde_json::from_str::<Entry>(line) {
            Ok(entry) => Some(NodeMeta::from(entry)),
            Err(error) => {
                tracing::error!(%error, "a line of the node catalog cannot be read");
                None
            }
        });
        read.map(|meta| (meta.node_type.clone(), meta)).collect()
    })
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent flags of the file format"
)]
struct Entry {
    r#type: String,
    title: String,
    #[serde(default)]
    description: String,
    r#in: Vec<Input>,
    out: Vec<Output>,
    is_streaming_input: Option<bool>,
    is_streaming_output: Option<bool>,
    is_controlled: Option<bool>,
    is_join_node: Option<bool>,
    #[serde(default)]
    is_trigger: bool,
    #[serde(default)]
    supports_dynamic_inputs: bool,
    #[serde(default)]
    supports_dynamic_outputs: bool,
    #[serde(default)]
    auto_save_asset: bool,
    #[serde(default)]
    always_emit_output_updates: bool,
    #[serde(default)]
    retry_safe: bool,
    input_mode: Option<Mode>,
    #[serde(default)]
    output_correlation: BTreeMap<String, Declared>,
    #[serde(default)]
    artifact_outputs: Vec<String>,
    primary_output: Option<String>,
    #[serde(default)]
    settings: Vec<String>,
    #[serde(default)]
    deprecated: bool,
    replaced_by: Option<String>,
}
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    name: String,
    r#type: Json,
    /// Absent and null differ: only a given default, null included, is one.
    #[serde(default, deserialize_with = "given")]
    default: Option<Json>,
    #[serde(default)]
    required: bool,
    #[serde(default)]
    description: String,
    min: Option<f64>,
    max: Option<f64>,
    #[serde(default)]
    values: Vec<Json>,
}
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Output {
    name: String,
    r#type: Json,
    #[serde(default)]
    stream: bool,
}
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    Buffered,
    Stream,
    Controlled,
}
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Declared {
    kind: Kind,
    source: Option<String>,
    group: Option<String>,
    collapse: Option<String>,
}
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Single,
    Forward,
    Chunk,
    Iteration,
    Aggregate,
}
fn given<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Json>, D::Error> {
    Json::deserialize(from).map(Some)
}

impl From<Entry> for NodeMeta {
    fn from(entry: Entry) -> Self {
        Self {
            node_type: entry.r#type,
            title: entry.title,
            description: entry.description,
            inputs: entry.r#in.into_iter().map(InputMeta::from).collect(),
            outputs: entry.out.into_iter().map(OutputMeta::from).collect(),
            streaming_input: Some(entry.is_streaming_input.unwrap_or(false)),
            streaming_output: Some(entry.is_streaming_output.unwrap_or(false)),
            controlled: entry.is_controlled,
            trigger: entry.is_trigger,
            join: Some(entry.is_join_node.unwrap_or(false)),
            dynamic_inputs: entry.supports_dynamic_inputs,
            dynamic_outputs: entry.supports_dynamic_outputs,
            auto_save_asset: entry.auto_save_asset,
            always_emit_output_updates: entry.always_emit_output_updates,
            retry_safe: entry.retry_safe,
            input_mode: entry.input_mode.map(|mode| match mode {
                Mode::Buffered => InputMode::Buffered,
                Mode::Stream => InputMode::Stream,
                Mode::Controlled => InputMode::Controlled,
            }),
            output_correlation: entry
                .output_correlation
                .into_iter()
                .map(|(name, it)| (name, it.into()))
                .collect(),
            artifact_outputs: entry.artifact_outputs,
            primary_output: entry.primary_output,
            required_settings: entry.settings,
            deprecated: entry.deprecated,
            replaced_by: entry.replaced_by,
            runner: Runner::BuiltIn,
        }
    }
}
impl From<Input> for InputMeta {
    fn from(input: Input) -> Self {
        let values: Vec<Value> = input.values.into_iter().map(from_json).collect();
        Self {
            name: input.name,
            ty: type_text(&input.r#type),
            default: input.default.map(from_json),
            required: input.required,
            description: input.description,
            min: input.min,
            max: input.max,
            values,
        }
    }
}
impl From<Output> for OutputMeta {
    fn from(output: Output) -> Self {
        Self {
            name: output.name,
            ty: type_text(&output.r#type),
            stream: output.stream,
        }
    }
}
impl From<Declared> for Correlation {
    fn from(declared: Declared) -> Self {
        let Declared {
            kind,
            source,
            group,
            collapse,
        } = declared;
        let kind = match kind {
            Kind::Single => CorrelationKind::Single,
            Kind::Forward => CorrelationKind::Forward,
            Kind::Chunk => CorrelationKind::Chunk,
            Kind::Iteration => CorrelationKind::Iteration,
            Kind::Aggregate => CorrelationKind::Aggregate,
        };
        Self {
            kind,
            source,
            group,
            collapse_innermost: collapse.as_deref() == Some("innermost"),
        }
    }
}
/// A choice among texts (`{"enum": […]}`) is a text whose values are listed beside it.
fn type_text(ty: &Json) -> String {
    ty.as_str().unwrap_or("str").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_read_and_says_what_it_does() {
        assert_eq!(all().len(), lines().count());
        assert!(
            all().len() > 1_000,
            "a catalog that has almost nothing has not been read"
        );
        for meta in crate::nodes::registry().all() {
            assert!(
                !meta.title.is_empty() && meta.description.ends_with('.'),
                "{}",
                meta.node_type
            );
        }
    }

    #[test]
    fn a_default_of_null_is_a_default_and_none_is_none() {
        let read = |text: &str| InputMeta::from(serde_json::from_str::<Input>(text).expect("an input"));
        assert_eq!(
            read(r#"{"name":"a","type":"any","default":null}"#).default,
            Some(Value::Null)
        );
        assert_eq!(read(r#"{"name":"a","type":"any"}"#).default, None);
    }

    #[test]
    fn correlation_and_modes_come_from_the_file() {
        let collect = meta("nodetool.control.Collect").expect("collect");
        assert_eq!(collect.input_mode, Some(InputMode::Stream));
        assert_eq!(collect.streaming_input, Some(true));
        let output = &collect.output_correlation["output"];
        assert_eq!(output.kind, CorrelationKind::Aggregate);
        assert_eq!(output.source.as_deref(), Some("input_item"));
        assert!(output.collapse_innermost);
        let list = meta("nodetool.generators.ListGenerator").expect("list generator");
        assert!(list.always_emit_output_updates);
        assert_eq!(list.output_correlation["item"].group.as_deref(), Some("items"));
    }

    /// The field's catalogue is data that this crate can be checked against when it lies beside the sources.
    #[test]
    fn the_file_equals_the_fields_catalogue() {
        let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/spec");
        let folder = std::env::var("ATELIER_SPECS").unwrap_or_else(|_| beside.to_owned());
        let Ok(theirs) = std::fs::read_to_string(format!("{folder}/node-catalog.jsonl")) else {
            return;
        };
        let parse = |lines: Vec<&str>| -> IndexMap<String, Json> {
            lines
                .into_iter()
                .map(|line| serde_json::from_str::<Json>(line).expect("JSON"))
                .map(|json| (json["type"].as_str().expect("a type").to_owned(), json))
                .collect()
        };
        let theirs: Vec<&str> = theirs.lines().filter(|line| !line.trim().is_empty()).collect();
        let (ours, theirs) = (parse(lines().collect()), parse(theirs));
        assert!(theirs.keys().all(|name| ours.contains_key(name)), "all of them");
        let own = [
            "nodetool.control.Loop",
            "nodetool.input.AnyInput",
            "nodetool.variable.GetVariable",
            "nodetool.variable.SetVariable",
            "nodetool.workflows.base_node.Comment",
            "nodetool.workflows.base_node.Group",
        ];
        for (name, mut json) in ours {
            let entry = json.as_object_mut().expect("an object");
            entry.retain(|key, _| key != "description" && key != "is_trigger");
            if name.starts_with("nodetool.triggers.") {
                // Ours are iterations, so that every event drives what follows.
                entry.retain(|key, _| key != "output_correlation" && key != "input_mode");
            }
            match theirs.get(&name) {
                Some(expected) => assert_eq!(&json, expected, "{name}"),
                None => {
                    let older = [OLDER_MEDIA, include_str!("catalog/older.jsonl")];
                    let is_older = older.iter().any(|file| file.contains(&format!("\"{name}\"")));
                    assert!(
                        is_older || own.contains(&name.as_str()),
                        "{name} is not in the catalogue"
                    );
                }
            }
        }
    }
}

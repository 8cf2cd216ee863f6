//! A declared type: from its message to the metadata that the engine reads. What is wrong is told with the field's name.

use std::collections::HashSet;

use atelier_proto::{
    kernel::v1::{
        NodeInputMode, NodeType, Output, OutputCorrelation, OutputCorrelationKind, Property, WorkerNodeType,
    },
    value::Value,
};

use crate::node::{Correlation, CorrelationKind, InputMeta, InputMode, NodeMeta, OutputMeta};

/// Longest name of a type, in bytes.
const MAX_TYPE: usize = 200;
/// Longest name of an input or output, and longest type of one, in bytes.
const MAX_NAME: usize = 128;
/// Longest title or description, in bytes.
const MAX_TEXT: usize = 8 * 1024;
/// Most inputs, and most outputs, of a type.
const MAX_HANDLES: usize = 128;
/// The source that stands for the invocation as a whole.
const EXECUTION: &str = "__execution__";

/// The metadata of a declared type, or what is wrong with it.
pub(super) fn meta(declared: &WorkerNodeType) -> Result<NodeMeta, String> {
    let WorkerNodeType {
        node_type,
        input_mode,
        output_correlations,
        artifact_outputs,
        retry_safe,
        dynamic_outputs,
        always_emit_output_updates,
    } = declared;
    let NodeType {
        node_type,
        title,
        description,
        namespace: _,
        properties,
        outputs,
        streaming_input,
        streaming_output,
        controlled,
        join,
        dynamic_inputs,
        auto_save_asset,
        primary_output,
        required_settings,
        ..
    } = node_type.as_ref().ok_or("node_type: missing")?;
    name_of_type(node_type)?;
    for (field, text) in [("title", title), ("description", description)] {
        within(field, text, MAX_TEXT)?;
    }
    let inputs = properties.iter().map(input).collect::<Result<Vec<_>, _>>()?;
    let outputs = outputs.iter().map(output).collect::<Result<Vec<_>, _>>()?;
    distinct("properties", inputs.iter().map(|input| &input.name))?;
    distinct("outputs", outputs.iter().map(|output| &output.name))?;
    let gives = |name: &str| *dynamic_outputs || outputs.iter().any(|output| output.name == name);
    let mut correlations = std::collections::BTreeMap::new();
    for declared in output_correlations {
        let name = &declared.output;
        if !gives(name) {
            return Err(format!("output_correlations: {name:?} is no output"));
        }
        let takes = |source: &str| inputs.iter().any(|input| input.name == source) || *dynamic_inputs;
        correlations.insert(name.clone(), correlation(declared, takes)?);
    }
    if let Some(name) = artifact_outputs.iter().find(|name| !gives(name)) {
        return Err(format!("artifact_outputs: {name:?} is no output"));
    }
    if !primary_output.is_empty() && !gives(primary_output) {
        return Err(format!("primary_output: {primary_output:?} is no output"));
    }
    let input_mode = match NodeInputMode::try_from(*input_mode) {
        Ok(NodeInputMode::Unspecified) => None,
        Ok(NodeInputMode::Buffered) => Some(InputMode::Buffered),
        Ok(NodeInputMode::Stream) => Some(InputMode::Stream),
        Ok(NodeInputMode::Controlled) => Some(InputMode::Controlled),
        Err(_) => return Err(format!("input_mode: {input_mode} is not known")),
    };
    Ok(NodeMeta {
        node_type: node_type.clone(),
        title: title.clone(),
        description: description.clone(),
        inputs,
        outputs,
        streaming_input: Some(*streaming_input),
        streaming_output: Some(*streaming_output),
        controlled: Some(*controlled),
        join: Some(*join),
        dynamic_inputs: *dynamic_inputs,
        dynamic_outputs: *dynamic_outputs,
        auto_save_asset: *auto_save_asset,
        always_emit_output_updates: *always_emit_output_updates,
        retry_safe: *retry_safe,
        input_mode,
        output_correlation: correlations,
        artifact_outputs: artifact_outputs.clone(),
        primary_output: Some(primary_output.clone()).filter(|name| !name.is_empty()),
        required_settings: required_settings.clone(),
        ..NodeMeta::default()
    })
}
/// Checks a dotted name: at least two parts of letters, digits and underscores.
fn name_of_type(name: &str) -> Result<(), String> {
    let part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    if name.len() <= MAX_TYPE && name.contains('.') && name.split('.').all(part) {
        return Ok(());
    }
    let shown: String = name.chars().take(80).collect();
    Err(format!(
        "node_type: {shown:?} is not a dotted name of at most {MAX_TYPE} bytes"
    ))
}
fn within(field: &str, text: &str, limit: usize) -> Result<(), String> {
    if text.len() > limit {
        return Err(format!("{field}: has more than {limit} bytes"));
    }
    Ok(())
}
fn named(field: &str, name: &str, ty: &str) -> Result<(), String> {
    if name.is_empty() || name.starts_with("__") {
        return Err(format!("{field}: {name:?} is not allowed as a name"));
    }
    within(field, name, MAX_NAME)?;
    within(field, ty, MAX_NAME)
}
fn distinct<'a>(field: &str, names: impl Iterator<Item = &'a String>) -> Result<(), String> {
    let mut seen = HashSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(format!("{field}: {name:?} occurs twice"));
        }
    }
    if seen.len() > MAX_HANDLES {
        return Err(format!("{field}: more than {MAX_HANDLES}"));
    }
    Ok(())
}
fn input(property: &Property) -> Result<InputMeta, String> {
    let Property {
        name,
        r#type,
        default_value,
        required,
        description,
        min,
        max,
        values,
        ..
    } = property;
    named("properties", name, r#type)?;
    within("properties", description, MAX_TEXT)?;
    let bad = |error| format!("properties: {name:?} has a value that is none: {error}");
    let values = values
        .iter()
        .cloned()
        .map(Value::try_from)
        .collect::<Result<_, _>>();
    Ok(InputMeta {
        name: name.clone(),
        ty: r#type.clone(),
        default: default_value
            .clone()
            .map(Value::try_from)
            .transpose()
            .map_err(bad)?,
        required: *required,
        description: description.clone(),
        min: *min,
        max: *max,
        values: values.map_err(bad)?,
    })
}
fn output(output: &Output) -> Result<OutputMeta, String> {
    let Output {
        name, r#type, stream, ..
    } = output;
    named("outputs", name, r#type)?;
    Ok(OutputMeta {
        name: name.clone(),
        ty: r#type.clone(),
        stream: *stream,
    })
}
fn correlation(declared: &OutputCorrelation, takes: impl Fn(&str) -> bool) -> Result<Correlation, String> {
    let OutputCorrelation {
        output,
        kind,
        source,
        group,
    } = declared;
    let kind = match OutputCorrelationKind::try_from(*kind) {
        Ok(OutputCorrelationKind::Single) => CorrelationKind::Single,
        Ok(OutputCorrelationKind::Forward) => CorrelationKind::Forward,
        Ok(OutputCorrelationKind::Chunk) => CorrelationKind::Chunk,
        Ok(OutputCorrelationKind::Iteration) => CorrelationKind::Iteration,
        Ok(OutputCorrelationKind::Aggregate) => CorrelationKind::Aggregate,
        Ok(OutputCorrelationKind::Unspecified) | Err(_) => {
            return Err(format!("output_correlations: {output:?} has no known kind"));
        }
    };
    let source = if source.is_empty() { EXECUTION } else { source };
    if source != EXECUTION && !takes(source) {
        return Err(format!("output_correlations: {source:?} is no input"));
    }
    Ok(Correlation {
        kind,
        source: Some(source.to_owned()),
        group: Some(group.clone()).filter(|group| !group.is_empty()),
        collapse_innermost: kind == CorrelationKind::Aggregate,
    })
}

//! `--param name=value`: text for inputs that take text, JSON for the others.

use anyhow::{Context, bail};
use serde_json::{Map, Value};

/// Types of inputs whose value is text as it stands.
const TEXT_INPUTS: &[&str] = &[
    "StringInput",
    "ColorInput",
    "SelectInput",
    "FilePathInput",
    "FolderPathInput",
];

/// Reads the params of a command line for a workflow.
///
/// # Errors
/// A param without `=`, a name that occurs twice, or a name that no input has.
pub(crate) fn parse(params: &[String], workflow: &Value) -> anyhow::Result<Map<String, Value>> {
    let inputs = inputs(workflow);
    let mut out = Map::new();
    for param in params {
        let (name, value) = param
            .split_once('=')
            .with_context(|| format!("--param {param}: expected NAME=VALUE"))?;
        let name = name.trim();
        let Some((_, node_type)) = inputs.iter().find(|(input, _)| input == name) else {
            let known: Vec<&str> = inputs.iter().map(|(name, _)| name.as_str()).collect();
            bail!(
                "--param {name}: the workflow has no such input; it has {}",
                list(&known)
            );
        };
        let is_text = TEXT_INPUTS.iter().any(|kind| node_type.ends_with(kind));
        let value = if is_text {
            Value::String(value.to_owned())
        } else {
            json_or_text(value)
        };
        if out.insert(name.to_owned(), value).is_some() {
            bail!("--param {name}: given twice");
        }
    }
    Ok(out)
}
/// Reads `NAME=VALUE` pairs; a value is JSON, or else text.
///
/// # Errors
/// One without `=`, or a name that occurs twice.
pub(crate) fn pairs(flag: &str, pairs: &[String]) -> anyhow::Result<Map<String, Value>> {
    let mut out = Map::new();
    for pair in pairs {
        let (name, value) = pair
            .split_once('=')
            .with_context(|| format!("{flag} {pair}: expected NAME=VALUE"))?;
        if out.insert(name.trim().to_owned(), json_or_text(value)).is_some() {
            bail!("{flag} {name}: given twice");
        }
    }
    Ok(out)
}
/// A value of a command line: JSON, or else text.
pub(crate) fn json_or_text(value: &str) -> Value {
    serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()))
}
fn list(names: &[&str]) -> String {
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    }
}
/// Names and types of the input nodes.
fn inputs(workflow: &Value) -> Vec<(String, String)> {
    let graph = workflow.get("graph").unwrap_or(workflow);
    let nodes = graph
        .get("nodes")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    nodes.iter().filter_map(input).collect()
}
fn input(node: &Value) -> Option<(String, String)> {
    let text = |value: &Value, key: &str| {
        value
            .get(key)
            .and_then(Value::as_str)
            .map(str::trim)
            .filter(|text| !text.is_empty())
            .map(ToOwned::to_owned)
    };
    let node_type = text(node, "type")?;
    if !node_type.starts_with("nodetool.input.") && node_type != "test.Input" {
        return None;
    }
    let properties = node
        .get("properties")
        .or_else(|| node.get("data"))
        .cloned()
        .unwrap_or_default();
    let name = text(&properties, "name")
        .or_else(|| text(node, "name"))
        .or_else(|| text(node, "id"))?;
    Some((name, node_type))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_stays_text_and_the_rest_is_json() {
        let workflow = json!({"graph": {"nodes": [
            {"id": "1", "type": "nodetool.input.StringInput", "properties": {"name": "idea"}},
            {"id": "2", "type": "nodetool.input.IntegerInput", "data": {"name": "count"}},
            {"id": "3", "type": "nodetool.input.BooleanInput", "name": "night"},
        ]}});
        let params = [
            "idea=42".to_owned(),
            "count=3".to_owned(),
            "night=true".to_owned(),
        ];
        let parsed = parse(&params, &workflow).expect("params");
        assert_eq!(
            Value::Object(parsed),
            json!({"idea": "42", "count": 3, "night": true})
        );
        assert!(parse(&["idea".to_owned()], &workflow).is_err());
        assert!(parse(&["idee=x".to_owned()], &workflow).is_err());
        assert!(parse(&["idea=x".to_owned(), "idea=y".to_owned()], &workflow).is_err());
    }
}

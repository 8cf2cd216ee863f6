//! From a workflow file to a hydrated graph: migrations, unknown types, unknown properties, dangling edges,
//! and the properties that edges replace. Lenient loading drops what it cannot use, strict loading reports
//! all of it.

use std::collections::{HashMap, HashSet};

use atelier_proto::{kernel::v1::Issue, value::is_value_too_deep};
use serde_json::Value as Json;

use super::{
    hydrate::hydrate,
    model::{HydratedGraph, INPUT_PREFIX, RawEdge, RawGraph, RawNode},
};
use crate::node::Registry;

/// Types that are there for people only; they take no part in a run (kernel specification 1.10).
const PRESENTATION: &[&str] = &[
    "nodetool.workflows.base_node.Comment",
    "nodetool.workflows.base_node.Group",
];

/// Types of the field's files that are other types here; only where the registry does not have them itself.
const BUILT_IN: &[Migration<'_>] = &[
    same("test.Input", "nodetool.input.AnyInput"),
    same("kie.image.NanoBanana", "kie.image.GoogleNanoBanana"),
    same("vector.chroma.HybridSearch", "vector.HybridSearch"),
    same("lib.pedalboard.Bitcrush", "lib.audio.Bitcrush"),
    same("lib.pedalboard.Compress", "lib.audio.Compress"),
    same("lib.pedalboard.Delay", "lib.audio.Delay"),
    same("lib.pedalboard.Distortion", "lib.audio.Distortion"),
    same("lib.pedalboard.Gain", "lib.audio.Gain"),
    same("lib.pedalboard.HighPassFilter", "lib.audio.HighPassFilter"),
    same("lib.pedalboard.HighShelfFilter", "lib.audio.HighShelfFilter"),
    same("lib.pedalboard.Limiter", "lib.audio.Limiter"),
    same("lib.pedalboard.LowPassFilter", "lib.audio.LowPassFilter"),
    same("lib.pedalboard.LowShelfFilter", "lib.audio.LowShelfFilter"),
    same("lib.pedalboard.NoiseGate", "lib.audio.NoiseGate"),
    same("lib.pedalboard.PeakFilter", "lib.audio.PeakFilter"),
    same("lib.pedalboard.Phaser", "lib.audio.Phaser"),
    same("lib.pedalboard.PitchShift", "lib.audio.PitchShift"),
    same("lib.pedalboard.Reverb", "lib.audio.Reverb"),
    same("lib.pedalboard.TimeStretch", "lib.audio.TimeStretch"),
];
/// A type that is only called differently.
const fn same(from: &'static str, to: &'static str) -> Migration<'static> {
    Migration {
        from,
        to,
        renames: &[],
    }
}
/// Outputs that older files call differently: type, old name, name.
const OLD_OUTPUTS: &[(&str, &str, &str)] = &[("nodetool.generators.DataGenerator", "output", "dataframe")];

/// Longest id of a node, in bytes: it is part of keys in the database.
const MAX_NODE_ID: usize = 256;

/// How a file is loaded.
#[derive(Debug, Clone, Copy, Default)]
pub struct LoadOptions<'a> {
    /// Report instead of drop.
    pub strict: bool,
    /// Properties that the type does not declare are not kept, unless it takes dynamic inputs.
    pub forbid_unknown_properties: bool,
    /// Types that are gone, and what stands in for them.
    pub migrations: &'a [Migration<'a>],
}
/// A type that was replaced by another.
#[derive(Debug, Clone, Copy)]
pub struct Migration<'a> {
    /// The type in old files.
    pub from: &'a str,
    /// The type that replaces it.
    pub to: &'a str,
    /// Properties and inputs that are called differently: old name, name in the replacement.
    pub renames: &'a [(&'a str, &'a str)],
}

fn problem(code: &str, node: &str, ty: &str, property: &str, message: String) -> Issue {
    let (node_id, node_type, property) = (node.to_owned(), ty.to_owned(), property.to_owned());
    Issue {
        code: code.to_owned(),
        node_id,
        node_type,
        property,
        message,
    }
}

/// Loads a workflow: `{nodes, edges}`, or an object whose `graph` is that.
///
/// # Errors
/// `graph.malformed` when it is no graph. In strict mode every node and edge that cannot be used, all at
/// once.
pub fn load(
    json: &Json,
    registry: &Registry,
    options: &LoadOptions<'_>,
) -> Result<HydratedGraph, Vec<Issue>> {
    let mut issues = Vec::new();
    let graph = load_lenient(json, registry, options, &mut issues).map_err(|malformed| vec![malformed])?;
    if options.strict && !issues.is_empty() {
        Err(issues)
    } else {
        Ok(graph)
    }
}

/// Loads what can be loaded and says what was dropped.
///
/// # Errors
/// `graph.malformed` when it is no graph.
pub fn load_lenient(
    json: &Json,
    registry: &Registry,
    options: &LoadOptions<'_>,
    issues: &mut Vec<Issue>,
) -> Result<HydratedGraph, Issue> {
    let mut raw = parse(json, issues)?;
    let unknown = |migration: &&Migration<'_>| registry.meta(migration.from).is_none();
    let built_in: Vec<Migration<'_>> = BUILT_IN.iter().filter(unknown).copied().collect();
    migrate(&mut raw, &built_in);
    migrate(&mut raw, options.migrations);
    rename_input_handles(&mut raw, registry);
    rename_command_handles(&mut raw, registry);
    let all: HashSet<String> = raw.nodes.iter().map(|node| node.id.clone()).collect();
    raw.nodes
        .retain(|node| !PRESENTATION.contains(&node.node_type.as_str()));
    raw.nodes.retain(|node| {
        let known = registry.meta(&node.node_type).is_some();
        if !known {
            let text = format!("node {} has the unknown type {}", node.id, node.node_type);
            issues.push(problem(
                "graph.unknown_type",
                &node.id,
                &node.node_type,
                "type",
                text,
            ));
        }
        known
    });
    raw.nodes.iter_mut().for_each(|node| forbid_depth(node, issues));
    if options.forbid_unknown_properties {
        raw.nodes
            .iter_mut()
            .for_each(|node| forbid_unknown_properties(node, registry, issues));
    }
    let kept: HashSet<String> = raw.nodes.iter().map(|node| node.id.clone()).collect();
    raw.edges.retain(|edge| {
        for (node, end) in [(&edge.source, "source"), (&edge.target, "target")] {
            if !all.contains(node) {
                let text = format!(
                    "edge {} names the node {node} as its {end}, but there is no such node",
                    edge.id
                );
                let handle = if end == "source" {
                    &edge.source_handle
                } else {
                    &edge.target_handle
                };
                issues.push(problem("graph.unknown_endpoint", node, "", handle, text));
            }
        }
        kept.contains(&edge.source) && kept.contains(&edge.target)
    });
    prune(&mut raw);
    Ok(hydrate(&raw, registry))
}

/// Reads the shape of a file, without any registry.
///
/// # Errors
/// `graph.malformed` when it is no object with `nodes` and `edges`.
pub fn parse(json: &Json, issues: &mut Vec<Issue>) -> Result<RawGraph, Issue> {
    let graph = json
        .get("graph")
        .filter(|graph| graph.is_object())
        .unwrap_or(json);
    let list = |key: &str| {
        let text =
            format!("a graph is an object with the lists nodes and edges; {key} is missing or no list");
        graph
            .get(key)
            .and_then(Json::as_array)
            .ok_or_else(|| problem("graph.malformed", "", "", key, text))
    };
    let (nodes, edges) = (list("nodes")?, list("edges")?);
    let mut raw = RawGraph::default();
    for (at, json) in nodes.iter().enumerate() {
        match RawNode::from_json(json) {
            Some(node) if node.id.len() > MAX_NODE_ID || node.id.contains('\0') => {
                let text = format!(
                    "the id of node number {at} must have at most {MAX_NODE_ID} bytes and no character with the code 0"
                );
                issues.push(problem("graph.malformed", "", "", "nodes", text));
            }
            Some(node) => raw.nodes.push(node),
            None => {
                let id = json.get("id").and_then(Json::as_str).unwrap_or_default();
                let text = format!("node number {at} needs the texts id and type");
                issues.push(problem("graph.malformed", id, "", "nodes", text));
            }
        }
    }
    for (at, json) in edges.iter().enumerate() {
        match RawEdge::from_json(json) {
            Some(edge) => raw.edges.push(edge),
            None => {
                let text =
                    format!("edge number {at} needs the texts source, sourceHandle, target and targetHandle");
                issues.push(problem("graph.malformed", "", "", "edges", text));
            }
        }
    }
    Ok(raw)
}

fn migrate(raw: &mut RawGraph, migrations: &[Migration<'_>]) {
    let mut renamed: HashMap<String, &[(&str, &str)]> = HashMap::new();
    for node in &mut raw.nodes {
        let Some(found) = migrations
            .iter()
            .find(|migration| migration.from == node.node_type)
        else {
            continue;
        };
        found.to.clone_into(&mut node.node_type);
        renamed.insert(node.id.clone(), found.renames);
        for (old, name) in found.renames {
            for values in [&mut node.properties, &mut node.dynamic_properties] {
                if let Some(value) = values.shift_remove(*old) {
                    values.insert((*name).to_owned(), value);
                }
            }
        }
    }
    for edge in raw.edges.iter_mut().filter(|edge| !edge.control) {
        let rename = renamed
            .get(&edge.target)
            .and_then(|all| all.iter().find(|(old, _)| *old == edge.target_handle));
        if let Some((_, name)) = rename {
            (*name).clone_into(&mut edge.target_handle);
        }
    }
}

/// A value that no message can carry would make the events of the run unreadable.
fn forbid_depth(node: &mut RawNode, issues: &mut Vec<Issue>) {
    for values in [&mut node.properties, &mut node.dynamic_properties] {
        values.retain(|name, value| {
            let deep = is_value_too_deep(value);
            if deep {
                let text = format!("the property {name} of node {} is nested too deeply", node.id);
                issues.push(problem("graph.too_deep", &node.id, &node.node_type, name, text));
            }
            !deep
        });
    }
}

fn forbid_unknown_properties(node: &mut RawNode, registry: &Registry, issues: &mut Vec<Issue>) {
    let Some(meta) = registry.meta(&node.node_type) else {
        return;
    };
    if meta.dynamic_inputs || meta.inputs.is_empty() {
        return;
    }
    let RawNode {
        id,
        node_type,
        properties,
        dynamic_inputs,
        ..
    } = node;
    properties.retain(|name, _| {
        let known = meta.inputs.iter().any(|input| input.name == *name) || dynamic_inputs.contains_key(name);
        if !known {
            let text = format!("node {id} of type {node_type} has no property {name}");
            issues.push(problem("graph.unknown_property", id, node_type, name, text));
        }
        known
    });
}

/// Older files take the value of an input from the handle `value`; it is called `output`. Some other outputs have other
/// names too.
fn rename_input_handles(raw: &mut RawGraph, registry: &Registry) {
    let has = |node_type: &str, name: &str| {
        registry
            .meta(node_type)
            .is_some_and(|meta| meta.outputs.iter().any(|output| output.name == name))
    };
    let inputs: HashSet<&str> = raw
        .nodes
        .iter()
        .filter(|node| node.node_type.starts_with(INPUT_PREFIX))
        .filter(|node| has(&node.node_type, "output") && !has(&node.node_type, "value"))
        .map(|node| node.id.as_str())
        .collect();
    let types: HashMap<&str, &str> = raw
        .nodes
        .iter()
        .map(|node| (node.id.as_str(), node.node_type.as_str()))
        .collect();
    for edge in &mut raw.edges {
        if edge.source_handle == "value" && inputs.contains(edge.source.as_str()) {
            "output".clone_into(&mut edge.source_handle);
        }
        let ty = types.get(edge.source.as_str()).copied().unwrap_or_default();
        let old = OLD_OUTPUTS
            .iter()
            .find(|(of, old, _)| *of == ty && *old == edge.source_handle);
        if let Some((_, _, name)) = old {
            (*name).clone_into(&mut edge.source_handle);
        }
    }
}

/// Older files take what a command writes from the handle `output`; it is called `stdout`.
fn rename_command_handles(raw: &mut RawGraph, registry: &Registry) {
    let has = |node: &RawNode, name: &str| {
        let meta = registry.meta(&node.node_type);
        let declared = meta.is_some_and(|meta| meta.outputs.iter().any(|output| output.name == name));
        declared || node.dynamic_outputs.contains_key(name)
    };
    let commands: HashSet<&str> = raw
        .nodes
        .iter()
        .filter(|node| node.node_type.starts_with("nodetool.code."))
        .filter(|node| has(node, "stdout") && !has(node, "output"))
        .map(|node| node.id.as_str())
        .collect();
    for edge in raw.edges.iter_mut().filter(|edge| edge.source_handle == "output") {
        if commands.contains(edge.source.as_str()) {
            "stdout".clone_into(&mut edge.source_handle);
        }
    }
}

/// Removes the static values of handles that an edge feeds: the edge wins.
fn prune(raw: &mut RawGraph) {
    let at: HashMap<String, usize> = raw
        .nodes
        .iter()
        .enumerate()
        .map(|(at, node)| (node.id.clone(), at))
        .collect();
    for edge in &raw.edges {
        if let Some(node) = at.get(&edge.target).and_then(|at| raw.nodes.get_mut(*at)) {
            node.properties.shift_remove(&edge.target_handle);
            node.dynamic_properties.shift_remove(&edge.target_handle);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::nodes::registry;

    #[test]
    fn older_spellings_of_inputs_are_read() {
        let file = json!({"nodes": [
            {"id": "a", "type": "test.Input", "name": "text"},
            {"id": "b", "type": "nodetool.input.StringInput", "properties": {"name": "more"}},
            {"id": "c", "type": "nodetool.text.Concat"},
            {"id": "note", "type": "nodetool.workflows.base_node.Comment"},
        ], "edges": [
            {"source": "a", "sourceHandle": "value", "target": "c", "targetHandle": "a"},
            {"source": "b", "sourceHandle": "value", "target": "c", "targetHandle": "b"},
        ]});
        let strict = LoadOptions {
            strict: true,
            ..LoadOptions::default()
        };
        let graph = load(&file, &registry(), &strict).expect("a graph");
        let types: Vec<&str> = graph.nodes.iter().map(|node| &*node.node_type).collect();
        assert_eq!(
            types,
            [
                "nodetool.input.AnyInput",
                "nodetool.input.StringInput",
                "nodetool.text.Concat"
            ]
        );
        assert!(graph.edges.iter().all(|edge| &*edge.source_handle == "output"));
    }
}

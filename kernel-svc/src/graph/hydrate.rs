//! Merges nodes with the declarations of their types. Flags of the registry win over saved ones, also when
//! they are false; correlation metadata and retry safety come from the registry alone.

use std::{collections::HashSet, sync::Arc};

use indexmap::IndexMap;

use super::model::{CONTROL, Edge, Flags, HydratedGraph, Node, RawEdge, RawGraph, RawNode, Types};
use crate::node::{NodeMeta, Registry};

/// Hydrates a graph. Nodes of unknown type keep what the file says; the loader has dropped or reported them
/// before. A control edge makes its target a controlled node.
#[must_use]
pub fn hydrate(raw: &RawGraph, registry: &Registry) -> HydratedGraph {
    let mut nodes: Vec<Node> = raw
        .nodes
        .iter()
        .map(|node| hydrate_node(node, registry))
        .collect();
    let edges: Vec<Edge> = raw.edges.iter().map(edge).collect();
    let controlled: HashSet<&Arc<str>> = edges
        .iter()
        .filter(|edge| edge.control)
        .map(|edge| &edge.target)
        .collect();
    for node in &mut nodes {
        node.flags.controlled |= controlled.contains(&node.id);
    }
    HydratedGraph { nodes, edges }
}

fn edge(raw: &RawEdge) -> Edge {
    let RawEdge {
        id,
        source,
        source_handle,
        target,
        target_handle,
        control,
    } = raw;
    Edge {
        id: id.as_str().into(),
        source: source.as_str().into(),
        source_handle: source_handle.as_str().into(),
        target: target.as_str().into(),
        target_handle: target_handle.as_str().into(),
        control: *control,
    }
}

fn hydrate_node(raw: &RawNode, registry: &Registry) -> Node {
    let unknown = || {
        Arc::new(NodeMeta {
            node_type: raw.node_type.clone(),
            ..NodeMeta::default()
        })
    };
    let meta = registry.meta(&raw.node_type).map_or_else(unknown, Arc::clone);
    let flag = |registry: Option<bool>, saved: Option<bool>| registry.or(saved).unwrap_or(false);
    let flags = Flags {
        streaming_input: flag(meta.streaming_input, raw.flags.streaming_input),
        streaming_output: flag(meta.streaming_output, raw.flags.streaming_output),
        controlled: flag(meta.controlled, raw.flags.controlled),
        join: flag(meta.join, raw.flags.join),
    };
    let mut outputs: Types = meta
        .outputs
        .iter()
        .map(|output| (output.name.as_str().into(), output.ty.as_str().into()))
        .collect();
    outputs.extend(
        raw.outputs
            .iter()
            .map(|(name, ty)| (name.as_str().into(), ty.as_str().into())),
    );
    for (name, ty) in &raw.dynamic_outputs {
        outputs
            .entry(name.as_str().into())
            .or_insert_with(|| ty.as_str().into());
    }
    let declared = meta
        .inputs
        .iter()
        .map(|input| (input.name.clone(), input.ty.as_str().into()));
    let mut inputs: IndexMap<String, Arc<str>> = declared.collect();
    inputs.extend(
        raw.inputs
            .iter()
            .map(|(name, ty)| (name.clone(), ty.as_str().into())),
    );
    for (name, slot) in &raw.dynamic_inputs {
        inputs
            .entry(name.clone())
            .or_insert_with(|| slot.ty.as_str().into());
    }
    inputs.shift_remove(CONTROL);
    Node {
        id: raw.id.as_str().into(),
        node_type: raw.node_type.as_str().into(),
        name: raw.name.as_deref().map(Into::into),
        properties: Arc::new(raw.properties.clone()),
        dynamic_properties: Arc::new(raw.dynamic_properties.clone()),
        dynamic_inputs: raw.dynamic_inputs.clone(),
        parent_id: raw.parent_id.as_deref().map(Into::into),
        bypassed: raw.bypassed,
        outputs: Arc::new(outputs),
        inputs,
        flags,
        meta,
    }
}

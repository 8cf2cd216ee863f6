//! Workflow files: the project's examples, and small graphs for tests.

use anyhow::Context;
use serde_json::{Value, json};

use crate::process::root;

/// One of the project's examples.
///
/// # Errors
/// It is not there.
pub fn example(name: &str) -> anyhow::Result<Value> {
    let path = root().join("examples").join(name).with_extension("json");
    let text = std::fs::read(&path).with_context(|| path.display().to_string())?;
    Ok(serde_json::from_slice(&text)?)
}
/// A node.
#[must_use]
pub fn node(id: &str, node_type: &str, properties: Value) -> Value {
    json!({"id": id, "type": node_type, "properties": properties})
}
/// An edge, its ends written `node.handle`.
#[must_use]
pub fn edge(id: &str, from: &str, to: &str) -> Value {
    let (source, source_handle) = from.split_once('.').unwrap_or((from, "output"));
    let (target, target_handle) = to.split_once('.').unwrap_or((to, "value"));
    json!({"id": id, "source": source, "sourceHandle": source_handle, "target": target, "targetHandle": target_handle})
}
/// A graph.
#[must_use]
pub fn graph(nodes: Vec<Value>, edges: Vec<Value>) -> Value {
    json!({"nodes": nodes, "edges": edges})
}
/// Draws one picture for each text of a list.
#[must_use]
pub fn fan_out(prompts: &[&str], draw: Value) -> Value {
    let mut properties = json!({"model": {"type": "image_model", "provider": "sketch", "id": "sketch-image"},
        "width": 64, "height": 64});
    if let (Some(properties), Some(draw)) = (properties.as_object_mut(), draw.as_object()) {
        properties.extend(draw.clone());
    }
    graph(
        vec![
            node("l", "nodetool.constant.List", json!({"value": prompts})),
            node("each", "nodetool.control.ForEach", json!({})),
            node("g", "nodetool.image.TextToImage", properties),
            node(
                "p",
                "nodetool.workflows.base_node.Preview",
                json!({"name": "shown"}),
            ),
        ],
        vec![
            edge("e1", "l.output", "each.input_list"),
            edge("e2", "each.output", "g.prompt"),
            edge("e3", "g.output", "p.value"),
        ],
    )
}

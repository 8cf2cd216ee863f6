//! Nodes that run a workflow inside of their own run: a saved one, a copy that the node holds, or a graph of its own.
//!
//! The inputs that were added to the node are the parameters of the inner run, and the outputs of the inner run are the
//! node's outputs: a value, or the list of them where an output had several.

use async_trait::async_trait;
use atelier_proto::value::{BytesForm, Map, Value, to_json};

use super::code::{Types, factory};
use crate::node::{Context, Executor, InnerRun, NodeError};

const WORKFLOW_ID: &str = "workflow_id";
const WORKFLOW_JSON: &str = "workflow_json";
const GRAPH: &str = "graph";

/// All types of this family.
pub(super) fn types() -> Types {
    vec![
        ("nodetool.workflows.workflow_node.Workflow", factory(Inside)),
        ("nodetool.workflows.subgraph.Subgraph", factory(Inside)),
    ]
}

#[derive(Clone, Copy)]
struct Inside;
#[async_trait]
impl Executor for Inside {
    async fn process(&mut self, mut inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let id = inputs.shift_remove(WORKFLOW_ID);
        let workflow_id = id
            .as_ref()
            .and_then(Value::as_str)
            .map(str::trim)
            .filter(|id| !id.is_empty())
            .map(ToOwned::to_owned);
        let held = [WORKFLOW_JSON, GRAPH]
            .into_iter()
            .filter_map(|name| inputs.shift_remove(name))
            .find_map(|held| graph_of(&held));
        if workflow_id.is_none() && held.is_none() {
            return Err(NodeError::new(format!(
                "node {} names no workflow: set {WORKFLOW_ID}",
                ctx.node_id
            )));
        }
        let inner = InnerRun {
            workflow_id,
            graph: held,
            params: inputs,
        };
        let outputs = ctx.services.run_inside(ctx, inner).await?;
        Ok(outputs
            .into_iter()
            .filter_map(|(name, values)| Some((name, single(values)?)))
            .collect())
    }
}
/// The graph of a workflow that a node holds; none when there is nothing in it.
fn graph_of(held: &Value) -> Option<String> {
    let json = to_json(held, BytesForm::Tagged);
    let graph = json
        .get("graph")
        .filter(|graph| graph.is_object())
        .unwrap_or(&json);
    let nodes = graph.get("nodes").and_then(serde_json::Value::as_array)?;
    (!nodes.is_empty()).then(|| graph.to_string())
}
/// A value of an output; the list where there are several, none where there is none.
fn single(values: Value) -> Option<Value> {
    match values.as_list() {
        Some([]) => None,
        Some([value]) => Some(value.clone()),
        _ => Some(values),
    }
}

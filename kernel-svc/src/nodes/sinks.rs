//! What shows or names a result, and what is only there for people.

use atelier_proto::value::Map;

use super::{
    args::{Args, one},
    code::{Routed, Types, factory},
};
use crate::node::NodeError;

/// All types of this family.
pub(super) fn types() -> Types {
    vec![
        ("nodetool.output.Output", factory(Routed(show))),
        ("nodetool.workflows.base_node.Comment", factory(Routed(nothing))),
        ("nodetool.workflows.base_node.Group", factory(Routed(nothing))),
        ("nodetool.workflows.base_node.Preview", factory(Routed(show))),
    ]
}
/// Absent in, absent out; null goes out as null.
fn show(args: Args<'_>) -> Result<Map, NodeError> {
    Ok(args
        .0
        .get("value")
        .map(|value| one("output", value.clone()))
        .unwrap_or_default())
}
fn nothing(_args: Args<'_>) -> Result<Map, NodeError> {
    Ok(Map::new())
}

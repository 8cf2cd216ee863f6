//! The type of loops. The engine runs them itself; there is no code to call.

use async_trait::async_trait;
use atelier_proto::value::Map;

use crate::{
    graph::loops::LOOP,
    node::{Context, Executor, NodeError},
    nodes::code::{Types, factory},
};

/// All types of this part.
pub(super) fn types() -> Types {
    vec![(LOOP, factory(Loop))]
}

#[derive(Clone, Copy)]
struct Loop;
#[async_trait]
impl Executor for Loop {
    async fn process(&mut self, _inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let text = format!(
            "node {} is a loop, which only runs as a part of a graph",
            ctx.node_id
        );
        Err(NodeError::new(text).code("loop.alone"))
    }
}

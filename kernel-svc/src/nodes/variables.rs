//! Types that write and read variables of the run.

use async_trait::async_trait;
use atelier_proto::value::Map;

use super::{
    args::{Args, one},
    code::{Generator, Sink, Streamed, Types, factory},
};
use crate::node::{Context, Executor, NodeError};

/// All types of this family.
pub(super) fn types() -> Types {
    vec![
        ("nodetool.variable.GetVariable", factory(Streamed(Get))),
        ("nodetool.variable.SetVariable", factory(Set)),
    ]
}

#[derive(Clone, Copy)]
struct Set;
#[async_trait]
impl Executor for Set {
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let args = Args(&inputs);
        let value = args.value("value");
        ctx.variables.publish(&args.text("name"), value.clone())?;
        Ok(one("output", value))
    }
}

/// One frame for each value, until nobody can write any more.
#[derive(Clone, Copy)]
struct Get;
#[async_trait]
impl Generator for Get {
    async fn generate(&self, inputs: Map, frames: &mut dyn Sink, ctx: &Context) -> Result<(), NodeError> {
        let mut reader = ctx.variables.read(&Args(&inputs).text("name"));
        loop {
            let value = tokio::select! {
                biased;
                () = ctx.cancel.cancelled() => return Err(NodeError::cancelled()),
                value = reader.next() => value,
            };
            match value {
                Some(value) => frames.frame(one("output", value)).await?,
                None => return Ok(()),
            }
        }
    }
}

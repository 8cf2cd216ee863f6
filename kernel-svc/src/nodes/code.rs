//! Three small shapes of node code, so that a type is mostly one function.

use async_trait::async_trait;
use atelier_proto::value::{Map, Value};
use std::sync::Arc;

use super::args::{Args, one};
use crate::{
    node::{Context, Executor, Factory, NodeError, Offers},
    run::Frames,
};

/// A family's types with the code of each.
pub(super) type Types = Vec<(&'static str, Factory)>;

/// A factory of equal executors.
pub(super) fn factory<E: Executor + Clone + 'static>(code: E) -> Factory {
    Arc::new(move || Box::new(code.clone()))
}

/// Inputs in, the value of the handle `output` out.
pub(super) type Compute = fn(Args<'_>) -> Result<Value, NodeError>;

/// A node that computes one value.
#[derive(Clone, Copy)]
pub(super) struct Plain(pub Compute);
#[async_trait]
impl Executor for Plain {
    async fn process(&mut self, inputs: Map, _ctx: &Context) -> Result<Map, NodeError> {
        Ok(one("output", self.0(Args(&inputs))?))
    }
}

/// Inputs in, values by handle out.
pub(super) type Route = fn(Args<'_>) -> Result<Map, NodeError>;

/// A node that computes the values of several handles, or leaves some out.
#[derive(Clone, Copy)]
pub(super) struct Routed(pub Route);
#[async_trait]
impl Executor for Routed {
    async fn process(&mut self, inputs: Map, _ctx: &Context) -> Result<Map, NodeError> {
        self.0(Args(&inputs))
    }
}

/// Where a generator puts its frames.
#[async_trait]
pub(super) trait Sink: Send {
    /// Takes one frame; waits while consumers are behind.
    async fn frame(&mut self, frame: Map) -> Result<(), NodeError>;
}
#[async_trait]
impl Sink for Frames<'_> {
    async fn frame(&mut self, frame: Map) -> Result<(), NodeError> {
        self.send(frame).await
    }
}
#[async_trait]
impl Sink for Vec<Map> {
    async fn frame(&mut self, frame: Map) -> Result<(), NodeError> {
        self.push(frame);
        Ok(())
    }
}
/// Keeps the last value of each handle.
#[derive(Default)]
struct Merged(Map);
#[async_trait]
impl Sink for Merged {
    async fn frame(&mut self, frame: Map) -> Result<(), NodeError> {
        self.0
            .extend(frame.into_iter().filter(|(_, value)| !value.is_null()));
        Ok(())
    }
}

/// Code that yields frames.
#[async_trait]
pub(super) trait Generator: Send + Sync {
    /// See [`Executor::remembered`].
    fn remembered(&self) -> bool {
        true
    }
    /// Runs one invocation.
    async fn generate(&self, inputs: Map, frames: &mut dyn Sink, ctx: &Context) -> Result<(), NodeError>;
}

/// A node that yields frames. Called as a whole, it gives the last value of each handle.
#[derive(Clone, Copy)]
pub(super) struct Streamed<G>(pub G);
#[async_trait]
impl<G: Generator> Executor for Streamed<G> {
    fn remembered(&self) -> bool {
        self.0.remembered()
    }
    fn offers(&self) -> Offers {
        Offers {
            stream: true,
            run: false,
        }
    }
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let mut merged = Merged::default();
        self.0.generate(inputs, &mut merged, ctx).await?;
        Ok(merged.0)
    }
    async fn stream(&mut self, inputs: Map, frames: &mut Frames<'_>, ctx: &Context) -> Result<(), NodeError> {
        self.0.generate(inputs, frames, ctx).await
    }
}

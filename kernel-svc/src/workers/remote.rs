//! A served type as the engine sees it: an executor whose code runs in another process.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use async_trait::async_trait;
use atelier_proto::{kernel::v1::InvocationMode, value::Map};

use super::{
    calls::Spec,
    driver::{Driver, Given},
    frame::{handle_of, lineage_of},
    hub::{Hub, TypeKey},
};
use crate::{
    node::{Context, Executor, Factory, NodeError, NodeMeta, Offers},
    run::{Arrival, Envelope, Frames, Inputs, Lineage, Outputs},
};

/// How long a yield may wait for its readers before the slot of its invocation is lent to others: the readers may be nodes
/// of the same worker, which would wait for that slot for ever.
const LEND_AFTER: Duration = Duration::from_millis(100);

/// Makes the code of nodes of a served type.
pub(super) fn factory(hub: Weak<Hub>, key: TypeKey, meta: &NodeMeta) -> Factory {
    let retry_safe = meta.retry_safe;
    let offers = Offers {
        stream: meta.streaming_output == Some(true),
        run: meta.streaming_input == Some(true),
    };
    Arc::new(move || {
        Box::new(Remote {
            hub: Weak::clone(&hub),
            key: key.clone(),
            offers,
            retry_safe,
        })
    })
}
struct Remote {
    hub: Weak<Hub>,
    key: TypeKey,
    offers: Offers,
    retry_safe: bool,
}
impl Remote {
    fn open(
        &self,
        mode: InvocationMode,
        inputs: &Map,
        streams: Vec<String>,
        ctx: &Context,
    ) -> Result<Driver, NodeError> {
        let hub = self
            .hub
            .upgrade()
            .ok_or_else(|| NodeError::new("the kernel is going down"))?;
        let spec = Spec {
            key: self.key.clone(),
            job_id: Arc::clone(&ctx.job_id),
            node_id: Arc::clone(&ctx.node_id),
            invocation: Arc::clone(&ctx.invocation),
            retry_safe: self.retry_safe,
            streams: mode == InvocationMode::Run,
        };
        Driver::open(hub, spec, mode, inputs, streams, ctx)
    }
}
/// A frame that has no meaning for how the node runs.
fn out_of_place(what: &str, ctx: &Context) -> NodeError {
    let (node, ty) = (&ctx.node_id, &ctx.node_type);
    NodeError::new(format!("node {node} ({ty}): the worker sent {what}")).code("worker.protocol")
}
async fn process(driver: &mut Driver, ctx: &Context) -> Result<Map, NodeError> {
    loop {
        match driver.next().await? {
            Given::Result(outputs) => return Ok(outputs),
            Given::End => return Ok(Map::new()),
            Given::Note(note) => ctx.note(note).await,
            Given::Room => {}
            Given::Values(..) | Given::Forward { .. } | Given::Drop { .. } | Given::Complete(_) => {
                return Err(out_of_place("a yield where one result was asked for", ctx));
            }
        }
    }
}
async fn stream(driver: &mut Driver, frames: &mut Frames<'_>, ctx: &Context) -> Result<(), NodeError> {
    loop {
        match driver.next().await? {
            Given::Result(outputs) => return frames.send(outputs).await,
            Given::End => return Ok(()),
            Given::Note(note) => ctx.note(note).await,
            Given::Room => {}
            Given::Values(values, _) => {
                let sending = frames.send(values);
                tokio::pin!(sending);
                match tokio::time::timeout(LEND_AFTER, &mut sending).await {
                    Ok(sent) => sent?,
                    Err(_) => {
                        driver.lend_slot(true);
                        let sent = sending.await;
                        driver.lend_slot(false);
                        sent?;
                    }
                }
            }
            Given::Complete(output) => frames.complete(&output),
            Given::Forward { .. } | Given::Drop { .. } => {
                return Err(out_of_place("a lineage where the node reads no stream", ctx));
            }
        }
    }
}
async fn run(
    driver: &mut Driver,
    inputs: &mut Inputs<'_>,
    outputs: &mut Outputs<'_>,
    ctx: &Context,
) -> Result<(), NodeError> {
    // The worker may give something out at any time: that everybody waits for this node is no standstill.
    let _outside = inputs.outside();
    let roots = inputs.roots();
    let names: Vec<Arc<str>> = inputs.handles().cloned().collect();
    let mut told = vec![false; names.len()];
    let mut open = true;
    loop {
        let wanted: Vec<bool> = names.iter().map(|name| driver.streamed.wants(name)).collect();
        tokio::select! {
            arrival = inputs.arrival(&mut told, &wanted), if open => match arrival {
                Some(Arrival::Value(input, envelope)) => {
                    driver.feed(&input, Some(&envelope.value), handle_of(&envelope.lineage));
                }
                Some(Arrival::End(input)) => driver.feed(&input, None, Default::default()),
                None => open = false,
            },
            given = driver.next() => match given? {
                Given::Result(values) => return outputs.emit_group(values, Some(&Lineage::default())).await,
                Given::End => return Ok(()),
                Given::Note(note) => ctx.note(note).await,
                Given::Room => {}
                Given::Values(values, lineage) => {
                    let lineage = lineage_of(&lineage.unwrap_or_default(), roots)?;
                    // What was taken from the inbox is ahead of what the node has read: the engine's own idea of what an
                    // output forwards would be wrong.
                    let (forwarded, own): (Map, Map) =
                        values.into_iter().partition(|(output, _)| outputs.forwards(output));
                    for (output, value) in forwarded {
                        outputs.emit_with(&output, value, &lineage).await?;
                    }
                    if !own.is_empty() {
                        outputs.emit_group(own, Some(&lineage)).await?;
                    }
                }
                Given::Forward { output, value, lineage } => {
                    outputs.emit_with(&output, value, &lineage_of(&lineage, roots)?).await?;
                }
                Given::Drop { output, lineage } => {
                    let lineage = lineage_of(&lineage, roots)?;
                    outputs.drop(&output, &Envelope::new(Default::default(), lineage));
                }
                Given::Complete(output) => outputs.complete(&output),
            },
        }
    }
}

#[async_trait]
impl Executor for Remote {
    fn offers(&self) -> Offers {
        self.offers
    }
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let mut driver = self.open(InvocationMode::Process, &inputs, Vec::new(), ctx)?;
        let outcome = process(&mut driver, ctx).await;
        driver.finish().await;
        outcome
    }
    async fn stream(&mut self, inputs: Map, frames: &mut Frames<'_>, ctx: &Context) -> Result<(), NodeError> {
        let mut driver = self.open(InvocationMode::Stream, &inputs, Vec::new(), ctx)?;
        let outcome = stream(&mut driver, frames, ctx).await;
        driver.finish().await;
        outcome
    }
    async fn run(
        &mut self,
        inputs: &mut Inputs<'_>,
        outputs: &mut Outputs<'_>,
        ctx: &Context,
    ) -> Result<(), NodeError> {
        let streams = inputs.handles().map(ToString::to_string).collect();
        let mut driver = self.open(InvocationMode::Run, inputs.properties(), streams, ctx)?;
        let outcome = run(&mut driver, inputs, outputs, ctx).await;
        driver.finish().await;
        outcome
    }
}

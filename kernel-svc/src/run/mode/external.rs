//! Mode 0: inputs of the run. They have no actor; `process` is called for every value that the run gets or is
//! pushed.

use std::sync::Arc;

use atelier_proto::value::{Map, Value};
use tokio::sync::Mutex;

use crate::{
    graph::plan::PlanNode,
    node::{Context, Executor, NodeError},
    run::{cancel::call, core::Core, inbox::Envelope, lineage::Lineage},
};

/// An input of the run.
pub(crate) struct External {
    pub node: Arc<PlanNode>,
    pub ctx: Context,
    /// One value at a time.
    pub exec: Mutex<Box<dyn Executor>>,
}

impl External {
    /// Whether values may be pushed after the start.
    pub fn stays_open(&self, params: &Map) -> bool {
        self.node.node.flags.streaming_output || self.initial(params).is_none()
    }
    /// The value that it starts with: the run's parameter, else its own property.
    pub fn initial(&self, params: &Map) -> Option<Value> {
        let name = self.node.node.input_name();
        let own = || {
            self.node
                .statics
                .get("value")
                .filter(|_| !self.node.node.flags.streaming_output)
        };
        params.get(name).or_else(own).cloned()
    }
    /// Sends a value through the node, whose code sees it as `value`, and on to its edges, or to those of one
    /// output. When the node gives nothing at all the value itself is delivered everywhere.
    pub async fn send(&self, core: &Core, value: Value, handle: Option<&str>) -> Result<(), NodeError> {
        let mut exec = self.exec.lock().await;
        let inputs: Map = [("value".to_owned(), value.clone())].into_iter().collect();
        let outputs = call(
            &self.ctx.cancel,
            core.options.cancel_grace,
            exec.process(inputs, &self.ctx),
        )
        .await?;
        for at in &self.node.edges_out {
            let Some(edge) = core.plan.edges.get(*at) else {
                continue;
            };
            let ended = core.edges.get(*at).is_some_and(|state| state.is_ended());
            if ended || handle.is_some_and(|handle| handle != &*edge.source_handle) {
                continue;
            }
            let value = if outputs.is_empty() {
                Some(&value)
            } else {
                outputs.get(&*edge.source_handle)
            };
            if let Some(value) = value {
                let envelope = Envelope::new(value.clone(), Lineage::default());
                core.deliver(*at, envelope, &self.ctx.cancel).await?;
            }
        }
        Ok(())
    }
    /// Ends its edges, or those of one output. True when none is left open.
    pub async fn finish(&self, core: &Core, handle: Option<&str>) -> bool {
        let mut open = false;
        for at in &self.node.edges_out {
            let own = core
                .plan
                .edges
                .get(*at)
                .is_some_and(|edge| handle.is_none_or(|handle| handle == &*edge.source_handle));
            if own {
                core.end_edge(*at).await;
            }
            open |= core.edges.get(*at).is_some_and(|state| !state.is_ended());
        }
        !open
    }
}

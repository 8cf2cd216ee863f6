//! Mode 7: `process` once for each key, its outputs routed and committed.

use atelier_proto::value::Map;

use super::keyed::Invocation;
use crate::{
    node::NodeError,
    run::{
        actor::Actor,
        routing::{Origin, scalars},
    },
};

impl Actor {
    pub(super) async fn invoke_buffered(&mut self, invocation: Invocation) -> Result<(), NodeError> {
        let Invocation {
            key,
            lineage,
            sources,
            inputs,
            name,
            driven,
        } = invocation;
        let silent = self.node.node.is_constant();
        let properties = if silent { None } else { scalars(&inputs) };
        let returned = self.returned(&name).await;
        self.emitter.replaying = returned.is_some();
        let outputs = match returned {
            Some(outputs) => Some(outputs),
            None => self.process(inputs, &key, &name).await?,
        };
        let Some(mut outputs) = outputs else {
            if !driven {
                self.emitter.skip(&key, true);
            }
            return Ok(());
        };
        self.keep_control(&name, &outputs).await;
        self.emitter
            .route(
                &mut outputs,
                &Origin {
                    lineage: &lineage,
                    sources: &sources,
                    numbers: true,
                },
                driven,
            )
            .await?;
        self.emitter.commit(outputs, &name, properties).await;
        self.emitter.replaying = false;
        Ok(())
    }
    /// What an earlier process got from this invocation.
    pub(super) async fn returned(&self, name: &str) -> Option<Map> {
        let journal = self.core.journal.as_ref()?;
        journal.returned(&self.node.label.id, name).await
    }
    /// Control events are part of no artifact: a controller's whole result is kept beside it.
    pub(super) async fn keep_control(&self, name: &str, outputs: &Map) {
        if self.core.journal.is_some() && !self.emitter.replaying && !self.node.control_out.is_empty() {
            self.emitter
                .remember(name, Some(std::iter::once(outputs.clone()).collect()))
                .await;
        }
    }
}

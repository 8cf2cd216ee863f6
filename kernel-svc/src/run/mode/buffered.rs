//! Mode 7: `process` once for each key, its outputs routed and committed.

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
        let Some(mut outputs) = self.process(inputs, &key, &name).await? else {
            self.emitter.skip(&key, true);
            return Ok(());
        };
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
        Ok(())
    }
}

//! Mode 7: `process` once for each key, its outputs routed and committed.

use super::keyed::Invocation;
use crate::{
    node::NodeError,
    run::{
        actor::Actor,
        cancel::call,
        routing::{Origin, scalars},
    },
};

impl Actor {
    pub(super) async fn invoke_buffered(&mut self, invocation: Invocation) -> Result<(), NodeError> {
        let Invocation {
            lineage,
            sources,
            inputs,
            name,
            driven,
            ..
        } = invocation;
        let silent = self.node.node.is_constant();
        let properties = if silent { None } else { scalars(&inputs) };
        let code = self.exec.process(inputs, &self.ctx);
        let mut outputs = call(&self.cancel, self.core.options.cancel_grace, code).await?;
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

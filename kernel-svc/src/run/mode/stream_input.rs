//! Modes 3 and 4: the node drains its own inbox with `run`; without that it is called once with its own
//! properties.

use std::sync::{Arc, Mutex};

use atelier_proto::kernel::v1::NodeStatus;

use crate::{
    node::NodeError,
    run::{
        actor::Actor,
        cancel::call,
        io::{Consumed, Inputs, Outputs},
        lineage::Lineage,
        routing::Origin,
        supervise::{Failed, Shape, Tries},
    },
};

impl Actor {
    pub(crate) async fn stream_input(&mut self) -> Result<(), NodeError> {
        if self.cancel.is_cancelled() {
            return Err(NodeError::cancelled());
        }
        let name = self.begin(&Lineage::default(), 0);
        let core = Arc::clone(&self.core);
        let inbox = Arc::clone(&self.inbox);
        let consumed = Mutex::new(Consumed::default());
        let mut inputs = Inputs::new(&core, &self.node, self.at, &inbox, &self.cancel, &consumed);
        let mut outputs = Outputs::new(&mut self.emitter, &consumed);
        let code = self.exec.run(&mut inputs, &mut outputs, &self.ctx);
        let outcome = call(&self.cancel, core.options.cancel_grace, code).await;
        let Outputs {
            collected,
            uncommitted,
            commits,
            ..
        } = outputs;
        if let Err(error) = outcome {
            let failed = Failed {
                shape: Shape::Stream,
                key: &Lineage::default(),
                name: &name,
                emitted: !collected.is_empty(),
            };
            // The one answer but the failure: it ends here with what it has.
            self.consult(error, &mut Tries::once(), failed).await?;
        }
        if commits == 0 {
            self.emitter.commit(collected, &name, None).await;
        } else if !uncommitted.is_empty() {
            self.emitter
                .commit(uncommitted, &format!("#{commits}"), None)
                .await;
        }
        Ok(())
    }

    pub(crate) async fn legacy_stream_input(&mut self) -> Result<(), NodeError> {
        if self.cancel.is_cancelled() {
            return Err(NodeError::cancelled());
        }
        let handles: Vec<&str> = self.node.facts.handles.iter().map(|facts| &*facts.name).collect();
        if !handles.is_empty() {
            let text = format!(
                "node {} does not read its inputs {}",
                self.node.node.id,
                handles.join(", ")
            );
            self.update(NodeStatus::Warning, None, Some(text), None).await;
        }
        let mut inputs = (*self.node.statics).clone();
        self.complete_inputs(&mut inputs)?;
        let name = self.begin(&Lineage::default(), 0);
        let Some(mut outputs) = self.process(inputs, &Lineage::default(), &name).await? else {
            self.emitter.skip(&Lineage::default(), true);
            return Ok(());
        };
        let origin = Origin {
            lineage: &Lineage::default(),
            sources: &[],
            numbers: true,
        };
        self.emitter.route(&mut outputs, &origin, false).await?;
        self.emitter.commit(outputs, &name, None).await;
        Ok(())
    }
}

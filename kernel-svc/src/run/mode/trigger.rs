//! Mode 2: the event that started the run goes out of its trigger, in the place of everything else that the
//! node does (kernel specification 2.8).

use std::sync::{Arc, Mutex};

use crate::{
    node::{NodeError, TriggerEvent},
    run::{
        actor::Actor,
        cancel::call,
        io::{Consumed, Outputs},
        lineage::Lineage,
    },
};

impl Actor {
    /// The event that the run was started with, if it is for this node.
    pub(crate) fn trigger_event(&self) -> Option<&TriggerEvent> {
        let event = self.core.trigger.as_ref()?;
        (self.node.node.meta.trigger && event.node_id == self.node.label.id).then_some(event)
    }
    pub(crate) async fn trigger_entry(&mut self) -> Result<(), NodeError> {
        let core = Arc::clone(&self.core);
        let Some(event) = core.trigger.as_ref() else {
            return Ok(());
        };
        if self.cancel.is_cancelled() {
            return Err(NodeError::cancelled());
        }
        let name = self.begin(&Lineage::default(), 0);
        let consumed = Mutex::new(Consumed::default());
        let mut outputs = Outputs::new(&mut self.emitter, &consumed);
        let code = self.exec.emit_trigger_event(event, &mut outputs, &self.ctx);
        call(&self.cancel, core.options.cancel_grace, code).await?;
        let Outputs {
            collected,
            uncommitted,
            commits,
            ..
        } = outputs;
        if commits == 0 {
            self.emitter.commit(collected, &name, None).await;
        } else if !uncommitted.is_empty() {
            self.emitter
                .commit(uncommitted, &format!("#{commits}"), None)
                .await;
        }
        Ok(())
    }
}

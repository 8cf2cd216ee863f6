//! Mode 6: `stream` once for each key; frames are routed as they come, the merged result is committed at the
//! end.

use atelier_proto::value::Map;

use super::keyed::Invocation;
use crate::{
    node::NodeError,
    run::{
        actor::Actor,
        cancel::call,
        frames::Frames,
        journal::Recorder,
        routing::scalars,
        supervise::{Effect, Failed, Shape, Tries},
    },
};

impl Actor {
    pub(super) async fn invoke_streamed(&mut self, invocation: Invocation) -> Result<(), NodeError> {
        let Invocation {
            key,
            lineage,
            sources,
            mut inputs,
            name,
            driven,
        } = invocation;
        let properties = scalars(&inputs);
        let mut tries = Tries::new(&self.core, &inputs);
        let journal = self.core.journal.is_some();
        let (merged, uncommitted, artifacts, cut) = loop {
            let past = match &self.core.journal {
                Some(journal) => journal.frames(&self.node.label.id, &name).await,
                None => None,
            };
            let keeps = journal && self.exec.remembered();
            let mut frames = Frames {
                emitter: &mut self.emitter,
                lineage: &lineage,
                sources: &sources,
                invocation: &name,
                properties: properties.clone(),
                merged: Map::new(),
                uncommitted: Map::new(),
                artifacts: 0,
                recorder: Recorder::new(keeps && past.is_none()),
            };
            let outcome = if let Some(past) = past {
                frames.emitter.replaying = true;
                for frame in past {
                    frames.send(frame).await?;
                }
                Ok(())
            } else {
                // Not all of it was kept, but it ended: it runs again and shows nothing twice.
                frames.emitter.replaying = frames.emitter.committed(&name).await.is_some();
                let code = self.exec.stream(inputs, &mut frames, &self.ctx);
                call(&self.cancel, self.core.options.cancel_grace, code).await
            };
            let Frames {
                merged,
                uncommitted,
                artifacts,
                recorder,
                ..
            } = frames;
            let Err(error) = outcome else {
                self.emitter.remember(&name, recorder.take()).await;
                break (merged, uncommitted, artifacts, false);
            };
            let failed = Failed {
                shape: Shape::Frames,
                key: &key,
                name: &name,
                emitted: !merged.is_empty() || self.emitter.has_completed(),
            };
            match self.consult(error, &mut tries, failed).await? {
                Effect::Again(again) => inputs = again,
                Effect::Cut => break (merged, uncommitted, artifacts, true),
                Effect::Nothing | Effect::Instead(_) => {
                    if !driven {
                        self.emitter.skip(&key, true);
                    }
                    return Ok(());
                }
            }
        };
        if cut {
            // What went out stays; a stream that was cut off is no artifact.
        } else if artifacts == 0 {
            self.emitter.commit(merged, &name, properties).await;
        } else if !uncommitted.is_empty() {
            self.emitter.commit(uncommitted, &name, properties).await;
        }
        self.emitter.replaying = false;
        if !driven && !key.is_empty() {
            let roots = self.emitter.roots();
            roots
                .into_iter()
                .for_each(|root| self.emitter.scope_closed(&key, root));
        }
        Ok(())
    }
}

//! The running instance of one node: chooses the mode, tells the outside how it fares, and cleans up.

use std::sync::{Arc, PoisonError, atomic::Ordering};

use atelier_proto::{kernel::v1::NodeStatus, value::Map};
use tokio_util::sync::CancellationToken;

use super::{
    cancel::call,
    controls::Controlled,
    core::Core,
    inbox::Inbox,
    lineage::Lineage,
    result::{NodeEnd, Outcome, Suspension},
    routing::Emitter,
};
use crate::{
    event::{Event, NoteSink},
    graph::{
        control::{CONTROL_CONTEXT, coerce_slots},
        loops::is_loop,
        plan::PlanNode,
    },
    node::{Context, Executor, NodeError, NodeErrorKind, Services},
};

pub(crate) struct Actor {
    pub core: Arc<Core>,
    pub at: usize,
    pub node: Arc<PlanNode>,
    pub inbox: Arc<Inbox>,
    pub exec: Box<dyn Executor>,
    pub ctx: Context,
    pub cancel: CancellationToken,
    pub emitter: Emitter,
    /// Items that failed while the others went on, in order of occurrence, each with its name.
    pub lost: Vec<(String, NodeError)>,
    /// Further ones, of which only the number is kept.
    pub lost_more: usize,
}

/// How a node is executed (kernel specification 2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Loop,
    Trigger,
    StreamInput,
    LegacyStreamInput,
    Controlled,
    Streamed,
    Buffered,
}

/// What node code reaches, for one node of a run.
pub(crate) fn context(
    job_id: &Arc<str>,
    workflow_id: Option<&Arc<str>>,
    node: &PlanNode,
    (core, at): (&Arc<Core>, usize),
    services: &Arc<dyn Services>,
) -> Context {
    Context {
        job_id: Arc::clone(job_id),
        workflow_id: workflow_id.cloned(),
        node_id: Arc::clone(&node.label.id),
        node_type: Arc::clone(&node.label.node_type),
        node_name: node.label.name.clone(),
        properties: Arc::clone(&node.node.properties),
        outputs: Arc::clone(&node.node.outputs),
        invocation: Arc::default(),
        cancel: core.cancel.child_token(),
        notes: NoteSink::of_run(Arc::clone(&node.label), core.events.clone()).supervised(core.desk.is_some()),
        services: Arc::clone(services),
        controls: Arc::new(Controlled::new(core, at)),
        ordinal: Arc::default(),
        generation_ids: Arc::default(),
        resuming: core
            .resume
            .get(&*node.label.id)
            .map(|resumed| Arc::clone(&resumed.state)),
        variables: Arc::clone(&core.variables),
        events: core.queue(&node.label.id),
        longest_wait: core.options.longest_wait,
        clock: core.options.clock.clone(),
    }
}

impl Actor {
    pub fn new(
        core: &Arc<Core>,
        at: usize,
        (node, inbox): (Arc<PlanNode>, Arc<Inbox>),
        exec: Box<dyn Executor>,
        ctx: Context,
    ) -> Self {
        let (cancel, ids) = (ctx.cancel.clone(), Arc::clone(&ctx.generation_ids));
        let emitter = Emitter::new(Arc::clone(core), at, Arc::clone(&node), cancel.clone(), ids);
        Self {
            core: Arc::clone(core),
            at,
            node,
            inbox,
            exec,
            ctx,
            cancel,
            emitter,
            lost: Vec::new(),
            lost_more: 0,
        }
    }
    /// Runs the node to its end. What follows the end is up to the caller, also when this panics.
    pub async fn run(mut self: Box<Self>) -> NodeEnd {
        self.update(NodeStatus::Running, None, None, None).await;
        let outcome = self.drive().await;
        self.finalize().await;
        let outcome = Box::pin(self.end(outcome)).await;
        NodeEnd {
            at: self.at,
            outcome,
            values: std::mem::take(&mut self.emitter.values),
        }
    }
    async fn drive(&mut self) -> Result<(), NodeError> {
        let grace = self.core.options.cancel_grace;
        call(&self.cancel, grace, self.exec.pre_process(&self.ctx)).await?;
        let mode = self.mode();
        if matches!(mode, Mode::Streamed | Mode::Buffered) {
            // What it works with is made when there is work: most nodes of a large graph wait most of the time.
            self.inbox.first(self.node.facts.handles.len()).await;
        }
        match mode {
            // Boxed: what a node is moved by when its task starts, and what it takes until then, stays small.
            Mode::Loop => Box::pin(self.looping()).await,
            Mode::Trigger => Box::pin(self.trigger_entry()).await,
            Mode::StreamInput => Box::pin(self.stream_input()).await,
            Mode::LegacyStreamInput => Box::pin(self.legacy_stream_input()).await,
            Mode::Controlled => Box::pin(self.controlled()).await,
            Mode::Streamed => Box::pin(self.keyed(true)).await,
            Mode::Buffered => Box::pin(self.keyed(false)).await,
        }
    }
    fn mode(&self) -> Mode {
        if is_loop(&self.node.node) {
            return Mode::Loop;
        }
        if self.trigger_event().is_some() {
            return Mode::Trigger;
        }
        let (flags, offers) = (self.node.node.flags, self.exec.offers());
        match (
            flags.streaming_input,
            flags.controlled,
            flags.streaming_output && offers.stream,
        ) {
            (true, ..) if offers.run => Mode::StreamInput,
            (true, ..) => Mode::LegacyStreamInput,
            (_, true, _) => Mode::Controlled,
            (.., true) => Mode::Streamed,
            _ => Mode::Buffered,
        }
    }
    async fn finalize(&mut self) {
        let code = self.exec.finalize(&self.ctx);
        Box::pin(self.core.clean_up(&self.node, &self.cancel, code)).await;
    }
    async fn end(&mut self, outcome: Result<(), NodeError>) -> Outcome {
        let Err(error) = outcome else {
            self.completed(None).await;
            return Outcome::Completed;
        };
        match error.kind.clone() {
            NodeErrorKind::Cancelled if self.cancel.is_cancelled() => {
                // Not an error of the node: its readers take any error for a failed run. The cause says what it was.
                self.completed(Some(Box::new(error.code("cancelled")))).await;
                Outcome::Completed
            }
            NodeErrorKind::Suspended { state, metadata } => {
                self.update(NodeStatus::Suspended, Some(state.clone()), None, None)
                    .await;
                Outcome::Suspended(Suspension {
                    node_id: Arc::clone(&self.node.label.id),
                    invocation: Arc::clone(&self.ctx.invocation),
                    reason: error.message,
                    state,
                    metadata,
                })
            }
            NodeErrorKind::Failed
            | NodeErrorKind::Refused
            | NodeErrorKind::Item
            | NodeErrorKind::Cancelled => {
                let (text, detail) = (error.message.clone(), Box::new(error.clone()));
                self.update(NodeStatus::Error, None, Some(text), Some(detail))
                    .await;
                Outcome::Failed(error)
            }
        }
    }
    async fn completed(&mut self, detail: Option<Box<NodeError>>) {
        let silent = self.node.node.is_constant() || self.node.node.is_input();
        let result = (!silent).then(|| {
            self.emitter
                .last
                .take()
                .map(Arc::unwrap_or_clone)
                .unwrap_or_default()
        });
        self.update(NodeStatus::Completed, result, None, detail).await;
    }
    /// Says how the node fares.
    pub async fn update(
        &self,
        status: NodeStatus,
        result: Option<Map>,
        error: Option<String>,
        detail: Option<Box<NodeError>>,
    ) {
        let (node, properties) = (
            Arc::clone(&self.node.label),
            Arc::clone(&self.node.node.properties),
        );
        self.core
            .say(Event::Node {
                node,
                status,
                result,
                error,
                detail,
                properties,
            })
            .await;
    }

    /// Starts an invocation: its key in the context, its generations counted from zero. Gives the key.
    pub fn begin(&mut self, key: &Lineage, ordinal: u32) -> Arc<str> {
        let mut text = String::new();
        key.write(&mut text, &self.node.facts.scope, &self.core.plan.roots);
        text.push('#');
        text.push_str(&ordinal.to_string());
        self.begin_named(text)
    }
    /// The same with a key of another kind.
    pub fn begin_named(&mut self, text: String) -> Arc<str> {
        let invocation: Arc<str> = text.into();
        self.ctx.invocation = Arc::clone(&invocation);
        // What one item waited for is no matter of the next one.
        self.ctx.resuming = self
            .core
            .resume
            .get(&*self.node.label.id)
            .filter(|resumed| resumed.is_of(&invocation))
            .map(|resumed| Arc::clone(&resumed.state));
        self.ctx.ordinal.store(0, Ordering::SeqCst);
        if let Some(account) = self.ctx.notes.account() {
            account.begin();
        }
        self.ctx
            .generation_ids
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
        invocation
    }
    /// Checks the declared slots and adds what a controller is told.
    pub fn complete_inputs(&self, inputs: &mut Map) -> Result<(), NodeError> {
        if !self.node.node.dynamic_inputs.is_empty() {
            coerce_slots(&self.node.node, inputs)
                .map_err(|text| NodeError::new(text).code("input.slot_type"))?;
        }
        if let Some(context) = &self.node.control_context {
            inputs.insert(CONTROL_CONTEXT.to_owned(), context.clone());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size<A, F: Future>(_: impl FnOnce(A) -> F) -> usize {
        size_of::<F>()
    }

    /// Every node of a run is a task; what it takes is taken as often as there are nodes.
    #[test]
    fn an_actor_is_small() {
        let (run, drive) = (
            size(Actor::run),
            size(|actor: &'static mut Actor| actor.keyed(false)),
        );
        assert!(run < 2 * 1024, "{run} bytes until it works");
        assert!(drive < 4 * 1024, "{drive} bytes while it works");
    }
}

//! Where the modes of a node meet its supervisor: what may be done in which mode, and what becomes of the answer.

use std::sync::PoisonError;

use atelier_proto::value::Map;

use super::{
    check::checkable,
    desk::Draft,
    escalation::{Action, Decision},
};
use crate::{
    node::{NodeError, NodeErrorKind},
    run::{
        actor::Actor,
        cancel::call,
        core::Core,
        lineage::Lineage,
        routing::{AFTER_COMPLETE, TOO_DEEP},
    },
};

/// How the code that failed gives its outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// All at once.
    Whole,
    /// In frames.
    Frames,
    /// While it reads its own stream.
    Stream,
}

/// A failed invocation, as its mode knows it.
pub(crate) struct Failed<'a> {
    pub shape: Shape,
    /// The items it belongs to.
    pub key: &'a Lineage,
    /// The same as text, and its number.
    pub name: &'a str,
    /// Whether something of it went out.
    pub emitted: bool,
}

/// What is left to do for a mode.
#[derive(Debug)]
pub(crate) enum Effect {
    /// Call the code again.
    Again(Map),
    /// Go on as if the code had returned this.
    Instead(Map),
    /// The invocation brings nothing.
    Nothing,
    /// The stream ends where it is.
    Cut,
}

/// The attempts of one invocation. Without a supervisor it keeps nothing.
pub(crate) struct Tries {
    inputs: Option<Map>,
    attempt: u32,
}
impl Tries {
    pub fn new(core: &Core, inputs: &Map) -> Self {
        Self {
            inputs: core.desk.as_ref().map(|_| inputs.clone()),
            attempt: 1,
        }
    }
    /// For a node that reads its own stream: it is never called again.
    pub fn once() -> Self {
        Self {
            inputs: None,
            attempt: 1,
        }
    }
}

impl Actor {
    /// Calls `process` until it has outputs or the supervisor lets it be; `None`: the invocation brings nothing.
    pub(crate) async fn process(
        &mut self,
        mut inputs: Map,
        key: &Lineage,
        name: &str,
    ) -> Result<Option<Map>, NodeError> {
        let mut tries = Tries::new(&self.core, &inputs);
        loop {
            let code = self.exec.process(inputs, &self.ctx);
            let error = match call(&self.cancel, self.core.options.cancel_grace, code).await {
                Ok(outputs) => return Ok(Some(outputs)),
                Err(error) => error,
            };
            let failed = Failed {
                shape: Shape::Whole,
                key,
                name,
                emitted: false,
            };
            match self.consult(error, &mut tries, failed).await? {
                Effect::Again(again) => inputs = again,
                Effect::Instead(outputs) => return Ok(Some(outputs)),
                Effect::Nothing | Effect::Cut => return Ok(None),
            }
        }
    }
    /// Asks the supervisor about a failure.
    ///
    /// # Errors
    /// The failure, when it stands.
    pub(crate) async fn consult(
        &mut self,
        error: NodeError,
        tries: &mut Tries,
        failed: Failed<'_>,
    ) -> Result<Effect, NodeError> {
        if self.core.desk.is_none() || self.cancel.is_cancelled() || !escalates(&error, failed.key) {
            return Err(error);
        }
        Box::pin(self.ask(error, tries, failed)).await
    }
    async fn ask(
        &mut self,
        error: NodeError,
        tries: &mut Tries,
        failed: Failed<'_>,
    ) -> Result<Effect, NodeError> {
        let (Some(desk), Some(account)) = (&self.core.desk, self.ctx.notes.account()) else {
            return Err(error);
        };
        let opened = &self.ctx.generation_ids;
        let opened = opened.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let spent = account.spent(&opened);
        let draft = Draft {
            at: self.at,
            node: &self.node,
            error: &error,
            lineage: failed.key,
            name: failed.name,
            inputs: tries.inputs.as_ref(),
            attempt: tries.attempt,
            allowed: self.allowed(&failed, &error, &spent),
            spent,
            emitted: failed.emitted,
        };
        let Decision { verdict, .. } = desk.settle(&self.core, draft, &self.cancel).await;
        if self.cancel.is_cancelled() {
            return Err(NodeError::cancelled());
        }
        Ok(match (verdict.action, verdict.outputs, &tries.inputs) {
            (Action::Retry, _, Some(inputs)) => {
                tries.attempt += 1;
                // The number of the calls goes on: a call of the new attempt must not be answered by one of the old.
                account.begin();
                self.ctx
                    .generation_ids
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .clear();
                Effect::Again(inputs.clone())
            }
            (Action::Substitute, Some(outputs), _) => Effect::Instead(outputs),
            (Action::Skip, ..) => Effect::Nothing,
            (Action::EndStream, ..) => Effect::Cut,
            (Action::Retry | Action::Substitute | Action::Fail, ..) => return Err(error),
        })
    }
    fn allowed(&self, failed: &Failed<'_>, error: &NodeError, spent: &super::account::Spent) -> Vec<Action> {
        let node = &self.node.node;
        // After a panic nobody knows in which state the code is.
        let sound = error.code.as_deref() != Some("node.panicked");
        let retry = node.meta.retry_safe && spent.is_nothing() && sound;
        let substitute =
            failed.shape == Shape::Whole && spent.candidate.is_some() && checkable(&node.outputs);
        if failed.shape == Shape::Stream || failed.emitted {
            return vec![Action::EndStream, Action::Fail];
        }
        let offered = [
            (Action::Retry, retry),
            (Action::Substitute, substitute),
            (Action::Skip, true),
            (Action::Fail, true),
        ];
        offered
            .into_iter()
            .filter(|(_, offered)| *offered)
            .map(|(action, _)| action)
            .collect()
    }
}

/// Whether a failure is one of node code that has no rule of its own: a cancel and a suspension are none, a refused item
/// of a fan-out is left out, and what fails while it is routed is not the code's.
fn escalates(error: &NodeError, key: &Lineage) -> bool {
    let routed = error
        .code
        .as_deref()
        .is_some_and(|code| [AFTER_COMPLETE, TOO_DEEP].contains(&code));
    !routed
        && match &error.kind {
            NodeErrorKind::Failed | NodeErrorKind::Item => true,
            NodeErrorKind::Refused => key.is_empty(),
            NodeErrorKind::Cancelled | NodeErrorKind::Suspended { .. } => false,
        }
}

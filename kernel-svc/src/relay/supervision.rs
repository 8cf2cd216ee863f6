//! Questions to a supervisor and what became of them, as messages of the contract.

use atelier_proto::{
    common::v1::Money,
    kernel::v1::{
        DecidedBy as ProtoDecidedBy, Escalation as ProtoEscalation, Intervention, IterationItem,
        SupervisorAction, SupervisorDecision, SupervisorEscalation, Verdict as ProtoVerdict, VerdictScope,
        job_event::Event as Frame,
    },
    money,
};
use rust_decimal::Decimal;

use crate::{
    event::NodeLabel,
    run::supervise::{Action, DecidedBy, Decision, Escalation, Scope},
};

/// The frame of a question, or of what became of it.
pub(super) fn frame(node: &NodeLabel, escalation: &Escalation, decision: Option<Decision>) -> Frame {
    let node_id = node.id.to_string();
    let node_name = node.name.as_ref().unwrap_or(&node.id).to_string();
    let escalation = Some(question(escalation));
    let Some(decision) = decision else {
        return Frame::SupervisorEscalation(SupervisorEscalation {
            node_id,
            node_name,
            escalation,
        });
    };
    let verdict = decision.verdict;
    Frame::SupervisorDecision(SupervisorDecision {
        node_id,
        node_name,
        escalation,
        decided_by: by(decision.decided_by).into(),
        cost: verdict.cost_usd.map(usd),
        verdict: Some(ProtoVerdict {
            action: action(verdict.action).into(),
            scope: scope(verdict.scope).into(),
            outputs: verdict.outputs.as_ref().map(Into::into),
            reason: verdict.reason,
        }),
    })
}
/// What a decision changed; `None` when the failure stands.
pub(super) fn intervention(escalation: &Escalation, decision: &Decision) -> Option<Intervention> {
    (decision.verdict.action != Action::Fail).then(|| Intervention {
        escalation_id: escalation.id.clone(),
        node_id: escalation.node_id.to_string(),
        invocation_key: escalation.invocation_key.clone(),
        action: action(decision.verdict.action).into(),
        decided_by: by(decision.decided_by).into(),
    })
}
fn question(escalation: &Escalation) -> ProtoEscalation {
    let lineage = escalation.lineage.iter().map(|(iteration, index)| IterationItem {
        iteration: iteration.to_string(),
        index: i64::from(*index),
    });
    ProtoEscalation {
        escalation_id: escalation.id.clone(),
        node_type: escalation.node_type.to_string(),
        lineage: lineage.collect(),
        invocation_key: escalation.invocation_key.clone(),
        allowed_actions: escalation
            .allowed
            .iter()
            .map(|allowed| action(*allowed).into())
            .collect(),
        detail: escalation.detail.clone(),
        code: escalation.code.clone(),
        failure_signature: escalation.failure_signature.clone(),
        candidate_output: escalation.candidate_output.as_ref().map(Into::into),
        inputs: Some((&escalation.inputs).into()),
        attempt: i32::try_from(escalation.attempt).unwrap_or(i32::MAX),
        spent: escalation.spent_usd.map(usd),
        created_assets: escalation.created_assets.clone(),
        retry_safe: escalation.retry_safe,
        emitted: escalation.emitted,
    }
}
fn usd(amount: Decimal) -> Money {
    (&money::Money::usd(amount)).into()
}
/// An action of the contract.
pub(crate) fn action(action: Action) -> SupervisorAction {
    match action {
        Action::Retry => SupervisorAction::Retry,
        Action::Substitute => SupervisorAction::Substitute,
        Action::Skip => SupervisorAction::Skip,
        Action::EndStream => SupervisorAction::EndStream,
        Action::Fail => SupervisorAction::Fail,
    }
}
fn scope(scope: Scope) -> VerdictScope {
    match scope {
        Scope::Invocation => VerdictScope::Invocation,
        Scope::Signature => VerdictScope::Signature,
    }
}
fn by(decided_by: DecidedBy) -> ProtoDecidedBy {
    match decided_by {
        DecidedBy::Agent => ProtoDecidedBy::Agent,
        DecidedBy::Sticky => ProtoDecidedBy::Sticky,
        DecidedBy::Bounds => ProtoDecidedBy::Bounds,
        DecidedBy::Default => ProtoDecidedBy::Default,
        DecidedBy::Kernel => ProtoDecidedBy::Kernel,
    }
}

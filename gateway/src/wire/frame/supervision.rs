//! Frames of a supervised run: a failed invocation that somebody is asked about, and what was decided (wire
//! specification 3.4). The names within `escalation` are those that clients of the field know.

use atelier_proto::{
    common::v1::Money,
    kernel::v1::{
        Escalation, Intervention, IterationItem, SupervisorDecision, SupervisorEscalation, Verdict,
    },
    value::{Map, Value},
};

use super::{Body, Class, Frame, Stamp};
use crate::wire::{value, words};

/// A question.
pub(super) fn escalation(stamp: &Stamp<'_>, asked: SupervisorEscalation) -> Frame {
    let SupervisorEscalation {
        node_id,
        node_name,
        escalation,
    } = asked;
    let mut body = stamp.body("supervisor_escalation");
    body.put("node_id", node_id.as_str());
    body.put("node_name", node_name);
    body.put(
        "escalation",
        question(stamp, &node_id, escalation.unwrap_or_default()),
    );
    stamp.frame("supervisor_escalation", Class::Keep, body)
}

/// What became of it.
pub(super) fn decision(stamp: &Stamp<'_>, decided: SupervisorDecision) -> Frame {
    let SupervisorDecision {
        node_id,
        node_name,
        escalation,
        verdict,
        decided_by,
        cost,
    } = decided;
    let mut body = stamp.body("supervisor_decision");
    body.put("node_id", node_id.as_str());
    body.put("node_name", node_name);
    body.put(
        "escalation",
        question(stamp, &node_id, escalation.unwrap_or_default()),
    );
    body.put("verdict", answer(stamp, verdict.unwrap_or_default()));
    body.put("decided_by", words::decided_by(decided_by));
    body.put("cost", usd(cost.as_ref()));
    stamp.frame("supervisor_decision", Class::Keep, body)
}

/// What a supervisor changed in a run.
pub(super) fn intervention(intervention: &Intervention) -> Value {
    let Intervention {
        escalation_id,
        node_id,
        invocation_key,
        action,
        decided_by,
    } = intervention;
    let mut out = Body(Map::new());
    out.put("escalation_id", escalation_id.as_str());
    out.put("node_id", node_id.as_str());
    out.put("invocation_key", invocation_key.as_str());
    out.put("action", words::supervisor_action(*action));
    out.put("decided_by", words::decided_by(*decided_by));
    out.0.into()
}

fn question(stamp: &Stamp<'_>, node_id: &str, escalation: Escalation) -> Value {
    let Escalation {
        escalation_id,
        node_type,
        lineage,
        invocation_key,
        allowed_actions,
        detail,
        code,
        failure_signature,
        candidate_output,
        inputs,
        attempt,
        spent,
        created_assets,
        retry_safe,
        emitted,
    } = escalation;
    let mut out = Body(Map::new());
    out.put("id", escalation_id);
    out.put("nodeId", node_id);
    out.put("nodeType", node_type);
    let items = lineage.into_iter().map(|IterationItem { iteration, index }| {
        let item = Map::from_iter([("index".to_owned(), index.into())]);
        (iteration, item.into())
    });
    out.put("correlationLineage", items.collect::<Map>());
    out.put("invocationKey", invocation_key);
    let allowed = allowed_actions
        .into_iter()
        .map(|action| words::supervisor_action(action).into());
    out.put("allowedActions", Value::list(allowed.collect()));
    out.put("detail", detail);
    out.optional("code", code.as_deref());
    out.optional("failureSignature", failure_signature.as_deref());
    if let Some(candidate) = value::map_for(candidate_output, stamp.user_id) {
        out.put("candidateOutput", candidate);
    }
    out.put(
        "inputs",
        value::map_for(inputs, stamp.user_id).unwrap_or_default(),
    );
    out.put("attempt", i64::from(attempt));
    out.put("spentCostUsd", usd(spent.as_ref()));
    let assets = created_assets.into_iter().map(Into::into);
    out.put("createdAssets", Value::list(assets.collect()));
    out.put("retrySafe", retry_safe);
    out.put("emitted", emitted);
    out.0.into()
}

fn answer(stamp: &Stamp<'_>, verdict: Verdict) -> Value {
    let Verdict {
        action,
        scope,
        outputs,
        reason,
    } = verdict;
    let mut out = Body(Map::new());
    out.put("action", words::supervisor_action(action));
    out.put("scope", words::verdict_scope(scope));
    if let Some(outputs) = value::map_for(outputs, stamp.user_id) {
        out.put("outputs", outputs);
    }
    out.optional("reason", reason.as_deref());
    out.0.into()
}

/// An amount in US dollars; null while it is not known.
fn usd(amount: Option<&Money>) -> Value {
    let amount = amount.and_then(|amount| amount.amount.parse::<f64>().ok());
    amount.map_or(Value::Null, Value::Float)
}

//! Answers to the questions of supervised runs. The questions are events of the run: `supervisor_escalation`.

use atelier_proto::kernel::v1::{DecideEscalationRequest, SupervisorAction, Verdict, VerdictScope};
use atelier_proto::value::map_from_json;
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json_;
use utoipa::ToSchema;

use crate::app::App;
use crate::auth::Who;
use crate::error::Error;
use crate::extract::{JsonBody, Path};
use crate::problem::ErrorBody;
use crate::wire::value::is_too_deep;
use crate::wire::words;

/// What to do about a failed invocation.
#[derive(Debug, Deserialize, ToSchema)]
#[expect(
    dead_code,
    reason = "the shape for the description of the interface; bodies are read field by field"
)]
pub(crate) struct VerdictBody {
    /// `retry`, `substitute`, `skip`, `end_stream` or `fail`: one of the `allowedActions` of the question.
    action: String,
    /// `invocation` or `signature`: whether `skip` and `fail` hold for all later failures of the node of this kind.
    /// Default `invocation`.
    scope: Option<String>,
    /// With `substitute`: a value for every output of the node. Default: what the node proposed.
    #[schema(value_type = Option<Object>)]
    outputs: Option<Json_>,
    /// Why, for people; at most 2000 characters.
    reason: Option<String>,
}

/// An answer that was taken.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EscalationDecided {
    /// The run.
    job_id: String,
    /// The question.
    escalation_id: String,
    /// What is done.
    action: &'static str,
}

/// Answers a question of a supervised run.
///
/// Questions come as `supervisor_escalation` events and wait for a minute; without an answer the failure stands. What is done
/// is told by `supervisor_decision`.
#[utoipa::path(
    post, path = "/jobs/{id}/escalations/{escalation_id}", operation_id = "decideEscalation", tag = "jobs",
    params(
        ("id" = String, Path, description = "The run"),
        ("escalation_id" = String, Path, description = "The question"),
    ),
    request_body = VerdictBody,
    responses(
        (status = 200, description = "The answer was taken", body = EscalationDecided),
        (status = 400, description = "A field is wrong, or the answer is not allowed; the question stays open", body = ErrorBody),
        (status = 404, description = "No such run, or it does not wait for this answer", body = ErrorBody),
        (status = 409, description = "The run does not go on", body = ErrorBody),
    )
)]
pub(crate) async fn decide(
    State(app): State<App>,
    Who(caller): Who,
    Path((job_id, escalation_id)): Path<(String, String)>,
    JsonBody(body): JsonBody,
) -> Result<Json<EscalationDecided>, Error> {
    let verdict = verdict(body)?;
    let action = words::supervisor_action(verdict.action);
    let request = DecideEscalationRequest {
        job_id: job_id.clone(),
        escalation_id: escalation_id.clone(),
        verdict: Some(verdict),
    };
    let mut jobs = app.clients.jobs();
    let request = app.clients.request(&caller, request);
    app.clients.answer(jobs.decide_escalation(request)).await?;
    Ok(Json(EscalationDecided {
        job_id,
        escalation_id,
        action,
    }))
}

fn verdict(body: Json_) -> Result<Verdict, Error> {
    let Json_::Object(mut body) = body else {
        return Err(Error::field("body", "must be an object"));
    };
    let mut text = |key: &str| match body.remove(key) {
        None | Some(Json_::Null) => Ok(None),
        Some(Json_::String(text)) => Ok(Some(text)),
        Some(_) => Err(Error::field(key, "must be text")),
    };
    let (action, scope, reason) = (text("action")?, text("scope")?, text("reason")?);
    let known = "retry, substitute, skip, end_stream, fail";
    let action: SupervisorAction =
        super::word("action", action.as_deref(), words::parse_supervisor_action, known)?
            .ok_or_else(|| Error::field("action", format!("must be one of {known}")))?;
    let scope = super::word(
        "scope",
        scope.as_deref(),
        words::parse_verdict_scope,
        "invocation, signature",
    )?;
    let outputs = match body.remove("outputs") {
        None | Some(Json_::Null) => None,
        Some(outputs) => {
            let map = map_from_json(outputs).ok_or_else(|| Error::field("outputs", "must be an object"))?;
            if is_too_deep(&map) {
                return Err(Error::field("outputs", "is nested too deeply"));
            }
            Some((&map).into())
        }
    };
    if let Some(unknown) = body.keys().next() {
        return Err(Error::field(unknown, "is not a field of this request"));
    }
    Ok(Verdict {
        action: action.into(),
        scope: scope.unwrap_or(VerdictScope::Invocation).into(),
        outputs,
        reason,
    })
}

//! Reaching into a run that goes on, or that waits: values for its inputs, control events, going on.

use std::time::Duration;

use atelier_proto::kernel::v1::{PushInputRequest, ResumeJobRequest, SendControlRequest};
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use super::body::Body;
use super::jobs::with_cost;
use crate::app::App;
use crate::auth::Who;
use crate::error::Error;
use crate::extract::{JsonBody, Path};
use crate::problem::ErrorBody;
use crate::wire::resource::{Job, outputs_of};

/// How long the outputs of a controlled node are waited for.
const CONTROL_WAIT: Duration = Duration::from_secs(300);

/// A value for an input of a run, the end of the input, or both.
#[derive(Debug, Deserialize, ToSchema)]
#[expect(
    dead_code,
    reason = "the shape for the description of the interface; bodies are read field by field"
)]
pub(crate) struct InputBody {
    /// The input: its name, else the id of its node.
    name: String,
    /// The value; null is one. Absent when only the end is told.
    #[schema(value_type = Option<Object>)]
    value: Option<Value>,
    /// Only along the edges of this output of the input's node.
    handle: Option<String>,
    /// Whether nothing follows. Default false.
    finish: Option<bool>,
    /// Chosen by the caller; a second push with the same id changes nothing.
    input_id: Option<String>,
}

/// What became of a push.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct InputPushed {
    /// The run.
    job_id: String,
    /// The id of the push.
    input_id: String,
    /// Whether this call recorded it; false for a repeat.
    created: bool,
}

/// Pushes a value into an input of a run that goes on, or finishes the input, or both.
#[utoipa::path(
    post, path = "/jobs/{id}/inputs", operation_id = "pushInput", tag = "jobs",
    params(("id" = String, Path, description = "The run")), request_body = InputBody,
    responses(
        (status = 200, description = "It is recorded", body = InputPushed),
        (status = 400, description = "No such input, or a value that it refuses", body = ErrorBody),
        (status = 404, description = "No such run", body = ErrorBody),
        (status = 409, description = "The run does not go on, or the input is finished", body = ErrorBody),
    )
)]
pub(crate) async fn push(
    State(app): State<App>,
    Who(caller): Who,
    Path(id): Path<String>,
    JsonBody(body): JsonBody,
) -> Result<Json<InputPushed>, Error> {
    let mut body = Body::of(body)?;
    // A push without an id is one of its own.
    let input_id = body
        .text("input_id")?
        .filter(|id| !id.is_empty())
        .unwrap_or_else(|| Uuid::now_v7().to_string());
    let request = PushInputRequest {
        job_id: id.clone(),
        name: body.needed("name")?,
        value: body.value("value")?,
        handle: body.text("handle")?.filter(|handle| !handle.is_empty()),
        finish: body.flag("finish")?,
        input_id: input_id.clone(),
    };
    body.finish()?;
    if request.value.is_none() && !request.finish {
        return Err(Error::field(
            "value",
            "is missing: give a value, or finish, or both",
        ));
    }
    let mut jobs = app.clients.jobs();
    let answer = app
        .clients
        .answer(jobs.push_input(app.clients.request(&caller, request)))
        .await?;
    Ok(Json(InputPushed {
        job_id: id,
        input_id,
        created: answer.created,
    }))
}

/// A run event for a controlled node.
#[derive(Debug, Deserialize, ToSchema)]
#[expect(
    dead_code,
    reason = "the shape for the description of the interface; bodies are read field by field"
)]
pub(crate) struct ControlBody {
    /// The node.
    node_id: String,
    /// Properties of the event; they win over the node's own.
    #[schema(value_type = Option<Object>)]
    properties: Option<Value>,
    /// Whether to wait for the outputs of its invocation. Default false.
    wait: Option<bool>,
}

/// What became of a control event.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ControlSent {
    /// The run.
    job_id: String,
    /// The node.
    node_id: String,
    /// Outputs of its invocation; null when nobody waited.
    #[schema(required, value_type = Option<Object>)]
    outputs: Option<Value>,
}

/// Sends a run event to a controlled node of a run that goes on.
#[utoipa::path(
    post, path = "/jobs/{id}/control", operation_id = "sendControl", tag = "jobs",
    params(("id" = String, Path, description = "The run")), request_body = ControlBody,
    responses(
        (status = 200, description = "It was taken", body = ControlSent),
        (status = 400, description = "No such controlled node", body = ErrorBody),
        (status = 404, description = "No such run", body = ErrorBody),
        (status = 409, description = "The run does not go on, or the node failed", body = ErrorBody),
    )
)]
pub(crate) async fn control(
    State(app): State<App>,
    Who(caller): Who,
    Path(id): Path<String>,
    JsonBody(body): JsonBody,
) -> Result<Json<ControlSent>, Error> {
    let mut body = Body::of(body)?;
    let node_id = body.needed("node_id")?;
    let request = SendControlRequest {
        job_id: id.clone(),
        node_id: node_id.clone(),
        properties: Some(body.values("properties")?.unwrap_or_default()),
        wait: body.flag("wait")?,
    };
    body.finish()?;
    let wait = request.wait;
    let mut jobs = app.clients.jobs();
    let call = jobs.send_control(app.clients.request(&caller, request));
    let answer = if wait {
        app.clients.answer_within(CONTROL_WAIT, call).await?
    } else {
        app.clients.answer(call).await?
    };
    Ok(Json(ControlSent {
        job_id: id,
        node_id,
        outputs: answer.outputs.map(|outputs| outputs_of(outputs, &caller.user_id)),
    }))
}

/// How to go on with a run.
#[derive(Debug, Deserialize, ToSchema)]
#[expect(
    dead_code,
    reason = "the shape for the description of the interface; bodies are read field by field"
)]
pub(crate) struct ResumeBody {
    /// Merged over the saved state of a node that waits.
    #[schema(value_type = Option<Object>)]
    state: Option<Value>,
    /// The node that the state is for, of several that wait; the first of them when absent.
    node_id: Option<String>,
}

/// Goes on with a run that is suspended: its log and its indexes continue.
#[utoipa::path(
    post, path = "/jobs/{id}/resume", operation_id = "resumeJob", tag = "jobs",
    params(("id" = String, Path, description = "The run")), request_body = ResumeBody,
    responses(
        (status = 200, description = "The run, which goes on", body = Job),
        (status = 400, description = "A field is wrong, or the body is no JSON", body = ErrorBody),
        (status = 404, description = "No such run", body = ErrorBody),
        (status = 409, description = "The run is not suspended", body = ErrorBody),
    )
)]
pub(crate) async fn resume(
    State(app): State<App>,
    Who(caller): Who,
    Path(id): Path<String>,
    JsonBody(body): JsonBody,
) -> Result<Json<Job>, Error> {
    let mut body = Body::of(body)?;
    let request = ResumeJobRequest {
        job_id: id,
        state: body.values("state")?,
        node_id: body.text("node_id")?.filter(|node| !node.is_empty()),
    };
    body.finish()?;
    let mut jobs = app.clients.jobs();
    let answer = app
        .clients
        .answer(jobs.resume_job(app.clients.request(&caller, request)))
        .await?;
    Ok(Json(
        with_cost(&app, &caller, answer.job.unwrap_or_default()).await,
    ))
}

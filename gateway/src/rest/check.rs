//! Says all that is wrong with a graph, without running it.

use atelier_common::identity::Caller;
use atelier_proto::kernel::v1::{CheckGraphRequest, GetWorkflowVersionRequest};
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::{graph, workflows};
use crate::app::App;
use crate::auth::Who;
use crate::error::Error;
use crate::extract::JsonBody;
use crate::problem::ErrorBody;
use crate::wire::resource::Issue;

/// What is wrong with a graph.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Checked {
    /// Whether it can run.
    ok: bool,
    /// All that is wrong.
    issues: Vec<Issue>,
}

/// Checks a graph.
#[utoipa::path(
    post, path = "/check", operation_id = "checkGraph", tag = "jobs", request_body = graph::JobBody,
    responses(
        (status = 200, description = "What is wrong with it", body = Checked),
        (status = 400, description = "The body is no graph", body = ErrorBody),
        (status = 404, description = "No such workflow or version", body = ErrorBody),
        (status = 413, description = "The body is too large", body = ErrorBody),
        (status = 415, description = "The body is not JSON by its type", body = ErrorBody),
    )
)]
pub(crate) async fn check(
    State(app): State<App>,
    Who(caller): Who,
    JsonBody(body): JsonBody,
) -> Result<Json<Checked>, Error> {
    let request = graph::run_request(body)?;
    let graph_json = match (request.graph_json, request.workflow_id) {
        (Some(graph), _) => graph,
        (None, Some(id)) => saved(&app, &caller, &id, request.workflow_version).await?,
        (None, None) => return Err(Error::field("graph", "is missing: give graph or workflow")),
    };
    let request = CheckGraphRequest {
        graph_json,
        params: request.params,
    };
    let mut jobs = app.clients.jobs();
    let answer = app
        .clients
        .answer(jobs.check_graph(app.clients.request(&caller, request)))
        .await?;
    let issues: Vec<Issue> = answer.issues.into_iter().map(Into::into).collect();
    Ok(Json(Checked {
        ok: issues.is_empty(),
        issues,
    }))
}

/// The graph of a saved workflow.
async fn saved(app: &App, caller: &Caller, id: &str, version: Option<i64>) -> Result<String, Error> {
    let Some(version) = version else {
        let workflow = workflows::fetch(app, caller, id).await?;
        return Ok(workflow.graph_json.unwrap_or_default());
    };
    let request = GetWorkflowVersionRequest {
        workflow_id: id.to_owned(),
        version,
    };
    let mut workflows = app.clients.workflows();
    let answer = app
        .clients
        .answer(workflows.get_workflow_version(app.clients.request(caller, request)))
        .await?;
    Ok(answer
        .version
        .and_then(|version| version.graph_json)
        .unwrap_or_default())
}

//! Says all that is wrong with a graph, without running it.

use atelier_proto::kernel::v1::CheckGraphRequest;
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::graph;
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
    let graph_json = request
        .graph_json
        .ok_or_else(|| Error::field("graph", "is missing: give graph or workflow"))?;
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

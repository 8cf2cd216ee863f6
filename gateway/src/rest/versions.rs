//! Versions of saved workflows.

use atelier_proto::kernel::v1::{
    GetWorkflowVersionRequest, ListWorkflowVersionsRequest, RestoreWorkflowVersionRequest,
};
use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::workflows::{if_match, shown};
use crate::app::App;
use crate::auth::Who;
use crate::error::Error;
use crate::extract::{Path, Query};
use crate::problem::ErrorBody;
use crate::wire::resource::{Workflow, WorkflowVersion};

/// Which versions to list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct VersionsQuery {
    /// Rows of a page, 1 to 500. Default 50.
    limit: Option<i32>,
    /// The `next` of the page before.
    cursor: Option<String>,
}

/// A page of versions.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct VersionPage {
    /// The versions, newest first, without graphs.
    versions: Vec<WorkflowVersion>,
    /// The cursor to the next page.
    #[schema(required)]
    next: Option<String>,
}

/// Lists the versions of a workflow, newest first.
#[utoipa::path(
    get, path = "/workflows/{id}/versions", operation_id = "listWorkflowVersions", tag = "workflows",
    params(("id" = String, Path, description = "The workflow"), VersionsQuery),
    responses(
        (status = 200, description = "A page", body = VersionPage),
        (status = 400, description = "A parameter is wrong", body = ErrorBody),
        (status = 404, description = "No such workflow", body = ErrorBody),
    )
)]
pub(crate) async fn list(
    State(app): State<App>,
    Who(caller): Who,
    Path(id): Path<String>,
    Query(query): Query<VersionsQuery>,
) -> Result<Json<VersionPage>, Error> {
    let request = ListWorkflowVersionsRequest {
        workflow_id: id,
        page_size: super::page_size(query.limit)?,
        page_token: query.cursor.unwrap_or_default(),
    };
    let mut workflows = app.clients.workflows();
    let page = app
        .clients
        .answer(workflows.list_workflow_versions(app.clients.request(&caller, request)))
        .await?;
    Ok(Json(VersionPage {
        versions: page.versions.into_iter().map(Into::into).collect(),
        next: super::next(page.next_page_token),
    }))
}

/// One version with its graph.
#[utoipa::path(
    get, path = "/workflows/{id}/versions/{version}", operation_id = "getWorkflowVersion", tag = "workflows",
    params(
        ("id" = String, Path, description = "The workflow"),
        ("version" = i64, Path, description = "The number of the version"),
    ),
    responses(
        (status = 200, description = "The version", body = WorkflowVersion),
        (status = 404, description = "No such workflow or version", body = ErrorBody),
    )
)]
pub(crate) async fn get(
    State(app): State<App>,
    Who(caller): Who,
    Path((id, version)): Path<(String, i64)>,
) -> Result<Json<WorkflowVersion>, Error> {
    let request = GetWorkflowVersionRequest {
        workflow_id: id,
        version,
    };
    let mut workflows = app.clients.workflows();
    let answer = app
        .clients
        .answer(workflows.get_workflow_version(app.clients.request(&caller, request)))
        .await?;
    Ok(Json(answer.version.unwrap_or_default().into()))
}

/// Makes the graph of a version the newest one, as a version of its own.
#[utoipa::path(
    post, path = "/workflows/{id}/versions/{version}/restore", operation_id = "restoreWorkflowVersion",
    tag = "workflows",
    params(
        ("id" = String, Path, description = "The workflow"),
        ("version" = i64, Path, description = "The number of the version"),
        ("If-Match" = Option<String>, Header, description = "Only if the workflow still has this etag"),
    ),
    responses(
        (status = 200, description = "The workflow as it is now", body = Workflow),
        (status = 404, description = "No such workflow or version", body = ErrorBody),
        (status = 409, description = "Somebody saved it meanwhile", body = ErrorBody),
    )
)]
pub(crate) async fn restore(
    State(app): State<App>,
    Who(caller): Who,
    Path((id, version)): Path<(String, i64)>,
    headers: HeaderMap,
) -> Result<Response, Error> {
    let request = RestoreWorkflowVersionRequest {
        workflow_id: id,
        version,
        expected_etag: if_match(&headers),
    };
    let mut workflows = app.clients.workflows();
    let answer = app
        .clients
        .answer(workflows.restore_workflow_version(app.clients.request(&caller, request)))
        .await?;
    Ok(shown(answer.workflow.unwrap_or_default(), &caller))
}

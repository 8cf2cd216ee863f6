//! Workflow files: in and out.

use atelier_proto::kernel::v1::{ExportWorkflowRequest, FileSpelling, FileValues, ImportWorkflowRequest};
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use utoipa::IntoParams;

use super::workflows::{header_text, saved};
use crate::app::App;
use crate::auth::Who;
use crate::error::Error;
use crate::extract::{JsonBody, Path, Query};
use crate::problem::ErrorBody;
use crate::wire::resource::Workflow;

/// How to save a file.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ImportQuery {
    /// Name that wins over the one in the file.
    name: Option<String>,
    /// Id chosen by the caller; the id in the file is not used.
    id: Option<String>,
}

/// Saves a workflow file as a new workflow.
///
/// Takes records and bare graphs, in both spellings. Fields that nobody knows are kept and come out with an export.
#[utoipa::path(
    post, path = "/workflows/import", operation_id = "importWorkflow", tag = "workflows",
    params(
        ImportQuery,
        ("Idempotency-Key" = Option<String>, Header, description = "Makes a repeat safe; at most 200 bytes"),
    ),
    request_body(content = Object, description = "The file"),
    responses(
        (status = 201, description = "The workflow was saved", body = Workflow),
        (status = 200, description = "The workflow was there already", body = Workflow),
        (status = 400, description = "It is no workflow, or a field of it is wrong", body = ErrorBody),
        (status = 409, description = "The id or the key was used with another file", body = ErrorBody),
        (status = 413, description = "The body is too large", body = ErrorBody),
    )
)]
pub(crate) async fn import(
    State(app): State<App>,
    Who(caller): Who,
    Query(query): Query<ImportQuery>,
    headers: HeaderMap,
    JsonBody(file): JsonBody,
) -> Result<Response, Error> {
    let request = ImportWorkflowRequest {
        file_json: file.to_string(),
        workflow_id: query.id.unwrap_or_default(),
        name: query.name,
        idempotency_key: header_text(&headers, "idempotency-key").unwrap_or_default(),
    };
    let mut workflows = app.clients.workflows();
    let answer = app
        .clients
        .answer(workflows.import_workflow(app.clients.request(&caller, request)))
        .await?;
    Ok(saved(answer.workflow, answer.created, &caller))
}

/// How to write a file.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ExportQuery {
    /// The version; the newest one when absent.
    version: Option<i64>,
    /// Names of the fields of nodes and edges: `saved` (as they are), `snake` or `camel`. Default `saved`.
    spelling: Option<String>,
    /// Where the values of nodes stand: `saved` (as they are), `data` or `properties`. Default `saved`.
    values: Option<String>,
    /// Nodes and edges at the top instead of below `graph`. Default false.
    flat: Option<bool>,
}

/// A workflow as a file that imports to the same graph.
#[utoipa::path(
    get, path = "/workflows/{id}/export", operation_id = "exportWorkflow", tag = "workflows",
    params(("id" = String, Path, description = "The workflow"), ExportQuery),
    responses(
        (status = 200, description = "The file", body = Object),
        (status = 400, description = "A parameter is wrong", body = ErrorBody),
        (status = 404, description = "No such workflow or version", body = ErrorBody),
    )
)]
pub(crate) async fn export(
    State(app): State<App>,
    Who(caller): Who,
    Path(id): Path<String>,
    Query(query): Query<ExportQuery>,
) -> Result<Response, Error> {
    let spelling = |word: &str| match word {
        "saved" => Some(FileSpelling::Unspecified),
        "snake" => Some(FileSpelling::Snake),
        "camel" => Some(FileSpelling::Camel),
        _ => None,
    };
    let values = |word: &str| match word {
        "saved" => Some(FileValues::Unspecified),
        "data" => Some(FileValues::Data),
        "properties" => Some(FileValues::Properties),
        _ => None,
    };
    let spelling = super::word(
        "spelling",
        query.spelling.as_deref(),
        spelling,
        "saved, snake, camel",
    )?;
    let values = super::word(
        "values",
        query.values.as_deref(),
        values,
        "saved, data, properties",
    )?;
    let request = ExportWorkflowRequest {
        workflow_id: id,
        version: query.version,
        spelling: spelling.unwrap_or_default().into(),
        values: values.unwrap_or_default().into(),
        flat: query.flat.unwrap_or(false),
    };
    let mut workflows = app.clients.workflows();
    let answer = app
        .clients
        .answer(workflows.export_workflow(app.clients.request(&caller, request)))
        .await?;
    let heads = [
        (header::CONTENT_TYPE, "application/json"),
        (
            header::CONTENT_DISPOSITION,
            "attachment; filename=\"workflow.json\"",
        ),
    ];
    Ok((heads, answer.file_json).into_response())
}

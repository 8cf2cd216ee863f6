//! Saved workflows: save, list, look at, change, delete, run. Their versions are in `versions.rs`, files in `files.rs`.

use atelier_common::identity::Caller;
use atelier_proto::kernel::v1::{
    CreateWorkflowRequest, DeleteWorkflowRequest, GetWorkflowRequest, ListWorkflowsRequest, Tags,
    UpdateWorkflowRequest, Workflow as WorkflowMessage,
};
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::body::Body;
use super::graph::{JobOptions, checked, run_options};
use super::jobs::{self, RunQuery};
use crate::app::App;
use crate::auth::Who;
use crate::error::Error;
use crate::extract::{JsonBody, Path, Query};
use crate::problem::ErrorBody;
use crate::wire::resource::{Job, Workflow};

/// A header that a caller may set; none when it is empty or no text.
pub(crate) fn header_text(headers: &HeaderMap, name: impl header::AsHeaderName) -> Option<String> {
    let text = headers.get(name)?.to_str().ok()?.trim();
    Some(text.to_owned()).filter(|text| !text.is_empty())
}

/// The state that a change is meant for, from `If-Match`; any state when it is `*`.
pub(crate) fn if_match(headers: &HeaderMap) -> Option<String> {
    header_text(headers, header::IF_MATCH).filter(|etag| etag != "*")
}

/// A workflow to save.
#[derive(Debug, Deserialize, ToSchema)]
#[expect(
    dead_code,
    reason = "the shape for the description of the interface; bodies are read field by field"
)]
pub(crate) struct WorkflowBody {
    /// Id chosen by the caller; only when it is made.
    id: Option<String>,
    /// Name for people, 1 to 200 characters.
    name: Option<String>,
    /// What it does.
    description: Option<String>,
    /// Words to find it by.
    tags: Option<Vec<String>>,
    /// Settings of its editor or its runs.
    #[schema(value_type = Option<Object>)]
    settings: Option<Value>,
    /// Values of its inputs that a run takes when the request states none.
    #[schema(value_type = Option<Object>)]
    params: Option<Value>,
    /// `workflow`, `chat`, `app`, `tool`, `clip`, `layer` or `image`.
    run_mode: Option<String>,
    /// Other fields of its file.
    #[schema(value_type = Option<Object>)]
    extra: Option<Value>,
    /// `{"nodes": […], "edges": […]}`, at most 8 MiB.
    #[schema(value_type = Option<Object>)]
    graph: Option<Value>,
    /// About the version that this makes.
    note: Option<String>,
    /// Only if this is the number of its newest version; only with a change.
    expected_version: Option<i64>,
}

fn graph_text(body: &mut Body) -> Result<Option<String>, Error> {
    let graph = body
        .take("graph")
        .map(|graph| checked("graph", graph))
        .transpose()?;
    Ok(graph.map(|graph| graph.to_string()))
}

fn tags(body: &mut Body) -> Result<Option<Tags>, Error> {
    Ok(body.texts("tags")?.map(|values| Tags { values }))
}

/// Saves a new workflow.
///
/// With an `Idempotency-Key`, or an id of the caller's, a repeated request is answered with the first workflow.
#[utoipa::path(
    post, path = "/workflows", operation_id = "createWorkflow", tag = "workflows", request_body = WorkflowBody,
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes a repeat safe; at most 200 bytes")),
    responses(
        (status = 201, description = "The workflow was saved", body = Workflow),
        (status = 200, description = "The workflow was there already", body = Workflow),
        (status = 400, description = "A field is wrong, or the body is no JSON", body = ErrorBody),
        (status = 409, description = "The id or the key was used with another body", body = ErrorBody),
        (status = 413, description = "The body is too large", body = ErrorBody),
        (status = 429, description = "There are too many workflows", body = ErrorBody),
    )
)]
pub(crate) async fn create(
    State(app): State<App>,
    Who(caller): Who,
    headers: HeaderMap,
    JsonBody(body): JsonBody,
) -> Result<Response, Error> {
    let mut body = Body::of(body)?;
    let request = CreateWorkflowRequest {
        workflow_id: body.text("id")?.unwrap_or_default(),
        name: body.needed("name")?,
        description: body.text("description")?.unwrap_or_default(),
        tags: tags(&mut body)?,
        settings_json: body.object("settings")?.unwrap_or_default(),
        params: body.values("params")?,
        run_mode: body.text("run_mode")?,
        extra_json: body.object("extra")?.unwrap_or_default(),
        graph_json: graph_text(&mut body)?.ok_or_else(|| Error::field("graph", "is missing"))?,
        note: body.text("note")?.unwrap_or_default(),
        idempotency_key: header_text(&headers, "idempotency-key").unwrap_or_default(),
    };
    body.finish()?;
    let mut workflows = app.clients.workflows();
    let answer = app
        .clients
        .answer(workflows.create_workflow(app.clients.request(&caller, request)))
        .await?;
    Ok(saved(answer.workflow, answer.created, &caller))
}

/// The answer to a save: 201 when something was made.
pub(crate) fn saved(workflow: Option<WorkflowMessage>, created: bool, caller: &Caller) -> Response {
    let status = if created {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    (status, shown(workflow.unwrap_or_default(), caller)).into_response()
}

/// A workflow with its etag where HTTP looks for it.
pub(crate) fn shown(workflow: WorkflowMessage, caller: &Caller) -> Response {
    let etag = format!("\"{}\"", workflow.etag);
    (
        [(header::ETAG, etag)],
        Json(Workflow::new(workflow, &caller.user_id)),
    )
        .into_response()
}

/// Which workflows to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct WorkflowsQuery {
    /// Only workflows in whose name, description or tags all of these words occur.
    pub(crate) query: Option<String>,
    /// Only workflows with this tag.
    pub(crate) tag: Option<String>,
    /// Only workflows that are used as this.
    pub(crate) run_mode: Option<String>,
    /// Only workflows with exactly this name.
    pub(crate) name: Option<String>,
    /// Rows of a page, 1 to 500. Default 50.
    pub(crate) limit: Option<i32>,
    /// The `next` of the page before.
    pub(crate) cursor: Option<String>,
}

/// A page of workflows.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WorkflowPage {
    /// The workflows, newest first, without graphs.
    pub(crate) workflows: Vec<Workflow>,
    /// The cursor to the next page.
    #[schema(required)]
    pub(crate) next: Option<String>,
}

/// Lists workflows, newest first.
#[utoipa::path(
    get, path = "/workflows", operation_id = "listWorkflows", tag = "workflows", params(WorkflowsQuery),
    responses(
        (status = 200, description = "A page", body = WorkflowPage),
        (status = 400, description = "A parameter is wrong", body = ErrorBody),
    )
)]
pub(crate) async fn list(
    State(app): State<App>,
    Who(caller): Who,
    Query(query): Query<WorkflowsQuery>,
) -> Result<Json<WorkflowPage>, Error> {
    page(&app, &caller, query).await.map(Json)
}

/// A page of workflows, for every surface.
pub(crate) async fn page(app: &App, caller: &Caller, query: WorkflowsQuery) -> Result<WorkflowPage, Error> {
    let request = ListWorkflowsRequest {
        page_size: super::page_size(query.limit)?,
        page_token: query.cursor.unwrap_or_default(),
        query: query.query.unwrap_or_default(),
        tag: query.tag,
        run_mode: query.run_mode,
        name: query.name,
    };
    let mut workflows = app.clients.workflows();
    let page = app
        .clients
        .answer(workflows.list_workflows(app.clients.request(caller, request)))
        .await?;
    let rows = page.workflows.into_iter();
    Ok(WorkflowPage {
        workflows: rows.map(|row| Workflow::new(row, &caller.user_id)).collect(),
        next: super::next(page.next_page_token),
    })
}

/// One workflow with its newest graph.
#[utoipa::path(
    get, path = "/workflows/{id}", operation_id = "getWorkflow", tag = "workflows",
    params(("id" = String, Path, description = "The workflow")),
    responses(
        (status = 200, description = "The workflow", body = Workflow),
        (status = 404, description = "No such workflow", body = ErrorBody),
    )
)]
pub(crate) async fn get(
    State(app): State<App>,
    Who(caller): Who,
    Path(id): Path<String>,
) -> Result<Response, Error> {
    Ok(shown(fetch(&app, &caller, &id).await?, &caller))
}

/// One workflow, for every surface.
pub(crate) async fn fetch(app: &App, caller: &Caller, id: &str) -> Result<WorkflowMessage, Error> {
    let workflow_id = id.to_owned();
    let request = app.clients.request(caller, GetWorkflowRequest { workflow_id });
    let mut workflows = app.clients.workflows();
    let answer = app.clients.answer(workflows.get_workflow(request)).await?;
    Ok(answer.workflow.unwrap_or_default())
}

/// Changes a workflow: what the body names, and nothing else. A changed graph is a new version.
#[utoipa::path(
    patch, path = "/workflows/{id}", operation_id = "updateWorkflow", tag = "workflows",
    params(
        ("id" = String, Path, description = "The workflow"),
        ("If-Match" = Option<String>, Header, description = "Only if the workflow still has this etag"),
    ),
    request_body = WorkflowBody,
    responses(
        (status = 200, description = "The workflow as it is now", body = Workflow),
        (status = 400, description = "A field is wrong, or the body is no JSON", body = ErrorBody),
        (status = 404, description = "No such workflow", body = ErrorBody),
        (status = 409, description = "Somebody saved it meanwhile", body = ErrorBody),
        (status = 413, description = "The body is too large", body = ErrorBody),
    )
)]
pub(crate) async fn update(
    State(app): State<App>,
    Who(caller): Who,
    Path(id): Path<String>,
    headers: HeaderMap,
    JsonBody(body): JsonBody,
) -> Result<Response, Error> {
    let mut body = Body::of(body)?;
    let request = UpdateWorkflowRequest {
        workflow_id: id,
        expected_version: body.number("expected_version")?,
        expected_etag: if_match(&headers),
        ..changes(&mut body)?
    };
    body.finish()?;
    let answer = send_update(&app, &caller, request).await?;
    Ok(shown(answer, &caller))
}

/// The changes that a body names, for every surface.
pub(crate) fn changes(body: &mut Body) -> Result<UpdateWorkflowRequest, Error> {
    Ok(UpdateWorkflowRequest {
        workflow_id: String::new(),
        expected_version: None,
        expected_etag: None,
        name: body.text("name")?,
        description: body.text("description")?,
        tags: tags(body)?,
        settings_json: body.object("settings")?,
        params: body.values("params")?,
        run_mode: body.text("run_mode")?,
        extra_json: body.object("extra")?,
        graph_json: graph_text(body)?,
        note: body.text("note")?.unwrap_or_default(),
    })
}

/// Sends changes and answers with the workflow.
pub(crate) async fn send_update(
    app: &App,
    caller: &Caller,
    request: UpdateWorkflowRequest,
) -> Result<WorkflowMessage, Error> {
    let mut workflows = app.clients.workflows();
    let answer = app
        .clients
        .answer(workflows.update_workflow(app.clients.request(caller, request)))
        .await?;
    Ok(answer.workflow.unwrap_or_default())
}

/// Deletes a workflow. Its runs keep what they have.
#[utoipa::path(
    delete, path = "/workflows/{id}", operation_id = "deleteWorkflow", tag = "workflows",
    params(
        ("id" = String, Path, description = "The workflow"),
        ("If-Match" = Option<String>, Header, description = "Only if the workflow still has this etag"),
    ),
    responses(
        (status = 204, description = "It is deleted"),
        (status = 404, description = "No such workflow", body = ErrorBody),
        (status = 409, description = "Somebody saved it meanwhile", body = ErrorBody),
    )
)]
pub(crate) async fn delete(
    State(app): State<App>,
    Who(caller): Who,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<StatusCode, Error> {
    let request = DeleteWorkflowRequest {
        workflow_id: id,
        expected_etag: if_match(&headers),
    };
    let mut workflows = app.clients.workflows();
    app.clients
        .answer(workflows.delete_workflow(app.clients.request(&caller, request)))
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// How to run a saved workflow.
#[derive(Debug, Deserialize, ToSchema)]
#[expect(
    dead_code,
    reason = "the shape for the description of the interface; bodies are read field by field"
)]
pub(crate) struct WorkflowRunBody {
    /// The version to run; the newest one when absent.
    version: Option<i64>,
    /// Values of the input nodes, by name.
    #[schema(value_type = Option<Object>)]
    params: Option<Value>,
    /// Name shown in lists.
    name: Option<String>,
    /// Id of the run, chosen by the caller; repeating a request with it starts nothing again.
    job_id: Option<String>,
    /// How it runs.
    options: Option<JobOptions>,
}

/// Runs a saved workflow.
#[utoipa::path(
    post, path = "/workflows/{id}/run", operation_id = "runWorkflow", tag = "workflows",
    params(("id" = String, Path, description = "The workflow"), RunQuery), request_body = WorkflowRunBody,
    responses(
        (status = 201, description = "The run was created", body = Job),
        (status = 200, description = "The run was there already", body = Job),
        (status = 202, description = "The wait ran out while it was running", body = Job),
        (status = 400, description = "A field is wrong, or the body is no JSON", body = ErrorBody),
        (status = 404, description = "No such workflow or version", body = ErrorBody),
        (status = 409, description = "The id was used with another body", body = ErrorBody),
    )
)]
pub(crate) async fn run(
    State(app): State<App>,
    Who(caller): Who,
    Path(id): Path<String>,
    Query(query): Query<RunQuery>,
    JsonBody(body): JsonBody,
) -> Result<Response, Error> {
    let mut body = Body::of(body)?;
    let request = atelier_proto::kernel::v1::RunJobRequest {
        workflow_id: Some(id),
        workflow_version: body.number("version")?,
        params: body.values("params")?,
        name: body.text("name")?.unwrap_or_default(),
        job_id: body.text("job_id")?.unwrap_or_default(),
        options: body.take("options").map(run_options).transpose()?,
        ..Default::default()
    };
    body.finish()?;
    jobs::start(&app, &caller, request, &query).await
}

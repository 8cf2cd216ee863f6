//! `/api/workflows` as clients of the field know it (wire specification 5.4, 6.2): records with all keys, saves by PUT. The
//! interface of our own is in `workflows.rs`.

use atelier_common::identity::Caller;
use atelier_proto::kernel::v1::{
    DeleteWorkflowRequest, ImportWorkflowRequest, RunJobRequest, UpdateWorkflowRequest,
    Workflow as WorkflowMessage,
};
use atelier_proto::reason;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::body::Body;
use super::graph::checked;
use super::jobs;
use super::workflows::{self, WorkflowsQuery};
use crate::app::App;
use crate::auth::Who;
use crate::error::Error;
use crate::extract::{JsonBody, Path, Query};
use crate::wire::resource::{Workflow, outputs_of};
use crate::wire::words;

/// Rows of a page when nothing is asked.
const PAGE: i32 = 100;
/// Workflows of which the names are told at once.
const MAX_NAMES: usize = 10_000;
/// Fields of a record that are ours to say, and fields of a request.
const OURS: &[&str] = &[
    "id",
    "created_at",
    "updated_at",
    "etag",
    "version",
    "user_id",
    "input_schema",
    "output_schema",
    "expected_updated_at",
    "project_id",
];

/// The routes.
pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/api/workflows", get(list).post(create))
        .route("/api/workflows/names", get(names))
        .route("/api/workflows/{id}", get(one).put(put).delete(delete))
        .route("/api/workflows/{id}/run", post(run))
}

/// Which workflows to list; other parameters mean nothing here.
#[derive(Debug, Deserialize)]
struct FieldQuery {
    limit: Option<i32>,
    cursor: Option<String>,
    run_mode: Option<String>,
    tag: Option<String>,
}

async fn list(
    State(app): State<App>,
    Who(caller): Who,
    Query(query): Query<FieldQuery>,
) -> Result<Json<Value>, Error> {
    let FieldQuery {
        limit,
        cursor,
        run_mode,
        tag,
    } = query;
    page(&app, &caller, limit, cursor, run_mode, tag).await.map(Json)
}

/// A page of records, also for the socket. Without a mode those of the ordinary one.
pub(crate) async fn page(
    app: &App,
    caller: &Caller,
    limit: Option<i32>,
    cursor: Option<String>,
    run_mode: Option<String>,
    tag: Option<String>,
) -> Result<Value, Error> {
    let query = WorkflowsQuery {
        tag,
        run_mode: Some(run_mode.unwrap_or_else(|| "workflow".to_owned())),
        limit: Some(limit.unwrap_or(PAGE)),
        cursor,
        ..WorkflowsQuery::default()
    };
    let page = workflows::page(app, caller, query).await?;
    let records: Vec<Value> = page.workflows.into_iter().map(Workflow::record).collect();
    Ok(json!({"workflows": records, "next": page.next}))
}

/// One record, also for the socket.
pub(crate) async fn record(app: &App, caller: &Caller, id: &str) -> Result<Value, Error> {
    Ok(shown(workflows::fetch(app, caller, id).await?, caller))
}

fn shown(workflow: WorkflowMessage, caller: &Caller) -> Value {
    Workflow::new(workflow, &caller.user_id).record()
}

async fn one(State(app): State<App>, Who(caller): Who, Path(id): Path<String>) -> Result<Json<Value>, Error> {
    record(&app, &caller, &id).await.map(Json)
}

async fn names(State(app): State<App>, Who(caller): Who) -> Result<Json<Value>, Error> {
    let mut names = Map::new();
    let mut cursor = None;
    while names.len() < MAX_NAMES {
        let page = page(&app, &caller, Some(500), cursor, None, None).await?;
        for row in page
            .get("workflows")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let id = row.get("id").and_then(Value::as_str).unwrap_or_default();
            names.insert(id.to_owned(), row.get("name").cloned().unwrap_or_default());
        }
        cursor = page.get("next").and_then(Value::as_str).map(ToOwned::to_owned);
        if cursor.is_none() {
            break;
        }
    }
    Ok(Json(names.into()))
}

async fn create(
    State(app): State<App>,
    Who(caller): Who,
    JsonBody(body): JsonBody,
) -> Result<Json<Value>, Error> {
    let named = body.get("name").and_then(Value::as_str);
    if named.is_none_or(|name| name.trim().is_empty()) {
        return Err(Error::field("name", "is missing"));
    }
    import(&app, &caller, String::new(), &body).await.map(Json)
}

async fn import(app: &App, caller: &Caller, workflow_id: String, body: &Value) -> Result<Value, Error> {
    let mut file = body.clone();
    if let Some(file) = file.as_object_mut() {
        OURS.iter().for_each(|key| drop(file.remove(*key)));
        // A workflow may begin with nothing in it.
        if file.get("graph").is_none_or(Value::is_null) && !file.contains_key("nodes") {
            file.insert("graph".to_owned(), json!({"nodes": [], "edges": []}));
        }
    }
    let request = ImportWorkflowRequest {
        file_json: file.to_string(),
        workflow_id,
        name: None,
        idempotency_key: String::new(),
    };
    let mut workflows = app.clients.workflows();
    let answer = app
        .clients
        .answer(workflows.import_workflow(app.clients.request(caller, request)))
        .await?;
    Ok(shown(answer.workflow.unwrap_or_default(), caller))
}

/// Saves over a workflow, or a new one under the id.
async fn put(
    State(app): State<App>,
    Who(caller): Who,
    Path(id): Path<String>,
    JsonBody(body): JsonBody,
) -> Result<Json<Value>, Error> {
    let current = match workflows::fetch(&app, &caller, &id).await {
        Ok(current) => current,
        Err(Error::Service(status)) if reason::reason_of(&status) == reason::WORKFLOW_NOT_FOUND => {
            return import(&app, &caller, id, &body).await.map(Json);
        }
        Err(error) => return Err(error),
    };
    let mut fields = Body::of(body)?;
    let etag = current.etag.clone();
    let seen = Workflow::new(current, &caller.user_id);
    let expected_etag = match fields.text("expected_updated_at")? {
        None => None,
        // What was read here is what is saved over: somebody in between has another etag.
        Some(at) if at == seen.updated_at => Some(etag),
        Some(_) => Some("another".to_owned()),
    };
    OURS.iter().for_each(|key| drop(fields.take(key)));
    let request = UpdateWorkflowRequest {
        workflow_id: id,
        expected_etag,
        name: fields.text("name")?,
        description: fields.text("description")?,
        tags: fields
            .texts("tags")?
            .map(|values| atelier_proto::kernel::v1::Tags { values }),
        settings_json: fields.object("settings")?,
        params: fields.values("params")?,
        run_mode: fields.text("run_mode")?,
        graph_json: fields
            .take("graph")
            .map(|graph| checked("graph", graph))
            .transpose()?
            .map(|graph| graph.to_string()),
        extra_json: Some(fields.rest_over(seen.extra()).to_string()),
        ..UpdateWorkflowRequest::default()
    };
    let answer = workflows::send_update(&app, &caller, request).await?;
    Ok(Json(shown(answer, &caller)))
}

async fn delete(
    State(app): State<App>,
    Who(caller): Who,
    Path(id): Path<String>,
) -> Result<StatusCode, Error> {
    let request = DeleteWorkflowRequest {
        workflow_id: id,
        expected_etag: None,
    };
    let mut workflows = app.clients.workflows();
    app.clients
        .answer(workflows.delete_workflow(app.clients.request(&caller, request)))
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Runs a workflow, to its end unless it shall go on in the background.
async fn run(
    State(app): State<App>,
    Who(caller): Who,
    Path(id): Path<String>,
    JsonBody(body): JsonBody,
) -> Result<Response, Error> {
    let mut body = Body::of(body)?;
    let background = body.flag("background")?;
    let request = RunJobRequest {
        workflow_id: Some(id.clone()),
        params: body.values("params")?,
        ..RunJobRequest::default()
    };
    let (job, _) = jobs::begin(&app, &caller, request).await?;
    let job = if background {
        job
    } else {
        jobs::ended_within(&app, &caller, job, jobs::LONGEST_WAIT)
            .await?
            .0
    };
    let outputs = job.outputs.map(|outputs| outputs_of(outputs, &caller.user_id));
    let answer = json!({
        "job_id": job.job_id, "workflow_id": id, "status": words::job_status(job.status), "outputs": outputs,
        "error": job.error, "message_count": job.last_seq, "background": background,
    });
    Ok(Json(answer).into_response())
}

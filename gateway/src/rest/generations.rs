//! Rows of the ledger: list, look at, cancel.

use std::time::Duration;

use atelier_proto::provider::v1::CancelGenerationRequest;
use atelier_proto::time::{proto_duration, seconds as seconds_of};
use atelier_proto::tracker::v1::{
    AwaitGenerationRequest, GenerationFilter, GetGenerationRequest, ListGenerationsRequest,
    SweepGenerationsRequest,
};
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::app::App;
use crate::auth::Who;
use crate::error::Error;
use crate::extract::{Path, Query};
use crate::problem::ErrorBody;
use crate::wire::resource::Generation;
use crate::wire::words;

/// Words of statuses, for errors.
const STATUSES: &str = "running, completed, failed, cancelled, interrupted";

/// Which rows to list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct GenerationsQuery {
    /// `running`, `completed`, `failed`, `cancelled` or `interrupted`.
    status: Option<String>,
    /// Only this provider.
    provider: Option<String>,
    /// Only this model.
    model: Option<String>,
    /// Only this capability.
    capability: Option<String>,
    /// Only this run.
    job_id: Option<String>,
    /// Only this node.
    node_id: Option<String>,
    /// Only this chat thread.
    thread_id: Option<String>,
    /// Only this workflow.
    workflow_id: Option<String>,
    /// Only this project; the empty text means calls of no project.
    project_id: Option<String>,
    /// Only calls whose caller went on without waiting, or only the others.
    background: Option<bool>,
    /// Only calls whose cost is known, or only the others.
    has_cost: Option<bool>,
    /// `none`, `queued`, `done`, `unavailable`, `denied` or `exhausted`: where the reconciliation stands.
    reconcile_state: Option<String>,
    /// Created at or after this instant, or on or after this day.
    since: Option<String>,
    /// Created before this instant or day.
    until: Option<String>,
    /// Rows of a page, 1 to 500. Default 50.
    limit: Option<i32>,
    /// The `next` of the page before.
    cursor: Option<String>,
}

/// A page of rows.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GenerationPage {
    /// The rows, newest first.
    generations: Vec<Generation>,
    /// The cursor to the next page.
    #[schema(required)]
    next: Option<String>,
}

/// Lists calls to providers, newest first.
#[utoipa::path(
    get, path = "/generations", operation_id = "listGenerations", tag = "generations", params(GenerationsQuery),
    responses(
        (status = 200, description = "A page", body = GenerationPage),
        (status = 400, description = "A parameter is wrong", body = ErrorBody),
    )
)]
pub(crate) async fn list(
    State(app): State<App>,
    Who(caller): Who,
    Query(query): Query<GenerationsQuery>,
) -> Result<Json<GenerationPage>, Error> {
    let status = super::word(
        "status",
        query.status.as_deref(),
        words::parse_generation_status,
        STATUSES,
    )?;
    let filter = GenerationFilter {
        status: status.map(Into::into),
        provider: query.provider,
        model: query.model,
        capability: query.capability,
        job_id: query.job_id,
        node_id: query.node_id,
        thread_id: query.thread_id,
        surface: None,
        since: super::instant("since", query.since.as_deref())?,
        until: super::instant("until", query.until.as_deref())?,
        workflow_id: query.workflow_id,
        project_id: query.project_id,
        background: query.background,
        has_cost: query.has_cost,
        reconcile_state: query.reconcile_state,
    };
    let request = ListGenerationsRequest {
        filter: Some(filter),
        page_size: super::page_size(query.limit)?,
        page_token: query.cursor.unwrap_or_default(),
    };
    let mut ledger = app.clients.ledger();
    let page = app
        .clients
        .answer(ledger.list_generations(app.clients.request(&caller, request)))
        .await?;
    let generations = page.generations.into_iter().map(Into::into).collect();
    Ok(Json(GenerationPage {
        generations,
        next: super::next(page.next_page_token),
    }))
}

/// One call to a provider. A unique prefix of its id, eight characters or more, is enough.
#[utoipa::path(
    get, path = "/generations/{id}", operation_id = "getGeneration", tag = "generations",
    params(("id" = String, Path, description = "The call")),
    responses(
        (status = 200, description = "The call", body = Generation),
        (status = 404, description = "No such call", body = ErrorBody),
    )
)]
pub(crate) async fn get(
    State(app): State<App>,
    Who(caller): Who,
    Path(id): Path<String>,
) -> Result<Json<Generation>, Error> {
    let mut ledger = app.clients.ledger();
    let request = app
        .clients
        .request(&caller, GetGenerationRequest { generation_id: id });
    let answer = app.clients.answer(ledger.get_generation(request)).await?;
    Ok(Json(answer.generation.unwrap_or_default().into()))
}

/// How long to wait.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct WaitQuery {
    /// Seconds to wait at most, 1 to 1800. Default 300.
    timeout: Option<i64>,
}

/// How a wait ended.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Waited {
    /// The call as it is; still `running` when the time is over.
    generation: Generation,
    /// How long this request waited.
    waited_seconds: f64,
}

/// Waits until a call is settled, whichever process drives it. Hanging up ends the wait and nothing else.
#[utoipa::path(
    get, path = "/generations/{id}/await", operation_id = "awaitGeneration", tag = "generations",
    params(("id" = String, Path, description = "The call"), WaitQuery),
    responses(
        (status = 200, description = "The call, settled or not", body = Waited),
        (status = 400, description = "A parameter is wrong", body = ErrorBody),
        (status = 404, description = "No such call", body = ErrorBody),
    )
)]
pub(crate) async fn wait(
    State(app): State<App>,
    Who(caller): Who,
    Path(generation_id): Path<String>,
    Query(query): Query<WaitQuery>,
) -> Result<Json<Waited>, Error> {
    let seconds = query.timeout.unwrap_or(300);
    let patience = u64::try_from(seconds)
        .ok()
        .filter(|seconds| (1..=1_800).contains(seconds))
        .map(Duration::from_secs)
        .ok_or_else(|| Error::field("timeout", "must be a number of seconds from 1 to 1800"))?;
    let request = AwaitGenerationRequest {
        generation_id,
        timeout: Some(proto_duration(patience)),
    };
    let mut ledger = app.clients.ledger();
    let request = app.clients.request(&caller, request);
    // The ledger keeps the time; what is added is for the way.
    let limit = patience + app.settings.call_timeout;
    let answer = app
        .clients
        .answer_within(limit, ledger.await_generation(request))
        .await?;
    Ok(Json(Waited {
        generation: answer.generation.unwrap_or_default().into(),
        waited_seconds: answer.waited.as_ref().map(seconds_of).unwrap_or_default(),
    }))
}

/// What a sweep did.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Swept {
    /// Calls that were closed because whoever drove them is gone.
    interrupted: i64,
}

/// Closes calls whose driver is gone. It happens by itself every few seconds; this does it now. A call that is driven is
/// never touched.
#[utoipa::path(
    post, path = "/generations/sweep", operation_id = "sweepGenerations", tag = "generations",
    responses((status = 200, description = "What was done", body = Swept))
)]
pub(crate) async fn sweep(State(app): State<App>, Who(caller): Who) -> Result<Json<Swept>, Error> {
    let mut ledger = app.clients.ledger();
    let request = app.clients.request(&caller, SweepGenerationsRequest {});
    let answer = app.clients.answer(ledger.sweep_generations(request)).await?;
    Ok(Json(Swept {
        interrupted: answer.interrupted_count,
    }))
}

/// What became of a cancel.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GenerationCancelled {
    /// The call.
    generation_id: String,
    /// Whether this request cancelled it.
    cancelled: bool,
    /// `cancelled`, when it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<String>,
    /// Why nothing happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Cancels a running call. The answer for settled, unknown and foreign ones is the same.
#[utoipa::path(
    post, path = "/generations/{id}/cancel", operation_id = "cancelGeneration", tag = "generations",
    params(("id" = String, Path, description = "The call")),
    responses((status = 200, description = "What became of it", body = GenerationCancelled))
)]
pub(crate) async fn cancel(
    State(app): State<App>,
    Who(caller): Who,
    Path(id): Path<String>,
) -> Result<Json<GenerationCancelled>, Error> {
    let mut models = app.clients.models();
    let request = app.clients.request(
        &caller,
        CancelGenerationRequest {
            generation_id: id.clone(),
            job_id: None,
        },
    );
    let answer = app.clients.answer(models.cancel_generation(request)).await?;
    let status = Some(answer.status).filter(|status| !status.is_empty());
    Ok(Json(GenerationCancelled {
        generation_id: id,
        cancelled: answer.cancelled,
        status,
        error: answer.error,
    }))
}

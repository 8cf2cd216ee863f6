//! Rows of the ledger: list, look at, cancel.

use atelier_proto::provider::v1::CancelGenerationRequest;
use atelier_proto::tracker::v1::{GenerationFilter, GetGenerationRequest, ListGenerationsRequest};
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

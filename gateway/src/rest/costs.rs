//! What calls to providers cost, summed up.

use atelier_proto::tracker::v1::{GenerationFilter, SummarizeCostsRequest};
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::app::App;
use crate::auth::Who;
use crate::error::Error;
use crate::extract::Query;
use crate::problem::ErrorBody;
use crate::wire::resource::CostSummary;
use crate::wire::words;

/// What to sum over.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct CostsQuery {
    /// `provider`, `model`, `capability`, `job`, `day`, `node`, `project`, `surface` or `user`; only the total when it is
    /// not given.
    group: Option<String>,
    /// `completed`, `failed`, `cancelled` or `interrupted`.
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
    /// Only this project; the empty text means calls of no project.
    project_id: Option<String>,
    /// The time zone that days are cut in, for instance `Europe/Berlin`. Default UTC.
    time_zone: Option<String>,
    /// Calls of everybody; takes the scope `admin`.
    all_users: Option<bool>,
}

/// Sums over calls.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Costs {
    /// Over everything that was asked for.
    total: CostSummary,
    /// Per group, dearest first.
    groups: Vec<CostSummary>,
}

/// Sums up costs. Nothing is capped, currencies are never merged.
#[utoipa::path(
    get, path = "/costs", operation_id = "summarizeCosts", tag = "costs", params(CostsQuery),
    responses(
        (status = 200, description = "The sums", body = Costs),
        (status = 400, description = "A parameter is wrong", body = ErrorBody),
    )
)]
pub(crate) async fn get(
    State(app): State<App>,
    Who(caller): Who,
    Query(query): Query<CostsQuery>,
) -> Result<Json<Costs>, Error> {
    let statuses = "running, completed, failed, cancelled, interrupted";
    let status = super::word(
        "status",
        query.status.as_deref(),
        words::parse_generation_status,
        statuses,
    )?;
    let groups = "provider, model, capability, job, day, node, project, surface, user";
    let group = super::word("group", query.group.as_deref(), words::parse_cost_group, groups)?;
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
        ..GenerationFilter::default()
    };
    let request = SummarizeCostsRequest {
        filter: Some(filter),
        group: group.unwrap_or_default().into(),
        time_zone: query.time_zone.unwrap_or_default(),
        all_users: query.all_users.unwrap_or_default(),
    };
    let mut ledger = app.clients.ledger();
    let sums = app
        .clients
        .answer(ledger.summarize_costs(app.clients.request(&caller, request)))
        .await?;
    let total = sums.total.unwrap_or_default().into();
    Ok(Json(Costs {
        total,
        groups: sums.groups.into_iter().map(Into::into).collect(),
    }))
}

//! Budgets: set, look at, list, remove.

use atelier_proto::common::v1::Money;
use atelier_proto::tracker::v1::{
    DeleteBudgetRequest, GetBudgetRequest, ListBudgetsRequest, SetBudgetRequest,
};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::app::App;
use crate::auth::Who;
use crate::error::Error;
use crate::extract::{JsonBody, Path, Query};
use crate::problem::ErrorBody;
use crate::rest::body::Body;
use crate::wire::resource::Budget;
use crate::wire::words;

/// Currency when none is named.
const USD: &str = "USD";

/// A budget to set.
#[derive(Debug, Deserialize, ToSchema)]
#[expect(
    dead_code,
    reason = "the shape for the description of the interface; bodies are read field by field"
)]
pub(crate) struct BudgetBody {
    /// Whose calls; absent means the caller's. Another user, or `*` for everybody, takes the scope `admin`.
    user_id: Option<String>,
    /// `user` (all calls), `project`, `workflow`, `run` or `provider`.
    scope: String,
    /// Id of the project, workflow, run or provider.
    key: Option<String>,
    /// `day`, `month` or `total`.
    period: String,
    /// Time zone of days and months, for instance `Europe/Berlin`. Default UTC; cannot be changed later.
    time_zone: Option<String>,
    /// The most that may be spent in a period, decimal text. A budget has this, `max_calls`, or both.
    limit: Option<String>,
    /// ISO 4217, or `CREDITS:<provider>`. Default `USD`.
    currency: Option<String>,
    /// The most calls in a period.
    max_calls: Option<i64>,
    /// `allow`, `deny` or `assume`: what happens to calls whose price is not known. Default `allow`.
    unpriced: Option<String>,
    /// With `assume`: what such a call is taken to cost, decimal text.
    assumed_cost: Option<String>,
}

/// Which budgets to list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct BudgetsQuery {
    /// Of this user, or `*`; takes the scope `admin` when it is not the caller.
    user_id: Option<String>,
    /// Budgets of a page, 1 to 500. Default 50.
    limit: Option<i32>,
    /// The `next` of the page before.
    cursor: Option<String>,
}

/// A page of budgets.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BudgetPage {
    /// The budgets, oldest first.
    budgets: Vec<Budget>,
    /// The cursor to the next page.
    #[schema(required)]
    next: Option<String>,
}

/// Sets the budget of a scope, period and currency, or changes the one that is there. What was spent stays counted.
#[utoipa::path(
    put, path = "/budgets", operation_id = "setBudget", tag = "budgets", request_body = BudgetBody,
    responses(
        (status = 200, description = "The budget", body = Budget),
        (status = 400, description = "A field is wrong", body = ErrorBody),
        (status = 403, description = "It takes the scope `admin`", body = ErrorBody),
    )
)]
pub(crate) async fn set(
    State(app): State<App>,
    Who(caller): Who,
    JsonBody(body): JsonBody,
) -> Result<Json<Budget>, Error> {
    let request = app.clients.request(&caller, parse(Body::of(body)?)?);
    let mut budgets = app.clients.budgets();
    let answer = app.clients.answer(budgets.set_budget(request)).await?;
    Ok(Json(answer.budget.unwrap_or_default().into()))
}

/// Lists budgets, oldest first.
#[utoipa::path(
    get, path = "/budgets", operation_id = "listBudgets", tag = "budgets", params(BudgetsQuery),
    responses(
        (status = 200, description = "A page", body = BudgetPage),
        (status = 400, description = "A parameter is wrong", body = ErrorBody),
    )
)]
pub(crate) async fn list(
    State(app): State<App>,
    Who(caller): Who,
    Query(query): Query<BudgetsQuery>,
) -> Result<Json<BudgetPage>, Error> {
    let request = ListBudgetsRequest {
        user_id: query.user_id.unwrap_or_default(),
        page_size: super::page_size(query.limit)?,
        page_token: query.cursor.unwrap_or_default(),
    };
    let mut budgets = app.clients.budgets();
    let page = app
        .clients
        .answer(budgets.list_budgets(app.clients.request(&caller, request)))
        .await?;
    Ok(Json(BudgetPage {
        budgets: page.budgets.into_iter().map(Into::into).collect(),
        next: super::next(page.next_page_token),
    }))
}

/// One budget, with what is used of it now.
#[utoipa::path(
    get, path = "/budgets/{id}", operation_id = "getBudget", tag = "budgets",
    params(("id" = String, Path, description = "The budget")),
    responses(
        (status = 200, description = "The budget", body = Budget),
        (status = 404, description = "No such budget", body = ErrorBody),
    )
)]
pub(crate) async fn get(
    State(app): State<App>,
    Who(caller): Who,
    Path(budget_id): Path<String>,
) -> Result<Json<Budget>, Error> {
    let request = app.clients.request(&caller, GetBudgetRequest { budget_id });
    let mut budgets = app.clients.budgets();
    let answer = app.clients.answer(budgets.get_budget(request)).await?;
    Ok(Json(answer.budget.unwrap_or_default().into()))
}

/// Removes a budget, and what was counted in it.
#[utoipa::path(
    delete, path = "/budgets/{id}", operation_id = "deleteBudget", tag = "budgets",
    params(("id" = String, Path, description = "The budget")),
    responses(
        (status = 204, description = "It is gone"),
        (status = 403, description = "It was set by an admin", body = ErrorBody),
        (status = 404, description = "No such budget", body = ErrorBody),
    )
)]
pub(crate) async fn delete(
    State(app): State<App>,
    Who(caller): Who,
    Path(budget_id): Path<String>,
) -> Result<StatusCode, Error> {
    let request = app.clients.request(&caller, DeleteBudgetRequest { budget_id });
    let mut budgets = app.clients.budgets();
    app.clients.answer(budgets.delete_budget(request)).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn parse(mut body: Body) -> Result<SetBudgetRequest, Error> {
    let (kind, period) = (body.needed("scope")?, body.needed("period")?);
    let kinds = "user, project, workflow, run, provider";
    let kind = super::word("scope", Some(&kind), words::parse_budget_kind, kinds)?;
    let periods = "day, month, total";
    let period = super::word("period", Some(&period), words::parse_budget_period, periods)?;
    let unpriced = body.text("unpriced")?;
    let policies = "allow, deny, assume";
    let unpriced = super::word(
        "unpriced",
        unpriced.as_deref(),
        words::parse_unpriced_policy,
        policies,
    )?;
    let currency = body.text("currency")?.unwrap_or_else(|| USD.to_owned());
    let money = |amount: String| Money {
        amount,
        currency: currency.clone(),
    };
    let request = SetBudgetRequest {
        user_id: body.text("user_id")?.unwrap_or_default(),
        kind: kind.unwrap_or_default().into(),
        key: body.text("key")?.unwrap_or_default(),
        period: period.unwrap_or_default().into(),
        time_zone: body.text("time_zone")?.unwrap_or_default(),
        limit: body.text("limit")?.map(money),
        max_calls: body.number("max_calls")?,
        unpriced: unpriced.unwrap_or_default().into(),
        assumed_cost: body.text("assumed_cost")?.map(money),
    };
    body.finish()?;
    Ok(request)
}

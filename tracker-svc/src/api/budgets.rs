//! `atelier.tracker.v1.BudgetService`.

use atelier_common::identity::caller;
use atelier_proto::common::v1::Money;
use atelier_proto::time::proto_from_micros;
use atelier_proto::tracker::v1;
use atelier_proto::tracker::v1::budget_service_server::BudgetService;
use tonic::{Request, Response, Status};
use uuid::Uuid;

use super::parse::filled;
use crate::budgets::Scope;
use crate::budgets::store::{Asker, Budgets, SetBudget, Standing};
use crate::charge::{self, Charge};
use crate::entity::budget_words::{Period, Unpriced};
use crate::entity::budgets::Model;
use crate::error::Error;
use crate::zones;

/// Who may see and set budgets of others.
pub(super) const ADMIN: &str = "admin";
/// Currency of a budget that bounds calls only.
const USD: &str = "USD";

/// The service. Clones are the same one.
#[derive(Clone)]
pub struct BudgetApi {
    pub(crate) budgets: Budgets,
}

fn asked<T>(request: Request<T>) -> Result<(Asker, T), Status> {
    let caller = caller(&request)?;
    let admin = caller.may(ADMIN);
    let user_id = caller.user_id;
    Ok((Asker { user_id, admin }, request.into_inner()))
}

/// What is no id names no budget.
fn known_id(text: &str) -> Result<String, Error> {
    Uuid::parse_str(text)
        .map(|id| id.to_string())
        .map_err(|_| Error::BudgetNotFound)
}

#[tonic::async_trait]
impl BudgetService for BudgetApi {
    async fn set_budget(
        &self,
        request: Request<v1::SetBudgetRequest>,
    ) -> Result<Response<v1::SetBudgetResponse>, Status> {
        let (asker, request) = asked(request)?;
        let (standing, created) = self.budgets.set(&asker, parse(request)?).await?;
        let budget = Some(render(standing)?);
        Ok(Response::new(v1::SetBudgetResponse { budget, created }))
    }

    async fn get_budget(
        &self,
        request: Request<v1::GetBudgetRequest>,
    ) -> Result<Response<v1::GetBudgetResponse>, Status> {
        let (asker, request) = asked(request)?;
        let standing = self.budgets.get(&asker, &known_id(&request.budget_id)?).await?;
        let budget = Some(render(standing)?);
        Ok(Response::new(v1::GetBudgetResponse { budget }))
    }

    async fn list_budgets(
        &self,
        request: Request<v1::ListBudgetsRequest>,
    ) -> Result<Response<v1::ListBudgetsResponse>, Status> {
        let (asker, request) = asked(request)?;
        let v1::ListBudgetsRequest {
            user_id,
            page_size,
            page_token,
        } = request;
        let (standings, next_page_token) = self
            .budgets
            .list(&asker, &user_id, page_size, &page_token)
            .await?;
        let budgets = standings.into_iter().map(render).collect::<Result<_, _>>()?;
        Ok(Response::new(v1::ListBudgetsResponse {
            budgets,
            next_page_token,
        }))
    }

    async fn delete_budget(
        &self,
        request: Request<v1::DeleteBudgetRequest>,
    ) -> Result<Response<v1::DeleteBudgetResponse>, Status> {
        let (asker, request) = asked(request)?;
        self.budgets
            .delete(&asker, &known_id(&request.budget_id)?)
            .await?;
        Ok(Response::new(v1::DeleteBudgetResponse {}))
    }
}

fn parse(request: v1::SetBudgetRequest) -> Result<SetBudget, Error> {
    let v1::SetBudgetRequest {
        user_id,
        kind,
        key,
        period,
        time_zone,
        limit,
        max_calls,
        unpriced,
        assumed_cost,
    } = request;
    let user_id = match user_id.as_str() {
        "" => user_id,
        _ => filled(user_id, "user_id")?,
    };
    let (cap, currency) = amount(limit, "limit")?.unzip();
    let (assumed, assumed_in) = amount(assumed_cost, "assumed_cost")?.unzip();
    let currency = currency.or(assumed_in.clone()).unwrap_or_else(|| USD.to_owned());
    if assumed_in.is_some_and(|assumed_in| assumed_in != currency) {
        return Err(Error::invalid(
            "assumed_cost",
            "must be in the currency of the limit",
        ));
    }
    if max_calls.is_some_and(|most| most < 0) {
        return Err(Error::invalid("max_calls", "must not be negative"));
    }
    if cap.is_none() && max_calls.is_none() {
        return Err(Error::invalid("limit", "must be set, or max_calls must"));
    }
    let unpriced =
        Unpriced::from_proto(unpriced).ok_or_else(|| Error::invalid("unpriced", "is not a policy"))?;
    if (unpriced == Unpriced::Assume) != assumed.is_some() {
        return Err(Error::invalid(
            "assumed_cost",
            "must be set when unpriced calls are taken to cost something, and only then",
        ));
    }
    Ok(SetBudget {
        user_id,
        scope: scope(kind, key)?,
        period: Period::from_proto(period)
            .ok_or_else(|| Error::invalid("period", "must be a day, a month, or the total"))?,
        time_zone: zones::named(&time_zone)?.0,
        cap,
        currency,
        max_calls,
        unpriced,
        assumed,
    })
}

fn amount(money: Option<Money>, field: &'static str) -> Result<Option<(i64, String)>, Error> {
    let charge = money.map(|cost| v1::Charge {
        cost: Some(cost),
        ..Default::default()
    });
    let charge: Option<Charge> = charge::strict(charge.as_ref(), field)?;
    Ok(charge.map(|charge| (charge.cost, charge.currency)))
}

fn scope(kind: i32, key: String) -> Result<Scope, Error> {
    let kind = v1::BudgetKind::try_from(kind).unwrap_or_default();
    let scope = match kind {
        v1::BudgetKind::Unspecified => {
            return Err(Error::invalid("kind", "must say which calls are bounded"));
        }
        v1::BudgetKind::User if key.is_empty() => return Ok(Scope::User),
        v1::BudgetKind::User => {
            return Err(Error::invalid("key", "must be empty for a budget of all calls"));
        }
        v1::BudgetKind::Project => Scope::Project,
        v1::BudgetKind::Workflow => Scope::Workflow,
        v1::BudgetKind::Run => Scope::Run,
        v1::BudgetKind::Provider => Scope::Provider,
    };
    Ok(scope(filled(key, "key")?))
}

fn render(standing: Standing) -> Result<v1::Budget, Error> {
    let Standing {
        budget,
        spent,
        calls,
        starts_at,
        ends_at,
    } = standing;
    let Model {
        id,
        user_id,
        scope,
        period,
        time_zone,
        cap,
        currency,
        max_calls,
        unpriced,
        assumed,
        managed,
        held,
        created_at,
        updated_at,
    } = budget;
    let scope = Scope::parse(&scope).ok_or(Error::Corrupt("scope of a budget"))?;
    let kind = match scope {
        Scope::User => v1::BudgetKind::User,
        Scope::Project(_) => v1::BudgetKind::Project,
        Scope::Workflow(_) => v1::BudgetKind::Workflow,
        Scope::Run(_) => v1::BudgetKind::Run,
        Scope::Provider(_) => v1::BudgetKind::Provider,
    };
    let money = |nanos| charge::to_proto(nanos, &currency);
    let left = |cap: i64| cap.saturating_sub(spent).saturating_sub(held).max(0);
    Ok(v1::Budget {
        budget_id: id,
        user_id,
        kind: kind.into(),
        key: scope.key().to_owned(),
        period: period.to_proto().into(),
        time_zone,
        limit: cap.map(money),
        max_calls,
        unpriced: unpriced.to_proto().into(),
        assumed_cost: assumed.map(money),
        managed,
        spent: Some(money(spent)),
        held: Some(money(held)),
        remaining: cap.map(left).map(money),
        calls,
        period_start: ends_at.map(|_| proto_from_micros(starts_at)),
        period_end: ends_at.map(proto_from_micros),
        created_at: Some(proto_from_micros(created_at)),
        updated_at: Some(proto_from_micros(updated_at)),
    })
}

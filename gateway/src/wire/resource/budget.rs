//! A budget, and what is used of it.

use atelier_proto::time::iso;
use atelier_proto::tracker::v1;
use serde::Serialize;
use utoipa::ToSchema;

use crate::wire::words;

/// A budget, and what is used of it now.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Budget {
    /// Its id.
    id: String,
    /// Whose calls it bounds; `*` means everybody's, together.
    user_id: String,
    /// `user` (all calls), `project`, `workflow`, `run` or `provider`.
    scope: &'static str,
    /// Id of the project, workflow, run or provider; empty for all calls.
    key: String,
    /// `day`, `month` or `total`.
    period: &'static str,
    /// The time zone that its days and months are of.
    #[schema(example = "Europe/Berlin")]
    time_zone: String,
    /// Currency of every amount of it.
    #[schema(example = "USD")]
    currency: String,
    /// The most that may be spent in a period, decimal text; null when only calls are counted.
    #[schema(required, example = "50.00")]
    limit: Option<String>,
    /// The most calls in a period; null when they are not bounded.
    #[schema(required)]
    max_calls: Option<i64>,
    /// `allow`, `deny` or `assume`: what happens to calls whose price is not known.
    unpriced: &'static str,
    /// What such a call is taken to cost.
    #[schema(required)]
    assumed_cost: Option<String>,
    /// Whether only an admin can change it.
    managed: bool,
    /// Settled in this period.
    #[schema(example = "12.40")]
    spent: String,
    /// Held for calls that are not settled, or whose bill is awaited.
    #[schema(example = "0.24")]
    held: String,
    /// What is left, not below zero; null without a limit.
    #[schema(required, example = "37.36")]
    remaining: Option<String>,
    /// Calls of this period.
    calls: i64,
    /// When this period began; null for one that never starts over.
    #[schema(required)]
    period_start: Option<String>,
    /// When the next one begins; null likewise.
    #[schema(required)]
    period_end: Option<String>,
    /// When it was set first.
    created_at: Option<String>,
    /// When it was changed last.
    updated_at: Option<String>,
}

impl From<v1::Budget> for Budget {
    fn from(budget: v1::Budget) -> Self {
        let v1::Budget {
            budget_id,
            user_id,
            kind,
            key,
            period,
            time_zone,
            limit,
            max_calls,
            unpriced,
            assumed_cost,
            managed,
            spent,
            held,
            remaining,
            calls,
            period_start,
            period_end,
            created_at,
            updated_at,
        } = budget;
        let zero = || super::short("0");
        Self {
            id: budget_id,
            user_id,
            scope: words::budget_kind(kind),
            key,
            period: words::budget_period(period),
            time_zone,
            currency: spent
                .as_ref()
                .map(|money| money.currency.clone())
                .unwrap_or_default(),
            limit: super::short_of(limit.as_ref()),
            max_calls,
            unpriced: words::unpriced_policy(unpriced),
            assumed_cost: super::short_of(assumed_cost.as_ref()),
            managed,
            spent: super::short_of(spent.as_ref()).unwrap_or_else(zero),
            held: super::short_of(held.as_ref()).unwrap_or_else(zero),
            remaining: super::short_of(remaining.as_ref()),
            calls,
            period_start: period_start.as_ref().map(iso),
            period_end: period_end.as_ref().map(iso),
            created_at: created_at.as_ref().map(iso),
            updated_at: updated_at.as_ref().map(iso),
        }
    }
}

//! What calls cost: of one run, and in a report. Sums in US dollars stand first; other currencies are never merged.

use atelier_proto::common::v1::Money;
use atelier_proto::tracker::v1;
use serde::Serialize;
use utoipa::ToSchema;

const USD: &str = "USD";

/// What the calls of a run cost.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct JobCost {
    /// The sum in US dollars as decimal text; null when it is not known.
    #[schema(required, example = "0.24")]
    amount: Option<String>,
    /// Always `USD`.
    #[schema(example = "USD")]
    currency: &'static str,
    /// Calls whose cost is not known.
    unpriced: i64,
    /// Calls that are still open.
    running: i64,
}

impl JobCost {
    /// The cost of a run by what the ledger sums up; nothing is known without it.
    pub(crate) fn new(total: Option<&v1::CostSummary>) -> Self {
        Self {
            amount: total.and_then(dollars),
            currency: USD,
            unpriced: total.map_or(0, |total| total.unpriced_count),
            running: total.map_or(0, |total| total.running_count),
        }
    }
}

/// The sum in US dollars: nothing spent is zero, spent and not priced is not known.
fn dollars(summary: &v1::CostSummary) -> Option<String> {
    let known = summary
        .costs
        .iter()
        .find(|cost| cost.currency == USD)
        .map(|cost| super::short(&cost.amount));
    let spent = !summary.costs.is_empty() || summary.unpriced_count > 0;
    known.or_else(|| (!spent).then(|| "0.00".to_owned()))
}

/// An amount of money.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Amount {
    /// Decimal text.
    #[schema(example = "0.24")]
    amount: String,
    /// ISO 4217, or `CREDITS:<provider>`.
    #[schema(example = "USD")]
    currency: String,
}

/// Sums and counts of one group.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CostSummary {
    /// The group's key; empty for the total.
    key: String,
    /// Sums per currency.
    costs: Vec<Amount>,
    /// The sum in US dollars; null when it is not known.
    #[schema(required)]
    amount: Option<String>,
    /// Always `USD`.
    currency: &'static str,
    /// Settled calls.
    call_count: i64,
    /// Of those, completed.
    completed_count: i64,
    /// Of those, failed.
    failed_count: i64,
    /// Of those, cancelled.
    cancelled_count: i64,
    /// Of those, interrupted.
    interrupted_count: i64,
    /// Settled calls whose cost is not known although something was sent.
    unpriced_count: i64,
    /// Settled calls of which nothing was sent.
    unsent_count: i64,
    /// Open calls.
    running_count: i64,
    /// Sums of the estimates of open calls, per currency. Not in `costs`.
    pending: Vec<Amount>,
}

impl From<v1::CostSummary> for CostSummary {
    fn from(summary: v1::CostSummary) -> Self {
        let amount = dollars(&summary);
        let v1::CostSummary {
            key,
            costs,
            call_count,
            completed_count,
            failed_count,
            cancelled_count,
            interrupted_count,
            unpriced_count,
            unsent_count,
            running_count,
            pending,
        } = summary;
        let amounts = |sums: Vec<Money>| {
            let short = |sum: Money| Amount {
                amount: super::short(&sum.amount),
                currency: sum.currency,
            };
            sums.into_iter().map(short).collect()
        };
        Self {
            key,
            costs: amounts(costs),
            amount,
            currency: USD,
            call_count,
            completed_count,
            failed_count,
            cancelled_count,
            interrupted_count,
            unpriced_count,
            unsent_count,
            running_count,
            pending: amounts(pending),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_spent_is_zero_and_not_priced_is_null() {
        let none = v1::CostSummary::default();
        assert_eq!(dollars(&none).as_deref(), Some("0.00"));
        assert_eq!(
            dollars(&v1::CostSummary {
                unpriced_count: 1,
                ..none.clone()
            }),
            None
        );
        let cost = |amount: &str, currency: &str| Money {
            amount: amount.into(),
            currency: currency.into(),
        };
        let both = vec![cost("3", "EUR"), cost("0.240000000", "USD")];
        assert_eq!(
            dollars(&v1::CostSummary {
                costs: both,
                ..none.clone()
            })
            .as_deref(),
            Some("0.24")
        );
        assert_eq!(
            dollars(&v1::CostSummary {
                costs: vec![cost("3", "EUR")],
                ..none
            }),
            None
        );
    }
}

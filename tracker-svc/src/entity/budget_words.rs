//! The words that columns of budgets hold, and their forms on the wire.

use atelier_proto::tracker::v1;
use sea_orm::{DeriveActiveEnum, EnumIter};

/// How long a budget lasts before it starts over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "Text")]
pub enum Period {
    /// A calendar day.
    #[sea_orm(string_value = "day")]
    Day,
    /// A calendar month.
    #[sea_orm(string_value = "month")]
    Month,
    /// For ever.
    #[sea_orm(string_value = "total")]
    Total,
}
impl Period {
    /// Reads the wire's number; `None` when unspecified or unknown.
    #[must_use]
    pub fn from_proto(number: i32) -> Option<Self> {
        match v1::BudgetPeriod::try_from(number).ok()? {
            v1::BudgetPeriod::Unspecified => None,
            v1::BudgetPeriod::Day => Some(Self::Day),
            v1::BudgetPeriod::Month => Some(Self::Month),
            v1::BudgetPeriod::Total => Some(Self::Total),
        }
    }
    /// The wire's form.
    #[must_use]
    pub const fn to_proto(self) -> v1::BudgetPeriod {
        match self {
            Self::Day => v1::BudgetPeriod::Day,
            Self::Month => v1::BudgetPeriod::Month,
            Self::Total => v1::BudgetPeriod::Total,
        }
    }
}

/// What a budget does with a call whose price is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "Text")]
pub enum Unpriced {
    /// It passes and holds nothing.
    #[sea_orm(string_value = "allow")]
    Allow,
    /// It is refused.
    #[sea_orm(string_value = "deny")]
    Deny,
    /// It holds what the budget takes it to cost.
    #[sea_orm(string_value = "assume")]
    Assume,
}
impl Unpriced {
    /// Reads the wire's number; `None` when unknown.
    #[must_use]
    pub fn from_proto(number: i32) -> Option<Self> {
        match v1::UnpricedPolicy::try_from(number).ok()? {
            v1::UnpricedPolicy::Unspecified | v1::UnpricedPolicy::Allow => Some(Self::Allow),
            v1::UnpricedPolicy::Deny => Some(Self::Deny),
            v1::UnpricedPolicy::Assume => Some(Self::Assume),
        }
    }
    /// The wire's form.
    #[must_use]
    pub const fn to_proto(self) -> v1::UnpricedPolicy {
        match self {
            Self::Allow => v1::UnpricedPolicy::Allow,
            Self::Deny => v1::UnpricedPolicy::Deny,
            Self::Assume => v1::UnpricedPolicy::Assume,
        }
    }
}

/// How a hold of a budget stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "Text")]
pub enum Hold {
    /// The estimate is held.
    #[sea_orm(string_value = "held")]
    Held,
    /// An amount is booked.
    #[sea_orm(string_value = "settled")]
    Settled,
    /// Nothing was sent, nothing is booked.
    #[sea_orm(string_value = "released")]
    Released,
}

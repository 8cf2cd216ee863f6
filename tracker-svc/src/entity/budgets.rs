//! Limits of what may be spent, with what is held of each.

use sea_orm::entity::prelude::*;

use super::budget_words::{Period, Unpriced};

/// One budget.
#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "budgets")]
pub struct Model {
    /// UUID in its canonical text form.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    /// Whose calls it bounds; `*` for everybody's.
    pub user_id: String,
    /// Which of those, as kind and key: `user`, `project:p1`, `run:j1`.
    pub scope: String,
    /// When it starts over.
    pub period: Period,
    /// Name of the time zone of its days and months.
    pub time_zone: String,
    /// The most that may be spent in a period, in billionths.
    pub cap: Option<i64>,
    /// Currency of every amount of it.
    pub currency: String,
    /// The most calls in a period.
    pub max_calls: Option<i64>,
    /// What happens to calls without a price.
    pub unpriced: Unpriced,
    /// What such a call is taken to cost, in billionths.
    pub assumed: Option<i64>,
    /// Whether an admin set it.
    pub managed: bool,
    /// Held for open calls, in billionths: the sum over its holds.
    pub held: i64,
    /// When it was set first.
    pub created_at: i64,
    /// When it was changed last.
    pub updated_at: i64,
}

/// None: read by key.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

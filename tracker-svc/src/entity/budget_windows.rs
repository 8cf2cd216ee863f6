//! What was spent of a budget, period by period.

use sea_orm::entity::prelude::*;

/// One period of one budget.
#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "budget_windows")]
pub struct Model {
    /// The budget.
    #[sea_orm(primary_key, auto_increment = false)]
    pub budget_id: String,
    /// When the period begins; 0 for one that never starts over.
    #[sea_orm(primary_key, auto_increment = false)]
    pub starts_at: i64,
    /// Settled in it, in billionths: the sum over its holds.
    pub spent: i64,
    /// Calls opened in it, less those of which nothing was sent.
    pub calls: i64,
}

/// None.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

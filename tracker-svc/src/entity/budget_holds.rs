//! What one generation holds, or has spent, of one budget.

use sea_orm::entity::prelude::*;

use super::budget_words::Hold;

/// One hold.
#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "budget_holds")]
pub struct Model {
    /// The generation.
    #[sea_orm(primary_key, auto_increment = false)]
    pub generation_id: String,
    /// The budget.
    #[sea_orm(primary_key, auto_increment = false)]
    pub budget_id: String,
    /// How it stands.
    pub state: Hold,
    /// What was held at the opening, in billionths.
    pub estimate: i64,
    /// What is booked, in billionths, once it is settled.
    pub amount: Option<i64>,
    /// Period in which the call was opened, and is counted.
    pub opened_in: i64,
    /// Period in which it was settled first, and stays booked.
    pub settled_in: Option<i64>,
    /// When it was made.
    pub created_at: i64,
    /// When it was settled or released last.
    pub settled_at: Option<i64>,
}

/// None.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

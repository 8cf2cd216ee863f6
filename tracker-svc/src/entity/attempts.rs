//! One row per submission to a provider.

use sea_orm::entity::prelude::*;

use super::words::{AttemptKind, PriceSource, ProviderState, Submission};

/// One submission.
#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "generation_attempts")]
pub struct Model {
    /// The generation.
    #[sea_orm(primary_key, auto_increment = false)]
    pub generation_id: String,
    /// Number within it, from 1.
    #[sea_orm(primary_key, auto_increment = false)]
    pub attempt_number: i32,
    /// Why it was made.
    pub kind: AttemptKind,
    /// The provider's id of it.
    pub provider_request_id: Option<String>,
    /// What is needed to poll it again.
    pub resume_token: Option<String>,
    /// How far it got.
    pub submission: Submission,
    /// What the provider says of it.
    pub provider_state: ProviderState,
    /// What the provider charged, in billionths.
    pub cost: Option<i64>,
    /// Currency of the charge.
    pub currency: Option<String>,
    /// What was counted.
    pub billing_unit: Option<String>,
    /// How many, a decimal.
    pub quantity: Option<String>,
    /// Price of one, a decimal.
    pub unit_price: Option<String>,
    /// Where the charge comes from.
    pub price_source: Option<PriceSource>,
    /// When it was made.
    pub created_at: i64,
    /// When it was last written.
    pub updated_at: i64,
}

/// None: read by key.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

//! Who drives: one row per start of a driver, with its lease.

use sea_orm::entity::prelude::*;

/// One instance.
#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "service_instances")]
pub struct Model {
    /// Fresh per process start.
    #[sea_orm(primary_key, auto_increment = false)]
    pub instance_id: String,
    /// The service, for people.
    pub service: String,
    /// When it said hello first.
    pub started_at: i64,
    /// When it was heard last.
    pub heartbeat_at: i64,
    /// When its lease ends.
    pub expires_at: i64,
}

/// None.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

//! One stored asset of one user.

use sea_orm::entity::prelude::*;

/// A row of `assets`.
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "assets")]
pub struct Model {
    /// A UUID of version 7 in text.
    #[sea_orm(primary_key, auto_increment = false, column_type = "Text")]
    pub id: String,
    /// Whose it is.
    #[sea_orm(column_type = "Text")]
    pub user_id: String,
    /// File name for people.
    #[sea_orm(column_type = "Text")]
    pub name: String,
    /// Media type.
    #[sea_orm(column_type = "Text")]
    pub content_type: String,
    /// The part of the media type before the slash.
    #[sea_orm(column_type = "Text")]
    pub kind: String,
    /// How many bytes.
    pub size_bytes: i64,
    /// BLAKE3 of the bytes in hex.
    #[sea_orm(column_type = "Text")]
    pub digest: String,
    /// Name of the blob in the store.
    #[sea_orm(column_type = "Text")]
    pub object: String,
    /// The run that made it.
    #[sea_orm(column_type = "Text", nullable)]
    pub job_id: Option<String>,
    /// The node that made it.
    #[sea_orm(column_type = "Text", nullable)]
    pub node_id: Option<String>,
    /// The workflow of that run.
    #[sea_orm(column_type = "Text", nullable)]
    pub workflow_id: Option<String>,
    /// Slot: the run. All five parts of a slot are there or none.
    #[sea_orm(column_type = "Text", nullable)]
    pub slot_job_id: Option<String>,
    /// Slot: the node.
    #[sea_orm(column_type = "Text", nullable)]
    pub slot_node_id: Option<String>,
    /// Slot: which artifact of the node in the run.
    pub slot_index: Option<i64>,
    /// Slot: the output handle.
    #[sea_orm(column_type = "Text", nullable)]
    pub slot_handle: Option<String>,
    /// Slot: position below the handle.
    pub slot_element: Option<i32>,
    /// Ids of generations, a JSON list of texts.
    #[sea_orm(column_type = "Text")]
    pub generation_ids: String,
    /// What is known of its making, a JSON object.
    #[sea_orm(column_type = "Text")]
    pub metadata: String,
    /// Key of the upload, unique per user.
    #[sea_orm(column_type = "Text", nullable)]
    pub idempotency_key: Option<String>,
    /// Microseconds since the epoch.
    pub created_at: i64,
}

/// It has none: other tables belong to other services.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

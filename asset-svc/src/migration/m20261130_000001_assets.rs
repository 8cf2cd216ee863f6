//! The table of assets.

use sea_orm_migration::prelude::*;

/// Creates `assets`.
#[derive(Debug)]
pub struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &'static str {
        "m20261130_000001_assets"
    }
}

const TABLE: &str = "assets";

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let text = |name: &'static str| ColumnDef::new(name).text().not_null().to_owned();
        let maybe_text = |name: &'static str| ColumnDef::new(name).text().to_owned();
        manager
            .create_table(
                Table::create()
                    .table(TABLE)
                    .col(text("id").primary_key())
                    .col(text("user_id"))
                    .col(text("name"))
                    .col(text("content_type"))
                    .col(text("kind"))
                    .col(ColumnDef::new("size_bytes").big_integer().not_null())
                    .col(text("digest"))
                    .col(text("object"))
                    .col(maybe_text("job_id"))
                    .col(maybe_text("node_id"))
                    .col(maybe_text("workflow_id"))
                    .col(maybe_text("slot_job_id"))
                    .col(maybe_text("slot_node_id"))
                    .col(ColumnDef::new("slot_index").big_integer())
                    .col(maybe_text("slot_handle"))
                    .col(ColumnDef::new("slot_element").integer())
                    .col(text("generation_ids"))
                    .col(text("metadata"))
                    .col(maybe_text("idempotency_key"))
                    .col(ColumnDef::new("created_at").big_integer().not_null())
                    .to_owned(),
            )
            .await?;
        let slot = [
            "user_id",
            "slot_job_id",
            "slot_node_id",
            "slot_index",
            "slot_handle",
            "slot_element",
        ];
        manager
            .create_index(index("assets_slot", &slot).unique().to_owned())
            .await?;
        let key = ["user_id", "idempotency_key"];
        manager
            .create_index(index("assets_idempotency_key", &key).unique().to_owned())
            .await?;
        manager
            .create_index(index("assets_newest", &["user_id", "created_at", "id"]))
            .await?;
        manager
            .create_index(index("assets_of_run", &["user_id", "job_id", "created_at", "id"]))
            .await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table(TABLE).to_owned()).await
    }
}

fn index(name: &'static str, columns: &[&'static str]) -> IndexCreateStatement {
    let mut index = Index::create().name(name).table(TABLE).to_owned();
    for column in columns {
        index.col(*column);
    }
    index
}

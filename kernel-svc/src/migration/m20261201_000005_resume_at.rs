//! When a suspended run wants to go on by itself.

use sea_orm_migration::{prelude::*, schema::*};

/// Adds the column and its index.
#[derive(DeriveMigrationName)]
pub struct Migration;

#[derive(DeriveIden)]
enum Jobs {
    Table,
    Status,
    ResumeAt,
}
const INDEX: &str = "jobs_status_resume_at";

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let add = Table::alter()
            .table(Jobs::Table)
            .add_column(big_integer_null(Jobs::ResumeAt))
            .to_owned();
        manager.alter_table(add).await?;
        manager
            .create_index(
                Index::create()
                    .name(INDEX)
                    .table(Jobs::Table)
                    .col(Jobs::Status)
                    .col(Jobs::ResumeAt)
                    .to_owned(),
            )
            .await
    }
    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_index(Index::drop().name(INDEX).to_owned()).await?;
        let drop = Table::alter()
            .table(Jobs::Table)
            .drop_column(Jobs::ResumeAt)
            .to_owned();
        manager.alter_table(drop).await
    }
}

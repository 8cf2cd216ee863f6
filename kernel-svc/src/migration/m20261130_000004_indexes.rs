//! Indexes for what is asked often: inputs that were not taken yet, and the runs of one process.

use sea_orm_migration::prelude::*;

/// Creates the indexes.
#[derive(DeriveMigrationName)]
pub struct Migration;

#[derive(DeriveIden)]
enum Jobs {
    Table,
    Owner,
    Status,
}
#[derive(DeriveIden)]
enum JobInputs {
    Table,
    JobKey,
    Done,
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .create_index(
                Index::create()
                    .name("job_inputs_done")
                    .table(JobInputs::Table)
                    .col(JobInputs::JobKey)
                    .col(JobInputs::Done)
                    .to_owned(),
            )
            .await?;
        manager
            .create_index(
                Index::create()
                    .name("jobs_owner_status")
                    .table(Jobs::Table)
                    .col(Jobs::Owner)
                    .col(Jobs::Status)
                    .to_owned(),
            )
            .await
    }
    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for name in ["jobs_owner_status", "job_inputs_done"] {
            manager.drop_index(Index::drop().name(name).to_owned()).await?;
        }
        Ok(())
    }
}

//! What a run needs to go on in another process: frames of finished invocations, values pushed from outside, the event that
//! started it, what it waits for, and how often it was taken up.

use sea_orm_migration::{prelude::*, schema::*};

/// Adds the columns and the tables.
#[derive(DeriveMigrationName)]
pub struct Migration;

#[derive(DeriveIden)]
enum Jobs {
    Table,
    TriggerEvent,
    Suspension,
    Resume,
    Adoptions,
    AdoptedArtifacts,
}
#[derive(DeriveIden)]
enum JobFrames {
    Table,
    JobKey,
    NodeId,
    Invocation,
    Frames,
}
#[derive(DeriveIden)]
enum JobInputs {
    Table,
    JobKey,
    N,
    InputId,
    Kind,
    Name,
    Handle,
    Payload,
    Finish,
    Done,
    Error,
    Outcome,
}

fn columns() -> [ColumnDef; 5] {
    [
        blob_null(Jobs::TriggerEvent),
        blob_null(Jobs::Suspension),
        blob_null(Jobs::Resume),
        big_integer(Jobs::Adoptions).default(0).to_owned(),
        big_integer(Jobs::AdoptedArtifacts).default(0).to_owned(),
    ]
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // SQLite adds one column at a time.
        for column in columns() {
            manager
                .alter_table(Table::alter().table(Jobs::Table).add_column(column).to_owned())
                .await?;
        }
        manager
            .create_table(
                Table::create()
                    .table(JobFrames::Table)
                    .col(string(JobFrames::JobKey))
                    .col(string(JobFrames::NodeId))
                    .col(string(JobFrames::Invocation))
                    .col(blob(JobFrames::Frames))
                    .primary_key(
                        Index::create()
                            .col(JobFrames::JobKey)
                            .col(JobFrames::NodeId)
                            .col(JobFrames::Invocation),
                    )
                    .to_owned(),
            )
            .await?;
        manager
            .create_table(
                Table::create()
                    .table(JobInputs::Table)
                    .col(string(JobInputs::JobKey))
                    .col(big_integer(JobInputs::N))
                    .col(string(JobInputs::InputId))
                    .col(string(JobInputs::Kind))
                    .col(string(JobInputs::Name))
                    .col(string_null(JobInputs::Handle))
                    .col(blob_null(JobInputs::Payload))
                    .col(boolean(JobInputs::Finish))
                    .col(boolean(JobInputs::Done))
                    .col(text_null(JobInputs::Error))
                    .col(blob_null(JobInputs::Outcome))
                    .primary_key(Index::create().col(JobInputs::JobKey).col(JobInputs::N))
                    .to_owned(),
            )
            .await?;
        manager
            .create_index(
                Index::create()
                    .name("job_inputs_input_id")
                    .table(JobInputs::Table)
                    .col(JobInputs::JobKey)
                    .col(JobInputs::InputId)
                    .unique()
                    .to_owned(),
            )
            .await
    }
    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .drop_table(Table::drop().table(JobInputs::Table).to_owned())
            .await?;
        manager
            .drop_table(Table::drop().table(JobFrames::Table).to_owned())
            .await?;
        for column in [
            Jobs::TriggerEvent,
            Jobs::Suspension,
            Jobs::Resume,
            Jobs::Adoptions,
            Jobs::AdoptedArtifacts,
        ] {
            manager
                .alter_table(Table::alter().table(Jobs::Table).drop_column(column).to_owned())
                .await?;
        }
        Ok(())
    }
}

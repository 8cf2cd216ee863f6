//! What makes taking up a long run cheap: what was said so far, every some thousand events, and where in the log an artifact is.

use sea_orm_migration::{prelude::*, schema::*};

/// Creates the table and the column.
#[derive(DeriveMigrationName)]
pub struct Migration;

#[derive(DeriveIden)]
enum JobCheckpoints {
    Table,
    JobKey,
    Seq,
    State,
}
#[derive(DeriveIden)]
enum JobArtifacts {
    Table,
    Segment,
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .create_table(
                Table::create()
                    .table(JobCheckpoints::Table)
                    .col(string(JobCheckpoints::JobKey))
                    .col(big_integer(JobCheckpoints::Seq))
                    .col(blob(JobCheckpoints::State))
                    .primary_key(
                        Index::create()
                            .col(JobCheckpoints::JobKey)
                            .col(JobCheckpoints::Seq),
                    )
                    .to_owned(),
            )
            .await?;
        let segment = big_integer_null(JobArtifacts::Segment);
        manager
            .alter_table(
                Table::alter()
                    .table(JobArtifacts::Table)
                    .add_column(segment)
                    .to_owned(),
            )
            .await
    }
    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .alter_table(
                Table::alter()
                    .table(JobArtifacts::Table)
                    .drop_column(JobArtifacts::Segment)
                    .to_owned(),
            )
            .await?;
        manager
            .drop_table(Table::drop().table(JobCheckpoints::Table).to_owned())
            .await
    }
}

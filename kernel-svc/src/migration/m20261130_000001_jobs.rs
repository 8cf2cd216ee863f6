//! Runs, their event logs in segments, their committed artifacts.

use sea_orm_migration::{prelude::*, schema::*};

/// Creates the tables.
#[derive(DeriveMigrationName)]
pub struct Migration;

#[derive(DeriveIden)]
enum Jobs {
    Table,
    JobKey,
    UserId,
    JobId,
    WorkflowId,
    Name,
    Status,
    Error,
    ErrorCode,
    Issues,
    Fingerprint,
    Graph,
    Params,
    Options,
    Outputs,
    CreatedAt,
    StartedAt,
    FinishedAt,
    LastSeq,
    ArtifactCount,
    Owner,
    LeaseUntil,
    CancelRequestedAt,
}
#[derive(DeriveIden)]
enum JobSegments {
    Table,
    JobKey,
    FirstSeq,
    LastSeq,
    EventCount,
    Payload,
}
#[derive(DeriveIden)]
enum JobArtifacts {
    Table,
    JobKey,
    NodeId,
    Idx,
    Invocation,
    Published,
    Event,
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .create_table(
                Table::create()
                    .table(Jobs::Table)
                    .col(string(Jobs::JobKey).primary_key())
                    .col(string(Jobs::UserId))
                    .col(string(Jobs::JobId))
                    .col(string_null(Jobs::WorkflowId))
                    .col(string(Jobs::Name))
                    .col(string(Jobs::Status).check(Expr::col(Jobs::Status).is_in([
                        "queued",
                        "running",
                        "completed",
                        "failed",
                        "cancelled",
                        "suspended",
                    ])))
                    .col(text_null(Jobs::Error))
                    .col(string_null(Jobs::ErrorCode))
                    .col(text_null(Jobs::Issues))
                    .col(string(Jobs::Fingerprint))
                    .col(text(Jobs::Graph))
                    .col(blob(Jobs::Params))
                    .col(blob(Jobs::Options))
                    .col(blob_null(Jobs::Outputs))
                    .col(big_integer(Jobs::CreatedAt))
                    .col(big_integer_null(Jobs::StartedAt))
                    .col(big_integer_null(Jobs::FinishedAt))
                    .col(big_integer(Jobs::LastSeq).default(0))
                    .col(big_integer(Jobs::ArtifactCount).default(0))
                    .col(string_null(Jobs::Owner))
                    .col(big_integer(Jobs::LeaseUntil).default(0))
                    .col(big_integer_null(Jobs::CancelRequestedAt))
                    .to_owned(),
            )
            .await?;
        for (name, unique, columns) in [
            (
                "jobs_user_job",
                true,
                vec![Jobs::UserId.into_iden(), Jobs::JobId.into_iden()],
            ),
            (
                "jobs_user_created",
                false,
                vec![
                    Jobs::UserId.into_iden(),
                    Jobs::CreatedAt.into_iden(),
                    Jobs::JobKey.into_iden(),
                ],
            ),
            (
                "jobs_status_lease",
                false,
                vec![Jobs::Status.into_iden(), Jobs::LeaseUntil.into_iden()],
            ),
        ] {
            let mut index = Index::create();
            index.name(name).table(Jobs::Table);
            for column in columns {
                index.col(column);
            }
            if unique {
                index.unique();
            }
            manager.create_index(index.to_owned()).await?;
        }
        manager
            .create_table(
                Table::create()
                    .table(JobSegments::Table)
                    .col(string(JobSegments::JobKey))
                    .col(big_integer(JobSegments::FirstSeq))
                    .col(big_integer(JobSegments::LastSeq))
                    .col(big_integer(JobSegments::EventCount))
                    .col(blob(JobSegments::Payload))
                    .primary_key(
                        Index::create()
                            .col(JobSegments::JobKey)
                            .col(JobSegments::FirstSeq),
                    )
                    .to_owned(),
            )
            .await?;
        manager
            .create_table(
                Table::create()
                    .table(JobArtifacts::Table)
                    .col(string(JobArtifacts::JobKey))
                    .col(string(JobArtifacts::NodeId))
                    .col(big_integer(JobArtifacts::Idx))
                    .col(string(JobArtifacts::Invocation))
                    .col(boolean(JobArtifacts::Published))
                    .col(blob_null(JobArtifacts::Event))
                    .primary_key(
                        Index::create()
                            .col(JobArtifacts::JobKey)
                            .col(JobArtifacts::NodeId)
                            .col(JobArtifacts::Idx),
                    )
                    .to_owned(),
            )
            .await?;
        manager
            .create_index(
                Index::create()
                    .name("job_artifacts_invocation")
                    .table(JobArtifacts::Table)
                    .col(JobArtifacts::JobKey)
                    .col(JobArtifacts::NodeId)
                    .col(JobArtifacts::Invocation)
                    .unique()
                    .to_owned(),
            )
            .await
    }
    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .drop_table(Table::drop().table(JobArtifacts::Table).to_owned())
            .await?;
        manager
            .drop_table(Table::drop().table(JobSegments::Table).to_owned())
            .await?;
        manager
            .drop_table(Table::drop().table(Jobs::Table).to_owned())
            .await
    }
}

//! Saved workflows and their versions; which of them a run runs, and which run started it.

use sea_orm_migration::{prelude::*, schema::*};

/// Creates the tables and the columns.
#[derive(DeriveMigrationName)]
pub struct Migration;

#[derive(DeriveIden)]
enum Workflows {
    Table,
    WorkflowKey,
    UserId,
    WorkflowId,
    Name,
    Description,
    Tags,
    Search,
    Settings,
    Params,
    RunMode,
    Extra,
    Version,
    Revision,
    NodeCount,
    CreatedAt,
    UpdatedAt,
    DeletedAt,
    CreateKey,
    CreateHash,
}
#[derive(DeriveIden)]
enum WorkflowVersions {
    Table,
    WorkflowKey,
    Version,
    Graph,
    GraphBytes,
    NodeCount,
    Note,
    RestoredFrom,
    CreatedAt,
}
#[derive(DeriveIden)]
enum Jobs {
    Table,
    WorkflowVersion,
    ParentJobId,
    ParentNodeId,
    Depth,
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .create_table(
                Table::create()
                    .table(Workflows::Table)
                    .col(string(Workflows::WorkflowKey).primary_key())
                    .col(string(Workflows::UserId))
                    .col(string(Workflows::WorkflowId))
                    .col(text(Workflows::Name))
                    .col(text(Workflows::Description))
                    .col(text(Workflows::Tags))
                    .col(text(Workflows::Search))
                    .col(text(Workflows::Settings))
                    .col(blob(Workflows::Params))
                    .col(string_null(Workflows::RunMode))
                    .col(text(Workflows::Extra))
                    .col(big_integer(Workflows::Version))
                    .col(big_integer(Workflows::Revision))
                    .col(big_integer(Workflows::NodeCount))
                    .col(big_integer(Workflows::CreatedAt))
                    .col(big_integer(Workflows::UpdatedAt))
                    .col(big_integer_null(Workflows::DeletedAt))
                    .col(string_null(Workflows::CreateKey))
                    .col(string(Workflows::CreateHash))
                    .to_owned(),
            )
            .await?;
        for (name, unique, columns) in [
            (
                "workflows_user_id",
                true,
                vec![Workflows::UserId.into_iden(), Workflows::WorkflowId.into_iden()],
            ),
            (
                "workflows_user_create_key",
                true,
                vec![Workflows::UserId.into_iden(), Workflows::CreateKey.into_iden()],
            ),
            (
                "workflows_user_created",
                false,
                vec![
                    Workflows::UserId.into_iden(),
                    Workflows::CreatedAt.into_iden(),
                    Workflows::WorkflowKey.into_iden(),
                ],
            ),
        ] {
            let mut index = Index::create();
            index.name(name).table(Workflows::Table);
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
                    .table(WorkflowVersions::Table)
                    .col(string(WorkflowVersions::WorkflowKey))
                    .col(big_integer(WorkflowVersions::Version))
                    .col(text(WorkflowVersions::Graph))
                    .col(big_integer(WorkflowVersions::GraphBytes))
                    .col(big_integer(WorkflowVersions::NodeCount))
                    .col(text(WorkflowVersions::Note))
                    .col(big_integer_null(WorkflowVersions::RestoredFrom))
                    .col(big_integer(WorkflowVersions::CreatedAt))
                    .primary_key(
                        Index::create()
                            .col(WorkflowVersions::WorkflowKey)
                            .col(WorkflowVersions::Version),
                    )
                    .to_owned(),
            )
            .await?;
        // One statement each: SQLite adds one column at a time.
        for column in [
            big_integer_null(Jobs::WorkflowVersion),
            string_null(Jobs::ParentJobId),
            string_null(Jobs::ParentNodeId),
            big_integer(Jobs::Depth).default(0).to_owned(),
        ] {
            let add = Table::alter().table(Jobs::Table).add_column(column).to_owned();
            manager.alter_table(add).await?;
        }
        Ok(())
    }
    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for column in [
            Jobs::WorkflowVersion.into_iden(),
            Jobs::ParentJobId.into_iden(),
            Jobs::ParentNodeId.into_iden(),
            Jobs::Depth.into_iden(),
        ] {
            let drop = Table::alter().table(Jobs::Table).drop_column(column).to_owned();
            manager.alter_table(drop).await?;
        }
        manager
            .drop_table(Table::drop().table(WorkflowVersions::Table).to_owned())
            .await?;
        manager
            .drop_table(Table::drop().table(Workflows::Table).to_owned())
            .await
    }
}

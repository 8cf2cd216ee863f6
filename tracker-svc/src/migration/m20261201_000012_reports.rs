//! Indexes of lists and sums: each filter that picks few of a user's rows has one that gives them newest first.

use sea_orm_migration::prelude::*;

const INDEXES: [(&str, &str); 5] = [
    (
        "generations_provider",
        "generations (user_id, provider, created_at DESC, id DESC)",
    ),
    (
        "generations_model",
        "generations (user_id, model, created_at DESC, id DESC)",
    ),
    (
        "generations_project",
        "generations (user_id, project_id, created_at DESC, id DESC) WHERE project_id IS NOT NULL",
    ),
    (
        "generations_workflow",
        "generations (user_id, workflow_id, created_at DESC, id DESC) WHERE workflow_id IS NOT NULL",
    ),
    (
        "generations_request",
        "generations (user_id, request_id) WHERE request_id IS NOT NULL",
    ),
];

/// The step.
#[derive(Debug)]
pub struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &'static str {
        "m20261201_000011_reports"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (name, columns) in INDEXES {
            let statement = format!("CREATE INDEX {name} ON {columns}");
            manager.get_connection().execute_unprepared(&statement).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (name, _) in INDEXES {
            let statement = format!("DROP INDEX {name}");
            manager.get_connection().execute_unprepared(&statement).await?;
        }
        Ok(())
    }
}

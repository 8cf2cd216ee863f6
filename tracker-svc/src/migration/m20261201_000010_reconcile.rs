//! The claims on bills, and what a row needs to be finished by another driver.

use sea_orm_migration::prelude::*;

const UP: [&str; 10] = [
    "ALTER TABLE generations ADD COLUMN reconcile_error TEXT",
    "ALTER TABLE generations ADD COLUMN reconcile_claim TEXT",
    "ALTER TABLE generations ADD COLUMN reconcile_lease_until BIGINT",
    "ALTER TABLE generations ADD COLUMN reconcile_denied_for TEXT",
    "ALTER TABLE generations ADD COLUMN plan TEXT",
    "ALTER TABLE generations ADD COLUMN resume_pending BOOLEAN NOT NULL DEFAULT FALSE",
    "ALTER TABLE generations ADD COLUMN adoptions INTEGER NOT NULL DEFAULT 0",
    "CREATE INDEX generations_denied ON generations (provider) WHERE reconcile_state = 'denied'",
    "CREATE INDEX generations_resume ON generations (owner_instance) WHERE resume_pending",
    "CREATE INDEX generations_claimed ON generations (reconcile_claim) WHERE reconcile_claim IS NOT NULL",
];

const DOWN: [&str; 10] = [
    "DROP INDEX generations_denied",
    "DROP INDEX generations_resume",
    "DROP INDEX generations_claimed",
    "ALTER TABLE generations DROP COLUMN reconcile_error",
    "ALTER TABLE generations DROP COLUMN reconcile_claim",
    "ALTER TABLE generations DROP COLUMN reconcile_lease_until",
    "ALTER TABLE generations DROP COLUMN reconcile_denied_for",
    "ALTER TABLE generations DROP COLUMN plan",
    "ALTER TABLE generations DROP COLUMN resume_pending",
    "ALTER TABLE generations DROP COLUMN adoptions",
];

/// Adds columns only: a replica of the release before goes on beside it.
#[derive(Debug)]
pub struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &'static str {
        "m20261201_000010_reconcile"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        all(manager, &UP).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        all(manager, &DOWN).await
    }
}

async fn all(manager: &SchemaManager<'_>, statements: &[&str]) -> Result<(), DbErr> {
    for statement in statements {
        manager.get_connection().execute_unprepared(statement).await?;
    }
    Ok(())
}

//! Budgets, their periods, and what generations hold of them; and generations that are made inside of others.

use sea_orm_migration::prelude::*;

const STATEMENTS: [&str; 8] = [
    "CREATE TABLE budgets (
        id TEXT PRIMARY KEY,
        user_id TEXT NOT NULL,
        scope TEXT NOT NULL,
        period TEXT NOT NULL CHECK (period IN ('day', 'month', 'total')),
        time_zone TEXT NOT NULL,
        cap BIGINT CHECK (cap >= 0),
        currency TEXT NOT NULL,
        max_calls BIGINT CHECK (max_calls >= 0),
        unpriced TEXT NOT NULL CHECK (unpriced IN ('allow', 'deny', 'assume')),
        assumed BIGINT CHECK (assumed >= 0),
        managed BOOLEAN NOT NULL,
        held BIGINT NOT NULL,
        created_at BIGINT NOT NULL,
        updated_at BIGINT NOT NULL,
        CHECK (cap IS NOT NULL OR max_calls IS NOT NULL),
        CHECK ((unpriced = 'assume') = (assumed IS NOT NULL))
    )",
    "CREATE UNIQUE INDEX budgets_scope ON budgets (user_id, scope, period, currency, managed)",
    "CREATE TABLE budget_windows (
        budget_id TEXT NOT NULL REFERENCES budgets (id) ON DELETE CASCADE,
        starts_at BIGINT NOT NULL,
        spent BIGINT NOT NULL,
        calls BIGINT NOT NULL,
        PRIMARY KEY (budget_id, starts_at)
    )",
    "CREATE TABLE budget_holds (
        generation_id TEXT NOT NULL REFERENCES generations (id) ON DELETE CASCADE,
        budget_id TEXT NOT NULL REFERENCES budgets (id) ON DELETE CASCADE,
        state TEXT NOT NULL CHECK (state IN ('held', 'settled', 'released')),
        estimate BIGINT NOT NULL,
        amount BIGINT,
        opened_in BIGINT NOT NULL,
        settled_in BIGINT,
        created_at BIGINT NOT NULL,
        settled_at BIGINT,
        PRIMARY KEY (generation_id, budget_id),
        CHECK ((state = 'settled') = (amount IS NOT NULL)),
        CHECK (state <> 'settled' OR settled_in IS NOT NULL)
    )",
    "CREATE INDEX budget_holds_budget ON budget_holds (budget_id)",
    "CREATE INDEX budget_holds_held ON budget_holds (created_at) WHERE state = 'held'",
    // Background calls that go on, for their bound.
    "CREATE INDEX generations_background ON generations (user_id, job_id, thread_id)
        WHERE status = 'running' AND background",
    "ALTER TABLE generations ADD COLUMN parent_generation_id TEXT",
];

/// The step.
#[derive(Debug)]
pub struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &'static str {
        "m20261201_000010_budgets"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for statement in STATEMENTS {
            manager.get_connection().execute_unprepared(statement).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for statement in [
            "ALTER TABLE generations DROP COLUMN parent_generation_id",
            "DROP INDEX generations_background",
            "DROP TABLE budget_holds",
            "DROP TABLE budget_windows",
            "DROP TABLE budgets",
        ] {
            manager.get_connection().execute_unprepared(statement).await?;
        }
        Ok(())
    }
}

//! The ledger, its attempts, and the instances that drive it.

use sea_orm_migration::prelude::*;

const TABLES: [&str; 3] = [
    "CREATE TABLE generations (
        id TEXT PRIMARY KEY,
        user_id TEXT NOT NULL,
        status TEXT NOT NULL
            CHECK (status IN ('running', 'completed', 'failed', 'cancelled', 'interrupted')),
        submission TEXT NOT NULL
            CHECK (submission IN ('accepted', 'submitting', 'submission_unknown', 'submitted')),
        provider_state TEXT NOT NULL
            CHECK (provider_state IN ('unknown', 'queued', 'running', 'succeeded', 'failed', 'cancelled')),
        output TEXT NOT NULL
            CHECK (output IN ('pending', 'saving', 'retrying', 'ready', 'unavailable', 'none')),
        provider TEXT NOT NULL,
        model TEXT NOT NULL,
        capability TEXT NOT NULL,
        surface INTEGER NOT NULL,
        thread_id TEXT,
        tool_call_id TEXT,
        request_id TEXT,
        job_id TEXT,
        node_id TEXT,
        node_type TEXT,
        invocation_id TEXT,
        workflow_id TEXT,
        project_id TEXT,
        idempotency_key TEXT,
        input_fingerprint TEXT NOT NULL,
        background BOOLEAN NOT NULL,
        parameters TEXT NOT NULL,
        cost BIGINT,
        currency TEXT,
        billing_unit TEXT,
        quantity TEXT,
        unit_price TEXT,
        estimated_cost BIGINT,
        estimated_currency TEXT,
        price_source TEXT
            CHECK (price_source IN ('model-catalog', 'node', 'provider', 'provider-billing')),
        input_tokens BIGINT,
        output_tokens BIGINT,
        provider_request_id TEXT,
        asset_ids TEXT,
        error TEXT,
        error_code TEXT,
        reconcile_state TEXT NOT NULL
            CHECK (reconcile_state IN ('none', 'queued', 'done', 'unavailable', 'denied', 'exhausted')),
        reconcile_attempts INTEGER NOT NULL,
        reconcile_next_at BIGINT,
        reconciled_at BIGINT,
        owner_instance TEXT NOT NULL,
        owner_epoch BIGINT NOT NULL,
        cancel_requested_at BIGINT,
        cancel_pending BOOLEAN NOT NULL,
        interrupted_reason TEXT,
        metadata TEXT NOT NULL,
        version BIGINT NOT NULL,
        created_at BIGINT NOT NULL,
        started_at BIGINT NOT NULL,
        completed_at BIGINT,
        updated_at BIGINT NOT NULL,
        duration BIGINT,
        CHECK ((cost IS NULL) = (currency IS NULL)),
        CHECK ((status = 'running') = (completed_at IS NULL))
    )",
    "CREATE TABLE generation_attempts (
        generation_id TEXT NOT NULL REFERENCES generations (id) ON DELETE CASCADE,
        attempt_number INTEGER NOT NULL,
        kind TEXT NOT NULL CHECK (kind IN ('main', 'retry', 'preview', 'refine', 'resubmit')),
        provider_request_id TEXT,
        resume_token TEXT,
        submission TEXT NOT NULL,
        provider_state TEXT NOT NULL,
        cost BIGINT,
        currency TEXT,
        billing_unit TEXT,
        quantity TEXT,
        unit_price TEXT,
        price_source TEXT,
        created_at BIGINT NOT NULL,
        updated_at BIGINT NOT NULL,
        PRIMARY KEY (generation_id, attempt_number)
    )",
    "CREATE TABLE service_instances (
        instance_id TEXT PRIMARY KEY,
        service TEXT NOT NULL,
        started_at BIGINT NOT NULL,
        heartbeat_at BIGINT NOT NULL,
        expires_at BIGINT NOT NULL
    )",
];

const INDEXES: [&str; 9] = [
    "CREATE UNIQUE INDEX generations_key ON generations (user_id, idempotency_key)",
    "CREATE INDEX generations_newest ON generations (user_id, created_at DESC, id DESC)",
    "CREATE INDEX generations_status ON generations (user_id, status, created_at DESC, id DESC)",
    "CREATE INDEX generations_thread ON generations (user_id, thread_id, created_at DESC, id DESC) WHERE thread_id IS NOT NULL",
    "CREATE INDEX generations_job ON generations (user_id, job_id, created_at DESC, id DESC) WHERE job_id IS NOT NULL",
    "CREATE INDEX generations_invocation ON generations (invocation_id) WHERE invocation_id IS NOT NULL",
    "CREATE INDEX generations_driven ON generations (owner_instance) WHERE status = 'running'",
    "CREATE INDEX generations_untold ON generations (owner_instance) WHERE cancel_pending",
    "CREATE INDEX generations_reconcile ON generations (reconcile_next_at) WHERE reconcile_state = 'queued'",
];

/// The first step.
#[derive(Debug)]
pub struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &'static str {
        "m20261130_000001_ledger"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for statement in TABLES.iter().chain(&INDEXES) {
            manager.get_connection().execute_unprepared(statement).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in ["generation_attempts", "generations", "service_instances"] {
            manager
                .get_connection()
                .execute_unprepared(&format!("DROP TABLE {table}"))
                .await?;
        }
        Ok(())
    }
}

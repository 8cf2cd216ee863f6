//! Tables of kernel-svc: runs, their event logs, their committed artifacts, and what they need to outlive a process; saved
//! workflows.

mod m20261130_000001_jobs;
mod m20261130_000002_journal;
mod m20261130_000003_workflows;
mod m20261130_000004_indexes;
mod m20261201_000005_resume_at;
mod m20261201_000006_checkpoints;

use sea_orm_migration::prelude::*;

/// The migrations, oldest first.
pub struct Migrator;

#[async_trait::async_trait]
impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![
            Box::new(m20261130_000001_jobs::Migration),
            Box::new(m20261130_000002_journal::Migration),
            Box::new(m20261130_000003_workflows::Migration),
            Box::new(m20261130_000004_indexes::Migration),
            Box::new(m20261201_000005_resume_at::Migration),
            Box::new(m20261201_000006_checkpoints::Migration),
        ]
    }
    fn migration_table_name() -> sea_orm::DynIden {
        "kernel_migrations".into_iden()
    }
}

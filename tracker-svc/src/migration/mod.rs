//! The schema, step by step, the same on both engines.

mod m20261130_000001_ledger;
mod m20261201_000010_reconcile;
mod m20261201_000011_budgets;
mod m20261201_000012_reports;

use sea_orm_migration::prelude::*;

/// The steps, in order.
#[derive(Debug)]
pub struct Migrator;

#[async_trait::async_trait]
impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![
            Box::new(m20261130_000001_ledger::Migration),
            Box::new(m20261201_000010_reconcile::Migration),
            Box::new(m20261201_000011_budgets::Migration),
            Box::new(m20261201_000012_reports::Migration),
        ]
    }

    fn migration_table_name() -> DynIden {
        Alias::new("tracker_migrations").into_iden()
    }
}

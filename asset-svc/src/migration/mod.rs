//! The schema, one change a file. Files are never edited once released.

mod m20261130_000001_assets;

use sea_orm_migration::prelude::*;

/// All changes in order.
#[derive(Debug)]
pub struct Migrator;

#[async_trait::async_trait]
impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![Box::new(m20261130_000001_assets::Migration)]
    }

    fn migration_table_name() -> DynIden {
        "asset_migrations".into_iden()
    }
}

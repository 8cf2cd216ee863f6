//! The leases of drivers: who is alive, by the ledger's own clock.
//!
//! A row is driven as long as its instance has a lease. An instance whose lease ended is forgotten by the next sweep; a
//! heartbeat of a forgotten one is refused, so that it knows that its rows are no longer its own.

use std::time::Duration;

use atelier_common::db::Db;
use sea_orm::sea_query::{Expr, ExprTrait, OnConflict};
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, Set};

use crate::entity::instances::{ActiveModel, Column, Entity};
use crate::error::Error;
use crate::ledger::insert_with;
use crate::time::LedgerTime;

/// The leases. Clones are the same ones.
#[derive(Clone)]
pub struct Instances {
    db: Db,
    time: LedgerTime,
    lease: Duration,
}

impl Instances {
    /// Leases of this length.
    #[must_use]
    pub fn new(db: Db, time: LedgerTime, lease: Duration) -> Self {
        Self { db, time, lease }
    }

    /// How long a lease runs.
    #[must_use]
    pub const fn lease(&self) -> Duration {
        self.lease
    }

    /// Starts or renews the lease of an instance. With `sole_process` the leases of all others end at once: the process
    /// holds the data alone, so they are of processes that are gone.
    ///
    /// # Errors
    /// The database's.
    pub async fn hello(&self, instance_id: &str, service: &str, sole_process: bool) -> Result<(), Error> {
        let tx = self.db.begin().await?;
        let values = ActiveModel {
            instance_id: Set(instance_id.to_owned()),
            service: Set(service.to_owned()),
            ..Default::default()
        };
        let now = self.time.now();
        let mut insert = insert_with(
            &values,
            [
                (Column::StartedAt, now.clone()),
                (Column::HeartbeatAt, now.clone()),
                (Column::ExpiresAt, self.time.later(self.lease)),
            ],
        )?;
        insert.on_conflict(
            OnConflict::column(Column::InstanceId)
                .update_columns([Column::Service, Column::HeartbeatAt, Column::ExpiresAt])
                .to_owned(),
        );
        tx.execute(&insert).await?;
        if sole_process {
            Entity::update_many()
                .col_expr(Column::ExpiresAt, now.clone())
                .filter(Column::InstanceId.ne(instance_id))
                .filter(Expr::col(Column::ExpiresAt).gt(now))
                .exec(&*tx)
                .await?;
        }
        Ok(tx.commit().await?)
    }

    /// Renews a lease.
    ///
    /// # Errors
    /// `LeaseEnded` when the instance was forgotten.
    pub async fn heartbeat(&self, instance_id: &str) -> Result<(), Error> {
        let tx = self.db.begin().await?;
        let renewed = Entity::update_many()
            .col_expr(Column::HeartbeatAt, self.time.now())
            .col_expr(Column::ExpiresAt, self.time.later(self.lease))
            .filter(Column::InstanceId.eq(instance_id))
            .exec(&*tx)
            .await?;
        tx.commit().await?;
        if renewed.rows_affected == 1 {
            Ok(())
        } else {
            Err(Error::LeaseEnded)
        }
    }

    /// Ends a lease.
    ///
    /// # Errors
    /// The database's.
    pub async fn goodbye(&self, instance_id: &str) -> Result<(), Error> {
        let tx = self.db.begin().await?;
        Entity::delete_by_id(instance_id.to_owned()).exec(&*tx).await?;
        Ok(tx.commit().await?)
    }
}

//! The leases of the runs that this process drives: they tell the living from the dead, and are given back at the end.
//!
//! The owner in a run's row is the fence: every append names it, so a process that lost a run can record nothing of it.

use std::time::Duration;

use atelier_common::tasks::Tasks;
use sea_orm::{ColumnTrait, Condition, EntityTrait, QueryFilter, QuerySelect, sea_query::Expr};

use super::{Jobs, drive::renewal, driver::goes_on};
use crate::{
    entity::jobs::{Column, Entity},
    error::Error,
};

/// Keys in one statement; both engines bound the number of parameters.
const KEYS: usize = 500;
/// How long runs may take to stop here when the process goes down.
const PARTING: Duration = Duration::from_secs(5);

impl Jobs {
    /// Until when a lease that is taken now holds.
    pub(super) fn lease_until(&self) -> i64 {
        let lease = i64::try_from(self.settings.lease.as_micros()).unwrap_or(i64::MAX);
        self.store.now().saturating_add(lease)
    }
    /// Renews leases and takes cancels from other replicas, until `tasks` is told to stop; then gives all runs up, for
    /// another process to go on with. Waits for nothing else: a lease that ends gives a run that is well to another replica.
    pub async fn keep_leases(&self, tasks: &Tasks) {
        let (stop, mut tick) = (tasks.token(), self.ticks());
        while stop.run_until_cancelled(tick.tick()).await.is_some() {
            if let Err(error) = self.renew().await {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "leases of runs could not be renewed"
                );
            }
        }
        if let Err(error) = self.part().await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "leases of runs could not be given back"
            );
        }
    }
    pub(super) fn ticks(&self) -> tokio::time::Interval {
        let mut tick = tokio::time::interval(renewal(self.settings.lease));
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        tick
    }
    async fn renew(&self) -> Result<(), Error> {
        let driven = self.driven();
        if driven.is_empty() {
            return Ok(());
        }
        let tx = self.store.db().begin().await?;
        let mut renewed = 0;
        // Only what is driven: the lease of a run that was lost here must end.
        for keys in driven.chunks(KEYS) {
            renewed += Entity::update_many()
                .col_expr(Column::LeaseUntil, Expr::value(self.lease_until()))
                .filter(Column::Owner.eq(self.instance.as_ref()))
                .filter(Column::JobKey.is_in(keys))
                .exec(&*tx)
                .await?
                .rows_affected;
        }
        tx.commit().await?;
        if renewed < u64::try_from(driven.len()).unwrap_or(u64::MAX) {
            self.abandon_lost(&driven).await?;
        }
        let asked = Entity::find()
            .filter(Column::Owner.eq(self.instance.as_ref()))
            .filter(Column::Status.is_in(["queued", "running"]))
            .filter(Column::CancelRequestedAt.is_not_null())
            .all(self.store.db().read())
            .await?;
        for row in asked.iter().filter(|row| goes_on(row)) {
            self.trip(&row.job_key);
        }
        Ok(())
    }
    /// Gives up the runs that another process has taken up meanwhile: what their nodes do outside is done there now.
    async fn abandon_lost(&self, driven: &[String]) -> Result<(), Error> {
        for keys in driven.chunks(KEYS) {
            let lost: Vec<String> = Entity::find()
                .select_only()
                .column(Column::JobKey)
                .filter(Column::JobKey.is_in(keys))
                .filter(
                    Condition::any()
                        .add(Column::Owner.is_null())
                        .add(Column::Owner.ne(self.instance.as_ref())),
                )
                .into_tuple()
                .all(self.store.db().read())
                .await?;
            for key in lost {
                if let Some(running) = self.running.get(&key) {
                    tracing::warn!(job_key = key, "a run is driven by another process now");
                    running.abandon.cancel();
                }
            }
        }
        Ok(())
    }
    /// Gives every run up: what its actors said is recorded, and its lease ends at once.
    async fn part(&self) -> Result<(), Error> {
        for running in self.running.iter() {
            running.abandon.cancel();
        }
        let empty = async {
            while !self.running.is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let _ = tokio::time::timeout(PARTING, empty).await;
        let tx = self.store.db().begin().await?;
        Entity::update_many()
            .col_expr(Column::LeaseUntil, Expr::value(0))
            .col_expr(Column::Owner, Expr::value(Option::<String>::None))
            .filter(Column::Owner.eq(self.instance.as_ref()))
            .filter(Column::Status.is_in(["queued", "running"]))
            .exec(&*tx)
            .await?;
        tx.commit().await?;
        Ok(())
    }
}

//! Runs whose process died: their committed artifacts are shown, then they end as failed, with the reason.
//!
//! Also the lease that tells the living from the dead, and cancels that another replica took.

use std::sync::Arc;

use atelier_common::{identity::Caller, tasks::Tasks};
use atelier_proto::kernel::v1::{JobStatus, RunOptions};
use prost::Message;
use sea_orm::{ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder, QuerySelect, sea_query::Expr};

use super::driver::{Jobs, RENEW, ended, goes_on};
use crate::{
    entity::jobs::{Column, Entity, Model},
    error::Error,
    log::{Live, unpublished},
};

/// Runs that one pass looks at.
const BATCH: u64 = 100;
/// Keys in one statement; both engines bound the number of parameters.
const KEYS: usize = 500;
/// What a run says that was lost with its process.
const LOST: &str = "the process that ran this job ended before the job did";

impl Jobs {
    /// Ends the runs that no process drives any more. `all_others_dead`: leases of other instances count for nothing.
    ///
    /// # Errors
    /// Store errors.
    pub async fn recover(&self, all_others_dead: bool) -> Result<usize, Error> {
        let mut recovered = 0;
        loop {
            let rows = self.orphans(all_others_dead).await?;
            let (found, before) = (u64::try_from(rows.len()).unwrap_or(u64::MAX), recovered);
            let driven = self.driven();
            for row in rows.into_iter().filter(|row| !driven.contains(&row.job_key)) {
                if !self.claim(&row).await? {
                    continue;
                }
                let job_id = row.job_id.clone();
                // One that cannot be ended must not keep the others from it; it is looked at again when its lease ends.
                match self.end_lost(row).await {
                    Ok(()) => {
                        tracing::info!(job_id, "a run was lost with its process");
                        recovered += 1;
                    }
                    Err(error) => {
                        tracing::error!(
                            job_id,
                            error = &error as &dyn std::error::Error,
                            "a lost run cannot be ended"
                        );
                    }
                }
            }
            if found < BATCH || recovered == before {
                return Ok(recovered);
            }
        }
    }
    /// Runs of dead instances, and runs of this one that it lost without dying itself.
    async fn orphans(&self, all_others_dead: bool) -> Result<Vec<Model>, Error> {
        let mut dead = Condition::any().add(Column::LeaseUntil.lt(self.store.now()));
        if all_others_dead {
            dead = dead
                .add(Column::Owner.is_null())
                .add(Column::Owner.ne(self.instance.as_ref()));
        }
        let rows = Entity::find()
            .filter(Column::Status.is_in(["queued", "running"]))
            .filter(dead)
            .order_by_asc(Column::CreatedAt)
            .limit(BATCH)
            .all(self.store.db().read())
            .await?;
        Ok(rows)
    }
    /// Takes a run over; false when another process was faster.
    async fn claim(&self, row: &Model) -> Result<bool, Error> {
        let tx = self.store.db().begin().await?;
        let mut update = Entity::update_many()
            .col_expr(Column::Owner, Expr::value(self.instance.as_ref()))
            .col_expr(Column::LeaseUntil, Expr::value(self.lease_until()))
            .filter(Column::JobKey.eq(&row.job_key))
            .filter(Column::LeaseUntil.eq(row.lease_until));
        update = match &row.owner {
            Some(owner) => update.filter(Column::Owner.eq(owner)),
            None => update.filter(Column::Owner.is_null()),
        };
        let claimed = update.exec(&*tx).await?.rows_affected == 1;
        tx.commit().await?;
        Ok(claimed)
    }
    async fn end_lost(&self, row: Model) -> Result<(), Error> {
        let caller = Caller {
            user_id: row.user_id.clone(),
            scopes: Vec::new(),
        };
        let options = RunOptions::decode(row.options.as_slice()).map_err(|_| Error::DamagedLog)?;
        let recorded = unpublished(self.store.db(), &row.job_key).await?;
        let mut relay = self.relay(&caller, &row, options, Arc::new(Live::new(row.last_seq)));
        relay.publish_recorded(recorded).await?;
        let cancelled = row.cancel_requested_at.is_some();
        let event = if cancelled {
            ended(JobStatus::Cancelled, None, None)
        } else {
            ended(JobStatus::Failed, Some(LOST.to_owned()), Some("INTERRUPTED"))
        };
        relay.commit(&mut vec![event]).await
    }
    /// Renews leases and takes cancels from other replicas, until `tasks` is told to stop. Waits for nothing else: a lease
    /// that ends gives a run that is well to another replica.
    pub async fn keep_leases(&self, tasks: &Tasks) {
        let (stop, mut tick) = (tasks.token(), ticks());
        while stop.run_until_cancelled(tick.tick()).await.is_some() {
            if let Err(error) = self.renew().await {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "leases of runs could not be renewed"
                );
            }
        }
    }
    /// Ends lost runs, until `tasks` is told to stop.
    pub async fn keep_recovering(&self, tasks: &Tasks) {
        let (stop, mut tick) = (tasks.token(), ticks());
        while stop.run_until_cancelled(tick.tick()).await.is_some() {
            if let Err(error) = self.recover(false).await {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "lost runs could not be ended"
                );
            }
        }
    }
    async fn renew(&self) -> Result<(), Error> {
        let driven = self.driven();
        if driven.is_empty() {
            return Ok(());
        }
        let tx = self.store.db().begin().await?;
        // Only what is driven: the lease of a run that was lost here must end.
        for keys in driven.chunks(KEYS) {
            Entity::update_many()
                .col_expr(Column::LeaseUntil, Expr::value(self.lease_until()))
                .filter(Column::Owner.eq(self.instance.as_ref()))
                .filter(Column::JobKey.is_in(keys))
                .exec(&*tx)
                .await?;
        }
        tx.commit().await?;
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
}
fn ticks() -> tokio::time::Interval {
    let mut tick = tokio::time::interval(RENEW);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    tick
}

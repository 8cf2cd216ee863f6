//! Taking runs up: those whose process died, and those that were suspended and go on. Who wakes the latter: `suspended.rs`.
//!
//! The keys of what a run committed are read, and what it said; the graph runs again beside it: finished invocations answer
//! from the log, which is asked for one result after the other; what was asked of providers is found again by its key,
//! everything else runs. Nothing is said twice. What is held of a run is 16 bytes for each thing it did, not the thing.

use std::sync::Arc;

use atelier_common::{identity::Caller, tasks::Tasks};
use atelier_proto::{
    common::v1::MapValue,
    kernel::v1::{self, JobStatus, RunOptions},
    value::Map,
};
use futures_util::{StreamExt, stream};
use prost::Message;
use sea_orm::{ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder, QuerySelect, sea_query::Expr};
use tokio_util::sync::CancellationToken;

use super::{
    Jobs, Ticket,
    drive::{Begun, Work},
    driver::{ended, read_graph, trigger_event},
};
use crate::{
    entity::jobs::{Column, Entity, Model},
    error::Error,
    log::{Live, Past, Recall, unpublished},
    relay::{Relay, Told},
    run::Journal,
};

/// Runs that one pass looks at.
const BATCH: u64 = 100;
/// Runs that are taken up at the same time: a long past keeps few others waiting, and many are not read at once.
const AT_ONCE: usize = 4;
/// How often a run is taken up without a new artifact before it is given up: it may be what kills its processes.
const MAX_ADOPTIONS: i64 = 25;
/// What a run says that is lost with its processes.
const LOST: &str = "the processes that ran this job ended before the job did, again and again";

impl Jobs {
    /// Takes up the runs that no process drives any more. `all_others_dead`: leases of other instances count for nothing.
    /// Gives how many.
    ///
    /// # Errors
    /// Store errors.
    pub async fn recover(&self, all_others_dead: bool) -> Result<usize, Error> {
        let mut recovered = 0;
        loop {
            let rows = self.orphans(all_others_dead).await?;
            let (found, before) = (u64::try_from(rows.len()).unwrap_or(u64::MAX), recovered);
            let driven = self.driven();
            let lost = rows.into_iter().filter(|row| !driven.contains(&row.job_key));
            // What was just given back is for another process. Those that were begun are finished: they are claimed.
            let stop = self.tasks.token().child_token();
            let mut tried = stream::iter(lost)
                .take_until(Box::pin(stop.cancelled()))
                .map(|row| Box::pin(self.try_take_up(row)))
                .buffer_unordered(AT_ONCE);
            let mut failed = None;
            while let Some(taken) = tried.next().await {
                match taken {
                    Ok(taken) => recovered += usize::from(taken),
                    Err(error) => {
                        stop.cancel();
                        failed = Some(error);
                    }
                }
            }
            if let Some(error) = failed {
                return Err(error);
            }
            if found < BATCH || recovered == before {
                return Ok(recovered);
            }
        }
    }
    /// Takes a run up if no other process was faster: whether it did.
    async fn try_take_up(&self, row: Model) -> Result<bool, Error> {
        if self.tasks.token().is_cancelled() || !self.claim(&row).await? {
            return Ok(false);
        }
        let job_id = row.job_id.clone();
        // One that cannot be taken up must not keep the others from it; it is looked at again when its lease ends.
        // A run inside of another one takes no slot: the outer one may hold the last.
        let ticket = if row.depth > 0 {
            Ticket::free()
        } else {
            self.admission.enter_again(&row.user_id)
        };
        let taken = Box::pin(self.take_up(row, ticket)).await;
        match &taken {
            Ok(()) => tracing::info!(job_id, "a run of a process that is gone was taken up"),
            Err(error) => {
                tracing::error!(
                    job_id,
                    error = error as &dyn std::error::Error,
                    "a run cannot be taken up"
                );
            }
        }
        Ok(taken.is_ok())
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
        // A process that went down in good order gave the run back; only one that died may have been killed by it.
        let died = i64::from(row.owner.is_some());
        let adoptions = if row.artifact_count > row.adopted_artifacts {
            died
        } else {
            row.adoptions + died
        };
        let tx = self.store.db().begin().await?;
        let mut update = Entity::update_many()
            .col_expr(Column::Owner, Expr::value(self.instance.as_ref()))
            .col_expr(Column::LeaseUntil, Expr::value(self.lease_until()))
            .col_expr(Column::Adoptions, Expr::value(adoptions))
            .col_expr(Column::AdoptedArtifacts, Expr::value(row.artifact_count))
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
    /// Goes on with a run that this process has claimed.
    pub(super) async fn take_up(&self, row: Model, ticket: Ticket) -> Result<(), Error> {
        // Between the look and the claim its owner may have recorded more.
        let row = Entity::find_by_id(&row.job_key)
            .one(self.store.db().read())
            .await?
            .ok_or_else(|| Error::JobNotFound(row.job_id.clone()))?;
        if row.adoptions > MAX_ADOPTIONS || read_graph(&row.graph).is_err() {
            return self.end_lost(row).await;
        }
        self.go_on(row, ticket).await
    }
    /// Reads what is there of a run, and drives it from there.
    async fn go_on(&self, row: Model, ticket: Ticket) -> Result<(), Error> {
        let (work, relay, live) = self.continued(row)?;
        let _lease = TakingUp::new(self, &work.row.job_key);
        let (db, key) = (self.store.db(), &work.row.job_key);
        let past = Past::read(db, key).await?;
        let told = Told::read(db, key).await?;
        if self.tasks.token().is_cancelled() {
            return Err(Error::Draining);
        }
        let abandon = CancellationToken::new();
        let recall = Recall::new(db.clone(), key.clone(), Arc::clone(&past.known), abandon.clone());
        let relay = relay.after(past, told);
        let resume = decode(work.row.resume.as_deref())?;
        let begun = Begun {
            relay,
            live,
            journal: Journal::of(Arc::new(recall)),
            resume,
            abandon,
        };
        self.spawn(work, ticket, Some(begun));
        Ok(())
    }
    pub(super) fn resumed_relay(&self, row: &Model) -> Result<(Caller, RunOptions, Relay, Arc<Live>), Error> {
        let caller = Caller {
            user_id: row.user_id.clone(),
            scopes: Vec::new(),
        };
        let options = RunOptions::decode(row.options.as_slice()).map_err(|_| Error::DamagedLog)?;
        let live = Arc::new(Live::new(row.last_seq));
        let relay = self.relay(&caller, row, options, Arc::clone(&live));
        Ok((caller, options, relay, live))
    }
    fn continued(&self, row: Model) -> Result<(Work, Relay, Arc<Live>), Error> {
        let (caller, options, relay, live) = self.resumed_relay(&row)?;
        let trigger = row
            .trigger_event
            .as_deref()
            .map(|event| v1::TriggerEvent::decode(event).map_err(|_| Error::DamagedLog))
            .transpose()?;
        let work = Work {
            trigger: trigger.map(trigger_event).transpose()?,
            graph: read_graph(&row.graph)?,
            params: decode(Some(&row.params))?,
            caller,
            row,
            options,
        };
        Ok((work, relay, live))
    }
    /// Ends a run that nobody can run.
    async fn end_lost(&self, row: Model) -> Result<(), Error> {
        let recorded = unpublished(self.store.db(), &row.job_key).await?;
        let (caller, _, mut relay, _) = self.resumed_relay(&row)?;
        self.cancel_generations(&caller, &row.job_id).await;
        relay.publish_recorded(recorded).await?;
        let event = ended(JobStatus::Failed, Some(LOST.to_owned()), Some("INTERRUPTED"));
        relay.commit(&mut vec![event]).await
    }
    /// Takes lost runs up and wakes those whose time has come, until `tasks` is told to stop.
    pub async fn keep_recovering(&self, tasks: &Tasks) {
        let (stop, mut tick) = (tasks.token(), self.ticks());
        while stop.run_until_cancelled(tick.tick()).await.is_some() {
            if let Err(error) = self.recover(false).await {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "lost runs could not be taken up"
                );
            }
            if let Err(error) = self.wake_due().await {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "suspended runs could not be woken"
                );
            }
        }
    }
}
/// A run that is being taken up: its lease is renewed meanwhile, however long its past is.
struct TakingUp<'a> {
    jobs: &'a Jobs,
    key: String,
}
impl<'a> TakingUp<'a> {
    fn new(jobs: &'a Jobs, key: &str) -> Self {
        jobs.taking_up.insert(key.to_owned());
        let key = key.to_owned();
        Self { jobs, key }
    }
}
impl Drop for TakingUp<'_> {
    fn drop(&mut self) {
        self.jobs.taking_up.remove(&self.key);
    }
}
/// A map of a run's row; empty where there is none.
pub(super) fn decode(map: Option<&[u8]>) -> Result<Map, Error> {
    let Some(bytes) = map else { return Ok(Map::new()) };
    let map = MapValue::decode(bytes).map_err(|_| Error::DamagedLog)?;
    Map::try_from(map).map_err(|_| Error::DamagedLog)
}

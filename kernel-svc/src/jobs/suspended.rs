//! Runs that wait for something outside: what they wait for, and who ends the wait: a caller who resumes or cancels, an input
//! for a trigger, or their time.
//!
//! Whoever wakes a run claims its row first, so that of all replicas one does. What is due at a time is a column, looked at by
//! every replica in turn: it outlives them all. What a woken run does from there is in `recovery.rs`.

use std::{collections::HashMap, sync::Arc};

use atelier_common::identity::Caller;
use atelier_proto::{
    common::v1::MapValue,
    kernel::v1::{Job, JobStatus},
    value::{Map, Value},
};
use prost::Message;
use sea_orm::{
    ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, sea_query::Expr,
};

use super::{Jobs, Ticket, driver::ended, recovery::decode, status_of, store::to_proto};
use crate::{
    entity::jobs::{Column, Entity, Model},
    error::Error,
    log::AT_ONCE,
    run::Resumed,
};

/// Runs that one look finds.
const BATCH: u64 = 100;
/// Looks in one pass at most; another one is only needed beside users who have no place left.
const LOOKS: usize = 4;
/// Where the state of a node that is resumed names the invocation that goes on with it.
const INVOCATION: &str = "__invocation__";

/// A node that waits.
struct Waiting {
    node_id: String,
    invocation: String,
    state: Map,
    trigger: bool,
}
impl Waiting {
    fn read(map: &Map) -> Option<Self> {
        let text = |name: &str| map.get(name).and_then(Value::as_str).map(ToOwned::to_owned);
        let inner = |name: &str| match map.get(name) {
            Some(Value::Map(map)) => Map::clone(map),
            _ => Map::new(),
        };
        Some(Self {
            node_id: text("node_id")?,
            invocation: text("invocation").unwrap_or_default(),
            state: inner("state"),
            trigger: matches!(inner("metadata").get("trigger_node"), Some(Value::Bool(true))),
        })
    }
    /// Every node that a suspended run waits for, in order of occurrence.
    fn all(suspension: Option<&[u8]>) -> Result<Vec<Self>, Error> {
        let first = decode(suspension)?;
        let others = match first.get("others") {
            Some(Value::List(others)) => others.as_ref().as_slice(),
            _ => &[],
        };
        let others = others.iter().filter_map(|other| match other {
            Value::Map(other) => Self::read(other),
            _ => None,
        });
        Ok(Self::read(&first).into_iter().chain(others).collect())
    }
}
/// Whether a suspended run is woken by what is pushed into it: a trigger of it waits for an event.
pub(super) fn awaits_events(status: &str, suspension: Option<&[u8]>) -> bool {
    status_of(status) == JobStatus::Suspended
        && Waiting::all(suspension).is_ok_and(|waits| waits.iter().any(|node| node.trigger))
}
/// States to go on with, by node: those of earlier waits, and those of the nodes that wait now.
fn states(row: &Model, waits: Vec<Waiting>) -> Result<Map, Error> {
    let mut states = decode(row.resume.as_deref())?;
    for Waiting {
        node_id,
        invocation,
        mut state,
        trigger: _,
    } in waits
    {
        if !invocation.is_empty() {
            state.insert(INVOCATION.to_owned(), invocation.into());
        }
        states.insert(node_id, Value::map(state));
    }
    Ok(states)
}
/// The same as the engine takes it.
pub(super) fn resumed(states: Map) -> HashMap<String, Resumed> {
    let read = |(node, state): (String, Value)| {
        let Value::Map(state) = state else { return None };
        let mut state = Arc::unwrap_or_clone(state);
        let invocation = state.shift_remove(INVOCATION);
        let invocation = invocation.as_ref().and_then(Value::as_str).map(Arc::from);
        let state = Arc::new(state);
        Some((node, Resumed { state, invocation }))
    };
    states.into_iter().filter_map(read).collect()
}

/// What a suspended run is claimed for.
enum Claim {
    /// To go on, with these states.
    Resume(Map),
    /// To be ended.
    Cancel,
}

impl Jobs {
    /// Makes a suspended run one of this process; false when it is not suspended any more, or has gone on since it was read.
    async fn claim_suspended(&self, row: &Model, claim: Claim) -> Result<bool, Error> {
        let claimed = Entity::update_many()
            .col_expr(Column::Status, Expr::value("running"))
            .col_expr(Column::Owner, Expr::value(self.instance.as_ref()))
            .col_expr(Column::LeaseUntil, Expr::value(self.lease_until()))
            .col_expr(Column::Suspension, Expr::value(Option::<Vec<u8>>::None))
            .col_expr(Column::ResumeAt, Expr::value(Option::<i64>::None))
            // It went to sleep in good order: whatever killed its processes before is behind it.
            .col_expr(Column::Adoptions, Expr::value(0_i64))
            .filter(Column::JobKey.eq(&row.job_key))
            .filter(Column::Status.eq("suspended"));
        let claimed = match claim {
            // The states are those of this very sleep, not of an earlier one.
            Claim::Resume(states) => claimed
                .col_expr(
                    Column::Resume,
                    Expr::value(MapValue::from(&states).encode_to_vec()),
                )
                .filter(Column::LastSeq.eq(row.last_seq)),
            Claim::Cancel => claimed.col_expr(Column::CancelRequestedAt, Expr::value(self.store.now())),
        };
        let tx = self.store.db().begin().await?;
        let ours = claimed.exec(&*tx).await?.rows_affected == 1;
        tx.commit().await?;
        Ok(ours)
    }
    /// Wakes a suspended run; false when somebody else did.
    async fn wake(&self, row: &Model, states: Map, ticket: Ticket) -> Result<bool, Error> {
        if self.tasks.token().is_cancelled() {
            return Err(Error::Draining);
        }
        if !self.claim_suspended(row, Claim::Resume(states)).await? {
            return Ok(false);
        }
        // In a task of its own, so that a caller who leaves now loses nothing; otherwise its lease would have to end first.
        let (jobs, row) = (self.clone(), row.clone());
        let going = self.tasks.spawn(
            "job-resume",
            async move { Box::pin(jobs.take_up(row, ticket)).await },
        );
        going.await.map_err(|_| Error::Died)??;
        Ok(true)
    }
    /// Ends a run that waits for something outside. It is ours from the first write on; should this process die before the
    /// second, whoever takes it up ends it.
    pub(super) async fn cancel_suspended(&self, row: Model) -> Result<(bool, Job), Error> {
        let ours = self.claim_suspended(&row, Claim::Cancel).await?;
        if ours {
            let (_, _, mut relay, _) = self.resumed_relay(&row)?;
            relay
                .commit(&mut vec![ended(JobStatus::Cancelled, None, None)])
                .await?;
        }
        let row = Entity::find_by_id(&row.job_key)
            .one(self.store.db().read())
            .await?
            .ok_or_else(|| Error::JobNotFound(row.job_id.clone()))?;
        Ok((ours, to_proto(row, false)?))
    }
    /// Goes on with a suspended run of the caller; `state` is merged over the saved state of one node that waits: `node_id`,
    /// else the first of them. All others go on with what they left behind, and may well suspend the run again.
    ///
    /// # Errors
    /// [`Error::JobNotFound`], [`Error::JobNotSuspended`], [`Error::QueueFull`], [`Error::Draining`]; [`Error::InvalidField`]
    /// when the node does not wait; store errors.
    pub async fn resume(
        &self,
        caller: &Caller,
        job_id: &str,
        node_id: Option<&str>,
        state: Map,
    ) -> Result<Job, Error> {
        let row = self.store.get(caller, job_id).await?;
        let suspended = || Error::JobNotSuspended(job_id.to_owned());
        let mut waits = Waiting::all(row.suspension.as_deref())?;
        if row.status != "suspended" || waits.is_empty() {
            return Err(suspended());
        }
        let asked = |node: &&mut Waiting| node_id.is_none_or(|id| node.node_id == id);
        let Some(node) = waits.iter_mut().find(asked) else {
            return Err(Error::InvalidField {
                field: "node_id",
                wrong: "is no node that waits".to_owned(),
            });
        };
        node.state.extend(state);
        let states = states(&row, waits)?;
        let ticket = self.admission.enter(&caller.user_id)?;
        if !self.wake(&row, states, ticket).await? {
            return Err(suspended());
        }
        to_proto(self.store.get(caller, job_id).await?, false)
    }
    /// Wakes the runs whose time has come, as many as one pass may. Gives how many.
    ///
    /// # Errors
    /// Store errors. A run that cannot be woken keeps none of the others asleep.
    pub async fn wake_due(&self) -> Result<usize, Error> {
        let (mut woken, mut full) = (0, Vec::new());
        for _ in 0..LOOKS {
            let rows = self.due(&full).await?;
            let (found, known) = (u64::try_from(rows.len()).unwrap_or(u64::MAX), full.len());
            for row in rows {
                if self.tasks.token().is_cancelled() {
                    return Ok(woken);
                }
                if full.contains(&row.user_id) {
                    continue;
                }
                match self.wake_by_itself(&row).await {
                    Ok(ours) => woken += usize::from(ours),
                    Err(Error::QueueFull(_)) => full.push(row.user_id),
                    Err(error) => tracing::error!(
                        job_id = row.job_id,
                        error = &error as &dyn std::error::Error,
                        "a suspended run cannot be woken"
                    ),
                }
            }
            if found < BATCH || full.len() == known {
                break;
            }
        }
        Ok(woken)
    }
    /// Runs that are due, of users who have a place left.
    async fn due(&self, full: &[String]) -> Result<Vec<Model>, Error> {
        let mut rows = Entity::find()
            .filter(Column::Status.eq("suspended"))
            .filter(Column::ResumeAt.lte(self.store.now()));
        if !full.is_empty() {
            rows = rows.filter(Column::UserId.is_not_in(full.iter().map(String::as_str)));
        }
        let rows = rows
            .order_by_asc(Column::ResumeAt)
            .limit(BATCH)
            .all(self.store.db().read())
            .await?;
        Ok(rows)
    }
    /// Wakes a run that nobody resumed by hand: every node goes on with what it left behind.
    async fn wake_by_itself(&self, row: &Model) -> Result<bool, Error> {
        // As when it is taken up: a run inside of another one takes no slot.
        let ticket = if row.depth > 0 {
            Ticket::free()
        } else {
            self.admission.enter(&row.user_id)?
        };
        let states = states(row, Waiting::all(row.suspension.as_deref())?)?;
        let ours = self.wake(row, states, ticket).await?;
        if ours {
            tracing::info!(job_id = row.job_id, "a suspended run was woken");
        }
        Ok(ours)
    }
    /// Wakes a run that something was pushed into. What hinders that is no matter of whoever pushed: the run is due, and the
    /// next pass of any replica wakes it.
    pub(super) async fn wake_pushed(&self, job_key: &str) {
        let woken = async {
            let row = Entity::find_by_id(job_key).one(self.store.db().read()).await?;
            match row.filter(|row| row.status == "suspended") {
                Some(row) => self.wake_by_itself(&row).await,
                None => Ok(false),
            }
        };
        if let Err(error) = woken.await {
            tracing::info!(
                job_key,
                error = &error as &dyn std::error::Error,
                "a run that something was pushed into is woken later"
            );
        }
    }
    /// Holds the row of a run that something is to be pushed into, until the end of the transaction: the run cannot go to
    /// sleep in between. True when it sleeps already, and is due from here on.
    ///
    /// # Errors
    /// [`Error::JobNotRunning`] when nothing can be pushed into it; store errors.
    pub(super) async fn hold_for_push(
        &self,
        tx: &impl ConnectionTrait,
        job_key: &str,
    ) -> Result<bool, Error> {
        let found: Option<(String, String, Option<Vec<u8>>)> = Entity::find_by_id(job_key)
            .select_only()
            .columns([Column::JobId, Column::Status, Column::Suspension])
            .lock_exclusive()
            .into_tuple()
            .one(tx)
            .await?;
        let (job_id, status, suspension) = found.ok_or_else(|| Error::JobNotFound(job_key.to_owned()))?;
        match status_of(&status) {
            JobStatus::Queued | JobStatus::Running => return Ok(false),
            JobStatus::Suspended if awaits_events(&status, suspension.as_deref()) => {}
            JobStatus::Suspended
            | JobStatus::Completed
            | JobStatus::Failed
            | JobStatus::Cancelled
            | JobStatus::Unspecified => return Err(Error::JobNotRunning(job_id)),
        }
        Entity::update_many()
            .col_expr(Column::ResumeAt, Expr::value(AT_ONCE))
            .filter(Column::JobKey.eq(job_key))
            .filter(Column::Status.eq("suspended"))
            .exec(tx)
            .await?;
        Ok(true)
    }
}

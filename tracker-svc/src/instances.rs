//! The leases of drivers: who is alive, by the ledger's own clock.
//!
//! A row is driven as long as its instance has a lease. An instance whose lease ended is forgotten by the next sweep; a
//! heartbeat of a forgotten one is refused, so that it knows that its rows are no longer its own.

use std::time::Duration;

use atelier_common::db::{Db, GroupCommit};
use atelier_common::tasks::Tasks;
use sea_orm::sea_query::{Expr, ExprTrait, OnConflict};
use sea_orm::{ColumnTrait, ConnectionTrait, DatabaseTransaction, EntityTrait, QueryFilter, Set};

use crate::entity::instances::{ActiveModel, Column, Entity};
use crate::error::Error;
use crate::ledger::insert_with;
use crate::time::LedgerTime;

/// Leases that one transaction writes at most.
const BATCH: usize = 256;

/// The leases. Clones are the same ones.
#[derive(Clone)]
pub struct Instances {
    queue: GroupCommit<Op, Result<(), Error>, Error>,
    lease: Duration,
}

#[derive(Debug, Clone)]
enum Op {
    Hello {
        instance_id: String,
        service: String,
        sole_process: bool,
    },
    Heartbeat {
        instance_id: String,
    },
    Goodbye {
        instance_id: String,
    },
}

impl Op {
    fn instance_id(&self) -> &str {
        match self {
            Self::Hello { instance_id, .. }
            | Self::Heartbeat { instance_id }
            | Self::Goodbye { instance_id } => instance_id,
        }
    }
}

impl Instances {
    /// Leases of this length. What concurrent streams say shares a transaction and a flush.
    #[must_use]
    pub fn new(db: &Db, time: &LedgerTime, tasks: &Tasks, lease: Duration) -> Self {
        let time = time.clone();
        let queue = GroupCommit::new(db.clone(), tasks, "leases", BATCH, move |tx, ops| {
            let time = time.clone();
            Box::pin(async move { apply(tx, &time, lease, ops).await })
        });
        Self { queue, lease }
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
        let op = Op::Hello {
            instance_id: instance_id.to_owned(),
            service: service.to_owned(),
            sole_process,
        };
        self.queue.submit(op).await?
    }

    /// Renews a lease.
    ///
    /// # Errors
    /// `LeaseEnded` when the instance was forgotten.
    pub async fn heartbeat(&self, instance_id: &str) -> Result<(), Error> {
        let instance_id = instance_id.to_owned();
        self.queue.submit(Op::Heartbeat { instance_id }).await?
    }

    /// Ends a lease.
    ///
    /// # Errors
    /// The database's.
    pub async fn goodbye(&self, instance_id: &str) -> Result<(), Error> {
        let instance_id = instance_id.to_owned();
        self.queue.submit(Op::Goodbye { instance_id }).await?
    }
}

async fn apply(
    tx: &DatabaseTransaction,
    time: &LedgerTime,
    lease: Duration,
    ops: Vec<Op>,
) -> Result<Vec<Result<(), Error>>, Error> {
    let mut ops: Vec<_> = ops.into_iter().enumerate().collect();
    // In one order for all writers, so that two of them cannot wait for each other.
    ops.sort_by(|(_, one), (_, other)| one.instance_id().cmp(other.instance_id()));
    let mut answers = Vec::with_capacity(ops.len());
    for (place, op) in ops {
        let answer = match op {
            Op::Hello {
                instance_id,
                service,
                sole_process,
            } => hello(tx, time, lease, instance_id, service, sole_process).await,
            Op::Heartbeat { instance_id } => heartbeat(tx, time, lease, &instance_id).await,
            Op::Goodbye { instance_id } => Entity::delete_by_id(instance_id)
                .exec(tx)
                .await
                .map(drop)
                .map_err(Error::from),
        };
        match answer {
            // The transaction is broken: the batch is taken apart.
            Err(Error::Store(error)) => return Err(Error::Store(error)),
            answer => answers.push((place, answer)),
        }
    }
    answers.sort_by_key(|(place, _)| *place);
    Ok(answers.into_iter().map(|(_, answer)| answer).collect())
}

async fn hello(
    tx: &DatabaseTransaction,
    time: &LedgerTime,
    lease: Duration,
    instance_id: String,
    service: String,
    sole_process: bool,
) -> Result<(), Error> {
    let others = Column::InstanceId.ne(instance_id.as_str());
    let values = ActiveModel {
        instance_id: Set(instance_id),
        service: Set(service),
        ..Default::default()
    };
    let now = time.now();
    let mut insert = insert_with(
        &values,
        [
            (Column::StartedAt, now.clone()),
            (Column::HeartbeatAt, now.clone()),
            (Column::ExpiresAt, time.later(lease)),
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
            .filter(others)
            .filter(Expr::col(Column::ExpiresAt).gt(now))
            .exec(tx)
            .await?;
    }
    Ok(())
}

async fn heartbeat(
    tx: &DatabaseTransaction,
    time: &LedgerTime,
    lease: Duration,
    instance_id: &str,
) -> Result<(), Error> {
    let renewed = Entity::update_many()
        .col_expr(Column::HeartbeatAt, time.now())
        .col_expr(Column::ExpiresAt, time.later(lease))
        .filter(Column::InstanceId.eq(instance_id))
        .exec(tx)
        .await?;
    if renewed.rows_affected == 1 {
        Ok(())
    } else {
        Err(Error::LeaseEnded)
    }
}

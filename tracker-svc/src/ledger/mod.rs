//! The transitions of a row, one file each, and the one queue that they go through.
//!
//! A transition reads the row for writing and then changes it by one statement whose WHERE holds the old status and the
//! fence; the number of rows it hit decides a race. Concurrent transitions share a transaction and a flush, and see each
//! other's effects in the order in which they arrived. None leaves anything half done when it refuses: every refusal
//! comes before the first write.

mod annotate;
mod attempt_book;
mod background;
mod bind;
mod cancel;
mod close;
mod link;
mod mark;
mod node_cost;
mod observe;
mod open;
mod row;
mod settle;

use std::sync::Arc;

use atelier_common::db::{Db, GroupCommit};
use atelier_common::tasks::Tasks;
use sea_orm::{DatabaseTransaction, EntityTrait};

pub use annotate::{Annotate, Late};
pub use attempt_book::Told;
pub(crate) use attempt_book::{Book as AttemptBook, priced};
pub use bind::{Bind, Bound};
pub use cancel::{Cancel, Cancelled};
pub(crate) use cancel::{all_users_untold, all_users_untold_of};
pub use close::{Close, Closed, sent};
pub use link::Link;
pub use mark::Mark;
pub use node_cost::NodeCost;
pub use observe::{Facets, Observe};
pub use open::{Open, Opened, Origin};
pub(crate) use row::{Changes, Computed, clock, insert_with, load, lock, read_ids, write};
pub use row::{Driver, Row};
pub(crate) use settle::FIRST_LOOK;

use crate::budgets::book::Book;
use crate::entity::generations::Entity;
use crate::entity::words::Status;
use crate::error::Error;
use crate::metrics as names;
use crate::time::LedgerTime;
use crate::waiting::Waiting;

/// Transitions in one transaction at most.
const BATCH: usize = 256;
/// Writers on PostgreSQL, which takes many at once; a row always has the same one. SQLite takes one.
const WRITERS: usize = 6;

#[derive(Debug, Clone)]
enum Op {
    Open(Box<Open>),
    Mark(Mark),
    Bind(Box<Bind>),
    Observe(Observe),
    Close(Box<Close>),
    Annotate(Box<Annotate>),
    Link(Link),
    Cancel(Cancel),
    NodeCost {
        key: String,
        cost: Box<NodeCost>,
    },
    /// Brings what a settled row holds of budgets to what the row comes to.
    Recount(Recount),
}

#[derive(Debug, Clone)]
struct Recount {
    user_id: String,
    id: String,
}

impl Op {
    fn id(&self) -> &str {
        match self {
            Self::Open(open) => &open.id,
            Self::Mark(mark) => &mark.id,
            Self::Bind(bind) => &bind.id,
            Self::Observe(observe) => &observe.id,
            Self::Close(close) => &close.id,
            Self::Annotate(annotate) => &annotate.id,
            Self::Link(link) => &link.id,
            Self::Cancel(cancel) => &cancel.id,
            Self::NodeCost { key, .. } => key,
            Self::Recount(recount) => &recount.id,
        }
    }

    /// Whether the row may come to something else for its budgets.
    const fn settles(&self) -> bool {
        match self {
            // What a node says is of other rows than its own key: who asks has them looked at again.
            Self::Open(_) | Self::Mark(_) | Self::Observe(_) | Self::Link(_) | Self::NodeCost { .. } => false,
            Self::Bind(_) | Self::Close(_) | Self::Annotate(_) | Self::Cancel(_) | Self::Recount(_) => true,
        }
    }
}

#[derive(Debug)]
enum Out {
    Open(Box<Opened>),
    Cancelled(bool),
    Bound(Bound),
    Closed(Box<Closed>),
    Row(Box<Row>),
    Cancel(Cancelled),
    Changed(Vec<String>),
    Done,
}

type Queue = GroupCommit<Op, Result<Out, Error>, Error>;

/// The ledger. Clones are the same one.
#[derive(Clone)]
pub struct Ledger {
    queues: Arc<[Queue]>,
    waiting: Waiting,
}

impl Ledger {
    /// Starts the ledger's writers.
    #[must_use]
    pub fn new(db: &Db, time: &LedgerTime, tasks: &Tasks, waiting: &Waiting) -> Self {
        let writers = if db.is_sqlite() { 1 } else { WRITERS };
        let queue = |_| {
            let time = time.clone();
            GroupCommit::new(db.clone(), tasks, "ledger", BATCH, move |tx, ops| {
                let time = time.clone();
                Box::pin(async move { apply(tx, &time, ops).await })
            })
        };
        Self {
            queues: (0..writers).map(queue).collect(),
            waiting: waiting.clone(),
        }
    }

    async fn submit(&self, op: Op) -> Result<Out, Error> {
        // The end of an id is random.
        let turn = op.id().bytes().rev().take(8).fold(0_usize, |sum, byte| {
            sum.wrapping_mul(31).wrapping_add(usize::from(byte))
        });
        let place = turn.checked_rem(self.queues.len()).unwrap_or_default();
        let queue = self.queues.get(place).ok_or(Error::Draining)?;
        let out = queue.submit(op).await?;
        if let Err(Error::Fenced { .. }) = &out {
            metrics::counter!(names::FENCED).increment(1);
        }
        out
    }

    /// Opens a row; durable when it returns.
    ///
    /// # Errors
    /// `KeyConflict`; `Exceeded`, `Unpriced` and `BackgroundLimit`, and then there is no row.
    pub async fn open(&self, open: Open) -> Result<Opened, Error> {
        let labels = [
            ("provider", open.provider.clone()),
            ("capability", open.capability.clone()),
        ];
        let answer = self.submit(Op::Open(Box::new(open))).await;
        if let Err(Error::Exceeded(_) | Error::Unpriced { .. } | Error::BackgroundLimit { .. }) = &answer {
            metrics::counter!(names::REFUSED).increment(1);
        }
        let Out::Open(opened) = answer? else {
            return Err(Error::Corrupt("answer"));
        };
        if opened.created {
            metrics::counter!(names::OPENED, &labels).increment(1);
        }
        Ok(*opened)
    }

    /// Marks that the paid request is about to leave; true when the row was cancelled first.
    ///
    /// # Errors
    /// `NotFound`, `Fenced`, `NotInStatus`.
    pub async fn mark(&self, mark: Mark) -> Result<bool, Error> {
        let Out::Cancelled(cancelled) = self.submit(Op::Mark(mark)).await? else {
            return Err(Error::Corrupt("answer"));
        };
        Ok(cancelled)
    }

    /// Binds what was learned of a submission.
    ///
    /// # Errors
    /// `NotFound`, `Fenced`, `AttemptBound`.
    pub async fn bind(&self, bind: Bind) -> Result<Bound, Error> {
        let Out::Bound(bound) = self.submit(Op::Bind(Box::new(bind))).await? else {
            return Err(Error::Corrupt("answer"));
        };
        Ok(bound)
    }

    /// Records facets; true when the row was cancelled.
    ///
    /// # Errors
    /// `NotFound`, `Fenced`.
    pub async fn observe(&self, observe: Observe) -> Result<bool, Error> {
        let Out::Cancelled(cancelled) = self.submit(Op::Observe(observe)).await? else {
            return Err(Error::Corrupt("answer"));
        };
        Ok(cancelled)
    }

    /// Closes a row.
    ///
    /// # Errors
    /// `NotFound`, `Fenced`, `OutputsOpen`.
    pub async fn close(&self, close: Close) -> Result<Closed, Error> {
        let status = close.status;
        let Out::Closed(closed) = self.submit(Op::Close(Box::new(close))).await? else {
            return Err(Error::Corrupt("answer"));
        };
        if closed.changed {
            self.waiting.settled(&closed.row.generation.id);
            settled(
                status,
                closed.row.generation.cost.is_none() && sent(&closed.row.generation),
            );
        } else if closed.lost_race {
            metrics::counter!(names::CONFLICTS, "status" => status.word()).increment(1);
        }
        Ok(*closed)
    }

    /// Adds what a late driver knows.
    ///
    /// # Errors
    /// `NotFound`, `NotInStatus`.
    pub async fn annotate(&self, annotate: Annotate) -> Result<Row, Error> {
        self.row(Op::Annotate(Box::new(annotate))).await
    }

    /// Links assets.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn link(&self, link: Link) -> Result<Row, Error> {
        self.row(Op::Link(link)).await
    }

    async fn row(&self, op: Op) -> Result<Row, Error> {
        let Out::Row(row) = self.submit(op).await? else {
            return Err(Error::Corrupt("answer"));
        };
        Ok(*row)
    }

    /// Cancels a running row of the user.
    ///
    /// # Errors
    /// Only the database's.
    pub async fn cancel(&self, cancel: Cancel) -> Result<Cancelled, Error> {
        let id = cancel.id.clone();
        let Out::Cancel(cancelled) = self.submit(Op::Cancel(cancel)).await? else {
            return Err(Error::Corrupt("answer"));
        };
        if matches!(cancelled, Cancelled::Now { .. }) {
            self.waiting.settled(&id);
            settled(Status::Cancelled, false);
        }
        Ok(cancelled)
    }

    /// Books what a node says that its invocation cost; the rows that changed.
    ///
    /// # Errors
    /// `Invalid` when there is no invocation.
    pub async fn record_node_cost(&self, cost: NodeCost) -> Result<Vec<String>, Error> {
        let (key, user_id) = (cost.queue_key(), cost.user_id.clone());
        let cost = Box::new(cost);
        let Out::Changed(changed) = self.submit(Op::NodeCost { key, cost }).await? else {
            return Err(Error::Corrupt("answer"));
        };
        for id in &changed {
            self.recount(&user_id, id).await?;
        }
        Ok(changed)
    }

    /// Brings what a row holds of budgets to what the row comes to. For whoever changes the cost or the reconciliation of a
    /// settled row by a statement of its own. Again it changes nothing.
    ///
    /// # Errors
    /// Only the database's.
    pub async fn recount(&self, user_id: &str, id: &str) -> Result<(), Error> {
        let (user_id, id) = (user_id.to_owned(), id.to_owned());
        let Out::Done = self.submit(Op::Recount(Recount { user_id, id })).await? else {
            return Err(Error::Corrupt("answer"));
        };
        Ok(())
    }
}

fn settled(status: Status, unpriced: bool) {
    metrics::counter!(names::SETTLED, "status" => status.word()).increment(1);
    if unpriced {
        metrics::counter!(names::UNPRICED).increment(1);
    }
}

async fn apply(
    tx: &DatabaseTransaction,
    time: &LedgerTime,
    ops: Vec<Op>,
) -> Result<Vec<Result<Out, Error>>, Error> {
    let mut ops: Vec<_> = ops.into_iter().enumerate().collect();
    // Rows are locked in the order of their ids, so that two writers cannot wait for each other, and what several rows
    // share before all of them. Stable: what concerns one row stays in the order in which it came.
    ops.sort_by(|(_, one), (_, other)| one.id().cmp(other.id()));
    let opens: Vec<&Open> = ops
        .iter()
        .filter_map(|(_, op)| match op {
            Op::Open(open) => Some(&**open),
            Op::Mark(_)
            | Op::Bind(_)
            | Op::Observe(_)
            | Op::Close(_)
            | Op::Annotate(_)
            | Op::Link(_)
            | Op::Cancel(_)
            | Op::NodeCost { .. }
            | Op::Recount(_) => None,
        })
        .collect();
    let settling: Vec<&str> = ops
        .iter()
        .filter(|(_, op)| op.settles())
        .map(|(_, op)| op.id())
        .collect();
    background::lock(tx, &opens).await?;
    let mut book = Book::lock(tx, time, &opens, &settling).await?;
    let mut answers = Vec::with_capacity(ops.len());
    for (place, op) in ops {
        let follows = Some(op.id().to_owned()).filter(|id| op.settles() && book.concerns(id));
        let answer = match one(tx, &time.held(), &mut book, op).await {
            // The transaction is broken: the batch is taken apart.
            Err(Error::Store(error)) => return Err(Error::Store(error)),
            answer => answer,
        };
        if let Some(id) = follows.filter(|_| answer.is_ok())
            && let Some(row) = Entity::find_by_id(id).one(tx).await?
        {
            book.follow(&row);
        }
        answers.push((place, answer));
    }
    book.save(tx).await?;
    answers.sort_by_key(|(place, _)| *place);
    Ok(answers.into_iter().map(|(_, answer)| answer).collect())
}

async fn one(tx: &DatabaseTransaction, time: &LedgerTime, book: &mut Book, op: Op) -> Result<Out, Error> {
    Ok(match op {
        Op::Open(open) => Out::Open(Box::new(open::open(tx, time, book, &open).await?)),
        Op::Mark(mark) => Out::Cancelled(mark::mark(tx, time, &mark).await?),
        Op::Bind(bind) => Out::Bound(bind::bind(tx, time, &bind).await?),
        Op::Observe(observe) => Out::Cancelled(observe::observe(tx, time, &observe).await?),
        Op::Close(close) => Out::Closed(Box::new(close::close(tx, time, &close).await?)),
        Op::Annotate(annotate) => Out::Row(Box::new(annotate::annotate(tx, time, &annotate).await?)),
        Op::Link(link) => Out::Row(Box::new(link::link(tx, time, &link).await?)),
        Op::Cancel(cancel) => Out::Cancel(cancel::cancel(tx, time, &cancel).await?),
        Op::NodeCost { key: _, cost } => Out::Changed(node_cost::record(tx, time, &cost).await?),
        Op::Recount(Recount { user_id, id }) => {
            row::lock(tx, &user_id, &id).await?;
            Out::Done
        }
    })
}

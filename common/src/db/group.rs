//! Group commit: the writes of many callers in one transaction, with one flush.
//!
//! While one batch commits the next one gathers, so the batch grows with the load and a lone caller waits for nobody.

use std::panic::AssertUnwindSafe;
use std::time::Instant;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sea_orm::DatabaseTransaction;
use tokio::sync::{mpsc, oneshot};

use super::{Db, DbError, WriteTx};
use crate::metrics::{GROUP_COMMIT_DURATION, GROUP_COMMIT_SIZE, GROUP_COMMIT_SPLIT};
use crate::tasks::{Tasks, panic_text};

/// What a batch does inside of its transaction: one answer per operation, in their order. After an error everything it
/// did is rolled back, and it is called again with each operation alone.
pub trait Apply<Op, Out, E>:
    for<'a> Fn(&'a DatabaseTransaction, Vec<Op>) -> BoxFuture<'a, Result<Vec<Out>, E>> + Send + Sync + 'static
{
}

impl<Op, Out, E, F> Apply<Op, Out, E> for F where
    F: for<'a> Fn(&'a DatabaseTransaction, Vec<Op>) -> BoxFuture<'a, Result<Vec<Out>, E>>
        + Send
        + Sync
        + 'static
{
}

/// A queue of writes with one writer. Clones feed the same queue; the writer ends when the last one is dropped.
pub struct GroupCommit<Op, Out, E = DbError> {
    queue: mpsc::Sender<Waiting<Op, Out, E>>,
    tasks: Tasks,
}

impl<Op, Out, E> Clone for GroupCommit<Op, Out, E> {
    fn clone(&self) -> Self {
        Self {
            queue: self.queue.clone(),
            tasks: self.tasks.clone(),
        }
    }
}

struct Waiting<Op, Out, E> {
    op: Op,
    answer: oneshot::Sender<Result<Out, E>>,
}

impl<Op, Out, E> GroupCommit<Op, Out, E>
where
    Op: Clone + Send + Sync + 'static,
    Out: Send + 'static,
    E: From<DbError> + Send + 'static,
{
    /// Starts the writer. `name` labels its metrics; at most `max_batch` operations go into one transaction, and four
    /// times as many wait in the queue. Draining `tasks` waits for operations that were submitted, not for the writer,
    /// so the work that is done on the way out can still be written.
    pub fn new<F>(db: Db, tasks: &Tasks, name: &'static str, max_batch: usize, apply: F) -> Self
    where
        F: for<'a> Fn(&'a DatabaseTransaction, Vec<Op>) -> BoxFuture<'a, Result<Vec<Out>, E>>
            + Send
            + Sync
            + 'static,
    {
        let max_batch = max_batch.max(1);
        // Full: whoever submits waits, which slows down the callers and nothing else.
        let (queue, waiting) = mpsc::channel(max_batch.saturating_mul(4));
        let writer = Writer { db, name, apply };
        // Not `child`: the drain of `tasks` is held up by each submit instead.
        tasks.spawn_background(name, writer.run(waiting, max_batch));
        Self {
            queue,
            tasks: tasks.clone(),
        }
    }

    /// Writes one operation and waits until it is committed. Dropped while waiting for a place in the queue nothing
    /// happens; dropped later the operation is still written. Never call it while holding a [`WriteTx`]: on SQLite the
    /// writer would wait for that one for ever.
    ///
    /// # Errors
    /// What `apply` said of this operation alone; [`DbError`] when the transaction failed (see [`DbError::answered`] for
    /// whether it may have been committed all the same); [`DbError::Stopped`] when the writer is gone.
    pub async fn submit(&self, op: Op) -> Result<Out, E> {
        let _hold = self.tasks.hold();
        let (answer, answered) = oneshot::channel();
        self.queue
            .send(Waiting { op, answer })
            .await
            .map_err(|_| DbError::Stopped)?;
        answered.await.map_err(|_| DbError::Stopped)?
    }
}

struct Writer<F> {
    db: Db,
    name: &'static str,
    apply: F,
}

/// How a transaction failed.
enum Failure<E> {
    /// Nothing was committed.
    RolledBack(E),
    /// Nobody can say whether it was committed.
    Unknown(DbError),
}

impl<F> Writer<F> {
    async fn run<Op, Out, E>(self, mut queue: mpsc::Receiver<Waiting<Op, Out, E>>, max_batch: usize)
    where
        Op: Clone + Send + Sync + 'static,
        Out: Send + 'static,
        E: From<DbError> + Send + 'static,
        F: Apply<Op, Out, E>,
    {
        let mut batch = Vec::with_capacity(max_batch);
        while queue.recv_many(&mut batch, max_batch).await > 0 {
            let start = Instant::now();
            let size = u32::try_from(batch.len()).unwrap_or(u32::MAX);
            self.commit(std::mem::take(&mut batch)).await;
            metrics::histogram!(GROUP_COMMIT_SIZE, "queue" => self.name).record(size);
            metrics::histogram!(GROUP_COMMIT_DURATION, "queue" => self.name).record(start.elapsed());
        }
    }

    async fn commit<Op, Out, E>(&self, batch: Vec<Waiting<Op, Out, E>>)
    where
        Op: Clone + Send + Sync + 'static,
        Out: Send + 'static,
        E: From<DbError> + Send + 'static,
        F: Apply<Op, Out, E>,
    {
        let ops: Vec<_> = batch.iter().map(|waiting| waiting.op.clone()).collect();
        match self.transact(ops).await {
            Ok(answers) => {
                // Nobody listens: the caller gave up, and was told that the write may happen.
                batch
                    .into_iter()
                    .zip(answers)
                    .for_each(|(waiting, answer)| drop(waiting.answer.send(Ok(answer))));
            }
            Err(Failure::Unknown(error)) => {
                batch
                    .into_iter()
                    .for_each(|waiting| drop(waiting.answer.send(Err(error.clone().into()))));
            }
            Err(Failure::RolledBack(error)) => {
                let batch = match <[Waiting<Op, Out, E>; 1]>::try_from(batch) {
                    Ok([alone]) => return drop(alone.answer.send(Err(error))),
                    Err(batch) => batch,
                };
                metrics::counter!(GROUP_COMMIT_SPLIT, "queue" => self.name).increment(1);
                for waiting in batch {
                    let answer = self.transact(vec![waiting.op]).await;
                    let answer = answer.map_err(|failure| match failure {
                        Failure::RolledBack(error) => error,
                        Failure::Unknown(error) => error.into(),
                    });
                    drop(waiting.answer.send(answer.and_then(|answers| {
                        answers.into_iter().next().ok_or_else(|| {
                            DbError::Answers {
                                given: 1,
                                answered: 0,
                            }
                            .into()
                        })
                    })));
                }
            }
        }
    }

    async fn transact<Op, Out, E>(&self, ops: Vec<Op>) -> Result<Vec<Out>, Failure<E>>
    where
        E: From<DbError>,
        F: Apply<Op, Out, E>,
    {
        let given = ops.len();
        let tx: WriteTx = self
            .db
            .begin()
            .await
            .map_err(|error| Failure::RolledBack(error.into()))?;
        // A panic must fail its own operation and not the writer, which is everybody's.
        let applied = AssertUnwindSafe(async { (self.apply)(&tx, ops).await })
            .catch_unwind()
            .await;
        let answers = match applied {
            Ok(applied) => applied.map_err(Failure::RolledBack)?,
            Err(panic) => {
                tracing::error!(
                    queue = self.name,
                    panic = panic_text(panic.as_ref()),
                    "group commit panicked"
                );
                return Err(Failure::RolledBack(DbError::Broken.into()));
            }
        };
        if answers.len() != given {
            let error = DbError::Answers {
                given,
                answered: answers.len(),
            };
            return Err(Failure::RolledBack(error.into()));
        }
        match tx.commit().await {
            Ok(()) => Ok(answers),
            Err(error) if error.answered() => Err(Failure::RolledBack(error.into())),
            Err(error) => Err(Failure::Unknown(error)),
        }
    }
}

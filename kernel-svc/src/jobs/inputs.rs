//! What comes in from outside while a run goes on: values for its inputs, and events for its controlled nodes. A value for a
//! trigger also wakes its run. Answers to the questions of supervised runs are kept here, too; what becomes of them: see
//! `escalations.rs`.
//!
//! Everything is a row first, in order of arrival, and is handed to the run from there: by the process that drives it, and
//! once more by the one that takes the run up. A caller's id for an input makes a repeat harmless.

use std::{convert::Infallible, time::Duration};

use atelier_common::identity::Caller;
use atelier_proto::{
    common::v1::{MapValue, Value as WireValue},
    kernel::v1::{PushInputRequest, SendControlRequest},
    value::{Map, Value},
};
use futures_util::{StreamExt, stream::FuturesUnordered};
use prost::Message;
use sea_orm::{
    ActiveValue::Set,
    ColumnTrait, EntityTrait, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect,
    sea_query::{Expr, OnConflict},
};
use tokio::time::{Instant, timeout};

use super::{
    Jobs,
    drive::Drive,
    driver::{goes_on, storable},
    suspended::awaits_events,
};
use crate::{
    entity::inputs::{ActiveModel, Column, Entity, Model},
    error::Error,
    run::{RunError, RunHandle},
};

/// Inputs that a run has not taken yet, at most; more are refused.
const PENDING: u64 = 1_000;
/// Rows that are read at a time.
const PAGE: u64 = 64;
/// How often a driver looks for what another process recorded.
pub(super) const LOOK: Duration = Duration::from_millis(250);
/// How long a push waits to hear what the run says to it. It is durable by then.
const ANSWER: Duration = Duration::from_secs(10);
/// The same for a run that has not started: it is about to, or waits for a slot.
const QUEUED_ANSWER: Duration = Duration::from_secs(1);
/// Tries to get a place in the order among callers that come at once.
const TRIES: usize = 20;
/// Longest id of an input, in bytes.
const MAX_ID: usize = 256;
/// Longest name of an input, an output or a node, in bytes.
const MAX_NAME: usize = 1_024;
/// Ids of recorded control events begin here; smaller ones are of callers in the process.
const RECORDED: u64 = 1 << 32;

/// What an input is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A value for an input or a trigger, or its end.
    Push,
    /// An event for a controlled node.
    Control,
    /// An answer to a question.
    Verdict,
}
impl Kind {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Push => "push",
            Self::Control => "control",
            Self::Verdict => "verdict",
        }
    }
    /// The field of the request that holds the name.
    fn named(self) -> &'static str {
        match self {
            Self::Push => "name",
            Self::Control => "node_id",
            Self::Verdict => "escalation_id",
        }
    }
}
/// An input to record.
pub(super) struct New<'a> {
    pub id: &'a str,
    pub kind: Kind,
    pub name: &'a str,
    pub handle: Option<&'a str>,
    pub payload: Option<Vec<u8>>,
    pub finish: bool,
}
/// Where an input is to go.
pub(super) struct Target {
    /// The run.
    pub key: String,
    /// The id of the input.
    pub id: String,
    /// How long to wait for what the run says to it: one that waits for a slot may say nothing for long.
    pub patience: Duration,
}
/// An input that is recorded.
pub(super) struct Recorded {
    /// Its place in the order.
    pub n: i64,
    /// Whether this call gave it that.
    pub created: bool,
    /// Whether the run sleeps and is to be woken.
    wakes: bool,
}

impl Jobs {
    /// Pushes a value into an input of a run, finishes the input, or both. True when this call recorded it.
    ///
    /// Cancel safe: what is recorded reaches the run.
    ///
    /// # Errors
    /// [`Error::JobNotFound`], [`Error::JobNotRunning`], [`Error::InvalidField`], [`Error::InputFinished`],
    /// [`Error::InputsFull`]; store errors.
    pub async fn push(&self, caller: &Caller, request: PushInputRequest) -> Result<bool, Error> {
        let PushInputRequest {
            job_id,
            name,
            value,
            handle,
            finish,
            input_id,
        } = request;
        if value.is_none() && !finish {
            return Err(Error::InvalidField {
                field: "value",
                wrong: "a value, the end of the input, or both are needed".to_owned(),
            });
        }
        let Target { key, id, patience } = self.target(caller, &job_id, &input_id, Kind::Push).await?;
        let new = New {
            id: &id,
            kind: Kind::Push,
            name: &name,
            handle: handle.as_deref(),
            payload: value.map(|value| value.encode_to_vec()),
            finish,
        };
        let Recorded { n, created, wakes } = self.record(&key, new).await?;
        if wakes {
            Box::pin(self.wake_pushed(&key)).await;
        }
        let waited = self
            .outcome(&key, &job_id, n, Some(Instant::now() + patience))
            .await?;
        match waited.and_then(|row| row.error) {
            Some(error) => Err(refused(&name, &error)),
            None => Ok(created),
        }
    }
    /// Sends a run event to a controlled node; waits for the outputs of its invocation when asked to.
    ///
    /// Cancel safe: what is recorded reaches the run.
    ///
    /// # Errors
    /// [`Error::JobNotFound`], [`Error::JobNotRunning`], [`Error::InvalidField`], [`Error::NodeFailed`],
    /// [`Error::InputsFull`]; store errors.
    pub async fn control(&self, caller: &Caller, request: SendControlRequest) -> Result<Option<Map>, Error> {
        let SendControlRequest {
            job_id,
            node_id,
            properties,
            wait,
        } = request;
        let Target { key, id, patience } = self.target(caller, &job_id, "", Kind::Control).await?;
        let new = New {
            id: &id,
            kind: Kind::Control,
            name: &node_id,
            handle: None,
            payload: properties.map(|properties| properties.encode_to_vec()),
            finish: wait,
        };
        let n = self.record(&key, new).await?.n;
        let until = (!wait).then(|| Instant::now() + patience);
        let Some(row) = self.outcome(&key, &job_id, n, until).await? else {
            return Ok(None);
        };
        if let Some(error) = row.error {
            return Err(refused(&node_id, &error));
        }
        let outcome = row.outcome.filter(|_| wait);
        outcome.map(|bytes| read_map(&bytes)).transpose()
    }
    /// A run that takes what comes in: one that goes on, and for a push one whose trigger waits for it.
    pub(super) async fn target(
        &self,
        caller: &Caller,
        job_id: &str,
        id: &str,
        kind: Kind,
    ) -> Result<Target, Error> {
        if id.len() > MAX_ID {
            return Err(Error::InvalidField {
                field: "input_id",
                wrong: format!("must have at most {MAX_ID} bytes"),
            });
        }
        let row = self.store.get(caller, job_id).await?;
        let wakes = || kind == Kind::Push && awaits_events(&row.status, row.suspension.as_deref());
        if !goes_on(&row) && !wakes() {
            return Err(Error::JobNotRunning(job_id.to_owned()));
        }
        let id = if id.is_empty() {
            uuid::Uuid::now_v7().to_string()
        } else {
            id.to_owned()
        };
        let patience = if row.status == "queued" {
            QUEUED_ANSWER
        } else {
            ANSWER
        };
        let key = row.job_key;
        Ok(Target { key, id, patience })
    }
    /// Gives an input its place in the order.
    pub(super) async fn record(&self, job_key: &str, new: New<'_>) -> Result<Recorded, Error> {
        storable(new.kind.named(), new.name, MAX_NAME)?;
        storable("handle", new.handle.unwrap_or_default(), MAX_NAME)?;
        storable("input_id", new.id, MAX_ID)?;
        let db = self.store.db();
        for _ in 0..TRIES {
            let tx = db.begin().await?;
            let wakes = match new.kind {
                Kind::Push => self.hold_for_push(&*tx, job_key).await?,
                Kind::Control | Kind::Verdict => false,
            };
            let of_run = || Entity::find().filter(Column::JobKey.eq(job_key));
            if let Some(known) = of_run().filter(Column::InputId.eq(new.id)).one(&*tx).await? {
                tx.commit().await?;
                return Ok(Recorded {
                    n: known.n,
                    created: false,
                    wakes,
                });
            }
            // Answers are not held up by values that wait for room: what makes room may wait for the answer.
            let alike = match new.kind {
                Kind::Push | Kind::Control => Column::Kind.ne(Kind::Verdict.as_str()),
                Kind::Verdict => Column::Kind.eq(Kind::Verdict.as_str()),
            };
            let pending = of_run().filter(Column::Done.eq(false)).filter(alike);
            let pending = pending.count(&*tx).await?;
            if pending >= PENDING {
                return Err(Error::InputsFull(pending));
            }
            let last: Option<i64> = of_run()
                .select_only()
                .column_as(Column::N.max(), "n")
                .into_tuple::<Option<i64>>()
                .one(&*tx)
                .await?
                .flatten();
            let n = last.unwrap_or(0) + 1;
            let row = ActiveModel {
                job_key: Set(job_key.to_owned()),
                n: Set(n),
                input_id: Set(new.id.to_owned()),
                kind: Set(new.kind.as_str().to_owned()),
                name: Set(new.name.to_owned()),
                handle: Set(new.handle.map(ToOwned::to_owned)),
                payload: Set(new.payload.clone()),
                finish: Set(new.finish),
                done: Set(false),
                error: Set(None),
                outcome: Set(None),
            };
            // Somebody else may take the place at the same time: whoever loses looks again.
            let inserted = Entity::insert(row)
                .on_conflict(OnConflict::new().do_nothing().to_owned())
                .exec_without_returning(&*tx)
                .await?;
            tx.commit().await?;
            if inserted == 1 {
                if let Some(running) = self.running.get(job_key) {
                    match new.kind {
                        Kind::Push | Kind::Control => running.input.notify_one(),
                        Kind::Verdict => running.verdict.notify_one(),
                    }
                }
                return Ok(Recorded {
                    n,
                    created: true,
                    wakes,
                });
            }
        }
        Err(Error::InputsFull(PENDING))
    }
    /// Waits until the run has taken an input; `None` when it has not by `until`.
    pub(super) async fn outcome(
        &self,
        job_key: &str,
        job_id: &str,
        n: i64,
        until: Option<Instant>,
    ) -> Result<Option<Model>, Error> {
        loop {
            let taken = self
                .running
                .get(job_key)
                .map(|running| std::sync::Arc::clone(&running.taken));
            // Before the look, so that nothing between the look and the wait is missed.
            let mut news = taken.as_ref().map(|taken| Box::pin(taken.notified()));
            if let Some(news) = &mut news {
                news.as_mut().enable();
            }
            let row = Entity::find_by_id((job_key.to_owned(), n))
                .one(self.store.db().read())
                .await?;
            if let Some(row) = row.filter(|row| row.done) {
                return Ok(Some(row));
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                return Ok(None);
            }
            if self.store.ended(job_key).await? {
                // What ends an input may end the run before anybody could say so.
                return match until {
                    Some(_) => Ok(None),
                    None => Err(Error::JobNotRunning(job_id.to_owned())),
                };
            }
            match news {
                Some(news) => drop(timeout(LOOK, news).await),
                None => tokio::time::sleep(LOOK).await,
            }
        }
    }
    async fn settle(&self, row: &Model, outcome: Result<Option<Map>, String>) {
        let (error, outcome) = match outcome {
            Ok(outcome) => (None, outcome.map(|map| MapValue::from(&map).encode_to_vec())),
            Err(said) => (Some(said), None),
        };
        let update = async {
            let tx = self.store.db().begin().await?;
            Entity::update_many()
                .col_expr(Column::Done, Expr::value(true))
                .col_expr(Column::Error, Expr::value(error))
                .col_expr(Column::Outcome, Expr::value(outcome))
                .filter(Column::JobKey.eq(&row.job_key))
                .filter(Column::N.eq(row.n))
                .exec(&*tx)
                .await?;
            tx.commit().await?;
            Ok::<_, Error>(())
        };
        if let Err(error) = update.await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "what a run said to an input could not be recorded"
            );
        }
    }
}

impl Drive {
    /// Hands the run what came in, in order, from the first row on: a run that was taken up has seen none of it. Runs beside
    /// it; a value that waits for room holds up those behind it, an event that waits for its answer does not.
    pub(super) async fn feed(&self, handle: RunHandle) -> Infallible {
        handle.started_or_ended().await;
        if !handle.takes_inputs() {
            return std::future::pending().await;
        }
        let mut last = 0;
        let mut answers = FuturesUnordered::new();
        loop {
            let rows = self.inputs_after(last, false).await;
            if rows.is_empty() {
                tokio::select! {
                    () = self.input.notified() => {}
                    () = tokio::time::sleep(LOOK) => {}
                    Some(()) = answers.next(), if !answers.is_empty() => {}
                }
                continue;
            }
            for row in rows {
                last = row.n;
                if row.error.is_some() {
                    continue;
                }
                match self.hand_over(&handle, &row).await {
                    Handed::Done(outcome) => self.tell(&row, outcome.map_err(said)).await,
                    Handed::Waits(answer) => answers.push(async move {
                        let answer = answer.await;
                        self.tell(&row, answer.map(Some).map_err(said)).await;
                    }),
                }
            }
        }
    }
    /// Records what became of an input; a refusal is a code and a text.
    pub(super) async fn tell(&self, row: &Model, outcome: Result<Option<Map>, String>) {
        self.jobs.settle(row, outcome).await;
        self.taken.notify_waiters();
    }
    /// The next inputs, or the next answers; none when they cannot be read for the moment.
    pub(super) async fn inputs_after(&self, n: i64, verdicts: bool) -> Vec<Model> {
        let verdict = Kind::Verdict.as_str();
        let rows = Entity::find()
            .filter(Column::JobKey.eq(&self.work.row.job_key))
            .filter(Column::N.gt(n))
            .filter(if verdicts {
                Column::Kind.eq(verdict)
            } else {
                Column::Kind.ne(verdict)
            })
            .order_by_asc(Column::N)
            .limit(PAGE)
            .all(self.jobs.store.db().read())
            .await;
        rows.unwrap_or_else(|error| {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "inputs of a run cannot be read"
            );
            Vec::new()
        })
    }
    async fn hand_over(
        &self,
        handle: &RunHandle,
        row: &Model,
    ) -> Handed<impl Future<Output = Result<Map, RunError>> + use<>> {
        if row.kind == Kind::Control.as_str() {
            let properties = row.payload.as_deref().map(read_map);
            let properties = properties.transpose().ok().flatten().unwrap_or_default();
            let id = RECORDED + u64::try_from(row.n).unwrap_or(0);
            return match handle.control_as(&row.name, properties, id).await {
                Ok(answer) if row.finish => Handed::Waits(answer),
                Ok(_) => Handed::Done(Ok(None)),
                Err(error) => Handed::Done(Err(error)),
            };
        }
        let value = row
            .payload
            .as_deref()
            .and_then(|bytes| WireValue::decode(bytes).ok())
            .and_then(|value| Value::try_from(value).ok());
        if let Some(value) = value
            && let Err(error) = handle.push_input(&row.name, value, row.handle.as_deref()).await
        {
            return Handed::Done(Err(error));
        }
        if row.finish {
            let finished = handle.finish_input(&row.name, row.handle.as_deref()).await;
            return Handed::Done(finished.map(|()| None));
        }
        Handed::Done(Ok(None))
    }
}
/// A refusal of the run, as it is recorded.
fn said(error: RunError) -> String {
    format!("{} {error}", error.code())
}
enum Handed<A> {
    Done(Result<Option<Map>, RunError>),
    Waits(A),
}

fn read_map(bytes: &[u8]) -> Result<Map, Error> {
    let map = MapValue::decode(bytes).map_err(|_| Error::DamagedLog)?;
    Map::try_from(map).map_err(|_| Error::DamagedLog)
}
/// What the run said, as an error of the call.
fn refused(name: &str, said: &str) -> Error {
    let (code, message) = said.split_once(' ').unwrap_or(("", said));
    match code {
        "input.finished" => Error::InputFinished(name.to_owned()),
        "input.unknown" | "input.failed" => Error::InvalidField {
            field: "name",
            wrong: message.to_owned(),
        },
        "control.unknown_node" => Error::InvalidField {
            field: "node_id",
            wrong: message.to_owned(),
        },
        _ => Error::NodeFailed {
            node: name.to_owned(),
            message: message.to_owned(),
        },
    }
}

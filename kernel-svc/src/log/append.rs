//! Appending: one transaction holds a segment, its artifacts and what changes on the run's row.

use std::collections::HashMap;

use atelier_proto::kernel::v1::JobStatus;
use sea_orm::{
    ActiveValue::Set,
    ColumnTrait, Condition, ConnectionTrait, DatabaseTransaction, EntityTrait, QueryFilter, QuerySelect,
    QueryTrait,
    sea_query::{Expr, ExprTrait, OnConflict},
};

use crate::{
    entity::{artifacts, checkpoints, frames, inputs, jobs, segments},
    error::Error,
    jobs::{is_terminal, status_name},
};

/// Events that are committed together.
#[derive(Debug, Clone)]
pub struct Segment {
    /// Number of the first.
    pub first_seq: i64,
    /// Number of the last.
    pub last_seq: i64,
    /// How many are kept.
    pub event_count: i64,
    /// The events, encoded; empty when none is kept.
    pub payload: Vec<u8>,
}
/// A commit of a node.
#[derive(Debug, Clone)]
pub struct ArtifactRow {
    /// The node.
    pub node_id: String,
    /// k-th artifact of the node.
    pub idx: i64,
    /// Key of the commit.
    pub invocation: String,
    /// The event as committed, while its media are being saved; `None` when it is published by this very append.
    pub event: Option<Vec<u8>>,
}
/// What a finished invocation emitted, for a later process of the run.
#[derive(Debug, Clone)]
pub struct FramesRow {
    /// The node.
    pub node_id: String,
    /// Key of the invocation.
    pub invocation: String,
    /// The frames, a `ListValue`.
    pub frames: Vec<u8>,
}
/// What was said since the last checkpoint, for a later process of the run.
#[derive(Debug, Clone)]
pub struct Checkpoint {
    /// Number of the last event that it covers.
    pub seq: i64,
    /// What was said, encoded.
    pub state: Vec<u8>,
}
/// What changes on the run's row.
#[derive(Debug, Clone, Default)]
pub struct JobPatch {
    /// New status.
    pub status: Option<&'static str>,
    /// Why it failed.
    pub error: Option<String>,
    /// Machine-readable reason.
    pub error_code: Option<String>,
    /// Issues of the graph, JSON.
    pub issues: Option<String>,
    /// Results, a `MapValue`.
    pub outputs: Option<Vec<u8>>,
    /// What it waits for, a `MapValue`.
    pub suspension: Option<Vec<u8>>,
    /// When it wants to go on by itself; with a suspended run.
    pub resume_at: Option<i64>,
    /// Whether what was pushed into it and not taken yet wakes it; with a suspended run.
    pub awaits_events: bool,
    /// When it started.
    pub started_at: Option<i64>,
    /// When it ended.
    pub finished_at: Option<i64>,
}
impl JobPatch {
    /// Whether nothing follows it.
    #[must_use]
    pub fn ends(&self) -> bool {
        self.status.is_some_and(is_terminal)
    }
}
/// One append to one run's log.
#[derive(Debug, Clone)]
pub struct Append {
    /// The run.
    pub job_key: String,
    /// The instance that must still drive it.
    pub owner: String,
    /// Events to add.
    pub segment: Option<Segment>,
    /// Artifacts to commit.
    pub artifacts: Vec<ArtifactRow>,
    /// Artifacts committed before whose events are in this segment: node and index.
    pub published: Vec<(String, i64)>,
    /// What finished invocations emitted.
    pub frames: Vec<FramesRow>,
    /// What was said up to the end of the segment.
    pub checkpoint: Option<Checkpoint>,
    /// Changes of the run's row.
    pub patch: JobPatch,
}

/// The time of a run that is to be woken without waiting.
pub const AT_ONCE: i64 = 0;
/// Rows in one INSERT; both engines bound the number of parameters.
const ROWS: usize = 500;

/// Applies one append within a transaction.
///
/// # Errors
/// [`Error::Fenced`] when another instance drives the run; store errors.
pub async fn apply(tx: &DatabaseTransaction, append: Append) -> Result<(), Error> {
    let Append {
        job_key,
        owner,
        segment,
        artifacts,
        published,
        frames,
        checkpoint,
        patch,
    } = append;
    let first_seq = segment.as_ref().map(|segment| segment.first_seq);
    let newly = artifacts
        .iter()
        .filter(|artifact| artifact.event.is_none())
        .count()
        + published.len();
    update_row(
        tx,
        &job_key,
        &owner,
        segment.as_ref().map(|segment| segment.last_seq),
        newly,
        patch,
    )
    .await?;
    for rows in artifacts.chunks(ROWS) {
        let rows = rows.iter().map(|artifact| artifacts::ActiveModel {
            job_key: Set(job_key.clone()),
            node_id: Set(artifact.node_id.clone()),
            idx: Set(artifact.idx),
            invocation: Set(artifact.invocation.clone()),
            published: Set(artifact.event.is_none()),
            event: Set(artifact.event.clone()),
            segment: Set(first_seq.filter(|_| artifact.event.is_none())),
        });
        artifacts::Entity::insert_many(rows)
            .exec_without_returning(tx)
            .await?;
    }
    for rows in frames.chunks(ROWS) {
        let rows = rows.iter().map(|row| frames::ActiveModel {
            job_key: Set(job_key.clone()),
            node_id: Set(row.node_id.clone()),
            invocation: Set(row.invocation.clone()),
            frames: Set(row.frames.clone()),
        });
        // The first word about an invocation counts: it is the most complete one.
        let keys = [
            frames::Column::JobKey,
            frames::Column::NodeId,
            frames::Column::Invocation,
        ];
        frames::Entity::insert_many(rows)
            .on_conflict(OnConflict::columns(keys).do_nothing().to_owned())
            .exec_without_returning(tx)
            .await?;
    }
    let mut by_node: HashMap<String, Vec<i64>> = HashMap::new();
    for (node_id, idx) in published {
        by_node.entry(node_id).or_default().push(idx);
    }
    for (node_id, indexes) in by_node {
        for indexes in indexes.chunks(ROWS) {
            artifacts::Entity::update_many()
                .col_expr(artifacts::Column::Published, Expr::value(true))
                .col_expr(artifacts::Column::Event, Expr::value(Option::<Vec<u8>>::None))
                .col_expr(artifacts::Column::Segment, Expr::value(first_seq))
                .filter(artifacts::Column::JobKey.eq(&job_key))
                .filter(artifacts::Column::NodeId.eq(&node_id))
                .filter(artifacts::Column::Idx.is_in(indexes.iter().copied()))
                .exec(tx)
                .await?;
        }
    }
    if let Some(Checkpoint { seq, state }) = checkpoint {
        let row = checkpoints::ActiveModel {
            job_key: Set(job_key.clone()),
            seq: Set(seq),
            state: Set(state),
        };
        checkpoints::Entity::insert(row)
            .exec_without_returning(tx)
            .await?;
    }
    if let Some(segment) = segment.filter(|segment| !segment.payload.is_empty()) {
        let row = segments::ActiveModel {
            job_key: Set(job_key),
            first_seq: Set(segment.first_seq),
            last_seq: Set(segment.last_seq),
            event_count: Set(segment.event_count),
            payload: Set(segment.payload),
        };
        segments::Entity::insert(row).exec_without_returning(tx).await?;
    }
    Ok(())
}

async fn update_row(
    tx: &impl ConnectionTrait,
    job_key: &str,
    owner: &str,
    last_seq: Option<i64>,
    published: usize,
    patch: JobPatch,
) -> Result<(), Error> {
    use jobs::Column;
    let JobPatch {
        status,
        error,
        error_code,
        issues,
        outputs,
        suspension,
        resume_at,
        awaits_events,
        started_at,
        finished_at,
    } = patch;
    let suspends = status == Some(status_name(JobStatus::Suspended));
    let published = i64::try_from(published).unwrap_or(i64::MAX);
    let mut update = jobs::Entity::update_many()
        .col_expr(
            Column::ArtifactCount,
            ExprTrait::add(Expr::col(Column::ArtifactCount), published),
        )
        .filter(Column::JobKey.eq(job_key))
        .filter(Column::Owner.eq(owner));
    if let Some(seq) = last_seq {
        update = update.col_expr(Column::LastSeq, Expr::value(seq));
    }
    if let Some(status) = status {
        update = update.col_expr(Column::Status, Expr::value(status));
    }
    for (column, text) in [
        (Column::Error, error),
        (Column::ErrorCode, error_code),
        (Column::Issues, issues),
    ] {
        if text.is_some() {
            update = update.col_expr(column, Expr::value(text));
        }
    }
    if suspends {
        update = update.col_expr(Column::ResumeAt, Expr::value(resume_at));
    }
    if suspension.is_some() {
        update = update.col_expr(Column::Suspension, Expr::value(suspension));
    }
    if outputs.is_some() {
        update = update.col_expr(Column::Outputs, Expr::value(outputs));
    }
    for (column, at) in [(Column::StartedAt, started_at), (Column::FinishedAt, finished_at)] {
        if at.is_some() {
            update = update.col_expr(column, Expr::value(at));
        }
    }
    if update.exec(tx).await?.rows_affected != 1 {
        return Err(Error::Fenced(job_key.to_owned()));
    }
    if suspends {
        wake_at_once(tx, job_key, awaits_events).await?;
    }
    Ok(())
}
/// A run that just suspended itself is woken again at once when it was to be cancelled, or when something came in for its
/// triggers that it did not take any more. Whoever pushes holds the row, so that either side sees the other.
async fn wake_at_once(tx: &impl ConnectionTrait, job_key: &str, awaits_events: bool) -> Result<(), Error> {
    use jobs::Column;
    let mut why = Condition::any().add(Column::CancelRequestedAt.is_not_null());
    if awaits_events {
        let pushed = inputs::Entity::find()
            .select_only()
            .column(inputs::Column::N)
            .filter(inputs::Column::JobKey.eq(job_key))
            .filter(inputs::Column::Kind.eq("push"))
            .filter(inputs::Column::Done.eq(false))
            .into_query();
        why = why.add(Expr::exists(pushed));
    }
    jobs::Entity::update_many()
        .col_expr(Column::ResumeAt, Expr::value(AT_ONCE))
        .filter(Column::JobKey.eq(job_key))
        .filter(why)
        .exec(tx)
        .await?;
    Ok(())
}

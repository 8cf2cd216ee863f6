//! Reading by cursor: pages from the database until the live tail takes over.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use atelier_common::db::Db;
use atelier_proto::kernel::v1::{JobEvent, JobStatus, job_event::Event as Frame};
use prost::Message;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, sea_query::Expr};

use super::{Live, decode};
use crate::{
    entity::{artifacts, jobs, segments},
    error::Error,
    jobs::is_terminal,
};

/// Segments that one page reads; their size is bounded by the relay's batches.
const PAGE: u64 = 8;
/// Events that one step takes from the tail.
const STEP: usize = 256;
/// How often a run that another process drives is looked at.
const POLL: Duration = Duration::from_millis(250);
/// The same for a run that sleeps until its time.
const POLL_ASLEEP: Duration = Duration::from_secs(1);

/// Reads one run's log from a cursor to its end, at its reader's own speed.
pub struct Reader {
    db: Db,
    job_key: String,
    live: Option<Arc<Live>>,
    cursor: i64,
    page: VecDeque<Arc<JobEvent>>,
    replay_only: bool,
    /// Whether the newest event that was given says that the run is suspended.
    suspended: bool,
}
/// What a run's row says of its future.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Future {
    /// Nothing follows, unless somebody resumes it.
    Ended,
    /// It goes on by itself at its time.
    Asleep,
    /// It goes on.
    Open,
}
impl Reader {
    /// A reader after a cursor; `live` when this process drives the run.
    #[must_use]
    pub fn new(db: Db, job_key: String, live: Option<Arc<Live>>, after_seq: i64, replay_only: bool) -> Self {
        Self {
            db,
            job_key,
            live,
            cursor: after_seq,
            page: VecDeque::new(),
            replay_only,
            suspended: false,
        }
    }
    /// The next event; `None` when the run ended and all was read. A run that sleeps until its time has not ended. Cancel safe.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn next(&mut self) -> Result<Option<Arc<JobEvent>>, Error> {
        loop {
            if let Some(event) = self.page.pop_front() {
                self.cursor = event.seq;
                self.suspended = suspends(&event);
                return Ok(Some(event));
            }
            // Before reading: what is published after this look wakes the wait below.
            let newest = self.live.as_ref().map(|live| live.watch());
            if newest.as_ref().is_some_and(|newest| newest.borrow().left) {
                self.live = None;
                continue;
            }
            let future = match &newest {
                Some(newest) if newest.borrow().ended => Future::Ended,
                Some(_) => Future::Open,
                None => self.future().await?,
            };
            let oldest = self.live.as_ref().and_then(|live| live.oldest());
            self.page = self.fill().await?;
            if !self.page.is_empty() {
                continue;
            }
            // What the tail had dropped was durable before the page was read: none of it is kept.
            if let Some(oldest) = oldest.filter(|oldest| *oldest > self.cursor + 1) {
                self.cursor = oldest - 1;
                continue;
            }
            if future == Future::Ended {
                if self.live.is_none() || self.replay_only || !self.suspended {
                    return Ok(None);
                }
                // This drive of the run has ended: the row knows whether another one follows.
                self.live = None;
                continue;
            }
            if self.replay_only {
                // What is durable and not shown yet belongs to the replay: a caller may have seen it in the run's row.
                if self.live.take().is_none() {
                    return Ok(None);
                }
                continue;
            }
            match newest {
                Some(mut newest) => {
                    let cursor = self.cursor;
                    // The sender lives as long as `self.live`.
                    let _ = newest
                        .wait_for(|newest| newest.seq > cursor || newest.ended || newest.left)
                        .await;
                }
                None if future == Future::Asleep => tokio::time::sleep(POLL_ASLEEP).await,
                None => tokio::time::sleep(POLL).await,
            }
        }
    }
    async fn fill(&self) -> Result<VecDeque<Arc<JobEvent>>, Error> {
        if let Some(events) = self.live.as_ref().and_then(|live| live.after(self.cursor, STEP)) {
            return Ok(events.into());
        }
        let begin = begin_of(&self.db, &self.job_key, self.cursor).await?;
        let rows = segments::Entity::find()
            .filter(segments::Column::JobKey.eq(&self.job_key))
            .filter(segments::Column::FirstSeq.gte(begin))
            .filter(segments::Column::LastSeq.gt(self.cursor))
            .order_by_asc(segments::Column::FirstSeq)
            .limit(PAGE)
            .all(self.db.read())
            .await?;
        let mut page = VecDeque::new();
        for row in rows {
            page.extend(
                decode(row.payload)?
                    .into_iter()
                    .filter(|event| event.seq > self.cursor)
                    .map(Arc::new),
            );
        }
        Ok(page)
    }
    async fn future(&self) -> Result<Future, Error> {
        let row: Option<(String, Option<i64>)> = jobs::Entity::find_by_id(&self.job_key)
            .select_only()
            .columns([jobs::Column::Status, jobs::Column::ResumeAt])
            .into_tuple()
            .one(self.db.read())
            .await?;
        Ok(match row {
            Some((status, _)) if !is_terminal(&status) => Future::Open,
            // Only suspended runs have a time.
            Some((_, Some(_))) => Future::Asleep,
            Some((_, None)) | None => Future::Ended,
        })
    }
}
fn suspends(event: &JobEvent) -> bool {
    matches!(&event.event, Some(Frame::JobUpdate(update)) if update.status() == JobStatus::Suspended)
}
/// Where the segment begins that may hold a cursor. Segments follow each other without overlap, so whatever comes after
/// the cursor is in this one or behind it: the primary key finds it, however long the log is.
async fn begin_of(db: &Db, job_key: &str, cursor: i64) -> Result<i64, Error> {
    let begin: Option<i64> = segments::Entity::find()
        .filter(segments::Column::JobKey.eq(job_key))
        .filter(segments::Column::FirstSeq.lte(cursor))
        .select_only()
        .column(segments::Column::FirstSeq)
        .order_by_desc(segments::Column::FirstSeq)
        .into_tuple()
        .one(db.read())
        .await?;
    Ok(begin.unwrap_or(0))
}
/// How many kept events follow a cursor.
///
/// # Errors
/// The store cannot be read.
pub async fn count_after(db: &Db, job_key: &str, after_seq: i64) -> Result<i64, Error> {
    let begin = begin_of(db, job_key, after_seq).await?;
    let row = segments::Entity::find_by_id((job_key.to_owned(), begin))
        .filter(segments::Column::LastSeq.gt(after_seq))
        .one(db.read())
        .await?;
    let events = row
        .map(|row| decode(row.payload))
        .transpose()?
        .unwrap_or_default();
    let within = i64::try_from(events.iter().filter(|event| event.seq > after_seq).count()).unwrap_or(0);
    // A sum of BIGINT is NUMERIC on PostgreSQL.
    let sum = Expr::cust("CAST(COALESCE(SUM(event_count), 0) AS BIGINT)");
    let behind: Option<i64> = segments::Entity::find()
        .filter(segments::Column::JobKey.eq(job_key))
        .filter(segments::Column::FirstSeq.gt(after_seq))
        .select_only()
        .expr_as(sum, "events")
        .into_tuple()
        .one(db.read())
        .await?;
    Ok(within + behind.unwrap_or(0))
}
/// Artifacts that were committed and whose event is not in the log yet, in the order of nodes and indexes.
///
/// # Errors
/// The store cannot be read, or is damaged.
pub async fn unpublished(db: &Db, job_key: &str) -> Result<Vec<(artifacts::Model, JobEvent)>, Error> {
    let rows = artifacts::Entity::find()
        .filter(artifacts::Column::JobKey.eq(job_key))
        .filter(artifacts::Column::Published.eq(false))
        .order_by_asc(artifacts::Column::NodeId)
        .order_by_asc(artifacts::Column::Idx)
        .all(db.read())
        .await?;
    rows.into_iter()
        .map(|row| {
            let event = row
                .event
                .as_deref()
                .map(JobEvent::decode)
                .transpose()
                .map_err(|_| Error::DamagedLog)?;
            Ok((row, event.unwrap_or_default()))
        })
        .collect()
}

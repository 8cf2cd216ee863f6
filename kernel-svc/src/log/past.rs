//! What the database holds of a run that another process began: read once, by the process that takes the run up.

use std::{collections::HashMap, sync::Arc};

use atelier_common::db::Db;
use atelier_proto::{
    common::v1::ListValue,
    kernel::v1::{JobEvent, job_event::Event as Frame},
    value::{Map, Value},
};
use prost::Message;
use sea_orm::{ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder, QuerySelect};

use super::{RESULT, decode, unpublished};
use crate::{
    entity::{artifacts, frames, segments},
    error::Error,
    run::Journal,
};

/// Segments that are read at a time.
const PAGE: u64 = 64;
/// Rows that are read at a time.
const ROWS: u64 = 2_000;

/// What was done of a run.
#[derive(Debug, Default)]
pub struct Past {
    /// Committed artifacts, shown ones and others, by node and index.
    pub artifacts: Vec<artifacts::Model>,
    /// Those that were not shown, with what was committed.
    pub unshown: Vec<(artifacts::Model, JobEvent)>,
    /// Results of finished invocations.
    pub journal: Journal,
}
impl Past {
    /// Reads it; every event of the log goes by `see`.
    ///
    /// # Errors
    /// The store cannot be read, or is damaged.
    pub async fn read(db: &Db, job_key: &str, mut see: impl FnMut(&JobEvent)) -> Result<Self, Error> {
        let mut past = Self {
            artifacts: artifacts_of(db, job_key).await?,
            unshown: unpublished(db, job_key).await?,
            journal: Journal::default(),
        };
        for (row, event) in &past.unshown {
            if let Some(Frame::GenerationComplete(artifact)) = &event.event
                && let Some(outputs) = artifact.outputs.clone()
            {
                let outputs = Map::try_from(outputs).map_err(|_| Error::DamagedLog)?;
                past.journal.add_committed(&row.node_id, &row.invocation, outputs);
            }
        }
        let keys: HashMap<(&str, i64), &str> = past
            .artifacts
            .iter()
            .map(|row| ((row.node_id.as_str(), row.idx), row.invocation.as_str()))
            .collect();
        let mut add = |event: JobEvent| -> Result<(), Error> {
            see(&event);
            let Some(Frame::GenerationComplete(artifact)) = event.event else {
                return Ok(());
            };
            let invocation = keys.get(&(artifact.node_id.as_str(), artifact.index));
            if let (Some(invocation), Some(outputs)) = (invocation, artifact.outputs) {
                let outputs = Map::try_from(outputs).map_err(|_| Error::DamagedLog)?;
                past.journal.add_committed(&artifact.node_id, invocation, outputs);
            }
            Ok(())
        };
        let mut after = 0;
        loop {
            let rows = segments::Entity::find()
                .filter(segments::Column::JobKey.eq(job_key))
                .filter(segments::Column::FirstSeq.gt(after))
                .order_by_asc(segments::Column::FirstSeq)
                .limit(PAGE)
                .all(db.read())
                .await?;
            let Some(last) = rows.last() else { break };
            after = last.first_seq;
            for row in rows {
                decode(row.payload)?.into_iter().try_for_each(&mut add)?;
            }
        }
        for row in frames_of(db, job_key).await? {
            let list = ListValue::decode(row.frames.as_slice()).map_err(|_| Error::DamagedLog)?;
            let frames: Option<Vec<Map>> = list
                .values
                .into_iter()
                .map(|value| match Value::try_from(value) {
                    Ok(Value::Map(map)) => Some(Arc::unwrap_or_clone(map)),
                    _ => None,
                })
                .collect();
            let frames = frames.ok_or(Error::DamagedLog)?;
            // A result is not what was emitted: the code of a node that yields frames runs again beside it.
            match row.invocation.strip_suffix(RESULT) {
                Some(invocation) => frames
                    .into_iter()
                    .for_each(|outputs| past.journal.add_committed(&row.node_id, invocation, outputs)),
                None => past.journal.add_frames(&row.node_id, &row.invocation, frames),
            }
        }
        Ok(past)
    }
}
async fn artifacts_of(db: &Db, job_key: &str) -> Result<Vec<artifacts::Model>, Error> {
    let rows = artifacts::Entity::find()
        .filter(artifacts::Column::JobKey.eq(job_key))
        .order_by_asc(artifacts::Column::NodeId)
        .order_by_asc(artifacts::Column::Idx)
        .all(db.read())
        .await?;
    Ok(rows)
}
async fn frames_of(db: &Db, job_key: &str) -> Result<Vec<frames::Model>, Error> {
    use frames::Column;
    let mut all: Vec<frames::Model> = Vec::new();
    loop {
        let mut rows = frames::Entity::find().filter(Column::JobKey.eq(job_key));
        // After the last row by the primary key: an offset would walk over all of them for each page.
        if let Some(last) = all.last() {
            let (node, invocation) = (last.node_id.as_str(), last.invocation.as_str());
            let same = Condition::all()
                .add(Column::NodeId.eq(node))
                .add(Column::Invocation.gt(invocation));
            rows = rows
                .filter(Column::NodeId.gte(node))
                .filter(Condition::any().add(Column::NodeId.gt(node)).add(same));
        }
        let page = rows
            .order_by_asc(Column::NodeId)
            .order_by_asc(Column::Invocation)
            .limit(ROWS)
            .all(db.read())
            .await?;
        let whole = u64::try_from(page.len()).is_ok_and(|count| count == ROWS);
        all.extend(page);
        if !whole {
            return Ok(all);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use atelier_common::testkit::engines;
    use sea_orm::ActiveValue::Set;

    use super::*;
    use crate::migration::Migrator;

    #[tokio::test]
    async fn frames_are_read_page_by_page_and_each_once() {
        for db in engines().await {
            db.migrate::<Migrator>().await.unwrap();
            // More than two pages, and pages that end within a node as well as between two.
            let most = usize::try_from(2 * ROWS + 1).unwrap();
            let rows: Vec<_> = (0..most)
                .map(|at| frames::ActiveModel {
                    job_key: Set("j".to_owned()),
                    node_id: Set(format!("n{}", at * 4 / most)),
                    invocation: Set(format!("#{at}")),
                    frames: Set(Vec::new()),
                })
                .collect();
            let tx = db.begin().await.unwrap();
            for rows in rows.chunks(500) {
                frames::Entity::insert_many(rows.to_vec())
                    .exec_without_returning(&*tx)
                    .await
                    .unwrap();
            }
            tx.commit().await.unwrap();
            let found = frames_of(&db, "j").await.unwrap();
            let once: HashSet<_> = found.iter().map(|row| &row.invocation).collect();
            assert_eq!((found.len(), once.len()), (most, most), "{}", db.engine());
            assert!(frames_of(&db, "k").await.unwrap().is_empty());
        }
    }
}

//! What the database holds of a run that another process began, as far as the one that takes it up must know it at once: keys
//! and numbers. Results stay where they are until somebody asks for one (`recall.rs`).

use std::{collections::HashMap, sync::Arc};

use atelier_common::db::Db;
use atelier_proto::kernel::v1::JobEvent;
use sea_orm::{ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder, QuerySelect};

use super::{Known, decode, known::mark, stretch, unpublished};
use crate::{
    entity::{artifacts, checkpoints, frames},
    error::Error,
};

/// Keys that are read at a time.
const ROWS: u64 = 2_000;
/// Checkpoints that are read at a time.
const CHECKPOINTS: u64 = 32;

/// What was done of a run.
#[derive(Debug, Default)]
pub struct Past {
    /// The next index of each node that committed artifacts.
    pub next_index: HashMap<Arc<str>, i64>,
    /// What there are results of.
    pub known: Arc<Known>,
    /// Artifacts that were not shown, with what was committed: no more than one batch of a relay left behind.
    pub unshown: Vec<(artifacts::Model, JobEvent)>,
}
impl Past {
    /// Reads it.
    ///
    /// # Errors
    /// The store cannot be read, or is damaged.
    pub async fn read(db: &Db, job_key: &str) -> Result<Self, Error> {
        let mut known = Known::default();
        committed(db, job_key, |node, key| {
            known.committed.insert(mark(&[node, key]));
        })
        .await?;
        kept(db, job_key, |node, key| {
            known.kept.insert(mark(&[node, key]));
        })
        .await?;
        Ok(Self {
            next_index: next_index(db, job_key).await?,
            known: Arc::new(known),
            unshown: unpublished(db, job_key).await?,
        })
    }
}
/// The next index of each node, whose indexes have no gaps.
async fn next_index(db: &Db, job_key: &str) -> Result<HashMap<Arc<str>, i64>, Error> {
    use artifacts::Column;
    let rows: Vec<(String, i64)> = artifacts::Entity::find()
        .select_only()
        .column(Column::NodeId)
        .column_as(Column::Idx.max(), "last")
        .filter(Column::JobKey.eq(job_key))
        .group_by(Column::NodeId)
        .into_tuple()
        .all(db.read())
        .await?;
    Ok(rows
        .into_iter()
        .map(|(node, last)| (node.into(), last + 1))
        .collect())
}
/// Walks over the keys of committed artifacts.
async fn committed(db: &Db, job_key: &str, mut see: impl FnMut(&str, &str)) -> Result<(), Error> {
    use artifacts::Column;
    let mut last: Option<(String, i64)> = None;
    loop {
        let mut rows = artifacts::Entity::find()
            .select_only()
            .columns([Column::NodeId, Column::Idx, Column::Invocation])
            .filter(Column::JobKey.eq(job_key));
        // After the last row by the primary key: an offset would walk over all of them for each page.
        if let Some((node, idx)) = &last {
            let same = Condition::all()
                .add(Column::NodeId.eq(node))
                .add(Column::Idx.gt(*idx));
            rows = rows
                .filter(Column::NodeId.gte(node))
                .filter(Condition::any().add(Column::NodeId.gt(node)).add(same));
        }
        let page: Vec<(String, i64, String)> = rows
            .order_by_asc(Column::NodeId)
            .order_by_asc(Column::Idx)
            .limit(ROWS)
            .into_tuple()
            .all(db.read())
            .await?;
        page.iter().for_each(|(node, _, key)| see(node, key));
        let Some((node, idx, _)) = page.into_iter().last() else {
            return Ok(());
        };
        last = Some((node, idx));
    }
}
/// Walks over the keys of kept frames and results.
async fn kept(db: &Db, job_key: &str, mut see: impl FnMut(&str, &str)) -> Result<(), Error> {
    use frames::Column;
    let mut last: Option<(String, String)> = None;
    loop {
        let mut rows = frames::Entity::find()
            .select_only()
            .columns([Column::NodeId, Column::Invocation])
            .filter(Column::JobKey.eq(job_key));
        if let Some((node, key)) = &last {
            let same = Condition::all()
                .add(Column::NodeId.eq(node))
                .add(Column::Invocation.gt(key));
            rows = rows
                .filter(Column::NodeId.gte(node))
                .filter(Condition::any().add(Column::NodeId.gt(node)).add(same));
        }
        let page: Vec<(String, String)> = rows
            .order_by_asc(Column::NodeId)
            .order_by_asc(Column::Invocation)
            .limit(ROWS)
            .into_tuple()
            .all(db.read())
            .await?;
        page.iter().for_each(|(node, key)| see(node, key));
        last = page.into_iter().last();
        if last.is_none() {
            return Ok(());
        }
    }
}
/// Walks over what was said: the checkpoints by `fold`, and the events after the last of them by `see`.
///
/// # Errors
/// The store cannot be read, or is damaged; what `fold` says.
pub async fn walk(
    db: &Db,
    job_key: &str,
    mut fold: impl FnMut(&[u8]) -> Result<(), Error>,
    mut see: impl FnMut(&JobEvent),
) -> Result<(), Error> {
    use checkpoints::Column;
    let mut covered = 0;
    loop {
        let rows = checkpoints::Entity::find()
            .filter(Column::JobKey.eq(job_key))
            .filter(Column::Seq.gt(covered))
            .order_by_asc(Column::Seq)
            .limit(CHECKPOINTS)
            .all(db.read())
            .await?;
        let Some(last) = rows.last() else { break };
        covered = last.seq;
        rows.iter().try_for_each(|row| fold(&row.state))?;
    }
    // A checkpoint ends where a segment ends.
    let mut from = covered + 1;
    loop {
        let segments = stretch::read(db, job_key, from).await?;
        let Some(last) = segments.last() else {
            return Ok(());
        };
        from = last.last_seq + 1;
        for segment in segments {
            decode(segment.payload)?.iter().for_each(&mut see);
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
    async fn keys_are_read_page_by_page_and_each_once() {
        for db in engines().await {
            db.migrate::<Migrator>().await.unwrap();
            // More than two pages, and pages that end within a node as well as between two.
            let most = usize::try_from(2 * ROWS + 1).unwrap();
            let place = |at: usize| (format!("n{}", at * 4 / most), format!("#{at}"));
            let tx = db.begin().await.unwrap();
            let all: Vec<usize> = (0..most).collect();
            for some in all.chunks(500) {
                let rows = some.iter().map(|at| frames::ActiveModel {
                    job_key: Set("j".to_owned()),
                    node_id: Set(place(*at).0),
                    invocation: Set(place(*at).1),
                    frames: Set(Vec::new()),
                });
                frames::Entity::insert_many(rows)
                    .exec_without_returning(&*tx)
                    .await
                    .unwrap();
                let rows = some.iter().map(|at| artifacts::ActiveModel {
                    job_key: Set("j".to_owned()),
                    node_id: Set(place(*at).0),
                    idx: Set(i64::try_from(*at).unwrap()),
                    invocation: Set(place(*at).1),
                    published: Set(true),
                    event: Set(None),
                    segment: Set(Some(1)),
                });
                artifacts::Entity::insert_many(rows)
                    .exec_without_returning(&*tx)
                    .await
                    .unwrap();
            }
            tx.commit().await.unwrap();
            let about = db.engine();
            let (mut seen, mut marks) = (Vec::new(), HashSet::new());
            kept(&db, "j", |node, key| seen.push((node.to_owned(), key.to_owned())))
                .await
                .unwrap();
            assert_eq!(seen.len(), most, "{about}");
            marks.extend(seen.iter().map(|(node, key)| mark(&[node, key])));
            assert_eq!(marks.len(), most, "{about}");
            let past = Past::read(&db, "j").await.unwrap();
            assert_eq!(
                (&past.known.committed, &past.known.kept),
                (&marks, &marks),
                "{about}"
            );
            let last = i64::try_from(most).unwrap();
            assert_eq!(
                (past.next_index.len(), past.next_index["n3"]),
                (4, last),
                "{about}"
            );
            assert!(Past::read(&db, "k").await.unwrap().known.is_empty());
        }
    }
}

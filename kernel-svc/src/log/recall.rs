//! Results of a run that another process began, looked up when an invocation asks for its own.
//!
//! What was never committed is known by its hash and asks nothing of the database. What was committed is found by two
//! steps: the artifact's row says in which segment of the log it is, and the segment has it. Both read ahead, because a
//! re-run asks in about the order in which the results were made: for so many artifacts there is about one query, not
//! one each. What is held at once is bounded, whatever the run has.

use std::{collections::HashMap, sync::Arc, time::Duration};

use atelier_common::{
    backoff::{self, Exponential},
    db::Db,
};
use atelier_proto::{
    common::v1::{ListValue, MapValue},
    kernel::v1::{JobEvent, job_event::Event as Frame},
    value::{Map, Value},
};
use prost::Message;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::{Known, decode, known::mark, recent::Recent, result_key, stretch};
use crate::{
    entity::{artifacts, frames},
    error::Error,
    run::Recorded,
};

/// Rows of artifacts that are read ahead for a node.
const AHEAD: u64 = 256;
/// Rows that are held at most.
const PLACES: usize = 64 * 256;
/// Results that are held at most, in bytes of the log.
const BYTES: usize = 16 * 1024 * 1024;

/// Looks results up.
pub struct Recall {
    db: Db,
    job_key: String,
    known: Arc<Known>,
    held: Mutex<Held>,
    lost: CancellationToken,
}
/// What is held.
struct Held {
    /// Where the artifacts of nodes are, by node: some that follow each other.
    places: Recent<String, HashMap<u128, Place>>,
    /// Results, by the numbers between which their segments begin.
    results: Recent<(i64, i64), HashMap<(String, i64), MapValue>>,
    /// Queries so far.
    queries: usize,
}
/// Where an artifact is in the log.
#[derive(Debug, Clone, Copy)]
struct Place {
    idx: i64,
    segment: i64,
}
/// How much is held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Load {
    /// Rows of artifacts.
    pub places: usize,
    /// Results.
    pub results: usize,
    /// What the segments weigh that they were in.
    pub bytes: usize,
    /// Queries so far.
    pub queries: usize,
}

impl Recall {
    /// Of a run; `lost` is told when the database does not answer: a run that cannot know what it did must not go on.
    #[must_use]
    pub fn new(db: Db, job_key: String, known: Arc<Known>, lost: CancellationToken) -> Self {
        Self {
            db,
            job_key,
            known,
            held: Mutex::new(Held {
                places: Recent::new(PLACES),
                results: Recent::new(BYTES),
                queries: 0,
            }),
            lost,
        }
    }
    /// How much is held right now.
    pub async fn load(&self) -> Load {
        let held = self.held.lock().await;
        Load {
            places: held.places.values().map(HashMap::len).sum(),
            results: held.results.values().map(HashMap::len).sum(),
            bytes: held.results.weight(),
            queries: held.queries,
        }
    }
    async fn read_committed(&self, node: &str, invocation: &str) -> Result<Option<Map>, Error> {
        let key = result_key(invocation);
        if self.known.kept.contains(&mark(&[node, &key])) {
            return self.read_result(node, &key).await;
        }
        // One reader at a time: what it reads ahead is what the others are about to ask for.
        let mut held = self.held.lock().await;
        let place = match self.place(&mut held, node, invocation).await? {
            Found::Shown(place) => place,
            Found::Unshown(event) => return outputs_of(*event).map(map).transpose(),
            Found::Hidden => {
                held.queries += 1;
                return self.read_result(node, &key).await;
            }
        };
        let at = (node.to_owned(), place.idx);
        let cached = held
            .results
            .find(|(first, last)| (*first..=*last).contains(&place.segment));
        if let Some(results) = cached {
            return results.get(&at).cloned().map(map).transpose();
        }
        let (results, range, bytes) = self.read_segments(place.segment).await?;
        held.queries += 2;
        let found = results.get(&at).cloned();
        held.results.keep(range, results, bytes);
        found.map(map).transpose()
    }
    async fn place(&self, held: &mut Held, node: &str, invocation: &str) -> Result<Found, Error> {
        use artifacts::Column;
        let wanted = mark(&[node, invocation]);
        let cached = held.places.find(|of| of == node);
        if let Some(place) = cached.and_then(|places| places.get(&wanted)) {
            return Ok(Found::Shown(*place));
        }
        held.queries += 2;
        let of_node = || {
            artifacts::Entity::find()
                .filter(Column::JobKey.eq(&self.job_key))
                .filter(Column::NodeId.eq(node))
        };
        let row = of_node()
            .filter(Column::Invocation.eq(invocation))
            .one(self.db.read())
            .await?
            .ok_or(Error::DamagedLog)?;
        if let Some(event) = row.event {
            let event = JobEvent::decode(event.as_slice()).map_err(|_| Error::DamagedLog)?;
            return Ok(Found::Unshown(Box::new(event)));
        }
        let Some(segment) = row.segment else {
            return Ok(Found::Hidden);
        };
        let ahead: Vec<(i64, String, Option<i64>)> = of_node()
            .select_only()
            .columns([Column::Idx, Column::Invocation, Column::Segment])
            .filter(Column::Idx.gt(row.idx))
            .order_by_asc(Column::Idx)
            .limit(AHEAD)
            .into_tuple()
            .all(self.db.read())
            .await?;
        let place = Place {
            idx: row.idx,
            segment,
        };
        let ahead = ahead.into_iter().filter_map(|(idx, key, segment)| {
            Some((
                mark(&[node, &key]),
                Place {
                    idx,
                    segment: segment?,
                },
            ))
        });
        let places: HashMap<u128, Place> = ahead.chain([(wanted, place)]).collect();
        let count = places.len();
        held.places.keep(node.to_owned(), places, count);
        Ok(Found::Shown(place))
    }
    /// The results in some segments from one on, the numbers that these begin with, and what they weigh.
    async fn read_segments(&self, from: i64) -> Result<Segments, Error> {
        let (mut results, mut last, mut bytes) = (HashMap::new(), from, 0);
        for segment in stretch::read(&self.db, &self.job_key, from).await? {
            last = segment.first_seq;
            bytes += segment.payload.len();
            for event in decode(segment.payload)? {
                if let Some(Frame::GenerationComplete(artifact)) = event.event
                    && let Some(outputs) = artifact.outputs
                {
                    results.insert((artifact.node_id, artifact.index), outputs);
                }
            }
        }
        Ok((results, (from, last), bytes))
    }
    /// A kept result, whose event the log does not have.
    async fn read_result(&self, node: &str, key: &str) -> Result<Option<Map>, Error> {
        let frames = self.read_frames(node, key).await?;
        Ok(frames.and_then(|frames| frames.into_iter().next()))
    }
    async fn read_frames(&self, node: &str, key: &str) -> Result<Option<Vec<Map>>, Error> {
        let id = (self.job_key.clone(), node.to_owned(), key.to_owned());
        let row = frames::Entity::find_by_id(id).one(self.db.read()).await?;
        let Some(row) = row else { return Ok(None) };
        let list = ListValue::decode(row.frames.as_slice()).map_err(|_| Error::DamagedLog)?;
        let frames = list.values.into_iter().map(|value| match Value::try_from(value) {
            Ok(Value::Map(map)) => Ok(Arc::unwrap_or_clone(map)),
            _ => Err(Error::DamagedLog),
        });
        frames.collect::<Result<_, _>>().map(Some)
    }
    /// The answer; never, when there is none: whoever listens to `lost` drops the run.
    async fn answer<T, F>(&self, look: impl Fn() -> F + Send + Sync) -> T
    where
        F: Future<Output = Result<T, Error>> + Send,
    {
        let pauses = Exponential::new(Duration::from_millis(100), Duration::from_secs(2)).pauses(10);
        match backoff::retry(pauses.iter(), look, Error::passes).await {
            Ok(answer) => answer,
            Err(error) => {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "what a run did cannot be read"
                );
                self.lost.cancel();
                std::future::pending().await
            }
        }
    }
}
type Segments = (HashMap<(String, i64), MapValue>, (i64, i64), usize);
/// What the row of an artifact says.
enum Found {
    /// Where it is in the log.
    Shown(Place),
    /// It was not shown: this was committed.
    Unshown(Box<JobEvent>),
    /// It was shown to nobody.
    Hidden,
}
#[async_trait::async_trait]
impl Recorded for Recall {
    async fn frames(&self, node: &str, invocation: &str) -> Option<Vec<Map>> {
        if !self.known.kept.contains(&mark(&[node, invocation])) {
            return None;
        }
        self.answer(|| self.read_frames(node, invocation)).await
    }
    async fn committed(&self, node: &str, invocation: &str) -> Option<Map> {
        if !self.known.is_committed(mark(&[node, invocation])) {
            return None;
        }
        self.answer(|| self.read_committed(node, invocation)).await
    }
}
fn outputs_of(event: JobEvent) -> Option<MapValue> {
    match event.event {
        Some(Frame::GenerationComplete(artifact)) => artifact.outputs,
        _ => None,
    }
}
fn map(outputs: MapValue) -> Result<Map, Error> {
    Map::try_from(outputs).map_err(|_| Error::DamagedLog)
}

#[cfg(test)]
mod tests;

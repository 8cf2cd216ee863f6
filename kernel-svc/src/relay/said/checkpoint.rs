//! What was said in a stretch of a log, as bytes for the database.
//!
//! A checkpoint covers the events since the one before it, and no others: its size is bounded by their number, however long
//! the run is, and a run that nobody takes up holds no more than that either. All of them together are what was said.

use std::collections::{HashMap, HashSet};

use atelier_common::db::Db;
use prost::Message;

use super::{Said, Traffic};
use crate::{
    error::Error,
    log::{Checkpoint, walk},
};

/// Events that a checkpoint covers at least. The log after the last one is read when the run is taken up.
const EVENTS: usize = 5_000;

#[derive(Clone, PartialEq, Message)]
struct Saved {
    #[prost(bool, tag = "1")]
    running: bool,
    #[prost(message, repeated, tag = "2")]
    nodes: Vec<Node>,
    /// Hashes, 16 bytes each.
    #[prost(bytes = "vec", tag = "3")]
    warnings: Vec<u8>,
    #[prost(message, repeated, tag = "4")]
    edges: Vec<Edge>,
    /// Hashes.
    #[prost(bytes = "vec", tag = "5")]
    lines: Vec<u8>,
    /// How often, in the order of the hashes.
    #[prost(uint32, repeated, tag = "6")]
    times: Vec<u32>,
    /// Hashes.
    #[prost(bytes = "vec", tag = "7")]
    rows: Vec<u8>,
    #[prost(message, repeated, tag = "8")]
    open: Vec<Display>,
    #[prost(bool, tag = "9")]
    output: bool,
    #[prost(bool, tag = "10")]
    suspended: bool,
    #[prost(string, repeated, tag = "11")]
    closed: Vec<String>,
    #[prost(uint64, tag = "12")]
    events: u64,
}
#[derive(Clone, PartialEq, Message)]
struct Node {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(bool, tag = "2")]
    running: bool,
    #[prost(bool, tag = "3")]
    ended: bool,
}
#[derive(Clone, PartialEq, Message)]
struct Edge {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(int64, tag = "2")]
    count: i64,
    #[prost(bool, tag = "3")]
    completed: bool,
    #[prost(bool, tag = "4")]
    drained: bool,
}
#[derive(Clone, PartialEq, Message)]
struct Display {
    #[prost(string, tag = "1")]
    node: String,
    #[prost(string, tag = "2")]
    output: String,
}

/// What was said of a run that is taken up.
#[derive(Debug, Default)]
pub struct Told {
    /// All of it.
    pub said: Said,
    /// What no checkpoint covers.
    pub since: Said,
}
impl Told {
    /// Reads the checkpoints, and the log after the last of them.
    ///
    /// # Errors
    /// The store cannot be read, or is damaged.
    pub async fn read(db: &Db, job_key: &str) -> Result<Self, Error> {
        let (mut said, mut since) = (Said::default(), Said::default());
        let fold = |state: &[u8]| {
            said = std::mem::take(&mut said).then(Said::decode(state)?);
            Ok(())
        };
        walk(db, job_key, fold, |event| since.note(event)).await?;
        Ok(Self {
            said: said.then(since.clone()),
            since,
        })
    }
}
impl Said {
    /// The checkpoint that is due after the event with a number; what follows begins with nothing.
    pub(in crate::relay) fn checkpoint(&mut self, seq: i64) -> Option<Checkpoint> {
        (self.events >= EVENTS).then(|| Checkpoint {
            seq,
            state: std::mem::take(self).encode(),
        })
    }
    fn encode(self) -> Vec<u8> {
        let Self {
            running,
            nodes,
            warnings,
            edges,
            lines,
            rows,
            open,
            output,
            suspended,
            closed,
            events,
        } = self;
        let node = |(id, (running, ended))| Node { id, running, ended };
        let edge = |(id, traffic): (String, Traffic)| Edge {
            id,
            count: traffic.count,
            completed: traffic.completed,
            drained: traffic.drained,
        };
        let (lines, times): (Vec<u128>, Vec<u32>) = lines.into_iter().unzip();
        let saved = Saved {
            running,
            nodes: nodes.into_iter().map(node).collect(),
            warnings: bytes(warnings),
            edges: edges.into_iter().map(edge).collect(),
            lines: bytes(lines),
            times,
            rows: bytes(rows),
            open: open
                .into_iter()
                .map(|(node, output)| Display { node, output })
                .collect(),
            output,
            suspended,
            closed: closed.into_iter().collect(),
            events: u64::try_from(events).unwrap_or(u64::MAX),
        };
        saved.encode_to_vec()
    }
    fn decode(state: &[u8]) -> Result<Self, Error> {
        let Saved {
            running,
            nodes,
            warnings,
            edges,
            lines,
            times,
            rows,
            open,
            output,
            suspended,
            closed,
            events,
        } = Saved::decode(state).map_err(|_| Error::DamagedLog)?;
        let edge = |edge: Edge| {
            let traffic = Traffic {
                count: edge.count,
                completed: edge.completed,
                drained: edge.drained,
            };
            (edge.id, traffic)
        };
        let lines: Vec<u128> = marks(&lines)?;
        if lines.len() != times.len() {
            return Err(Error::DamagedLog);
        }
        Ok(Self {
            running,
            nodes: nodes
                .into_iter()
                .map(|node| (node.id, (node.running, node.ended)))
                .collect(),
            warnings: marks(&warnings)?,
            edges: edges.into_iter().map(edge).collect(),
            lines: lines.into_iter().zip(times).collect::<HashMap<_, _>>(),
            rows: marks::<HashSet<_>>(&rows)?,
            open: open.into_iter().map(|open| (open.node, open.output)).collect(),
            output,
            suspended,
            closed: closed.into_iter().collect(),
            events: usize::try_from(events).unwrap_or(usize::MAX),
        })
    }
}
fn bytes(marks: impl IntoIterator<Item = u128>) -> Vec<u8> {
    marks.into_iter().flat_map(u128::to_le_bytes).collect()
}
fn marks<C: FromIterator<u128>>(bytes: &[u8]) -> Result<C, Error> {
    let (marks, rest) = bytes.as_chunks::<16>();
    if rest.is_empty() {
        Ok(marks.iter().copied().map(u128::from_le_bytes).collect())
    } else {
        Err(Error::DamagedLog)
    }
}

#[cfg(test)]
mod tests;

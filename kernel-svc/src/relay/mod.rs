//! Between the actors and everybody else: the only code that knows `job_id`, `seq` and `index`.
//!
//! Bare events come in; what subscribers are not meant to see is left out; the rest is stamped, committed to the log, and
//! only then shown. An artifact is committed first, which gives it its index under its invocation key; then its media are
//! saved; then it is visible. What happens in order stays in order.

mod convert;
mod filter;
mod media;
mod prepare;
mod said;
mod save;
pub(crate) mod supervision;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::{Duration, Instant},
};

use atelier_common::{
    backoff::{self, Exponential},
    clock::Clock,
    db::GroupCommit,
};
use atelier_proto::{
    common::v1::ListValue,
    kernel::v1::{Intervention, JobEvent, RunOptions, job_event::Event as Frame},
    time,
    value::{Map, Value},
};
use futures_util::{StreamExt, stream};
use prost::Message;

pub use said::{Said, Told};
pub use save::Saver;

use crate::{
    error::Error,
    event::{Event, EventReceiver},
    log::{self, Append, ArtifactRow, Checkpoint, FramesRow, JobPatch, Known, Live, Past, Segment},
    node::Registry,
};
use convert::Kept;
use media::KnownMedia;
use prepare::{Pending, hidden_result, merge, recorded};

/// Events that are committed together at most.
pub const BATCH: usize = 512;
/// What they may weigh together, in bytes, roughly; one that is heavier goes alone. They are one blob of the log.
const BATCH_BYTES: usize = 4 * 1024 * 1024;
/// Artifacts of one run whose media are saved at the same time at most.
const SAVES: usize = 4;
/// Frames of one invocation that are kept for a later process, in bytes at most.
const MAX_FRAMES_BYTES: usize = 8 * 1024 * 1024;
/// Interventions that the last event of a run lists.
const MAX_INTERVENTIONS: usize = 1_000;

/// Which run a relay works for.
#[derive(Debug, Clone)]
pub struct Identity {
    /// Internal key.
    pub job_key: String,
    /// The id that its client knows.
    pub job_id: String,
    /// The workflow it belongs to.
    pub workflow_id: Option<String>,
    /// The instance that drives it.
    pub owner: String,
}

/// The relay of one run.
pub struct Relay {
    identity: Identity,
    options: RunOptions,
    registry: Arc<Registry>,
    commits: GroupCommit<Append, (), Error>,
    live: Arc<Live>,
    saver: Saver,
    clock: Clock,
    started: Instant,
    seq: i64,
    next_index: HashMap<Arc<str>, i64>,
    /// Artifacts that this process committed, by the hash of node and invocation.
    committed: HashSet<u128>,
    /// The same of an earlier process.
    past: Arc<Known>,
    known: KnownMedia,
    output_shown: bool,
    /// What a supervisor changed; the first of them.
    interventions: Vec<Intervention>,
    ended: bool,
    /// What an earlier process said already.
    said: Said,
    /// What was said since the last checkpoint.
    since: Said,
    /// Artifacts that an earlier process committed and did not show, by the same hash.
    unshown: HashMap<u128, Pending>,
    /// Frames of finished invocations that are committed with the next append.
    frames: Vec<(Arc<str>, String, ListValue)>,
}

impl Relay {
    /// A relay for a run whose log ends at `seq`.
    #[expect(
        clippy::too_many_arguments,
        reason = "each is a different part of the process"
    )]
    #[must_use]
    pub fn new(
        identity: Identity,
        options: RunOptions,
        registry: Arc<Registry>,
        commits: GroupCommit<Append, (), Error>,
        live: Arc<Live>,
        saver: Saver,
        clock: Clock,
        seq: i64,
    ) -> Self {
        Self {
            identity,
            options,
            registry,
            commits,
            live,
            saver,
            clock,
            started: Instant::now(),
            seq,
            next_index: HashMap::new(),
            committed: HashSet::new(),
            past: Arc::default(),
            known: KnownMedia::default(),
            output_shown: false,
            interventions: Vec::new(),
            ended: false,
            said: Said::default(),
            since: Said::default(),
            unshown: HashMap::new(),
            frames: Vec::new(),
        }
    }
    /// Goes on where the relay of an earlier process stopped: indexes continue, and nothing is said twice.
    #[must_use]
    pub fn after(mut self, past: Past, told: Told) -> Self {
        self.next_index = past.next_index;
        self.past = past.known;
        for (row, event) in past.unshown {
            let mark = log::mark(&[&row.node_id, &row.invocation]);
            self.unshown
                .extend(recorded(row, event).map(|pending| (mark, pending)));
        }
        self.output_shown = told.said.shows_output();
        Self {
            said: told.said,
            since: told.since,
            ..self
        }
    }
    /// Takes events until the engine is done. Returns when all of them are durable and shown.
    ///
    /// # Errors
    /// The store refused, or another instance drives the run.
    pub async fn pump(mut self, mut events: EventReceiver) -> Result<(), Error> {
        let mut batch = Vec::with_capacity(BATCH);
        while let Some(event) = events.recv().await {
            let mut bytes = weight(&event);
            batch.push(event);
            while batch.len() < BATCH
                && bytes < BATCH_BYTES
                && let Some(event) = events.try_recv()
            {
                bytes += weight(&event);
                batch.push(event);
            }
            self.commit(&mut batch).await?;
        }
        Ok(())
    }
    /// Publishes artifacts that an earlier process committed without showing them.
    ///
    /// # Errors
    /// As [`Relay::pump`].
    pub async fn publish_recorded(
        &mut self,
        rows: Vec<(crate::entity::artifacts::Model, JobEvent)>,
    ) -> Result<(), Error> {
        let pending = rows.into_iter().filter_map(|(row, event)| recorded(row, event));
        self.publish(pending.collect()).await
    }
    /// Commits a batch and shows it.
    ///
    /// # Errors
    /// As [`Relay::pump`].
    pub async fn commit(&mut self, batch: &mut Vec<Event>) -> Result<(), Error> {
        let mut pending = Vec::with_capacity(batch.len());
        for event in batch.drain(..) {
            self.prepare(event, &mut pending);
        }
        self.record(&mut pending).await?;
        self.publish(pending).await
    }
    /// Commits the artifacts whose media must be saved before anyone sees them, and the others of their nodes: a process
    /// that dies meanwhile must not leave a gap among the indexes of a node.
    async fn record(&self, pending: &mut [Pending]) -> Result<(), Error> {
        let commits = pending.iter().filter_map(|pending| pending.artifact.as_ref());
        let saving: HashSet<Arc<str>> = commits
            .filter(|commit| commit.save && !commit.recorded)
            .map(|commit| Arc::clone(&commit.node_id))
            .collect();
        let mut artifacts = Vec::new();
        for Pending { frame, artifact, .. } in pending {
            let commit = artifact
                .as_mut()
                .filter(|commit| !commit.recorded && saving.contains(&commit.node_id));
            let Some(commit) = commit else { continue };
            let event = JobEvent {
                event: Some(frame.clone()),
                ..JobEvent::default()
            };
            artifacts.push(commit.row(Some(event.encode_to_vec())));
            commit.recorded = true;
        }
        if artifacts.is_empty() {
            return Ok(());
        }
        self.append(None, artifacts, Vec::new(), Vec::new(), None, JobPatch::default())
            .await
    }
    /// What finished invocations emitted, with references for media that are stored.
    fn frames_rows(&mut self) -> Vec<FramesRow> {
        let frames = std::mem::take(&mut self.frames).into_iter();
        let rows = frames.filter_map(|(node_id, invocation, mut list)| {
            self.known.apply_to(&mut list);
            // Media that were not stored would be kept twice: such an invocation runs again.
            (list.encoded_len() <= MAX_FRAMES_BYTES).then(|| FramesRow {
                node_id: node_id.to_string(),
                invocation,
                frames: list.encode_to_vec(),
            })
        });
        rows.collect()
    }
    /// Saves media, stamps, commits and shows.
    async fn publish(&mut self, pending: Vec<Pending>) -> Result<(), Error> {
        let pending = self.save(pending).await;
        let (mut events, mut kept) = (
            Vec::with_capacity(pending.len()),
            Vec::with_capacity(pending.len()),
        );
        let (mut artifacts, mut published) = (Vec::new(), Vec::new());
        let mut patch = JobPatch::default();
        let now = time::proto_from_micros(self.clock.now().timestamp_micros());
        let first_seq = self.seq + 1;
        for Pending {
            mut frame,
            kept: keep,
            artifact,
            patch: change,
        } in pending
        {
            self.known.apply(&mut frame);
            if !filter::detail_allows(&frame, &self.options) {
                // What a run's subscribers did not ask for is committed all the same.
                if let Some(commit) = artifact {
                    if let Frame::GenerationComplete(artifact) = frame {
                        self.frames.extend(hidden_result(&commit, artifact));
                    }
                    commit.file(&mut artifacts, &mut published);
                }
                continue;
            }
            self.seq += 1;
            let event = Arc::new(JobEvent {
                seq: self.seq,
                job_id: self.identity.job_id.clone(),
                workflow_id: self.identity.workflow_id.clone(),
                published_at: Some(now),
                event: Some(frame),
            });
            if let Some(commit) = artifact {
                commit.file(&mut artifacts, &mut published);
            }
            if let Some(change) = change {
                patch = merge(patch, change, &event);
            }
            match keep {
                Kept::All => kept.push(Arc::clone(&event)),
                Kept::Instead(frame) => kept.push(Arc::new(JobEvent {
                    event: Some(*frame),
                    ..JobEvent::clone(&event)
                })),
                Kept::Nothing => {}
            }
            events.push(event);
        }
        let frames = self.frames_rows();
        if events.is_empty() && artifacts.is_empty() && published.is_empty() && frames.is_empty() {
            return Ok(());
        }
        let ended = patch.ends();
        let segment = (!events.is_empty()).then(|| Segment {
            first_seq,
            last_seq: self.seq,
            event_count: i64::try_from(kept.len()).unwrap_or(i64::MAX),
            payload: log::encode(kept.iter().map(AsRef::as_ref)),
        });
        kept.iter().for_each(|event| self.since.note(event));
        let checkpoint = self.since.checkpoint(self.seq);
        self.append(segment, artifacts, published, frames, checkpoint, patch)
            .await?;
        self.live.publish(&events, ended);
        metrics::counter!(crate::metrics::EVENTS).increment(u64::try_from(events.len()).unwrap_or(0));
        Ok(())
    }
    /// Has the media of artifacts saved, several at a time, in order.
    async fn save(&mut self, pending: Vec<Pending>) -> Vec<Pending> {
        if !pending
            .iter()
            .any(|pending| pending.artifact.as_ref().is_some_and(|commit| commit.save))
        {
            return pending;
        }
        let (saver, identity, registry) = (&self.saver, &self.identity, &self.registry);
        let mut saved = stream::iter(pending)
            .map(|mut pending| async move {
                let mut learned = Vec::new();
                if let (Frame::GenerationComplete(artifact), Some(commit)) =
                    (&mut pending.frame, &pending.artifact)
                    && commit.save
                {
                    learned = saver
                        .save(identity, artifact, registry.meta(&artifact.node_type))
                        .await;
                }
                (pending, learned)
            })
            .buffered(SAVES);
        let mut out = Vec::new();
        while let Some((pending, learned)) = saved.next().await {
            out.push(pending);
            self.known.learn(learned);
        }
        out
    }
    async fn append(
        &self,
        segment: Option<Segment>,
        artifacts: Vec<ArtifactRow>,
        published: Vec<(String, i64)>,
        frames: Vec<FramesRow>,
        checkpoint: Option<Checkpoint>,
        patch: JobPatch,
    ) -> Result<(), Error> {
        let append = Append {
            job_key: self.identity.job_key.clone(),
            owner: self.identity.owner.clone(),
            segment,
            artifacts,
            published,
            frames,
            checkpoint,
            patch,
        };
        // A run must not be lost to a database that is away for a moment. An append that had been done after all is
        // refused by its own keys when it is done again.
        let pauses = Exponential::new(Duration::from_millis(100), Duration::from_secs(2)).pauses(10);
        backoff::retry(
            pauses.iter(),
            || self.commits.submit(append.clone()),
            Error::passes,
        )
        .await
    }
}
/// What an event weighs, roughly: the values in it.
fn weight(event: &Event) -> usize {
    let map = |map: &Map| map.values().map(Value::weight).sum::<usize>();
    match event {
        Event::Artifact { outputs, .. } => map(outputs),
        Event::Job {
            outputs: Some(outputs),
            ..
        } => map(outputs),
        Event::Node {
            result: Some(result), ..
        } => map(result),
        Event::Output { value, .. } => value.weight(),
        Event::Frames { frames, .. } => frames.iter().map(map).sum(),
        Event::Job { .. }
        | Event::Node { .. }
        | Event::Queued { .. }
        | Event::Edge { .. }
        | Event::Note { .. }
        | Event::Supervision { .. } => 0,
    }
}

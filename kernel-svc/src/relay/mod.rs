//! Between the actors and everybody else: the only code that knows `job_id`, `seq` and `index`.
//!
//! Bare events come in; what subscribers are not meant to see is left out; the rest is stamped, committed to the log, and
//! only then shown. An artifact is committed first, which gives it its index under its invocation key; then its media are
//! saved; then it is visible. What happens in order stays in order.

mod convert;
mod filter;
mod media;
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
    common::v1::{ListValue, MapValue, Value as WireValue, value::Kind},
    kernel::v1::{
        GenerationComplete, Intervention, JobEvent, JobStatus, RunOptions, job_event::Event as Frame,
    },
    time,
    value::{Map, Value},
};
use futures_util::{StreamExt, stream};
use prost::Message;
use tokio::sync::mpsc;

pub use said::{Said, Told};
pub use save::Saver;

use crate::{
    error::Error,
    event::Event,
    jobs::status_name,
    log::{self, Append, ArtifactRow, Checkpoint, FramesRow, JobPatch, Known, Live, Past, Segment},
    node::Registry,
};
use convert::{Converted, Kept};
use media::KnownMedia;

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

/// A frame on its way: not yet numbered.
struct Pending {
    frame: Frame,
    kept: Kept,
    artifact: Option<Commit>,
    patch: Option<JobPatch>,
}
/// What is committed with a frame.
struct Commit {
    node_id: Arc<str>,
    invocation: String,
    idx: i64,
    save: bool,
    /// Its row is in the database already.
    recorded: bool,
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
    pub async fn pump(mut self, mut events: mpsc::Receiver<Event>) -> Result<(), Error> {
        let mut batch = Vec::with_capacity(BATCH);
        while let Some(event) = events.recv().await {
            let mut bytes = weight(&event);
            batch.push(event);
            while batch.len() < BATCH
                && bytes < BATCH_BYTES
                && let Ok(event) = events.try_recv()
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
    /// Turns an event into frames: none when subscribers are not meant to see it.
    fn prepare(&mut self, event: Event, pending: &mut Vec<Pending>) {
        if self.ended {
            return;
        }
        if let Event::Frames {
            node,
            invocation,
            frames,
        } = event
        {
            let values = frames.iter().map(|frame| Value::map(frame.clone()));
            let list = ListValue {
                values: values.map(|value| (&value).into()).collect(),
            };
            self.frames.push((Arc::clone(&node.id), invocation, list));
            return;
        }
        let Some(event) = self.said.passes(event) else {
            return;
        };
        let mark = if let Event::Artifact { node, invocation, .. } = &event {
            Some(log::mark(&[&node.id, invocation]))
        } else {
            None
        };
        if let Some(mark) = mark.filter(|mark| self.past.is_committed(*mark) || self.committed.contains(mark))
        {
            // In its place among the other events of its node.
            pending.extend(self.unshown.remove(&mark));
            return;
        }
        if !self.unshown.is_empty() && job_patch(&event, 0).is_some_and(|patch| patch.ends()) {
            let mut left: Vec<Pending> = std::mem::take(&mut self.unshown).into_values().collect();
            left.sort_by_key(|pending| pending.artifact.as_ref().map(|commit| commit.idx));
            pending.extend(left);
        }
        if !filter::passes(&event, &self.registry) {
            return;
        }
        if let Event::Job {
            status,
            outputs: Some(outputs),
            ..
        } = &event
            && *status == JobStatus::Completed
            && !self.output_shown
        {
            let guessed = convert::guessed_outputs(outputs);
            pending.extend(
                guessed
                    .into_iter()
                    .map(|update| plain(Frame::OutputUpdate(update))),
            );
        }
        let artifact = mark.and_then(|mark| self.allocate(&event, mark));
        let elapsed = self.started.elapsed();
        let patch = job_patch(&event, self.clock.now().timestamp_micros());
        self.ended = patch.as_ref().is_some_and(JobPatch::ends);
        self.note_intervention(&event);
        for Converted { mut frame, kept } in
            convert::frames(event, artifact.as_ref().map(|commit| commit.idx), elapsed)
        {
            self.output_shown |= matches!(frame, Frame::OutputUpdate(_));
            if let Frame::JobUpdate(update) = &mut frame
                && self.ended
            {
                update.interventions = std::mem::take(&mut self.interventions);
            }
            pending.push(Pending {
                frame,
                kept,
                artifact: None,
                patch: None,
            });
        }
        if let Some(last) = pending.last_mut() {
            if artifact.is_some() {
                last.artifact = artifact;
            }
            if patch.is_some() {
                last.patch = patch;
            }
        }
    }
    /// Remembers what a supervisor changed, for the last event of the run.
    fn note_intervention(&mut self, event: &Event) {
        if let Event::Supervision {
            escalation,
            decision: Some(decision),
            ..
        } = event
            && self.interventions.len() < MAX_INTERVENTIONS
        {
            self.interventions
                .extend(supervision::intervention(escalation, decision));
        }
    }
    /// Gives an artifact its index.
    fn allocate(&mut self, event: &Event, mark: u128) -> Option<Commit> {
        let Event::Artifact {
            node,
            invocation,
            outputs,
            ..
        } = event
        else {
            return None;
        };
        let next = self.next_index.entry(Arc::clone(&node.id)).or_insert(0);
        let idx = *next;
        *next += 1;
        self.committed.insert(mark);
        let save = self
            .saver
            .wanted(&self.options, self.registry.meta(&node.node_type), outputs);
        Some(Commit {
            node_id: Arc::clone(&node.id),
            invocation: invocation.clone(),
            idx,
            save,
            recorded: false,
        })
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
impl Commit {
    fn row(&self, event: Option<Vec<u8>>) -> ArtifactRow {
        let Self {
            node_id,
            invocation,
            idx,
            save: _,
            recorded: _,
        } = self;
        ArtifactRow {
            node_id: node_id.to_string(),
            idx: *idx,
            invocation: invocation.clone(),
            event,
        }
    }
    /// Where the commit goes in the append that shows it.
    fn file(self, artifacts: &mut Vec<ArtifactRow>, published: &mut Vec<(String, i64)>) {
        if self.recorded {
            published.push((self.node_id.to_string(), self.idx));
        } else {
            artifacts.push(self.row(None));
        }
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
/// The result of an artifact whose event the log does not keep.
fn hidden_result(commit: &Commit, artifact: GenerationComplete) -> Option<(Arc<str>, String, ListValue)> {
    let values = vec![WireValue {
        kind: Some(Kind::MapValue(artifact.outputs?)),
    }];
    let (node, invocation) = (Arc::clone(&commit.node_id), log::result_key(&commit.invocation));
    Some((node, invocation, ListValue { values }))
}
/// An artifact that was committed before it could be shown.
fn recorded(row: crate::entity::artifacts::Model, event: JobEvent) -> Option<Pending> {
    Some(Pending {
        frame: event.event?,
        kept: Kept::All,
        artifact: Some(Commit {
            node_id: row.node_id.into(),
            invocation: row.invocation,
            idx: row.idx,
            save: true,
            recorded: true,
        }),
        patch: None,
    })
}
fn plain(frame: Frame) -> Pending {
    Pending {
        frame,
        kept: Kept::All,
        artifact: None,
        patch: None,
    }
}
/// What an event changes on the run's row.
fn job_patch(event: &Event, now: i64) -> Option<JobPatch> {
    let Event::Job {
        status,
        error,
        error_code,
        outputs: _,
        issues,
        suspension,
    } = event
    else {
        return None;
    };
    let started = *status == JobStatus::Running;
    let ended = matches!(
        status,
        JobStatus::Completed | JobStatus::Failed | JobStatus::Cancelled
    );
    Some(JobPatch {
        status: Some(status_name(*status)),
        error: error.as_deref().map(convert::clean_error),
        error_code: if issues.is_empty() {
            error_code.as_deref().map(convert::clean_error)
        } else {
            Some(convert::INVALID_INPUT.to_owned())
        },
        issues: (!issues.is_empty()).then(|| convert::issues_json(issues)),
        outputs: None,
        suspension: suspension
            .as_deref()
            .map(|suspension| MapValue::from(&convert::suspension(suspension)).encode_to_vec()),
        started_at: started.then_some(now),
        finished_at: ended.then_some(now),
    })
}
/// Joins the changes of one batch; the outputs are taken from the event as it is shown, with references for bytes.
fn merge(before: JobPatch, change: JobPatch, event: &JobEvent) -> JobPatch {
    let outputs = match &event.event {
        Some(Frame::JobUpdate(update)) => update.result.as_ref().map(Message::encode_to_vec),
        _ => None,
    };
    JobPatch {
        status: change.status.or(before.status),
        error: change.error.or(before.error),
        error_code: change.error_code.or(before.error_code),
        issues: change.issues.or(before.issues),
        outputs: outputs.or(before.outputs),
        suspension: change.suspension.or(before.suspension),
        started_at: change.started_at.or(before.started_at),
        finished_at: change.finished_at.or(before.finished_at),
    }
}

//! From an event to frames that can be committed: what an artifact gets for an index, what a frame changes on the row of its
//! run. Nothing here waits; committing and showing is the relay's (`super`).

use std::sync::Arc;

use atelier_proto::{
    common::v1::{ListValue, MapValue, Value as WireValue, value::Kind},
    kernel::v1::{GenerationComplete, JobEvent, JobStatus, job_event::Event as Frame},
    value::Value,
};
use prost::Message;

use super::{
    MAX_INTERVENTIONS, Relay,
    convert::{self, Converted, Kept},
    filter, supervision,
};
use crate::{
    event::Event,
    jobs::status_name,
    log::{self, ArtifactRow, JobPatch},
    run::Suspension,
};

/// A frame on its way: not yet numbered.
pub(super) struct Pending {
    pub frame: Frame,
    pub kept: Kept,
    pub artifact: Option<Commit>,
    pub patch: Option<JobPatch>,
}
/// What is committed with a frame.
pub(super) struct Commit {
    pub node_id: Arc<str>,
    pub invocation: String,
    pub idx: i64,
    pub save: bool,
    /// Its row is in the database already.
    pub recorded: bool,
}

impl Commit {
    pub fn row(&self, event: Option<Vec<u8>>) -> ArtifactRow {
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
    pub fn file(self, artifacts: &mut Vec<ArtifactRow>, published: &mut Vec<(String, i64)>) {
        if self.recorded {
            published.push((self.node_id.to_string(), self.idx));
        } else {
            artifacts.push(self.row(None));
        }
    }
}
impl Relay {
    /// Turns an event into frames: none when subscribers are not meant to see it.
    pub(super) fn prepare(&mut self, event: Event, pending: &mut Vec<Pending>) {
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
}
/// The result of an artifact whose event the log does not keep.
pub(super) fn hidden_result(
    commit: &Commit,
    artifact: GenerationComplete,
) -> Option<(Arc<str>, String, ListValue)> {
    let values = vec![WireValue {
        kind: Some(Kind::MapValue(artifact.outputs?)),
    }];
    let (node, invocation) = (Arc::clone(&commit.node_id), log::result_key(&commit.invocation));
    Some((node, invocation, ListValue { values }))
}
/// An artifact that was committed before it could be shown.
pub(super) fn recorded(row: crate::entity::artifacts::Model, event: JobEvent) -> Option<Pending> {
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
pub(super) fn plain(frame: Frame) -> Pending {
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
        suspensions,
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
        suspension: convert::kept_suspensions(suspensions).map(|kept| MapValue::from(&kept).encode_to_vec()),
        resume_at: suspensions
            .iter()
            .filter_map(Suspension::resume_at)
            .min()
            .map(|at| at.timestamp_micros()),
        awaits_events: suspensions.iter().any(Suspension::is_trigger),
        started_at: started.then_some(now),
        finished_at: ended.then_some(now),
    })
}
/// Joins the changes of one batch; the outputs are taken from the event as it is shown, with references for bytes.
pub(super) fn merge(before: JobPatch, change: JobPatch, event: &JobEvent) -> JobPatch {
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
        resume_at: change.resume_at.or(before.resume_at),
        awaits_events: change.awaits_events || before.awaits_events,
        started_at: change.started_at.or(before.started_at),
        finished_at: change.finished_at.or(before.finished_at),
    }
}

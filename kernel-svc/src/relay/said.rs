//! What an earlier process of a run said already, so that the one that takes it up says each thing once.
//!
//! Filled from the log. Lifecycle of the run, of nodes and of edges, rows of providers and log lines are each said once. A
//! display that was left in the middle begins anew with its first piece. Artifacts are not looked at here: the relay knows
//! them by their invocation.

use std::collections::{HashMap, HashSet};

use atelier_proto::kernel::v1::{
    Disposition, EdgeStatus, JobEvent, JobStatus, NodeStatus, job_event::Event as Frame,
};

use crate::event::{Event, Note};

/// What was said. Empty for a new run.
#[derive(Debug, Default)]
pub struct Said {
    running: bool,
    /// Nodes that said they run, and those that said how they ended.
    nodes: HashMap<String, (bool, bool)>,
    warnings: HashSet<(String, String)>,
    edges: HashMap<String, Traffic>,
    /// Lines of logs, and how often each was said.
    lines: HashMap<(String, String), usize>,
    rows: HashSet<(String, i32)>,
    /// Displays with pieces that no artifact followed.
    open: HashSet<(String, String)>,
    output: bool,
}
#[derive(Debug, Default)]
struct Traffic {
    count: i64,
    completed: bool,
    drained: bool,
}
impl Said {
    /// Takes note of an event of the log.
    pub fn note(&mut self, event: &JobEvent) {
        match event.event.as_ref() {
            Some(Frame::JobUpdate(update)) => {
                self.running |= update.status() == JobStatus::Running;
                if update.status() == JobStatus::Suspended {
                    // The run goes on after that: whoever watches sees a second leg.
                    *self = Self {
                        output: self.output,
                        rows: std::mem::take(&mut self.rows),
                        ..Self::default()
                    };
                }
            }
            Some(Frame::NodeUpdate(update)) => {
                let node = self.nodes.entry(update.node_id.clone()).or_default();
                match update.status() {
                    NodeStatus::Running => node.0 = true,
                    NodeStatus::Completed | NodeStatus::Error | NodeStatus::Suspended => node.1 = true,
                    NodeStatus::Warning | NodeStatus::Unspecified => {
                        let text = update.error.clone().unwrap_or_default();
                        self.warnings.insert((update.node_id.clone(), text));
                    }
                }
            }
            Some(Frame::GenerationComplete(artifact)) => {
                self.open.retain(|(node, _)| *node != artifact.node_id);
            }
            Some(Frame::OutputUpdate(update)) => {
                self.output = true;
                if update.disposition() != Disposition::Replace {
                    self.open
                        .insert((update.node_id.clone(), update.output_name.clone()));
                }
            }
            Some(Frame::EdgeUpdate(update)) => {
                let edge = self.edges.entry(update.edge_id.clone()).or_default();
                edge.count = edge.count.max(update.counter.unwrap_or(0));
                edge.completed |= update.status() == EdgeStatus::Completed;
                edge.drained |= update.status() == EdgeStatus::Drained;
            }
            Some(Frame::LogUpdate(line)) => {
                let line = (line.node_id.clone(), line.content.clone());
                *self.lines.entry(line).or_default() += 1;
            }
            Some(Frame::Prediction(prediction)) => {
                if let Some(row) = &prediction.generation {
                    self.rows.insert((row.generation_id.clone(), row.status));
                }
            }
            Some(
                Frame::NodeProgress(_)
                | Frame::Chunk(_)
                | Frame::Gap(_)
                | Frame::SupervisorEscalation(_)
                | Frame::SupervisorDecision(_),
            )
            | None => {}
        }
    }
    /// Whether any display value was shown.
    pub(super) fn shows_output(&self) -> bool {
        self.output
    }
    /// The event if it is news, perhaps changed; `None` when it was said before.
    pub(super) fn passes(&mut self, mut event: Event) -> Option<Event> {
        let news = match &mut event {
            Event::Job { status, .. } => *status != JobStatus::Running || !self.running,
            // A run that was under way does not tell that it waits for a slot again.
            Event::Queued { .. } => !self.running,
            Event::Node {
                node, status, error, ..
            } => {
                let said = self.nodes.get(&*node.id).copied().unwrap_or_default();
                match status {
                    NodeStatus::Running => !said.0,
                    NodeStatus::Completed | NodeStatus::Error | NodeStatus::Suspended => !said.1,
                    NodeStatus::Warning | NodeStatus::Unspecified => {
                        self.warnings.is_empty()
                            || !self
                                .warnings
                                .contains(&(node.id.to_string(), error.clone().unwrap_or_default()))
                    }
                }
            }
            Event::Edge {
                edge_id,
                status,
                counter,
            } => self.edges.get(&**edge_id).is_none_or(|edge| match status {
                EdgeStatus::Active | EdgeStatus::Unspecified => {
                    !edge.completed && counter.unwrap_or(0) > edge.count
                }
                EdgeStatus::Completed => !edge.completed,
                EdgeStatus::Drained => !edge.drained,
            }),
            Event::Output {
                node,
                output_name,
                disposition,
                ..
            } => {
                if !self.open.is_empty() && self.open.remove(&(node.id.to_string(), output_name.to_string()))
                {
                    *disposition = Disposition::Replace;
                }
                true
            }
            Event::Note { node, note } => match note {
                Note::Log { content, .. } if !self.lines.is_empty() => {
                    let line = (node.id.to_string(), super::convert::clean_error(content));
                    match self.lines.get_mut(&line) {
                        Some(left) if *left > 0 => {
                            *left -= 1;
                            false
                        }
                        _ => true,
                    }
                }
                Note::Prediction(row) if !self.rows.is_empty() => {
                    !self.rows.contains(&(row.generation_id.clone(), row.status))
                }
                Note::Log { .. } | Note::Prediction(_) | Note::Progress { .. } | Note::Chunk { .. } => true,
            },
            Event::Artifact { .. } | Event::Frames { .. } | Event::Supervision { .. } => true,
        };
        news.then_some(event)
    }
}

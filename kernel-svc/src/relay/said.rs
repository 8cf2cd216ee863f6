//! What an earlier process of a run said already, so that the one that takes it up says each thing once.
//!
//! Filled from the log, or from checkpoints of it (`checkpoint.rs`). Lifecycle of the run, of nodes and of edges, rows of
//! providers and log lines are each said once. A display that was left in the middle begins anew with its first piece.
//! Artifacts are not looked at here: the relay knows them by their invocation.
//!
//! What is there once for each node and edge of the graph is held as it is. Texts and rows of providers may be there for each
//! item: they are held as hashes, because what runs again may say any of them again.

mod checkpoint;

pub use checkpoint::Told;

use std::collections::{HashMap, HashSet};

use atelier_proto::kernel::v1::{
    Disposition, EdgeStatus, JobEvent, JobStatus, NodeStatus, job_event::Event as Frame,
};

use crate::{
    event::{Event, Note},
    log::mark,
};

/// What was said. Empty for a new run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Said {
    running: bool,
    /// Nodes that said they run, and those that said how they ended.
    nodes: HashMap<String, (bool, bool)>,
    /// Warnings, by node and text.
    warnings: HashSet<u128>,
    edges: HashMap<String, Traffic>,
    /// Lines of logs by node and text, and how often each was said.
    lines: HashMap<u128, u32>,
    /// Rows of providers by id and status.
    rows: HashSet<u128>,
    /// Displays with pieces that no artifact followed.
    open: HashSet<(String, String)>,
    output: bool,
    /// What changes what was said before the first event in here: the run was suspended,
    suspended: bool,
    /// and these nodes committed artifacts.
    closed: HashSet<String>,
    /// Events in here.
    events: usize,
}
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Traffic {
    count: i64,
    completed: bool,
    drained: bool,
}
impl Said {
    /// Takes note of an event of the log.
    pub fn note(&mut self, event: &JobEvent) {
        self.events += 1;
        match event.event.as_ref() {
            Some(Frame::JobUpdate(update)) => {
                self.running |= update.status() == JobStatus::Running;
                if update.status() == JobStatus::Suspended {
                    self.suspend();
                }
            }
            Some(Frame::NodeUpdate(update)) => {
                let node = self.nodes.entry(update.node_id.clone()).or_default();
                match update.status() {
                    NodeStatus::Running => node.0 = true,
                    NodeStatus::Completed | NodeStatus::Error | NodeStatus::Suspended => node.1 = true,
                    NodeStatus::Warning | NodeStatus::Unspecified => {
                        let text = update.error.as_deref().unwrap_or_default();
                        self.warnings.insert(mark(&[&update.node_id, text]));
                    }
                }
            }
            Some(Frame::GenerationComplete(artifact)) => {
                self.open.retain(|(node, _)| *node != artifact.node_id);
                if !self.closed.contains(&artifact.node_id) {
                    self.closed.insert(artifact.node_id.clone());
                }
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
                *self
                    .lines
                    .entry(mark(&[&line.node_id, &line.content]))
                    .or_default() += 1;
            }
            Some(Frame::Prediction(prediction)) => {
                if let Some(row) = &prediction.generation {
                    self.rows.insert(row_mark(&row.generation_id, row.status));
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
    /// Whoever watches a suspended run that goes on sees a second leg.
    fn suspend(&mut self) {
        *self = Self {
            output: self.output,
            rows: std::mem::take(&mut self.rows),
            suspended: true,
            events: self.events,
            ..Self::default()
        };
    }
    /// What was said in here, and in what follows it.
    #[must_use]
    pub(super) fn then(mut self, later: Self) -> Self {
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
        } = later;
        if suspended {
            self.suspend();
        }
        self.running |= running;
        for (node, said) in nodes {
            let node = self.nodes.entry(node).or_default();
            *node = (node.0 | said.0, node.1 | said.1);
        }
        self.warnings.extend(warnings);
        for (edge, said) in edges {
            let edge = self.edges.entry(edge).or_default();
            edge.count = edge.count.max(said.count);
            edge.completed |= said.completed;
            edge.drained |= said.drained;
        }
        for (line, times) in lines {
            *self.lines.entry(line).or_default() += times;
        }
        self.rows.extend(rows);
        self.open.retain(|(node, _)| !closed.contains(node));
        self.open.extend(open);
        self.output |= output;
        self.closed.extend(closed);
        self.events += events;
        self
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
                                .contains(&mark(&[&node.id, error.as_deref().unwrap_or_default()]))
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
                    let line = super::convert::clean_error(content);
                    match self.lines.get_mut(&mark(&[&node.id, &line])) {
                        Some(left) if *left > 0 => {
                            *left -= 1;
                            false
                        }
                        _ => true,
                    }
                }
                Note::Prediction(row) if !self.rows.is_empty() => {
                    !self.rows.contains(&row_mark(&row.generation_id, row.status))
                }
                Note::Log { .. } | Note::Prediction(_) | Note::Progress { .. } | Note::Chunk { .. } => true,
            },
            Event::Artifact { .. } | Event::Frames { .. } | Event::Supervision { .. } => true,
        };
        news.then_some(event)
    }
}
fn row_mark(generation_id: &str, status: i32) -> u128 {
    mark(&[generation_id, &status.to_string()])
}

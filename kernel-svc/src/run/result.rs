//! What a run comes to.

use std::sync::Arc;

use atelier_proto::{
    kernel::v1::{Issue, JobStatus},
    value::{Map, Value},
};
use chrono::{DateTime, Utc};
use indexmap::IndexMap;

use super::supervise::Intervention;
use crate::{graph::plan::Plan, node::NodeError};

/// What a run comes to.
#[derive(Debug, Clone)]
pub struct RunResult {
    /// Completed, failed, cancelled or suspended.
    pub status: JobStatus,
    /// Values of nodes that nothing consumes: name to list, every commit in order. Also of a run that failed.
    pub outputs: Map,
    /// The same by output: name to output to list.
    pub outputs_by_handle: Map,
    /// Why it failed: every node with its message, in order of occurrence.
    pub error: Option<String>,
    /// Machine-readable reason.
    pub error_code: Option<String>,
    /// Nodes that failed, in order of occurrence.
    pub node_errors: Vec<(Arc<str>, NodeError)>,
    /// What is wrong with the graph, when it never started.
    pub issues: Vec<Issue>,
    /// The nodes that wait for something outside, in order of occurrence: the run goes on with all of them.
    pub suspensions: Vec<Suspension>,
    /// What its supervisor changed, in order; the first 1,000.
    pub interventions: Vec<Intervention>,
    /// Actors that are still alive; always 0.
    pub live_actors: usize,
    /// Callers that still wait for an answer of a node; always 0.
    pub pending_responses: usize,
}

/// A node that waits for something outside.
#[derive(Debug, Clone, PartialEq)]
pub struct Suspension {
    /// The node.
    pub node_id: Arc<str>,
    /// The invocation that waits; empty outside of one.
    pub invocation: Arc<str>,
    /// Why.
    pub reason: String,
    /// State to resume with.
    pub state: Map,
    /// Facts for whoever resumes it.
    pub metadata: Map,
}

impl Suspension {
    /// When the node wants to go on by itself: `resume_at` of its metadata, else of its state, RFC 3339.
    #[must_use]
    pub fn resume_at(&self) -> Option<DateTime<Utc>> {
        let named = |map: &Map| {
            let text = map.get("resume_at").and_then(Value::as_str)?;
            DateTime::parse_from_rfc3339(text).ok()
        };
        let at = named(&self.metadata).or_else(|| named(&self.state))?;
        Some(at.to_utc())
    }
    /// Whether a trigger waits for its next event.
    #[must_use]
    pub fn is_trigger(&self) -> bool {
        matches!(self.metadata.get("trigger_node"), Some(Value::Bool(true)))
    }
}

/// What a node left behind when it suspended the run that now goes on.
#[derive(Debug, Clone, PartialEq)]
pub struct Resumed {
    /// Its state, with what was merged into it since.
    pub state: Arc<Map>,
    /// The invocation that goes on with it; `None`: every one of the node.
    pub invocation: Option<Arc<str>>,
}
impl Resumed {
    /// Whether an invocation is the one that goes on.
    pub(crate) fn is_of(&self, invocation: &str) -> bool {
        self.invocation.as_deref().is_none_or(|own| own == invocation)
    }
}
impl From<Map> for Resumed {
    fn from(state: Map) -> Self {
        Self {
            state: Arc::new(state),
            invocation: None,
        }
    }
}

impl RunResult {
    pub(crate) fn of(status: JobStatus) -> Self {
        Self {
            status,
            outputs: Map::new(),
            outputs_by_handle: Map::new(),
            error: None,
            error_code: None,
            node_errors: Vec::new(),
            issues: Vec::new(),
            suspensions: Vec::new(),
            interventions: Vec::new(),
            live_actors: 0,
            pending_responses: 0,
        }
    }
}

/// How one node ended.
pub(crate) enum Outcome {
    Completed,
    Failed(NodeError),
    Suspended(Suspension),
}

/// What an actor leaves behind.
pub(crate) struct NodeEnd {
    pub at: usize,
    pub outcome: Outcome,
    /// Committed values of a node that nothing consumes.
    pub values: Vec<(Arc<str>, Value)>,
}

/// Gathers the results of all terminal nodes, in order of the graph.
pub(crate) fn gather(plan: &Plan, ends: impl Iterator<Item = NodeEnd>) -> (Map, Map) {
    let mut values: Vec<Vec<(Arc<str>, Value)>> = vec![Vec::new(); plan.nodes.len()];
    for end in ends {
        if let Some(place) = values.get_mut(end.at) {
            *place = end.values;
        }
    }
    let mut by_name: IndexMap<Arc<str>, Vec<Value>> = IndexMap::new();
    let mut by_handle: IndexMap<Arc<str>, IndexMap<Arc<str>, Vec<Value>>> = IndexMap::new();
    for (node, values) in plan
        .nodes
        .iter()
        .zip(values)
        .filter(|(node, _)| node.terminal && !node.external)
    {
        let list = by_name.entry(Arc::clone(&node.result_key)).or_default();
        let handles = by_handle.entry(Arc::clone(&node.result_key)).or_default();
        for (handle, value) in values {
            list.push(value.clone());
            handles.entry(handle).or_default().push(value);
        }
    }
    let named = |(name, values): (Arc<str>, Vec<Value>)| (name.to_string(), Value::list(values));
    let outputs_by_handle = by_handle
        .into_iter()
        .map(|(name, handles)| {
            (
                name.to_string(),
                Value::map(handles.into_iter().map(named).collect()),
            )
        })
        .collect();
    (by_name.into_iter().map(named).collect(), outputs_by_handle)
}

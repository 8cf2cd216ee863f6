//! What a supervisor may look at: outputs of the run that belong to the items of the failed invocation.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use atelier_proto::value::Map;

use crate::run::lineage::Lineage;

/// Items of one node that are kept; older ones are forgotten.
const MAX_LINEAGES: usize = 64;

/// Outputs of one node, redacted.
#[derive(Debug, Default)]
struct Seen {
    node: Arc<str>,
    items: VecDeque<(Lineage, Map)>,
}

/// What has been emitted so far, by node.
#[derive(Debug, Default)]
pub(super) struct Recorder(Mutex<Vec<Seen>>);
impl Recorder {
    /// A recorder for nodes with these ids.
    pub fn new<'a>(nodes: impl Iterator<Item = &'a Arc<str>>) -> Self {
        let seen = nodes.map(|node| Seen {
            node: Arc::clone(node),
            items: VecDeque::new(),
        });
        Self(Mutex::new(seen.collect()))
    }
    /// Keeps outputs that are redacted already.
    pub fn note(&self, at: usize, lineage: &Lineage, output: &str, value: atelier_proto::value::Value) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(seen) = all.get_mut(at) else { return };
        // The newest is the one that is written again.
        if let Some((_, outputs)) = seen.items.iter_mut().rev().find(|(own, _)| own == lineage) {
            outputs.insert(output.to_owned(), value);
            return;
        }
        if seen.items.len() >= MAX_LINEAGES {
            seen.items.pop_front();
        }
        let outputs = [(output.to_owned(), value)].into_iter().collect();
        seen.items.push_back((lineage.clone(), outputs));
    }
    fn related(&self, lineage: &Lineage) -> Vec<NodeOutputs> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let related = |other: &Lineage| {
            let differs = |root, index| lineage.index(root).is_some_and(|own| own != index);
            !other
                .tokens()
                .iter()
                .any(|token| differs(token.root, token.index))
        };
        let nodes = all.iter().filter_map(|seen| {
            let items = seen.items.iter().filter(|(own, _)| related(own));
            let outputs: Vec<Map> = items.map(|(_, outputs)| outputs.clone()).collect();
            (!outputs.is_empty()).then(|| NodeOutputs {
                node_id: Arc::clone(&seen.node),
                outputs,
            })
        });
        nodes.collect()
    }
}

/// Outputs of a node: one map for each item, the newest last.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeOutputs {
    /// The node.
    pub node_id: Arc<str>,
    /// At most 64, redacted.
    pub outputs: Vec<Map>,
}

/// A look at the outputs of a run that belong to the items of one invocation.
#[derive(Clone)]
pub struct RunView {
    recorder: Arc<Recorder>,
    lineage: Lineage,
}
impl RunView {
    pub(super) fn new(recorder: &Arc<Recorder>, lineage: &Lineage) -> Self {
        Self {
            recorder: Arc::clone(recorder),
            lineage: lineage.clone(),
        }
    }
    /// What has been emitted for the invocation's items, or above and below them, by node in order of the graph.
    #[must_use]
    pub fn outputs(&self) -> Vec<NodeOutputs> {
        self.recorder.related(&self.lineage)
    }
}
impl std::fmt::Debug for RunView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunView").finish_non_exhaustive()
    }
}

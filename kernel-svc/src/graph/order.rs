//! The numbers of nodes and the ends of edges, looked up once for all steps before a run; the order of nodes along their
//! edges, and the cycles that prevent one.

use std::{collections::VecDeque, sync::Arc};

use foldhash::HashMap;

use super::{
    loops::is_back_edge,
    model::{Edge, HydratedGraph},
};

/// Nodes by their place in the graph.
#[derive(Debug, Clone, Default)]
pub struct Places {
    by_id: HashMap<Arc<str>, usize>,
    ends: Vec<(Option<usize>, Option<usize>)>,
}
impl Places {
    /// Numbers the nodes of a graph; of equal ids the first counts.
    #[must_use]
    pub fn of(graph: &HydratedGraph) -> Self {
        let mut by_id = HashMap::default();
        by_id.reserve(graph.nodes.len());
        for (at, node) in graph.nodes.iter().enumerate() {
            by_id.entry(Arc::clone(&node.id)).or_insert(at);
        }
        let find = |id: &Arc<str>| by_id.get(id).copied();
        let ends = graph.edges.iter();
        let ends = ends
            .map(|edge| (find(&edge.source), find(&edge.target)))
            .collect();
        Self { by_id, ends }
    }
    /// Leaves out edges that name a node that is not there, and gives their ids.
    pub fn drop_dangling(&mut self, graph: &mut HydratedGraph) -> Vec<String> {
        let mut dropped = Vec::new();
        if self.ends.iter().all(|ends| matches!(ends, (Some(_), Some(_)))) {
            return dropped;
        }
        let mut ends = std::mem::take(&mut self.ends).into_iter();
        graph.edges.retain(|edge| {
            let own = ends.next().unwrap_or_default();
            let whole = matches!(own, (Some(_), Some(_)));
            if whole {
                self.ends.push(own);
            } else {
                dropped.push(edge.id.to_string());
            }
            whole
        });
        dropped
    }
    /// The place of a node.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<usize> {
        self.by_id.get(id).copied()
    }
    /// How many different nodes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_id.len()
    }
    /// Whether there is no node.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }
    /// The places of the nodes that an edge leaves and enters; `None` where there is no such node.
    #[must_use]
    pub fn ends(&self, edge: usize) -> (Option<usize>, Option<usize>) {
        self.ends.get(edge).copied().unwrap_or_default()
    }
    /// The edges of the graph with their ends.
    pub fn edges<'a>(
        &'a self,
        graph: &'a HydratedGraph,
    ) -> impl Iterator<Item = (&'a Edge, (Option<usize>, Option<usize>))> {
        graph.edges.iter().zip(self.ends.iter().copied())
    }
    /// Edges that enter the same node count as one end, also where several nodes have its id.
    #[must_use]
    pub fn first(&self, graph: &HydratedGraph, at: usize) -> usize {
        if self.by_id.len() == graph.nodes.len() {
            return at;
        }
        let node = graph.nodes.get(at);
        node.and_then(|node| self.get(&node.id)).unwrap_or(at)
    }
}

/// The nodes in topological order over the chosen edges, without those that close a loop.
///
/// # Errors
/// The places of the nodes that could not be ordered and lie on a cycle.
pub fn order(graph: &HydratedGraph, places: &Places, control: bool) -> Result<Vec<usize>, Vec<usize>> {
    let ends = |(edge, ends): (&Edge, (Option<usize>, Option<usize>))| {
        let (source, target) = (ends.0?, ends.1?);
        // An edge from a node into itself is a fault, also where it would close a loop.
        let closes = source != target && is_back_edge(edge, graph.nodes.get(target)?);
        (!closes).then_some((source, target))
    };
    let edges = places.edges(graph).filter(|(edge, _)| edge.control == control);
    let pairs: Vec<(usize, usize)> = edges.filter_map(ends).collect();
    if pairs.is_empty() {
        return Ok((0..graph.nodes.len()).collect());
    }
    let whole = vec![true; graph.nodes.len()];
    let (done, left) = sorted(&pairs, &whole);
    if left.is_empty() {
        return Ok(done);
    }
    // What only lies behind a cycle is not on it.
    let mut chosen = vec![false; graph.nodes.len()];
    for at in &left {
        if let Some(chosen) = chosen.get_mut(*at) {
            *chosen = true;
        }
    }
    let backward: Vec<(usize, usize)> = pairs
        .into_iter()
        .map(|(source, target)| (target, source))
        .collect();
    let (_, cycle) = sorted(&backward, &chosen);
    Err(if cycle.is_empty() { left } else { cycle })
}

/// The chosen nodes in order along edges among them, and those that have none.
fn sorted(pairs: &[(usize, usize)], chosen: &[bool]) -> (Vec<usize>, Vec<usize>) {
    let inside = |at: usize| chosen.get(at).copied().unwrap_or(false);
    let among = || {
        let both = |(from, to): &&(usize, usize)| inside(*from) && inside(*to);
        pairs.iter().filter(both).copied()
    };
    let mut open = vec![0_usize; chosen.len()];
    // Targets of each node side by side: those of node n lie from starts[n] to starts[n + 1].
    let mut starts = vec![0_usize; chosen.len() + 1];
    for (from, to) in among() {
        if let (Some(start), Some(count)) = (starts.get_mut(from + 1), open.get_mut(to)) {
            *start += 1;
            *count += 1;
        }
    }
    let mut sum = 0;
    for start in &mut starts {
        sum += *start;
        *start = sum;
    }
    let (mut next, mut targets) = (starts.clone(), vec![0_usize; sum]);
    for (from, to) in among() {
        if let Some(at) = next.get_mut(from) {
            if let Some(place) = targets.get_mut(*at) {
                *place = to;
            }
            *at += 1;
        }
    }
    let all = || (0..chosen.len()).filter(|at| inside(*at));
    let mut ready: VecDeque<usize> = all().filter(|at| open.get(*at) == Some(&0)).collect();
    let mut done = Vec::with_capacity(chosen.len());
    while let Some(at) = ready.pop_front() {
        done.push(at);
        let range = starts.get(at).zip(starts.get(at + 1));
        let own = range.and_then(|(from, to)| targets.get(*from..*to));
        for to in own.unwrap_or_default() {
            if let Some(count) = open.get_mut(*to) {
                *count -= 1;
                if *count == 0 {
                    ready.push_back(*to);
                }
            }
        }
    }
    let left: Vec<usize> = all()
        .filter(|at| open.get(*at).is_some_and(|count| *count > 0))
        .collect();
    (done, left)
}

/// Names of nodes, for a message.
#[must_use]
pub fn names(graph: &HydratedGraph, nodes: &[usize]) -> String {
    let ids: Vec<&str> = nodes
        .iter()
        .filter_map(|at| graph.nodes.get(*at))
        .map(|node| &*node.id)
        .collect();
    ids.join(", ")
}

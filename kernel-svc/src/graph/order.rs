//! The order of nodes along their edges, and the cycles that prevent one.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use super::{
    loops::is_back_edge,
    model::{Edge, HydratedGraph},
};

/// Places of the nodes by id; of equal ids the first counts.
#[must_use]
pub fn places(graph: &HydratedGraph) -> HashMap<Arc<str>, usize> {
    let mut places = HashMap::with_capacity(graph.nodes.len());
    for (at, node) in graph.nodes.iter().enumerate() {
        places.entry(Arc::clone(&node.id)).or_insert(at);
    }
    places
}

/// The nodes in topological order over the chosen edges, without those that close a loop.
///
/// # Errors
/// The places of the nodes that could not be ordered and lie on a cycle.
pub fn order(graph: &HydratedGraph, control: bool) -> Result<Vec<usize>, Vec<usize>> {
    let places = places(graph);
    let ends = |edge: &Edge| {
        let (source, target) = (*places.get(&edge.source)?, *places.get(&edge.target)?);
        // An edge from a node into itself is a fault, also where it would close a loop.
        let closes = source != target && is_back_edge(edge, graph.nodes.get(target)?);
        (!closes).then_some((source, target))
    };
    let pairs: Vec<_> = graph
        .edges
        .iter()
        .filter(|edge| edge.control == control)
        .filter_map(ends)
        .collect();
    let sorted = |forward: bool, among: &[usize]| {
        let mut chosen = vec![among.is_empty(); graph.nodes.len()];
        for at in among {
            if let Some(chosen) = chosen.get_mut(*at) {
                *chosen = true;
            }
        }
        let inside = |at: &usize| chosen.get(*at).copied().unwrap_or(false);
        let mut open = vec![0_usize; graph.nodes.len()];
        let mut next: Vec<Vec<usize>> = vec![Vec::new(); graph.nodes.len()];
        for (source, target) in pairs
            .iter()
            .filter(|(source, target)| inside(source) && inside(target))
        {
            let (from, to) = if forward {
                (source, target)
            } else {
                (target, source)
            };
            if let (Some(list), Some(count)) = (next.get_mut(*from), open.get_mut(*to)) {
                list.push(*to);
                *count += 1;
            }
        }
        let all = || (0..graph.nodes.len()).filter(inside);
        let mut ready: VecDeque<usize> = all().filter(|at| open.get(*at) == Some(&0)).collect();
        let mut done = Vec::new();
        while let Some(at) = ready.pop_front() {
            done.push(at);
            for to in next.get(at).into_iter().flatten() {
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
    };
    let (done, left) = sorted(true, &[]);
    if left.is_empty() {
        return Ok(done);
    }
    // What only lies behind a cycle is not on it.
    let (_, cycle) = sorted(false, &left);
    Err(if cycle.is_empty() { left } else { cycle })
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

//! Removes bypassed nodes: what fed them goes straight to their consumers.

use std::sync::Arc;

use super::{
    loops::is_back_edge,
    model::{Edge, HydratedGraph, Node},
    types::compatible,
};

/// Removes all bypassed nodes, one after the other, so that chains of them collapse in any order.
#[must_use]
pub fn bypass(mut graph: HydratedGraph) -> HydratedGraph {
    while let Some(at) = graph.nodes.iter().position(|node| node.bypassed) {
        let node = graph.nodes.remove(at);
        let incoming: Vec<Edge> = graph
            .edges
            .iter()
            .filter(|edge| !edge.control && edge.target == node.id && !is_back_edge(edge, &node))
            .cloned()
            .collect();
        let nodes = &graph.nodes;
        graph.edges = graph
            .edges
            .into_iter()
            .filter(|edge| edge.target != node.id)
            .filter_map(|edge| {
                if edge.source == node.id {
                    reroute(edge, &node, &incoming, nodes)
                } else {
                    Some(edge)
                }
            })
            .collect();
    }
    graph
}

/// The edge with the source that stands in for the bypassed node; `None` when nothing fits.
fn reroute(edge: Edge, node: &Node, incoming: &[Edge], nodes: &[Node]) -> Option<Edge> {
    if edge.control {
        return None;
    }
    let find = |id: &str| nodes.iter().find(|node| &*node.id == id);
    let target_type = find(&edge.target)
        .and_then(|target| target.inputs.get(&*edge.target_handle))
        .cloned();
    let own_type = node.outputs.get(&*edge.source_handle).cloned();
    let fits = |candidate: &Edge, wanted: &Option<Arc<str>>| {
        let offered =
            find(&candidate.source).and_then(|source| source.outputs.get(&*candidate.source_handle));
        match (offered, wanted) {
            (Some(offered), Some(wanted)) => compatible(offered, wanted),
            _ => true,
        }
    };
    let mut candidates: Vec<&Edge> = incoming
        .iter()
        .filter(|candidate| fits(candidate, &target_type))
        .collect();
    if candidates.iter().any(|candidate| fits(candidate, &own_type)) {
        candidates.retain(|candidate| fits(candidate, &own_type));
    }
    let same_name = candidates
        .iter()
        .find(|candidate| candidate.target_handle == edge.source_handle);
    let chosen = same_name.or_else(|| candidates.first())?;
    let (source, source_handle) = (Arc::clone(&chosen.source), Arc::clone(&chosen.source_handle));
    Some(Edge {
        source,
        source_handle,
        ..edge
    })
}

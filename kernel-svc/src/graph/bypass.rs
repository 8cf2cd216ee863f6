//! Removes bypassed nodes: what fed them goes straight to their consumers.

use std::{collections::HashMap, sync::Arc};

use super::{
    loops::is_back_edge,
    model::{Edge, HydratedGraph, Node},
    types::compatible,
};

/// Removes all bypassed nodes, one after the other, so that chains of them collapse in any order.
#[must_use]
pub fn bypass(graph: HydratedGraph) -> HydratedGraph {
    let HydratedGraph { nodes, edges } = graph;
    if nodes.iter().all(|node| !node.bypassed) {
        return HydratedGraph { nodes, edges };
    }
    let by_id: HashMap<&str, &Node> = nodes.iter().rev().map(|node| (&*node.id, node)).collect();
    let mut edges: Vec<Option<Edge>> = edges.into_iter().map(Some).collect();
    // Edges that enter and leave each bypassed node; an edge that was taken elsewhere stays listed where it was.
    let mut at_node: HashMap<&str, (Vec<usize>, Vec<usize>)> = HashMap::new();
    for (at, edge) in edges.iter().enumerate() {
        let Some(edge) = edge else { continue };
        if let Some(node) = by_id.get(&*edge.target).filter(|node| node.bypassed) {
            at_node.entry(&node.id).or_default().0.push(at);
        }
        if let Some(node) = by_id.get(&*edge.source).filter(|node| node.bypassed) {
            at_node.entry(&node.id).or_default().1.push(at);
        }
    }
    for node in nodes.iter().filter(|node| node.bypassed) {
        let (entering, leaving) = at_node.remove(&*node.id).unwrap_or_default();
        let live = |list: Vec<usize>, edges: &[Option<Edge>], own: fn(&Edge) -> &Arc<str>| {
            let ends_here = |at: &usize| matches!(edges.get(*at), Some(Some(edge)) if *own(edge) == node.id);
            list.into_iter().filter(ends_here).collect::<Vec<usize>>()
        };
        let entering = live(entering, &edges, |edge| &edge.target);
        let leaving = live(leaving, &edges, |edge| &edge.source);
        let mut take = |at: usize| edges.get_mut(at).and_then(Option::take);
        let incoming: Vec<Edge> = entering
            .into_iter()
            .filter_map(&mut take)
            .filter(|edge| !edge.control && edge.source != node.id && !is_back_edge(edge, node))
            .collect();
        for at in leaving {
            let Some(edge) = edges.get_mut(at).and_then(Option::take) else {
                continue;
            };
            let Some(edge) = reroute(edge, node, &incoming, &by_id) else {
                continue;
            };
            if let Some(source) = by_id.get(&*edge.source).filter(|source| source.bypassed) {
                at_node.entry(&source.id).or_default().1.push(at);
            }
            if let Some(place) = edges.get_mut(at) {
                *place = Some(edge);
            }
        }
    }
    drop((by_id, at_node));
    let edges = edges.into_iter().flatten().collect();
    let nodes = nodes.into_iter().filter(|node| !node.bypassed).collect();
    HydratedGraph { nodes, edges }
}

/// The edge with the source that stands in for the bypassed node; `None` when nothing fits.
fn reroute(edge: Edge, node: &Node, incoming: &[Edge], by_id: &HashMap<&str, &Node>) -> Option<Edge> {
    if edge.control {
        return None;
    }
    let find = |id: &str| by_id.get(id).copied();
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

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
        let mut choices = Choices::new(node, &incoming, &by_id);
        for at in leaving {
            let Some(edge) = edges.get_mut(at).and_then(Option::take) else {
                continue;
            };
            let Some(edge) = choices.reroute(edge) else {
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

/// What stands in for a bypassed node, worked out once for each pair of types that an edge which leaves it connects: a node
/// may have many edges on both sides.
struct Choices<'a> {
    node: &'a Node,
    incoming: &'a [Edge],
    by_id: &'a HashMap<&'a str, &'a Node>,
    known: HashMap<Types, Choice<'a>>,
}
/// The types of what an edge that leaves the node gives, and of what its target takes.
type Types = (Option<Arc<str>>, Option<Arc<str>>);
/// Edges that may stand in: the first one, and the first of each input.
struct Choice<'a> {
    first: Option<&'a Edge>,
    by_input: HashMap<&'a str, &'a Edge>,
}
impl<'a> Choices<'a> {
    fn new(node: &'a Node, incoming: &'a [Edge], by_id: &'a HashMap<&'a str, &'a Node>) -> Self {
        Self {
            node,
            incoming,
            by_id,
            known: HashMap::new(),
        }
    }
    /// The edge with the source that stands in for the node; `None` when nothing fits.
    fn reroute(&mut self, edge: Edge) -> Option<Edge> {
        if edge.control {
            return None;
        }
        let target = self.by_id.get(&*edge.target);
        let target_type = target.and_then(|target| target.inputs.get(&*edge.target_handle));
        let own_type = self.node.outputs.get(&*edge.source_handle);
        let types = (target_type.cloned(), own_type.cloned());
        if !self.known.contains_key(&types) {
            let choice = self.choice(types.0.as_deref(), types.1.as_deref());
            self.known.insert(types.clone(), choice);
        }
        let choice = self.known.get(&types)?;
        let same_name = choice.by_input.get(&*edge.source_handle).copied();
        let chosen = same_name.or(choice.first)?;
        let (source, source_handle) = (Arc::clone(&chosen.source), Arc::clone(&chosen.source_handle));
        Some(Edge {
            source,
            source_handle,
            ..edge
        })
    }
    /// Those that fit the consumer; of them, if there are any, those that fit the node's own output.
    fn choice(&self, target_type: Option<&str>, own_type: Option<&str>) -> Choice<'a> {
        let fits = |candidate: &Edge, wanted: Option<&str>| {
            let source = self.by_id.get(&*candidate.source);
            let offered = source.and_then(|source| source.outputs.get(&*candidate.source_handle));
            match (offered, wanted) {
                (Some(offered), Some(wanted)) => compatible(offered, wanted),
                _ => true,
            }
        };
        let all = self.incoming.iter();
        let mut candidates: Vec<&Edge> = all.filter(|candidate| fits(candidate, target_type)).collect();
        if candidates.iter().any(|candidate| fits(candidate, own_type)) {
            candidates.retain(|candidate| fits(candidate, own_type));
        }
        let mut by_input = HashMap::with_capacity(candidates.len());
        for candidate in &candidates {
            by_input.entry(&*candidate.target_handle).or_insert(*candidate);
        }
        Choice {
            first: candidates.first().copied(),
            by_input,
        }
    }
}

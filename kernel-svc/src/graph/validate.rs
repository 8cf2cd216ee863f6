//! Structural rules of a graph (kernel specification 1.7). All issues are collected.

use atelier_proto::kernel::v1::Issue;
use foldhash::{HashMap, HashSet};

use super::{
    model::{CONTROL, CONTROL_OUTPUT, Edge, HydratedGraph, Node, issue},
    order::{Places, names, order},
    types::{compatible, is_list},
};

/// Checks the structure of a graph.
#[must_use]
pub fn validate(graph: &HydratedGraph, places: &Places) -> Vec<Issue> {
    let mut issues = duplicates(graph, places);
    let node = |at: Option<usize>| at.and_then(|at| graph.nodes.get(at));
    for (edge, (source, target)) in places.edges(graph) {
        match (node(source), node(target)) {
            (Some(source), Some(target)) => edge_rules(edge, source, target, &mut issues),
            (source, target) => unknown_endpoint(edge, source, target, &mut issues),
        }
    }
    for node in graph
        .nodes
        .iter()
        .filter(|node| node.flags.streaming_input && node.flags.controlled)
    {
        let text = format!(
            "node {} reads its own stream, so it cannot be controlled by events as well",
            node.id
        );
        issues.push(issue("graph.flag_conflict", Some(node), CONTROL, text));
    }
    multi_edges(graph, places, &mut issues);
    if issues.iter().all(|issue| issue.code != "graph.self_loop") {
        for (control, code, what) in [
            (false, "graph.cycle", "data"),
            (true, "graph.control_cycle", "control"),
        ] {
            if let Err(cycle) = order(graph, places, control) {
                let first = cycle.first().and_then(|at| graph.nodes.get(*at));
                let text = format!(
                    "{what} edges form a cycle through the nodes {}",
                    names(graph, &cycle)
                );
                issues.push(issue(code, first, "", text));
            }
        }
    }
    issues
}

fn duplicates(graph: &HydratedGraph, places: &Places) -> Vec<Issue> {
    let (mut nodes, mut edges, mut issues) = (HashSet::default(), HashSet::default(), Vec::new());
    let repeated = places.len() < graph.nodes.len();
    for node in graph.nodes.iter().filter(|_| repeated) {
        if !nodes.insert(&node.id) {
            let text = format!("several nodes have the id {}", node.id);
            issues.push(issue("graph.duplicate_node", Some(node), "id", text));
        }
    }
    for (edge, (_, target)) in places.edges(graph) {
        if !edges.insert(&edge.id) {
            let target = target.and_then(|at| graph.nodes.get(at));
            let text = format!("several edges have the id {}", edge.id);
            issues.push(issue("graph.duplicate_edge", target, &edge.target_handle, text));
        }
    }
    issues
}

fn unknown_endpoint(edge: &Edge, source: Option<&Node>, target: Option<&Node>, issues: &mut Vec<Issue>) {
    for (found, id, handle) in [
        (source, &edge.source, &edge.source_handle),
        (target, &edge.target, &edge.target_handle),
    ] {
        if found.is_none() {
            let text = format!("edge {} names the node {id}, but there is no such node", edge.id);
            let mut unknown = issue("graph.unknown_endpoint", None, handle, text);
            unknown.node_id = id.to_string();
            issues.push(unknown);
        }
    }
}

fn edge_rules(edge: &Edge, source: &Node, target: &Node, issues: &mut Vec<Issue>) {
    let Edge {
        id,
        source_handle,
        target_handle,
        ..
    } = edge;
    if edge.source == edge.target {
        let text = format!(
            "edge {id} leads from node {} back into its own input {target_handle}",
            source.id
        );
        issues.push(issue("graph.self_loop", Some(target), target_handle, text));
    }
    if edge.control {
        if &**target_handle != CONTROL {
            let text = format!(
                "control edge {id} enters input {target_handle} of node {}, not {CONTROL}",
                target.id
            );
            issues.push(issue("graph.control_handle", Some(target), target_handle, text));
        }
        return;
    }
    let reserved = [CONTROL, CONTROL_OUTPUT].contains(&&**source_handle);
    if !source.outputs.is_empty() && !source.outputs.contains_key(&**source_handle) && !reserved {
        let known: Vec<&str> = source.outputs.keys().map(|name| &**name).collect();
        let text = format!(
            "edge {id} leaves output {source_handle} of node {}, but {} has only the outputs {}",
            source.id,
            source.node_type,
            known.join(", ")
        );
        issues.push(issue("graph.unknown_output", Some(source), source_handle, text));
    }
    if let (Some(from), Some(to)) = (
        source.outputs.get(&**source_handle),
        target.inputs.get(&**target_handle),
    ) && !compatible(from, to)
    {
        let text = format!(
            "output {source_handle} of node {} is of type {from}, but input {target_handle} of node {} takes {to}",
            source.id, target.id
        );
        issues.push(issue("graph.type_mismatch", Some(target), target_handle, text));
    }
}

fn multi_edges(graph: &HydratedGraph, places: &Places, issues: &mut Vec<Issue>) {
    let mut entered = vec![0_usize; graph.nodes.len()];
    let data = || places.edges(graph).filter(|(edge, _)| !edge.control);
    for (_, (_, target)) in data() {
        if let Some(count) = target.and_then(|at| entered.get_mut(at)) {
            *count += 1;
        }
    }
    let mut count: HashMap<(&str, &str), usize> = HashMap::default();
    for (edge, (_, target)) in data() {
        // Most nodes are entered once.
        if target.is_none_or(|at| entered.get(at).is_some_and(|edges| *edges > 1)) {
            *count.entry((&edge.target, &edge.target_handle)).or_default() += 1;
        }
    }
    count.retain(|_, edges| *edges > 1);
    if count.is_empty() {
        return;
    }
    let mut by_node: HashMap<&str, Vec<(&str, usize)>> = HashMap::default();
    for ((id, handle), edges) in count {
        by_node.entry(id).or_default().push((handle, edges));
    }
    for node in &graph.nodes {
        let Some(own) = by_node.get(&*node.id) else {
            continue;
        };
        let scalar = |handle: &str| !node.inputs.get(handle).is_some_and(|ty| is_list(ty));
        let mut several: Vec<(&str, usize)> =
            own.iter().copied().filter(|(handle, _)| scalar(handle)).collect();
        several.sort_unstable();
        for (handle, edges) in several {
            let text = format!(
                "input {handle} of node {} takes one value, but {edges} edges enter it",
                node.id
            );
            issues.push(issue("graph.multi_edge_scalar", Some(node), handle, text));
        }
    }
}

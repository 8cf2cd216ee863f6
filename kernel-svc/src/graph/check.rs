//! Everything that is wrong with a workflow, at once; and the steps of the same order that lead to a plan.

use atelier_proto::{kernel::v1::Issue, value::Map};
use serde_json::Value as Json;

use super::{
    bypass::bypass,
    correlation::correlate,
    load::{LoadOptions, load_lenient},
    model::{HydratedGraph, issue},
    order::Places,
    plan::Plan,
    required::{missing_inputs, missing_params, wrong_params},
    validate::validate,
};
use crate::node::Registry;

/// Everything that would keep a workflow from running, collected: unknown types, dangling edges, cycles,
/// inputs that nothing feeds, parameters that are missing or of the wrong type. Empty when it can run.
#[must_use]
pub fn check(graph: &Json, registry: &Registry, params: &Map) -> Vec<Issue> {
    let mut issues = Vec::new();
    let count = |name: &str| graph.get(name).and_then(Json::as_array).map_or(0, Vec::len);
    if let Some(issue) = too_large(count("nodes"), count("edges")) {
        return vec![issue];
    }
    let graph = match load_lenient(graph, registry, &LoadOptions::default(), &mut issues) {
        Ok(graph) => bypass(graph),
        Err(malformed) => return vec![malformed],
    };
    let places = Places::of(&graph);
    let structural = validate(&graph, &places);
    let correlated = correlate(&graph, &places).err().unwrap_or_default();
    // One fault found twice is told once, in the words of the structural rules.
    let told = |code: &str, issue: &Issue| {
        structural
            .iter()
            .any(|other| other.code == code && other.node_id == issue.node_id)
    };
    issues.extend(correlated.into_iter().filter(|issue| match issue.code.as_str() {
        "graph.cycle" => !told("graph.cycle", issue) && !told("graph.self_loop", issue),
        "corr.multi_edge_scalar" => !told("graph.multi_edge_scalar", issue),
        _ => true,
    }));
    issues.extend(structural);
    issues.extend(missing_inputs(&graph, &places));
    issues.extend(missing_params(&graph, &places, params));
    issues.extend(wrong_params(&graph, &places, params));
    issues
}

/// Nodes of a graph at most: each is a task of its own.
pub const MOST_NODES: usize = 50_000;
/// Edges of a graph at most.
pub const MOST_EDGES: usize = 250_000;

/// A graph that is too large to be looked at.
fn too_large(nodes: usize, edges: usize) -> Option<Issue> {
    let text = format!(
        "the graph has {nodes} nodes and {edges} edges; it may have at most {MOST_NODES} nodes and {MOST_EDGES} edges"
    );
    (nodes > MOST_NODES || edges > MOST_EDGES).then(|| issue("graph.too_large", None, "", text))
}

/// What keeps a run from starting.
#[derive(Debug, Clone)]
pub struct Rejection {
    /// The first code.
    pub code: String,
    /// One text for all of it.
    pub message: String,
    /// All of it.
    pub issues: Vec<Issue>,
}
impl Rejection {
    fn of(issues: Vec<Issue>) -> Self {
        let code = issues.first().map(|issue| issue.code.clone()).unwrap_or_default();
        let texts: Vec<&str> = issues.iter().map(|issue| issue.message.as_str()).collect();
        Self {
            code,
            message: texts.join("; "),
            issues,
        }
    }
}

/// A plan and what was left out on the way.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// What runs.
    pub plan: Plan,
    /// Edges that were dropped because one of their nodes is not there.
    pub dropped_edges: Vec<String>,
}

/// The steps before a run, in the order of kernel specification 1.6: bypass, dangling edges, correlation,
/// structure, required inputs, parameters. The first step that finds something ends it, with all issues of
/// that step.
///
/// # Errors
/// What keeps the run from starting.
pub fn prepare(graph: HydratedGraph, params: &Map) -> Result<Prepared, Rejection> {
    if let Some(issue) = too_large(graph.nodes.len(), graph.edges.len()) {
        return Err(Rejection::of(vec![issue]));
    }
    let mut graph = bypass(graph);
    let mut places = Places::of(&graph);
    let dropped_edges = places.drop_dangling(&mut graph);
    let facts = correlate(&graph, &places).map_err(Rejection::of)?;
    let reject = |issues: Vec<Issue>| {
        if issues.is_empty() {
            Ok(())
        } else {
            Err(Rejection::of(issues))
        }
    };
    reject(validate(&graph, &places))?;
    reject(
        missing_inputs(&graph, &places)
            .into_iter()
            .chain(wrong_params(&graph, &places, params))
            .collect(),
    )?;
    let missing = missing_params(&graph, &places, params);
    if !missing.is_empty() {
        let message = super::required::missing_params_message(&graph, &missing);
        return Err(Rejection {
            message,
            ..Rejection::of(missing)
        });
    }
    Ok(Prepared {
        plan: Plan::new(graph, &places, facts),
        dropped_edges,
    })
}

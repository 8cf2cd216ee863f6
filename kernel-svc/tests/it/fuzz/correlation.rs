//! Random graphs of the test types, most of them wrong: hydrated as they are, without a loader that cleans them.

use std::sync::Arc;

use atelier_kernel::graph::{
    HydratedGraph, bypass::bypass, correlation::correlate, hydrate::hydrate, load::parse, loops::is_loop,
    order::Places, plan::Plan, prepare, validate::validate,
};
use atelier_proto::value::Map;
use serde_json::{Value as Json, json};

use super::{fuzz, random::Random};
use crate::nodes::{Log, metas, registry};

/// Most nodes of a graph.
const MAX_NODES: usize = 60;

fn handle(random: &mut Random, names: &[&str]) -> String {
    match random.below(8) {
        0 => random.text(),
        1 => "__control__".to_owned(),
        _ => (*random.pick(names)).to_owned(),
    }
}
fn graph(random: &mut Random) -> Json {
    const INPUTS: &[&str] = &[
        "value",
        "a",
        "b",
        "items",
        "input_item",
        "input_list",
        "left",
        "right",
        "text",
        "l",
        "r",
        "outer",
    ];
    const OUTPUTS: &[&str] = &[
        "output", "a", "b", "yes", "no", "chunk", "left", "right", "index", "result",
    ];
    let count = 1 + random.below(MAX_NODES);
    let mut nodes = Vec::new();
    for at in 0..count {
        let meta = random.pick(metas());
        // Some ids are used twice.
        let at = if random.one_in(40) {
            random.below(count)
        } else {
            at
        };
        let mut node = json!({"id": format!("n{at}"), "type": meta.node_type, "properties": random.json(1)});
        if random.one_in(4) {
            const FLAGS: &[&str] = &[
                "is_streaming_input",
                "is_streaming_output",
                "is_controlled",
                "is_join",
                "bypassed",
                "dynamic_outputs",
                "dynamic_inputs",
                "outputs",
                "inputs",
            ];
            let flag = *random.pick(FLAGS);
            node[flag] = match flag {
                "dynamic_outputs" | "dynamic_inputs" | "outputs" | "inputs" => {
                    let name = handle(random, INPUTS);
                    json!({name: random.text()})
                }
                _ => json!(random.one_in(2)),
            };
        }
        nodes.push(node);
    }
    // Mostly forward, so that some graphs have no cycle.
    let edges: Vec<Json> = (0..random.below(3 * count))
        .map(|_| {
            let (mut from, mut to) = (random.below(count + 1), random.below(count + 1));
            if from > to && !random.one_in(30) {
                std::mem::swap(&mut from, &mut to);
            }
            let mut edge = json!({
                "source": format!("n{from}"), "sourceHandle": handle(random, OUTPUTS), "target": format!("n{to}"),
                "targetHandle": handle(random, INPUTS),
            });
            if random.one_in(12) {
                edge["edge_type"] = json!("control");
            }
            edge
        })
        .collect();
    json!({"nodes": nodes, "edges": edges})
}
/// What the analysis says must fit the graph that it was made of.
fn fits(graph: &HydratedGraph) {
    let Ok(facts) = correlate(graph, &Places::of(graph)) else {
        return;
    };
    assert_eq!(facts.nodes.len(), graph.nodes.len());
    for (node, facts) in graph.nodes.iter().zip(&facts.nodes) {
        for handle in &facts.handles {
            assert!(
                handle.scope.comparable(&facts.scope) || node.flags.join,
                "{} of {} lies beside the invocation",
                handle.name,
                node.id
            );
            assert!(
                handle
                    .edges
                    .iter()
                    .all(|edge| graph.edges[*edge].target_handle == handle.name)
            );
        }
        for output in &facts.outputs {
            // A loop gives its result outside of the iterations that it opens.
            assert!(
                is_loop(node)
                    || output
                        .root
                        .is_none_or(|root| output.scope.innermost() == Some(root)),
                "{} of {}",
                output.name,
                node.id
            );
            assert!(output.source.is_none_or(|source| source < facts.handles.len()));
        }
        assert!(facts.driver.is_none_or(|driver| driver < facts.handles.len()));
    }
}

#[test]
fn random_graphs_are_planned_or_refused() {
    let registry = registry(&Arc::new(Log::default()));
    fuzz("correlation", |random| {
        let json = graph(random);
        let raw = parse(&json, &mut Vec::new()).expect("the shape of a graph");
        let hydrated = hydrate(&raw, &registry);
        let places = Places::of(&hydrated);
        let _ = validate(&hydrated, &places);
        fits(&hydrated);
        fits(&bypass(hydrated.clone()));
        if let Ok(facts) = correlate(&hydrated, &places) {
            let _ = Plan::new(hydrated.clone(), &places, facts);
        }
        if let Ok(prepared) = prepare(hydrated, &Map::new()) {
            let plan = prepared.plan;
            for edge in &plan.edges {
                assert!(edge.source < plan.nodes.len() && edge.target < plan.nodes.len());
                let handles = plan.nodes[edge.target].facts.handles.len();
                assert!(edge.handle < handles + usize::from(edge.control), "{json}");
            }
        }
    });
}

//! Nothing is lost on the way: every value that is emitted is delivered, counted, and consumed or told of; and it comes
//! in the order in which it was sent.

use std::collections::HashMap;

use atelier_kernel::graph::{
    correlation::correlate, facts::Repeat, hydrate::hydrate, load::parse, order::Places,
};
use atelier_proto::kernel::v1::JobStatus;
use proptest::prelude::*;
use serde_json::Value as Json;

use super::graphs::{graph, is_sound, on_threads, plans, run};
use crate::{harness::Done, nodes::metas};

/// The number at the end of warnings about an input of a node.
fn told(done: &Done, node: &str, input: &str) -> usize {
    let start = format!("input {input} of node {node}: ");
    done.warnings()
        .iter()
        .filter(|text| text.starts_with(&start))
        .map(|text| text.rsplit_once("count ").unwrap().1.parse::<usize>().unwrap())
        .sum()
}
fn edges(graph: &Json) -> Vec<(String, String, String, String)> {
    let text = |edge: &Json, key: &str| edge[key].as_str().unwrap().to_owned();
    let all = graph["edges"].as_array().unwrap().iter();
    all.filter(|edge| edge.get("edge_type").is_none())
        .map(|edge| {
            (
                text(edge, "id"),
                text(edge, "source"),
                text(edge, "target"),
                text(edge, "targetHandle"),
            )
        })
        .collect()
}
/// Every edge counted what it delivered.
fn counters_agree(done: &Done, graph: &Json) {
    for (id, ..) in edges(graph) {
        let count = done.delivered(&id).len();
        let count = if count == 0 {
            "null".to_owned()
        } else {
            count.to_string()
        };
        assert_eq!(done.edge(&id).last(), Some(&format!("completed:{count}")), "{id}");
    }
}
/// A buffered node takes one value of each input that has an item of its own for every call, and tells of the others.
fn values_are_used_or_told(done: &Done, graph: &Json) {
    let registry = crate::nodes::registry(&done.log);
    let hydrated = hydrate(&parse(graph, &mut Vec::new()).unwrap(), &registry);
    let facts = correlate(&hydrated, &Places::of(&hydrated)).unwrap();
    for (node, facts) in hydrated.nodes.iter().zip(&facts.nodes) {
        if node.flags.streaming_input || node.flags.controlled || facts.scope.is_empty() {
            continue;
        }
        let calls = done.calls(&node.id);
        for handle in &facts.handles {
            let own = handle.scope == facts.scope && !handle.list && handle.repeats == Repeat::No;
            if !own || facts.driver.is_some() {
                continue;
            }
            let edge = &hydrated.edges[handle.edges[0]];
            let delivered = done.delivered(&edge.id).len();
            let told = told(done, &node.id, &handle.name);
            assert_eq!(delivered, calls + told, "{} of {}\n{graph}", handle.name, node.id);
        }
    }
}
/// What a buffered node emits leaves it in the order of its calls.
fn order_holds(done: &Done, graph: &Json) {
    let types: HashMap<&str, &str> = graph["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| (node["id"].as_str().unwrap(), node["type"].as_str().unwrap()))
        .collect();
    for (id, source, ..) in edges(graph) {
        let meta = metas()
            .iter()
            .find(|meta| meta.node_type == types[&*source])
            .unwrap();
        let lineages: Vec<String> = done
            .delivered(&id)
            .into_iter()
            .map(|(_, lineage)| lineage)
            .collect();
        if meta.streaming_input == Some(true) {
            continue;
        }
        if meta.streaming_output == Some(true) {
            // The items of an iteration are numbered as they are sent.
            let mut next: HashMap<(String, String), i64> = HashMap::new();
            for lineage in lineages {
                let own = format!("{source}:");
                let (mine, outer): (Vec<&str>, Vec<&str>) =
                    lineage.split(',').partition(|token| token.starts_with(&own));
                let Some((root, index)) = mine.first().and_then(|token| token.split_once('=')) else {
                    continue;
                };
                let index: i64 = index.parse().unwrap();
                let last = next.entry((root.to_owned(), outer.join(","))).or_insert(-1);
                assert!(index > *last, "{id}: {lineage} after {last}\n{graph}");
                *last = index;
            }
            continue;
        }
        let calls = done.log.calls(&source);
        let mut keys = calls.iter().map(|call| call.lineage.clone());
        for lineage in lineages {
            assert!(
                keys.any(|key| key == lineage),
                "{id}: {lineage} out of order\n{graph}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn every_value_is_accounted_for(plans in plans(), seed in any::<u32>(), limit in prop::option::of(1..4_usize)) {
        let graph = graph(&plans);
        on_threads(async {
            let done = run(&graph, u64::from(seed), limit).await;
            if !is_sound(&done) {
                return;
            }
            assert_eq!(done.status(), JobStatus::Completed, "{:?}\n{graph}", done.result.error);
            counters_agree(&done, &graph);
            values_are_used_or_told(&done, &graph);
            order_holds(&done, &graph);
        });
    }
}

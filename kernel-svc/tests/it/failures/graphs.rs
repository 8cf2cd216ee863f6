//! What a graph means: loading, validation, types, flags.

use atelier_kernel::graph::{
    HydratedGraph, LoadOptions, load,
    order::{Places, order},
    prepare,
};
use atelier_proto::{kernel::v1::JobStatus, value::Map};
use serde_json::{Value as Json, json};

use crate::harness::{Graph, Setup, graph};

fn loaded(json: &Json) -> HydratedGraph {
    let registry = Setup::new(&json!({"nodes": [], "edges": []})).registry;
    load(json, &registry, &LoadOptions::default()).expect("a graph")
}
async fn codes(graph: Graph) -> Vec<String> {
    let done = graph.run().await;
    assert_eq!(done.trace(), ["job:running", "job:failed"], "{:?}", done.codes());
    done.codes()
}

#[tokio::test]
async fn b_04_a_node_that_feeds_itself_is_refused() {
    let graph = graph()
        .node("a", "test.Pass", json!({}))
        .edges(["a.output > a.value"]);
    let codes = codes(graph).await;
    assert!(
        codes
            .iter()
            .all(|code| code == "graph.cycle" || code == "graph.self_loop"),
        "{codes:?}"
    );
}

#[tokio::test]
async fn b_09_a_default_outlives_an_edge_that_was_dropped() {
    let graph = graph()
        .node("gone", "nope.Gone", json!({}))
        .node("e", "test.Echo", json!({"x": 9}))
        .edges(["gone.output > e.x"]);
    assert!(loaded(&graph.json()).nodes[0].properties.contains_key("x"));
}

#[tokio::test]
async fn b_11_the_order_of_nodes_looks_at_data_edges_alone() {
    let graph = graph()
        .node("a", "test.Pass", json!({}))
        .node("b", "test.ControlOut", json!({}))
        .edges(["a.output > b.value"])
        .control("b.__control_output__ > a");
    let hydrated = graph.setup().graph;
    assert_eq!(order(&hydrated, &Places::of(&hydrated), false), Ok(vec![0, 1]));
    assert!(prepare(hydrated, &Map::new()).is_ok());
}

#[tokio::test]
async fn b_16_a_target_of_two_sources_has_each_edge_once() {
    let graph = graph()
        .node("a", "test.Const", json!({"value": 1}))
        .node("b", "test.Const", json!({"value": 2}))
        .node("c", "test.Add", json!({}))
        .edges(["a.output > c.a", "b.output > c.b"]);
    let plan = prepare(graph.setup().graph, &Map::new()).expect("a plan").plan;
    let ids: Vec<&str> = plan.edges.iter().map(|edge| &*edge.id).collect();
    assert_eq!(ids, ["e1", "e2"]);
    let entering = plan.nodes[2]
        .facts
        .handles
        .iter()
        .map(|handle| handle.edges.len());
    assert_eq!(entering.collect::<Vec<_>>(), [1, 1]);
}

#[tokio::test]
async fn b_18_the_registry_takes_a_saved_flag_back() {
    let graph = graph()
        .node("p", "test.Pass", json!({"value": 1}))
        .with("is_streaming_input", json!(true));
    assert!(!loaded(&graph.json()).nodes[0].flags.streaming_input);
    assert_eq!(graph.run().await.outputs(), json!({"p": [1]}));
}

#[tokio::test]
async fn b_43_several_edges_into_one_value_are_refused() {
    let graph = graph()
        .node("a", "test.Const", json!({"value": 1}))
        .node("b", "test.Const", json!({"value": 2}))
        .node("c", "test.Pass", json!({}))
        .edges(["a.output > c.value", "b.output > c.value"]);
    assert_eq!(codes(graph).await, ["corr.multi_edge_scalar"]);
}

#[tokio::test]
async fn b_52_the_text_of_a_property_is_no_type() {
    let graph = graph()
        .node("a", "test.Const", json!({"value": "image"}))
        .node("b", "test.StrIn", json!({"value": "video"}))
        .edges(["a.output > b.value"]);
    assert_eq!(graph.run().await.outputs(), json!({"b": ["image"]}));
}

#[tokio::test]
async fn b_55_a_refused_graph_runs_before_it_fails() {
    let graph = graph().node("r", "test.Required", json!({}));
    assert_eq!(codes(graph).await, ["input.missing"]);
}

#[tokio::test]
async fn b_56_a_run_leaves_the_graph_of_its_caller_alone() {
    let json = graph()
        .node("c", "test.ControlOut", json!({"value": {}}))
        .node("k", "test.Echo", json!({"fed": 1}))
        .node("v", "test.Const", json!({"value": 2}))
        .edges(["v.output > k.fed"])
        .control("c.__control_output__ > k")
        .json();
    let (before, first) = (json.clone(), loaded(&json));
    let again = prepare(first.clone(), &Map::new());
    assert!(again.is_ok() && json == before);
    assert_eq!(format!("{:?}", loaded(&json).nodes), format!("{:?}", first.nodes));
}

#[tokio::test]
async fn b_57_a_controlled_input_is_run_by_its_events_alone() {
    let graph = graph()
        .node(
            "c",
            "test.Controller",
            json!({"events": [{"event_type": "run", "properties": {"value": 3}}]}),
        )
        .input("i")
        .control("c.__control__ > i");
    let done = graph.run_with(json!(1)).await;
    assert_eq!(
        done.inputs("i"),
        [json!({"name": "x", "value": 3})],
        "{:?}",
        done.result.error
    );
}

#[tokio::test]
async fn b_58_a_result_is_called_what_its_author_called_it() {
    let graph = graph().node(
        "o-17",
        "nodetool.output.Output",
        json!({"name": " poem ", "value": 1}),
    );
    assert_eq!(graph.run().await.outputs(), json!({"poem": [1]}));
}

#[tokio::test]
async fn b_59_one_value_may_feed_a_list() {
    let graph = graph()
        .node("a", "test.StrOut", json!({"value": "s"}))
        .node("b", "test.ListStrIn", json!({}))
        .edges(["a.output > b.value"]);
    assert_eq!(graph.run().await.status(), JobStatus::Completed);
}

#[tokio::test]
async fn b_60_a_graph_knows_its_types_before_it_can_run() {
    // Without its type this node would run as an ordinary one; the engine takes graphs with types only.
    let json = graph()
        .node("f", "test.ForEach", json!({"input_list": [1, 2]}))
        .json();
    let graph = loaded(&json);
    assert!(graph.nodes[0].flags.streaming_output);
    assert_eq!(&*graph.nodes[0].meta.node_type, "test.ForEach");
    let done = Setup::new(&json).run().await;
    assert_eq!(
        done.shown("f").len(),
        4,
        "a frame for each item, two outputs each"
    );
}

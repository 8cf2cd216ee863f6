//! Kernel specification 10.2: loading and validation.

use atelier_kernel::graph::{LoadOptions, Migration, check, load};
use atelier_proto::{kernel::v1::JobStatus, value::Map};
use serde_json::{Value as Json, json};

use crate::harness::{Graph, Setup, graph};

async fn refused(graph: Graph, codes: &[&str]) {
    let done = graph.setup().params(json!({"x": 1})).run().await;
    assert_eq!(done.status(), JobStatus::Failed);
    assert_eq!(done.trace(), ["job:running", "job:failed"]);
    assert!(
        done.codes().iter().all(|code| codes.contains(&code.as_str())),
        "{:?}",
        done.codes()
    );
    assert!(!done.codes().is_empty());
    assert!(done.log.initialized.lock().unwrap().is_empty());
}
fn two(first: &str, second: &str) -> Graph {
    graph()
        .node("a", first, json!({"value": 1}))
        .node("b", second, json!({}))
}

#[tokio::test]
async fn k_030_to_k_034_cycles_and_wrong_control_edges() {
    let pass = |ids: [&str; 2]| {
        ids.iter()
            .fold(graph(), |graph, id| graph.node(id, "test.Pass", json!({})))
    };
    refused(
        pass(["a", "b"]).edges(["a.output > a.value"]),
        &["graph.self_loop", "graph.cycle"],
    )
    .await;
    let cycle = pass(["a", "b"]).edges(["a.output > b.value", "b.output > a.value"]);
    let done = cycle.run().await;
    assert!(
        done.result.issues[0].message.contains("a, b"),
        "{:?}",
        done.result.issues
    );
    refused(cycle, &["graph.cycle"]).await;
    refused(
        pass(["a", "b"]).control("a.output > b").control("b.output > a"),
        &["graph.control_cycle"],
    )
    .await;
    refused(
        pass(["a", "b"]).control("a.output > b.go"),
        &["graph.control_handle"],
    )
    .await;
}

#[tokio::test]
async fn k_035_an_edge_from_nowhere_is_dropped() {
    let done = graph()
        .input("x")
        .sink("s")
        .edges(["x.output > s.value", "ghost.output > s.extra"])
        .run_with(json!(1))
        .await;
    assert_eq!(done.outputs(), json!({"out": [1]}));
}

#[tokio::test]
async fn k_036_to_k_040_types_and_several_edges() {
    refused(
        two("test.ImageOut", "test.StrIn").edges(["a.output > b.value"]),
        &["graph.type_mismatch"],
    )
    .await;
    refused(
        two("test.ListStrOut", "test.StrIn").edges(["a.output > b.value"]),
        &["graph.type_mismatch"],
    )
    .await;
    for (first, second) in [
        ("IntOut", "FloatIn"),
        ("FloatOut", "IntIn"),
        ("Const", "ImageIn"),
        ("StrOut", "UnionIn"),
        ("StrOut", "ListStrIn"),
    ] {
        let graph = two(&format!("test.{first}"), &format!("test.{second}")).edges(["a.output > b.value"]);
        assert_eq!(
            graph.run().await.status(),
            JobStatus::Completed,
            "{first} -> {second}"
        );
    }
    for target in ["test.IntIn", "test.Pass", "test.UnionIn"] {
        let graph = two("test.IntOut", target).node("c", "test.IntOut", json!({"value": 2}));
        let graph = graph.edges(["a.output > b.value", "c.output > b.value"]);
        refused(graph, &["corr.multi_edge_scalar"]).await;
    }
    let list = two("test.IntOut", "test.GatherInt").node("c", "test.IntOut", json!({"value": 2}));
    let done = list
        .edges(["a.output > b.items", "c.output > b.items"])
        .run()
        .await;
    assert_eq!(done.outputs(), json!({"b": [[1, 2]]}));
}

#[tokio::test]
async fn k_041_to_k_043_duplicates_and_unknown_outputs() {
    refused(
        graph()
            .input("x")
            .node("a", "test.Pass", json!({}))
            .node("a", "test.Pass", json!({})),
        &["graph.duplicate_node"],
    )
    .await;
    let mut json = two("test.Const", "test.Pass")
        .sink("s")
        .edges(["a.output > b.value", "b.output > s.value"])
        .json();
    json["edges"][1]["id"] = json!("e1");
    let done = Setup::new(&json).run().await;
    assert_eq!(done.codes(), ["graph.duplicate_edge"]);
    refused(
        two("test.Const", "test.Pass").edges(["a.nothing > b.value"]),
        &["graph.unknown_output"],
    )
    .await;
    let both = graph()
        .node("a", "test.Required", json!({}))
        .node("b", "test.Required", json!({}))
        .run()
        .await;
    assert_eq!(both.codes(), ["input.missing", "input.missing"]);
}

#[tokio::test]
async fn k_044_connected_handles_are_not_reported_as_missing() {
    let graph = two("test.Const", "test.Required").edges(["a.output > b.value"]);
    assert_eq!(graph.run().await.status(), JobStatus::Completed);
    assert!(check(&graph.json(), &Setup::new(&graph.json()).registry, &Map::new()).is_empty());
}

#[tokio::test]
async fn k_045_to_k_049_bypassed_nodes() {
    let bypass = json!({"bypassed": true});
    let chain = |ui: Json| {
        graph()
            .sink("d")
            .node("c", "test.Pass", json!({}))
            .with("ui_properties", ui.clone())
            .node("b", "test.Pass", json!({}))
            .with("ui_properties", ui)
            .node("a", "test.Const", json!({"value": 7}))
            .edges(["a.output > b.value", "b.output > c.value", "c.output > d.value"])
    };
    let done = chain(bypass.clone()).run().await;
    assert_eq!((done.outputs(), done.count("node:")), (json!({"out": [7]}), 4));
    assert_eq!(done.edge("e3"), ["active:1", "completed:1"]);
    assert_eq!(chain(json!({"bypassed": "yes"})).run().await.count("node:"), 8);
    let image = graph()
        .node("a", "test.StrOut", json!({"value": "s"}))
        .node("b", "test.StrToImage", json!({}))
        .with("ui_properties", bypass.clone())
        .node("c", "test.ImageIn", json!({}))
        .edges(["a.output > b.value", "b.output > c.value"]);
    let done = image.run().await;
    assert_eq!((done.calls("c"), done.inputs("c")), (1, vec![json!({})]));
    let relay = graph()
        .node("a", "test.StrOut", json!({"value": "first"}))
        .node("t", "test.StrOut", json!({"value": "second"}))
        .node("b", "test.Relay", json!({}))
        .with("ui_properties", bypass)
        .sink("s")
        .edges(["a.output > b.value", "t.output > b.text", "b.text > s.value"]);
    assert_eq!(relay.run().await.outputs()["out"], json!(["second"]));
}

fn loaded(json: &Json, options: &LoadOptions<'_>) -> atelier_kernel::graph::HydratedGraph {
    let registry = Setup::new(&json!({"nodes": [], "edges": []})).registry;
    load(json, &registry, options).expect("a graph")
}

#[tokio::test]
async fn k_050_and_k_051_only_surviving_edges_replace_a_property() {
    let json = graph()
        .node("a", "test.Const", json!({"value": 1}))
        .node("u", "nope.Gone", json!({}))
        .node("e", "test.Echo", json!({"fed": 1, "keep": 2, "x": 9}))
        .edges(["a.output > e.fed", "u.output > e.x"])
        .json();
    let before = json.clone();
    let graph = loaded(&json, &LoadOptions::default());
    let names: Vec<&String> = graph.nodes[1].properties.keys().collect();
    assert_eq!(names, ["keep", "x"]);
    assert_eq!(graph.edges.len(), 1);
    assert_eq!(json, before);
}

#[tokio::test]
async fn k_052_to_k_055_the_registry_wins_over_the_file() {
    let json = json!({"nodes": [{
        "id": "p", "type": "test.Pass", "data": {"a": 1}, "dynamic_properties": {"b": 2}, "is_streaming_input": true,
        "output_correlation": {"output": {"kind": "chunk"}}, "retry_safe": true, "sync_mode": "zip_all",
    }], "edges": []});
    let node = loaded(&json, &LoadOptions::default()).nodes.remove(0);
    assert!(!node.flags.streaming_input);
    assert!(node.meta.output_correlation.is_empty());
    assert!(!node.meta.retry_safe);
    assert_eq!(node.properties.keys().collect::<Vec<_>>(), ["a", "b"]);
}

#[tokio::test]
async fn k_056_to_k_058_dynamic_slots() {
    let slot = |ty: &str, value: Json| {
        let graph = graph()
            .node("e", "test.Echo", json!({}))
            .with("dynamic_properties", json!({"mood": value, "free": 1.5}));
        graph.with(
            "dynamic_inputs",
            json!({"mood": {"type": {"type": ty, "type_args": []}}}),
        )
    };
    let done = slot("list", json!("a")).run().await;
    assert_eq!(done.inputs("e"), [json!({"mood": ["a"], "free": 1.5})]);
    let done = slot("int", json!("a")).run().await;
    assert_eq!(done.status(), JobStatus::Failed);
    let (node, error) = &done.result.node_errors[0];
    assert_eq!((&**node, error.code.as_deref()), ("e", Some("input.slot_type")));
    assert!(error.message.contains("mood") && error.message.contains("int") && error.message.contains("str"));
}

#[tokio::test]
async fn k_060_a_node_cannot_read_its_stream_and_be_controlled() {
    let graph = graph()
        .node("c", "test.Controller", json!({"events": []}))
        .node("k", "test.Cap", json!({}))
        .control("c.__control__ > k");
    refused(graph, &["graph.flag_conflict"]).await;
}

#[tokio::test]
async fn strict_loading_reports_everything_that_lenient_loading_drops() {
    let json = json!({"graph": {
        "nodes": [{"id": "a", "type": "nope.A"}, {"type": "test.Pass"}, {"id": "p", "type": "test.Pass"}],
        "edges": [{"source": "ghost", "sourceHandle": "o", "target": "p", "targetHandle": "value"}, {"source": "p"}],
    }});
    let registry = Setup::new(&json!({"nodes": [], "edges": []})).registry;
    let strict = LoadOptions {
        strict: true,
        ..LoadOptions::default()
    };
    let issues = load(&json, &registry, &strict).unwrap_err();
    let mut codes: Vec<&str> = issues.iter().map(|issue| issue.code.as_str()).collect();
    codes.sort_unstable();
    assert_eq!(
        codes,
        [
            "graph.malformed",
            "graph.malformed",
            "graph.unknown_endpoint",
            "graph.unknown_type"
        ]
    );
    let unknown = issues
        .iter()
        .find(|issue| issue.code == "graph.unknown_type")
        .unwrap();
    assert!(unknown.message.contains('a') && unknown.message.contains("nope.A"));
    assert_eq!(
        load(&json, &registry, &LoadOptions::default())
            .unwrap()
            .nodes
            .len(),
        1
    );
    assert_eq!(
        load(&json!([]), &registry, &strict).unwrap_err()[0].code,
        "graph.malformed"
    );
}

#[tokio::test]
async fn replaced_types_are_rewritten_with_their_properties_and_edges() {
    let json = graph()
        .node("c", "test.Const", json!({"value": 1}))
        .node("old", "old.Echo", json!({"text": "hi"}))
        .edges(["c.output > old.prompt"])
        .json();
    let renames = [("text", "words"), ("prompt", "value")];
    let migrations = [Migration {
        from: "old.Echo",
        to: "test.Echo",
        renames: &renames,
    }];
    let graph = loaded(
        &json,
        &LoadOptions {
            migrations: &migrations,
            ..LoadOptions::default()
        },
    );
    assert_eq!(&*graph.nodes[1].node_type, "test.Echo");
    assert!(graph.nodes[1].properties.contains_key("words"));
    assert_eq!(&*graph.edges[0].target_handle, "value");
}

#[tokio::test]
async fn a_check_tells_all_faults_at_once() {
    let graph = graph()
        .node("i", "nodetool.input.Value", json!({"name": "x"}))
        .with("propertyTypes", json!({"value": "int"}))
        .node("u", "nope.Gone", json!({}))
        .node("r", "test.Required", json!({}))
        .node("a", "test.Pass", json!({}))
        .node("b", "test.Pass", json!({}))
        .edges([
            "a.output > b.value",
            "b.output > a.value",
            "ghost.output > r.other",
        ]);
    let registry = Setup::new(&graph.json()).registry;
    let params = atelier_proto::value::map_from_json(json!({"x": "text"})).unwrap();
    let mut codes: Vec<String> = check(&graph.json(), &registry, &params)
        .into_iter()
        .map(|issue| issue.code)
        .collect();
    codes.sort_unstable();
    let expected = [
        "graph.cycle",
        "graph.unknown_endpoint",
        "graph.unknown_type",
        "input.missing",
        "input.wrong_type",
    ];
    assert_eq!(codes, expected);
}

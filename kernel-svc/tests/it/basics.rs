//! Kernel specification 10.1: basics.

use atelier_proto::kernel::v1::JobStatus;
use serde_json::json;

use crate::harness::{Graph, graph};

fn constant_to_sink() -> Graph {
    graph()
        .node("c", "test.Const", json!({"value": 5}))
        .sink("s")
        .edges(["c.output > s.value"])
}

#[tokio::test]
async fn k_001_a_constant_reaches_a_sink() {
    let done = constant_to_sink().run().await;
    assert_eq!(done.status(), JobStatus::Completed);
    assert_eq!(done.outputs(), json!({"out": [5]}));
    assert_eq!(
        (done.count("job:"), done.count("node:"), done.count("output:")),
        (2, 4, 1)
    );
    assert_eq!(done.edge("e1"), ["active:1", "completed:1"]);
    assert_eq!(done.artifacts("c"), [json!({"output": 5})]);
    assert_eq!(done.artifacts("s"), [json!({"output": 5})]);
    assert_eq!(done.events.len(), 11);
}

#[tokio::test]
async fn k_002_events_come_in_the_promised_order() {
    let trace = constant_to_sink().run().await.trace();
    let at = |event: &str| {
        trace
            .iter()
            .position(|other| other == event)
            .unwrap_or_else(|| panic!("{event} in {trace:?}"))
    };
    assert_eq!((at("job:running"), at("job:completed")), (0, trace.len() - 1));
    let source = [
        "node:c:running",
        "edge:e1:active:1",
        "artifact:c:#0",
        "node:c:completed",
        "edge:e1:completed:1",
    ];
    assert!(source.map(at).is_sorted(), "{trace:?}");
    let sink = [
        "node:s:running",
        "output:s:output",
        "artifact:s:#0",
        "node:s:completed",
    ];
    assert!(sink.map(at).is_sorted(), "{trace:?}");
    assert!(at("output:s:output") > at("edge:e1:completed:1"), "{trace:?}");
}

#[tokio::test]
async fn k_003_an_empty_graph_completes() {
    let done = graph().run().await;
    assert_eq!(done.trace(), ["job:running", "job:completed"]);
    assert_eq!(done.outputs(), json!({}));
}

#[tokio::test]
async fn k_004_a_lonely_constant_is_an_output() {
    let done = graph()
        .named("v", "test.Const", "val", json!({"value": 99}))
        .run()
        .await;
    assert_eq!(done.outputs(), json!({"val": [99]}));
    assert_eq!(
        done.trace(),
        [
            "job:running",
            "node:v:running",
            "output:v:output",
            "artifact:v:#0",
            "node:v:completed",
            "job:completed"
        ]
    );
}

#[tokio::test]
async fn k_005_constants_of_the_constant_namespace_are_silent() {
    let done = graph()
        .named("k", "nodetool.constant.Value", "k", json!({"value": 3}))
        .run()
        .await;
    assert_eq!(done.outputs(), json!({"k": [3]}));
    assert_eq!(done.events.len(), 4);
    assert_eq!(done.count("artifact:") + done.count("output:"), 0);
}

#[tokio::test]
async fn k_006_a_silent_constant_still_delivers() {
    let done = graph()
        .node("k", "nodetool.constant.Value", json!({"value": 3}))
        .sink("s")
        .edges(["k.output > s.value"])
        .run()
        .await;
    assert_eq!(done.edge("e1"), ["active:1", "completed:1"]);
    assert_eq!(
        (
            done.count("output:s"),
            done.artifacts("s").len(),
            done.artifacts("k").len()
        ),
        (1, 1, 0)
    );
    assert_eq!(done.outputs(), json!({"out": [3]}));
}

#[tokio::test]
async fn k_007_an_input_feeds_the_graph_without_an_actor() {
    let graph = graph().input("x").node("p", "test.Pass", json!({})).sink("s");
    let done = graph
        .edges(["x.output > p.value", "p.output > s.value"])
        .run_with(json!(7))
        .await;
    let trace = done.trace();
    assert_eq!(done.count("node:x"), 0);
    assert!(
        trace.iter().position(|event| event == "edge:e1:active:1")
            < trace.iter().position(|event| event.starts_with("node:"))
    );
    assert_eq!(
        (done.edge("e1"), done.edge("e2")),
        (
            vec!["active:1".into(), "completed:1".into()],
            vec!["active:1".into(), "completed:1".into()]
        )
    );
    assert_eq!(
        (
            done.artifacts("p").len(),
            done.artifacts("s").len(),
            done.count("output:")
        ),
        (1, 1, 1)
    );
    assert_eq!(done.outputs(), json!({"out": [7]}));
    assert_eq!(done.events.len(), 13);
}

#[tokio::test]
async fn k_008_to_k_010_which_value_an_input_has() {
    let named = |name: Option<&str>| {
        let graph = graph().node("i", "nodetool.input.Value", json!({"name": "x", "value": 4}));
        let graph = if let Some(name) = name {
            graph.with("name", json!(name))
        } else {
            graph
        };
        graph.sink("s").edges(["i.output > s.value"])
    };
    for (name, params, expected) in [
        (None, json!({}), json!({"out": [4]})),
        (Some("Other"), json!({"x": 9}), json!({"out": [9]})),
        (Some("Other"), json!({"Other": 9}), json!({"out": [4]})),
        (None, json!({"x": null}), json!({"out": [null]})),
    ] {
        let done = named(name).setup().params(params.clone()).run().await;
        assert_eq!(done.outputs(), expected, "{params}");
    }
}

#[tokio::test]
async fn k_011_an_input_without_a_value_is_refused() {
    let done = graph()
        .input("i")
        .sink("s")
        .edges(["i.output > s.value"])
        .run()
        .await;
    assert_eq!(done.trace(), ["job:running", "job:failed"]);
    let issue = &done.result.issues[0];
    assert_eq!(
        (
            issue.code.as_str(),
            issue.node_id.as_str(),
            issue.property.as_str()
        ),
        ("input.required", "i", "value")
    );
    assert!(done.result.error.unwrap().contains('x'));
}

#[tokio::test]
async fn k_012_a_chain_of_operations() {
    let graph = graph()
        .input("x")
        .node("a", "test.Add", json!({"b": 5}))
        .node("m", "test.Mul", json!({"b": 2}))
        .node("i", "test.Add", json!({"b": 1}))
        .sink("s")
        .edges([
            "x.output > a.a",
            "a.output > m.a",
            "m.output > i.a",
            "i.output > s.value",
        ]);
    let done = graph.run_with(json!(4)).await;
    assert_eq!(done.outputs(), json!({"out": [19]}));
    assert_eq!((done.count("node:"), done.count("artifact:")), (8, 4));
}

#[tokio::test]
async fn k_013_a_diamond_joins_again() {
    let graph = graph()
        .input("x")
        .node("a", "test.Add", json!({"b": 1}))
        .node("m", "test.Mul", json!({"b": 3}))
        .node("j", "test.Add", json!({}))
        .sink("s")
        .edges([
            "x.output > a.a",
            "x.output > m.a",
            "a.output > j.a",
            "m.output > j.b",
            "j.output > s.value",
        ]);
    let done = graph.run_with(json!(4)).await;
    assert_eq!(done.outputs(), json!({"out": [17]}));
    assert!(["a", "m", "j", "s"].iter().all(|node| done.calls(node) == 1));
}

#[tokio::test]
async fn k_014_one_value_for_five_sinks() {
    let mut all = graph().input("x");
    for at in 0..5 {
        all = all.named(&format!("s{at}"), "test.Sink", &format!("out{at}"), json!({}));
    }
    let all = all.edges([
        "x.output > s0.value",
        "x.output > s1.value",
        "x.output > s2.value",
        "x.output > s3.value",
        "x.output > s4.value",
    ]);
    let done = all.run_with(json!(7)).await;
    assert_eq!(
        done.outputs(),
        json!({"out0": [7], "out1": [7], "out2": [7], "out3": [7], "out4": [7]})
    );
    assert_eq!((done.count("output:"), done.count("artifact:")), (5, 5));
}

#[tokio::test]
async fn k_015_two_chains_side_by_side() {
    let graph = graph()
        .node("a", "test.Const", json!({"value": 1}))
        .named("s", "test.Sink", "one", json!({}))
        .node("b", "test.Const", json!({"value": 2}))
        .named("t", "test.Sink", "two", json!({}))
        .edges(["a.output > s.value", "b.output > t.value"]);
    let done = graph.run().await;
    assert_eq!(done.outputs(), json!({"one": [1], "two": [2]}));
    assert_eq!(done.count("job:completed"), 1);
}

#[tokio::test]
async fn k_016_and_k_017_connected_outputs_are_shown_only_on_request() {
    for (ty, expected) in [("test.Split", vec!["b"]), ("test.SplitLive", vec!["a", "b"])] {
        let graph = graph()
            .input("x")
            .node("n", ty, json!({}))
            .sink("s")
            .edges(["x.output > n.value", "n.a > s.value"]);
        let done = graph.run_with(json!(1)).await;
        let shown: Vec<String> = done.shown("n").into_iter().map(|(name, _)| name).collect();
        assert_eq!(shown, expected, "{ty}");
    }
}

#[tokio::test]
async fn k_018_an_empty_result_is_an_artifact() {
    let done = graph().named("n", "test.Empty", "n", json!({})).run().await;
    assert_eq!((done.count("output:"), done.artifacts("n")), (0, vec![json!({})]));
    assert_eq!(done.outputs(), json!({"n": []}));
}

#[tokio::test]
async fn k_019_null_is_delivered() {
    let done = graph()
        .node("c", "test.Const", json!({"value": null}))
        .sink("s")
        .edges(["c.output > s.value"])
        .run()
        .await;
    assert_eq!(done.outputs(), json!({"out": [null]}));
}

#[tokio::test]
async fn k_020_an_edge_and_a_property_meet() {
    let graph = graph()
        .input("x")
        .node("a", "test.Add", json!({"b": 10}))
        .sink("s");
    let done = graph
        .edges(["x.output > a.a", "a.output > s.value"])
        .run_with(json!(1))
        .await;
    assert_eq!(done.outputs(), json!({"out": [11]}));
}

#[tokio::test]
async fn k_021_edges_win_over_dynamic_and_static_properties() {
    let pass = || {
        graph()
            .input("x")
            .node("p", "test.Pass", json!({"value": 1}))
            .with("dynamic_properties", json!({"value": 2}))
            .sink("s")
    };
    let fed = pass()
        .edges(["x.output > p.value", "p.output > s.value"])
        .run_with(json!(3))
        .await;
    assert_eq!(fed.outputs(), json!({"out": [3]}));
    let alone = pass().edges(["p.output > s.value"]).run_with(json!(3)).await;
    assert_eq!(alone.outputs(), json!({"out": [2]}));
}

#[tokio::test]
async fn k_022_an_output_node_is_called_by_its_property() {
    let graph = graph()
        .input("x")
        .node("o", "nodetool.output.Output", json!({"name": "  res "}));
    let done = graph.edges(["x.output > o.value"]).run_with(json!(5)).await;
    assert_eq!(done.shown("o"), [("res".to_owned(), json!(5))]);
    assert_eq!(done.outputs(), json!({"res": [5]}));
    assert_eq!(done.artifacts("o"), [json!({"output": 5})]);
}

#[tokio::test]
async fn k_024_and_k_026_runs_do_not_share_anything() {
    let graph = graph().input("x").sink("s").edges(["x.output > s.value"]);
    for x in [1, 2] {
        let done = graph.run_with(json!(x)).await;
        assert_eq!(done.outputs(), json!({"out": [x]}));
        assert_eq!(done.count("job:running"), 1);
    }
}

#[tokio::test]
async fn k_027_each_executor_is_initialised_and_finalised_once() {
    let graph = graph().input("x").node("p", "test.Pass", json!({})).sink("s");
    let done = graph
        .edges(["x.output > p.value", "p.output > s.value"])
        .run_with(json!(1))
        .await;
    assert_eq!(*done.log.initialized.lock().unwrap(), ["x", "p", "s"]);
    let mut finalized = done.log.finalized.lock().unwrap().clone();
    finalized.sort_unstable();
    assert_eq!(finalized, ["p", "s", "x"]);
    assert_eq!((done.calls("p"), done.calls("s")), (1, 1));
}

//! How values and events reach a node: control, pairing, inputs of a run, loops.

use std::time::Duration;

use atelier_kernel::run::RunError;
use atelier_proto::{
    kernel::v1::JobStatus,
    value::{Map, map_from_json},
};
use serde_json::{Value as Json, json};

use crate::harness::{Graph, graph, json as to_json, value};

fn event(properties: Json) -> Json {
    json!({"event_type": "run", "properties": properties})
}
/// A controller with some events for the node `k`.
fn controlled(events: Json, ty: &str) -> Graph {
    graph()
        .node("c", "test.Controller", json!({"events": events}))
        .named("k", ty, "k", json!({}))
        .control("c.__control__ > k")
}
fn each(items: Json) -> Graph {
    graph().node("f", "test.ForEach", json!({"input_list": items}))
}

#[tokio::test]
async fn b_01_events_wait_for_the_data_in_their_order() {
    let graph = controlled(
        json!([event(json!({"n": 1})), event(json!({"n": 2}))]),
        "test.Echo",
    )
    .node("d", "test.Slow", json!({"value": 9, "ms": 40}))
    .edges(["d.output > k.base"]);
    assert_eq!(
        graph.run().await.inputs("k"),
        [json!({"base": 9, "n": 1}), json!({"base": 9, "n": 2})]
    );
}

/// A controlled node whose controller goes on until `go` is finished.
fn open() -> Graph {
    graph()
        .node("i", "nodetool.input.Stream", json!({"name": "go"}))
        .node("c", "test.ControlOut", json!({}))
        .edges(["i.output > c.value"])
        .node("k", "test.Controlled", json!({}))
        .control("c.__control_output__ > k")
}
fn x(number: i64) -> Map {
    map_from_json(json!({"x": number})).expect("a map")
}

#[tokio::test]
async fn b_03_all_who_wait_for_an_answer_get_their_own() {
    let running = open().setup().start();
    running.started().await;
    let asked = (0..5).map(|number| running.handle.request_control("k", x(number)));
    let answers = futures_util::future::join_all(asked).await;
    for (number, answer) in (0..5).zip(answers) {
        assert_eq!(
            to_json(&answer.expect("an answer").into()),
            json!({"result": number})
        );
    }
    running.handle.finish_input("go", None).await.expect("an input");
    running.done().await;
}

#[tokio::test]
async fn b_05_two_edges_of_one_controller_are_one_controller() {
    let graph = graph()
        .node("a", "test.ControlOut", json!({}))
        .node("w", "test.Slow", json!({"value": {"x": 1}, "ms": 30}))
        .node("b", "test.ControlOut", json!({}))
        .named("k", "test.Controlled", "k", json!({}))
        .edges(["w.output > b.value"])
        .control("a.other > k")
        .control("a.__control_output__ > k")
        .control("b.__control_output__ > k");
    let mut json = graph.json();
    json["nodes"][0]["outputs"] = json!({"other": "any"});
    let done = crate::harness::Setup::new(&json).run().await;
    assert_eq!(done.outputs()["k"], json!([1]), "{:?}", done.result.error);
}

#[tokio::test]
async fn b_06_a_run_knows_nothing_of_the_one_before() {
    let graph = controlled(json!([event(json!({"x": 1}))]), "test.Controlled");
    for _ in 0..2 {
        assert_eq!(graph.run().await.outputs()["k"], json!([1]));
    }
}

#[tokio::test]
async fn b_12_pieces_that_waited_for_a_late_value_are_all_there() {
    let graph = graph()
        .node("s", "test.Chunks", json!({"n": 4}))
        .node("k", "test.Slow", json!({"value": "k", "ms": 40}))
        .named("j", "test.Join", "out", json!({}))
        .edges(["s.chunk > j.l", "k.output > j.r"]);
    assert_eq!(
        graph.run().await.outputs(),
        json!({"out": ["c0+k", "c1+k", "c2+k", "c3+k"]})
    );
}

#[tokio::test]
async fn b_13_every_piece_of_a_stream_is_an_invocation() {
    let graph = graph()
        .node("s", "test.Chunks", json!({"n": 3}))
        .sink("p")
        .edges(["s.chunk > p.value"]);
    assert_eq!(graph.run().await.outputs(), json!({"out": ["c0", "c1", "c2"]}));
}

/// An input that is fed while the run goes on, and two sinks.
async fn pushed(ty: &str, input: Json) -> Json {
    let (a, b) = if ty == "Pair" || ty == "Nothing" {
        ("a", "b")
    } else {
        ("output", "output")
    };
    let (first, second) = (format!("x.{a} > s.value"), format!("x.{b} > t.value"));
    let graph = graph()
        .node("x", &format!("nodetool.input.{ty}"), json!({"name": "x"}))
        .named("s", "test.Sink", "s", json!({}))
        .named("t", "test.Sink", "t", json!({}))
        .edges([first.as_str(), second.as_str()]);
    let mut setup = graph.setup();
    setup.graph.nodes[0].flags.streaming_output = true;
    let running = setup.start();
    running.started().await;
    running
        .handle
        .push_input("x", value(input), None)
        .await
        .expect("an input");
    running.handle.finish_input("x", None).await.expect("an input");
    running.done().await.outputs()
}

#[tokio::test]
async fn b_19_a_pushed_value_goes_through_its_input_node() {
    assert_eq!(pushed("Double", json!(5)).await, json!({"s": [10], "t": [10]}));
}

#[tokio::test]
async fn b_20_an_output_that_an_input_leaves_out_gets_nothing() {
    assert_eq!(pushed("Pair", json!({"a": 1})).await, json!({"s": [1], "t": []}));
    // Only an input that gives nothing at all hands its value on as it is.
    assert_eq!(pushed("Nothing", json!(7)).await, json!({"s": [7], "t": [7]}));
}

#[tokio::test]
async fn b_21_an_input_that_ended_empty_is_not_waited_for() {
    let graph = controlled(json!([event(json!({"n": 1}))]), "test.Echo")
        .node("d", "test.Empty", json!({}))
        .edges(["d.output > k.base"]);
    assert_eq!(graph.run().await.inputs("k"), [json!({"n": 1})]);
}

#[tokio::test]
async fn b_22_a_cancel_wakes_a_controlled_node_that_waits_for_data() {
    let graph = controlled(json!([event(json!({}))]), "test.Echo")
        .node("x", "nodetool.input.Stream", json!({"name": "x"}))
        .edges(["x.output > k.base"]);
    let running = graph.setup().start();
    running.started().await;
    running.cancel.cancel();
    let done = running.done().await;
    assert_eq!((done.status(), done.calls("k")), (JobStatus::Cancelled, 0));
}

#[tokio::test]
async fn b_25_untagged_values_are_overwritten_with_one_warning() {
    let graph = graph()
        .node("r", "test.Raw", json!({"n": 5}))
        .sink("s")
        .edges(["r.output > s.value"]);
    let done = graph.run().await;
    assert_eq!((done.outputs(), done.warnings().len()), (json!({"out": [4]}), 1));
}

#[tokio::test]
async fn b_26_a_second_value_of_an_item_is_counted_in_a_warning() {
    let graph = each(json!([1]))
        .node("b", "test.Bare", json!({}))
        .sink("s")
        .edges(["f.output > b.value", "b.output > s.value"]);
    let done = graph.run().await;
    assert_eq!(done.outputs(), json!({"out": [1]}));
    assert!(
        done.warnings().iter().any(|text| text.contains("count 1")),
        "{:?}",
        done.warnings()
    );
}

#[tokio::test]
async fn b_35_whoever_asks_a_node_that_has_ended_is_answered() {
    let graph = controlled(json!([]), "test.Controlled").node("w", "test.Endless", json!({}));
    let running = graph.setup().start();
    running.started().await;
    let asked = running.handle.request_control("k", x(1));
    let answer = tokio::time::timeout(Duration::from_secs(20), asked)
        .await
        .expect("an answer");
    assert!(
        matches!(answer, Err(RunError::NoAnswer { .. }) | Ok(_)),
        "{answer:?}"
    );
    let late = loop {
        let late = running.handle.request_control("k", x(1)).await;
        if late.is_err() {
            break late;
        }
    };
    assert!(matches!(late, Err(RunError::NoAnswer { .. })), "{late:?}");
    running.cancel.cancel();
    running.done().await;
}

#[tokio::test]
async fn b_41_what_one_event_sets_the_next_does_not_see() {
    let events = json!([event(json!({"alpha": 1})), event(json!({"beta": 2}))]);
    let done = controlled(events, "test.Echo").run().await;
    assert_eq!(done.inputs("k"), [json!({"alpha": 1}), json!({"beta": 2})]);
}

#[tokio::test]
async fn b_42_a_list_gets_the_values_of_all_its_edges() {
    let graph = ["a", "b", "c"].iter().fold(graph(), |graph, id| {
        graph.node(id, "test.Const", json!({"value": id}))
    });
    let graph = graph.named("g", "test.Gather", "out", json!({})).edges([
        "a.output > g.items",
        "b.output > g.items",
        "c.output > g.items",
    ]);
    let done = graph.run().await;
    assert_eq!(
        (done.calls("g"), done.outputs()),
        (1, json!({"out": [["a", "b", "c"]]}))
    );
}

#[tokio::test]
async fn b_44_branches_are_paired_by_item_whatever_their_speed() {
    let graph = each(json!(["A", "B", "C"]))
        .node("slow", "test.Slow", json!({"ms": 5}))
        .named("j", "test.Join", "out", json!({}))
        .edges(["f.output > slow.value", "slow.output > j.l", "f.output > j.r"]);
    assert_eq!(graph.run().await.outputs(), json!({"out": ["A+A", "B+B", "C+C"]}));
}

#[tokio::test]
async fn b_45_a_branch_that_is_not_taken_is_not_run_on_its_defaults() {
    let graph = graph()
        .node("g", "test.Gate", json!({"value": 1}))
        .named("a", "test.Echo", "a", json!({"prompt": "paid"}))
        .edges(["g.yes > a.value"]);
    let done = graph.run().await;
    assert_eq!((done.calls("a"), done.outputs()), (0, json!({"a": []})));
}

#[tokio::test]
async fn b_46_every_invocation_is_an_artifact() {
    let graph = each(json!([1, 2, 3, 4, 5, 6]))
        .node("d", "test.Pass", json!({}))
        .edges(["f.output > d.value"]);
    assert_eq!(graph.run().await.artifacts("d").len(), 6);
}

#[tokio::test]
async fn b_47_artifacts_of_connected_nodes_are_told() {
    let graph = each(json!([1, 2]))
        .node("d", "test.Pass", json!({}))
        .sink("s")
        .edges(["f.output > d.value", "d.output > s.value"]);
    let done = graph.run().await;
    assert_eq!((done.artifacts("d").len(), done.count("output:d")), (2, 0));
}

/// A loop that adds one, with a property set.
fn looping(body: &str, properties: Json) -> Graph {
    graph()
        .node("l", "nodetool.control.Loop", properties)
        .node("b", body, json!({"b": 1, "on": 1, "pred": "never"}))
        .sink("s")
}

#[tokio::test]
async fn b_61_no_loop_is_without_a_bound() {
    for limit in [json!("for ever"), json!(null), json!(1e308)] {
        let graph = looping("test.Add", json!({"initial": 0, "max_iterations": limit}));
        let graph = graph.edges(["l.value > b.a", "b.output > l.next", "l.done > s.value"]);
        let done = graph.run().await;
        let count = done.outputs()["out"][0].as_i64().expect("a number");
        assert!(count == 10 || count == 1_000, "{count}");
    }
}

#[tokio::test]
async fn b_62_a_loop_ends_although_the_last_busy_node_just_ended() {
    let graph = looping("test.Gate", json!({"initial": 0}))
        .node("w", "test.Slow", json!({"ms": 40, "value": 1}))
        .edges(["l.value > b.value", "b.yes > l.next", "l.done > s.value"]);
    let done = graph.run().await;
    assert_eq!(done.status(), JobStatus::Completed, "{:?}", done.result.error);
    assert_eq!(done.calls("s"), 0);
}

#[tokio::test]
async fn b_63_a_body_that_fails_fails_the_run() {
    let graph = looping("test.FailOn", json!({"initial": 1}));
    let graph = graph.edges(["l.value > b.value", "b.output > l.next", "l.done > s.value"]);
    let done = graph.run().await;
    assert_eq!(
        (done.status(), done.result.error.as_deref()),
        (JobStatus::Failed, Some("b: fail:1"))
    );
}

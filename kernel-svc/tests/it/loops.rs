//! Kernel specification 10.6: loops.

use std::time::Duration;

use atelier_kernel::event::Event;
use atelier_proto::{
    kernel::v1::{JobStatus, NodeStatus},
    value::Value,
};
use rstest::rstest;
use serde_json::{Value as Json, json};

use crate::harness::{Done, Graph, Setup, graph};

const LOOP: &str = "nodetool.control.Loop";

fn node_warnings(done: &Done, id: &str) -> Vec<String> {
    let own = done.events.iter().filter_map(|event| match event {
        Event::Node {
            node,
            status: NodeStatus::Warning,
            error,
            ..
        } if &*node.id == id => error.clone(),
        _ => None,
    });
    own.collect()
}
/// `next` is the value plus one, `condition` whether that is less than a limit.
fn counter(properties: Json, limit: i64) -> Graph {
    graph()
        .node("l", LOOP, properties)
        .node("a", "test.Add", json!({"b": 1}))
        .node("c", "test.Less", json!({"limit": limit}))
        .sink("s")
        .edges([
            "l.value > a.a",
            "a.output > l.next",
            "a.output > c.value",
            "c.output > l.condition",
            "l.done > s.value",
        ])
}

#[tokio::test]
async fn k_180_a_loop_counts_up() {
    let done = counter(json!({"initial": 0}), 5)
        .node("w", "test.Echo", json!({}))
        .edges(["l.value > w.value", "l.index > w.index"])
        .run()
        .await;
    assert_eq!(done.status(), JobStatus::Completed, "{:?}", done.result.error);
    let seen: Vec<Json> = (0..5).map(|k| json!({"value": k, "index": k})).collect();
    assert_eq!(done.inputs("w"), seen);
    assert_eq!(done.outputs()["out"], json!([5]));
    assert_eq!(done.delivered("e5"), [(json!(5), String::new())]);
    assert_eq!(done.delivered("e1")[3], (json!(3), "l:loop=3".to_owned()));
    assert_eq!(
        (done.count("artifact:l"), node_warnings(&done, "l").len()),
        (0, 0)
    );
    assert_eq!(done.count("node:l:"), 2);
}

#[tokio::test]
async fn k_181_the_limit_is_told_when_the_condition_still_holds() {
    let done = counter(json!({"initial": 10, "max_iterations": 3}), 1_000)
        .run()
        .await;
    assert_eq!(
        (done.status(), done.outputs()),
        (JobStatus::Completed, json!({"out": [13]}))
    );
    let warnings = node_warnings(&done, "l");
    assert!(warnings.len() == 1 && warnings[0].contains('3'), "{warnings:?}");
}

#[tokio::test]
async fn k_182_without_a_condition_it_runs_to_its_limit() {
    let done = graph()
        .node("l", LOOP, json!({"initial": "", "max_iterations": 4}))
        .node("a", "test.Append", json!({}))
        .sink("s")
        .edges(["l.value > a.value", "a.output > l.next", "l.done > s.value"])
        .run()
        .await;
    assert_eq!(
        (done.status(), done.outputs()),
        (JobStatus::Completed, json!({"out": ["aaaa"]}))
    );
    assert!(node_warnings(&done, "l").is_empty() && done.warnings().is_empty());
}

/// A body that leaves through `accept` once the value is three.
fn leaving() -> Graph {
    graph()
        .node("l", LOOP, json!({"initial": 0}))
        .node("a", "test.Add", json!({"b": 1}))
        .node("g", "test.Gate", json!({"pred": "gt", "limit": 2}))
        .named("s", "test.Sink", "accepted", json!({}))
        .named("d", "test.Sink", "done", json!({}))
        .edges([
            "l.value > a.a",
            "a.output > g.value",
            "g.no > l.next",
            "g.yes > s.value",
            "l.done > d.value",
        ])
}

#[tokio::test]
async fn k_183_a_body_may_leave_another_way() {
    let done = leaving().run().await;
    assert_eq!(done.status(), JobStatus::Completed, "{:?}", done.result.error);
    assert_eq!(done.outputs(), json!({"accepted": [3], "done": []}));
    assert_eq!(done.calls("d"), 0);
}

#[tokio::test]
async fn k_184_it_ends_when_the_last_busy_node_has_ended() {
    let graph = leaving().node("w", "test.Slow", json!({"ms": 100, "value": 1}));
    let start = std::time::Instant::now();
    let done = graph.run().await;
    assert_eq!(done.status(), JobStatus::Completed, "{:?}", done.result.error);
    assert_eq!(done.outputs()["accepted"], json!([3]));
    let slow = done.trace().iter().position(|event| event == "node:w:completed");
    let ended = done.trace().iter().position(|event| event == "node:l:completed");
    assert!(slow < ended, "{:?}", done.trace());
    assert!(start.elapsed() < Duration::from_secs(5), "not by the watchdog");
}

#[tokio::test]
async fn k_185_a_body_that_fails_ends_the_loop_and_the_run() {
    let done = graph()
        .node("l", LOOP, json!({"initial": 0}))
        .node("f", "test.FailOn", json!({"on": 2}))
        .node("a", "test.Add", json!({"b": 1}))
        .sink("s")
        .edges([
            "l.value > f.value",
            "f.output > a.a",
            "a.output > l.next",
            "l.done > s.value",
        ])
        .run()
        .await;
    assert_eq!(
        (done.status(), done.outputs()),
        (JobStatus::Failed, json!({"out": []}))
    );
    assert!(done.result.error.unwrap().starts_with("f: fail:2"));
    assert_eq!(done.log.calls("f").len(), 3);
}

#[tokio::test]
async fn k_186_values_from_outside_are_there_in_every_iteration() {
    let done = graph()
        .node("x", "test.Const", json!({"value": 3}))
        .node("l", LOOP, json!({"initial": 1, "max_iterations": 4}))
        .node("m", "test.Mul", json!({}))
        .sink("s")
        .edges([
            "l.value > m.a",
            "x.output > m.b",
            "m.output > l.next",
            "l.done > s.value",
        ])
        .run()
        .await;
    assert_eq!(
        (done.status(), done.outputs()),
        (JobStatus::Completed, json!({"out": [81]}))
    );
}

#[tokio::test]
async fn k_187_every_item_has_a_run_of_its_own() {
    let done = graph()
        .input("x")
        .node("f", "test.ForEach", json!({}))
        .node("l", LOOP, json!({"max_iterations": 2}))
        .node("m", "test.Mul", json!({"b": 10}))
        .node("c", "test.Collect", json!({}))
        .sink("s")
        .edges([
            "x.output > f.input_list",
            "f.output > l.initial",
            "l.value > m.a",
            "m.output > l.next",
            "l.done > c.input_item",
            "c.output > s.value",
        ])
        .run_with(json!([1, 2]))
        .await;
    assert_eq!(done.status(), JobStatus::Completed, "{:?}", done.result.error);
    let mut results = done.delivered("e5");
    results.sort_by_key(|(_, lineage)| lineage.clone());
    assert_eq!(
        results,
        [
            (json!(100), "f:items=0".to_owned()),
            (json!(200), "f:items=1".to_owned())
        ]
    );
    assert_eq!(done.calls("m"), 4);
}

#[rstest]
#[case(Value::Null, 10)]
#[case("abc".into(), 10)]
#[case(f64::NAN.into(), 10)]
#[case("".into(), 1)]
#[case(0.into(), 1)]
#[case((-5).into(), 1)]
#[case(2.9.into(), 2)]
#[case("7".into(), 7)]
#[case(1001.into(), 1000)]
#[case(f64::INFINITY.into(), 1000)]
#[case(f64::NEG_INFINITY.into(), 1)]
#[tokio::test]
async fn k_188_the_limit_is_clamped(#[case] limit: Value, #[case] expected: i64) {
    let graph = graph()
        .node("l", LOOP, json!({"initial": 0}))
        .node("a", "test.Add", json!({"b": 1}))
        .sink("s")
        .edges(["l.value > a.a", "a.output > l.next", "l.done > s.value"]);
    let mut setup = graph.setup();
    let mut properties = (*setup.graph.nodes[0].properties).clone();
    properties.insert("max_iterations".to_owned(), limit);
    setup.graph.nodes[0].properties = properties.into();
    let done = setup.run().await;
    assert_eq!(
        done.outputs(),
        json!({"out": [expected]}),
        "{:?}",
        done.result.error
    );
}

#[tokio::test]
async fn k_188_without_the_property_the_limit_is_ten() {
    let graph = graph()
        .node("l", LOOP, json!({"initial": 0}))
        .node("a", "test.Add", json!({"b": 1}))
        .sink("s");
    let graph = graph.edges(["l.value > a.a", "a.output > l.next", "l.done > s.value"]);
    assert_eq!(graph.run().await.outputs(), json!({"out": [10]}));
}

/// A loop whose body is one node, and one fault.
fn faulty(fault: &str) -> Graph {
    let body = graph()
        .node("l", LOOP, json!({}))
        .node("a", "test.Pass", json!({}));
    match fault {
        "loop.next_missing" => body.edges(["l.value > a.value", "a.output > l.condition"]),
        "loop.from_outside" => body.node("o", "test.Const", json!({})).edges([
            "l.value > a.value",
            "a.output > l.next",
            "o.output > l.condition",
        ]),
        "loop.fans_out" => body.node("f", "test.ForEach", json!({})).edges([
            "l.value > f.input_list",
            "f.output > a.value",
            "a.output > l.next",
        ]),
        "loop.aggregate_in_body" => body.node("c", "test.Collect", json!({})).edges([
            "l.value > c.input_item",
            "c.output > a.value",
            "a.output > l.next",
        ]),
        "loop.repeating" => body.node("s", "test.Chunks", json!({})).edges([
            "s.chunk > l.initial",
            "l.value > a.value",
            "a.output > l.next",
        ]),
        "loop.fixed_input" => body.node("o", "test.IntOut", json!({})).edges([
            "l.value > a.value",
            "a.output > l.next",
            "o.output > l.max_iterations",
        ]),
        "loop.foreign_iteration" => body
            .node("f", "test.StreamN", json!({"n": 2}))
            .edges(["l.value > a.value", "f.output > l.next"]),
        "loop.several_edges" => body.node("b", "test.Pass", json!({})).edges([
            "l.value > a.value",
            "l.value > b.value",
            "a.output > l.next",
            "b.output > l.next",
        ]),
        "graph.self_loop" => body.edges(["l.value > a.value", "a.output > l.next", "l.value > l.condition"]),
        "graph.cycle" => body.node("b", "test.Add", json!({})).edges([
            "l.value > a.value",
            "a.output > b.a",
            "b.output > a.more",
            "b.output > l.next",
        ]),
        _ => body,
    }
}

#[rstest]
#[case("loop.next_missing")]
#[case("loop.from_outside")]
#[case("loop.fans_out")]
#[case("loop.aggregate_in_body")]
#[case("loop.repeating")]
#[case("loop.fixed_input")]
#[case("loop.foreign_iteration")]
#[case("loop.several_edges")]
#[case("graph.cycle")]
#[tokio::test]
async fn k_189_faulty_loops_are_refused_before_they_start(#[case] code: &str) {
    let done = faulty(code).run().await;
    assert_eq!(done.status(), JobStatus::Failed);
    assert!(
        done.codes().contains(&code.to_owned()),
        "{:?}",
        done.result.issues
    );
    assert_eq!(done.count("node:"), 0);
    assert!(done.log.initialized.lock().unwrap().is_empty());
}

#[tokio::test]
async fn k_189_an_edge_from_a_loop_into_itself_stays_illegal() {
    let done = faulty("graph.self_loop").run().await;
    assert_eq!(done.status(), JobStatus::Failed);
    let codes = done.codes();
    assert!(
        codes
            .iter()
            .any(|code| code == "graph.self_loop" || code == "graph.cycle"),
        "{codes:?}"
    );
}

#[tokio::test]
async fn k_190_observers_outside_of_the_body_may_gather() {
    let done = counter(json!({"initial": 0}), 4)
        .node("g", "test.Collect", json!({}))
        .named("all", "test.Sink", "all", json!({}))
        .edges(["l.value > g.input_item", "g.output > all.value"])
        .run()
        .await;
    assert_eq!(done.status(), JobStatus::Completed, "{:?}", done.result.error);
    assert_eq!(done.outputs(), json!({"out": [4], "all": [[0, 1, 2, 3]]}));
}

#[tokio::test]
async fn k_190_one_list_for_each_run() {
    let done = graph()
        .input("x")
        .node("f", "test.ForEach", json!({}))
        .node("l", LOOP, json!({"max_iterations": 3}))
        .node("m", "test.Mul", json!({"b": 10}))
        .node("c", "test.Collect", json!({}))
        .node("r", "test.Cap", json!({}))
        .edges([
            "x.output > f.input_list",
            "f.output > l.initial",
            "l.value > m.a",
            "m.output > l.next",
            "l.value > c.input_item",
            "c.output > r.value",
        ])
        .run_with(json!([1, 2]))
        .await;
    let mut lists = done.delivered("e6");
    lists.sort_by_key(|(_, lineage)| lineage.clone());
    assert_eq!(
        lists,
        [
            (json!([1, 10, 100]), "f:items=0".to_owned()),
            (json!([2, 20, 200]), "f:items=1".to_owned())
        ]
    );
}

/// Three rounds, in each of which the value is doubled twice.
fn nested() -> Graph {
    graph()
        .node("outer", LOOP, json!({"initial": 1, "max_iterations": 3}))
        .node("inner", LOOP, json!({"max_iterations": 2}))
        .node("m", "test.Mul", json!({"b": 2}))
        .sink("s")
        .edges([
            "outer.value > inner.initial",
            "inner.value > m.a",
            "m.output > inner.next",
            "inner.done > outer.next",
            "outer.done > s.value",
        ])
}

#[tokio::test]
async fn k_191_loops_nest() {
    let done = nested().run().await;
    assert_eq!(done.status(), JobStatus::Completed, "{:?}", done.result.error);
    assert_eq!(done.outputs(), json!({"out": [64]}));
    assert_eq!(
        done.delivered("e2")
            .iter()
            .map(|(_, lineage)| lineage.as_str())
            .collect::<Vec<_>>(),
        [
            "inner:loop=0,outer:loop=0",
            "inner:loop=1,outer:loop=0",
            "inner:loop=0,outer:loop=1",
            "inner:loop=1,outer:loop=1",
            "inner:loop=0,outer:loop=2",
            "inner:loop=1,outer:loop=2",
        ]
    );
}

#[tokio::test]
async fn an_inner_loop_that_leaves_ends_the_outer_one() {
    let done = graph()
        .node("outer", LOOP, json!({"initial": 0, "max_iterations": 5}))
        .node("inner", LOOP, json!({"max_iterations": 9}))
        .node("a", "test.Add", json!({"b": 1}))
        .node("g", "test.Gate", json!({"pred": "gt", "limit": 3}))
        .named("s", "test.Sink", "left", json!({}))
        .sink("d")
        .edges([
            "outer.value > inner.initial",
            "inner.value > a.a",
            "a.output > g.value",
            "g.no > inner.next",
            "g.yes > s.value",
            "inner.done > outer.next",
            "outer.done > d.value",
        ])
        .run()
        .await;
    assert_eq!(done.status(), JobStatus::Completed, "{:?}", done.result.error);
    assert_eq!(done.outputs(), json!({"left": [4], "out": []}));
}

#[tokio::test]
async fn of_two_loops_that_stand_still_the_first_gives_up_first() {
    // The second loop's body waits for the number of iterations of the first one, which leaves another way.
    let done = leaving()
        .node("n", "test.Count", json!({}))
        .node("second", LOOP, json!({"initial": 0, "max_iterations": 2}))
        .node("b", "test.Add", json!({}))
        .named("r", "test.Sink", "second", json!({}))
        .edges([
            "l.value > n.input_item",
            "second.value > b.a",
            "n.output > b.b",
            "b.output > second.next",
            "second.done > r.value",
        ])
        .run()
        .await;
    assert_eq!(done.status(), JobStatus::Completed, "{:?}", done.result.error);
    assert_eq!(
        done.outputs(),
        json!({"accepted": [3], "done": [], "second": [6]})
    );
}

#[tokio::test]
async fn a_body_that_drops_an_item_ends_its_run_at_once() {
    let done = graph()
        .input("x")
        .node("f", "test.ForEach", json!({}))
        .node("l", LOOP, json!({"max_iterations": 3}))
        .node("k", "test.Filter", json!({"pred": "even"}))
        .node("a", "test.Add", json!({"b": 2}))
        .node("c", "test.Collect", json!({}))
        .sink("s")
        .edges([
            "x.output > f.input_list",
            "f.output > l.initial",
            "l.value > k.value",
            "k.output > a.a",
            "a.output > l.next",
            "l.done > c.input_item",
            "c.output > s.value",
        ])
        .run_with(json!([1, 2, 3, 4]))
        .await;
    assert_eq!(done.status(), JobStatus::Completed, "{:?}", done.result.error);
    let mut list = done.outputs()["out"][0].as_array().unwrap().clone();
    list.sort_by_key(Json::as_i64);
    assert_eq!(list, [json!(8), json!(10)]);
}

#[tokio::test]
async fn a_second_value_for_a_run_is_ignored() {
    let done = graph()
        .node("r", "test.Raw", json!({"n": 3}))
        .node("l", LOOP, json!({"max_iterations": 2}))
        .node("a", "test.Add", json!({"b": 10}))
        .sink("s")
        .edges([
            "r.output > l.initial",
            "l.value > a.a",
            "a.output > l.next",
            "l.done > s.value",
        ])
        .run()
        .await;
    assert_eq!(
        (done.status(), done.outputs()),
        (JobStatus::Completed, json!({"out": [20]}))
    );
    assert_eq!(done.warnings().len(), 1);
}

#[tokio::test]
async fn a_loop_over_nothing_ends() {
    let graph = graph()
        .input("x")
        .node("f", "test.ForEach", json!({}))
        .node("l", LOOP, json!({}))
        .node("a", "test.Add", json!({"b": 10}))
        .sink("s")
        .edges([
            "x.output > f.input_list",
            "f.output > l.initial",
            "l.value > a.a",
            "a.output > l.next",
            "l.done > s.value",
        ]);
    let done = graph.run_with(json!([])).await;
    assert_eq!(
        (done.status(), done.outputs()),
        (JobStatus::Completed, json!({"out": []}))
    );
}

#[tokio::test]
async fn many_runs_go_on_at_once_within_small_inboxes() {
    let graph = graph()
        .input("x")
        .node("f", "test.ForEach", json!({}))
        .node("l", LOOP, json!({"max_iterations": 20}))
        .node("a", "test.Add", json!({"b": 1}))
        .node("c", "test.Collect", json!({}))
        .sink("s")
        .edges([
            "x.output > f.input_list",
            "f.output > l.initial",
            "l.value > a.a",
            "a.output > l.next",
            "l.done > c.input_item",
            "c.output > s.value",
        ]);
    for limit in [None, Some(1)] {
        let done = graph
            .setup()
            .params(json!({"x": (0..200).collect::<Vec<i64>>()}))
            .options(|options| options.buffer_limit = limit)
            .run()
            .await;
        assert_eq!(done.status(), JobStatus::Completed, "{:?}", done.result.error);
        let mut sums = done.outputs()["out"][0].as_array().unwrap().clone();
        sums.sort_by_key(Json::as_i64);
        let expected: Vec<Json> = (20..220).map(|sum: i64| json!(sum)).collect();
        assert_eq!(sums, expected);
    }
}

#[tokio::test]
async fn a_cancel_ends_a_loop() {
    let graph = graph()
        .node("l", LOOP, json!({"initial": 0, "max_iterations": 1000}))
        .node("w", "test.Slow", json!({"ms": 20}))
        .sink("s")
        .edges(["l.value > w.value", "w.output > l.next", "l.done > s.value"]);
    let running = graph.setup().start();
    while running.log.calls("w").len() < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    running.cancel.cancel();
    let done = running.done().await;
    assert_eq!((done.status(), done.calls("w")), (JobStatus::Cancelled, 2));
}

#[tokio::test]
async fn a_bypassed_loop_lets_its_body_run_once() {
    let json = counter(json!({}), 5)
        .node("i", "test.Const", json!({"value": 7}))
        .edges(["i.output > l.initial"])
        .json();
    let mut json = json;
    json["nodes"][0]["ui_properties"] = json!({"bypassed": true});
    let done = Setup::new(&json).run().await;
    assert_eq!(done.status(), JobStatus::Completed, "{:?}", done.result.error);
    assert_eq!(
        (done.calls("a"), done.outputs()),
        (1, json!({"c": [false], "out": [7]}))
    );
}

//! Kernel specification 10.3, second part: pairing, joins, aggregates, lists, untaken branches.

use atelier_proto::kernel::v1::JobStatus;
use serde_json::json;

use crate::{
    harness::{Graph, graph},
    iteration::{each, outcome, pairs},
};

#[tokio::test]
async fn k_087_branches_are_paired_by_key_not_by_arrival() {
    let graph = each()
        .node("p", "test.Pass", json!({}))
        .node("q", "test.Replay", json!({}))
        .named("j", "test.Join", "out", json!({}))
        .edges([
            "f.output > p.value",
            "f.output > q.value",
            "p.output > j.l",
            "q.output > j.r",
        ]);
    assert_eq!(
        outcome(&graph.run_with(json!(["A", "B"])).await),
        json!(["A+A", "B+B"])
    );
}

#[tokio::test]
async fn k_088_and_k_089_one_value_serves_all_items_early_or_late() {
    for ms in [0, 40] {
        let graph = each()
            .node("k", "test.Slow", json!({"value": "K", "ms": ms}))
            .named("j", "test.Join", "out", json!({}))
            .edges(["f.output > j.l", "k.output > j.r"]);
        assert_eq!(
            outcome(&graph.run_with(json!(["a", "b", "c"])).await),
            json!(["a+K", "b+K", "c+K"])
        );
    }
}

#[tokio::test]
async fn k_090_dropped_items_are_left_out_with_a_warning() {
    let graph = each()
        .node("q", "test.Filter", json!({}))
        .named("j", "test.Join", "out", json!({}))
        .edges(["f.output > q.value", "q.output > j.l", "f.output > j.r"]);
    let done = graph.run_with(json!([1, 2, 3, 4])).await;
    assert_eq!(
        (outcome(&done), done.warnings().len()),
        (json!(["2+2", "4+4"]), 1)
    );
    assert_eq!(
        *done.traffic.done.lock().unwrap().get("e3").unwrap(),
        ["f:items=0", "f:items=2"]
    );
}

#[tokio::test]
async fn k_091_a_second_value_of_a_key_is_dropped_with_a_warning() {
    let graph = each()
        .node("b", "test.Bare", json!({}))
        .sink("s")
        .edges(["f.output > b.value", "b.output > s.value"]);
    let done = graph.run_with(json!(["a"])).await;
    assert_eq!(outcome(&done), json!(["a"]));
    assert!(
        done.warnings().iter().any(|text| text.contains("count 1")),
        "{:?}",
        done.warnings()
    );
}

#[tokio::test]
async fn k_092_unrelated_iterations_need_an_explicit_join() {
    let graph = graph()
        .node("a", "test.StreamN", json!({"n": 1}))
        .node("b", "test.StreamN", json!({"n": 1}))
        .node("j", "test.Join", json!({}))
        .edges(["a.output > j.l", "b.output > j.r"]);
    let done = graph.run().await;
    assert_eq!(done.codes(), ["corr.incomparable_inputs"]);
    assert!(done.result.issues[0].message.contains("Zip") && done.result.issues[0].message.contains("Cross"));
}

#[tokio::test]
async fn k_093_to_k_095_zip_and_cross() {
    let zip = graph()
        .node("a", "test.StreamN", json!({"n": 2, "base": 0}))
        .node("b", "test.StreamN", json!({"n": 2, "base": 10}))
        .node("r", "test.Replay", json!({}))
        .node("z", "test.Zip", json!({}))
        .named("j", "test.Join", "out", json!({}))
        .edges([
            "a.output > z.left",
            "b.output > r.value",
            "r.output > z.right",
            "z.left > j.l",
            "z.right > j.r",
        ]);
    let done = zip.run().await;
    assert_eq!(outcome(&done), json!(["0+10", "1+11"]));
    assert_eq!(done.delivered("e4")[1].1, "z:zip=1");
    let cross = |limit: i64| {
        graph()
            .node("a", "test.StreamN", json!({"n": 2, "base": 1}))
            .node("b", "test.StreamN", json!({"n": 3, "base": 7}))
            .node("c", "test.Cross", json!({"max_output_count": limit}))
            .named("j", "test.Join", "out", json!({}))
            .edges([
                "a.output > c.left",
                "b.output > c.right",
                "c.left > j.l",
                "c.right > j.r",
            ])
    };
    assert_eq!(
        outcome(&cross(1024).run().await),
        json!(["1+7", "1+8", "1+9", "2+7", "2+8", "2+9"])
    );
    let limited = cross(2).run().await;
    assert_eq!(limited.status(), JobStatus::Failed);
    assert!(limited.delivered("e3").len() <= 2);
}

#[tokio::test]
async fn k_096_to_k_098_aggregates() {
    let aggregate = |ty: &str| {
        each()
            .node("c", &format!("test.{ty}"), json!({}))
            .sink("s")
            .edges(["f.output > c.input_item", "c.output > s.value"])
    };
    assert_eq!(
        outcome(&aggregate("Collect").run_with(json!(["a", "b", "c"])).await),
        json!([["a", "b", "c"]])
    );
    for (ty, expected) in [
        ("Collect", json!([[]])),
        ("Count", json!([0])),
        ("Last", json!([])),
    ] {
        assert_eq!(
            outcome(&aggregate(ty).run_with(json!([])).await),
            expected,
            "{ty}"
        );
    }
    let filtered = each()
        .node("q", "test.Filter", json!({}))
        .node("c", "test.Collect", json!({}))
        .sink("s")
        .edges([
            "f.output > q.value",
            "q.output > c.input_item",
            "c.output > s.value",
        ]);
    let done = filtered.run_with(json!([1, 2, 3, 4])).await;
    assert_eq!(outcome(&done), json!([[2, 4]]));
    assert_eq!(
        *done.traffic.done.lock().unwrap().get("e3").unwrap(),
        ["f:items=0", "f:items=2"]
    );
}

fn nested_collect() -> Graph {
    each()
        .node("n", "test.ForEach", json!({}))
        .node("p", "test.Pass", json!({}))
        .node("c", "test.Collect", json!({}))
        .node("d", "test.Collect", json!({}))
        .sink("s")
        .edges([
            "f.output > n.input_list",
            "n.output > p.value",
            "p.output > c.input_item",
            "c.output > d.input_item",
            "d.output > s.value",
        ])
}

#[tokio::test]
async fn k_099_an_aggregate_finishes_once_for_each_parent() {
    let done = nested_collect().run_with(json!([["a", "b"], ["c"]])).await;
    assert_eq!(
        pairs(&done, "e5"),
        [json!([["a", "b"], "f:items=0"]), json!([["c"], "f:items=1"])]
    );
    assert_eq!(done.artifacts("c").len(), 2);
    assert_eq!(outcome(&done), json!([[["a", "b"], ["c"]]]));
}

#[tokio::test]
async fn a_parent_without_items_gives_the_empty_value() {
    let done = nested_collect().run_with(json!([["a"], [], ["b", "c"]])).await;
    assert_eq!(outcome(&done), json!([[["a"], [], ["b", "c"]]]));
    assert_eq!(done.artifacts("c").len(), 3);
}

#[tokio::test]
async fn a_parent_that_was_dropped_gives_nothing() {
    for between in ["test.Pass", "test.Replay"] {
        let graph = each()
            .node("q", "test.Filter", json!({}))
            .node("p", between, json!({}))
            .node("n", "test.StreamN", json!({"n": 2}))
            .node("c", "test.Count", json!({}))
            .sink("s")
            .edges(["f.output > q.value", "q.output > p.value", "p.output > n.t"])
            .edges(["n.output > c.input_item", "c.output > s.value"]);
        let done = graph.run_with(json!([1, 2, 3, 4])).await;
        assert_eq!(outcome(&done), json!([2, 2]), "{between}");
    }
}

#[tokio::test]
async fn an_aggregate_finishes_a_parent_before_its_input_ends() {
    let graph = each()
        .node("w", "test.SlowForward", json!({}))
        .node("n", "test.ForEach", json!({}))
        .node("c", "test.Collect", json!({}))
        .sink("s")
        .edges([
            "f.output > w.value",
            "w.output > n.input_list",
            "n.output > c.input_item",
            "c.output > s.value",
        ]);
    let done = graph.run_with(json!([["a"], ["b"], ["c"]])).await;
    let trace = done.trace();
    let at = |event: &str| trace.iter().position(|other| other == event).unwrap();
    assert!(at("artifact:c:#0") < at("node:n:completed"), "{trace:?}");
    assert_eq!(outcome(&done), json!([["a"], ["b"], ["c"]]));
}

#[tokio::test]
async fn k_100_to_k_103_declarations_that_cannot_work() {
    let refused = async |graph: Graph, code: &str| {
        let done = graph.run_with(json!([1])).await;
        assert_eq!(done.codes(), [code]);
    };
    refused(
        each()
            .node("b", "test.BadAggregate", json!({}))
            .edges(["f.output > b.value"]),
        "corr.aggregate_on_buffered",
    )
    .await;
    refused(
        each()
            .node("b", "test.BadForward", json!({}))
            .edges(["f.output > b.value"]),
        "corr.forward_execution",
    )
    .await;
    let chunks = |graph: Graph| {
        graph
            .node("a", "test.Chunks", json!({}))
            .node("b", "test.Chunks", json!({}))
            .node("j", "test.Join", json!({}))
    };
    refused(
        chunks(each()).edges(["a.chunk > j.l", "b.chunk > j.r"]),
        "corr.two_repeating",
    )
    .await;
    let prefix = each()
        .node("t", "test.ChunkNums", json!({}))
        .node("n", "test.StreamN", json!({"n": 2}))
        .node("j", "test.Join", json!({}))
        .edges([
            "f.output > t.t",
            "f.output > n.t",
            "t.chunk > j.l",
            "n.output > j.r",
        ]);
    refused(prefix, "corr.repeating_prefix").await;
}

#[tokio::test]
async fn k_104_and_k_105_several_edges_into_a_list() {
    let graph = each()
        .node("a", "test.Pass", json!({}))
        .node("b", "test.Twice", json!({}))
        .named("g", "test.Gather", "out", json!({}))
        .edges([
            "f.output > a.value",
            "f.output > b.value",
            "a.output > g.items",
            "b.output > g.items",
        ]);
    assert_eq!(
        outcome(&graph.run_with(json!(["a", "b"])).await),
        json!([["a", ["a", "a"]], ["b", ["b", "b"]]])
    );
    let lists = ["a", "b", "c"].iter().zip([json!([1, 2]), json!([3]), json!([])]);
    let graph = lists.fold(Graph::default(), |graph, (id, value)| {
        graph.node(id, "test.Const", json!({"value": value}))
    });
    let graph = graph.named("g", "test.Gather", "out", json!({})).edges([
        "a.output > g.items",
        "b.output > g.items",
        "c.output > g.items",
    ]);
    assert_eq!(outcome(&graph.run().await), json!([[[1, 2], [3], []]]));
}

#[tokio::test]
async fn k_106_and_k_107_limits_of_what_may_wait() {
    let waiting = |ty: &str, count: i64| {
        graph()
            .node("k", "test.Slow", json!({"value": 1, "ms": 200}))
            .node("t", ty, json!({"n": count}))
            .node("j", "test.Join", json!({}))
            .edges([
                if ty == "test.Chunks" {
                    "t.chunk > j.l"
                } else {
                    "t.output > j.l"
                },
                "k.output > j.r",
            ])
            .setup()
            .lenient()
            .options(|options| (options.max_pending_keys, options.max_pending_messages_per_key) = (2, 2))
    };
    for (ty, code) in [
        ("test.StreamN", "run.too_many_keys"),
        ("test.Chunks", "run.too_many_values"),
    ] {
        let done = waiting(ty, 3).run().await;
        let (node, error) = &done.result.node_errors[0];
        assert_eq!((&**node, error.code.as_deref()), ("j", Some(code)));
        assert!(error.message.contains("input l"), "{}", error.message);
        assert_eq!(waiting(ty, 2).run().await.status(), JobStatus::Completed);
    }
}

#[tokio::test]
async fn k_108_a_single_edge_into_a_list_is_passed_as_it_is() {
    let done = graph()
        .node("a", "test.StrOut", json!({"value": "x"}))
        .named("l", "test.ListStrIn", "out", json!({}))
        .edges(["a.output > l.value"])
        .run()
        .await;
    assert_eq!(outcome(&done), json!(["x"]));
}

#[tokio::test]
async fn k_109_and_k_113_untaken_branches_are_skipped() {
    let gate = graph()
        .input("x")
        .node("g", "test.Gate", json!({"pred": "never"}))
        .node("a", "test.Pass", json!({"value": 3}))
        .node("b", "test.Pass", json!({}))
        .sink("c")
        .edges([
            "x.output > g.value",
            "g.yes > a.value",
            "a.output > b.value",
            "g.no > c.value",
        ]);
    let done = gate.run_with(json!(1)).await;
    assert_eq!((done.calls("a"), done.calls("b"), done.calls("c")), (0, 0, 1));
    assert_eq!(
        (done.count("node:a:completed"), done.artifacts("a").len()),
        (1, 0)
    );
    let list = graph()
        .node("a", "test.Empty", json!({}))
        .node("b", "test.Empty", json!({}))
        .named("g", "test.Gather", "out", json!({"items": [1]}))
        .edges(["a.output > g.items", "b.output > g.items"]);
    let done = list.run().await;
    assert_eq!((outcome(&done), done.calls("g")), (json!([]), 0));
}

#[tokio::test]
async fn k_110_partial_input_fires_with_defaults() {
    let graph = graph()
        .node("a", "test.Const", json!({"value": 1}))
        .node("b", "test.Empty", json!({}))
        .node("e", "test.Echo", json!({"q": 9}))
        .edges(["a.output > e.p", "b.output > e.q"]);
    assert_eq!(graph.run().await.inputs("e"), [json!({"q": 9, "p": 1})]);
}

#[tokio::test]
async fn k_111_and_k_112_pieces_meet_the_item_they_belong_to() {
    let chunks = each()
        .node("t", "test.ChunkNums", json!({"n": 2}))
        .named("j", "test.Join", "out", json!({}))
        .edges(["f.output > t.t", "t.chunk > j.l", "f.output > j.r"]);
    assert_eq!(
        outcome(&chunks.run_with(json!(["a", "b"])).await),
        json!(["10+a", "11+a", "10+b", "11+b"])
    );
    let late = each()
        .node("p", "test.SlowForward", json!({}))
        .node("n", "test.StreamN", json!({"n": 2}))
        .named("j", "test.Join", "out", json!({}))
        .edges([
            "f.output > p.value",
            "f.output > n.t",
            "p.output > j.l",
            "n.output > j.r",
        ]);
    assert_eq!(
        outcome(&late.run_with(json!(["a", "b"])).await),
        json!(["a+0", "a+1", "b+0", "b+1"])
    );
}

#[tokio::test]
async fn f_012_a_node_whose_required_input_failed_upstream_does_not_run() {
    let graph = graph()
        .node("a", "test.FailOn", json!({"value": 1}))
        .node("k", "test.Const", json!({"value": 2}))
        .named("r", "test.Required", "out", json!({}))
        .edges(["a.output > r.value", "k.output > r.other"]);
    let done = graph.run().await;
    assert_eq!((done.status(), done.calls("r")), (JobStatus::Failed, 0));
    assert!(
        done.result.error.as_ref().unwrap().starts_with("a: fail"),
        "{:?}",
        done.result.error
    );
}

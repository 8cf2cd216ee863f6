//! Kernel specification 10.3, first part: iterations and streams.

use atelier_proto::kernel::v1::{Disposition, JobStatus};
use serde_json::{Value as Json, json};

use atelier_kernel::event::Event;

use crate::harness::{Done, Graph, graph};

pub fn outcome(done: &Done) -> Json {
    assert_eq!(done.status(), JobStatus::Completed, "{:?}", done.result.error);
    done.outputs()["out"].clone()
}
pub fn each() -> Graph {
    graph()
        .input("x")
        .node("f", "test.ForEach", json!({}))
        .edges(["x.output > f.input_list"])
}
pub fn pairs(done: &Done, edge: &str) -> Vec<Json> {
    done.delivered(edge)
        .into_iter()
        .map(|(value, lineage)| json!([value, lineage]))
        .collect()
}

#[tokio::test]
async fn k_070_an_iteration_runs_through_a_chain() {
    let graph = graph()
        .node("l", "test.StreamN", json!({"n": 3}))
        .node("p", "test.Pass", json!({}))
        .node("k", "test.Cap", json!({}))
        .edges(["l.output > p.value", "p.output > k.value"]);
    let done = graph.run().await;
    assert_eq!(
        pairs(&done, "e2"),
        [
            json!([0, "l:items=0"]),
            json!([1, "l:items=1"]),
            json!([2, "l:items=2"])
        ]
    );
    assert_eq!(
        (
            done.artifacts("p").len(),
            done.artifacts("l"),
            done.artifacts("k")
        ),
        (3, vec![json!({"output": 2})], vec![json!({})])
    );
    for edge in ["e1", "e2"] {
        assert_eq!(done.edge(edge), ["active:1", "completed:3"]);
    }
    assert_eq!((done.count("output:"), done.count("node:")), (0, 6));
    let keys: Vec<String> = done
        .log
        .calls("p")
        .into_iter()
        .map(|call| call.invocation)
        .collect();
    assert_eq!(keys, ["l:items=0#0", "l:items=1#0", "l:items=2#0"]);
}

#[tokio::test]
async fn k_071_six_executions_are_six_artifacts() {
    let graph = each()
        .named("d", "test.Pass", "d", json!({}))
        .edges(["f.output > d.value"]);
    let done = graph.run_with(json!([1, 2, 3, 4, 5, 6])).await;
    let expected: Vec<Json> = (1..=6).map(|number| json!({"output": number})).collect();
    assert_eq!(done.artifacts("d"), expected);
    assert_eq!((done.count("node:d:completed"), done.shown("d").len()), (1, 6));
}

#[tokio::test]
async fn k_072_artifacts_are_never_suppressed() {
    let graph = each()
        .node("d", "test.Pass", json!({}))
        .sink("s")
        .edges(["f.output > d.value", "d.output > s.value"]);
    let done = graph.run_with(json!([1, 2, 3, 4, 5, 6])).await;
    assert_eq!(
        (
            done.shown("d").len(),
            done.artifacts("d").len(),
            done.artifacts("s").len()
        ),
        (0, 6, 6)
    );
    assert_eq!(outcome(&done), json!([1, 2, 3, 4, 5, 6]));
    assert_eq!(
        crate::harness::json(&done.result.outputs_by_handle["out"]),
        json!({"output": [1, 2, 3, 4, 5, 6]})
    );
}

#[tokio::test]
async fn k_073_an_empty_iteration_invokes_nobody() {
    let graph = graph()
        .node("l", "test.StreamN", json!({"n": 0}))
        .node("p", "test.Pass", json!({}))
        .sink("s")
        .edges(["l.output > p.value", "p.output > s.value"]);
    let done = graph.run().await;
    assert_eq!(
        (done.calls("p"), done.calls("s"), done.artifacts("l")),
        (0, 0, vec![json!({})])
    );
    assert_eq!(
        (done.edge("e1"), done.edge("e2")),
        (vec!["completed:null".into()], vec!["completed:null".into()])
    );
    assert_eq!(outcome(&done), json!([]));
}

#[tokio::test]
async fn k_074_and_k_075_indexes_are_given_by_the_engine() {
    let both = each()
        .node("a", "test.Cap", json!({}))
        .node("b", "test.Cap", json!({}))
        .edges(["f.output > a.value", "f.index > b.value"]);
    let done = both.run_with(json!(["a", "b", "c"])).await;
    let (values, indexes) = (done.delivered("e2"), done.delivered("e3"));
    assert_eq!(
        indexes.iter().map(|(value, _)| value.clone()).collect::<Vec<_>>(),
        [json!(0), json!(1), json!(2)]
    );
    assert!(
        values
            .iter()
            .zip(&indexes)
            .all(|((_, left), (_, right))| left == right)
    );
    let one = each()
        .node("a", "test.Cap", json!({}))
        .edges(["f.output > a.value"]);
    let shown = one.run_with(json!(["a", "b", "c"])).await.shown("f");
    assert_eq!(
        shown,
        [
            ("index".to_owned(), json!(0)),
            ("index".to_owned(), json!(1)),
            ("index".to_owned(), json!(2))
        ]
    );
}

#[tokio::test]
async fn k_076_null_frames_open_no_item() {
    let frames = json!([{"a": null, "b": 1}, {"a": null}, {"b": 2}]);
    let graph = graph()
        .node("f", "test.Frames", json!({"frames": frames}))
        .node("k", "test.Cap", json!({}))
        .edges(["f.b > k.value"]);
    assert_eq!(
        pairs(&graph.run().await, "e1"),
        [json!([1, "f:f=0"]), json!([2, "f:f=1"])]
    );
}

#[tokio::test]
async fn k_077_an_untagged_stream_collapses_with_one_warning() {
    let done = graph()
        .node("r", "test.Raw", json!({"n": 3}))
        .sink("s")
        .edges(["r.output > s.value"])
        .run()
        .await;
    assert_eq!(
        (outcome(&done), done.warnings().len(), done.calls("s")),
        (json!([2]), 1, 1)
    );
    assert_eq!(done.edge("e1"), ["active:1", "completed:3"]);
}

#[tokio::test]
async fn k_078_to_k_081_chunks_drive_invocations() {
    let chunks = graph()
        .node("t", "test.Chunks", json!({"n": 3}))
        .named("p", "test.Pass", "out", json!({}))
        .edges(["t.chunk > p.value"]);
    let done = chunks.run().await;
    assert_eq!(
        (outcome(&done), done.artifacts("p").len()),
        (json!(["c0", "c1", "c2"]), 3)
    );
    let append = done.events.iter().filter(|event| {
        matches!(
            event,
            Event::Output {
                disposition: Disposition::Append,
                ..
            }
        )
    });
    assert_eq!(append.count(), 3);
    let keys: Vec<String> = done
        .log
        .calls("p")
        .into_iter()
        .map(|call| call.invocation)
        .collect();
    assert_eq!(keys, ["#0", "#1", "#2"]);
    let two = graph()
        .node("t", "test.Chunks", json!({"n": 3}))
        .node("p", "test.Pass", json!({}))
        .sink("s");
    let done = two.edges(["t.chunk > p.value", "p.output > s.value"]).run().await;
    assert_eq!((done.calls("s"), outcome(&done)), (3, json!(["c0", "c1", "c2"])));
    let config = graph()
        .node("c", "test.Slow", json!({"value": "k", "ms": 30}))
        .node("t", "test.Chunks", json!({"n": 3}))
        .named("n", "test.Concat", "out", json!({}))
        .edges(["t.chunk > n.a", "c.output > n.b"]);
    assert_eq!(outcome(&config.run().await), json!(["c0k", "c1k", "c2k"]));
    let sums = graph()
        .input("x")
        .node("t", "test.ChunkNums", json!({"n": 3}))
        .named("a", "test.Add", "out", json!({}));
    let done = sums
        .edges(["t.chunk > a.a", "x.output > a.b"])
        .run_with(json!(1))
        .await;
    assert_eq!(
        (outcome(&done), done.artifacts("a").len()),
        (json!([11, 12, 13]), 3)
    );
}

#[tokio::test]
async fn k_082_and_k_083_frames_merge_into_one_artifact() {
    let chunk = |text: &str| json!({"a": {"type": "chunk", "content": text}});
    let frames = json!([chunk("a"), chunk("b"), {"a": "hi", "b": "hi"}]);
    let done = graph()
        .named("f", "test.PlainFrames", "out", json!({"frames": frames}))
        .run()
        .await;
    assert_eq!(
        (done.shown("f").len(), done.artifacts("f")),
        (4, vec![json!({"a": "hi", "b": "hi"})])
    );
    let images = json!([{"a": "A"}, {"a": "B"}, {"a": "C"}]);
    let done = graph()
        .named("f", "test.PlainFrames", "out", json!({"frames": images}))
        .run()
        .await;
    assert_eq!(done.artifacts("f"), [json!({"a": "C"})]);
}

#[tokio::test]
async fn k_084_marked_outputs_make_each_frame_an_artifact() {
    let frames = json!([{"image": "A"}, {"image": "B"}, {"image": "C"}]);
    let done = graph()
        .named("f", "test.ArtifactFrames", "out", json!({"frames": frames}))
        .run()
        .await;
    assert_eq!(
        done.artifacts("f"),
        [
            json!({"image": "A"}),
            json!({"image": "B"}),
            json!({"image": "C"})
        ]
    );
    assert_eq!(outcome(&done), json!(["A", "B", "C"]));
    let mixed = json!([{"image": "A"}, {"note": "n"}]);
    let done = graph()
        .named("f", "test.ArtifactFrames", "out", json!({"frames": mixed}))
        .run()
        .await;
    assert_eq!(done.artifacts("f"), [json!({"image": "A"}), json!({"note": "n"})]);
    let keys = done.events.iter().filter_map(|event| match event {
        Event::Artifact { invocation, .. } => Some(invocation.clone()),
        _ => None,
    });
    assert_eq!(keys.collect::<Vec<_>>(), ["#0.0", "#0"]);
}

#[tokio::test]
async fn k_085_and_k_086_nested_and_driven_iterations() {
    let nested = each()
        .node("n", "test.StreamN", json!({"n": 3}))
        .named("m", "test.Join", "out", json!({}))
        .edges(["f.output > n.t", "f.output > m.l", "n.output > m.r"]);
    let done = nested.run_with(json!(["P", "Q"])).await;
    assert_eq!(outcome(&done), json!(["P+0", "P+1", "P+2", "Q+0", "Q+1", "Q+2"]));
    let driven = graph()
        .node("t", "test.Chunks", json!({"n": 2}))
        .node("l", "test.StreamN", json!({"n": 2}))
        .node("k", "test.Cap", json!({}))
        .edges(["t.chunk > l.t", "l.output > k.value"]);
    let tokens: Vec<String> = driven
        .run()
        .await
        .delivered("e2")
        .into_iter()
        .map(|(_, lineage)| lineage)
        .collect();
    assert_eq!(tokens, ["l:items=0", "l:items=1", "l:items=2", "l:items=3"]);
}

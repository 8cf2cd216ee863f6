//! Kernel specification 10.8, the part that the engine itself owes: edges, dispositions, properties of
//! artifacts.

use atelier_kernel::event::Event;
use atelier_proto::kernel::v1::Disposition;
use serde_json::{Value as Json, json};

use crate::harness::{Done, graph, json as to_json, value};

fn shown(done: &Done) -> Vec<(Disposition, bool)> {
    let own = done.events.iter().filter_map(|event| match event {
        Event::Output {
            disposition, done, ..
        } => Some((*disposition, *done)),
        _ => None,
    });
    own.collect()
}

#[tokio::test(start_paused = true)]
async fn k_240_and_k_241_edge_updates_are_throttled_with_an_exact_end() {
    let graph = |n: i64, ms: i64| {
        graph()
            .node("l", "test.StreamN", json!({"n": n, "ms": ms}))
            .node("k", "test.Cap", json!({}))
            .edges(["l.output > k.value"])
    };
    assert_eq!(graph(4, 100).run().await.edge("e1"), ["active:1", "completed:4"]);
    assert_eq!(
        graph(3, 600).run().await.edge("e1"),
        ["active:1", "active:3", "completed:3"]
    );
}

#[tokio::test]
async fn k_242_edges_of_inputs_are_completed_too() {
    let graph = graph()
        .node("x", "nodetool.input.Stream", json!({"name": "x"}))
        .node("k", "test.Cap", json!({}));
    let running = graph.edges(["x.output > k.value"]).setup().start();
    running.started().await;
    for number in 0..3 {
        running
            .handle
            .push_input("x", value(json!(number)), None)
            .await
            .unwrap();
    }
    running.handle.finish_input("x", None).await.unwrap();
    assert_eq!(running.done().await.edge("e1"), ["active:1", "completed:3"]);
}

#[tokio::test]
async fn k_243_audio_pieces_are_shown_and_never_committed_one_by_one() {
    let frames: Vec<Json> = (0..100)
        .map(|_| json!({"a": {"type": "chunk", "content_type": "audio", "content": ""}}))
        .collect();
    let done = graph()
        .node("f", "test.PlainFrames", json!({"frames": frames}))
        .run()
        .await;
    assert_eq!((done.shown("f").len(), done.artifacts("f").len()), (100, 1));
}

#[tokio::test]
async fn k_247_and_k_248_whole_values_replace_and_pieces_append() {
    let output = |value: Json| {
        graph()
            .input("x")
            .node("o", "nodetool.output.Output", json!({}))
            .edges(["x.output > o.value"])
            .setup()
            .params(json!({"x": value}))
    };
    assert_eq!(
        shown(&output(json!("whole")).run().await),
        [(Disposition::Replace, false)]
    );
    assert_eq!(
        shown(
            &output(json!({"type": "chunk", "content": "", "done": true}))
                .run()
                .await
        ),
        [(Disposition::Append, true)]
    );
}

#[tokio::test]
async fn k_249_an_artifact_is_stored_with_its_plain_inputs() {
    let image = json!({"type": "image", "uri": "asset://1"});
    let inputs = json!({"prompt": "p", "seed": 3, "flag": true, "image": image, "_x": 1});
    let done = graph().node("e", "test.Echo", inputs).run().await;
    let properties = done.events.iter().find_map(|event| match event {
        Event::Artifact { properties, .. } => properties.clone(),
        _ => None,
    });
    assert_eq!(
        to_json(&properties.unwrap().into()),
        json!({"prompt": "p", "seed": 3, "flag": true})
    );
}

#[tokio::test]
async fn k_250_a_list_of_variants_is_one_artifact() {
    let done = graph().node("v", "test.Variants", json!({})).run().await;
    assert_eq!(done.artifacts("v"), [json!({"image": [0, 1, 2, 3]})]);
}

#[tokio::test]
async fn k_251_nothing_follows_the_last_event() {
    let done = graph()
        .node("r", "test.Raw", json!({"n": 50}))
        .sink("s")
        .edges(["r.output > s.value"])
        .run()
        .await;
    let trace = done.trace();
    assert_eq!(
        (trace.first().unwrap().as_str(), trace.last().unwrap().as_str()),
        ("job:running", "job:completed")
    );
    assert_eq!(done.count("job:"), 2);
}

#[tokio::test]
async fn k_252_constants_and_inputs_make_no_artifacts() {
    let graph = graph()
        .input("x")
        .node("k", "nodetool.constant.Value", json!({"value": 1}))
        .named("a", "test.Add", "out", json!({}));
    let done = graph
        .edges(["x.output > a.a", "k.output > a.b"])
        .run_with(json!(2))
        .await;
    assert_eq!(
        (
            done.artifacts("x").len(),
            done.artifacts("k").len(),
            done.artifacts("a").len()
        ),
        (0, 0, 1)
    );
    assert_eq!(done.outputs(), json!({"out": [3]}));
}

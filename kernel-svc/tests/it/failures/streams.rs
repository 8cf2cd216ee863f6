//! Streams and their ends, messages about them, triggers.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use atelier_kernel::run::{Appended, Deliveries, InputLog};
use atelier_proto::{kernel::v1::JobStatus, value::Value};
use serde_json::{Value as Json, json};

use crate::harness::{Done, graph};

#[tokio::test]
async fn b_10_a_node_that_cannot_read_its_stream_gets_its_properties() {
    let graph = graph()
        .node("l", "test.LegacyStream", json!({"g": "hi"}))
        .with("dynamic_properties", json!({"d": 1}));
    assert_eq!(graph.run().await.inputs("l"), [json!({"g": "hi", "d": 1})]);
}

#[tokio::test]
async fn b_14_one_executor_is_initialised_and_run() {
    let graph = graph()
        .node("a", "test.Const", json!({}))
        .node("b", "test.Pass", json!({}));
    let done = graph.run().await;
    assert_eq!(*done.log.initialized.lock().unwrap(), ["a", "b"]);
    assert_eq!((done.calls("a"), done.calls("b")), (1, 1));
}

/// Ten values for a consumer, through inboxes of one value.
async fn narrow(consumer: &str, strict: bool) -> Done {
    let graph = graph()
        .node("l", "test.StreamN", json!({"n": 10}))
        .node("c", consumer, json!({"on": 3}))
        .edges(["l.output > c.value"]);
    let setup = graph.setup().options(|options| {
        options.buffer_limit = Some(1);
        options.strict = strict;
    });
    setup.run().await
}

#[tokio::test]
async fn b_15_whoever_takes_values_wakes_their_producer() {
    let done = narrow("test.Pass", true).await;
    assert_eq!((done.status(), done.calls("c")), (JobStatus::Completed, 10));
}

#[tokio::test]
async fn b_17_an_edge_that_is_completed_says_nothing_more() {
    let done = narrow("test.Cap", true).await;
    assert_eq!(done.edge("e1"), ["active:1", "completed:10"]);
}

#[tokio::test]
async fn b_23_waiting_on_what_is_closed_ends_at_once() {
    // A reader that comes after the cancel: its inbox is closed before it waits for the first time.
    let running = graph()
        .node("x", "nodetool.input.Stream", json!({"name": "x"}))
        .node("c", "test.Cap", json!({}))
        .edges(["x.output > c.value"])
        .setup()
        .start();
    running.started().await;
    running.cancel.cancel();
    assert_eq!(running.done().await.status(), JobStatus::Cancelled);
}

#[tokio::test]
async fn b_24_data_that_nobody_reads_is_warned_about() {
    let graph = graph()
        .node("a", "test.Const", json!({"value": 1}))
        .node("l", "test.LegacyStream", json!({}))
        .edges(["a.output > l.data"]);
    let done = graph.setup().lenient().run().await;
    assert_eq!(
        (done.status(), done.count("node:l:warning")),
        (JobStatus::Completed, 1)
    );
}

#[tokio::test]
async fn b_30_a_producer_outlives_its_consumer() {
    let done = narrow("test.StreamFail", false).await;
    assert_eq!(done.status(), JobStatus::Failed);
    assert_eq!(done.artifacts("l"), [json!({"output": 9})]);
}

#[tokio::test]
async fn b_36_an_output_that_was_completed_early_ends_once() {
    let graph = graph()
        .node("l", "test.StreamN", json!({"n": 3}))
        .node("t", "test.Take", json!({"n": 1}))
        .node("w", "test.Slow", json!({"ms": 50, "value": "late"}))
        .named("g", "test.Gather", "out", json!({}))
        .node("k", "test.Last", json!({}))
        .edges([
            "l.output > t.value",
            "t.output > k.input_item",
            "k.output > g.items",
            "w.output > g.items",
        ]);
    let done = graph.run().await;
    assert_eq!(done.status(), JobStatus::Completed, "{:?}", done.result.error);
    assert_eq!(done.outputs(), json!({"out": [["late", 0]]}));
}

#[tokio::test]
async fn b_37_the_early_end_of_an_output_is_seen_while_its_node_runs() {
    let running = graph()
        .node("t", "test.TwoSlots", json!({}))
        .node("c", "test.Collect", json!({}))
        .sink("s")
        .edges(["t.output > c.input_item", "c.output > s.value"])
        .setup()
        .start();
    while running.log.calls("s").is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    running.cancel.cancel();
    assert_eq!(running.done().await.inputs("s"), [json!({"value": [1]})]);
}

/// An input log that fails once.
#[derive(Default)]
struct Flaky(std::sync::Mutex<(bool, Vec<String>)>);
#[async_trait]
impl InputLog for Flaky {
    type Error = ();
    async fn append(&self, id: &str, _: &Value) -> Result<bool, ()> {
        let mut state = self.0.lock().unwrap();
        if !std::mem::replace(&mut state.0, true) {
            return Err(());
        }
        let known = state.1.iter().any(|other| other == id);
        state.1.push(id.to_owned());
        Ok(!known)
    }
}

#[tokio::test]
async fn b_08_a_redelivery_is_the_same_record() {
    let (log, deliveries) = (Flaky::default(), Deliveries::default());
    log.0.lock().unwrap().0 = true;
    let mut outcomes = Vec::new();
    for _ in 0..2 {
        outcomes.push(deliveries.deliver(&log, "i", 1.into(), |_| {}).await);
    }
    assert_eq!(outcomes, [Ok(Appended::Stored), Ok(Appended::Exists)]);
    assert_eq!(log.0.lock().unwrap().1, ["i"]);
    // Another process knows it from the log.
    let elsewhere = Deliveries::default()
        .deliver(&log, "i", 1.into(), |_| panic!("twice"))
        .await;
    assert_eq!(elsewhere, Ok(Appended::Exists));
}

#[tokio::test]
async fn b_48_an_event_that_could_not_be_kept_is_not_seen() {
    let (log, deliveries) = (Flaky::default(), Deliveries::default());
    let deliver = || deliveries.deliver(&log, "i", 1.into(), |_| {});
    assert_eq!(deliver().await, Err(()));
    assert_eq!(deliver().await, Ok(Appended::Stored));
}

#[tokio::test]
async fn b_49_a_refused_item_does_not_take_the_others_with_it() {
    let graph = graph()
        .node("f", "test.ForEach", json!({"input_list": [1, 2, 3]}))
        .named("w", "test.Refuse", "w", json!({"on": 2}))
        .edges(["f.output > w.value"]);
    let done = graph.run().await;
    assert_eq!(
        (done.status(), done.outputs()),
        (JobStatus::Completed, json!({"w": [1, 3]}))
    );
}

#[tokio::test(start_paused = true)]
async fn b_53_updates_of_an_edge_are_few_and_its_end_is_exact() {
    let graph = graph()
        .node("l", "test.StreamN", json!({"n": 50, "ms": 10}))
        .node("k", "test.Cap", json!({}))
        .edges(["l.output > k.value"]);
    assert_eq!(graph.run().await.edge("e1"), ["active:1", "completed:50"]);
}

#[tokio::test]
async fn b_54_pieces_of_audio_are_shown_and_not_gathered() {
    let piece = json!({"a": {"type": "chunk", "content_type": "audio", "content": "AAAA"}});
    let frames: Vec<Json> = vec![piece; 50];
    let done = graph()
        .node("f", "test.PlainFrames", json!({"frames": frames}))
        .run()
        .await;
    assert_eq!((done.shown("f").len(), done.artifacts("f").len()), (50, 1));
}

#[tokio::test]
async fn b_65_values_that_come_after_a_consumers_end_stay_visible() {
    let done = narrow("test.StreamFail", true).await;
    let error = done.result.error.clone().unwrap();
    assert!(error.contains("unread values"), "{error}");
    assert_eq!(done.edge("e1").last().map(String::as_str), Some("drained:10"));
}

#[tokio::test]
async fn b_70_nothing_restarts_a_run_that_fails() {
    let mut setup = graph()
        .node("t", "test.Trigger", json!({}))
        .node("f", "test.FailOn", json!({}));
    setup = setup.edges(["t.value > f.value"]);
    let mut setup = setup.setup();
    setup.trigger = Some(atelier_kernel::node::TriggerEvent {
        node_id: Arc::from("t"),
        payload: [("value".to_owned(), Value::Int(1))].into_iter().collect(),
    });
    let done = setup.run().await;
    assert_eq!((done.status(), done.calls("f")), (JobStatus::Failed, 1));
}

//! G-14: the values that wait in a run take no more memory than it may have.

use std::time::Duration;

use atelier_kernel::run::RunError;
use atelier_proto::{kernel::v1::JobStatus, value::Value};
use serde_json::json;

use crate::harness::{Done, Graph, graph};

const KIB: usize = 1024;

async fn within(graph: &Graph, budget: usize) -> Done {
    graph
        .setup()
        .options(|options| options.byte_budget = budget)
        .run()
        .await
}
/// A hundred values of 10 KiB for a consumer.
fn stream(consumer: &str, input: &str) -> Graph {
    let edge = format!("b.output > c.{input}");
    graph()
        .node("b", "test.BigStream", json!({"n": 100, "bytes": 10 * KIB}))
        .node("c", consumer, json!({"ms": 1}))
        .edges([edge.as_str()])
}

#[tokio::test]
async fn g_14_a_producer_waits_for_its_consumer() {
    // All hundred would take a megabyte.
    let running = stream("test.SlowForward", "value")
        .node("k", "test.Cap", json!({}))
        .edges(["c.output > k.value"])
        .setup()
        .options(|options| options.byte_budget = 64 * KIB)
        .start();
    let mut most = 0;
    while running.delivered("e2") < 100 && !running.has_ended() {
        let waiting = running.delivered("e1").saturating_sub(running.delivered("e2"));
        most = most.max(waiting);
        tokio::time::sleep(Duration::from_micros(500)).await;
    }
    // Six fit, one is in the hands of the consumer, and one may be counted late.
    assert!((2..=8).contains(&most), "{most}");
    let done = running.done().await;
    assert_eq!(
        (done.status(), done.delivered("e1").len()),
        (JobStatus::Completed, 100)
    );
}

#[tokio::test]
async fn g_14_a_value_that_is_larger_than_the_budget_fails_its_node() {
    let graph = graph()
        .node("b", "test.Big", json!({"bytes": 200 * KIB}))
        .sink("s")
        .edges(["b.output > s.value"]);
    let done = within(&graph, 64 * KIB).await;
    assert_eq!(
        (done.status(), done.result.error_code.as_deref()),
        (JobStatus::Failed, Some("run.item_too_large"))
    );
    let error = done.result.error.clone().unwrap();
    assert!(error.starts_with("b: ") && error.contains("output"), "{error}");
    assert_eq!(done.calls("s"), 0);
    assert_eq!(within(&graph, 300 * KIB).await.status(), JobStatus::Completed);
}

#[tokio::test]
async fn g_14_whoever_gathers_more_than_the_budget_gets_some_more_and_no_end_of_it() {
    let gather = |count: usize| {
        graph()
            .node("b", "test.BigStream", json!({"n": count, "bytes": 10 * KIB}))
            .node("c", "test.Collect", json!({}))
            .edges(["b.output > c.input_item"])
    };
    // Twelve values are about twice the budget.
    let done = within(&gather(12), 64 * KIB).await;
    assert_eq!(done.status(), JobStatus::Completed, "{:?}", done.result.error);
    let setup = gather(100).setup().lenient().options(|options| {
        options.byte_budget = 64 * KIB;
        options.stall_timeout = Duration::from_millis(50);
    });
    let done = setup.run().await;
    assert_eq!(
        (done.status(), done.result.error_code.as_deref()),
        (JobStatus::Failed, Some("run.memory")),
        "{:?}",
        done.result.error
    );
    assert!(done.result.error.clone().unwrap().contains("budget"));
}

#[tokio::test]
async fn g_14_a_dead_consumer_and_a_cancel_free_those_who_wait() {
    let failing = graph()
        .node("b", "test.BigStream", json!({"n": 50, "bytes": 10 * KIB}))
        .node("c", "test.StreamFail", json!({}))
        .edges(["b.output > c.value"]);
    let setup = failing
        .setup()
        .lenient()
        .options(|options| options.byte_budget = 64 * KIB);
    assert_eq!(setup.run().await.delivered("e1").len(), 50);
    let endless = graph()
        .node("b", "test.BigStream", json!({"n": 50, "bytes": 10 * KIB}))
        .node("c", "test.Endless", json!({}))
        .edges(["b.output > c.value"]);
    let running = endless
        .setup()
        .options(|options| options.byte_budget = 64 * KIB)
        .start();
    while running.log.calls("c").is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    running.cancel.cancel();
    assert_eq!(running.done().await.status(), JobStatus::Cancelled);
}

#[tokio::test]
async fn g_14_pushed_values_wait_too_and_inputs_have_the_same_limit() {
    let graph = graph()
        .node("x", "nodetool.input.Stream", json!({"name": "x"}))
        .node("c", "test.SlowForward", json!({"ms": 1}))
        .edges(["x.output > c.value"]);
    let running = graph
        .setup()
        .options(|options| options.byte_budget = 64 * KIB)
        .start();
    running.started().await;
    let value = |size: usize| Value::Bytes(bytes::Bytes::from(vec![0; size]));
    for _ in 0..20 {
        running
            .handle
            .push_input("x", value(10 * KIB), None)
            .await
            .expect("room");
    }
    let large = running.handle.push_input("x", value(100 * KIB), None).await;
    assert!(
        matches!(&large, Err(RunError::InputFailed { message, .. }) if message.contains("larger")),
        "{large:?}"
    );
    running.handle.finish_input("x", None).await.expect("an input");
    let done = running.done().await;
    assert_eq!(
        (done.status(), done.delivered("e1").len()),
        (JobStatus::Completed, 20)
    );
}

//! Streams that break, workers that come back, and workers that do not.

use std::time::Duration;

use atelier_common::testkit::until;
use atelier_proto::kernel::v1::{
    JobStatus, OutputCorrelationKind, WorkerGoodbye, WorkerNodeType, connect_request::Message as Say,
    connect_response::Message as Said,
};
use serde_json::json;

use super::{
    client::{Client, Kernel, end, result, served, yielded},
    input, one, reader, streaming, three,
};
use crate::harness::{Done, graph};

fn items(name: &str, retry_safe: bool) -> WorkerNodeType {
    WorkerNodeType {
        retry_safe,
        ..streaming(name, OutputCorrelationKind::Iteration)
    }
}
/// Ends a stream as a broken network does, and waits until the kernel knows.
async fn cut(kernel: &Kernel, client: Client, left: usize) {
    drop(client);
    until(|| async { kernel.workers.connected() == left })
        .within(Duration::from_secs(10))
        .await;
}
fn error(done: &Done) -> String {
    done.result.error.clone().unwrap_or_default()
}
/// A run of a generator whose worker gave one yield, which was accepted.
macro_rules! after_one_yield {
    ($kernel:ident, $client:ident, $ty:expr) => {{
        let graph = graph()
            .node("w", "partner.Gen", json!({}))
            .node("k", "test.Cap", json!({}))
            .edges(["w.output > k.value"]);
        let mut client = $kernel.worker("one", vec![$ty]).await;
        let run = $kernel.setup(&graph).start();
        let id = client.invocation().await.invocation_id;
        client.frame(&id, 0, yielded(json!("a"))).await;
        assert_eq!(client.receipt().await, (1, false));
        $client = client;
        (run, id)
    }};
}

#[tokio::test]
async fn a_worker_that_comes_back_goes_on_and_nothing_is_applied_twice() {
    let kernel = Kernel::new();
    let client;
    let (run, id) = after_one_yield!(kernel, client, items("partner.Gen", false));
    cut(&kernel, client, 0).await;
    let (mut client, welcome) = kernel.connect("one", &[&id, "job/of/the/past"]).await;
    assert_eq!(welcome.forgotten_ids, ["job/of/the/past"]);
    assert_eq!(
        (
            welcome.resumed[0].invocation_id.as_str(),
            welcome.resumed[0].next_frame
        ),
        (id.as_str(), 1)
    );
    client.declare(vec![items("partner.Gen", false)]).await;
    // The receipt may have been lost: what was accepted is sent again, and answered again.
    client.frame(&id, 0, yielded(json!("a"))).await;
    assert_eq!(client.receipt().await, (1, false));
    client.frame(&id, 1, yielded(json!("b"))).await;
    client.frame(&id, 2, end()).await;
    client.closed().await;
    let done = run.done().await;
    assert_eq!(done.status(), JobStatus::Completed, "{}", error(&done));
    let values: Vec<_> = done.delivered("e1").into_iter().map(|(value, _)| value).collect();
    assert_eq!(values, [json!("a"), json!("b")]);
}
#[tokio::test]
async fn a_reader_gets_again_what_it_did_not_read() {
    let kernel = Kernel::new();
    let mut client = kernel.worker("one", vec![reader("partner.Read")]).await;
    let run = kernel.setup(&three("partner.Read")).start();
    let id = client.invocation().await.invocation_id;
    let first = input(&mut client).await;
    client
        .say(Say::InputReceipt(atelier_proto::kernel::v1::InputReceipt {
            invocation_id: id.clone(),
            numbers: vec![first.number],
        }))
        .await;
    while input(&mut client).await.value.is_some() {}
    cut(&kernel, client, 0).await;
    let (mut client, _) = kernel.connect("one", &[&id]).await;
    let mut numbers = Vec::new();
    for _ in 0..3 {
        numbers.push(input(&mut client).await.number);
    }
    assert_eq!(numbers, [1, 2, 3]);
    client.frame(&id, 0, end()).await;
    client.closed().await;
    assert_eq!(run.done().await.status(), JobStatus::Completed);
}
#[tokio::test]
async fn a_restarted_worker_starts_over_what_had_given_nothing_out() {
    let kernel = Kernel::new();
    let mut client = kernel.worker("one", vec![served("partner.Work")]).await;
    let run = kernel.setup(&one("partner.Work")).start();
    let first = client.invocation().await;
    cut(&kernel, client, 0).await;
    let (mut client, welcome) = kernel.connect("one", &[]).await;
    assert!(welcome.resumed.is_empty());
    client.declare(vec![served("partner.Work")]).await;
    let again = client.invocation().await;
    assert_eq!((first.attempt, again.attempt), (1, 2));
    assert_ne!(first.invocation_id, again.invocation_id);
    // Words about the first one are void.
    client.frame(&first.invocation_id, 0, result(json!("old"))).await;
    let Said::Cancel(cancel) = client.next().await else {
        panic!("not forgotten")
    };
    assert!(cancel.forgotten);
    client.frame(&again.invocation_id, 0, result(json!("new"))).await;
    assert_eq!(run.done().await.outputs(), json!({"out": ["new"]}));
}
#[tokio::test]
async fn a_restarted_generator_repeats_its_yields_only_where_that_is_safe() {
    let kernel = Kernel::new();
    let client;
    let (run, _) = after_one_yield!(kernel, client, items("partner.Gen", true));
    let mut other = kernel.worker("two", vec![items("partner.Gen", true)]).await;
    cut(&kernel, client, 1).await;
    kernel.connect("one", &[]).await;
    // Another worker of the type takes over; its first yield was accepted already.
    let again = other.invocation().await;
    assert_eq!((again.attempt, again.accepted_yields), (2, 1));
    for (ordinal, text) in (0..).zip(["a", "b"]) {
        other
            .frame(&again.invocation_id, ordinal, yielded(json!(text)))
            .await;
    }
    other.frame(&again.invocation_id, 2, end()).await;
    other.closed().await;
    let done = run.done().await;
    let values: Vec<_> = done.delivered("e1").into_iter().map(|(value, _)| value).collect();
    assert_eq!(values, [json!("a"), json!("b")]);

    let kernel = Kernel::new();
    let client;
    let (run, _) = after_one_yield!(kernel, client, items("partner.Gen", false));
    cut(&kernel, client, 0).await;
    kernel.connect("one", &[]).await;
    let done = run.done().await;
    assert_eq!(done.status(), JobStatus::Failed);
    let text = error(&done);
    for part in ["node w (partner.Gen)", "tester", "one", "not declared retry safe"] {
        assert!(text.contains(part), "{text}");
    }
}
#[tokio::test]
async fn a_worker_that_stays_away_fails_its_nodes_by_name_or_hands_over_what_is_safe() {
    let kernel = Kernel::with(Duration::from_millis(200), Duration::from_secs(5));
    let client = {
        let mut client = kernel.worker("one", vec![served("partner.Work")]).await;
        let run = kernel.setup(&one("partner.Work")).start();
        client.invocation().await;
        (client, run)
    };
    cut(&kernel, client.0, 0).await;
    let done = client.1.done().await;
    let text = error(&done);
    for part in [
        "node w (partner.Work)",
        "tester (instance one)",
        "is gone for 200ms",
    ] {
        assert!(text.contains(part), "{text}");
    }
    until(|| async { kernel.types.of("1").meta("partner.Work").is_none() })
        .within(Duration::from_secs(10))
        .await;

    let safe = || WorkerNodeType {
        retry_safe: true,
        ..served("partner.Work")
    };
    let mut gone = kernel.worker("one", vec![safe()]).await;
    let run = kernel.setup(&one("partner.Work")).start();
    gone.invocation().await;
    let mut other = kernel.worker("two", vec![safe()]).await;
    cut(&kernel, gone, 1).await;
    let again = other.invocation().await;
    other.frame(&again.invocation_id, 0, result(json!("other"))).await;
    assert_eq!(run.done().await.outputs(), json!({"out": ["other"]}));
}
#[tokio::test]
async fn an_invocation_waits_for_a_worker_of_its_type_and_not_for_ever() {
    let kernel = Kernel::with(Duration::from_millis(300), Duration::from_secs(5));
    let client = kernel.worker("one", vec![served("partner.Work")]).await;
    let setup = kernel.setup(&one("partner.Work"));
    let late = kernel.setup(&one("partner.Work"));
    client.say(Say::Goodbye(WorkerGoodbye {})).await;
    cut(&kernel, client, 0).await;
    let done = setup.run().await;
    assert!(
        error(&done).contains("no worker serves it for 300ms"),
        "{}",
        error(&done)
    );
    let run = late.start();
    until(|| async { kernel.workers.invocations() == 1 })
        .within(Duration::from_secs(10))
        .await;
    let mut client = kernel.worker("two", vec![served("partner.Work")]).await;
    let id = client.invocation().await.invocation_id;
    client.frame(&id, 0, result(json!(1))).await;
    assert_eq!(run.done().await.status(), JobStatus::Completed);
}
#[tokio::test]
async fn a_worker_that_says_goodbye_finishes_what_it_has_and_gets_no_more() {
    let kernel = Kernel::new();
    let mut client = kernel.worker("one", vec![served("partner.Work")]).await;
    let run = kernel.setup(&one("partner.Work")).start();
    let id = client.invocation().await.invocation_id;
    client.say(Say::Goodbye(WorkerGoodbye {})).await;
    client.frame(&id, 0, result(json!(1))).await;
    assert_eq!(run.done().await.status(), JobStatus::Completed);
    while client.hear().await.expect("a good end").is_some() {}
    until(|| async { kernel.types.of("1").meta("partner.Work").is_none() })
        .within(Duration::from_secs(10))
        .await;
}
#[tokio::test]
async fn silence_ends_a_stream_and_a_newer_one_replaces_an_older_one() {
    let kernel = Kernel::with(Duration::from_secs(20), Duration::from_millis(50));
    let mut client = kernel.worker("one", vec![served("partner.Work")]).await;
    let status = client.error().await;
    assert_eq!(status.code(), tonic::Code::DeadlineExceeded, "{status:?}");
    assert!(status.message().contains("said nothing"), "{status:?}");

    let kernel = Kernel::new();
    let mut older = kernel.worker("one", vec![served("partner.Work")]).await;
    let _newer = kernel.worker("one", vec![served("partner.Work")]).await;
    let status = older.error().await;
    assert_eq!(status.code(), tonic::Code::Aborted, "{status:?}");
    assert_eq!(kernel.workers.connected(), 1);
}
#[tokio::test]
async fn a_kernel_that_goes_down_lets_running_invocations_end() {
    let kernel = Kernel::new();
    let mut client = kernel.worker("one", vec![served("partner.Work")]).await;
    let run = kernel.setup(&one("partner.Work")).start();
    let id = client.invocation().await.invocation_id;
    kernel.tasks.stop();
    client.frame(&id, 0, result(json!(1))).await;
    assert_eq!(run.done().await.status(), JobStatus::Completed);
    assert_eq!(client.error().await.code(), tonic::Code::Unavailable);
}

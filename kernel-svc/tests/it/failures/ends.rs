//! How runs end: errors, cancels, suspensions, and what is told about them.

use std::time::{Duration, Instant};

use atelier_kernel::{
    event::Event,
    run::{Busy, Runner},
};
use atelier_proto::{
    kernel::v1::{JobEvent, JobStatus, NodeStatus, job_event::Event as Frame},
    value::Value,
};
use serde_json::json;

use crate::{
    harness::{Done, Running, graph},
    store::scene,
};

async fn until(running: &Running, node: &str) {
    while running.log.calls(node).is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
/// Runs two nodes side by side, and cancels when both of them run.
async fn beside(first: &str, second: &str, cancel: bool) -> Done {
    let graph = graph()
        .node("a", first, json!({"ms": 30}))
        .node("b", second, json!({"ms": 30}));
    let running = graph.setup().start();
    if cancel {
        until(&running, "a").await;
        until(&running, "b").await;
        running.cancel.cancel();
    }
    running.done().await
}

#[tokio::test]
async fn b_02_a_node_that_fails_fails_the_run() {
    let done = beside("test.FailOn", "test.Const", false).await;
    assert_eq!(done.status(), JobStatus::Failed);
}

#[tokio::test]
async fn b_07_the_log_numbers_events_one_after_the_other() {
    for scene in scene::scenes().await {
        let node = scene::label("n", "test.Plain");
        let mut events = vec![scene::running()];
        events.extend((0..50).map(|at| scene::artifact(&node, format!("i{at}"), Value::Int(at))));
        events.push(scene::completed(Vec::new()));
        scene.play(events).await;
        assert_eq!(scene::seqs(&scene.log().await), (1..=52).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn b_27_all_messages_carry_the_id_of_the_run() {
    for scene in scene::scenes().await {
        let node = scene::label("n", "test.Plain");
        scene
            .play(vec![
                scene::running(),
                scene::output(&node, Value::Int(1)),
                scene::completed(Vec::new()),
            ])
            .await;
        assert!(scene.shown().iter().all(|event| event.job_id == "job-1"));
    }
}

#[tokio::test]
async fn b_28_a_cancel_before_the_start_is_not_forgotten() {
    let setup = graph().node("c", "test.Const", json!({})).setup();
    setup.cancel.cancel();
    let done = setup.run().await;
    assert_eq!((done.status(), done.calls("c")), (JobStatus::Cancelled, 0));
}

#[tokio::test]
async fn b_29_a_busy_runner_takes_no_second_run() {
    let spec = || {
        let setup = graph()
            .node("w", "test.Slow", json!({"ms": 30, "value": 1}))
            .setup();
        let (events, receiver) = atelier_kernel::event::channel(64);
        let spec = atelier_kernel::run::RunSpec {
            job_id: "job".into(),
            workflow_id: None,
            graph: setup.graph,
            params: setup.params,
            options: setup.options,
            registry: setup.registry,
            services: std::sync::Arc::new(crate::harness::NoServices),
            events,
            cancel: setup.cancel,
            probe: None,
            journal: None,
            trigger: None,
            resume: setup.resume,
        };
        (spec, receiver)
    };
    let runner = Runner::default();
    let (first, _kept) = spec();
    let (_, run) = runner.start(first).expect("free");
    assert_eq!(runner.start(spec().0).map(|_| ()).unwrap_err(), Busy);
    assert_eq!(run.await.status, JobStatus::Completed);
}

#[tokio::test]
async fn b_31_siblings_go_on_when_what_follows_a_node_fails() {
    let graph = graph().node("a", "test.Const", json!({})).named(
        "b",
        "test.Slow",
        "b",
        json!({"ms": 40, "value": 2}),
    );
    let mut setup = graph.setup();
    setup.panics_after = Some("a".to_owned());
    let done = setup.run().await;
    assert_eq!(
        (done.status(), done.outputs()["b"].clone()),
        (JobStatus::Failed, json!([2]))
    );
    assert_eq!(&*done.result.node_errors[0].0, "a");
}

#[tokio::test]
async fn b_32_a_reader_that_is_gone_does_not_stop_the_run() {
    let setup = graph().node("c", "test.Const", json!({"value": 1})).setup();
    let (events, receiver) = atelier_kernel::event::channel(1);
    drop(receiver);
    let spec = atelier_kernel::run::RunSpec {
        job_id: "job".into(),
        workflow_id: None,
        graph: setup.graph,
        params: setup.params,
        options: setup.options,
        registry: setup.registry,
        services: std::sync::Arc::new(crate::harness::NoServices),
        events,
        cancel: setup.cancel,
        probe: None,
        journal: None,
        trigger: None,
        resume: setup.resume,
    };
    let result = atelier_kernel::run::run(spec).await;
    assert_eq!((result.status, result.outputs.len()), (JobStatus::Completed, 1));
}

#[tokio::test]
async fn b_33_a_failed_start_finalises_those_before_it() {
    let done = beside("test.Pass", "test.BadInit", false).await;
    assert_eq!(*done.log.finalized.lock().unwrap(), ["a"]);
    assert!(done.result.error.unwrap().contains("b (test.BadInit)"));
}

#[tokio::test]
async fn b_34_the_first_error_is_told_and_not_that_of_the_clean_up() {
    let done = beside("test.BadFinalize", "test.BadInit", false).await;
    let error = done.result.error.unwrap();
    assert!(
        error.contains("no init") && !error.contains("on purpose"),
        "{error}"
    );
}

#[tokio::test]
async fn b_38_a_suspension_is_no_failure() {
    let done = beside("test.Suspend", "test.Const", false).await;
    assert_eq!(
        (done.status(), done.result.error.clone()),
        (JobStatus::Suspended, None)
    );
    assert_eq!(done.result.suspensions[0].reason, "r");
}

#[tokio::test]
async fn b_39_cancelled_before_suspended_before_failed() {
    let failed = beside("test.Suspend", "test.FailOn", false).await;
    assert_eq!(failed.status(), JobStatus::Suspended);
    let cancelled = beside("test.Suspend", "test.Endless", true).await;
    assert_eq!(
        (cancelled.status(), cancelled.result.suspensions.len()),
        (JobStatus::Cancelled, 0)
    );
}

#[tokio::test]
async fn b_40_every_node_is_finalised_once() {
    let done = beside("test.FailOn", "test.Panic", false).await;
    let mut finalized = done.log.finalized.lock().unwrap().clone();
    finalized.sort();
    assert_eq!(finalized, ["a", "b"]);
}

#[tokio::test]
async fn b_64_what_is_left_over_does_not_fail_a_cancelled_run() {
    let graph = graph()
        .node("l", "test.StreamN", json!({"n": 20}))
        .node("w", "test.Slow", json!({"ms": 20}))
        .edges(["l.output > w.value"]);
    let running = graph.setup().start();
    until(&running, "w").await;
    let start = Instant::now();
    running.cancel.cancel();
    let done = running.done().await;
    assert_eq!(
        (done.status(), done.result.error.clone()),
        (JobStatus::Cancelled, None)
    );
    assert!(start.elapsed() < Duration::from_secs(5) && done.calls("w") < 20);
}

/// The update of the run with a status.
fn update(events: &[JobEvent], status: JobStatus) -> Option<String> {
    events.iter().find_map(|event| match &event.event {
        Some(Frame::JobUpdate(update)) if update.status() == status => Some(format!("{:?}", update.error)),
        _ => None,
    })
}

#[tokio::test]
async fn b_68_no_error_is_no_text() {
    for scene in scene::scenes().await {
        scene
            .play(vec![scene::running(), scene::completed(Vec::new())])
            .await;
        let shown = scene.shown();
        assert_eq!(update(&shown, JobStatus::Completed).as_deref(), Some("None"));
    }
    let done = beside("test.Const", "test.Const", false).await;
    let errors = done.events.iter().filter_map(|event| match event {
        Event::Node {
            status: NodeStatus::Completed,
            error,
            ..
        } => error.clone(),
        _ => None,
    });
    assert_eq!(errors.count(), 0);
}

#[tokio::test]
async fn b_69_an_artifact_of_several_media_is_one_index() {
    for scene in scene::scenes().await {
        let node = scene::label("n", "test.Plain");
        let media = |name: &str| Value::list(vec![scene::image(name.as_bytes()), scene::image(b"other")]);
        scene
            .play(vec![
                scene::running(),
                scene::artifact(&node, "a#0", media("one")),
                scene::artifact(&node, "b#0", media("two")),
                scene::completed(Vec::new()),
            ])
            .await;
        let indexes: Vec<i64> = scene.artifacts().await.iter().map(|row| row.idx).collect();
        assert_eq!(indexes, [0, 1]);
    }
}

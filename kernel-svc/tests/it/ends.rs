//! Kernel specification 10.7: errors, cancel, suspension.

use std::time::{Duration, Instant};

use atelier_kernel::event::Event;
use atelier_proto::kernel::v1::JobStatus;
use serde_json::{Value as Json, json};

use crate::harness::{Graph, Running, graph};

async fn until(running: &Running, node: &str) {
    while running.log.calls(node).is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
fn each(ty: &str, properties: Json) -> Graph {
    graph()
        .input("x")
        .node("f", "test.ForEach", json!({}))
        .named("w", ty, "w", properties)
        .edges(["x.output > f.input_list", "f.output > w.value"])
}

#[tokio::test]
async fn k_200_a_failed_node_stops_what_depends_on_it() {
    let graph =
        graph()
            .input("x")
            .node("b", "test.FailOn", json!({}))
            .named("c", "test.Pass", "c", json!({}));
    let done = graph
        .edges(["x.output > b.value", "b.output > c.value"])
        .run_with(json!("boom"))
        .await;
    assert_eq!(done.status(), JobStatus::Failed);
    let error = done.result.error.clone().unwrap();
    assert!(error.contains('b') && error.contains("boom"), "{error}");
    assert_eq!(
        (done.calls("c"), done.artifacts("b").len(), done.outputs()),
        (0, 0, json!({"c": []}))
    );
    assert_eq!(done.count("node:b:error"), 1);
}

#[tokio::test]
async fn k_201_and_k_202_other_branches_go_on_and_all_errors_are_told() {
    let graph = graph()
        .node("a", "test.FailOn", json!({"value": "one"}))
        .node("b", "test.FailOn", json!({"value": "two"}))
        .named("c", "test.Const", "good", json!({"value": 1}));
    let done = graph.run().await;
    let error = done.result.error.clone().unwrap();
    assert!(
        error.contains("a: fail:one") && error.contains("b: fail:two") && error.contains("; "),
        "{error}"
    );
    assert_eq!(
        (done.status(), done.outputs()["good"].clone()),
        (JobStatus::Failed, json!([1]))
    );
}

#[tokio::test]
async fn k_203_an_error_ends_the_node_and_keeps_its_artifacts() {
    let done = each("test.FailOn", json!({"on": 2}))
        .run_with(json!([1, 2, 3]))
        .await;
    assert_eq!(
        (done.artifacts("w"), done.calls("w")),
        (vec![json!({"output": 1})], 2)
    );
    assert_eq!(
        (done.status(), done.outputs()),
        (JobStatus::Failed, json!({"w": [1]}))
    );
}

#[tokio::test]
async fn k_204_finalize_runs_once_and_its_failure_is_swallowed() {
    let done = graph().node("a", "test.FailOn", json!({})).run().await;
    assert_eq!(*done.log.finalized.lock().unwrap(), ["a"]);
    let done = graph()
        .node("a", "test.BadFinalize", json!({"value": 1}))
        .run()
        .await;
    assert_eq!(done.status(), JobStatus::Completed);
}

/// Code that does not finish cleaning up is left behind, and the run ends as it would have.
#[tokio::test(start_paused = true)]
async fn k_204_whoever_never_finishes_cleaning_up_is_left_with_a_warning() {
    let endless = || {
        graph()
            .node("i", "nodetool.input.EndlessFinalize", json!({"name": "x"}))
            .node("a", "test.EndlessFinalize", json!({"value": 1}))
            .node("b", "test.EndlessFinalize", json!({}))
            .edges(["i.output > b.value"])
    };
    let limit = Duration::from_secs(2);
    let bounded = |graph: crate::harness::Graph, times: u32, status, warned: usize| async move {
        let start = tokio::time::Instant::now();
        let setup = graph.setup().params(json!({"x": 1}));
        let done = setup
            .options(|options| options.finalize_limit = limit)
            .run()
            .await;
        assert_eq!(done.status(), status);
        let took = start.elapsed();
        assert!(took >= limit && took < limit * (times + 1), "{took:?}");
        let warnings = done.warnings();
        let left = warnings.iter().filter(|text| text.contains("cleaning up"));
        assert_eq!(left.count(), warned, "{warnings:?}");
    };
    // Nodes end beside each other, then the inputs do.
    bounded(endless(), 2, JobStatus::Completed, 3).await;
    bounded(
        endless().node("f", "test.FailOn", json!({})),
        2,
        JobStatus::Failed,
        3,
    )
    .await;
    // A run that does not start cleans up all at once.
    bounded(
        endless().node("z", "test.BadInit", json!({})),
        1,
        JobStatus::Failed,
        3,
    )
    .await;
}

#[tokio::test]
async fn k_205_a_failed_initialise_starts_nothing() {
    let done = graph()
        .node("a", "test.Pass", json!({}))
        .node("b", "test.BadInit", json!({}))
        .run()
        .await;
    let error = done.result.error.clone().unwrap();
    assert!(
        error.contains('b') && error.contains("test.BadInit") && error.contains("no init"),
        "{error}"
    );
    assert_eq!(*done.log.finalized.lock().unwrap(), ["a"]);
    assert_eq!((done.count("node:"), done.calls("a")), (0, 0));
}

#[tokio::test]
async fn k_206_and_k_207_errors_carry_their_cause() {
    let input = graph()
        .node("i", "nodetool.input.Bad", json!({"name": "x"}))
        .sink("s")
        .edges(["i.output > s.value"]);
    let error = input.run_with(json!(1)).await.result.error.unwrap();
    assert!(
        error.contains('x') && error.contains("nodetool.input.Bad") && error.contains("bad input"),
        "{error}"
    );
    let done = graph().node("m", "test.MissingRuntime", json!({})).run().await;
    let detail = done.events.iter().find_map(|event| match event {
        Event::Node {
            detail: Some(detail), ..
        } => detail.code.clone(),
        _ => None,
    });
    assert_eq!(detail.as_deref(), Some("missing_runtime_package"));
}

#[tokio::test]
async fn a_panic_is_an_error_of_its_node() {
    let graph = graph()
        .node("p", "test.Panic", json!({}))
        .sink("s")
        .edges(["p.output > s.value"]);
    let done = graph.run().await;
    assert!(
        done.result
            .error
            .unwrap()
            .contains("p: node code panicked: on purpose")
    );
    assert_eq!(*done.log.finalized.lock().unwrap(), ["p", "s"]);
}

#[tokio::test]
async fn k_210_a_cancel_ends_the_run_within_its_grace() {
    let graph = graph()
        .input("x")
        .node("w", "test.Stubborn", json!({}))
        .sink("s")
        .edges(["x.output > w.value", "w.output > s.value"]);
    let running = graph
        .setup()
        .params(json!({"x": 1}))
        .options(|options| options.cancel_grace = Duration::from_millis(50))
        .start();
    until(&running, "w").await;
    let start = Instant::now();
    running.cancel.cancel();
    let done = running.done().await;
    assert!(start.elapsed() < Duration::from_secs(5));
    assert_eq!((done.status(), done.calls("s")), (JobStatus::Cancelled, 0));
    assert_eq!(done.trace().last().unwrap(), "job:cancelled");
    assert_eq!((done.count("job:cancelled"), done.count("output:")), (1, 0));
    assert!(done.log.finalized.lock().unwrap().contains(&"w".to_owned()));
}

#[tokio::test]
async fn k_211_a_cancel_before_the_start_invokes_nothing() {
    let setup = graph()
        .input("x")
        .sink("s")
        .edges(["x.output > s.value"])
        .setup()
        .params(json!({"x": 1}));
    setup.cancel.cancel();
    let done = setup.run().await;
    assert_eq!(done.trace(), ["job:running", "job:cancelled"]);
    assert!(done.log.initialized.lock().unwrap().is_empty());
}

#[tokio::test]
async fn k_212_to_k_214_whoever_waits_is_freed_by_a_cancel() {
    let endless = graph().node("e", "test.Endless", json!({}));
    let waiting = graph()
        .node("i", "nodetool.input.Stream", json!({"name": "x"}))
        .node(
            "c",
            "test.Controller",
            json!({"events": [{"event_type": "run", "properties": {}}]}),
        )
        .node("k", "test.Controlled", json!({}))
        .edges(["i.output > k.x"])
        .control("c.__control__ > k");
    let blocked = graph()
        .node("l", "test.StreamN", json!({"n": 9}))
        .node("e", "test.Endless", json!({}))
        .edges(["l.output > e.value"]);
    for (graph, node) in [(endless, "e"), (waiting, "c"), (blocked, "l")] {
        let running = graph
            .setup()
            .options(|options| options.buffer_limit = Some(1))
            .start();
        until(&running, node).await;
        tokio::time::sleep(Duration::from_millis(10)).await;
        running.cancel.cancel();
        let done = running.done().await;
        assert_eq!(done.status(), JobStatus::Cancelled, "{node}");
        assert_eq!(done.result.error, None);
    }
}

#[tokio::test]
async fn k_215_a_paid_result_is_committed_after_a_cancel() {
    let graph = graph()
        .node("p", "test.PaidSlow", json!({"value": 1}))
        .sink("s")
        .edges(["p.output > s.value"]);
    let running = graph.setup().start();
    until(&running, "p").await;
    running.cancel.cancel();
    let done = running.done().await;
    assert_eq!(
        (done.status(), done.artifacts("p"), done.calls("s")),
        (JobStatus::Cancelled, vec![json!({"output": 1})], 0)
    );
    let ids = done.events.iter().find_map(|event| match event {
        Event::Artifact { generation_ids, .. } => Some(generation_ids.clone()),
        _ => None,
    });
    assert_eq!(ids.unwrap(), ["g1"]);
}

#[tokio::test]
async fn k_216_and_k_217_values_that_wait_are_not_invoked_after_a_cancel() {
    let running = each("test.Slow", json!({"ms": 20}))
        .setup()
        .params(json!({"x": (0..100).collect::<Vec<_>>()}))
        .start();
    while running.log.calls("w").len() < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    running.cancel.cancel();
    let done = running.done().await;
    assert_eq!((done.status(), done.calls("w")), (JobStatus::Cancelled, 2));
}

#[tokio::test]
async fn k_218_events_that_wait_are_not_invoked_after_a_cancel() {
    let event = json!({"event_type": "run", "properties": {}});
    let graph = graph()
        .node("c", "test.Controller", json!({"events": [event, event, event]}))
        .node("k", "test.Slow", json!({"ms": 50}))
        .control("c.__control__ > k");
    let running = graph.setup().start();
    until(&running, "k").await;
    running.cancel.cancel();
    assert_eq!(running.done().await.calls("k"), 1);
}

#[tokio::test]
async fn k_220_to_k_223_suspension() {
    let graph_of = |others: &[&str]| {
        let start = graph()
            .input("x")
            .node("u", "test.Suspend", json!({}))
            .edges(["x.output > u.value"]);
        others.iter().enumerate().fold(start, |graph, (at, ty)| {
            graph.node(&format!("o{at}"), ty, json!({"ms": 10}))
        })
    };
    let done = graph_of(&[]).run_with(json!(1)).await;
    let found = done.result.suspensions[0].clone();
    assert_eq!(
        (done.status(), &*found.node_id, found.reason.as_str()),
        (JobStatus::Suspended, "u", "r")
    );
    assert_eq!(crate::harness::json(&found.state.into()), json!({"step": 2}));
    assert_eq!(
        (
            done.count("node:u:suspended"),
            done.result.error.clone(),
            done.count("artifact:u")
        ),
        (1, None, 0)
    );
    let failed = graph_of(&["test.FailOn"]).run_with(json!(1)).await;
    assert_eq!(failed.status(), JobStatus::Suspended);
    let two = graph_of(&["test.Suspend"]).run_with(json!(1)).await;
    assert_eq!(two.status(), JobStatus::Suspended);
    let mut waiting: Vec<&str> = two
        .result
        .suspensions
        .iter()
        .map(|found| &*found.node_id)
        .collect();
    waiting.sort_unstable();
    assert_eq!(waiting, ["o0", "u"], "every node that waits is kept");
    let running = graph_of(&["test.Endless"])
        .setup()
        .params(json!({"x": 1}))
        .start();
    until(&running, "u").await;
    running.cancel.cancel();
    let done = running.done().await;
    assert_eq!(
        (done.status(), done.result.suspensions.len()),
        (JobStatus::Cancelled, 0)
    );
}

#[tokio::test]
async fn k_230_a_relay_that_is_gone_does_not_stop_the_run() {
    let setup = graph()
        .node("c", "test.Const", json!({"value": 1}))
        .sink("s")
        .edges(["c.output > s.value"])
        .setup();
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
        resume: std::collections::HashMap::new(),
    };
    assert_eq!(atelier_kernel::run::run(spec).await.status, JobStatus::Completed);
}

#[tokio::test]
async fn k_231_what_follows_the_end_of_one_node_does_not_end_its_siblings() {
    let graph = graph()
        .named("a", "test.Const", "a", json!({"value": 1}))
        .named("b", "test.Slow", "b", json!({"value": 2, "ms": 60}))
        .node("c", "test.Pass", json!({}))
        .edges(["a.output > c.value"]);
    let mut setup = graph.setup().lenient();
    setup.panics_after = Some("a".to_owned());
    let done = setup.run().await;
    assert_eq!(done.status(), JobStatus::Failed);
    let error = done.result.error.clone().unwrap();
    assert!(
        error.starts_with("a: ") && error.contains("on purpose"),
        "{error}"
    );
    assert_eq!(done.outputs()["b"], json!([2]));
    assert_eq!(
        done.count("node:c:completed"),
        1,
        "its consumers are not left waiting"
    );
}

#[tokio::test]
async fn k_232_nobody_is_left_after_any_end() {
    let failed = each("test.FailOn", json!({"on": 2}))
        .run_with(json!([1, 2, 3]))
        .await;
    let suspended = graph().node("u", "test.Suspend", json!({})).run().await;
    let running = graph().node("e", "test.Endless", json!({})).setup().start();
    until(&running, "e").await;
    running.cancel.cancel();
    let cancelled = running.done().await;
    let controlled = graph()
        .node("c", "test.Controller", json!({"events": []}))
        .node("k", "test.Controlled", json!({}))
        .control("c.__control__ > k")
        .setup()
        .start();
    controlled.started().await;
    let handle = controlled.handle.clone();
    let asked = handle
        .request_control("k", atelier_proto::value::Map::new())
        .await;
    drop(handle);
    let completed = controlled.done().await;
    for (done, status) in [
        (failed, JobStatus::Failed),
        (suspended, JobStatus::Suspended),
        (cancelled, JobStatus::Cancelled),
        (completed, JobStatus::Completed),
    ] {
        let result = &done.result;
        assert_eq!(
            (result.status, result.live_actors, result.pending_responses),
            (status, 0, 0),
            "{asked:?}"
        );
    }
}

#[tokio::test]
async fn k_271_a_refused_item_is_left_out_of_its_fan_out() {
    let graph = graph()
        .input("x")
        .node("f", "test.ForEach", json!({}))
        .node("w", "test.Refuse", json!({"on": 2}))
        .node("c", "test.Collect", json!({}))
        .sink("s")
        .edges([
            "x.output > f.input_list",
            "f.output > w.value",
            "w.output > c.input_item",
            "c.output > s.value",
        ]);
    let done = graph.run_with(json!([1, 2, 3])).await;
    assert_eq!(
        (done.status(), done.outputs()),
        (JobStatus::Completed, json!({"out": [[1, 3]]}))
    );
    assert_eq!(done.warnings().len(), 1);
    assert!(done.warnings()[0].contains("policy"));
    let single = crate::harness::graph()
        .node("w", "test.Refuse", json!({"on": 1, "value": 1}))
        .run()
        .await;
    assert_eq!(single.status(), JobStatus::Failed);
}

#[tokio::test]
async fn f_003_a_paid_call_that_fails_costs_its_item_and_no_other() {
    let graph = graph()
        .input("x")
        .node("f", "test.ForEach", json!({}))
        .node("w", "test.LoseItem", json!({"on": 3}))
        .node("c", "test.Collect", json!({}))
        .sink("s")
        .edges([
            "x.output > f.input_list",
            "f.output > w.value",
            "w.output > c.input_item",
            "c.output > s.value",
        ]);
    let done = graph.run_with(json!([1, 2, 3, 4, 5])).await;
    assert_eq!(done.status(), JobStatus::Failed);
    assert_eq!(
        done.outputs(),
        json!({"out": [[1, 2, 4, 5]]}),
        "no null travels downstream"
    );
    let error = done.result.error.clone().unwrap_or_default();
    assert!(
        error.contains("w: item 2: ") && error.contains("no paint"),
        "{error}"
    );
    let single = crate::harness::graph()
        .node("w", "test.LoseItem", json!({"on": 1, "value": 1}))
        .run()
        .await;
    assert_eq!(single.status(), JobStatus::Failed);
}

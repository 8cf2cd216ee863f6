//! Triggers, waits, variables and resumption: kernel specification 2.8, 8.4, K-224, K-280 to K-285.

use std::{sync::Arc, time::Duration};

use atelier_common::clock::Clock;
use atelier_kernel::{
    node::TriggerEvent,
    run::{Busy, RunError, RunResult, Runner},
};
use atelier_proto::{
    kernel::v1::JobStatus,
    value::{Map, map_from_json},
};
use rstest::rstest;
use serde_json::{Value as Json, json};

use crate::harness::{Done, Graph, Running, Setup, graph, value};

fn map(json: Json) -> Map {
    map_from_json(json).expect("an object")
}
fn event(node: &str, payload: Json) -> Option<TriggerEvent> {
    Some(TriggerEvent {
        node_id: node.into(),
        payload: map(payload),
    })
}
fn triggered(event: Option<TriggerEvent>) -> Setup {
    let graph = graph()
        .node("t", "test.Trigger", json!({}))
        .sink("s")
        .edges(["t.value > s.value"]);
    let mut setup = graph.setup();
    setup.trigger = event;
    setup
}

#[tokio::test]
async fn k_280_the_event_of_a_run_goes_out_of_its_trigger() {
    let done = triggered(event("t", json!({"value": 42, "extra": 1})))
        .run()
        .await;
    assert_eq!(
        (done.status(), done.calls("t")),
        (JobStatus::Completed, 0),
        "{:?}",
        done.result.error
    );
    assert_eq!(done.outputs(), json!({"out": [42]}));
    assert_eq!(done.artifacts("t"), [json!({"value": 42})]);
    assert_eq!(done.delivered("e1"), [(json!(42), "t:events=0".to_owned())]);
    assert!(done.shown("t").is_empty(), "what names no output is left out");
}

#[tokio::test]
async fn k_281_without_an_event_of_its_own_a_trigger_runs_as_ever() {
    for event in [None, event("s", json!({"value": 42})), event("nobody", json!({}))] {
        let done = triggered(event).run().await;
        assert_eq!((done.status(), done.calls("t")), (JobStatus::Completed, 1));
        assert_eq!(done.outputs(), json!({"out": ["streamed"]}));
    }
}

/// A trigger of the catalog with a sink on one of its outputs.
fn built_in(name: &str, properties: Json, output: &str) -> Setup {
    let graph = graph()
        .node("t", &format!("nodetool.triggers.{name}"), properties)
        .sink("s");
    let edge = format!("t.{output} > s.value");
    Setup::with_builtins(&graph.edges([edge.as_str()]).json())
}

#[rstest]
#[case("ManualTrigger", "data", json!({"data": 5}), json!(5))]
#[case("ManualTrigger", "data", json!({"a": 5, "b": 6}), json!({"a": 5, "b": 6}))]
#[case("ManualTrigger", "source", json!({}), json!("manual"))]
#[case("WebhookTrigger", "body", json!({"body": [1], "method": "POST"}), json!([1]))]
#[case("WebhookTrigger", "event_type", json!({"body": [1]}), json!("webhook"))]
#[case("FileWatchTrigger", "path", json!({"path": "/a", "event": "created"}), json!("/a"))]
#[case("IntervalTrigger", "tick", json!({"tick": 9}), json!(9))]
#[tokio::test]
async fn triggers_of_the_catalog_give_the_event_of_their_run(
    #[case] name: &str,
    #[case] output: &str,
    #[case] payload: Json,
    #[case] expected: Json,
) {
    let mut setup = built_in(name, json!({}), output);
    setup.trigger = event("t", payload);
    let done = setup.run().await;
    assert_eq!(
        done.outputs(),
        json!({"out": [expected]}),
        "{:?}",
        done.result.error
    );
}

/// Runs on a clock that is paused.
async fn run_long(setup: Setup) -> Done {
    setup.start().done_within(Duration::from_secs(100_000)).await
}
async fn started(setup: Setup) -> Running {
    let running = setup.start();
    running.started().await;
    running
}

#[rstest]
#[case("ManualTrigger", "data")]
#[case("WebhookTrigger", "body")]
#[tokio::test]
async fn events_are_pushed_to_a_trigger_that_runs(#[case] name: &str, #[case] output: &str) {
    let running = started(built_in(name, json!({"name": "button"}), output)).await;
    for number in 1..=3 {
        let pushed = running
            .handle
            .push_input("button", value(json!(number)), None)
            .await;
        pushed.expect("a trigger");
    }
    let handle = running.handle.clone();
    handle.finish_input("t", None).await.expect("a trigger");
    let refused = handle.push_input("t", value(json!(4)), None).await;
    assert!(
        matches!(refused, Err(RunError::InputFinished(_) | RunError::Ended)),
        "{refused:?}"
    );
    drop(handle);
    let done = running.done().await;
    assert_eq!(
        (done.status(), done.outputs()),
        (JobStatus::Completed, json!({"out": [1, 2, 3]}))
    );
}

#[tokio::test]
async fn a_trigger_ends_after_as_many_events_as_it_was_asked_for() {
    let running = started(built_in("ManualTrigger", json!({"max_events": 2}), "data")).await;
    for number in 1..=2 {
        running
            .handle
            .push_input("t", value(json!(number)), None)
            .await
            .expect("room");
    }
    assert_eq!(running.done().await.outputs(), json!({"out": [1, 2]}));
}

#[tokio::test(start_paused = true)]
async fn a_trigger_without_events_suspends_its_run() {
    for (properties, seconds) in [
        (json!({}), 300.0),
        (json!({"timeout_seconds": 40}), 40.0),
        (json!({"timeout_seconds": 0.2}), 1.0),
    ] {
        let start = tokio::time::Instant::now();
        let done = run_long(built_in("ManualTrigger", properties, "data")).await;
        let passed = start.elapsed().as_secs_f64();
        assert!((seconds..seconds + 1.0).contains(&passed), "{passed}");
        assert_eq!(done.status(), JobStatus::Suspended);
        let found = done.result.suspensions[0].clone();
        assert_eq!(
            crate::harness::json(&found.metadata.into()),
            json!({
                "trigger_node": true, "inactivity_suspension": true
            })
        );
        let keys: Vec<&str> = found.state.keys().map(String::as_str).collect();
        assert_eq!(
            keys,
            ["suspended_at", "last_activity", "inactivity_timeout_seconds"]
        );
        assert_eq!(found.state["inactivity_timeout_seconds"], seconds.into());
    }
}

#[tokio::test]
async fn a_trigger_that_waits_is_cancelled() {
    for name in ["ManualTrigger", "WebhookTrigger", "IntervalTrigger"] {
        let running = started(built_in(name, json!({"emit_on_start": false}), "source")).await;
        running.cancel.cancel();
        assert_eq!(running.done().await.status(), JobStatus::Cancelled, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_interval_ticks() {
    let start = tokio::time::Instant::now();
    let properties = json!({"interval_seconds": 20, "max_events": 3, "initial_delay_seconds": 5});
    let done = built_in("IntervalTrigger", properties, "tick").run().await;
    assert_eq!(done.outputs(), json!({"out": [1, 2, 3]}));
    assert_eq!(start.elapsed().as_secs(), 45);
    let properties = json!({"interval_seconds": 20, "max_events": 1, "emit_on_start": false});
    let done = built_in("IntervalTrigger", properties, "tick").run().await;
    assert_eq!(
        (done.outputs(), start.elapsed().as_secs()),
        (json!({"out": [1]}), 65)
    );
    let done = built_in("IntervalTrigger", json!({"interval_seconds": 0}), "tick")
        .run()
        .await;
    assert!(done.result.error.unwrap().contains("interval_seconds"));
}

/// A wait for so many seconds.
fn wait(seconds: i64) -> Graph {
    graph()
        .node(
            "w",
            "nodetool.triggers.Wait",
            json!({"timeout_seconds": seconds, "input": "tea"}),
        )
        .sink("s")
        .edges(["w.data > s.value"])
}

#[tokio::test(start_paused = true)]
async fn a_wait_hands_its_input_on_after_a_while() {
    for seconds in [0, 3, 4_000] {
        let start = tokio::time::Instant::now();
        let done = run_long(Setup::with_builtins(&wait(seconds).json())).await;
        assert_eq!(
            (done.status(), done.outputs()),
            (JobStatus::Completed, json!({"out": ["tea"]}))
        );
        assert_eq!(i64::try_from(start.elapsed().as_secs()).unwrap(), seconds);
    }
}

#[tokio::test]
async fn a_wait_is_cancelled_at_once() {
    let running = started(Setup::with_builtins(&wait(4_000).json())).await;
    let start = std::time::Instant::now();
    running.cancel.cancel();
    assert_eq!(running.done().await.status(), JobStatus::Cancelled);
    assert!(start.elapsed() < Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn a_long_wait_suspends_and_goes_on_for_what_is_left_of_it() {
    let clock = Clock::manual(chrono::DateTime::from_timestamp_nanos(0));
    let setup = |resume: Option<Map>| {
        let mut setup = Setup::with_builtins(&wait(1_000).json()).options(|options| {
            options.longest_wait = Some(Duration::from_secs(60));
            options.clock = clock.clone();
        });
        setup
            .resume
            .extend(resume.map(|state| ("w".to_owned(), state.into())));
        setup
    };
    let done = setup(None).run().await;
    assert_eq!(done.status(), JobStatus::Suspended);
    let found = done.result.suspensions[0].clone();
    assert_eq!(found.metadata["resume_at"], "1970-01-01T00:16:40+00:00".into());
    clock.advance(Duration::from_secs(500));
    let early = setup(Some(found.state.clone())).run().await;
    assert_eq!(early.status(), JobStatus::Suspended, "half of it is left");
    clock.advance(Duration::from_secs(450));
    let start = tokio::time::Instant::now();
    let done = setup(Some(found.state.clone())).run().await;
    assert_eq!(
        (done.status(), done.outputs()),
        (JobStatus::Completed, json!({"out": ["tea"]}))
    );
    assert_eq!(start.elapsed().as_secs(), 50);
    let mut answered = found.state;
    answered.insert("data".to_owned(), "coffee".into());
    assert_eq!(
        setup(Some(answered)).run().await.outputs(),
        json!({"out": ["coffee"]})
    );
}

#[tokio::test]
async fn k_224_a_resumed_node_sees_its_state() {
    let graph = graph()
        .input("x")
        .node("u", "test.Resumable", json!({}))
        .sink("s")
        .edges(["x.output > u.value", "u.output > s.value"]);
    let suspended = graph.run_with(json!(1)).await;
    assert_eq!(
        (suspended.status(), suspended.calls("s")),
        (JobStatus::Suspended, 0)
    );
    let found = suspended.result.suspensions[0].clone();
    let mut setup = graph.setup().params(json!({"x": 1}));
    setup.resume.insert(found.node_id.to_string(), found.state.into());
    let done = setup.run().await;
    assert_eq!(
        (done.status(), done.outputs()),
        (JobStatus::Completed, json!({"out": [2]}))
    );
    assert_eq!(done.artifacts("u"), [json!({"output": 2})]);
}

/// A reader of the variable `x`, and a sink for what it reads.
fn reader() -> Graph {
    graph()
        .node("g", "nodetool.variable.GetVariable", json!({"name": " x "}))
        .sink("s")
        .edges(["g.output > s.value"])
}
async fn run(graph: &Graph) -> Done {
    Setup::with_builtins(&graph.json()).run().await
}

#[tokio::test]
async fn k_284_a_variable_without_a_writer_ends_at_once() {
    let done = run(&reader()).await;
    assert_eq!(
        (done.status(), done.outputs()),
        (JobStatus::Completed, json!({"out": []}))
    );
}

#[tokio::test]
async fn k_285_a_variable_ends_with_the_last_of_its_writers() {
    let graph = reader()
        .node("late", "test.Slow", json!({"ms": 60, "value": "late"}))
        .node("one", "nodetool.variable.SetVariable", json!({"name": "x"}))
        .node(
            "two",
            "nodetool.variable.SetVariable",
            json!({"name": "x ", "value": "text"}),
        )
        .with("dynamic_inputs", json!({"value": {"type": "int"}}))
        .edges(["late.output > one.value"]);
    let done = run(&graph).await;
    assert_eq!(done.status(), JobStatus::Failed);
    assert!(done.result.error.clone().unwrap().starts_with("two: "));
    assert_eq!(done.outputs()["out"], json!(["late"]));
    let trace = done.trace();
    let at = |event: &str| trace.iter().position(|other| other == event);
    assert!(at("node:one:completed") < at("node:g:completed"), "{trace:?}");
}

#[tokio::test]
async fn everything_that_is_written_is_read_whenever_the_reader_comes() {
    let graph = reader()
        .node("l", "test.ForEach", json!({"input_list": [1, 2, 3]}))
        .node("w", "nodetool.variable.SetVariable", json!({"name": "x"}))
        .node("late", "test.Slow", json!({"ms": 40, "value": 0}))
        .node("g2", "nodetool.variable.GetVariable", json!({"name": "x"}))
        .named("s2", "test.Sink", "late", json!({}))
        .edges([
            "l.output > w.value",
            "late.output > g2.trigger",
            "g2.output > s2.value",
        ]);
    let done = run(&graph).await;
    assert_eq!(done.status(), JobStatus::Completed, "{:?}", done.result.error);
    assert_eq!(
        (&done.outputs()["out"], &done.outputs()["late"]),
        (&json!([1, 2, 3]), &json!([1, 2, 3]))
    );
}

#[tokio::test]
async fn a_writer_that_waits_for_its_reader_is_found_out() {
    let graph = reader()
        .node("c", "test.Len", json!({}))
        .node("w", "nodetool.variable.SetVariable", json!({"name": "x"}))
        .node("k", "test.Collect", json!({}))
        .edges([
            "g.output > k.input_item",
            "k.output > c.value",
            "c.output > w.value",
        ]);
    let setup = Setup::with_builtins(&graph.json());
    let done = setup
        .options(|options| options.stall_timeout = Duration::from_millis(50))
        .run()
        .await;
    assert_eq!(
        done.result.error_code.as_deref(),
        Some("run.stalled"),
        "{:?}",
        done.result.error
    );
}

#[tokio::test]
async fn k_025_a_busy_runner_refuses_a_second_run() {
    let spec = |x: i64| {
        let graph = graph()
            .input("x")
            .node("w", "test.Slow", json!({"ms": 150}))
            .sink("s")
            .edges(["x.output > w.value", "w.output > s.value"]);
        let setup = graph.setup().params(json!({"x": x}));
        let (events, receiver) = atelier_kernel::event::channel(256);
        let spec = atelier_kernel::run::RunSpec {
            job_id: "job".into(),
            workflow_id: None,
            graph: setup.graph,
            params: setup.params,
            options: setup.options,
            registry: setup.registry,
            services: Arc::new(crate::harness::NoServices),
            events,
            cancel: setup.cancel,
            probe: None,
            journal: None,
            trigger: None,
            resume: setup.resume,
        };
        (spec, receiver)
    };
    let outputs = |result: RunResult| crate::harness::json(&result.outputs.into());
    let runner = Runner::default();
    let (first, _kept) = spec(1);
    let (_, first) = runner.start(first).expect("free");
    let refused = runner.start(spec(2).0).map(|_| ()).unwrap_err();
    assert_eq!((refused, refused.code()), (Busy, "run.busy"));
    assert_eq!(outputs(first.await), json!({"out": [1]}));
    let (second, _kept) = spec(2);
    let (_, second) = runner.start(second).expect("free again");
    assert_eq!(outputs(second.await), json!({"out": [2]}));
    drop(runner.start(spec(3).0).expect("free"));
    assert!(
        runner.start(spec(4).0).is_ok(),
        "a run that was dropped frees its runner"
    );
}

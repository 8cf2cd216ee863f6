//! Kernel specification 10.4: streaming input, ends, back-pressure; and the deadlocks of small buffers.

use std::time::Duration;

use atelier_kernel::run::RunError;
use atelier_proto::kernel::v1::JobStatus;
use serde_json::json;

use crate::harness::{Graph, graph, value};

fn stream() -> Graph {
    graph().node("x", "nodetool.input.Stream", json!({"name": "x"}))
}

#[tokio::test]
async fn k_120_a_completed_output_ends_while_its_node_runs() {
    let graph = graph()
        .node("t", "test.TwoSlots", json!({}))
        .node("c", "test.Collect", json!({}))
        .sink("s");
    let running = graph
        .edges(["t.output > c.input_item", "c.output > s.value"])
        .setup()
        .start();
    while running.log.calls("s").is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    running.cancel.cancel();
    let done = running.done().await;
    assert_eq!(done.inputs("s"), [json!({"value": [1]})]);
    assert_eq!(done.status(), JobStatus::Cancelled);
}

#[tokio::test]
async fn k_121_a_list_waits_for_its_last_producer() {
    let graph = graph()
        .node("a", "test.Const", json!({"value": 1}))
        .node("b", "test.Slow", json!({"value": 2, "ms": 30}))
        .named("g", "test.Gather", "out", json!({}))
        .edges(["a.output > g.items", "b.output > g.items"]);
    assert_eq!(graph.run().await.outputs(), json!({"out": [[1, 2]]}));
}

#[tokio::test]
async fn k_122_take_reads_on_after_it_has_enough() {
    let graph = graph()
        .node("l", "test.StreamN", json!({"n": 5}))
        .node("t", "test.Take", json!({"n": 2}))
        .node("k", "test.Cap", json!({}))
        .edges(["l.output > t.value", "t.output > k.value"]);
    let done = graph.run().await;
    assert_eq!(done.status(), JobStatus::Completed);
    assert_eq!(
        (done.delivered("e2").len(), done.edge("e2")),
        (2, vec!["active:1".into(), "completed:2".into()])
    );
}

#[tokio::test]
async fn k_123_and_k_124_a_stream_that_nobody_reads() {
    let connected = graph()
        .node("a", "test.Const", json!({"value": 1}))
        .node("l", "test.LegacyStream", json!({"value": "hi"}))
        .edges(["a.output > l.value"]);
    let done = connected.run().await;
    assert_eq!(
        (done.status(), done.inputs("l")),
        (JobStatus::Failed, vec![json!({"value": "hi"})])
    );
    assert_eq!((done.count("node:l:warning"), done.artifacts("l").len()), (1, 1));
    assert!(done.result.error.unwrap().contains("input value of node l"));
    assert_eq!(
        connected.setup().lenient().run().await.status(),
        JobStatus::Completed
    );
    let alone = graph()
        .node("l", "test.LegacyStream", json!({"value": "hi"}))
        .run()
        .await;
    assert_eq!(
        (alone.status(), alone.count("node:l:warning")),
        (JobStatus::Completed, 0)
    );
}

#[tokio::test]
async fn k_125_to_k_127_lineage_of_what_is_emitted() {
    let items = || graph().node("f", "test.StreamN", json!({"n": 2}));
    let two = items()
        .node("a", "test.Accumulate", json!({}))
        .node("k", "test.Cap", json!({}));
    let done = two
        .edges(["f.output > a.a", "f.output > a.b", "a.output > k.value"])
        .run()
        .await;
    assert_eq!(done.delivered("e3"), [(json!(2), String::new())]);
    let one = items()
        .node("b", "test.Bare", json!({}))
        .node("k", "test.Cap", json!({}));
    let done = one
        .edges(["f.output > b.value", "b.output > k.value"])
        .run()
        .await;
    let lineages: Vec<String> = done
        .delivered("e2")
        .into_iter()
        .map(|(_, lineage)| lineage)
        .collect();
    assert_eq!(lineages, ["f:items=0", "f:items=0", "f:items=1", "f:items=1"]);
    let null = items()
        .node("b", "test.NullForward", json!({}))
        .node("k", "test.Cap", json!({}));
    let done = null
        .edges(["f.output > b.value", "b.output > k.value"])
        .run()
        .await;
    assert_eq!(
        done.delivered("e2"),
        [
            (json!(null), "f:items=0".to_owned()),
            (json!(null), "f:items=1".to_owned())
        ]
    );
}

#[tokio::test]
async fn k_128_and_k_129_a_dead_consumer_frees_its_producer() {
    let graph =
        graph()
            .node("l", "test.StreamN", json!({"n": 25}))
            .node("d", "test.StreamFail", json!({"on": 0}));
    let graph = graph.edges(["l.output > d.value"]);
    let limited = |strict: bool| {
        graph
            .setup()
            .options(move |options| (options.strict, options.buffer_limit) = (strict, Some(1)))
    };
    let done = limited(false).run().await;
    assert_eq!(
        (done.status(), done.artifacts("l")),
        (JobStatus::Failed, vec![json!({"output": 24})])
    );
    assert_eq!(done.result.error.as_deref(), Some("d: fail:0"));
    let error = limited(true).run().await.result.error.unwrap();
    assert!(
        error.starts_with("d: fail:0") && error.contains("input value of node d"),
        "{error}"
    );
}

#[tokio::test]
async fn k_130_a_full_inbox_makes_its_producer_wait() {
    let graph = graph()
        .node("l", "test.StreamN", json!({"n": 10}))
        .node("w", "test.SlowForward", json!({}))
        .node("k", "test.Cap", json!({}))
        .edges(["l.output > w.value", "w.output > k.value"]);
    let done = graph
        .setup()
        .options(|options| options.buffer_limit = Some(1))
        .run()
        .await;
    let values: Vec<_> = done.delivered("e2").into_iter().map(|(value, _)| value).collect();
    assert_eq!(values, (0..10).map(|number| json!(number)).collect::<Vec<_>>());
}

#[tokio::test]
async fn f_010_small_buffers_do_not_lock_each_other() {
    let frames: Vec<_> = (0..200)
        .map(|at| json!({"a": at}))
        .chain((0..200).map(|at| json!({"b": at})))
        .collect();
    let graph = graph()
        .node("p", "test.PlainFrames", json!({"frames": frames}))
        .named("j", "test.BFirst", "out", json!({}))
        .edges(["p.a > j.a", "p.b > j.b"]);
    for limit in [1, 2, 8, 64] {
        let done = graph
            .setup()
            .options(|options| options.buffer_limit = Some(limit))
            .run()
            .await;
        assert_eq!(
            (done.status(), done.outputs()),
            (JobStatus::Completed, json!({"out": [400]})),
            "limit {limit}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_in_which_everybody_waits_fails_and_says_who() {
    let graph = graph()
        .node("c", "test.Hold", json!({}))
        .node("k", "test.Controlled", json!({}))
        .control("c.output > k")
        .edges(["k.result > c.value"]);
    let done = graph.run().await;
    assert_eq!(
        (done.status(), done.result.error_code.as_deref()),
        (JobStatus::Failed, Some("run.stalled"))
    );
    let error = done.result.error.unwrap();
    assert!(
        error.contains("node c waits for edges e2") && error.contains("node k waits for control events"),
        "{error}"
    );
}

#[tokio::test]
async fn k_134_pushed_values_arrive_until_the_input_is_finished() {
    let running = stream()
        .node("k", "test.Cap", json!({}))
        .edges(["x.output > k.value"])
        .setup()
        .start();
    running.started().await;
    for number in [1, 2] {
        running
            .handle
            .push_input("x", value(json!(number)), None)
            .await
            .unwrap();
    }
    while running
        .log
        .seen
        .lock()
        .unwrap()
        .get("k")
        .is_none_or(|seen| seen.len() < 2)
    {
        tokio::task::yield_now().await;
    }
    running.handle.finish_input("x", None).await.unwrap();
    running.handle.finish_input("x", None).await.unwrap();
    let after = running.handle.push_input("x", value(json!(3)), None).await;
    assert!(
        matches!(after, Err(RunError::InputFinished(_) | RunError::Ended)),
        "{after:?}"
    );
    let done = running.done().await;
    assert_eq!(
        (done.status(), done.delivered("e1").len()),
        (JobStatus::Completed, 2)
    );
}

#[tokio::test]
async fn k_135_an_input_that_is_finished_empty_skips_its_consumers() {
    let running = stream().sink("s").edges(["x.output > s.value"]).setup().start();
    running.started().await;
    running.handle.finish_input("x", None).await.unwrap();
    let done = running.done().await;
    assert_eq!((done.calls("s"), done.outputs()), (0, json!({"out": []})));
}

#[tokio::test]
async fn k_136_to_k_138_pushed_values_go_through_the_input_node() {
    let pushed = async |ty: &str, push: serde_json::Value| {
        let graph = graph()
            .node("x", ty, json!({"name": "x"}))
            .sink("s")
            .node("t", "test.Sink", json!({}));
        let graph = graph
            .with("name", json!("other"))
            .edges(if ty == "nodetool.input.Pair" {
                ["x.a > s.value", "x.b > t.value"]
            } else {
                ["x.output > s.value", "x.output > t.value"]
            });
        let mut setup = graph.setup();
        let node = setup
            .graph
            .nodes
            .iter_mut()
            .find(|node| &*node.id == "x")
            .unwrap();
        node.flags.streaming_output = true;
        let running = setup.start();
        running.started().await;
        let outcome = running.handle.push_input("x", value(push), None).await;
        running.handle.finish_input("x", None).await.unwrap();
        (outcome, running.done().await)
    };
    let (_, done) = pushed("nodetool.input.Double", json!(5)).await;
    assert_eq!(done.outputs(), json!({"out": [10], "other": [10]}));
    let (_, done) = pushed("nodetool.input.Pair", json!({"a": 1})).await;
    assert_eq!(done.outputs(), json!({"out": [1], "other": []}));
    let (outcome, done) = pushed("nodetool.input.Bad", json!(1)).await;
    assert!(
        matches!(&outcome, Err(RunError::InputFailed { name, .. }) if name == "x"),
        "{outcome:?}"
    );
    assert_eq!(done.status(), JobStatus::Completed);
}

#[tokio::test]
async fn k_139_pushing_too_early_or_into_nothing() {
    let (_, handle) = {
        let setup = stream().sink("s").edges(["x.output > s.value"]).setup();
        let (events, receiver) = atelier_kernel::event::channel(16);
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
        (receiver, atelier_kernel::run::start(spec).0)
    };
    let early = handle.push_input("x", value(json!(1)), None).await.unwrap_err();
    assert_eq!(early.code(), "run.not_started");
    let running = stream().sink("s").edges(["x.output > s.value"]).setup().start();
    running.started().await;
    let unknown = running
        .handle
        .push_input("nothing", value(json!(1)), None)
        .await
        .unwrap_err();
    assert_eq!(unknown.code(), "input.unknown");
    running.handle.finish_input("x", None).await.unwrap();
    running.done().await;
}

#[tokio::test]
async fn k_140_finishing_twice_leaves_other_producers_alone() {
    let graph = stream()
        .node("w", "test.Slow", json!({"value": 7, "ms": 40}))
        .named("g", "test.Gather", "out", json!({}));
    let running = graph
        .edges(["x.output > g.items", "w.output > g.items"])
        .setup()
        .start();
    running.started().await;
    running.handle.finish_input("x", None).await.unwrap();
    running.handle.finish_input("x", None).await.unwrap();
    assert_eq!(running.done().await.outputs(), json!({"out": [[7]]}));
}

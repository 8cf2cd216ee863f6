//! Kernel specification 10.5: control edges.

use std::time::Duration;

use atelier_kernel::run::RunError;
use atelier_proto::{kernel::v1::JobStatus, value::map_from_json};
use serde_json::{Value as Json, json};

use crate::harness::{Graph, graph, json as to_json};

fn run(properties: Json) -> Json {
    json!({"event_type": "run", "properties": properties})
}
fn controller(events: Json) -> Graph {
    graph().named("c", "test.Controller", "ctrl", json!({"events": events}))
}
fn controlled(events: Json) -> Graph {
    controller(events)
        .node("k", "test.Controlled", json!({}))
        .with("name", json!("p"))
        .control("c.__control__ > k")
}

#[tokio::test]
async fn k_150_one_event_is_one_invocation() {
    let done = controlled(json!([run(json!({"x": 1}))])).run().await;
    assert_eq!(
        (done.calls("k"), done.artifacts("k")),
        (1, vec![json!({"result": 1})])
    );
    assert_eq!(done.outputs(), json!({"ctrl": [], "p": [1]}));
    assert_eq!((done.count("edge:"), done.artifacts("c")), (0, vec![json!({})]));
}

#[tokio::test]
async fn k_151_and_k_152_three_events_repeat_downstream() {
    let events = json!([run(json!({"x": 1})), run(json!({"x": 2})), run(json!({"x": 3}))]);
    let cap = controlled(events.clone())
        .node("r", "test.Cap", json!({}))
        .edges(["k.result > r.value"]);
    let done = cap.run().await;
    assert_eq!(
        (done.calls("k"), done.artifacts("k").len(), done.count("node:k:")),
        (3, 3, 2)
    );
    assert_eq!(done.edge("e2").last().unwrap(), "completed:3");
    let values: Vec<Json> = done.delivered("e2").into_iter().map(|(value, _)| value).collect();
    assert_eq!(values, [json!(1), json!(2), json!(3)]);
    let sink = controlled(events).sink("s").edges(["k.result > s.value"]);
    assert_eq!(sink.run().await.outputs(), json!({"ctrl": [], "out": [1, 2, 3]}));
}

#[tokio::test]
async fn k_153_stop_ends_without_an_invocation() {
    let done = controlled(json!([{"event_type": "stop"}])).run().await;
    assert_eq!((done.calls("k"), done.outputs()["p"].clone()), (0, json!([])));
}

#[tokio::test]
async fn k_154_to_k_157_what_an_invocation_sees() {
    let fed = |events: Json, source: (&str, Json)| {
        controller(events)
            .node("d", source.0, source.1)
            .node("k", "test.Echo", json!({}))
            .edges(["d.output > k.base"])
            .control("c.__control__ > k")
    };
    let events = json!([run(json!({"alpha": 1})), run(json!({"beta": 2}))]);
    let done = fed(events, ("test.Const", json!({"value": "v"}))).run().await;
    assert_eq!(
        done.inputs("k"),
        [json!({"base": "v", "alpha": 1}), json!({"base": "v", "beta": 2})]
    );
    let done = fed(
        json!([run(json!({})), run(json!({})), run(json!({}))]),
        ("test.Const", json!({"value": 100})),
    )
    .run()
    .await;
    assert_eq!(done.inputs("k"), vec![json!({"base": 100}); 3]);
    let done = fed(
        json!([run(json!({"base": 5}))]),
        ("test.Const", json!({"value": 1})),
    )
    .run()
    .await;
    assert_eq!(done.inputs("k"), [json!({"base": 5})]);
    let slow = json!([run(json!({"ms": 1}))]);
    let done = fed(slow, ("test.Slow", json!({"value": 9, "ms": 50})))
        .run()
        .await;
    assert_eq!(done.inputs("k"), [json!({"base": 9, "ms": 1})]);
}

/// Processor time of this thread, in nanoseconds.
fn processor_time() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

#[tokio::test]
async fn k_158_an_event_waits_for_the_data_without_turning_in_circles() {
    let done = {
        let before = processor_time();
        let graph = controller(json!([run(json!({"x": 5}))]))
            .node("d", "test.Slow", json!({"value": 9, "ms": 400}))
            .node("k", "test.Echo", json!({}))
            .edges(["d.output > k.base"])
            .control("c.__control__ > k");
        let done = graph.run().await;
        if let (Some(before), Some(after)) = (before, processor_time()) {
            let spent = Duration::from_nanos(after - before);
            assert!(spent < Duration::from_millis(200), "{spent:?}");
        }
        done
    };
    assert_eq!(done.inputs("k"), [json!({"base": 9, "x": 5})]);
}

#[tokio::test]
async fn k_159_a_default_stands_in_for_an_empty_input() {
    let graph = controller(json!([run(json!({}))]))
        .node("d", "test.Empty", json!({}))
        .node("k", "test.Controlled", json!({"x": 7}))
        .edges(["d.output > k.x"])
        .control("c.__control__ > k");
    assert_eq!(graph.run().await.artifacts("k"), [json!({"result": 7})]);
}

#[tokio::test]
async fn k_160_and_k_161_several_controllers() {
    let two = controlled(json!([run(json!({"x": 1}))]))
        .node("d", "test.Controller", json!({"events": [run(json!({"x": 2}))]}))
        .control("d.__control__ > k");
    assert_eq!(two.run().await.calls("k"), 2);
    let parallel = graph()
        .node("a", "test.Controller", json!({"events": []}))
        .node("b", "test.Controller", json!({"events": [run(json!({"x": 2}))]}))
        .node("w", "test.Slow", json!({"value": 0, "ms": 30}))
        .node("k", "test.Controlled", json!({}))
        .control("a.__control__ > k")
        .control("a.__control__ > k")
        .edges(["w.output > b.value"])
        .control("b.__control__ > k");
    let mut json = parallel.json();
    json["edges"][1]["id"] = json!("other");
    assert_eq!(crate::harness::Setup::new(&json).run().await.calls("k"), 1);
}

#[tokio::test]
async fn k_162_to_k_164_what_becomes_an_event() {
    let from = |value: Json| {
        graph()
            .node("c", "test.ControlOut", json!({"value": value}))
            .node("k", "test.Echo", json!({}))
            .node("l", "test.Echo", json!({}))
            .control("c.__control_output__ > k")
            .control("c.__control_output__ > l")
    };
    let done = from(json!({"brightness": 5})).run().await;
    assert_eq!(
        (done.inputs("k"), done.inputs("l")),
        (vec![json!({"brightness": 5})], vec![json!({"brightness": 5})])
    );
    assert_eq!(
        from(json!({"properties": {"k": 1}, "meta": 2}))
            .run()
            .await
            .inputs("k"),
        [json!({"k": 1})]
    );
    assert_eq!(from(json!(42)).run().await.calls("k"), 0);
}

/// A controlled node whose controller goes on until it is let go.
fn open() -> Graph {
    graph()
        .node("i", "nodetool.input.Stream", json!({"name": "go"}))
        .node("c", "test.ControlOut", json!({}))
        .edges(["i.output > c.value"])
        .node("k", "test.FailOn", json!({"on": 0}))
        .control("c.__control_output__ > k")
}

#[tokio::test]
async fn k_165_to_k_167_answers_belong_to_their_event() {
    let properties = |number: i64| map_from_json(json!({"value": number})).unwrap();
    let running = open().setup().lenient().start();
    running.started().await;
    let (ten, twenty) = tokio::join!(
        running.handle.request_control("k", properties(10)),
        running.handle.request_control("k", properties(20))
    );
    assert_eq!(to_json(&ten.unwrap().into()), json!({"output": 10}));
    assert_eq!(to_json(&twenty.unwrap().into()), json!({"output": 20}));
    let unknown = running.handle.request_control("nobody", properties(1)).await;
    assert_eq!(unknown, Err(RunError::UnknownNode("nobody".to_owned())));
    let handle = &running.handle;
    let (first, second, third) = tokio::join!(
        handle.request_control("k", properties(0)),
        handle.request_control("k", properties(1)),
        handle.request_control("k", properties(2)),
    );
    for answer in [first, second, third] {
        assert!(
            matches!(&answer, Err(RunError::NoAnswer { message, .. }) if message.contains("fail:0")),
            "{answer:?}"
        );
    }
    let late = running.handle.request_control("k", properties(3)).await;
    assert!(matches!(late, Err(RunError::NoAnswer { .. })), "{late:?}");
    running.handle.finish_input("go", None).await.unwrap();
    assert_eq!(running.done().await.status(), JobStatus::Failed);
}

fn caller(target: &str) -> Graph {
    graph()
        .node("c", "test.Caller", json!({"target": target, "times": 2}))
        .node("k", "test.Controlled", json!({}))
        .control("c.__control__ > k")
}

/// A controller's own code asks what it controls, and goes on with the answers.
#[tokio::test]
async fn k_165_node_code_calls_what_it_controls() {
    let done = caller("k").run().await;
    assert_eq!((done.status(), done.calls("k")), (JobStatus::Completed, 2));
    assert_eq!(
        done.artifacts("c"),
        [json!({"output": [{"result": 1}, {"result": 2}]})]
    );
}

/// Nothing waits for ever: neither for nodes of others, nor for one that waits for the caller itself.
#[tokio::test]
async fn k_166_calls_that_cannot_be_answered_are_refused() {
    let said = |done: &crate::harness::Done| done.artifacts("c")[0]["output"][0].clone();
    let stranger = caller("nobody").run().await;
    assert!(
        said(&stranger).as_str().unwrap().contains("not controlled"),
        "{}",
        said(&stranger)
    );
    // Through another node the tool waits for the caller.
    let round = caller("k")
        .node("p", "test.Pass", json!({}))
        .edges(["c.arg > p.value", "p.output > k.x"]);
    let round = round.setup().lenient().run().await;
    assert!(
        said(&round).as_str().unwrap().contains("waits for a result"),
        "{}",
        said(&round)
    );
    // A direct edge is what the call brings.
    let direct = caller("k").edges(["c.arg > k.x"]).setup().lenient().run().await;
    assert_eq!(
        (direct.status(), said(&direct)),
        (JobStatus::Completed, json!({"result": 1}))
    );
}

#[tokio::test]
async fn k_167_a_call_of_a_node_that_fails_is_answered() {
    let graph = graph()
        .node("c", "test.Caller", json!({"target": "k", "times": 2}))
        .node("k", "test.FailOn", json!({"on": 1}))
        .control("c.__control__ > k");
    let done = graph.setup().lenient().run().await;
    assert_eq!((done.status(), done.calls("k")), (JobStatus::Failed, 1));
    let said = &done.artifacts("c")[0]["output"];
    assert!(
        said[0].as_str().unwrap().contains("fail:1") && said[1].is_string(),
        "{said}"
    );
}

#[tokio::test]
async fn k_168_an_event_of_an_edge_does_not_steal_an_answer() {
    let running = open().setup().start();
    running.started().await;
    let push = running
        .handle
        .push_input("go", crate::harness::value(json!({"value": 5})), None);
    let ask = running
        .handle
        .request_control("k", map_from_json(json!({"value": 6})).unwrap());
    let (_, answer) = tokio::join!(push, ask);
    assert_eq!(to_json(&answer.unwrap().into()), json!({"output": 6}));
    running.handle.finish_input("go", None).await.unwrap();
    assert_eq!(running.done().await.calls("k"), 2);
}

#[tokio::test]
async fn k_170_a_controlled_node_without_a_controller_completes() {
    let graph = graph()
        .node("d", "test.Const", json!({"value": 1}))
        .node("k", "test.Pass", json!({}))
        .edges(["d.output > k.value"]);
    let mut setup = graph.setup().lenient();
    setup.graph.nodes[1].flags.controlled = true;
    let done = setup.run().await;
    assert_eq!((done.status(), done.calls("k")), (JobStatus::Completed, 0));
}

#[tokio::test]
async fn k_171_a_controller_is_told_what_it_controls() {
    let graph = controlled(json!([]));
    let mut setup = graph.setup();
    let registry = std::sync::Arc::get_mut(&mut setup.registry).unwrap();
    let mut meta = (**registry.meta("test.Controlled").unwrap()).clone();
    let input = atelier_kernel::node::InputMeta {
        name: "a".into(),
        ty: "int".into(),
        min: Some(0.0),
        ..Default::default()
    };
    meta.inputs = vec![input];
    let node = &mut setup.graph.nodes[1];
    node.meta = std::sync::Arc::new(meta);
    node.inputs.insert("a".to_owned(), "int".into());
    node.properties = std::sync::Arc::new(map_from_json(json!({"a": 1, "_hidden": 2})).unwrap());
    let done = setup.run().await;
    let context = &done.inputs("c")[0]["_control_context"]["k"];
    let action = &context["control_actions"]["run"]["properties"];
    assert_eq!(
        action["a"],
        json!({"type": "integer", "description": "", "default": 1, "minimum": 0})
    );
    assert!(action["_hidden"].is_null() && context["properties"]["_hidden"].is_null());
    assert_eq!(context["properties"]["a"]["value"], json!(1));
}

#[tokio::test]
async fn k_172_a_controlled_input_is_an_actor_only() {
    let graph = controller(json!([run(json!({"value": 4}))]))
        .node("i", "nodetool.input.Value", json!({"name": "x", "value": 1}))
        .sink("s")
        .edges(["i.output > s.value"])
        .control("c.__control__ > i");
    let done = tokio::time::timeout(Duration::from_secs(10), graph.run())
        .await
        .unwrap();
    assert_eq!((done.calls("i"), done.outputs()["out"].clone()), (1, json!([4])));
    assert_eq!(done.count("node:i:"), 2);
}

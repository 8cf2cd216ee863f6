//! Nodes that misbehave, and graphs that are large.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use atelier_kernel::{
    event::Note,
    graph::check,
    node::{Context, Executor, NodeError, NodeMeta, OutputMeta},
};
use atelier_proto::{kernel::v1::JobStatus, value::Map};
use serde_json::{Value as Json, json};

use crate::harness::{Setup, graph};

/// A chain of so many nodes, each with an edge from its predecessor and one from the first node.
fn chain(length: usize) -> Json {
    let nodes: Vec<Json> = (0..length)
        .map(|at| json!({"id": format!("n{at}"), "type": "test.Add", "properties": {"a": 1}}))
        .collect();
    let edge = |from: usize, at: usize, handle: &str| {
        json!({"source": format!("n{from}"), "sourceHandle": "output", "target": format!("n{at}"),
            "targetHandle": handle})
    };
    let edges: Vec<Json> = (1..length)
        .flat_map(|at| {
            let far = (at > 1).then(|| edge(0, at, "b"));
            far.into_iter().chain([edge(at - 1, at, "a")])
        })
        .collect();
    json!({"nodes": nodes, "edges": edges})
}

/// For a debug build on a busy machine; what grows with the square takes far longer.
const LIMIT: Duration = Duration::from_secs(60);

fn checked(json: &Json, setup: &Setup) -> usize {
    let start = Instant::now();
    let issues = check(json, &setup.registry, &Map::new());
    assert!(start.elapsed() < LIMIT, "{:?}", start.elapsed());
    println!("{:?}", start.elapsed());
    issues.len()
}

#[test]
fn ten_thousand_nodes_are_checked_in_no_time() {
    let mut json = chain(10_000);
    let setup = Setup::new(&json);
    assert_eq!(checked(&json, &setup), 0);
    json["edges"].as_array_mut().unwrap().push(json!({
        "source": "n9999", "sourceHandle": "output", "target": "n0", "targetHandle": "b"}));
    assert!(checked(&json, &setup) > 0, "a cycle through all of them");
}

#[test]
fn ten_thousand_faults_are_found_in_no_time() {
    let mut json = chain(10_000);
    let setup = Setup::new(&json);
    for edge in json["edges"].as_array_mut().unwrap() {
        edge["targetHandle"] = json!("same");
    }
    assert!(checked(&json, &setup) > 9_000);
    let mut bypassed = chain(10_000);
    for node in bypassed["nodes"]
        .as_array_mut()
        .unwrap()
        .iter_mut()
        .skip(1)
        .take(9_000)
    {
        node["ui_properties"] = json!({"bypassed": true});
    }
    checked(&bypassed, &setup);
}

#[test]
fn a_bypassed_node_with_ten_thousand_edges_on_both_sides_is_left_out_in_no_time() {
    let (mut nodes, mut edges) = (
        vec![json!({"id": "b", "type": "test.Pass", "ui_properties": {"bypassed": true}})],
        Vec::new(),
    );
    for at in 0..10_000 {
        nodes.push(json!({"id": format!("c{at}"), "type": "test.Const"}));
        nodes.push(json!({"id": format!("s{at}"), "type": "test.Pass"}));
        edges.push(json!({"source": format!("c{at}"), "sourceHandle": "output", "target": "b", "targetHandle": format!("i{at}")}));
        edges.push(json!({"source": "b", "sourceHandle": "output", "target": format!("s{at}"), "targetHandle": "value"}));
    }
    let json = json!({"nodes": nodes, "edges": edges});
    let setup = Setup::new(&json);
    checked(&json, &setup);
}

#[tokio::test]
async fn a_hundred_thousand_nodes_are_refused() {
    let nodes: Vec<Json> = (0..100_000)
        .map(|at| json!({"id": format!("n{at}"), "type": "test.Const"}))
        .collect();
    let json = json!({"nodes": nodes, "edges": []});
    let setup = Setup::new(&json);
    let issues = check(&json, &setup.registry, &Map::new());
    assert_eq!((issues.len(), issues[0].code.as_str()), (1, "graph.too_large"));
    let done = setup.run().await;
    assert_eq!(
        (done.status(), done.codes()),
        (JobStatus::Failed, vec!["graph.too_large".to_owned()])
    );
    assert!(done.result.error.unwrap().contains("100000"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_graph_runs() {
    let json = chain(2_000);
    let done = Setup::new(&json).run().await;
    assert_eq!(done.status(), JobStatus::Completed, "{:?}", done.result.error);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_blocks_its_thread_keeps_the_others_waiting_only_there() {
    let graph = graph()
        .node("b", "test.Block", json!({"ms": 1_500, "value": 1}))
        .node("c", "test.Const", json!({"value": 2}))
        .sink("s")
        .edges(["c.output > s.value"]);
    let running = graph.setup().start();
    let start = Instant::now();
    while running.log.calls("s").is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(
        start.elapsed() < Duration::from_millis(1_200),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(running.done().await.status(), JobStatus::Completed);
}

/// Leaves a task behind that goes on talking.
struct Stray;
#[async_trait]
impl Executor for Stray {
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let ctx = ctx.clone();
        tokio::spawn(async move {
            loop {
                let content = "still here".to_owned();
                let (done, thinking) = (false, false);
                ctx.note(Note::Chunk {
                    content,
                    done,
                    thinking,
                })
                .await;
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
        Ok(inputs)
    }
}

#[tokio::test]
async fn a_node_that_talks_after_its_end_does_not_keep_the_run() {
    let mut setup = graph().node("n", "test.Pass", json!({})).setup();
    let meta = NodeMeta {
        node_type: "test.Pass".to_owned(),
        outputs: vec![OutputMeta {
            name: "output".to_owned(),
            ty: "any".to_owned(),
            stream: false,
        }],
        ..NodeMeta::default()
    };
    let mut registry = (*setup.registry).clone();
    registry.register(meta, Arc::new(|| Box::new(Stray)));
    setup.registry = Arc::new(registry);
    // The harness waits until nobody can say anything any more.
    let done = setup.run().await;
    assert_eq!(done.trace().last().unwrap(), "job:completed");
}

#[tokio::test]
async fn a_handle_that_is_kept_does_not_keep_the_run() {
    let running = graph()
        .node("c", "test.Const", json!({"value": 1}))
        .setup()
        .start();
    let kept = running.handle.clone();
    assert_eq!(running.done().await.status(), JobStatus::Completed);
    let late = kept.push_input("x", 1.into(), None).await.unwrap_err();
    assert_eq!(late.code(), "run.ended");
}

//! Prints how many node executions a second the engine does; asserts no time.

use std::{sync::Arc, time::Instant};

use async_trait::async_trait;
use atelier_kernel::{
    graph::{HydratedGraph, hydrate::hydrate, load::parse},
    node::{
        Context, Correlation, CorrelationKind, Executor, InputMode, NodeError, NodeMeta, Offers, OutputMeta,
        Registry,
    },
    run::{Frames, Inputs, Outputs, RunOptions, RunResult, RunSpec, run},
};
use atelier_proto::{
    kernel::v1::JobStatus,
    value::{Map, Value},
};
use serde_json::{Value as Json, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::harness::NoServices;

/// Code without any bookkeeping.
struct Bare(&'static str);

#[async_trait]
impl Executor for Bare {
    fn offers(&self) -> Offers {
        Offers {
            stream: self.0 == "each",
            run: self.0 == "collect",
        }
    }
    async fn process(&mut self, mut inputs: Map, _: &Context) -> Result<Map, NodeError> {
        let value = inputs.swap_remove("value").unwrap_or(Value::Int(1));
        Ok([("output".to_owned(), value)].into_iter().collect())
    }
    async fn stream(&mut self, inputs: Map, frames: &mut Frames<'_>, _: &Context) -> Result<(), NodeError> {
        for number in 0..inputs.get("n").and_then(Value::as_i64).unwrap_or(0) {
            frames
                .send([("output".to_owned(), Value::Int(number))].into_iter().collect())
                .await?;
        }
        Ok(())
    }
    async fn run(
        &mut self,
        inputs: &mut Inputs<'_>,
        outputs: &mut Outputs<'_>,
        _: &Context,
    ) -> Result<(), NodeError> {
        while let Some(group) = inputs.next_group("value").await {
            let list = Value::list(
                group
                    .items
                    .iter()
                    .map(|envelope| envelope.value.clone())
                    .collect(),
            );
            outputs.finish_group(&group, "output", list).await?;
        }
        Ok(())
    }
}

fn registry() -> Registry {
    let rule = |kind, source: &str| Correlation {
        kind,
        source: Some(source.to_owned()),
        group: None,
        collapse_innermost: kind == CorrelationKind::Aggregate,
    };
    let mut registry = Registry::default();
    for name in ["pass", "each", "collect"] {
        let mut meta = NodeMeta {
            node_type: name.to_owned(),
            outputs: vec![OutputMeta {
                name: "output".into(),
                ty: "any".into(),
                stream: false,
            }],
            ..NodeMeta::default()
        };
        match name {
            "each" => {
                meta.streaming_output = Some(true);
                meta.output_correlation
                    .insert("output".into(), rule(CorrelationKind::Iteration, "__execution__"));
            }
            "collect" => {
                meta.streaming_input = Some(true);
                meta.input_mode = Some(InputMode::Stream);
                meta.output_correlation
                    .insert("output".into(), rule(CorrelationKind::Aggregate, "value"));
            }
            _ => {}
        }
        registry.register(meta, Arc::new(move || Box::new(Bare(name)) as Box<dyn Executor>));
    }
    registry
}

async fn timed(graph: HydratedGraph, registry: Arc<Registry>) -> (RunResult, f64) {
    let (events, mut receiver) = mpsc::channel(1024);
    let drain = tokio::spawn(async move { while receiver.recv().await.is_some() {} });
    let spec = RunSpec {
        job_id: "bench".into(),
        workflow_id: None,
        graph,
        params: Map::new(),
        options: RunOptions::default(),
        registry,
        services: Arc::new(NoServices),
        events,
        cancel: CancellationToken::new(),
        probe: None,
        journal: None,
        trigger: None,
        resume: std::collections::HashMap::new(),
    };
    let start = Instant::now();
    let result = tokio::spawn(run(spec)).await.unwrap();
    let seconds = start.elapsed().as_secs_f64();
    drain.await.unwrap();
    (result, seconds)
}

fn chain(length: usize) -> Json {
    let nodes: Vec<Json> = (0..length)
        .map(|at| json!({"id": format!("n{at}"), "type": "pass"}))
        .collect();
    let edges: Vec<Json> = (1..length)
        .map(|at| {
            let (source, target) = (format!("n{}", at - 1), format!("n{at}"));
            json!({"source": source, "sourceHandle": "output", "target": target, "targetHandle": "value"})
        })
        .collect();
    json!({"nodes": nodes, "edges": edges})
}

fn fanout(count: i64) -> Json {
    json!({"nodes": [
        {"id": "e", "type": "each", "properties": {"n": count}}, {"id": "p", "type": "pass"},
        {"id": "c", "type": "collect"},
    ], "edges": [
        {"source": "e", "sourceHandle": "output", "target": "p", "targetHandle": "value"},
        {"source": "p", "sourceHandle": "output", "target": "c", "targetHandle": "value"},
    ]})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bench_chain_and_fanout() {
    let registry = Arc::new(registry());
    for (name, json, executions) in [
        ("chain of 1,000", chain(1_000), 1_000.0),
        ("list of 10,000", fanout(10_000), 10_002.0),
    ] {
        let mut best = f64::MAX;
        for _ in 0..5 {
            let graph = hydrate(&parse(&json, &mut Vec::new()).unwrap(), &registry);
            let (result, seconds) = timed(graph, Arc::clone(&registry)).await;
            assert_eq!(result.status, JobStatus::Completed, "{:?}", result.error);
            best = best.min(seconds);
        }
        println!(
            "{name}: {:.0} executions/s ({:.1} ms)",
            executions / best,
            best * 1e3
        );
    }
}

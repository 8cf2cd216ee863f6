//! Graphs of nodes that do nothing of their own, and how to run one in this process.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use atelier_kernel::{
    event::channel,
    graph::{HydratedGraph, hydrate::hydrate, load::parse},
    node::{
        Context, Correlation, CorrelationKind, Executor, Generated, GenerationCall, InputMode, NodeError,
        NodeMeta, Offers, OutputMeta, Pieces, Registry, Services,
    },
    run::{Frames, Inputs, Journal, Outputs, RunOptions, RunSpec, run},
};
use atelier_proto::{
    kernel::v1::JobStatus,
    provider::v1::Model,
    value::{Map, MediaRef, Value},
};
use bytes::Bytes;
use serde_json::{Value as Json, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Events that wait for whoever reads them, as in the service.
pub const EVENTS: usize = 1_024;
/// How often the reader looks for the next event before it sleeps.
const LOOKS: usize = 32;

/// Code that passes values on, counts, or collects, by its name.
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
            let frame = [("output".to_owned(), Value::Int(number))];
            frames.send(frame.into_iter().collect()).await?;
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
            let values = group.items.iter().map(|envelope| envelope.value.clone());
            let list = Value::list(values.collect());
            outputs.finish_group(&group, "output", list).await?;
        }
        Ok(())
    }
}
/// Nothing beside the engine.
struct Alone;
#[async_trait]
impl Services for Alone {
    async fn generate(
        &self,
        _: &Context,
        _: GenerationCall,
        _: &mut dyn Pieces,
    ) -> Result<Generated, NodeError> {
        Err(NodeError::new("no provider"))
    }
    async fn media_bytes(&self, _: &Context, _: &MediaRef) -> Result<Bytes, NodeError> {
        Err(NodeError::new("no media"))
    }
    async fn models(&self, _: &Context, _: &str) -> Result<Vec<Model>, NodeError> {
        Ok(Vec::new())
    }
}

/// The types of the graphs below.
pub fn registry() -> Arc<Registry> {
    let rule = |kind, source: &str| Correlation {
        kind,
        source: Some(source.to_owned()),
        group: None,
        collapse_innermost: kind == CorrelationKind::Aggregate,
    };
    let mut registry = Registry::default();
    for name in ["pass", "each", "collect"] {
        let output = OutputMeta {
            name: "output".into(),
            ty: "any".into(),
            stream: false,
        };
        let mut meta = NodeMeta {
            node_type: name.to_owned(),
            outputs: vec![output],
            ..NodeMeta::default()
        };
        match name {
            "each" => {
                meta.streaming_output = Some(true);
                let iterates = rule(CorrelationKind::Iteration, "__execution__");
                meta.output_correlation.insert("output".into(), iterates);
            }
            "collect" => {
                meta.streaming_input = Some(true);
                meta.input_mode = Some(InputMode::Stream);
                let gathers = rule(CorrelationKind::Aggregate, "value");
                meta.output_correlation.insert("output".into(), gathers);
            }
            _ => {}
        }
        registry.register(meta, Arc::new(move || Box::new(Bare(name)) as Box<dyn Executor>));
    }
    Arc::new(registry)
}
fn edge(source: &str, target: &str) -> Json {
    json!({"source": source, "sourceHandle": "output", "target": target, "targetHandle": "value"})
}
/// A chain: each node passes the value of the one before it on.
pub fn chain(length: usize) -> Json {
    let nodes = (0..length).map(|at| json!({"id": format!("n{at}"), "type": "pass"}));
    let edges = (1..length).map(|at| edge(&format!("n{}", at - 1), &format!("n{at}")));
    json!({"nodes": nodes.collect::<Vec<_>>(), "edges": edges.collect::<Vec<_>>()})
}
/// One node that many stand behind, side by side.
pub fn side_by_side(width: usize) -> Json {
    let nodes = (0..=width).map(|at| json!({"id": format!("n{at}"), "type": "pass"}));
    let edges = (1..=width).map(|at| edge("n0", &format!("n{at}")));
    json!({"nodes": nodes.collect::<Vec<_>>(), "edges": edges.collect::<Vec<_>>()})
}
/// A list, item by item through one consumer into a list again.
pub fn list(items: usize) -> Json {
    json!({"nodes": [
        {"id": "e", "type": "each", "properties": {"n": items}}, {"id": "p", "type": "pass"},
        {"id": "c", "type": "collect"},
    ], "edges": [edge("e", "p"), edge("p", "c")]})
}
/// The graph as the engine takes it.
pub fn ready(graph: &Json, registry: &Registry) -> HydratedGraph {
    let raw = parse(graph, &mut Vec::new()).expect("a graph");
    hydrate(&raw, registry)
}

/// What a run came to.
pub struct Ran {
    pub took: Duration,
    pub events: usize,
}
/// Runs a graph to its end, with a reader that takes every event and forgets it.
pub async fn timed(graph: HydratedGraph, registry: Arc<Registry>) -> Ran {
    let (events, mut inbox) = channel(EVENTS);
    let spec = RunSpec {
        job_id: "load".into(),
        workflow_id: None,
        graph,
        params: Map::new(),
        options: RunOptions::default(),
        registry,
        services: Arc::new(Alone),
        events,
        cancel: CancellationToken::new(),
        probe: None,
        journal: Some(Arc::new(Journal::default())),
        trigger: None,
        resume: HashMap::new(),
    };
    let mut tasks = JoinSet::new();
    let start = Instant::now();
    tasks.spawn(async move {
        let result = run(spec).await;
        assert_eq!(result.status, JobStatus::Completed, "{:?}", result.error);
        0
    });
    tasks.spawn(async move {
        let (mut batch, mut seen) = (Vec::with_capacity(EVENTS), 0);
        loop {
            // As a relay that is committing: it is not woken for each event.
            for _ in 0..LOOKS {
                if !inbox.is_empty() {
                    break;
                }
                tokio::task::yield_now().await;
            }
            if inbox.recv_many(&mut batch, EVENTS).await == 0 {
                break;
            }
            seen += batch.len();
            batch.clear();
        }
        seen
    });
    let events = tasks.join_all().await.iter().sum();
    Ran {
        took: start.elapsed(),
        events,
    }
}

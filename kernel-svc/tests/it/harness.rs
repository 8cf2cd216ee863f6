//! Runs a graph and gathers everything that can be seen of it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use atelier_kernel::{
    event::{Event, Note},
    graph::{HydratedGraph, hydrate::hydrate, load::parse},
    node::{Context, Generated, GenerationCall, NodeError, Pieces, Registry, Services, TriggerEvent},
    run::{Journal, Lineage, Probe, Resumed, RunHandle, RunOptions, RunResult, RunSpec, start},
};
use atelier_proto::{
    kernel::v1::{EdgeStatus, JobStatus, NodeStatus, Severity},
    provider::v1::Model,
    value::{Map, MediaRef, Value, from_json, map_from_json},
};
use bytes::Bytes;
use serde_json::Value as Json;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::nodes::{Log, registry, with_tests};

/// No other services.
pub struct NoServices;
#[async_trait]
impl Services for NoServices {
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

/// Values on edges: value and lineage as text.
#[derive(Default)]
pub struct Traffic {
    pub delivered: Mutex<HashMap<String, Vec<(Value, String)>>>,
    pub done: Mutex<HashMap<String, Vec<String>>>,
    /// What follows the end of this node fails.
    panics_after: Option<String>,
}
fn sorted(lineage: &Lineage, roots: &[Arc<str>]) -> String {
    let mut parts: Vec<String> = lineage
        .tokens()
        .iter()
        .map(|token| format!("{}={}", roots[token.root.0 as usize], token.index))
        .collect();
    parts.sort_unstable();
    parts.join(",")
}
impl Probe for Traffic {
    fn delivered(&self, edge: &Arc<str>, value: &Value, lineage: &Lineage, roots: &[Arc<str>]) {
        let item = (value.clone(), sorted(lineage, roots));
        self.delivered
            .lock()
            .unwrap()
            .entry(edge.to_string())
            .or_default()
            .push(item);
    }
    fn ended(&self, node: &Arc<str>) {
        assert!(
            self.panics_after.as_deref() != Some(&**node),
            "on purpose, after {node}"
        );
    }
    fn done(&self, edge: &Arc<str>, key: &Lineage, roots: &[Arc<str>]) {
        self.done
            .lock()
            .unwrap()
            .entry(edge.to_string())
            .or_default()
            .push(sorted(key, roots));
    }
}

/// A run to be started.
pub struct Setup {
    pub graph: HydratedGraph,
    pub params: Map,
    pub options: RunOptions,
    pub log: Arc<Log>,
    pub registry: Arc<Registry>,
    pub cancel: CancellationToken,
    pub journal: Option<Arc<Journal>>,
    pub trigger: Option<TriggerEvent>,
    pub resume: HashMap<String, Resumed>,
    pub panics_after: Option<String>,
}
/// A run that goes on.
pub struct Running {
    pub handle: RunHandle,
    pub cancel: CancellationToken,
    pub log: Arc<Log>,
    traffic: Arc<Traffic>,
    result: JoinHandle<RunResult>,
    events: JoinHandle<Vec<Event>>,
}
/// A run that has ended.
pub struct Done {
    pub result: RunResult,
    pub events: Vec<Event>,
    pub log: Arc<Log>,
    pub traffic: Arc<Traffic>,
}

impl Setup {
    /// A graph in the file's form, hydrated but not pruned, in strict mode.
    pub fn new(graph: &Json) -> Self {
        Self::with_log(graph, Log::default())
    }
    /// With the built-in types besides those of the tests.
    pub fn with_builtins(graph: &Json) -> Self {
        let log = Arc::new(Log::default());
        let registry = with_tests(Registry::clone(&atelier_kernel::nodes::registry()), &log);
        Self::with(graph, log, registry)
    }
    pub fn with_log(graph: &Json, log: Log) -> Self {
        let log = Arc::new(log);
        let registry = registry(&log);
        Self::with(graph, log, registry)
    }
    fn with(graph: &Json, log: Arc<Log>, registry: Registry) -> Self {
        let registry = Arc::new(registry);
        let raw = parse(graph, &mut Vec::new()).expect("a graph");
        let options = RunOptions {
            strict: true,
            ..RunOptions::default()
        };
        let graph = hydrate(&raw, &registry);
        Self {
            graph,
            params: Map::new(),
            options,
            log,
            registry,
            cancel: CancellationToken::new(),
            journal: None,
            trigger: None,
            resume: HashMap::new(),
            panics_after: None,
        }
    }
    /// Goes on where an earlier process stopped, and keeps what a later one needs.
    pub fn journal(mut self, journal: Journal) -> Self {
        self.journal = Some(Arc::new(journal));
        self
    }
    pub fn params(mut self, params: Json) -> Self {
        self.params = map_from_json(params).expect("an object");
        self
    }
    pub fn lenient(mut self) -> Self {
        self.options.strict = false;
        self
    }
    pub fn options(mut self, change: impl FnOnce(&mut RunOptions)) -> Self {
        change(&mut self.options);
        self
    }
    pub fn start(self) -> Running {
        let (events, mut receiver) = atelier_kernel::event::channel(256);
        let traffic = Arc::new(Traffic {
            panics_after: self.panics_after,
            ..Traffic::default()
        });
        let (handle, run) = start(RunSpec {
            job_id: "job".into(),
            workflow_id: None,
            graph: self.graph,
            params: self.params,
            options: self.options,
            registry: self.registry,
            services: Arc::new(NoServices),
            events,
            cancel: self.cancel.clone(),
            probe: Some(Arc::clone(&traffic) as Arc<dyn Probe>),
            journal: self.journal,
            trigger: self.trigger,
            resume: self.resume,
        });
        let events = tokio::spawn(async move {
            let mut all = Vec::new();
            while let Some(event) = receiver.recv().await {
                all.push(event);
            }
            all
        });
        Running {
            handle,
            cancel: self.cancel,
            log: self.log,
            traffic,
            result: tokio::spawn(run),
            events,
        }
    }
    pub async fn run(self) -> Done {
        self.start().done().await
    }
}
impl Running {
    pub async fn done(self) -> Done {
        self.done_within(std::time::Duration::from_secs(60)).await
    }
    /// The same for a run that takes longer, on a clock that is paused.
    pub async fn done_within(self, limit: std::time::Duration) -> Done {
        let Self {
            handle,
            result,
            events,
            log,
            traffic,
            ..
        } = self;
        let result = tokio::time::timeout(limit, result)
            .await
            .expect("the run ends")
            .expect("the run does not panic");
        drop(handle);
        let events = events.await.expect("events");
        assert_eq!(result.live_actors, 0);
        assert_eq!(result.pending_responses, 0);
        Done {
            result,
            events,
            log,
            traffic,
        }
    }
    pub fn has_ended(&self) -> bool {
        self.result.is_finished()
    }
    /// Values that have passed an edge so far.
    pub fn delivered(&self, edge: &str) -> usize {
        self.traffic
            .delivered
            .lock()
            .unwrap()
            .get(edge)
            .map_or(0, Vec::len)
    }
    /// Waits until the handle can be used.
    pub async fn started(&self) {
        while self.handle.finish_input("no such input", None).await
            == Err(atelier_kernel::run::RunError::NotStarted)
        {
            tokio::task::yield_now().await;
        }
    }
}

impl Done {
    pub fn status(&self) -> JobStatus {
        self.result.status
    }
    pub fn outputs(&self) -> Json {
        Json::Object(
            self.result
                .outputs
                .iter()
                .map(|(name, value)| (name.clone(), json(value)))
                .collect(),
        )
    }
    /// Short texts of all events, in order: `job:running`, `node:a:running`, `edge:e1:active:1`,
    /// `output:a:output`, `artifact:a:#0`, `log:a:warning`.
    pub fn trace(&self) -> Vec<String> {
        let mut indexes: HashMap<String, usize> = HashMap::new();
        let mut short = |event: &Event| match event {
            Event::Job { status, .. } => format!("job:{}", job_status(*status)),
            Event::Queued { position } => format!("queued:{position}"),
            Event::Node { node, status, .. } => format!("node:{}:{}", node.id, node_status(*status)),
            Event::Edge {
                edge_id,
                status,
                counter,
            } => {
                let count = counter.map_or_else(|| "null".to_owned(), |count| count.to_string());
                format!("edge:{edge_id}:{}:{count}", edge_status(*status))
            }
            Event::Output {
                node, output_name, ..
            } => format!("output:{}:{output_name}", node.id),
            Event::Artifact { node, .. } => {
                let next = indexes.entry(node.id.to_string()).or_default();
                *next += 1;
                format!("artifact:{}:#{}", node.id, *next - 1)
            }
            Event::Note {
                node,
                note:
                    Note::Log {
                        severity: Severity::Warning,
                        ..
                    },
            } => format!("log:{}:warning", node.id),
            Event::Note { node, .. } => format!("note:{}", node.id),
            Event::Frames { node, .. } => format!("frames:{}", node.id),
            Event::Supervision { node, decision, .. } => match decision {
                None => format!("escalation:{}", node.id),
                Some(decision) => format!(
                    "decision:{}:{}:{}",
                    node.id,
                    decision.verdict.action.as_str(),
                    decision.decided_by.as_str()
                ),
            },
        };
        self.events.iter().map(&mut short).collect()
    }
    pub fn count(&self, prefix: &str) -> usize {
        self.trace()
            .iter()
            .filter(|event| event.starts_with(prefix))
            .count()
    }
    pub fn edge(&self, id: &str) -> Vec<String> {
        let prefix = format!("edge:{id}:");
        self.trace()
            .iter()
            .filter_map(|event| event.strip_prefix(&prefix).map(ToOwned::to_owned))
            .collect()
    }
    pub fn artifacts(&self, id: &str) -> Vec<Json> {
        let own = self.events.iter().filter_map(|event| match event {
            Event::Artifact { node, outputs, .. } if &*node.id == id => {
                Some(json(&Value::Map(Arc::clone(outputs))))
            }
            _ => None,
        });
        own.collect()
    }
    pub fn shown(&self, id: &str) -> Vec<(String, Json)> {
        let own = self.events.iter().filter_map(|event| match event {
            Event::Output {
                node,
                output_name,
                value,
                ..
            } if &*node.id == id => Some((output_name.to_string(), json(value))),
            _ => None,
        });
        own.collect()
    }
    pub fn warnings(&self) -> Vec<String> {
        let texts = self.events.iter().filter_map(|event| match event {
            Event::Note {
                note:
                    Note::Log {
                        content,
                        severity: Severity::Warning,
                    },
                ..
            } => Some(content.clone()),
            _ => None,
        });
        texts.collect()
    }
    pub fn delivered(&self, edge: &str) -> Vec<(Json, String)> {
        let all = self.traffic.delivered.lock().unwrap();
        all.get(edge)
            .into_iter()
            .flatten()
            .map(|(value, lineage)| (json(value), lineage.clone()))
            .collect()
    }
    pub fn calls(&self, node: &str) -> usize {
        self.log.calls(node).len()
    }
    /// Inputs of every call of a node.
    pub fn inputs(&self, node: &str) -> Vec<Json> {
        self.log
            .calls(node)
            .into_iter()
            .map(|call| json(&call.inputs.unwrap_or_default().into()))
            .collect()
    }
    pub fn codes(&self) -> Vec<String> {
        self.result
            .issues
            .iter()
            .map(|issue| issue.code.clone())
            .collect()
    }
}

pub fn json(value: &Value) -> Json {
    atelier_proto::value::to_json(value, atelier_proto::value::BytesForm::Tagged)
}
pub fn value(json: Json) -> Value {
    from_json(json)
}
pub fn job_status(status: JobStatus) -> &'static str {
    match status {
        JobStatus::Running => "running",
        JobStatus::Completed => "completed",
        JobStatus::Failed => "failed",
        JobStatus::Cancelled => "cancelled",
        JobStatus::Suspended => "suspended",
        _ => "other",
    }
}
pub fn node_status(status: NodeStatus) -> &'static str {
    match status {
        NodeStatus::Running => "running",
        NodeStatus::Completed => "completed",
        NodeStatus::Error => "error",
        NodeStatus::Suspended => "suspended",
        NodeStatus::Warning => "warning",
        NodeStatus::Unspecified => "other",
    }
}
pub fn edge_status(status: EdgeStatus) -> &'static str {
    match status {
        EdgeStatus::Active => "active",
        EdgeStatus::Completed => "completed",
        EdgeStatus::Drained => "drained",
        EdgeStatus::Unspecified => "other",
    }
}

/// A graph in the file's form, built step by step. Edges are called e1, e2, … in the order written.
#[derive(Default)]
pub struct Graph {
    nodes: Vec<Json>,
    edges: Vec<Json>,
}
pub fn graph() -> Graph {
    Graph::default()
}
impl Graph {
    /// A node without a name.
    pub fn node(mut self, id: &str, ty: &str, properties: Json) -> Self {
        self.nodes
            .push(serde_json::json!({"id": id, "type": ty, "properties": properties}));
        self
    }
    /// A node with a name.
    pub fn named(self, id: &str, ty: &str, name: &str, properties: Json) -> Self {
        self.node(id, ty, properties)
            .with("name", serde_json::json!(name))
    }
    /// A `test.Sink` called `out`.
    pub fn sink(self, id: &str) -> Self {
        self.named(id, "test.Sink", "out", serde_json::json!({}))
    }
    /// An external input with the parameter's name `x`.
    pub fn input(self, id: &str) -> Self {
        self.node(id, "nodetool.input.Value", serde_json::json!({"name": "x"}))
    }
    /// Sets a field of the last node.
    pub fn with(mut self, field: &str, value: Json) -> Self {
        if let Some(node) = self.nodes.last_mut() {
            node[field] = value;
        }
        self
    }
    /// Data edges, written `a.out > b.in`.
    pub fn edges<const N: usize>(mut self, edges: [&str; N]) -> Self {
        for edge in edges {
            self.push(edge, None);
        }
        self
    }
    /// A control edge, written `a.__control__ > b`.
    pub fn control(mut self, edge: &str) -> Self {
        self.push(edge, Some("control"));
        self
    }
    fn push(&mut self, edge: &str, kind: Option<&str>) {
        let (source, target) = edge.split_once('>').expect("an arrow");
        let (source, source_handle) = source.trim().rsplit_once('.').expect("an output");
        let (target, target_handle) = target
            .trim()
            .rsplit_once('.')
            .unwrap_or((target.trim(), "__control__"));
        let mut json = serde_json::json!({
            "id": format!("e{}", self.edges.len() + 1), "source": source, "sourceHandle": source_handle,
            "target": target, "targetHandle": target_handle,
        });
        if let Some(kind) = kind {
            json["edge_type"] = serde_json::json!(kind);
        }
        self.edges.push(json);
    }
    pub fn json(&self) -> Json {
        serde_json::json!({"nodes": self.nodes, "edges": self.edges})
    }
    pub fn setup(&self) -> Setup {
        Setup::new(&self.json())
    }
    /// Runs it with the parameter `x`, in strict mode.
    pub async fn run_with(&self, x: Json) -> Done {
        self.setup().params(serde_json::json!({"x": x})).run().await
    }
    pub async fn run(&self) -> Done {
        self.setup().run().await
    }
}

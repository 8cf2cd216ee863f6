//! Graphs with nodes that fail on purpose, and supervisors that answer as told.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use async_trait::async_trait;
use atelier_kernel::{
    event::Event,
    graph::{hydrate::hydrate, load::parse},
    node::{Context, Executor, InputMeta, NodeError, NodeMeta, OutputMeta},
    run::{
        RunOptions, Supervision,
        supervise::{Action, Escalation, Supervisor, SupervisorError, Verdict},
    },
};
use atelier_proto::value::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::{
    harness::{Done, Graph, Setup},
    nodes::{Log, registry},
};

/// Answers as told, and remembers what it was asked.
pub struct Told {
    answer: Box<dyn Fn(&Escalation) -> Verdict + Send + Sync>,
    pub asked: Mutex<Vec<Arc<Escalation>>>,
    busy: AtomicUsize,
    /// Questions that were open at once.
    pub most: AtomicUsize,
}
pub fn told(answer: impl Fn(&Escalation) -> Verdict + Send + Sync + 'static) -> Arc<Told> {
    Arc::new(Told {
        answer: Box::new(answer),
        asked: Mutex::default(),
        busy: AtomicUsize::new(0),
        most: AtomicUsize::new(0),
    })
}
/// Always the same answer.
pub fn always(action: Action) -> Arc<Told> {
    told(move |_| Verdict::new(action))
}
#[async_trait]
impl Supervisor for Told {
    async fn decide(&self, escalation: Arc<Escalation>) -> Result<Verdict, SupervisorError> {
        let busy = self.busy.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(busy, Ordering::SeqCst);
        tokio::task::yield_now().await;
        let verdict = (self.answer)(&escalation);
        self.asked.lock().unwrap().push(escalation);
        self.busy.fetch_sub(1, Ordering::SeqCst);
        Ok(verdict)
    }
}
impl Told {
    pub fn asked(&self) -> Vec<Arc<Escalation>> {
        self.asked.lock().unwrap().clone()
    }
}

/// Fails as often as its property `fails` says; what it does before it fails is in its type.
struct Failing {
    ty: &'static str,
    calls: i64,
    log: Arc<Log>,
}
#[async_trait]
impl Executor for Failing {
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        self.log.note(ctx, &inputs);
        self.calls += 1;
        let fails = inputs.get("fails").and_then(Value::as_i64).unwrap_or(0);
        if self.calls <= fails {
            match self.ty {
                "test.FlakyPaid" => ctx.generation_ids.lock().unwrap().push("g1".to_owned()),
                "test.Typed" => {
                    ctx.propose([("output".to_owned(), Value::Int(7))].into_iter().collect());
                }
                "test.TypedPicture" => {
                    ctx.propose([("output".to_owned(), Value::Int(7))].into_iter().collect());
                }
                _ => {}
            }
            let text = inputs.get("text").and_then(Value::as_str);
            let text = text.map_or_else(|| format!("failed {}", self.calls), ToOwned::to_owned);
            return Err(NodeError::new(text));
        }
        let value = inputs.get("value").cloned().unwrap_or_default();
        Ok([("output".to_owned(), value)].into_iter().collect())
    }
}
const TYPES: [(&str, bool, &str); 5] = [
    ("test.Flaky", true, "any"),
    ("test.FlakyUnsafe", false, "any"),
    ("test.FlakyPaid", true, "any"),
    ("test.Typed", false, "int"),
    ("test.TypedPicture", false, "image"),
];

/// A run of a graph with these types besides the usual ones.
pub fn setup(graph: &Graph, supervisor: Option<Arc<dyn Supervisor>>) -> Setup {
    let log = Arc::new(Log::default());
    let mut types = registry(&log);
    for (ty, retry_safe, output) in TYPES {
        let meta = NodeMeta {
            node_type: ty.to_owned(),
            inputs: vec![InputMeta {
                name: "value".to_owned(),
                ty: "any".to_owned(),
                ..InputMeta::default()
            }],
            outputs: vec![OutputMeta {
                name: "output".to_owned(),
                ty: output.to_owned(),
                stream: false,
            }],
            retry_safe,
            ..NodeMeta::default()
        };
        let log = Arc::clone(&log);
        let make = move || {
            let log = Arc::clone(&log);
            Box::new(Failing { ty, calls: 0, log }) as Box<dyn Executor>
        };
        types.register(meta, Arc::new(make));
    }
    let types = Arc::new(types);
    Setup {
        graph: hydrate(&parse(&graph.json(), &mut Vec::new()).unwrap(), &types),
        params: Map::new(),
        options: RunOptions {
            strict: true,
            supervision: Supervision(supervisor),
            ..RunOptions::default()
        },
        log,
        registry: types,
        cancel: CancellationToken::new(),
        journal: None,
        trigger: None,
        resume: Default::default(),
        panics_after: None,
    }
}
pub async fn run(graph: &Graph, supervisor: &Arc<Told>) -> Done {
    let supervisor = Arc::clone(supervisor) as Arc<dyn Supervisor>;
    setup(graph, Some(supervisor)).run().await
}
/// What was decided, in order: node, action, who.
pub fn decisions(done: &Done) -> Vec<String> {
    done.events
        .iter()
        .filter_map(|event| match event {
            Event::Supervision {
                node,
                decision: Some(decision),
                ..
            } => Some(format!(
                "{} {} {}",
                node.id,
                decision.verdict.action.as_str(),
                decision.decided_by.as_str()
            )),
            _ => None,
        })
        .collect()
}

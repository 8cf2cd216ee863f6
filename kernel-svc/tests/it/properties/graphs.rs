//! Random graphs over the test types, and what can be compared of their runs.

use std::{collections::BTreeMap, sync::Arc};

use atelier_kernel::{
    graph::{
        correlation::correlate,
        facts::{HandleFacts, Repeat},
        hydrate::hydrate,
        load::parse,
        order::Places,
    },
    run::RunOptions,
};
use proptest::{prelude::*, sample::Index};
use serde_json::{Value as Json, json};

use crate::{
    harness::{Done, Setup},
    nodes::{Log, canonical_json, registry},
};

/// Types that the random graphs are made of: name, inputs, outputs. An input that is named twice takes two edges.
/// `controlled` stands for a controlled node with its controller.
const TYPES: &[(&str, &[&str], &[&str])] = &[
    ("test.Const", &[], &["output"]),
    ("test.StreamN", &["t"], &["output"]),
    ("test.Frames", &["t"], &["a", "b"]),
    ("test.Chunks", &["prefix"], &["chunk"]),
    ("test.ForEach", &["input_list"], &["output", "index"]),
    ("test.Pass", &["value"], &["output"]),
    ("test.Add", &["a", "b"], &["output"]),
    ("test.Mul", &["a", "b"], &["output"]),
    ("test.Join", &["l", "r"], &["output"]),
    ("test.Split", &["value"], &["a", "b"]),
    ("test.Range", &["value"], &["output"]),
    ("test.Filter", &["value"], &["output"]),
    ("test.Gate", &["value"], &["yes", "no"]),
    ("test.Collect", &["input_item"], &["output"]),
    ("test.Count", &["input_item"], &["output"]),
    ("test.SumAll", &["input_item"], &["output"]),
    ("test.Replay", &["value"], &["output"]),
    ("test.Gather", &["items", "items"], &["output"]),
    ("test.Zip", &["left", "right"], &["left", "right", "index"]),
    ("test.Cross", &["left", "right"], &["left", "right"]),
    ("controlled", &[], &["result"]),
];

/// A node: its type, a number for its property, and where its inputs come from.
#[derive(Debug, Clone)]
pub struct Plan {
    ty: usize,
    number: i64,
    sources: Vec<Option<(Index, Index)>>,
}

pub fn plans() -> impl Strategy<Value = Vec<Plan>> {
    let source = prop::option::weighted(0.9, any::<(Index, Index)>());
    let plan = (0..TYPES.len(), 0..4_i64, prop::collection::vec(source, 2));
    prop::collection::vec(
        plan.prop_map(|(ty, number, sources)| Plan { ty, number, sources }),
        2..12,
    )
}

pub fn graph(plans: &[Plan]) -> Json {
    let (mut nodes, mut edges) = (Vec::new(), Vec::new());
    for (at, plan) in plans.iter().enumerate() {
        let (ty, inputs, _) = TYPES[plan.ty];
        let id = format!("n{at}");
        if ty == "controlled" {
            let event = json!({"event_type": "run", "properties": {"x": plan.number}});
            let events = vec![event; usize::try_from(plan.number).unwrap()];
            let controller = format!("{id}c");
            nodes
                .push(json!({"id": controller, "type": "test.Controller", "properties": {"events": events}}));
            nodes.push(json!({"id": id, "type": "test.Controlled", "properties": {}}));
            edges.push(json!({
                "id": format!("e{}", edges.len()), "source": controller, "sourceHandle": "__control__",
                "target": id, "targetHandle": "__control__", "edge_type": "control",
            }));
            continue;
        }
        let properties = match ty {
            "test.Const" => json!({"value": [plan.number, 3, 1]}),
            "test.StreamN" => json!({"n": plan.number, "base": 1}),
            "test.Chunks" => json!({"n": plan.number}),
            "test.Frames" => {
                let frames: Vec<Json> = (0..plan.number).map(|at| json!({"a": at, "b": at * 2})).collect();
                json!({"frames": frames})
            }
            _ => json!({}),
        };
        nodes.push(json!({"id": id, "type": ty, "properties": properties}));
        for (input, source) in inputs.iter().zip(&plan.sources) {
            let Some((source, output)) = source.filter(|_| at > 0) else {
                continue;
            };
            let source = source.index(at);
            let outputs = TYPES[plans[source].ty].2;
            edges.push(json!({
                "id": format!("e{}", edges.len()), "source": format!("n{source}"),
                "sourceHandle": outputs[output.index(outputs.len())], "target": id, "targetHandle": input,
            }));
        }
    }
    json!({"nodes": nodes, "edges": edges})
}

/// The text of some JSON with all lists sorted.
fn unordered(json: &Json) -> Json {
    match json {
        Json::Array(values) => {
            let mut values: Vec<Json> = values.iter().map(unordered).collect();
            values.sort_by_key(canonical_json);
            Json::Array(values)
        }
        Json::Object(object) => object
            .iter()
            .map(|(key, value)| (key.clone(), unordered(value)))
            .collect(),
        other => other.clone(),
    }
}

/// What must not depend on timing: results, and what each invocation saw under its key.
pub fn essence(done: &Done) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    all.insert("outputs".to_owned(), canonical_json(&unordered(&done.outputs())));
    for (node, calls) in done.log.calls.lock().unwrap().iter() {
        let mut texts: Vec<String> = calls
            .iter()
            .map(|call| {
                let inputs = crate::harness::json(&call.inputs.clone().unwrap_or_default().into());
                format!("{} {}", call.invocation, canonical_json(&unordered(&inputs)))
            })
            .collect();
        texts.sort_unstable();
        all.insert(node.clone(), texts.join("\n"));
    }
    all
}

pub fn setup(graph: &Json, seed: u64, change: impl FnOnce(&mut RunOptions)) -> Setup {
    Setup::with_log(graph, Log::with_jitter(seed)).options(change)
}
pub async fn run(graph: &Json, seed: u64, limit: Option<usize>) -> Done {
    setup(graph, seed, |options| options.buffer_limit = limit)
        .run()
        .await
}
/// Whether a node pairs each item of an iteration with the newest of several values that belong to none: which one that is
/// depends on who is faster, by the rules of the pairing (kernel specification 4.5).
pub fn takes_the_newest(graph: &Json) -> bool {
    let registry = registry(&Arc::new(Log::default()));
    let graph = hydrate(&parse(graph, &mut Vec::new()).unwrap(), &registry);
    let Ok(facts) = correlate(&graph, &Places::of(&graph)) else {
        return false;
    };
    facts.nodes.iter().any(|node| {
        let newest = |handle: &HandleFacts| handle.scope.is_empty() && handle.repeats != Repeat::No;
        !node.scope.is_empty() && node.handles.iter().any(newest)
    })
}
/// Whether the graph is legal, and no node of it was asked for what it cannot do.
pub fn is_sound(done: &Done) -> bool {
    // Illegal graphs, and lists that mix an iteration with values outside of it, end early.
    let code = done.result.error_code.clone().unwrap_or_default();
    let refused = code.starts_with("corr.") || code.starts_with("graph.");
    // Zip and Cross need iterations.
    let unfit = done
        .result
        .node_errors
        .iter()
        .any(|(_, error)| error.message.starts_with("zip:") || error.message.starts_with("fail:cross"));
    !refused && !unfit
}
pub fn on_threads<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(work)
}

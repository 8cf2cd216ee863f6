//! What holds for every graph: results do not depend on timing or on the size of buffers, nothing is lost on
//! the way, and a run of bounded nodes ends.

use std::collections::BTreeMap;

use atelier_proto::kernel::v1::JobStatus;
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use crate::{
    harness::{Done, Setup},
    nodes::{Log, canonical_json},
};

/// Types that the random graphs are made of: name, inputs, output, whether it takes lists of edges.
const TYPES: &[(&str, &[&str], &str)] = &[
    ("test.Const", &[], "output"),
    ("test.StreamN", &["t"], "output"),
    ("test.ForEach", &["input_list"], "output"),
    ("test.Pass", &["value"], "output"),
    ("test.Add", &["a", "b"], "output"),
    ("test.Mul", &["a", "b"], "output"),
    ("test.Range", &["value"], "output"),
    ("test.Filter", &["value"], "output"),
    ("test.Gate", &["value"], "yes"),
    ("test.Collect", &["input_item"], "output"),
    ("test.Count", &["input_item"], "output"),
    ("test.SumAll", &["input_item"], "output"),
    ("test.Replay", &["value"], "output"),
    ("test.Gather", &["items", "items"], "output"),
];

/// A node: its type, a number for its property, and where its inputs come from.
#[derive(Debug, Clone)]
struct Plan {
    ty: usize,
    number: i64,
    sources: Vec<Option<prop::sample::Index>>,
}

fn plans() -> impl Strategy<Value = Vec<Plan>> {
    let source = prop::option::weighted(0.9, any::<prop::sample::Index>());
    let plan = (0..TYPES.len(), 0..4_i64, prop::collection::vec(source, 2));
    prop::collection::vec(
        plan.prop_map(|(ty, number, sources)| Plan { ty, number, sources }),
        2..12,
    )
}

fn graph(plans: &[Plan]) -> Json {
    let (mut nodes, mut edges) = (Vec::new(), Vec::new());
    for (at, plan) in plans.iter().enumerate() {
        let (ty, inputs, _) = TYPES[plan.ty];
        let properties = match ty {
            "test.Const" => json!({"value": [plan.number, 3, 1]}),
            "test.StreamN" => json!({"n": plan.number, "base": 1}),
            _ => json!({}),
        };
        nodes.push(json!({"id": format!("n{at}"), "type": ty, "properties": properties}));
        for (input, source) in inputs.iter().zip(&plan.sources) {
            let Some(source) = source.filter(|_| at > 0).map(|source| source.index(at)) else {
                continue;
            };
            edges.push(json!({
                "id": format!("e{}", edges.len()), "source": format!("n{source}"),
                "sourceHandle": TYPES[plans[source].ty].2, "target": format!("n{at}"), "targetHandle": input,
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
fn essence(done: &Done) -> BTreeMap<String, String> {
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

async fn run(graph: &Json, seed: u64, limit: Option<usize>) -> Done {
    Setup::with_log(graph, Log::with_jitter(seed))
        .options(|options| options.buffer_limit = limit)
        .run()
        .await
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn timing_and_buffers_do_not_change_a_run(plans in plans(), seed in any::<u32>(), limit in 1..4_usize) {
        let graph = graph(&plans);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(async {
            let first = run(&graph, u64::from(seed), None).await;
            // Illegal graphs, and lists that mix an iteration with values outside of it, end early.
            let code = first.result.error_code.clone().unwrap_or_default();
            if code.starts_with("corr.") || code.starts_with("graph.") {
                return;
            }
            let mut values = vec![first];
            values.push(run(&graph, u64::from(seed) + 1, None).await);
            values.push(run(&graph, u64::from(seed) + 2, Some(limit)).await);
            for done in &values {
                // In strict mode a run with values that nobody took, or with open edges, does not complete.
                assert_eq!(done.status(), JobStatus::Completed, "{:?}\n{graph}", done.result.error);
                for edge in graph["edges"].as_array().unwrap() {
                    let id = edge["id"].as_str().unwrap();
                    let count = done.delivered(id).len();
                    let count = if count == 0 { "null".to_owned() } else { count.to_string() };
                    assert_eq!(done.edge(id).last(), Some(&format!("completed:{count}")), "{id}");
                }
            }
            for pair in values.windows(2) {
                assert_eq!(essence(&pair[0]), essence(&pair[1]), "{graph}");
            }
        });
    }
}

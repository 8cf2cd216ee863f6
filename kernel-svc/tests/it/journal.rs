//! Runs that are cut off anywhere and go on from what was committed: nothing runs twice, and it comes to the same.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use atelier_kernel::{
    event::Event,
    run::{Journal, Recorded},
};
use atelier_proto::value::{Map, Value};
use serde_json::{Value as Json, json};

use crate::{
    harness::{Done, Setup},
    nodes::{Log, canonical},
};

/// Events of a run, by node and invocation.
#[derive(Default)]
struct Memory {
    frames: HashMap<(String, String), Vec<Map>>,
    committed: HashMap<(String, String), Map>,
}
#[tonic::async_trait]
impl Recorded for Memory {
    async fn frames(&self, node: &str, invocation: &str) -> Option<Vec<Map>> {
        self.frames
            .get(&(node.to_owned(), invocation.to_owned()))
            .cloned()
    }
    async fn committed(&self, node: &str, invocation: &str) -> Option<Map> {
        self.committed
            .get(&(node.to_owned(), invocation.to_owned()))
            .cloned()
    }
}
/// What a later process would find of the first events of a run.
fn journal(events: &[Event]) -> (Journal, BTreeSet<(String, String)>) {
    let (mut memory, mut committed) = (Memory::default(), BTreeSet::new());
    for event in events {
        match event {
            Event::Artifact {
                node,
                invocation,
                outputs,
                ..
            } => {
                let key = (node.id.to_string(), invocation.clone());
                memory.committed.insert(key.clone(), (**outputs).clone());
                committed.insert(key);
            }
            Event::Frames {
                node,
                invocation,
                frames,
            } => {
                let key = (node.id.to_string(), invocation.clone());
                memory.frames.insert(key, frames.to_vec());
            }
            _ => {}
        }
    }
    (Journal::of(Arc::new(memory)), committed)
}
fn commits(done: &Done) -> BTreeSet<(String, String)> {
    journal(&done.events).1
}
/// Outputs with the values of each name sorted: branches race, and their order is nobody's promise.
fn outputs(done: &Done) -> BTreeMap<String, Vec<String>> {
    let sorted = |(name, values): (&String, &Value)| {
        let mut texts: Vec<String> = values.as_list().unwrap().iter().map(canonical).collect();
        texts.sort();
        (name.clone(), texts)
    };
    done.result.outputs.iter().map(sorted).collect()
}
struct Graph {
    name: String,
    graph: Json,
    params: Json,
}
impl Graph {
    fn setup(&self, seed: u64) -> Setup {
        Setup::with_log(&self.graph, Log::with_jitter(seed))
            .lenient()
            .params(self.params.clone())
    }
    /// Runs it whole, then cut off after so many events, and goes on.
    async fn cut(&self, places: &[usize]) {
        let whole = self.setup(1).journal(Journal::default()).run().await;
        for place in places {
            let cut = place % whole.events.len().max(1);
            let (before, committed) = journal(&whole.events[..cut]);
            let after = self.setup(*place as u64).journal(before).run().await;
            let about = format!("{} cut after {cut} events", self.name);
            assert_eq!(after.status(), whole.status(), "{about}");
            assert_eq!(outputs(&after), outputs(&whole), "{about}");
            assert_eq!(commits(&after), commits(&whole), "{about}");
            for (node, calls) in after.log.calls.lock().unwrap().iter() {
                // Nodes that read their own stream run again; their commits are found by their key.
                let again = calls
                    .iter()
                    .filter(|call| call.inputs.is_some() && !call.invocation.is_empty());
                for call in again {
                    let key = (node.clone(), call.invocation.clone());
                    assert!(!committed.contains(&key), "{about}: {key:?} ran twice");
                }
            }
        }
    }
}
fn corpus() -> Vec<Graph> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/spec");
    let folder = std::env::var("ATELIER_SPECS").unwrap_or_else(|_| beside.to_owned());
    let Ok(text) = std::fs::read_to_string(format!("{folder}/kernel-corpus.jsonl")) else {
        return Vec::new();
    };
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<Json>(line).unwrap());
    // Where values race for one place, two runs may differ without any cut.
    let steady = |line: &Json| {
        let result = &line["result"];
        let races = [&line["ours"], result]
            .iter()
            .any(|part| part.get("outputs_vary").is_some() || part["status"] == json!("hang"));
        let parts = line["script"].is_null() && line["via"].is_null() && line["buffer_limit"].is_null();
        result["status"] == json!("completed") && !line["agree"].is_null() && parts && !races
    };
    let graph = |line: Json| Graph {
        name: line["id"].as_str().unwrap().to_owned(),
        graph: line["graph"].clone(),
        params: line["params"].clone(),
    };
    lines.filter(steady).map(graph).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g_4_runs_of_the_corpus_go_on_from_any_cut() {
    for (number, graph) in corpus().iter().enumerate().step_by(6) {
        graph.cut(&[number + 7, 5 * number + 3, 977 * number + 11]).await;
    }
}
#[tokio::test]
async fn g_4_a_fan_out_goes_on_after_every_event() {
    let graph = Graph {
        name: "six".to_owned(),
        graph: json!({
            "nodes": [
                {"id": "list", "type": "test.Const", "properties": {"value": ["a", "b", "c", "d", "e", "f"]}},
                {"id": "each", "type": "test.ForEach"},
                {"id": "work", "type": "test.Pass"},
                {"id": "all", "type": "test.Collect"},
                {"id": "out", "type": "test.Sink", "name": "out"},
            ],
            "edges": [
                {"id": "e1", "source": "list", "sourceHandle": "output", "target": "each", "targetHandle": "input_list"},
                {"id": "e2", "source": "each", "sourceHandle": "output", "target": "work", "targetHandle": "value"},
                {"id": "e3", "source": "work", "sourceHandle": "output", "target": "all", "targetHandle": "input_item"},
                {"id": "e4", "source": "all", "sourceHandle": "output", "target": "out", "targetHandle": "value"},
            ],
        }),
        params: json!({}),
    };
    let places: Vec<usize> = (0..60).collect();
    graph.cut(&places).await;
}
#[tokio::test]
async fn g_4_control_events_of_a_cut_run_are_sent_again_and_answered_from_the_journal() {
    let run = |x: i64| json!({"event_type": "run", "properties": {"x": x}});
    let graph = Graph {
        name: "controlled".to_owned(),
        graph: json!({
            "nodes": [
                {"id": "c", "type": "test.Controller", "properties": {"events": [run(1), run(2), run(3)]}},
                {"id": "p", "type": "test.Controlled", "name": "p"},
                {"id": "v", "type": "test.Const", "properties": {"value": {"brightness": 5}}},
                {"id": "w", "type": "test.ControlOut"},
                {"id": "q", "type": "test.Controlled", "name": "q"},
            ],
            "edges": [
                {"id": "e1", "source": "c", "sourceHandle": "__control__", "target": "p",
                    "targetHandle": "__control__", "edge_type": "control"},
                {"id": "e2", "source": "v", "sourceHandle": "output", "target": "w", "targetHandle": "value"},
                {"id": "e3", "source": "w", "sourceHandle": "__control_output__", "target": "q",
                    "targetHandle": "__control__", "edge_type": "control"},
            ],
        }),
        params: json!({}),
    };
    let places: Vec<usize> = (0..40).collect();
    graph.cut(&places).await;
}
#[tokio::test]
async fn what_a_cut_run_showed_is_not_shown_again() {
    let graph = json!({
        "nodes": [{"id": "s", "type": "test.Chunks", "properties": {"n": 3}}],
        "edges": [],
    });
    let whole = Setup::new(&graph).journal(Journal::default()).run().await;
    let shown = |done: &Done| done.count("output:s");
    assert_eq!(shown(&whole), 3);
    let (before, _) = journal(&whole.events);
    let after = Setup::new(&graph).journal(before).run().await;
    assert_eq!((shown(&after), after.log.calls("s").len()), (0, 0));
    assert_eq!(after.outputs(), whole.outputs());
}

//! Replays the recorded runs of the corpus, field by field.

mod compare;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use atelier_kernel::graph::{LoadOptions, load};
use compare::check;
use serde_json::{Value as Json, json};

use crate::{
    harness::{Done, Setup, value},
    nodes::Log,
};

/// Where the corpus is; `None` when it is not there.
fn corpus() -> Option<String> {
    let own = std::env::var("ATELIER_SPECS").ok().map(PathBuf::from);
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/spec");
    let file = own.unwrap_or(beside).join("kernel-corpus.jsonl");
    std::fs::read_to_string(file).ok()
}

/// One recorded run, with what is demanded of ours laid over what was recorded.
struct Line {
    id: String,
    json: Json,
    want: Json,
    asserted: bool,
    loose: BTreeSet<String>,
}

fn overlay(mut result: Json, ours: &Json) -> Json {
    for (key, change) in ours.as_object().into_iter().flatten() {
        if key == "nodes" || key == "edges" {
            for (id, fields) in change.as_object().into_iter().flatten() {
                for (field, value) in fields.as_object().into_iter().flatten() {
                    let place = result[key]
                        .as_object_mut()
                        .unwrap()
                        .entry(id.clone())
                        .or_insert_with(|| json!({}));
                    set(place, field, value);
                }
            }
        } else {
            set(&mut result, key, change);
        }
    }
    result
}
fn set(place: &mut Json, field: &str, value: &Json) {
    const ABSENT: &[&str] = &[
        "ordered",
        "lineages",
        "output_updates_ordered",
        "outputs_unordered",
        "outputs_vary",
    ];
    let object = place.as_object_mut().unwrap();
    if value.is_null() && ABSENT.contains(&field) {
        object.shift_remove(field);
    } else {
        object.insert(field.to_owned(), value.clone());
    }
}

impl Line {
    fn new(text: &str) -> Self {
        let json: Json = serde_json::from_str(text).expect("a line of JSON");
        let result = json["result"].clone();
        let want = if json["agree"] == json!(false) {
            overlay(result, &json["ours"])
        } else {
            result
        };
        let loose = json["loose"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Json::as_str)
            .map(ToOwned::to_owned);
        Self {
            id: json["id"].as_str().unwrap().to_owned(),
            asserted: !json["agree"].is_null(),
            loose: loose.collect(),
            want,
            json,
        }
    }
    async fn replay(&self, log: Log) -> Done {
        let mut setup = Setup::with_log(&self.json["graph"], log)
            .lenient()
            .params(self.json["params"].clone());
        if self.json["via"] == json!("loader") {
            setup.graph =
                load(&self.json["graph"], &setup.registry, &LoadOptions::default()).expect("a graph");
        }
        let limit = self.json["buffer_limit"]
            .as_u64()
            .map(|limit| usize::try_from(limit).unwrap());
        let running = setup.options(|options| options.buffer_limit = limit).start();
        if let Some(script) = self.json["script"].as_array() {
            running.started().await;
            for step in script {
                let name = step[1].as_str().unwrap_or_default();
                match step[0].as_str() {
                    Some("push") => drop(
                        running
                            .handle
                            .push_input(name, value(step[2].clone()), None)
                            .await,
                    ),
                    Some("finish") => drop(running.handle.finish_input(name, None).await),
                    _ => tokio::time::sleep(Duration::from_millis(step[1].as_u64().unwrap())).await,
                }
            }
        }
        running.done().await
    }
    /// A node whose inbox may or may not be seen with values in it.
    fn may_leave_values(&self, node: &str) -> bool {
        let failed = self.want["nodes"][node]["status"] == json!("error");
        let nodes = self.json["graph"]["nodes"].as_array().unwrap();
        let ty = nodes
            .iter()
            .find(|own| own["id"] == json!(node))
            .and_then(|own| own["type"].as_str());
        let edges = self.json["graph"]["edges"].as_array().unwrap();
        let controlled = edges
            .iter()
            .any(|edge| edge["edge_type"] == json!("control") && edge["target"] == json!(node));
        failed || controlled || ty == Some("test.LegacyStream")
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_corpus_is_reproduced() {
    let Some(text) = corpus() else {
        eprintln!("kernel-corpus.jsonl is not there: skipped");
        return;
    };
    let only = std::env::var("CORPUS_ONLY").ok();
    let lines: Vec<Arc<Line>> = text.lines().map(|line| Arc::new(Line::new(line))).collect();
    let (mut asserted, mut good, mut open, mut again) = (0, 0, 0, 0);
    let mut by_field: BTreeMap<String, usize> = BTreeMap::new();
    let mut texts = Vec::new();
    for line in lines.iter().filter(|line| {
        only.as_ref()
            .is_none_or(|only| only.split(',').any(|id| id == line.id))
    }) {
        let mut faults = check(line, &line.replay(Log::default()).await);
        // What interleaving decides may differ from run to run; what never comes out as recorded is a fault.
        for seed in 1..20 {
            if line.asserted && !faults.is_empty() {
                again += 1;
                faults = check(line, &line.replay(Log::with_jitter(seed)).await);
            }
        }
        if !line.asserted {
            open += 1;
            continue;
        }
        asserted += 1;
        good += usize::from(faults.is_empty());
        for (field, text) in faults {
            *by_field.entry(field.clone()).or_default() += 1;
            texts.push(format!("{} {field} {text}", line.id));
        }
    }
    println!(
        "corpus: {good} of {asserted} lines agree, {open} open lines ended, {again} replays were repeated; \
         faults by field: {by_field:?}"
    );
    for text in texts.iter().take(200) {
        println!("  {text}");
    }
    assert!(asserted > 0, "a suite that finds nothing has failed");
    assert!(texts.is_empty(), "{} fields differ", texts.len());
}

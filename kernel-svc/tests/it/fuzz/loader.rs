//! Mutated workflow files: the text, and the JSON within.

use std::{
    path::PathBuf,
    sync::{Arc, LazyLock},
};

use atelier_kernel::{
    graph::{self, LoadOptions, load::load_lenient},
    jobs::read_graph,
    node::Registry,
    nodes,
};
use atelier_proto::value::{Map, map_from_json};
use serde_json::{Value as Json, json};

use super::{fuzz, random::Random};

/// Files that the mutations start from, at most so many.
const MAX_FILES: usize = 200;
/// Larger results of a mutation are not tried: a caller cannot send them.
const MAX_TEXT: usize = 4 * 1024 * 1024;

static REGISTRY: LazyLock<Arc<Registry>> = LazyLock::new(nodes::registry);

/// Our own examples, and the public files when they are at hand.
fn files() -> Vec<Json> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let public =
        std::env::var_os("ATELIER_WORKFLOWS").map_or_else(|| root.join("../shared/workflows"), PathBuf::from);
    let mut paths: Vec<PathBuf> = [root.join("examples"), public]
        .into_iter()
        .flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten().flatten())
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "json"))
        .collect();
    paths.sort();
    let read = |path: PathBuf| serde_json::from_slice(&std::fs::read(path).ok()?).ok();
    let mut files: Vec<Json> = paths.into_iter().take(MAX_FILES).filter_map(read).collect();
    assert!(!files.is_empty(), "our own examples are there");
    files.push(json!({"nodes": [], "edges": []}));
    files
}
/// All places of a JSON, as paths of numbers.
fn places(json: &Json, path: &mut Vec<usize>, all: &mut Vec<Vec<usize>>) {
    all.push(path.clone());
    let children: Vec<&Json> = match json {
        Json::Array(values) => values.iter().collect(),
        Json::Object(map) => map.values().collect(),
        _ => Vec::new(),
    };
    for (at, child) in children.into_iter().enumerate() {
        path.push(at);
        places(child, path, all);
        path.pop();
    }
}
fn at<'a>(json: &'a mut Json, path: &[usize]) -> Option<&'a mut Json> {
    path.iter().try_fold(json, |json, at| match json {
        Json::Array(values) => values.get_mut(*at),
        Json::Object(map) => map.values_mut().nth(*at),
        _ => None,
    })
}
fn mutate(json: &mut Json, random: &mut Random) {
    let mut all = Vec::new();
    places(json, &mut Vec::new(), &mut all);
    let path = random.pick(&all).clone();
    let other = random.pick(&all).clone();
    let other = at(json, &other).map(|other| other.clone()).unwrap_or_default();
    let Some(place) = at(json, &path) else { return };
    match (random.below(8), place) {
        (0, place) => *place = random.json(3),
        (1, place) => *place = other,
        (2, Json::Array(values)) if !values.is_empty() => {
            let copy = random.pick(values).clone();
            for _ in 0..random.below(40) {
                values.push(copy.clone());
            }
        }
        (3, Json::Array(values)) if !values.is_empty() => {
            values.remove(random.below(values.len()));
        }
        (4, Json::Object(map)) if !map.is_empty() => {
            let key = map
                .keys()
                .nth(random.below(map.len()))
                .cloned()
                .unwrap_or_default();
            let value = map.remove(&key).unwrap_or_default();
            if random.one_in(2) {
                map.insert(random.text(), value);
            }
        }
        (5, Json::Object(map)) => {
            const KEYS: &[&str] = &[
                "id",
                "type",
                "name",
                "data",
                "properties",
                "dynamic_properties",
                "dynamic_inputs",
                "dynamic_outputs",
                "parent_id",
                "ui_properties",
                "sync_mode",
                "edge_type",
                "bypassed",
                "outputs",
                "graph",
                "is_controlled",
                "is_streaming_input",
                "source",
                "target",
                "sourceHandle",
                "targetHandle",
            ];
            map.insert((*random.pick(KEYS)).to_owned(), random.json(3));
        }
        (6, Json::String(text)) => *text = random.text(),
        (_, place) => *place = random.scalar(),
    }
}
fn mangle(text: &str, random: &mut Random) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..=random.below(8) {
        let place = random.below(bytes.len());
        match random.below(4) {
            0 if !bytes.is_empty() => bytes[place] = u8::try_from(random.below(256)).unwrap(),
            1 if !bytes.is_empty() => {
                bytes.remove(place);
            }
            2 => {
                let piece = *random.pick(&[
                    "[", "{", "\"", "\\u0000", "}", "]", ",", "-", "1e9999", "\u{2028}",
                ]);
                let many = piece.repeat(1 + random.below(300));
                bytes.splice(place..place, many.into_bytes());
            }
            _ => bytes.truncate(place),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
/// Loads, checks and plans; the three must agree.
fn try_out(json: &Json, random: &mut Random) {
    let params = match random.json(2) {
        params @ Json::Object(_) => map_from_json(params).unwrap_or_default(),
        _ => Map::new(),
    };
    let issues = graph::check(json, &REGISTRY, &params);
    let options = LoadOptions {
        strict: true,
        forbid_unknown_properties: random.one_in(2),
        ..LoadOptions::default()
    };
    let strict = graph::load(json, &REGISTRY, &options);
    let Ok(lenient) = load_lenient(json, &REGISTRY, &LoadOptions::default(), &mut Vec::new()) else {
        assert!(strict.is_err() && !issues.is_empty());
        return;
    };
    let prepared = graph::prepare(lenient, &params);
    // What the check finds nothing wrong with can run.
    if issues.is_empty()
        && let Err(rejection) = &prepared
    {
        panic!("refused, but the check is silent: {}\n{json}", rejection.message);
    }
}

#[test]
fn mutated_files_are_loaded_or_refused() {
    let files = files();
    fuzz("loader", |random| {
        let mut json = random.pick(&files).clone();
        for _ in 0..=random.below(12) {
            mutate(&mut json, random);
        }
        let text = json.to_string();
        if text.len() > MAX_TEXT {
            return;
        }
        if let Ok(json) = read_graph(&text) {
            try_out(&json, random);
        }
        if random.one_in(4)
            && let Ok(json) = read_graph(&mangle(&text, random))
        {
            try_out(&json, random);
        }
    });
}

#[test]
fn large_graphs_are_checked_in_time_that_grows_with_them() {
    let chain = |count: usize, ty: &str, input: &str| {
        let nodes: Vec<Json> = (0..count)
            .map(|at| json!({"id": format!("n{at}"), "type": ty, "data": {}}))
            .collect();
        let edges: Vec<Json> = (1..count)
            .map(|at| {
                json!({
                    "source": format!("n{}", at - 1), "sourceHandle": "output", "target": format!("n{at}"),
                    "targetHandle": input,
                })
            })
            .collect();
        json!({"nodes": nodes, "edges": edges})
    };
    let time = |json: &Json| {
        let start = std::time::Instant::now();
        let issues = graph::check(json, &REGISTRY, &Map::new());
        let loaded = load_lenient(json, &REGISTRY, &LoadOptions::default(), &mut Vec::new()).unwrap();
        let _ = graph::prepare(loaded, &Map::new());
        (start.elapsed(), issues.len())
    };
    for (ty, input) in [
        ("nodetool.text.ToUppercase", "text"),
        ("nodetool.control.ForEach", "input_list"),
        ("nodetool.text.Collect", "input_item"),
    ] {
        let (small, _) = time(&chain(500, ty, input));
        let (large, _) = time(&chain(4_000, ty, input));
        // Eight times the nodes: a square would be sixty-four times the time.
        let floor = std::time::Duration::from_millis(40);
        assert!(large < 40 * small.max(floor), "{ty}: {small:?} then {large:?}");
    }
}

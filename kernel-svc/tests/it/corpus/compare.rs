//! Compares one replay with what is wanted of it, field by field.

use std::collections::{BTreeMap, BTreeSet};

use atelier_kernel::event::Event;
use serde_json::{Map as JsonMap, Value as Json, json};

use super::Line;
use crate::{
    harness::{Done, edge_status, job_status, json as to_json, node_status},
    nodes::canonical_json,
};

/// Compares what was seen with what is wanted.
struct Check<'a> {
    line: &'a Line,
    faults: Vec<(String, String)>,
}
impl Check<'_> {
    fn field(&mut self, field: &str, path: &str, want: &Json, got: &Json) {
        if !self.line.loose.contains(path) && canonical_json(want) != canonical_json(got) {
            self.faults
                .push((field.to_owned(), format!("{path}: want {want} got {got}")));
        }
    }
    fn bag(&mut self, field: &str, path: &str, want: &Json, got: &Json) {
        self.field(field, path, &sorted(want), &sorted(got));
    }
}
fn sorted(list: &Json) -> Json {
    let mut values: Vec<Json> = list.as_array().cloned().unwrap_or_default();
    values.sort_by_key(canonical_json);
    Json::Array(values)
}

pub fn check(line: &Line, done: &Done) -> Vec<(String, String)> {
    let mut check = Check {
        line,
        faults: Vec::new(),
    };
    let want = &line.want;
    check.field(
        "status",
        "status",
        &want["status"],
        &json!(job_status(done.status())),
    );
    check.field(
        "error_kind",
        "error_kind",
        &kinds(&want["error_kind"]),
        &kinds(&error_kind(done)),
    );
    let mut failed: Vec<&str> = done.result.node_errors.iter().map(|(id, _)| &**id).collect();
    failed.sort_unstable();
    check.field("error_nodes", "error_nodes", &want["error_nodes"], &json!(failed));
    outputs(&mut check, done);
    let statuses: Vec<&str> = done
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Job { status, .. } => Some(job_status(*status)),
            _ => None,
        })
        .collect();
    check.field(
        "job_updates",
        "job_updates",
        &want["job_updates"],
        &json!(statuses),
    );
    for (id, node) in want["nodes"].as_object().into_iter().flatten() {
        check_node(&mut check, done, id, node);
    }
    let lenient = check_edges(&mut check, done);
    messages(&mut check, done, lenient);
    let skipped = skipped(line, done);
    check.field(
        "skipped",
        "skipped",
        &sorted(&want["skipped"]),
        &sorted(&json!(skipped)),
    );
    check.faults
}

fn error_kind(done: &Done) -> Json {
    let result = &done.result;
    if !result.issues.is_empty() {
        let codes: BTreeSet<&str> = result.issues.iter().map(|issue| issue.code.as_str()).collect();
        return json!(codes.into_iter().collect::<Vec<_>>().join(" "));
    }
    match (&result.error, result.error_code.as_deref()) {
        (None, _) => Json::Null,
        (_, Some("input.failed")) => json!("input.failed"),
        _ => json!("node.error"),
    }
}
/// Codes as a set, alternatives folded into one.
fn kinds(kind: &Json) -> Json {
    let fold = |code: &str| match code {
        "graph.multi_edge_scalar" => "corr.multi_edge_scalar".to_owned(),
        "graph.self_loop" => "graph.cycle".to_owned(),
        other => other.to_owned(),
    };
    json!(
        kind.as_str()
            .unwrap_or_default()
            .split(' ')
            .map(fold)
            .collect::<BTreeSet<_>>()
    )
}

fn outputs(check: &mut Check<'_>, done: &Done) {
    let want = &check.line.want;
    let names = |key: &str| -> BTreeSet<String> {
        want[key]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Json::as_str)
            .map(ToOwned::to_owned)
            .collect()
    };
    let (vary, unordered) = (names("outputs_vary"), names("outputs_unordered"));
    let got = done.outputs();
    let wanted = want["outputs"].clone();
    let keys = |json: &Json| {
        json.as_object()
            .map(|map| map.keys().cloned().collect::<BTreeSet<_>>())
            .unwrap_or_default()
    };
    check.field("outputs", "outputs", &json!(keys(&wanted)), &json!(keys(&got)));
    for (name, values) in wanted
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, _)| !vary.contains(*name))
    {
        let path = format!("outputs.{name}");
        if unordered.contains(name) {
            check.bag("outputs", &path, values, &got[name]);
        } else {
            check.field("outputs", &path, values, &got[name]);
        }
    }
}

fn check_node(check: &mut Check<'_>, done: &Done, id: &str, want: &Json) {
    let path = |field: &str| format!("nodes.{id}.{field}");
    let statuses: Vec<&str> = done
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Node { node, status, .. } if &*node.id == id => Some(node_status(*status)),
            _ => None,
        })
        .collect();
    let terminal = statuses.last().filter(|status| **status != "running");
    check.field("node.status", &path("status"), &want["status"], &json!(terminal));
    check.field(
        "node.updates",
        &path("node_updates"),
        &want["node_updates"],
        &json!(statuses),
    );
    let shown: Vec<Json> = done
        .shown(id)
        .into_iter()
        .map(|(name, value)| json!([name, value]))
        .collect();
    if want["output_updates_ordered"] == json!(false) {
        check.bag(
            "node.output_updates",
            &path("output_updates"),
            &want["output_updates"],
            &json!(shown),
        );
    } else {
        check.field(
            "node.output_updates",
            &path("output_updates"),
            &want["output_updates"],
            &json!(shown),
        );
    }
    let calls = done.log.calls(id);
    check.field(
        "node.invocations",
        &path("invocations"),
        &want["invocations"],
        &json!(calls.len()),
    );
    let mut artifacts = done.artifacts(id).into_iter();
    let silent = check.line.json["graph"]["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .any(|node| {
            let ty = node["type"].as_str().unwrap();
            node["id"] == json!(id)
                && (ty.starts_with("nodetool.input.") || ty.starts_with("nodetool.constant."))
        });
    let (mut inputs, mut results, mut lineages) = (Vec::new(), Vec::new(), Vec::new());
    let lists = lists(check.line, id);
    for call in &calls {
        let map = call.inputs.clone().map(|mut inputs| {
            inputs.retain(|name, _| name != "_control_context");
            let mut object = to_json(&inputs.into());
            for name in &lists {
                if object[name].is_array() {
                    object[name] = sorted(&object[name]);
                }
            }
            object
        });
        inputs.push(map.unwrap_or(Json::Null));
        lineages.push(json!(if call.failed { "" } else { &call.lineage }));
        results.push(match (&call.result, call.failed) {
            (_, true) => Json::Null,
            (Some(result), _) if silent => to_json(&result.clone().into()),
            _ => artifacts.next().unwrap_or(json!("no artifact")),
        });
    }
    results.extend(artifacts);
    let inputs = if want["inputs"].is_null() {
        Json::Null
    } else {
        Json::Array(inputs)
    };
    let lineages = Json::Array(if lineages.iter().any(|lineage| lineage != "") {
        lineages
    } else {
        Vec::new()
    });
    let wanted_lineages = if want["lineages"].is_null() {
        json!([])
    } else {
        want["lineages"].clone()
    };
    if want["ordered"] == json!(false) {
        check.bag("node.inputs", &path("inputs"), &want["inputs"], &inputs);
        check.bag(
            "node.results",
            &path("results"),
            &want["results"],
            &Json::Array(results),
        );
        check.bag("node.lineages", &path("lineages"), &wanted_lineages, &lineages);
    } else {
        check.field("node.inputs", &path("inputs"), &want["inputs"], &inputs);
        check.field(
            "node.results",
            &path("results"),
            &want["results"],
            &Json::Array(results),
        );
        check.field("node.lineages", &path("lineages"), &wanted_lineages, &lineages);
    }
}

/// Inputs of a node with two or more edges.
fn lists(line: &Line, node: &str) -> Vec<String> {
    let mut count: BTreeMap<String, usize> = BTreeMap::new();
    for edge in line.json["graph"]["edges"].as_array().unwrap() {
        if edge["target"] == json!(node) && edge["edge_type"] != json!("control") {
            *count
                .entry(edge["targetHandle"].as_str().unwrap().to_owned())
                .or_default() += 1;
        }
    }
    count
        .into_iter()
        .filter(|(_, edges)| *edges > 1)
        .map(|(name, _)| name)
        .collect()
}

/// True when the number of edge updates is left open.
fn check_edges(check: &mut Check<'_>, done: &Done) -> bool {
    let mut lenient = false;
    let edges = check.line.want["edges"].as_object().cloned().unwrap_or_default();
    for (id, want) in &edges {
        let got: Vec<Json> = done
            .delivered(id)
            .into_iter()
            .map(|(value, lineage)| json!([value, lineage]))
            .collect();
        let path = format!("edges.{id}.delivered");
        if want["ordered"] == json!(false) {
            check.bag("edge.delivered", &path, &want["delivered"], &json!(got));
        } else {
            check.field("edge.delivered", &path, &want["delivered"], &json!(got));
        }
        let mut updates: Vec<String> = done
            .events
            .iter()
            .filter_map(|event| match event {
                Event::Edge {
                    edge_id,
                    status,
                    counter,
                } if **edge_id == **id => {
                    let count = counter.map_or_else(|| "null".to_owned(), |count| count.to_string());
                    Some(format!("{}:{count}", edge_status(*status)))
                }
                _ => None,
            })
            .collect();
        let mut wanted: Vec<String> = want["updates"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Json::as_str)
            .map(ToOwned::to_owned)
            .collect();
        let target = edge_target(check.line, id);
        if target.is_some_and(|target| check.line.may_leave_values(&target)) {
            lenient = true;
            updates.retain(|update| !update.starts_with("drained"));
            wanted.retain(|update| !update.starts_with("drained"));
        }
        check.field(
            "edge.updates",
            &format!("edges.{id}.updates"),
            &json!(wanted),
            &json!(updates),
        );
    }
    lenient
}
fn edge_target(line: &Line, id: &str) -> Option<String> {
    let edges = line.json["graph"]["edges"].as_array().unwrap();
    edges
        .iter()
        .find(|edge| edge["id"] == json!(id))
        .and_then(|edge| edge["target"].as_str())
        .map(ToOwned::to_owned)
}

fn messages(check: &mut Check<'_>, done: &Done, lenient: bool) {
    let mut count: JsonMap<String, Json> = JsonMap::new();
    for event in &done.events {
        let name = match event {
            Event::Job { .. } => "job_update",
            Event::Node { .. } => "node_update",
            Event::Edge { .. } => "edge_update",
            Event::Output { .. } => "output_update",
            Event::Queued { .. }
            | Event::Artifact { .. }
            | Event::Note { .. }
            | Event::Frames { .. }
            | Event::Supervision { .. } => continue,
        };
        let next = count.get(name).and_then(Json::as_u64).unwrap_or(0) + 1;
        count.insert(name.to_owned(), json!(next));
    }
    let mut want = check.line.want["messages"].clone();
    if lenient {
        want.as_object_mut().unwrap().shift_remove("edge_update");
        count.shift_remove("edge_update");
    }
    check.field("messages", "messages", &want, &Json::Object(count));
}

fn skipped(line: &Line, done: &Done) -> Vec<String> {
    let edges = line.json["graph"]["edges"].as_array().unwrap();
    let fed = |id: &str| {
        edges
            .iter()
            .any(|edge| edge["target"] == json!(id) && edge["edge_type"] != json!("control"))
    };
    let completed = done.events.iter().filter_map(|event| match event {
        Event::Node { node, status, .. } if node_status(*status) == "completed" => Some(node.id.to_string()),
        _ => None,
    });
    completed.filter(|id| fed(id) && done.calls(id) == 0).collect()
}

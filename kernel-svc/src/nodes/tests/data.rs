//! Graphs about data, as the field's files have them, run by the engine.

use atelier_proto::{
    kernel::v1::JobStatus,
    value::{BytesForm, map_from_json, to_json},
};
use rstest::rstest;
use serde_json::{Value as Json, json};
use tokio_util::sync::CancellationToken;

use crate::{
    graph::load::{LoadOptions, load},
    host::Host,
    nodes::{registry, testing::services_on},
    run::{RunOptions, RunResult, RunSpec, run},
};

/// Runs a file with parameters on a machine.
async fn ran(file: &Json, params: Json, host: Host) -> RunResult {
    let registry = registry();
    let strict = LoadOptions {
        strict: true,
        ..LoadOptions::default()
    };
    let graph = load(file, &registry, &strict).expect("a graph");
    let (events, mut said) = crate::event::channel(64);
    let spec = RunSpec {
        job_id: "j".into(),
        workflow_id: None,
        graph,
        params: map_from_json(params).expect("a map"),
        options: RunOptions::default(),
        registry,
        services: services_on(host),
        events,
        cancel: CancellationToken::new(),
        probe: None,
        journal: None,
        trigger: None,
        resume: std::collections::HashMap::new(),
    };
    let listen = async { while said.recv().await.is_some() {} };
    let (result, ()) = tokio::join!(run(spec), listen);
    result
}
fn output(result: &RunResult, name: &str) -> Json {
    let (error, issues) = (&result.error, &result.issues);
    assert_eq!(result.status, JobStatus::Completed, "{error:?} {issues:?}");
    // One value was committed under the name.
    let values = result.outputs.get(name).and_then(|values| values.as_list());
    let first = values.and_then(<[_]>::first);
    first.map_or(Json::Null, |value| to_json(value, BytesForm::Tagged))
}
fn edge(text: &str) -> Json {
    let (from, to) = text.split_once(" -> ").expect("an edge");
    let ((source, out), (target, handle)) = (
        from.split_once('.').expect("a source"),
        to.split_once('.').expect("a target"),
    );
    json!({"source": source, "sourceHandle": out, "target": target, "targetHandle": handle})
}
fn file(nodes: Json, edges: &[&str]) -> Json {
    json!({"nodes": nodes, "edges": edges.iter().map(|text| edge(text)).collect::<Vec<_>>()})
}

#[tokio::test]
async fn a_csv_text_is_grouped_and_summed() {
    let file = file(
        json!([
            {"id": "csv", "type": "test.Input", "name": "csv_data"},
            {"id": "columns", "type": "test.Input", "name": "columns"},
            {"id": "import", "type": "nodetool.data.ImportCSV"},
            {"id": "sum", "type": "nodetool.data.Aggregate", "properties": {"aggregation": "sum"}},
            {"id": "sink", "type": "nodetool.control.Reroute", "name": "grouped"},
        ]),
        &[
            "csv.value -> import.csv_data",
            "import.output -> sum.dataframe",
            "columns.value -> sum.columns",
            "sum.output -> sink.input_value",
        ],
    );
    let params = json!({"csv_data": "team,score\nA,10\nA,20\nB,5", "columns": "team"});
    let result = ran(&file, params, Host::default()).await;
    let table = output(&result, "grouped");
    assert_eq!(table["data"], json!([["A", 30], ["B", 5]]), "{table}");
}

#[rstest]
#[case(75, "MEDIUM")]
#[case(20, "EXTREME")]
#[case(120, "EXTREME")]
#[tokio::test]
async fn older_comparisons_choose_a_branch(#[case] value: i64, #[case] expected: &str) {
    let file = file(
        json!([
            {"id": "in", "type": "nodetool.input.IntegerInput", "properties": {"name": "value"}},
            {"id": "over", "type": "nodetool.boolean.Compare", "data": {"b": 100, "comparison": ">"}},
            {"id": "under", "type": "nodetool.boolean.Compare", "data": {"b": 50, "comparison": "<"}},
            {"id": "either", "type": "nodetool.boolean.LogicalOperator", "data": {"operation": "or"}},
            {"id": "switch", "type": "nodetool.boolean.ConditionalSwitch",
                "data": {"if_true": "EXTREME", "if_false": "MEDIUM"}},
            {"id": "out", "type": "nodetool.output.Output", "properties": {"name": "route"}},
        ]),
        &[
            "in.output -> over.a",
            "in.output -> under.a",
            "over.output -> either.a",
            "under.output -> either.b",
            "either.output -> switch.condition",
            "switch.output -> out.value",
        ],
    );
    let result = ran(&file, json!({"value": value}), Host::default()).await;
    assert_eq!(output(&result, "route"), expected);
}

#[tokio::test]
async fn links_become_a_table_and_are_filtered() {
    let file = file(
        json!([
            {"id": "text", "type": "nodetool.constant.String", "data": {
                "value": "[Paper](https://a.org/1)\n[Code](https://a.org/2)\n[Paper](https://a.org/3)"}},
            {"id": "links", "type": "lib.markdown.ExtractLinks", "data": {"include_titles": true}},
            {"id": "table", "type": "nodetool.data.FromList"},
            {"id": "papers", "type": "nodetool.data.Filter", "data": {"condition": "title == 'Paper'"}},
            {"id": "urls", "type": "nodetool.data.ExtractColumn", "data": {"column_name": "url"}},
            {"id": "out", "type": "nodetool.output.Output", "properties": {"name": "urls"}},
        ]),
        &[
            "text.output -> links.markdown",
            "links.output -> table.values",
            "table.output -> papers.df",
            "papers.output -> urls.dataframe",
            "urls.output -> out.value",
        ],
    );
    let result = ran(&file, json!({}), Host::default()).await;
    assert_eq!(
        output(&result, "urls"),
        json!(["https://a.org/1", "https://a.org/3"])
    );
}

#[tokio::test]
async fn rows_are_iterated_filtered_and_collected() {
    let file = file(
        json!([
            {"id": "csv", "type": "nodetool.data.ImportCSV", "data": {"csv_data": "n\n1\n5\n7\n"}},
            {"id": "rows", "type": "nodetool.data.ForEachRow"},
            {"id": "big", "type": "nodetool.control.FilterCode", "data": {"predicate": "n > 3"}},
            {"id": "all", "type": "nodetool.control.Collect"},
            {"id": "out", "type": "nodetool.output.Output", "properties": {"name": "rows"}},
        ]),
        &[
            "csv.output -> rows.dataframe",
            "rows.row -> big.input_item",
            "big.output -> all.input_item",
            "all.output -> out.value",
        ],
    );
    let result = ran(&file, json!({}), Host::default()).await;
    assert_eq!(output(&result, "rows"), json!([{"n": 5}, {"n": 7}]));
}

#[tokio::test]
async fn a_shell_command_of_an_older_file_runs_only_when_allowed() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = file(
        json!([
            {"id": "command", "type": "test.Input", "name": "command"},
            {"id": "run", "type": "nodetool.code.RunShellCommand"},
            {"id": "sink", "type": "nodetool.control.Reroute", "name": "stdout"},
        ]),
        &["command.value -> run.command", "run.output -> sink.input_value"],
    );
    let host = |allow_commands| Host {
        workspace: Some(folder.path().to_owned()),
        allow_commands,
        ..Host::default()
    };
    let params = json!({"command": "echo from-a-file"});
    let result = ran(&file, params.clone(), host(true)).await;
    assert_eq!(output(&result, "stdout"), "from-a-file\n");
    let result = ran(&file, params, host(false)).await;
    assert_eq!(result.status, JobStatus::Failed);
    assert!(result.error.expect("an error").contains("kernel.allow_commands"));
}

/// The field's own files, where they lie beside the sources: no type in them is unknown.
#[test]
fn public_workflow_files_name_known_types() {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/spec");
    let specs = std::env::var("ATELIER_SPECS").unwrap_or_else(|_| beside.to_owned());
    let Ok(files) = std::fs::read_dir(format!("{specs}/../workflows")) else {
        return;
    };
    for path in files.filter_map(Result::ok).map(|file| file.path()) {
        if path.extension().is_none_or(|end| end != "json") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a file");
        let json: Json = serde_json::from_str(&text).expect("JSON");
        for node in json["graph"]["nodes"].as_array().into_iter().flatten() {
            let name = node["type"].as_str().unwrap_or_default();
            // Names that a file's nodes are given others for when it is read.
            let renamed = [
                "test.Input",
                "kie.image.NanoBanana",
                "lib.pedalboard.Reverb",
                "vector.chroma.HybridSearch",
            ];
            let known = renamed.contains(&name) || crate::nodes::catalog::meta(name).is_some();
            assert!(known, "{} names {name}", path.display());
        }
    }
}

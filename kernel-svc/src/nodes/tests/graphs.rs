//! Small graphs of built-in types, run by the engine.

use atelier_proto::{
    kernel::v1::JobStatus,
    value::{BytesForm, map_from_json, to_json},
};
use rstest::rstest;
use serde_json::{Value as Json, json};
use tokio_util::sync::CancellationToken;

use crate::{
    event::Event,
    graph::load::{LoadOptions, load},
    nodes::{
        registry,
        testing::{Script, services},
    },
    run::{RunOptions, RunResult, RunSpec, run},
};

/// What a graph came to, and how many artifacts each node committed.
struct Ran {
    result: RunResult,
    artifacts: Vec<(String, Json)>,
}
impl Ran {
    /// Values of a result.
    fn output(&self, name: &str) -> Json {
        assert_eq!(
            self.result.status,
            JobStatus::Completed,
            "{:?} {:?}",
            self.result.error,
            self.result.issues
        );
        self.result
            .outputs
            .get(name)
            .map_or(Json::Null, |value| to_json(value, BytesForm::Tagged))
    }
    /// Outputs of a node's artifacts.
    fn artifacts(&self, node: &str) -> Vec<&Json> {
        self.artifacts
            .iter()
            .filter(|(id, _)| id == node)
            .map(|(_, outputs)| outputs)
            .collect()
    }
}

/// Runs nodes `(id, type below nodetool, properties)` joined by edges `source.handle -> target.handle`.
async fn ran(nodes: &[(&str, &str, Json)], edges: &[&str], params: Json, script: Script) -> Ran {
    let nodes: Vec<Json> = nodes
        .iter()
        .map(|(id, ty, properties)| json!({"id": id, "type": format!("nodetool.{ty}"), "properties": properties}))
        .collect();
    let end = |text: &str| {
        text.split_once('.')
            .map(|(node, handle)| (node.to_owned(), handle.to_owned()))
            .expect("an end")
    };
    let edges: Vec<Json> = edges
        .iter()
        .map(|edge| {
            let (from, to) = edge.split_once(" -> ").expect("an edge");
            let ((source, out), (target, handle)) = (end(from), end(to));
            json!({"source": source, "sourceHandle": out, "target": target, "targetHandle": handle})
        })
        .collect();
    let registry = registry();
    let graph = load(
        &json!({"nodes": nodes, "edges": edges}),
        &registry,
        &LoadOptions::default(),
    )
    .expect("a graph");
    let (events, mut said) = crate::event::channel(64);
    let spec = RunSpec {
        job_id: "j".into(),
        workflow_id: None,
        graph,
        params: map_from_json(params).expect("a map"),
        options: RunOptions::default(),
        registry,
        services: services(script),
        events,
        cancel: CancellationToken::new(),
        probe: None,
        journal: None,
        trigger: None,
        resume: std::collections::HashMap::new(),
    };
    let listen = async {
        let mut artifacts = Vec::new();
        while let Some(event) = said.recv().await {
            if let Event::Artifact { node, outputs, .. } = event {
                artifacts.push((
                    node.id.to_string(),
                    to_json(&atelier_proto::value::Value::Map(outputs), BytesForm::Tagged),
                ));
            }
        }
        artifacts
    };
    let (result, artifacts) = tokio::join!(run(spec), listen);
    Ran { result, artifacts }
}
async fn plain(nodes: &[(&str, &str, Json)], edges: &[&str]) -> Ran {
    ran(nodes, edges, json!({}), Script::default()).await
}
fn list(items: Json) -> (&'static str, &'static str, Json) {
    ("list", "constant.List", json!({"value": items}))
}
fn out() -> (&'static str, &'static str, Json) {
    ("out", "output.Output", json!({"name": "out"}))
}

#[tokio::test]
async fn a_list_is_taken_apart_formatted_and_collected() {
    let nodes = [
        list(json!(["sea", "moor"])),
        ("each", "control.ForEach", json!({})),
        (
            "text",
            "text.FormatText",
            json!({"template": "{{ index }}: {{ place }}"}),
        ),
        ("all", "control.Collect", json!({})),
        out(),
    ];
    let edges = [
        "list.output -> each.input_list",
        "each.output -> text.place",
        "each.index -> text.index",
        "text.output -> all.input_item",
        "all.output -> out.value",
    ];
    let ran = plain(&nodes, &edges).await;
    assert_eq!(ran.output("out"), json!([["0: sea", "1: moor"]]));
    assert_eq!(ran.artifacts("text").len(), 2);
    assert_eq!(ran.artifacts("list").len(), 0);
}

#[tokio::test]
async fn k_099_collect_gives_one_list_for_each_parent() {
    let nodes = [
        list(json!([["a", "b"], [], ["c"]])),
        ("outer", "control.ForEach", json!({})),
        ("inner", "control.ForEach", json!({})),
        ("all", "control.Collect", json!({})),
        ("lists", "control.Collect", json!({})),
        out(),
    ];
    let edges = [
        "list.output -> outer.input_list",
        "outer.output -> inner.input_list",
        "inner.output -> all.input_item",
        "all.output -> lists.input_item",
        "lists.output -> out.value",
    ];
    let ran = plain(&nodes, &edges).await;
    assert_eq!(ran.output("out"), json!([[["a", "b"], [], ["c"]]]));
    assert_eq!(ran.artifacts("all").len(), 3);
}

#[rstest]
#[case("Collect", json!([[]]))]
#[case("Count", json!([0]))]
#[case("Last", json!([]))]
#[tokio::test]
async fn k_097_aggregates_of_nothing(#[case] name: &str, #[case] expected: Json) {
    let ty = format!("control.{name}");
    let nodes = [
        list(json!([])),
        ("each", "control.ForEach", json!({})),
        ("all", &ty, json!({})),
        out(),
    ];
    let edges = [
        "list.output -> each.input_list",
        "each.output -> all.input_item",
        "all.output -> out.value",
    ];
    assert_eq!(plain(&nodes, &edges).await.output("out"), expected);
}

#[rstest]
#[case("Count", json!({}), json!([4]))]
#[case("Last", json!({}), json!([2]))]
#[tokio::test]
async fn aggregates_of_items(#[case] name: &str, #[case] properties: Json, #[case] expected: Json) {
    let ty = format!("control.{name}");
    let nodes = [
        list(json!([1, 2, 3, 2])),
        ("each", "control.ForEach", json!({})),
        ("all", &ty, properties),
        out(),
    ];
    let edges = [
        "list.output -> each.input_list",
        "each.output -> all.input_item",
        "all.output -> out.value",
    ];
    assert_eq!(plain(&nodes, &edges).await.output("out"), expected);
}

#[rstest]
#[case("Take", json!({"n": 2}), json!([1, 2]))]
#[case("Take", json!({"n": 0}), json!([]))]
#[case("Drop", json!({"n": 3}), json!([2]))]
#[case("FilterEqual", json!({"value": 2.0}), json!([2, 2]))]
#[case("FilterEqual", json!({"value": 2, "invert": true}), json!([1, 3]))]
#[case("Distinct", json!({}), json!([1, 2, 3]))]
#[case("Tap", json!({}), json!([1, 2, 3, 2]))]
#[tokio::test]
async fn parts_of_a_stream_pass(#[case] name: &str, #[case] properties: Json, #[case] expected: Json) {
    let ty = format!("control.{name}");
    let nodes = [
        list(json!([1, 2, 3, 2])),
        ("each", "control.ForEach", json!({})),
        ("pass", &ty, properties),
        ("all", "control.Collect", json!({})),
        out(),
    ];
    let edges = [
        "list.output -> each.input_list",
        "each.output -> pass.input_item",
        "pass.output -> all.input_item",
        "all.output -> out.value",
    ];
    assert_eq!(plain(&nodes, &edges).await.output("out"), json!([expected]));
}

#[tokio::test]
async fn a_stream_is_cut_into_lists() {
    let nodes = [
        list(json!([1, 2, 3, 2])),
        ("each", "control.ForEach", json!({})),
        ("cut", "control.Chunk", json!({"size": 3})),
        out(),
    ];
    let edges = [
        "list.output -> each.input_list",
        "each.output -> cut.input_item",
        "cut.output -> out.value",
    ];
    assert_eq!(plain(&nodes, &edges).await.output("out"), json!([[1, 2, 3], [2]]));
}

#[tokio::test]
async fn items_of_the_other_branch_are_missing_in_the_list_and_delay_nothing() {
    let nodes = [
        list(json!([1, 0, 2])),
        ("each", "control.ForEach", json!({})),
        ("if", "control.If", json!({})),
        ("all", "control.Collect", json!({})),
        out(),
    ];
    let edges = [
        "list.output -> each.input_list",
        "each.output -> if.value",
        "each.output -> if.condition",
        "if.if_true -> all.input_item",
        "all.output -> out.value",
    ];
    assert_eq!(plain(&nodes, &edges).await.output("out"), json!([[1, 2]]));
}

#[rstest]
#[case("Zip", json!([["1a", "2b"]]))]
#[case("Cross", json!([["1a", "1b", "2a", "2b", "3a", "3b"]]))]
#[tokio::test]
async fn k_093_k_094_two_iterations_are_joined(#[case] name: &str, #[case] expected: Json) {
    let ty = format!("control.{name}");
    let nodes = [
        list(json!([1, 2, 3])),
        ("other", "constant.List", json!({"value": ["a", "b"]})),
        ("left", "control.ForEach", json!({})),
        ("right", "control.ForEach", json!({})),
        ("join", &ty, json!({})),
        ("text", "text.Concat", json!({})),
        ("all", "control.Collect", json!({})),
        out(),
    ];
    let edges = [
        "list.output -> left.input_list",
        "other.output -> right.input_list",
        "left.output -> join.left",
        "right.output -> join.right",
        "join.left -> text.a",
        "join.right -> text.b",
        "text.output -> all.input_item",
        "all.output -> out.value",
    ];
    assert_eq!(plain(&nodes, &edges).await.output("out"), expected);
}

#[tokio::test]
async fn k_095_too_many_pairs_fail_the_node() {
    let nodes = [
        list(json!([1, 2])),
        ("left", "control.ForEach", json!({})),
        ("right", "control.ForEach", json!({})),
        ("join", "control.Cross", json!({"max_output_count": 2})),
    ];
    let edges = [
        "list.output -> left.input_list",
        "list.output -> right.input_list",
        "left.output -> join.left",
        "right.output -> join.right",
    ];
    let ran = plain(&nodes, &edges).await;
    assert_eq!(ran.result.status, JobStatus::Failed);
    assert!(ran.result.error.expect("an error").contains("max_output_count"));
}

#[rstest]
#[case(true, "yes", "no")]
#[case(false, "no", "yes")]
#[tokio::test]
async fn only_the_taken_branch_runs(#[case] condition: bool, #[case] taken: &str, #[case] other: &str) {
    let nodes = [
        ("value", "constant.Integer", json!({"value": 42})),
        ("if", "control.If", json!({"condition": condition})),
        ("yes", "control.Reroute", json!({})),
        ("no", "control.Reroute", json!({})),
    ];
    let edges = [
        "value.output -> if.value",
        "if.if_true -> yes.input_value",
        "if.if_false -> no.input_value",
    ];
    let ran = plain(&nodes, &edges).await;
    assert_eq!(ran.output(taken), json!([42]));
    assert_eq!((ran.artifacts(taken).len(), ran.artifacts(other).len()), (1, 0));
}

#[tokio::test]
async fn each_item_of_a_written_list_becomes_a_picture() {
    let nodes = [
        ("topic", "input.StringInput", json!({"name": "topic"})),
        ("write", "generators.ListGenerator", json!({"model": {}})),
        ("draw", "image.TextToImage", json!({"model": {}})),
        out(),
    ];
    let edges = [
        "topic.output -> write.prompt",
        "write.item -> draw.prompt",
        "draw.output -> out.value",
    ];
    let script = Script::text(&["1. sea\n2. mo", "or\n3. fog"]);
    let ran = ran(&nodes, &edges, json!({"topic": "weather"}), script).await;
    assert_eq!(ran.output("out").as_array().map(Vec::len), Some(3));
    assert_eq!(ran.artifacts("draw").len(), 3);
    assert_eq!(ran.artifacts("write").len(), 1);
}

#[tokio::test]
async fn an_agent_gives_its_whole_answer_once_and_the_outputs_that_were_added() {
    let registry = registry();
    let graph = json!({
        "nodes": [
            {"id": "ask", "type": "nodetool.agents.Agent", "data": {"model": {}, "prompt": "x"},
                "dynamic_outputs": {"title": {"type": "str", "type_args": []}}},
            {"id": "title", "type": "nodetool.output.Output", "data": {"name": "title"}},
            {"id": "text", "type": "nodetool.output.Output", "data": {"name": "text"}},
        ],
        "edges": [
            {"source": "ask", "sourceHandle": "title", "target": "title", "targetHandle": "value"},
            {"source": "ask", "sourceHandle": "text", "target": "text", "targetHandle": "value"},
        ],
    });
    let graph = load(&graph, &registry, &LoadOptions::default()).expect("a graph");
    let (events, mut said) = crate::event::channel(64);
    let spec = RunSpec {
        job_id: "j".into(),
        workflow_id: None,
        graph,
        params: Default::default(),
        options: RunOptions::default(),
        registry,
        services: services(Script::text(&["{\"title\":", "\"Moor\"}"])),
        events,
        cancel: CancellationToken::new(),
        probe: None,
        journal: None,
        trigger: None,
        resume: std::collections::HashMap::new(),
    };
    let (result, ()) = tokio::join!(run(spec), async { while said.recv().await.is_some() {} });
    assert_eq!(
        result.status,
        JobStatus::Completed,
        "{:?} {:?}",
        result.error,
        result.issues
    );
    assert_eq!(
        to_json(&result.outputs["title"], BytesForm::Tagged),
        json!(["Moor"])
    );
    assert_eq!(
        to_json(&result.outputs["text"], BytesForm::Tagged),
        json!(["{\"title\":\"Moor\"}"])
    );
}

#[tokio::test]
async fn a_parameter_of_the_wrong_type_fails_the_run_and_names_the_input() {
    let nodes = [
        (
            "count",
            "input.IntegerInput",
            json!({"name": "count", "value": 1}),
        ),
        out(),
    ];
    let ran = ran(
        &nodes,
        &["count.output -> out.value"],
        json!({"count": "many"}),
        Script::default(),
    )
    .await;
    assert_eq!(ran.result.status, JobStatus::Failed);
    let error = ran.result.error.expect("an error");
    assert!(
        ["count", "int", "str"].iter().all(|word| error.contains(word)),
        "{error}"
    );
}

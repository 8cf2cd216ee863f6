//! All types together: the catalog and the code agree, inputs and constants check their values.

mod data;
mod graphs;

use atelier_proto::value::Value;
use rstest::rstest;
use serde_json::{Value as Json, json};

use super::{
    all, catalog, registry,
    testing::{Node, process},
};

#[test]
fn every_line_of_the_catalog_runs_and_all_code_has_a_line() {
    let mut coded: Vec<_> = all().into_iter().map(|(name, _)| name).collect();
    let count = coded.len();
    coded.sort_unstable();
    coded.dedup();
    assert_eq!(coded.len(), count, "a type has code twice");
    for name in coded {
        assert!(catalog::meta(name).is_some(), "{name} has no line");
    }
    let registry = registry();
    for name in catalog::all().keys() {
        assert!(registry.executor(name).is_some(), "{name}");
    }
}

/// What the flags promise is what the code offers: a type that drains its inbox can, and only that.
#[test]
fn flags_and_code_agree() {
    let registry = registry();
    for meta in registry.all() {
        let offers = registry.executor(&meta.node_type).expect("code").offers();
        assert_eq!(
            offers.run,
            meta.streaming_input == Some(true),
            "{}",
            meta.node_type
        );
        assert!(
            !offers.stream || meta.streaming_output == Some(true),
            "{}",
            meta.node_type
        );
        for handle in meta.output_correlation.keys() {
            assert!(
                meta.outputs.iter().any(|output| output.name == *handle),
                "{} {handle}",
                meta.node_type
            );
        }
    }
}

#[rstest]
#[case("StringInput", json!("a"), json!({"output": "a"}))]
#[case("IntegerInput", json!(3), json!({"output": 3}))]
#[case("FloatInput", json!(3), json!({"output": 3}))]
#[case("BooleanInput", json!(false), json!({"output": false}))]
#[case("ImageInput", json!("asset://a1"), json!({"output": {"type": "image", "uri": "asset://a1", "asset_id": "a1"}}))]
#[case("LanguageModelInput", json!({"provider": "p"}), json!({"output": {"provider": "p", "type": "language_model"}}))]
#[case("StringListInput", json!(["a"]), json!({"output": ["a"]}))]
#[case("StringInput", json!(null), json!({"output": null}))]
#[case("DocumentFileInput", json!("/tmp/a.pdf"),
    json!({"document": {"type": "document", "uri": "file:///tmp/a.pdf", "asset_id": null}, "path": "/tmp/a.pdf"}))]
#[case("RealtimeAudioInput", json!({"type": "chunk", "content_type": "audio"}),
    json!({"chunk": {"type": "chunk", "content_type": "audio"}}))]
#[case("MessageDeconstructor", json!({"id": "m1", "role": "user", "provider": "p", "model": "m",
        "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"},
            {"type": "image_url", "image": {"type": "image", "uri": "asset://a1"}}]}),
    json!({"id": "m1", "role": "user", "text": "a\nb", "image": {"type": "image", "uri": "asset://a1"},
        "model": {"type": "language_model", "provider": "p", "id": "m"}}))]
#[tokio::test]
async fn inputs_hand_on_what_fits(#[case] name: &str, #[case] value: Json, #[case] expected: Json) {
    let out = process(&format!("nodetool.input.{name}"), json!({"value": value}))
        .await
        .expect("a value");
    assert_eq!(without_nulls(out), without_nulls(expected));
}
fn without_nulls(json: Json) -> Json {
    match json {
        Json::Object(object) => {
            let kept = object
                .into_iter()
                .filter(|(key, value)| !value.is_null() || key == "output");
            kept.map(|(key, value)| (key, without_nulls(value))).collect()
        }
        other => other,
    }
}

#[rstest]
#[case("IntegerInput", json!({}), json!("5"), "the input `steps` expects int, got str")]
#[case("IntegerInput", json!({"min": 2, "max": 12}), json!(1), "the input `steps` must be at least 2, got 1")]
#[case("FloatInput", json!({"min": 0.5, "max": 1.5}), json!(1.75), "the input `steps` must be at most 1.5, got 1.75")]
#[case("BooleanInput", json!({}), json!("yes"), "the input `steps` expects bool, got str")]
#[case("StringInput", json!({}), json!(5), "the input `steps` expects str, got int")]
#[case("StringInput", json!({"max_length": 2}), json!("äöü"), "the input `steps` takes at most 2 characters, got 3")]
#[case("SelectInput", json!({"options": ["a", "b"]}), json!("c"), "the input `steps` must be one of: a, b; got \"c\"")]
#[case("ImageInput", json!({}), json!({"type": "audio", "uri": "x"}), "the input `steps` expects image, got audio")]
#[case("RealtimeAudioInput", json!({}), json!("x"), "the input `steps` expects chunk, got str")]
#[tokio::test]
async fn inputs_refuse_what_does_not_fit(
    #[case] name: &str,
    #[case] mut properties: Json,
    #[case] value: Json,
    #[case] expected: &str,
) {
    let mut node = Node::new(&format!("nodetool.input.{name}"));
    properties["name"] = json!(" steps ");
    node.properties(properties);
    assert_eq!(
        node.process(json!({"value": value}))
            .await
            .expect_err("a fault")
            .message,
        expected
    );
}

#[rstest]
#[case("IntegerInput", json!({}), json!(-5))]
#[case("IntegerInput", json!({"min": 0, "max": 0}), json!(7))]
#[case("StringInput", json!({"max_length": 0}), json!("long"))]
#[case("SelectInput", json!({"options": ["a"]}), json!(""))]
#[tokio::test]
async fn only_stated_limits_hold(#[case] name: &str, #[case] properties: Json, #[case] value: Json) {
    let mut node = Node::new(&format!("nodetool.input.{name}"));
    node.properties(properties);
    assert_eq!(
        node.process(json!({"value": value})).await.expect("a value"),
        json!({"output": value})
    );
}

#[rstest]
#[case("String", json!({"value": "a"}), json!({"output": "a"}))]
#[case("Bool", json!({"value": true}), json!({"output": true}))]
#[case("List", json!({"value": [1, "a"]}), json!({"output": [1, "a"]}))]
#[case("Dict", json!({"value": {"a": 1}}), json!({"output": {"a": 1}}))]
#[case("JSON", json!({"value": [1]}), json!({"output": [1]}))]
#[case("Constant", json!({}), json!({}))]
#[case("ImageSize", json!({"value": {"width": 640, "height": 480}}),
    json!({"image_size": {"width": 640, "height": 480}, "width": 640, "height": 480}))]
#[case("Date", json!({"year": 2026, "month": 2, "day": 28}),
    json!({"output": {"type": "date", "year": 2026, "month": 2, "day": 28}}))]
#[case("DateTime", json!({"hour": 23}), json!({"output": {"type": "datetime", "year": 1900, "month": 1, "day": 1,
    "hour": 23, "minute": 0, "second": 0, "millisecond": 0, "tzinfo": "UTC", "utc_offset": 0}}))]
#[case("Sketch", json!({"value": {"id": "s"}, "mask": "asset://a1"}), json!({"output": {"id": "s"},
    "mask": {"type": "image", "uri": "asset://a1", "asset_id": "a1"}}))]
#[tokio::test]
async fn constants_give_what_is_stated(#[case] name: &str, #[case] inputs: Json, #[case] expected: Json) {
    let out = process(&format!("nodetool.constant.{name}"), inputs)
        .await
        .expect("a value");
    assert_eq!(without_nulls(out), expected);
}

#[rstest]
#[case("Integer", json!({"value": "x"}), "the property `value` expects int, got str")]
#[case("TextList", json!({}), "the input `value` is empty: a constant needs its value")]
#[case("Date", json!({"year": 2026, "month": 2, "day": 30}),
    "the property `day` names a day that does not exist: 2026-02-30")]
#[case("DateTime", json!({"hour": 24}), "the property `hour` must be between 0 and 23, got 24")]
#[tokio::test]
async fn constants_refuse_what_does_not_fit(
    #[case] name: &str,
    #[case] inputs: Json,
    #[case] expected: &str,
) {
    let error = process(&format!("nodetool.constant.{name}"), inputs)
        .await
        .expect_err("a fault");
    assert_eq!(error.message, expected);
}

/// Each input and constant takes the default of its own type.
#[tokio::test]
async fn defaults_fit_their_types() {
    let registry = registry();
    for meta in registry.all() {
        let checked =
            meta.node_type.starts_with("nodetool.input.") || meta.node_type.starts_with("nodetool.constant.");
        let complete = meta.inputs.iter().all(|input| input.default.is_some());
        if !checked || !complete || meta.node_type.ends_with(".RealtimeAudioInput") {
            continue;
        }
        let mut node = Node::new(&meta.node_type);
        let defaults = node.defaults();
        node.process(defaults)
            .await
            .unwrap_or_else(|error| panic!("{}: {error}", meta.node_type));
    }
}

#[rstest]
#[case("nodetool.output.Output", json!({"value": 5, "name": "x"}), json!({"output": 5}))]
#[case("nodetool.output.Output", json!({"value": null}), json!({"output": null}))]
#[case("nodetool.output.Output", json!({"name": "x"}), json!({}))]
#[case("nodetool.workflows.base_node.Preview", json!({"value": "a"}), json!({"output": "a"}))]
#[case("nodetool.workflows.base_node.Comment", json!({"comment": "a"}), json!({}))]
#[case("nodetool.workflows.base_node.Group", json!({}), json!({}))]
#[tokio::test]
async fn sinks_hand_on_or_do_nothing(#[case] node_type: &str, #[case] inputs: Json, #[case] expected: Json) {
    assert_eq!(process(node_type, inputs).await.expect("outputs"), expected);
}

/// The field's own files: every value that they state for one of our inputs or constants is accepted.
#[tokio::test]
async fn public_workflow_files_state_values_that_fit() {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/spec");
    let specs = std::env::var("ATELIER_SPECS").unwrap_or_else(|_| beside.to_owned());
    let Ok(files) = std::fs::read_dir(format!("{specs}/../workflows")) else {
        return;
    };
    let mut seen = 0;
    for file in files
        .filter_map(Result::ok)
        .filter(|file| file.path().extension().is_some_and(|end| end == "json"))
    {
        let text = std::fs::read_to_string(file.path()).expect("a file");
        let file_json: Json = serde_json::from_str(&text).expect("JSON");
        let nodes = file_json["graph"]["nodes"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        for json in nodes {
            let node_type = json["type"].as_str().unwrap_or_default().to_owned();
            let checked =
                node_type.starts_with("nodetool.input.") || node_type.starts_with("nodetool.constant.");
            let properties = json
                .get("properties")
                .or(json.get("data"))
                .cloned()
                .unwrap_or(json!({}));
            if !checked || registry().meta(&node_type).is_none() || properties.get("value").is_none() {
                continue;
            }
            seen += 1;
            let mut node = Node::new(&node_type);
            node.properties(properties.clone());
            let out = node.process(properties).await;
            assert!(out.is_ok(), "{:?} {node_type}: {out:?}", file.path());
        }
    }
    assert!(seen > 20, "the files state {seen} values");
}

#[test]
fn the_registry_keeps_the_order_of_the_catalog() {
    let registry = registry();
    let names: Vec<_> = registry.all().map(|meta| meta.node_type.clone()).collect();
    assert_eq!(names, catalog::all().keys().cloned().collect::<Vec<_>>());
    assert_eq!(
        registry
            .meta("nodetool.control.ForEach")
            .and_then(|meta| meta.inputs[1].default.clone()),
        Some(Value::Int(-1))
    );
}

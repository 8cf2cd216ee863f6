//! Workflow files: what is read, what is kept, what comes out.

use atelier_kernel::{
    error::Error,
    graph::load::parse,
    workflows::{read_file, write_file},
};
use atelier_proto::{
    kernel::v1::{FileSpelling, FileValues, Workflow},
    value::{Map, Value},
};
use serde_json::{Value as Json, json};

fn node() -> Json {
    json!({"id": "draw", "type": "demo.Draw", "data": {"style": "ink"}, "dynamic_properties": {"mood": "calm"},
        "dynamic_inputs": {"mood": {"type": "str"}}, "dynamic_outputs": {"more": "str"}, "parent_id": "g",
        "ui_properties": {"bypassed": true, "width": 280}, "sync_mode": "on_any", "colour": "blue"})
}
fn edges() -> Json {
    json!([{"source": "a", "sourceHandle": "output", "target": "draw", "targetHandle": "prompt",
        "edge_type": "control", "ui_properties": {"className": "x"}}])
}
fn record() -> Json {
    json!({
        "id": "theirs", "access": "private", "created_at": "2026-04-27T11:20:53.184Z", "updated_at": "x",
        "name": "Postcards", "tool_name": null, "description": "Draws them", "tags": ["start", "image"],
        "thumbnail_url": "https://example.com/x.png", "settings": {"grid": 8}, "run_mode": "chat", "etag": "e",
        "invented": {"by": ["nobody"]}, "params": {"topics": ["sea"]},
        "graph": {"nodes": [node()], "edges": edges(), "viewport": {"zoom": 2}},
    })
}
/// What the engine reads of a graph, spelled in any way.
fn meaning(graph: &Json) -> String {
    let mut issues = Vec::new();
    let raw = parse(graph, &mut issues).unwrap();
    assert!(issues.is_empty(), "{issues:?}");
    format!("{raw:?}")
}
fn export(file: &Json, spelling: FileSpelling, values: FileValues, flat: bool) -> Json {
    let draft = read_file(&file.to_string(), None).unwrap();
    let workflow = Workflow {
        workflow_id: "w".to_owned(),
        name: draft.name,
        description: draft.description,
        tags: draft.tags,
        settings_json: draft.settings,
        params: Some(draft.params),
        run_mode: draft.run_mode,
        extra_json: draft.extra,
        ..Workflow::default()
    };
    let text = write_file(&workflow, 1, &draft.graph.text, spelling, values, flat).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_record_comes_out_as_it_went_in() {
    let draft = read_file(&record().to_string(), None).unwrap();
    assert_eq!(draft.name, "Postcards");
    assert_eq!(draft.graph.json, record()["graph"]);
    let params = Map::try_from(draft.params).unwrap();
    assert_eq!(params["topics"], Value::list(vec!["sea".into()]));
    let out = export(
        &record(),
        FileSpelling::Unspecified,
        FileValues::Unspecified,
        false,
    );
    let (mut expected, mut found) = (record(), out);
    for own in ["id", "created_at", "updated_at", "etag", "version"] {
        expected.as_object_mut().unwrap().remove(own);
        assert!(found.as_object_mut().unwrap().remove(own).is_some(), "{own}");
    }
    assert_eq!(found, expected);
}
#[test]
fn every_spelling_that_is_written_means_the_same_graph() {
    let original = meaning(&record()["graph"]);
    for spelling in [
        FileSpelling::Unspecified,
        FileSpelling::Snake,
        FileSpelling::Camel,
    ] {
        for values in [FileValues::Unspecified, FileValues::Data, FileValues::Properties] {
            for flat in [false, true] {
                let out = export(&record(), spelling, values, flat);
                let graph = if flat { &out } else { &out["graph"] };
                let case = format!("{spelling:?} {values:?} {flat}");
                assert_eq!(meaning(graph), original, "{case}");
                assert_eq!(graph["viewport"], json!({"zoom": 2}), "{case}");
                let node = &graph["nodes"][0];
                assert_eq!(node["colour"], "blue", "{case}");
                assert_eq!(
                    node.get("uiProperties").is_some(),
                    spelling == FileSpelling::Camel,
                    "{case}"
                );
                assert_eq!(
                    node.get("properties").is_some(),
                    values == FileValues::Properties,
                    "{case}"
                );
                // And back again.
                let again = export(&out, FileSpelling::Snake, FileValues::Data, false);
                assert_eq!(meaning(&again["graph"]), original, "{case}");
                assert_eq!(again["invented"], record()["invented"], "{case}");
                assert_eq!(again["graph"]["nodes"][0], node_of(&record()), "{case}");
            }
        }
    }
}
fn node_of(record: &Json) -> Json {
    record["graph"]["nodes"][0].clone()
}
#[test]
fn graphs_at_the_top_and_in_other_spellings_are_read() {
    let flat = json!({"nodes": [node()], "edges": edges(), "name": "Flat"});
    let draft = read_file(&flat.to_string(), None).unwrap();
    assert_eq!((draft.name.as_str(), draft.graph.node_count), ("Flat", 1));
    assert_eq!(draft.extra, "{}");
    let snake = json!({"nodes": [node()], "edges": [{"source": "a", "source_handle": "output", "target": "draw",
        "target_handle": "prompt", "type": "control"}]});
    let draft = read_file(&snake.to_string(), Some(" Given ")).unwrap();
    assert_eq!(draft.name, "Given");
    assert_eq!(
        meaning(&draft.graph.json),
        meaning(&json!({"nodes": [node()], "edges": edges()}))
    );
    let bare = read_file(r#"{"nodes": []}"#, None).unwrap();
    assert_eq!(
        (bare.name.as_str(), bare.graph.node_count),
        ("Untitled workflow", 0)
    );
}
#[test]
fn what_is_no_workflow_is_refused_with_its_reason() {
    for (file, told) in [
        ("nonsense", "not JSON"),
        ("[]", "is no workflow"),
        ("{}", "neither a graph nor nodes"),
        (r#"{"graph": []}"#, "graph that is no object"),
        (r#"{"graph": {"nodes": 7, "edges": []}}"#, "nodes"),
        (r#"{"nodes": [7], "edges": []}"#, "node number 0"),
        (r#"{"nodes": [], "name": 7}"#, "name"),
        (r#"{"nodes": [], "tags": "a"}"#, "tags"),
        (r#"{"nodes": [], "tags": [1]}"#, "tags"),
        (r#"{"nodes": [], "settings": []}"#, "settings"),
        (r#"{"nodes": [], "params": []}"#, "params"),
        (r#"{"nodes": [], "runMode": "song"}"#, "run_mode"),
    ] {
        let refused = read_file(file, None).unwrap_err();
        assert!(
            matches!(refused, Error::InvalidField { .. } | Error::MalformedGraph(_)),
            "{refused:?}"
        );
        assert!(refused.to_string().contains(told), "{file}: {refused}");
    }
}

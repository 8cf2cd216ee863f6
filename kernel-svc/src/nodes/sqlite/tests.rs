use rstest::rstest;
use serde_json::{Value as Json, json};

use crate::nodes::testing::Node;

async fn run(folder: &std::path::Path, name: &str, mut inputs: Json) -> Result<Json, crate::node::NodeError> {
    inputs["database_name"] = json!("d/test.db");
    if inputs.get("table_name").is_none() {
        inputs["table_name"] = json!("cards");
    }
    Node::in_folder(&format!("lib.sqlite.{name}"), folder)
        .process(inputs)
        .await
}

#[tokio::test]
async fn rows_are_kept_found_changed_and_deleted() {
    let folder = tempfile::tempdir().expect("a folder");
    let columns = json!({"type": "record_type", "columns": [{"name": "front", "data_type": "string"},
        {"name": "score", "data_type": "float"}, {"name": "tags", "data_type": "object"}]});
    let step = |name: &'static str, inputs: Json| run(folder.path(), name, inputs);
    for _ in 0..2 {
        step("CreateTable", json!({"columns": columns}))
            .await
            .expect("made");
    }
    let first = json!({"data": {"front": "it's", "score": 1.5, "tags": ["a"]}});
    assert_eq!(step("Insert", first).await.expect("added")["row_id"], 1);
    let second = step("Insert", json!({"data": {"front": "two", "score": null}}))
        .await
        .expect("added");
    assert_eq!(
        (&second["row_id"], &second["rows_affected"]),
        (&json!(2), &json!(1))
    );
    let all = step("Query", json!({"order_by": "id desc"})).await.expect("rows");
    assert_eq!(
        all["output"],
        json!([{"id": 2, "front": "two", "score": null, "tags": null},
            {"id": 1, "front": "it's", "score": 1.5, "tags": "[\"a\"]"}])
    );
    let some = json!({"where": "score > 1", "columns": {"columns": [{"name": "front"}]}, "limit": 1});
    assert_eq!(
        step("Query", some).await.expect("rows")["output"],
        json!([{"front": "it's"}])
    );
    let changed = step("Update", json!({"data": {"score": 9}, "where": "front = 'two'"})).await;
    assert_eq!(changed.expect("changed")["rows_affected"], 1);
    let sql = json!({"sql": "SELECT sum(score) AS s FROM cards WHERE score > ?", "parameters": [1]});
    let sum = step("ExecuteSQL", sql).await.expect("a sum");
    assert_eq!((&sum["rows"], &sum["count"]), (&json!([{"s": 10.5}]), &json!(1)));
    let gone = step("Delete", json!({"where": "id = 1"})).await.expect("deleted");
    assert_eq!(gone["rows_affected"], 1);
    assert!(folder.path().join("d/test.db").is_file());
}

#[rstest]
#[case("Delete", json!({}), "the input `where` is empty")]
#[case("Delete", json!({"where": "1 = 1"}), "no such table")]
#[case("Insert", json!({"data": {}}), "the input `data` is empty")]
#[case("Insert", json!({"data": {"a\"b": 1}}), "the input `data` holds the name")]
#[case("Query", json!({"table_name": "a; drop"}), "the input `table_name` holds the name")]
#[case("Query", json!({"where": "1 = 1) union select * from x --"}), "the input `where` cannot be carried out")]
#[case("ExecuteSQL", json!({"sql": "ATTACH '/tmp/x' AS y"}), "the input `sql` holds `attach`")]
#[case("ExecuteSQL", json!({"sql": "SELEC 1"}), "the input `sql` cannot be carried out")]
#[case("ExecuteSQL", json!({"sql": ""}), "the input `sql` is empty")]
#[case("ExecuteSQL", json!({"sql": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"}),
    "more than 100000 rows")]
#[tokio::test]
async fn faults_name_the_input(#[case] name: &str, #[case] inputs: Json, #[case] part: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let error = run(folder.path(), name, inputs).await.expect_err("a fault");
    assert!(error.message.contains(part), "{}", error.message);
}

#[tokio::test]
async fn databases_stay_in_the_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut node = Node::in_folder("lib.sqlite.ExecuteSQL", folder.path());
    let inputs = json!({"database_name": "../x.db", "sql": "SELECT 1"});
    let error = node.process(inputs).await.expect_err("outside");
    assert!(
        error.message.contains("`database_name` names no usable file"),
        "{error}"
    );
}

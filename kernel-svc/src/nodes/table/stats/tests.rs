use rstest::rstest;
use serde_json::{Value as Json, json};

use crate::nodes::testing::{Node, process};

/// A table in short.
fn table(columns: &[&str], data: Json) -> Json {
    let columns: Vec<_> = columns.iter().map(|name| json!({"name": name})).collect();
    json!({"type": "dataframe", "columns": columns, "data": data})
}
/// Names and rows of a result.
fn shape(out: &Json) -> (Vec<String>, Json) {
    let columns = out["output"]["columns"].as_array().expect("columns");
    let names = columns
        .iter()
        .map(|column| column["name"].as_str().expect("a name").to_owned());
    (names.collect(), out["output"]["data"].clone())
}
fn sales() -> Json {
    table(
        &["team", "score", "city"],
        json!([
            ["B", 5, "Rome"],
            ["A", 10, "Oslo"],
            ["A", 20, null],
            ["B", 5, "Rome"]
        ]),
    )
}

#[rstest]
#[case("Aggregate", json!({"dataframe": sales(), "columns": "team", "aggregation": "sum"}),
    &["team", "score"], json!([["A", 30], ["B", 10]]))]
#[case("Aggregate", json!({"dataframe": sales(), "columns": "team", "aggregation": "mean"}),
    &["team", "score"], json!([["A", 15.0], ["B", 5.0]]))]
#[case("Aggregate", json!({"dataframe": sales(), "columns": ["team"], "aggregation": "count"}),
    &["team", "score", "city"], json!([["A", 2, 1], ["B", 2, 2]]))]
#[case("Aggregate", json!({"dataframe": sales(), "columns": "", "aggregation": "max"}),
    &["team", "score", "city"], json!([["B", 20, "Rome"]]))]
#[case("Pivot", json!({"dataframe": sales(), "index": "team", "columns": "city", "values": "score"}),
    &["team", "Oslo", "Rome", "null"], json!([["A", 10, null, 20], ["B", null, 10, null]]))]
#[case("Describe", json!({"dataframe": table(&["a"], json!([[1], [2], [3], [4]]))}), &["statistic", "a"],
    json!([["count", 4.0], ["mean", 2.5], ["std", 1.2909944487358056], ["min", 1.0], ["25%", 1.75], ["50%", 2.5],
        ["75%", 3.25], ["max", 4.0]]))]
#[case("AddColumn", json!({"dataframe": table(&["a"], json!([[1], [2]])), "column_name": "b", "values": ["x", "y"]}),
    &["a", "b"], json!([[1, "x"], [2, "y"]]))]
#[case("AddColumn", json!({"dataframe": null, "column_name": "b", "values": [1]}), &["b"], json!([[1]]))]
#[case("SelectColumn", json!({"dataframe": sales(), "columns": "city, team"}), &["city", "team"],
    json!([["Rome", "B"], ["Oslo", "A"], [null, "A"], ["Rome", "B"]]))]
#[case("Rename", json!({"dataframe": table(&["a", "b"], json!([[1, 2]])), "rename_map": "a:x"}), &["x", "b"], json!([[1, 2]]))]
#[case("Rename", json!({"dataframe": table(&["a"], json!([[1]])), "rename_map": "{\"a\": \"y\"}"}), &["y"], json!([[1]]))]
#[case("FillNA", json!({"dataframe": table(&["a"], json!([[1], [null], [3]])), "value": 0}), &["a"], json!([[1], [0], [3]]))]
#[case("FillNA", json!({"dataframe": table(&["a"], json!([[1], [null], [3]])), "method": "forward"}), &["a"],
    json!([[1], [1], [3]]))]
#[case("FillNA", json!({"dataframe": table(&["a"], json!([[1], [null], [3]])), "method": "backward"}), &["a"],
    json!([[1], [3], [3]]))]
#[case("FillNA", json!({"dataframe": table(&["a"], json!([[1], [null], [3]])), "method": "mean", "columns": "a"}), &["a"],
    json!([[1], [2.0], [3]]))]
#[case("DropNA", json!({"df": sales()}), &["team", "score", "city"],
    json!([["B", 5, "Rome"], ["A", 10, "Oslo"], ["B", 5, "Rome"]]))]
#[case("DropDuplicates", json!({"df": sales()}), &["team", "score", "city"],
    json!([["B", 5, "Rome"], ["A", 10, "Oslo"], ["A", 20, null]]))]
#[case("Filter", json!({"df": sales(), "condition": "score >= 10 and city.notnull()"}), &["team", "score", "city"],
    json!([["A", 10, "Oslo"]]))]
#[case("FindRow", json!({"df": sales(), "condition": "team == 'A'"}), &["team", "score", "city"], json!([["A", 10, "Oslo"]]))]
#[case("SortByColumn", json!({"df": sales(), "column": "city"}), &["team", "score", "city"],
    json!([["A", 10, "Oslo"], ["B", 5, "Rome"], ["B", 5, "Rome"], ["A", 20, null]]))]
#[case("Slice", json!({"dataframe": sales(), "start_index": 1, "end_index": -2}), &["team", "score", "city"],
    json!([["A", 10, "Oslo"]]))]
#[case("Slice", json!({"dataframe": sales(), "start_index": -1}), &["team", "score", "city"], json!([["B", 5, "Rome"]]))]
#[case("Append", json!({"dataframe_a": table(&["a", "b"], json!([[1, 2]])), "dataframe_b": table(&["b", "a"], json!([[4, 3]]))}),
    &["a", "b"], json!([[1, 2], [3, 4]]))]
#[case("Merge", json!({"dataframe_a": table(&["a"], json!([[1], [2]])), "dataframe_b": table(&["a"], json!([[3]]))}),
    &["a", "a_b"], json!([[1, 3], [2, null]]))]
#[case("Join", json!({"dataframe_a": table(&["k", "v"], json!([[1, "x"], [2, "y"], [null, "z"]])),
        "dataframe_b": table(&["v", "k"], json!([["p", 2.0], ["q", 2], ["r", null]])), "join_on": "k"}),
    &["k", "v", "v_b"], json!([[2, "y", "p"], [2, "y", "q"]]))]
#[tokio::test]
async fn tables_are_changed(
    #[case] name: &str,
    #[case] inputs: Json,
    #[case] columns: &[&str],
    #[case] data: Json,
) {
    let out = process(&format!("nodetool.data.{name}"), inputs)
        .await
        .expect("a table");
    let (names, rows) = shape(&out);
    assert_eq!(
        (names.iter().map(String::as_str).collect::<Vec<_>>(), rows),
        (columns.to_vec(), data)
    );
}

#[rstest]
#[case("Aggregate", json!({"dataframe": sales(), "columns": "town"}),
    "the input `columns` names the column `town`, the table has: team, score, city")]
#[case("Aggregate", json!({"dataframe": sales(), "columns": "team", "aggregation": "mode"}), "the input `aggregation` must be")]
#[case("Filter", json!({"df": sales(), "condition": "town == 1"}), "the input `condition` names the column `town`")]
#[case("Filter", json!({"df": sales(), "condition": "score >"}), "the input `condition` is no condition")]
#[case("AddColumn", json!({"dataframe": sales(), "column_name": "x", "values": [1]}), "the input `values` has 1 values for 4 rows")]
#[case("Join", json!({"dataframe_a": sales(), "dataframe_b": sales()}), "the input `join_on` is empty")]
#[case("Append", json!({"dataframe_a": sales(), "dataframe_b": table(&["x"], json!([[1]]))}), "the input `dataframe_b`")]
#[case("Rename", json!({"dataframe": sales(), "rename_map": "team"}), "the input `rename_map`")]
#[case("FillNA", json!({"dataframe": sales(), "method": "guess"}), "the input `method`")]
#[case("ExtractColumn", json!({"dataframe": sales(), "column_name": ""}), "the input `column_name`")]
#[tokio::test]
async fn faults_name_the_input(#[case] name: &str, #[case] inputs: Json, #[case] part: &str) {
    let error = process(&format!("nodetool.data.{name}"), inputs)
        .await
        .expect_err("a fault");
    assert!(error.message.contains(part), "{}", error.message);
}

#[tokio::test]
async fn rows_come_one_after_the_other() {
    let mut node = Node::new("nodetool.data.ForEachRow");
    let frames = node
        .frames(json!({"dataframe": table(&["a"], json!([[1], [2]]))}))
        .await;
    let expected = [
        json!({"row": {"a": 1}, "index": 0}),
        json!({"row": {"a": 2}, "index": 1}),
    ];
    assert_eq!(frames.expect("frames"), expected);
    let cells = process(
        "nodetool.data.ExtractColumn",
        json!({"dataframe": sales(), "column_name": "score"}),
    )
    .await;
    assert_eq!(cells.expect("a list"), json!({"output": [5, 10, 20, 5]}));
}

#[tokio::test]
async fn tables_are_kept_in_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let inputs = json!({"dataframe": sales(), "folder": "out", "filename": "t.csv"});
    let mut node = Node::in_folder("nodetool.data.SaveCSVDataframeFile", folder.path());
    node.process(inputs).await.expect("saved");
    let mut node = Node::in_folder("nodetool.data.LoadCSVFile", folder.path());
    let out = node
        .process(json!({"file_path": "out/t.csv"}))
        .await
        .expect("a table");
    assert_eq!(shape(&out).1[2], json!(["A", 20, null]));
    let mut node = Node::new("nodetool.data.SaveDataframe");
    let out = node
        .process(json!({"df": sales(), "name": "t.csv"}))
        .await
        .expect("kept");
    assert_eq!(out["output"]["uri"], "asset://kept.csv");
    assert_eq!(out["output"]["data"][0], json!(["B", 5, "Rome"]));
}

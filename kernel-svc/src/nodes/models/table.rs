//! A table that a language model makes up: its rows one by one, and all of it.

use async_trait::async_trait;
use atelier_proto::value::{Map, Value, from_json};
use serde_json::{Value as Json, json};

use super::{conversation, message, outputs::Added, structured::ask};
use crate::{
    node::{Context, NodeError},
    nodes::{
        args::{Args, count, map, missing, one},
        code::{Generator, Sink, Streamed, Types, factory},
    },
};

/// Most rows that are taken from an answer.
const MAX_ROWS: usize = 10_000;
const SYSTEM: &str = "You make up tables. Answer with a JSON object whose field `rows` is a list of objects, one for each \
    row, with exactly the columns that were asked for.";

/// All types of this part.
pub(super) fn types() -> Types {
    vec![(
        "nodetool.generators.DataGenerator",
        factory(Streamed(DataGenerator)),
    )]
}

#[derive(Clone, Copy)]
pub(super) struct DataGenerator;
#[async_trait]
impl Generator for DataGenerator {
    async fn generate(&self, inputs: Map, frames: &mut dyn Sink, ctx: &Context) -> Result<(), NodeError> {
        let args = Args(&inputs);
        let asked: Vec<String> = [args.text("prompt"), args.text("input_text")].into();
        let asked: Vec<String> = asked.into_iter().filter(|text| !text.trim().is_empty()).collect();
        if asked.is_empty() {
            return Err(missing("prompt", "there is nothing to make a table of"));
        }
        let columns = columns(&args.value("columns"));
        if columns.is_empty() {
            return Err(missing("columns", "a table needs columns"));
        }
        let mut told = asked.join("\n\n");
        told.push_str("\n\nColumns:");
        for Column {
            name,
            ty,
            description,
        } in &columns
        {
            told.push_str(&format!("\n- {name} ({ty}) {description}"));
        }
        let messages = conversation([message("system", SYSTEM, &[]), message("user", &told, &[])]);
        let params = one("max_tokens", args.int("max_tokens", 4096)?.max(1));
        let fields = Added::schema("rows", "list", rows_schema(&columns));
        let (_, answer) = ask(ctx, args, &messages, fields, params).await?;
        let mut rows = Vec::new();
        for record in Args(&answer).list("rows").into_iter().take(MAX_ROWS) {
            let cells: Vec<Value> = columns
                .iter()
                .map(|column| record.get(&column.name).unwrap_or_default())
                .collect();
            let named = columns
                .iter()
                .map(|column| column.name.clone())
                .zip(cells.iter().cloned());
            let record = Value::map(named.collect());
            frames
                .frame(map([("record", record), ("index", count(rows.len()))]))
                .await?;
            rows.push(Value::list(cells));
        }
        frames.frame(one("dataframe", dataframe(&columns, rows))).await
    }
}

struct Column {
    name: String,
    ty: String,
    description: String,
}
fn columns(given: &Value) -> Vec<Column> {
    let list = given.get("columns").unwrap_or_else(|| given.clone());
    let column = |column: &Value| {
        let text = |key: &str| {
            column
                .get(key)
                .and_then(|text| text.as_str().map(ToOwned::to_owned))
                .unwrap_or_default()
        };
        Column {
            name: text("name"),
            ty: text("data_type"),
            description: text("description"),
        }
    };
    let all = list.as_list().unwrap_or_default().iter().map(column);
    all.filter(|column| !column.name.is_empty()).collect()
}
fn rows_schema(columns: &[Column]) -> Json {
    let mut properties = serde_json::Map::new();
    for Column {
        name,
        ty,
        description,
    } in columns
    {
        let kind = match ty.as_str() {
            "int" => "integer",
            "float" => "number",
            "bool" => "boolean",
            _ => "string",
        };
        let mut schema = json!({"type": kind});
        if let Some(object) = schema.as_object_mut() {
            if !description.is_empty() {
                object.insert("description".to_owned(), description.as_str().into());
            }
            if ty == "datetime" {
                object.insert("format".to_owned(), "date-time".into());
            }
        }
        properties.insert(name.clone(), schema);
    }
    let required: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    let row = json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
    json!({"type": "array", "items": row})
}
fn dataframe(columns: &[Column], rows: Vec<Value>) -> Value {
    let columns: Vec<Json> = columns
        .iter()
        .map(
            |Column {
                 name,
                 ty,
                 description,
             }| json!({"name": name, "data_type": ty, "description": description}),
        )
        .collect();
    map([
        ("type", "dataframe".into()),
        ("uri", "".into()),
        ("columns", from_json(json!(columns))),
        ("data", Value::list(rows)),
    ])
    .into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::nodes::testing::{Node, Script};

    const TYPE: &str = "nodetool.generators.DataGenerator";

    #[tokio::test]
    async fn rows_come_one_by_one_and_the_table_at_the_end() {
        let answer = json!({"rows": [{"name": "beet", "grams": 90}, {"grams": 5}]}).to_string();
        let mut node = Node::scripted(TYPE, Script::whole(&answer));
        let columns = json!({"type": "record_type", "columns": [{"name": "name", "data_type": "string"},
            {"name": "grams", "data_type": "int"}]});
        let frames = node
            .frames(json!({"prompt": "veggies", "columns": columns}))
            .await
            .expect("frames");
        assert_eq!(
            frames[0],
            json!({"record": {"name": "beet", "grams": 90}, "index": 0})
        );
        assert_eq!(
            frames[1],
            json!({"record": {"name": null, "grams": 5}, "index": 1})
        );
        let table = &frames[2]["dataframe"];
        assert_eq!(
            (&table["data"], &table["columns"][1]["data_type"]),
            (&json!([["beet", 90], [null, 5]]), &json!("int"))
        );
        let schema = &node.params()["response_format"]["json_schema"]["schema"]["properties"]["rows"];
        assert_eq!(schema["items"]["properties"]["grams"]["type"], "integer");
    }

    #[tokio::test]
    async fn a_table_needs_columns() {
        let mut node = Node::scripted(TYPE, Script::whole("{}"));
        let error = node
            .frames(json!({"prompt": "x", "columns": {"columns": []}}))
            .await
            .expect_err("a fault");
        assert!(error.message.contains("`columns`") && node.calls() == 0);
    }
}

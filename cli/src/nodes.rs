//! `atelier nodes`.

use serde_json::Value;

use crate::{
    OK,
    args::Nodes,
    client::{Client, Refused},
    generations::segment,
    print,
};

/// Does it.
///
/// # Errors
/// The server refused or cannot be reached.
pub async fn nodes(client: &Client, command: Nodes) -> anyhow::Result<u8> {
    match command {
        Nodes::List {
            namespace,
            query,
            json,
        } => list(client, namespace, query, json).await,
        Nodes::Get { node_type, json } => get(client, &node_type, json).await,
    }
}
async fn list(
    client: &Client,
    namespace: Option<String>,
    query: Option<String>,
    json: bool,
) -> anyhow::Result<u8> {
    let given = [("namespace", namespace), ("query", query)];
    let query: Vec<_> = given
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect();
    let answer = client.get("/api/v1/nodes", &query).await?;
    let types: Vec<&Value> = rows(&answer, "nodes").collect();
    if json {
        for node_type in types {
            print::json_line(node_type)?;
        }
        return Ok(OK);
    }
    if types.is_empty() {
        print::line("No node type fits.")?;
        return Ok(OK);
    }
    let names = |value: &Value, key: &str| {
        let names: Vec<String> = rows(value, key).map(|row| print::text(row, "name")).collect();
        names.join(",")
    };
    let cells = |row: &&Value| {
        vec![
            print::text(row, "node_type"),
            print::text(row, "title"),
            names(row, "properties"),
            names(row, "outputs"),
        ]
    };
    print::table(
        &["type", "title", "inputs", "outputs"],
        types.iter().map(cells).collect(),
    )?;
    Ok(OK)
}
fn rows<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}
async fn get(client: &Client, name: &str, json: bool) -> anyhow::Result<u8> {
    let node_type = match client.get(&format!("/api/v1/nodes/{}", segment(name)), &[]).await {
        Ok(node_type) => node_type,
        Err(error) if error.downcast_ref::<Refused>().is_some_and(|no| no.status == 404) => {
            anyhow::bail!("Node type {name} was not found. `atelier nodes list --query WORD` finds others.")
        }
        Err(error) => return Err(error),
    };
    if json {
        print::json_line(&node_type)?;
        return Ok(OK);
    }
    print::record(&[
        ("type", print::text(&node_type, "node_type")),
        ("title", print::text(&node_type, "title")),
        ("description", print::text(&node_type, "description")),
    ])?;
    let cells = |row: &Value| {
        let default = row.get("default").filter(|default| !default.is_null());
        let required = row.get("required").and_then(Value::as_bool).unwrap_or(false);
        vec![
            print::text(row, "name"),
            type_text(row.get("type").unwrap_or(&Value::Null)),
            match default {
                _ if required => "required".to_owned(),
                Some(default) => default.to_string(),
                None => String::new(),
            },
            print::text(row, "description"),
        ]
    };
    for (title, key) in [("inputs", "properties"), ("outputs", "outputs")] {
        let all: Vec<Vec<String>> = rows(&node_type, key).map(cells).collect();
        if !all.is_empty() {
            print::line("")?;
            let heads: &[&str] = if key == "outputs" {
                &["output", "type"]
            } else {
                &["input", "type", "default", "description"]
            };
            let cut = |mut row: Vec<String>| {
                row.truncate(heads.len());
                row
            };
            print::table(heads, all.into_iter().map(cut).collect())?;
        } else {
            let added = key == "properties" && node_type.get("is_dynamic") == Some(&Value::Bool(true));
            print::line(&if added {
                format!("\n{title}: those that a workflow adds to it")
            } else {
                format!("\nno {title}")
            })?;
        }
    }
    Ok(OK)
}
/// A type as it is written in graphs: `list[str]`.
fn type_text(ty: &Value) -> String {
    if let Some(text) = ty.as_str() {
        return text.to_owned();
    }
    let name = print::text(ty, "type");
    let args: Vec<String> = rows(ty, "type_args").map(type_text).collect();
    if args.is_empty() {
        name
    } else {
        format!("{name}[{}]", args.join(", "))
    }
}

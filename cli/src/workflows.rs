//! `atelier workflows`.

use std::path::Path;

use anyhow::Context;
use serde_json::{Map, Value, json};

use crate::{
    OK,
    args::{Export, Import, Listing, Save, Workflows},
    client::{Client, Refused},
    generations::segment,
    print,
    run::{self, read_workflow},
};

/// Does it.
///
/// # Errors
/// The server refused or cannot be reached.
pub async fn workflows(client: &Client, command: Workflows) -> anyhow::Result<u8> {
    match command {
        Workflows::List { query, tag, listing } => list(client, query, tag, &listing).await,
        Workflows::Get { workflow, json } => get(client, &workflow, json).await,
        Workflows::Save(command) => save(client, command).await,
        Workflows::Import(command) => import(client, command).await,
        Workflows::Export(command) => export(client, command).await,
        Workflows::Versions { workflow, listing } => versions(client, &workflow, &listing).await,
        Workflows::Restore {
            workflow,
            version,
            json,
        } => restore(client, &workflow, version, json).await,
        Workflows::Delete { workflow, json } => delete(client, &workflow, json).await,
        Workflows::Run(command) => run::run(client, command).await,
    }
}
fn path_of(id: &str) -> String {
    format!("/api/v1/workflows/{}", segment(id))
}
fn is_missing(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<Refused>()
        .is_some_and(|refused| refused.status == 404)
}
/// The saved workflow with an id, else the only one with a name.
///
/// # Errors
/// Several have the name; the server cannot be reached.
pub(crate) async fn find(client: &Client, named: &str) -> anyhow::Result<Option<Value>> {
    match client.get(&path_of(named), &[]).await {
        Ok(workflow) => return Ok(Some(workflow)),
        Err(error) if is_missing(&error) => {}
        Err(error) => return Err(error),
    }
    let query = [("name", named.to_owned())];
    let rows = client.list("/api/v1/workflows", "workflows", &query, 20).await?;
    match rows.as_slice() {
        [] => Ok(None),
        [row] => client.get(&path_of(&print::text(row, "id")), &[]).await.map(Some),
        rows => {
            let ids: Vec<String> = rows.iter().map(|row| print::text(row, "id")).collect();
            anyhow::bail!("several workflows are called {named}: {}", ids.join(", "))
        }
    }
}
async fn needed(client: &Client, named: &str) -> anyhow::Result<Value> {
    find(client, named)
        .await?
        .with_context(|| format!("Workflow {named} was not found."))
}
/// The graph of a version.
///
/// # Errors
/// There is no such version; the server cannot be reached.
pub(crate) async fn graph_at(client: &Client, id: &str, version: i64) -> anyhow::Result<Value> {
    let mut found = client
        .get(&format!("{}/versions/{version}", path_of(id)), &[])
        .await?;
    Ok(found.get_mut("graph").map(Value::take).unwrap_or_default())
}
async fn list(
    client: &Client,
    query: Option<String>,
    tag: Option<String>,
    listing: &Listing,
) -> anyhow::Result<u8> {
    let limit = print::limit(&listing.limit)?;
    let query: Vec<_> = [("query", query), ("tag", tag)]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect();
    let rows = client
        .list("/api/v1/workflows", "workflows", &query, limit)
        .await?;
    if listing.json {
        for row in &rows {
            print::json_line(row)?;
        }
        return Ok(OK);
    }
    if rows.is_empty() {
        print::line("No saved workflows. Try: atelier workflows import examples/six-images.json")?;
        return Ok(OK);
    }
    let cells = |row: &Value| {
        ["id", "name", "version", "node_count", "tags", "updated_at"]
            .iter()
            .map(|key| print::text(row, key))
            .collect()
    };
    print::table(
        &["id", "name", "version", "nodes", "tags", "saved"],
        rows.iter().map(cells).collect(),
    )?;
    Ok(OK)
}
async fn get(client: &Client, named: &str, json: bool) -> anyhow::Result<u8> {
    let workflow = needed(client, named).await?;
    if json {
        print::json_line(&workflow)?;
        return Ok(OK);
    }
    print::record(&[
        ("id", print::text(&workflow, "id")),
        ("name", print::text(&workflow, "name")),
        ("description", print::text(&workflow, "description")),
        ("tags", print::text(&workflow, "tags")),
        ("used as", print::text(&workflow, "run_mode")),
        ("version", print::text(&workflow, "version")),
        ("nodes", print::text(&workflow, "node_count")),
        ("params", print::text(&workflow, "params")),
        ("settings", print::text(&workflow, "settings")),
        ("etag", print::text(&workflow, "etag")),
        ("created", print::text(&workflow, "created_at")),
        ("saved", print::text(&workflow, "updated_at")),
    ])?;
    Ok(OK)
}
async fn save(client: &Client, command: Save) -> anyhow::Result<u8> {
    let Save {
        workflow: named,
        file,
        note,
        expect,
        json,
    } = command;
    let content = read_workflow(&file).await?;
    let before = needed(client, &named).await?;
    let id = print::text(&before, "id");
    let mut body = Map::new();
    let graph = match content.get("graph").filter(|graph| graph.is_object()) {
        Some(graph) => graph.clone(),
        None => {
            json!({"nodes": content.get("nodes"), "edges": content.get("edges").cloned().unwrap_or(json!([]))})
        }
    };
    body.insert("graph".to_owned(), graph);
    for key in ["name", "description", "tags", "settings", "params", "run_mode"] {
        if let Some(value) = content.get(key).filter(|value| !value.is_null()) {
            body.insert(key.to_owned(), value.clone());
        }
    }
    if let Some(note) = note {
        body.insert("note".to_owned(), note.into());
    }
    if let Some(version) = expect {
        body.insert("expected_version".to_owned(), version.into());
    }
    let after = client.patch(&path_of(&id), &Value::Object(body)).await?;
    if json {
        print::json_line(&after)?;
        return Ok(OK);
    }
    let (name, version) = (print::text(&after, "name"), print::text(&after, "version"));
    print::line(&match (
        before.get("etag") == after.get("etag"),
        before.get("version") == after.get("version"),
    ) {
        (true, _) => format!("{name} is as it was: version {version}."),
        (false, true) => format!("{name} is saved; its graph is still version {version}."),
        (false, false) => format!("{name} is saved as version {version}."),
    })?;
    Ok(OK)
}
async fn import(client: &Client, command: Import) -> anyhow::Result<u8> {
    let Import {
        files,
        name,
        id,
        json,
    } = command;
    anyhow::ensure!(
        files.len() == 1 || (name.is_none() && id.is_none()),
        "--name and --id: only with one file"
    );
    for file in &files {
        let content = read_workflow(file).await?;
        let own = print::text(&content, "name");
        let name = name.clone().or_else(|| own.trim().is_empty().then(|| stem(file)));
        let given = [("name", name), ("id", id.clone())];
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        for (key, value) in given {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                query.append_pair(key, &value);
            }
        }
        let path = format!("/api/v1/workflows/import?{}", query.finish());
        let saved = client
            .post(&path, &content)
            .await
            .with_context(|| file.display().to_string())?;
        if json {
            print::json_line(&saved)?;
        } else {
            let (id, name) = (print::text(&saved, "id"), print::text(&saved, "name"));
            print::line(&format!("{id}  {name}"))?;
        }
    }
    Ok(OK)
}
fn stem(file: &Path) -> String {
    file.file_stem()
        .map(|stem| stem.to_string_lossy().into_owned())
        .unwrap_or_default()
}
async fn export(client: &Client, command: Export) -> anyhow::Result<u8> {
    let Export {
        workflow,
        out,
        at,
        spelling,
        values,
        flat,
    } = command;
    let id = print::text(&needed(client, &workflow).await?, "id");
    let mut query = vec![
        ("spelling", spelling.name().to_owned()),
        ("values", values.name().to_owned()),
        ("flat", flat.to_string()),
    ];
    query.extend(at.map(|version| ("version", version.to_string())));
    let file = client.get(&format!("{}/export", path_of(&id)), &query).await?;
    let text = serde_json::to_string_pretty(&file)?;
    if out == Path::new("-") {
        print::line(&text)?;
    } else {
        tokio::fs::write(&out, format!("{text}\n"))
            .await
            .with_context(|| format!("cannot write {}", out.display()))?;
        print::aside(&format!("wrote {}", out.display()));
    }
    Ok(OK)
}
async fn versions(client: &Client, named: &str, listing: &Listing) -> anyhow::Result<u8> {
    let limit = print::limit(&listing.limit)?;
    let id = print::text(&needed(client, named).await?, "id");
    let path = format!("{}/versions", path_of(&id));
    let rows = client.list(&path, "versions", &[], limit).await?;
    if listing.json {
        for row in &rows {
            print::json_line(row)?;
        }
        return Ok(OK);
    }
    let cells = |row: &Value| {
        let note = match print::text(row, "restored_from") {
            from if from.is_empty() => print::text(row, "note"),
            from => format!("brings back {from} {}", print::text(row, "note")),
        };
        vec![
            print::text(row, "version"),
            print::text(row, "node_count"),
            print::text(row, "created_at"),
            note.trim_end().to_owned(),
        ]
    };
    print::table(
        &["version", "nodes", "saved", "note"],
        rows.iter().map(cells).collect(),
    )?;
    Ok(OK)
}
async fn restore(client: &Client, named: &str, version: i64, json: bool) -> anyhow::Result<u8> {
    let id = print::text(&needed(client, named).await?, "id");
    let path = format!("{}/versions/{version}/restore", path_of(&id));
    let after = client.post(&path, &json!({})).await?;
    if json {
        print::json_line(&after)?;
    } else {
        let (name, newest) = (print::text(&after, "name"), print::text(&after, "version"));
        print::line(&format!(
            "{name} is at version {newest}, the graph of version {version}."
        ))?;
    }
    Ok(OK)
}
async fn delete(client: &Client, named: &str, json: bool) -> anyhow::Result<u8> {
    let workflow = needed(client, named).await?;
    let id = print::text(&workflow, "id");
    client.delete(&path_of(&id)).await?;
    if json {
        print::json_line(&json!({"id": id, "deleted": true}))?;
    } else {
        print::line(&format!(
            "Deleted {}. Its runs stay.",
            print::text(&workflow, "name")
        ))?;
    }
    Ok(OK)
}

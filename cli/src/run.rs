//! `atelier run`.

pub(crate) mod params;
mod progress;

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use anyhow::Context;
use futures_util::StreamExt;
use serde_json::{Map, Value, json};

use crate::{
    FAILED, INTERRUPTED, OK,
    args::Run,
    assets,
    client::{Client, Refused},
    generations::segment,
    print,
    workflows::{self, find},
};
use progress::Progress;

/// Largest workflow file, in bytes.
const MAX_FILE: u64 = 32 * 1024 * 1024;

/// Runs a workflow file to its end.
///
/// # Errors
/// The file cannot be read, the server refused it or cannot be reached.
pub async fn run(client: &Client, command: Run) -> anyhow::Result<u8> {
    let Run {
        workflow: named,
        at,
        params,
        json,
        out,
        job_id,
    } = command;
    let (workflow, mut body) = what(client, &named, at).await?;
    let params = params::parse(&params, &workflow)?;
    // Named here, so that a start whose answer is lost can be repeated and is not paid for twice.
    let id = job_id.unwrap_or_else(|| uuid::Uuid::now_v7().to_string());
    let name = name_of(&workflow, Path::new(&named));
    for (key, value) in [
        ("params", Value::Object(params)),
        ("name", name.into()),
        ("job_id", id.as_str().into()),
    ] {
        body.insert(key.to_owned(), value);
    }
    let body = Value::Object(body);
    match client.post("/api/v1/jobs", &body).await {
        Ok(_) => {}
        Err(error) if error.is::<Refused>() => return Err(error),
        Err(error) => {
            let text =
                format!("whether the run began is not known; with --job-id {id} it does not begin twice");
            return Err(error.context(text));
        }
    }
    let lost = || format!("lost touch with run {id}, which is kept (`atelier jobs get {id}` shows it)");
    let interrupted = follow(client, &id, json, &workflow).await.with_context(lost)?;
    let summary = tokio::select! {
        summary = summarise(client, &id, out.as_deref()) => summary?,
        _ = tokio::signal::ctrl_c() => return Ok(INTERRUPTED),
    };
    if json {
        print::json_line(&summary)?;
    } else {
        show(&summary)?;
    }
    Ok(
        match (interrupted, summary.get("status").and_then(Value::as_str)) {
            (true, _) => INTERRUPTED,
            (false, Some("completed")) => OK,
            (false, _) => FAILED,
        },
    )
}
/// What is to be run: the workflow, for its inputs and names, and how a request says it. A file wins over a saved workflow
/// of the same name.
async fn what(client: &Client, named: &str, at: Option<i64>) -> anyhow::Result<(Value, Map<String, Value>)> {
    let file = Path::new(named);
    let is_file = tokio::fs::try_exists(file).await.unwrap_or(false);
    if is_file {
        anyhow::ensure!(at.is_none(), "--at: a file has no versions");
        let workflow = read_workflow(file).await?;
        let body = Map::from_iter([("workflow".to_owned(), workflow.clone())]);
        return Ok((workflow, body));
    }
    let Some(mut workflow) = find(client, named).await? else {
        // Whoever named a file is told about the file.
        if file.extension().is_some() || named.contains('/') {
            read_workflow(file).await?;
        }
        anyhow::bail!("{named}: there is no such file, and no saved workflow with this id or name");
    };
    let id = print::text(&workflow, "id");
    let mut body = Map::from_iter([("workflow_id".to_owned(), id.as_str().into())]);
    if let Some(version) = at {
        let graph = workflows::graph_at(client, &id, version).await?;
        if let Some(workflow) = workflow.as_object_mut() {
            workflow.insert("graph".to_owned(), graph);
        }
        body.insert("workflow_version".to_owned(), version.into());
    }
    Ok((workflow, body))
}
/// Reads a workflow file.
///
/// # Errors
/// It cannot be read, is too large, or is no JSON.
pub(crate) async fn read_workflow(file: &Path) -> anyhow::Result<Value> {
    let name = file.display();
    let size = tokio::fs::metadata(file)
        .await
        .with_context(|| format!("cannot read {name}"))?
        .len();
    anyhow::ensure!(
        size <= MAX_FILE,
        "{name} has {size} bytes; a workflow has at most {MAX_FILE}"
    );
    let text = tokio::fs::read(file)
        .await
        .with_context(|| format!("cannot read {name}"))?;
    serde_json::from_slice(&text).with_context(|| format!("{name} is not JSON"))
}
fn name_of(workflow: &Value, file: &Path) -> String {
    match print::text(workflow, "name") {
        name if name.is_empty() => file
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned())
            .unwrap_or_default(),
        name => name,
    }
}
/// Shows events to the end of the run. Ctrl-C cancels the run and goes on to its end, once more leaves at once; true when
/// that happened.
async fn follow(client: &Client, id: &str, json: bool, workflow: &Value) -> anyhow::Result<bool> {
    let progress = Progress::new(workflow, json);
    let mut events = std::pin::pin!(client.events(&segment(id), 0));
    // One listener for all turns: none of the signals between two events is lost.
    let mut interrupts = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())?;
    let mut interrupted = false;
    loop {
        let event = tokio::select! {
            biased;
            _ = interrupts.recv() => {
                if interrupted {
                    break;
                }
                interrupted = true;
                progress.say("cancelling; what was bought is kept; once more stops waiting for it");
                client.post(&format!("/api/v1/jobs/{}/cancel", segment(id)), &json!({})).await?;
                continue;
            }
            event = events.next() => event,
        };
        let Some(mut event) = event.transpose()? else {
            break;
        };
        if json {
            // Pictures of what is not done are for eyes, and not in the log.
            if let Some(event) = event
                .as_object_mut()
                .filter(|event| event.contains_key("preview"))
            {
                event.remove("preview");
            }
            print::json_line(&event)?;
        } else {
            progress.take(&event);
        }
    }
    progress.finish();
    Ok(interrupted)
}
/// What a run came to.
async fn summarise(client: &Client, id: &str, out: Option<&Path>) -> anyhow::Result<Value> {
    let by_job = [("job_id", id.to_owned())];
    let job = client.get(&format!("/api/v1/jobs/{}", segment(id)), &[]).await?;
    let mut made = client
        .list("/api/v1/assets", "assets", &by_job, usize::MAX)
        .await?;
    made.sort_by_key(|asset| {
        let number = |key: &str| asset.get(key).and_then(Value::as_i64).unwrap_or(i64::MAX);
        (
            print::text(asset, "node_id"),
            number("index"),
            print::text(asset, "handle"),
            number("element"),
        )
    });
    let generations = client
        .list("/api/v1/generations", "generations", &by_job, usize::MAX)
        .await?;
    let ids: Vec<Value> = generations
        .iter()
        .rev()
        .filter_map(|row| row.get("id").cloned())
        .collect();
    let mut artifacts = Vec::new();
    let mut taken = HashSet::new();
    for asset in &made {
        let path = match out {
            Some(folder) => Value::String(
                export(client, asset, folder, &mut taken)
                    .await?
                    .display()
                    .to_string(),
            ),
            None => asset.get("path").cloned().unwrap_or(Value::Null),
        };
        let field = |key: &str| asset.get(key).cloned().unwrap_or(Value::Null);
        artifacts.push(json!({
            "node_id": field("node_id"), "index": field("index"), "handle": field("handle"),
            "asset_id": field("id"), "content_type": field("content_type"), "path": path,
        }));
    }
    let cost = job.get("cost").cloned().unwrap_or_default();
    let field = |key: &str| job.get(key).cloned().unwrap_or(Value::Null);
    Ok(json!({
        "type": "run_summary", "job_id": id, "workflow_id": field("workflow_id"), "status": field("status"),
        "error": field("error"), "artifacts": artifacts, "generations": ids,
        "cost": {
            "amount": cost.get("amount").cloned().unwrap_or(Value::Null),
            "currency": cost.get("currency").cloned().unwrap_or_else(|| json!("USD")),
            "unpriced": cost.get("unpriced").cloned().unwrap_or_else(|| json!(0)),
        },
    }))
}
/// Copies an asset into a folder under a name for people, which is none of those taken by others of the run.
async fn export(
    client: &Client,
    asset: &Value,
    folder: &Path,
    taken: &mut HashSet<String>,
) -> anyhow::Result<PathBuf> {
    tokio::fs::create_dir_all(folder)
        .await
        .with_context(|| format!("cannot make {}", folder.display()))?;
    let name = print::text(asset, "name");
    let extension = Path::new(&name)
        .extension()
        .map_or_else(|| "bin".to_owned(), |ext| ext.to_string_lossy().into_owned());
    let safe = |text: String| text.replace(|c: char| !c.is_alphanumeric() && c != '-' && c != '_', "_");
    let mut file = format!(
        "{}-{}",
        safe(print::text(asset, "node_id")),
        print::text(asset, "index")
    );
    if asset
        .get("element")
        .and_then(Value::as_i64)
        .is_some_and(|element| element > 0)
    {
        file.push_str(&format!("-{}", print::text(asset, "element")));
    }
    if !taken.insert(format!("{file}.{extension}")) {
        // Another output of the node, or another node of nearly this name.
        let (handle, id) = (print::text(asset, "handle"), print::text(asset, "id"));
        file.push_str(&format!("-{}-{}", safe(handle), safe(id)));
    }
    let path = folder.join(format!("{file}.{extension}"));
    assets::save(client, &print::text(asset, "id"), &path).await?;
    Ok(path)
}
/// The artifacts with their files, and what the run cost.
fn show(summary: &Value) -> anyhow::Result<()> {
    let artifacts = summary
        .get("artifacts")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    if !artifacts.is_empty() {
        let cells = |artifact: &Value| {
            ["node_id", "index", "content_type", "path"]
                .iter()
                .map(|key| print::text(artifact, key))
                .collect()
        };
        print::table(
            &["node", "index", "type", "file"],
            artifacts.iter().map(cells).collect(),
        )?;
    }
    let cost = summary.get("cost").cloned().unwrap_or_default();
    let amount = print::cost(&print::text(&cost, "amount"), &print::text(&cost, "currency"));
    let calls = summary
        .get("generations")
        .and_then(Value::as_array)
        .map_or(0, Vec::len);
    let unpriced = cost.get("unpriced").and_then(Value::as_i64).unwrap_or(0);
    let unpriced = if unpriced > 0 {
        format!(", {unpriced} unpriced")
    } else {
        String::new()
    };
    let status = print::text(summary, "status");
    let id = print::text(summary, "job_id");
    let (made, calls) = (
        print::count(artifacts.len(), "artifact"),
        print::count(calls, "generation"),
    );
    print::line(&format!(
        "{status}: {made}, {calls}, {amount}{unpriced} (job {id})"
    ))?;
    let error = print::text(summary, "error");
    if !error.is_empty() {
        print::aside(&format!("error: {error}"));
    }
    Ok(())
}

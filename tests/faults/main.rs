//! Real processes that are killed: nothing that was committed is lost, rows say what happened, a second run works.

mod adoption;

use std::{collections::BTreeSet, path::Path, time::Duration};

use atelier_common::testkit::until;
use atelier_tests::{
    Server,
    process::{atelier, outcome},
    stack::text,
    workflows::fan_out,
};
use futures_util::StreamExt;
use serde_json::{Value, json};

const SIX: [&str; 6] = ["one", "two", "three", "four", "five", "six"];

async fn rows(server: &Server, plural: &str, job_id: &str) -> anyhow::Result<Vec<Value>> {
    server
        .client()
        .list(
            &format!("/api/v1/{plural}"),
            plural,
            &[("job_id", job_id.to_owned())],
            1_000,
        )
        .await
}
/// Kills a server after so many artifacts of a run, starts another one on its folder, and compares the whole state.
async fn killed_after(artifacts: usize) -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let server = Server::start(data.path(), &[]).await?;
    let graph = fan_out(&SIX, json!({"delay_ms": 120}));
    server
        .client()
        .post("/api/v1/jobs", &json!({"graph": graph, "job_id": "J"}))
        .await?;
    let mut seen = BTreeSet::new();
    if artifacts > 0 {
        let mut events = std::pin::pin!(server.client().events("J", 0));
        while let Some(event) = events.next().await {
            let event = event?;
            if text(&event, "type") == "generation_complete" && text(&event, "node_id") == "g" {
                seen.insert(text(&event["outputs"]["output"], "asset_id").to_owned());
                if seen.len() == artifacts {
                    break;
                }
            }
        }
    } else {
        let client = server.client().clone();
        until(|| async {
            let rows = client
                .list(
                    "/api/v1/generations",
                    "generations",
                    &[("job_id", "J".to_owned())],
                    10,
                )
                .await;
            rows.is_ok_and(|rows| !rows.is_empty())
        })
        .within(Duration::from_secs(30))
        .await;
    }
    server.kill().await?;

    let server = Server::start(data.path(), &[]).await?;
    let client = server.client().clone();
    until(|| async {
        let job = client.get("/api/v1/jobs/J", &[]).await;
        let open = client
            .list(
                "/api/v1/generations",
                "generations",
                &[("status", "running".to_owned())],
                10,
            )
            .await;
        let over = |job: Value| ["completed", "failed"].contains(&text(&job, "status"));
        job.is_ok_and(over) && open.is_ok_and(|open| open.is_empty())
    })
    .within(Duration::from_secs(60))
    .await;
    let job = client.get("/api/v1/jobs/J", &[]).await?;
    let mut replayed = Vec::new();
    let mut events = std::pin::pin!(client.events("J", 0));
    while let Some(event) = events.next().await {
        replayed.push(event?);
    }
    let seqs: Vec<_> = replayed
        .iter()
        .filter_map(|event| event["job_seq"].as_i64())
        .collect();
    let whole: Vec<_> = (1..=i64::try_from(seqs.len())?).collect();
    assert_eq!(seqs, whole, "one sequence over both processes");
    let made: Vec<&Value> = replayed
        .iter()
        .filter(|event| text(event, "type") == "generation_complete" && text(event, "node_id") == "g")
        .collect();
    let indexes: Vec<_> = made.iter().filter_map(|event| event["index"].as_i64()).collect();
    assert_eq!(indexes, (0..i64::try_from(made.len())?).collect::<Vec<_>>());
    let committed: BTreeSet<_> = made
        .iter()
        .map(|event| text(&event["outputs"]["output"], "asset_id").to_owned())
        .collect();
    assert!(seen.is_subset(&committed), "what was shown is still there");

    let ledger = rows(&server, "generations", "J").await?;
    for row in &ledger {
        match text(row, "status") {
            "completed" => assert_eq!(row["asset_ids"].as_array().map(Vec::len), Some(1), "{row}"),
            "interrupted" => assert!(
                row["cost"].is_null() && !row["metadata"]["interrupted_reason"].is_null(),
                "{row}"
            ),
            other => panic!("a row is {other}: {row}"),
        }
    }
    let completed = ledger
        .iter()
        .filter(|row| text(row, "status") == "completed")
        .count();
    assert_eq!(
        (ledger.len(), completed),
        (6, made.len()),
        "one row for each picture: {ledger:?}"
    );
    // What was under way at the provider when both died may be billed: it is not asked for again, and its item is lost.
    let expected = if completed == 6 { "completed" } else { "failed" };
    assert_eq!(text(&job, "status"), expected, "{job}");
    for asset in rows(&server, "assets", "J").await? {
        let bytes = std::fs::read(text(&asset, "path"))?;
        assert_eq!(
            Some(bytes.len()),
            asset["size_bytes"]
                .as_u64()
                .and_then(|size| usize::try_from(size).ok())
        );
        assert!(
            bytes.starts_with(b"\x89PNG") && bytes.ends_with(b"IEND\xaeB`\x82"),
            "no file is half"
        );
    }
    assert!(leftovers(&data.path().join("blobs"))?.is_empty());

    let again = client
        .post(
            "/api/v1/jobs?wait=60",
            &json!({"graph": fan_out(&SIX, json!({}))}),
        )
        .await?;
    assert_eq!(text(&again, "status"), "completed", "a second run works: {again}");
    assert_eq!(rows(&server, "assets", text(&again, "id")).await?.len(), 6);
    server.kill().await
}
/// A command that follows a run while its server goes, well or not, and another one starts in its place.
async fn followed_over(killed: bool) -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let server = Server::start(data.path(), &[]).await?;
    let base = server.client().base().clone();
    let file = data.path().join("six.json");
    std::fs::write(
        &file,
        json!({"graph": fan_out(&SIX, json!({"delay_ms": 300}))}).to_string(),
    )?;
    let arguments = [
        "--server",
        base.as_str(),
        "run",
        &file.display().to_string(),
        "--job-id",
        "J",
        "--json",
    ];
    let command = atelier(data.path(), &arguments)?;
    let restarted = async {
        let client = server.client().clone();
        until(|| async {
            let made = client
                .list("/api/v1/assets", "assets", &[("job_id", "J".to_owned())], 10)
                .await;
            made.is_ok_and(|made| !made.is_empty())
        })
        .within(Duration::from_secs(30))
        .await;
        if killed {
            server.kill().await?;
        } else {
            server.stop().await?;
        }
        Server::start_on(base.port().unwrap_or_default(), data.path(), &[]).await
    };
    let (told, server) = tokio::try_join!(outcome(command), restarted)?;
    let lines = told.lines()?;
    let summary = lines.last().cloned().unwrap_or_default();
    assert_eq!(text(&summary, "type"), "run_summary", "{}", told.stderr);
    // A call whose picture was stored when the process died, and whose row was not closed yet, is lost all the same.
    let ledger = rows(&server, "generations", "J").await?;
    let closed = ledger.iter().filter(|row| text(row, "status") == "completed");
    let made = closed.count();
    let expected = if made == 6 { "completed" } else { "failed" };
    assert_eq!(text(&summary, "status"), expected, "{summary}");
    assert!(
        killed || made == 6,
        "a server that ends well loses nothing: {made}"
    );
    assert_eq!(ledger.len(), 6);
    let stored = rows(&server, "assets", "J").await?.len();
    assert!(stored >= made, "{stored} pictures of {made} calls");
    assert_eq!(summary["artifacts"].as_array().map(Vec::len), Some(stored));
    let numbers: Vec<i64> = lines.iter().filter_map(|line| line["job_seq"].as_i64()).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "nothing twice: {numbers:?}");
    server.kill().await
}
/// Files of the store that are not finished.
fn leftovers(folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Ok(found);
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_dir() {
            found.extend(leftovers(&entry.path())?);
        } else if name.contains("tmp") || name.contains("part") || name.contains('#') {
            found.push(name);
        }
    }
    Ok(found)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_follows_its_run_over_a_crash_of_the_server() -> anyhow::Result<()> {
    followed_over(true).await
}
#[tokio::test(flavor = "multi_thread")]
async fn a_command_follows_its_run_over_a_restart_of_the_server() -> anyhow::Result<()> {
    followed_over(false).await
}
#[tokio::test(flavor = "multi_thread")]
async fn killed_before_the_first_artifact() -> anyhow::Result<()> {
    killed_after(0).await
}
#[tokio::test(flavor = "multi_thread")]
async fn killed_after_the_first_artifact() -> anyhow::Result<()> {
    killed_after(1).await
}
#[tokio::test(flavor = "multi_thread")]
async fn killed_after_the_third_artifact() -> anyhow::Result<()> {
    killed_after(3).await
}
#[tokio::test(flavor = "multi_thread")]
async fn killed_after_the_fifth_artifact() -> anyhow::Result<()> {
    killed_after(5).await
}

//! The command as a stranger types it.

use std::collections::BTreeSet;

use atelier_tests::{Server, atelier, process::outcome, stack::text};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn w_223_w_232_one_command_makes_six_images_and_the_ledger_agrees() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let run = outcome(atelier(
        data.path(),
        &["run", "examples/six-images.json", "--json"],
    )?)
    .await?;
    assert!(run.status.success(), "{}", run.stderr);
    let lines = run.lines()?;
    let made = lines
        .iter()
        .filter(|line| text(line, "type") == "generation_complete" && text(line, "node_id") == "draw");
    assert_eq!(
        made.filter_map(|line| line["index"].as_i64()).collect::<Vec<_>>(),
        [0, 1, 2, 3, 4, 5]
    );
    let summary = lines.last().expect("a summary");
    assert_eq!(
        (text(summary, "type"), text(summary, "status")),
        ("run_summary", "completed")
    );
    assert_eq!(
        summary["cost"],
        json!({"amount": "0.24", "currency": "USD", "unpriced": 0})
    );
    assert_eq!(summary["generations"].as_array().map(Vec::len), Some(6));
    let artifacts = summary["artifacts"].as_array().cloned().unwrap_or_default();
    assert_eq!(artifacts.len(), 6);
    let mut pictures = BTreeSet::new();
    for artifact in &artifacts {
        let bytes = std::fs::read(text(artifact, "path"))?;
        assert!(bytes.starts_with(b"\x89PNG"));
        pictures.insert(bytes);
    }
    assert_eq!(pictures.len(), 6);

    let id = text(summary, "job_id");
    let events = outcome(atelier(data.path(), &["jobs", "events", id])?)
        .await?
        .lines()?;
    assert_eq!(
        events,
        lines[..lines.len() - 1],
        "the events are still there, to the letter"
    );
    let last = events
        .last()
        .and_then(|event| event["job_seq"].as_i64())
        .unwrap_or(0)
        .to_string();
    let nothing = outcome(atelier(data.path(), &["jobs", "events", id, "--after", &last])?).await?;
    assert!(
        nothing.status.success() && nothing.stdout.is_empty(),
        "{}",
        nothing.stderr
    );

    let costs = outcome(atelier(data.path(), &["costs", "--json"])?).await?;
    let costs: Value = serde_json::from_str(&costs.stdout)?;
    assert_eq!(
        costs["total"]["amount"],
        json!("0.24"),
        "to the digit what the run said"
    );
    let rows = outcome(atelier(data.path(), &["generations", "list", "--json"])?)
        .await?
        .lines()?;
    assert_eq!(rows.len(), 6);
    for row in &rows {
        assert_eq!((text(row, "status"), text(row, "cost")), ("completed", "0.04"));
        assert_eq!(row["asset_ids"].as_array().map(Vec::len), Some(1));
    }
    let table = outcome(atelier(data.path(), &["generations", "list"])?).await?;
    assert_eq!(table.stdout.matches("$0.04").count(), 6, "{}", table.stdout);
    Ok(())
}
#[tokio::test(flavor = "multi_thread")]
async fn a_run_uses_the_server_that_has_the_data_folder() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let server = Server::start(data.path(), &[]).await?;
    let run = outcome(atelier(data.path(), &["run", "examples/branch.json"])?).await?;
    assert!(run.status.success(), "{}", run.stderr);
    assert!(run.stdout.contains("$0.04"), "{}", run.stdout);
    let jobs = server.client().list("/api/v1/jobs", "jobs", &[], 10).await?;
    assert_eq!(jobs.len(), 1, "it ran on the server");
    let second = outcome(atelier(data.path(), &["up", "--listen", "127.0.0.1:0"])?).await?;
    assert_eq!(second.status.code(), Some(1));
    assert!(second.stderr.contains("another atelier"), "{}", second.stderr);
    let exported = data.path().join("out");
    let folder = exported.to_string_lossy().into_owned();
    let run = outcome(atelier(
        data.path(),
        &["run", "examples/branch.json", "-o", &folder],
    )?)
    .await?;
    assert!(run.status.success(), "{}", run.stderr);
    assert!(exported.join("draw_day-0.png").exists());
    server.kill().await
}
#[tokio::test(flavor = "multi_thread")]
async fn w_224_w_230_w_231_the_exit_code_is_the_verdict() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let empty = outcome(atelier(data.path(), &["generations", "list"])?).await?;
    assert_eq!(
        (empty.status.code(), empty.stdout.trim()),
        (Some(0), "No generations recorded.")
    );
    let limit = outcome(atelier(data.path(), &["generations", "list", "--limit", "abc"])?).await?;
    assert_eq!(limit.status.code(), Some(1));
    assert!(
        limit.stdout.is_empty() && limit.stderr.contains("Invalid --limit value: abc"),
        "{}",
        limit.stderr
    );
    let missing = outcome(atelier(
        data.path(),
        &["generations", "get", "0199c2f0-6a11-7c3e-9b52-5d1f0c7a9e01"],
    )?)
    .await?;
    assert_eq!(missing.status.code(), Some(1));
    assert!(missing.stderr.contains("was not found"), "{}", missing.stderr);
    let mut failing = atelier(data.path(), &["run", "examples/six-images.json", "--json"])?;
    failing.env("ATELIER_SKETCH_FAIL_MATCH", "woodcut");
    let failing = outcome(failing).await?;
    assert_eq!(failing.status.code(), Some(1));
    let lines = failing.lines()?;
    let summary = lines.last().expect("a summary");
    assert_eq!(text(summary, "status"), "failed");
    assert!(!text(summary, "error").is_empty());
    assert_eq!(
        lines
            .iter()
            .filter(|line| text(line, "type") == "run_summary")
            .count(),
        1
    );
    let no_file = outcome(atelier(data.path(), &["run", "no-such-file.json"])?).await?;
    assert_eq!(no_file.status.code(), Some(1));
    let usage = outcome(atelier(data.path(), &["run"])?).await?;
    assert_eq!(usage.status.code(), Some(2));
    Ok(())
}

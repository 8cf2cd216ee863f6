//! `atelier generate`: one call from the command line, as a stranger types it.

use atelier_tests::{Server, atelier, process::outcome, stack::text};
use serde_json::{Value, json};

fn summary(stdout: &str) -> Value {
    serde_json::from_str(stdout.trim()).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn w_250_two_pictures_are_two_files_and_one_row() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let out = data.path().join("boat.png");
    let out = out.to_string_lossy().into_owned();
    let args = [
        "generate",
        "image",
        "a paper boat",
        "-n",
        "2",
        "--json",
        "-o",
        &out,
    ];
    let made = outcome(atelier(data.path(), &args)?).await?;
    assert!(made.status.success(), "{}{}", made.stdout, made.stderr);
    let summary = summary(&made.stdout);
    assert_eq!(
        (&summary["ok"], text(&summary, "provider")),
        (&json!(true), "sketch")
    );
    assert_eq!(summary["images"].as_array().map(Vec::len), Some(2));
    for name in ["boat-1.png", "boat-2.png"] {
        let bytes = std::fs::read(data.path().join(name))?;
        assert!(bytes.starts_with(b"\x89PNG"), "{name}");
    }
    let rows = outcome(atelier(data.path(), &["generations", "list", "--json"])?)
        .await?
        .lines()?;
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0]["asset_ids"], summary["asset_ids"]);
    let id = text(&summary, "generation_id");
    let row = outcome(atelier(data.path(), &["generations", "get", id, "--json"])?)
        .await?
        .lines()?;
    assert_eq!(text(&row[0]["origin"], "surface"), "cli");
    assert_eq!(text(&row[0], "cost"), "0.08");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_gets_the_ending_of_its_type_and_text_goes_to_stdout() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let server = Server::start(data.path(), &[]).await?;
    for (kind, ending, head) in [
        ("image", "png", &b"\x89PNG"[..]),
        ("speech", "wav", b"RIFF"),
        ("music", "wav", b"RIFF"),
        ("video", "avi", b"RIFF"),
        ("3d", "glb", b"glTF"),
    ] {
        let stem = data.path().join(format!("made-{kind}"));
        let out = stem.to_string_lossy().into_owned();
        let args = ["generate", kind, "a slow morning", "-o", &out];
        let made = outcome(atelier(data.path(), &args)?).await?;
        assert!(made.status.success(), "{kind}: {}", made.stderr);
        let path = stem.with_extension(ending);
        assert_eq!(made.stdout.trim(), path.to_string_lossy(), "{kind}");
        assert!(std::fs::read(path)?.starts_with(head), "{kind}");
        assert!(made.stderr.contains("generation "), "{}", made.stderr);
    }
    let said = outcome(atelier(
        data.path(),
        &["generate", "text", "Say something about rain"],
    )?)
    .await?;
    assert!(
        said.status.success() && !said.stdout.trim().is_empty(),
        "{}",
        said.stderr
    );
    let stdout = outcome(atelier(data.path(), &["generate", "text", "Say it", "-o", "-"])?).await?;
    assert!(
        stdout.status.success() && !stdout.stdout.trim().is_empty(),
        "{}",
        stdout.stderr
    );
    server.kill().await
}

#[tokio::test(flavor = "multi_thread")]
async fn w_252_w_254_w_255_what_fails_says_so_and_listing_makes_nothing() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let missing = outcome(atelier(
        data.path(),
        &["generate", "image", "at night", "--image", "missing.png"],
    )?)
    .await?;
    assert_eq!(missing.status.code(), Some(1));
    assert!(missing.stderr.contains("missing.png"), "{}", missing.stderr);
    let listed = outcome(atelier(data.path(), &["generate", "image", "--list-models"])?).await?;
    assert!(
        listed.status.success() && listed.stdout.contains("sketch-image"),
        "{}",
        listed.stdout
    );
    let background = outcome(atelier(
        data.path(),
        &["generate", "image", "a heron", "--background"],
    )?)
    .await?;
    assert_eq!(background.status.code(), Some(1));
    assert!(
        background.stderr.contains("server that is up"),
        "{}",
        background.stderr
    );
    let none = outcome(atelier(data.path(), &["generations", "list"])?).await?;
    assert_eq!(none.stdout.trim(), "No generations recorded.");

    let mut failing = atelier(data.path(), &["generate", "image", "a storm", "--json"])?;
    failing.env("ATELIER_SKETCH_FAIL_MATCH", "storm");
    let failing = outcome(failing).await?;
    assert_eq!(failing.status.code(), Some(1));
    let told = summary(&failing.stdout);
    assert_eq!(told["ok"], json!(false));
    assert!(!text(&told, "error").is_empty());
    let rows = outcome(atelier(data.path(), &["generations", "list", "--json"])?)
        .await?
        .lines()?;
    assert_eq!((rows.len(), text(&rows[0], "status")), (1, "failed"));
    let usage = outcome(atelier(data.path(), &["generate", "image"])?).await?;
    assert_eq!(usage.status.code(), Some(2));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn one_in_the_background_goes_on_without_its_caller() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let server = Server::start(data.path(), &[]).await?;
    let args = [
        "generate",
        "video",
        "a heron",
        "--background",
        "--idempotency-key",
        "once",
    ];
    let first = outcome(atelier(data.path(), &args)?).await?;
    assert!(first.status.success(), "{}", first.stderr);
    let second = outcome(atelier(data.path(), &args)?).await?;
    assert_eq!(first.stdout, second.stdout, "the same key is the same call");
    let path = format!("/api/v1/generations/{}", first.stdout.trim());
    let client = server.client();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        let row = client.get(&path, &[]).await?;
        match text(&row, "status") {
            "completed" => break,
            "running" if std::time::Instant::now() < deadline => {
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
            other => anyhow::bail!("it is {other}: {row}"),
        }
    }
    server.kill().await
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_cancels_the_call() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let server = Server::start(data.path(), &[]).await?;
    let args = [
        "generate",
        "image",
        "a tree",
        "--param",
        "delay_ms=60000",
        "--json",
    ];
    let child = atelier(data.path(), &args)?
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()?;
    let pid = child.id().unwrap_or_default().to_string();
    let client = server.client();
    let running = async || {
        let rows = client
            .list("/api/v1/generations", "generations", &[], 5)
            .await
            .ok()?;
        rows.into_iter().find(|row| text(row, "status") == "running")
    };
    let row = atelier_common::testkit::until(running)
        .within(std::time::Duration::from_secs(30))
        .await;
    let signalled = std::process::Command::new("kill").args(["-INT", &pid]).status()?;
    assert!(signalled.success());
    let ended = child.wait_with_output().await?;
    assert_eq!(
        ended.status.code(),
        Some(130),
        "{}",
        String::from_utf8_lossy(&ended.stderr)
    );
    let row = client
        .get(&format!("/api/v1/generations/{}", text(&row, "id")), &[])
        .await?;
    assert_eq!(text(&row, "status"), "cancelled");
    server.kill().await
}

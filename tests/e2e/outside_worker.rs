//! A worker in Python serves nodes to `atelier up`, dies in the middle of a run and comes back.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, ensure};
use atelier_common::{
    identity::{Caller, IDENTITY, Signer},
    testkit::until,
};
use atelier_tests::{
    TestStack,
    process::root,
    stack::{of_type, text},
};
use serde_json::{Value, json};
use tokio::process::{Child, Command};

/// Python with grpcio, made by the test script.
fn python() -> Option<PathBuf> {
    let here = root().join(".tools/worker/bin/python");
    let named = std::env::var_os("ATELIER_WORKER_PYTHON").map(PathBuf::from);
    let found = named.unwrap_or(here);
    if found.exists() {
        return Some(found);
    }
    assert!(
        std::env::var_os("CI").is_none(),
        "Python with grpcio is not installed"
    );
    println!("Python with grpcio is not installed: nothing is served");
    None
}
fn worker(python: &Path, server: &str, file: &Path, environment: &[(&str, &Path)]) -> anyhow::Result<Child> {
    let mut command = Command::new(python);
    command
        .args(["-m", "atelier_worker"])
        .arg(file)
        .args(["--server", server, "--instance", "worker-1", "--name", "partner"])
        .env("PYTHONPATH", root().join("workers/python"))
        .envs(environment.iter().copied())
        .kill_on_drop(true)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::inherit());
    Ok(command.spawn()?)
}
async fn stack() -> anyhow::Result<(TestStack, String)> {
    let stack = TestStack::with(&[("kernel.worker_listen", "127.0.0.1:0")]).await?;
    let address = stack
        .stack()?
        .workers()
        .context("workers have an address")?
        .to_string();
    Ok((stack, address))
}
async fn served(stack: &TestStack, node_type: &str) {
    until(|| async {
        let query = [("namespace", "partner".to_owned())];
        let Ok(types) = stack.client().get("/api/v1/nodes", &query).await else {
            return false;
        };
        let types = types["nodes"].as_array().cloned().unwrap_or_default();
        types.iter().any(|ty| text(ty, "node_type") == node_type)
    })
    .within(Duration::from_secs(60))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_worker_draws_and_reads_a_stream() -> anyhow::Result<()> {
    let Some(python) = python() else { return Ok(()) };
    let (stack, address) = stack().await?;
    let mut process = worker(&python, &address, &root().join("examples/worker/nodes.py"), &[])?;
    served(&stack, "partner.image.Gradient").await;
    let example = std::fs::read_to_string(root().join("examples/worker/gradient.json"))?;
    let job = stack.run(&serde_json::from_str(&example)?, json!({})).await?;
    assert_eq!(text(&job, "status"), "completed", "{job}");
    let assets = stack.of_job("assets", text(&job, "id")).await?;
    assert_eq!(assets.len(), 3, "each marked yield is an artifact of its own");
    assert!(
        assets
            .iter()
            .all(|asset| text(asset, "content_type") == "image/png")
    );

    let loud = json!({"graph": {"nodes": [
        {"id": "list", "type": "nodetool.constant.List", "properties": {"value": ["a", "", "b"]}},
        {"id": "each", "type": "nodetool.control.ForEach", "properties": {}},
        {"id": "loud", "type": "partner.text.Loud", "properties": {"mark": "?"}},
        {"id": "out", "type": "nodetool.output.Output", "properties": {"name": "out"}},
    ], "edges": [
        {"id": "e1", "source": "list", "sourceHandle": "output", "target": "each", "targetHandle": "input_list"},
        {"id": "e2", "source": "each", "sourceHandle": "output", "target": "loud", "targetHandle": "texts"},
        {"id": "e3", "source": "loud", "sourceHandle": "output", "target": "out", "targetHandle": "value"},
    ]}});
    let job = stack.run(&loud, json!({})).await?;
    assert_eq!(text(&job, "status"), "completed", "{job}");
    assert_eq!(job["outputs"]["out"], json!(["A?", "B?"]), "{job}");
    // A worker that is told to stop says goodbye and leaves.
    let pid = process.id().context("it runs")?.to_string();
    ensure!(
        Command::new("kill")
            .args(["-TERM", &pid])
            .status()
            .await?
            .success()
    );
    let status = tokio::time::timeout(Duration::from_secs(30), process.wait()).await??;
    assert!(status.success(), "{status}");
    stack.stop().await;
    Ok(())
}
/// Notes each call in a file, and waits for another file before it answers the third item.
const NODES: &str = r#"
import os, pathlib, time
from atelier_worker import Context, node

FOLDER = pathlib.Path(os.environ["WORKER_TEST"])

@node("partner.test.Slow", retry_safe=False)
def slow(ctx: Context, value: int = 0) -> int:
    with open(FOLDER / "calls", "a") as calls:
        calls.write(f"{value}\n")
    if value == 3:
        while not (FOLDER / "go").exists():
            time.sleep(0.01)
    return value * 10
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_worker_comes_back_and_nothing_that_was_committed_is_made_twice() -> anyhow::Result<()> {
    let Some(python) = python() else { return Ok(()) };
    let (stack, address) = stack().await?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("slow_nodes.py");
    std::fs::write(&file, NODES)?;
    let environment = [("WORKER_TEST", folder.path())];
    let calls = || {
        let text = std::fs::read_to_string(folder.path().join("calls")).unwrap_or_default();
        text.lines().map(ToOwned::to_owned).collect::<Vec<_>>()
    };
    let mut process = worker(&python, &address, &file, &environment)?;
    served(&stack, "partner.test.Slow").await;
    let graph = json!({"graph": {"nodes": [
        {"id": "list", "type": "nodetool.constant.List", "properties": {"value": [1, 2, 3, 4]}},
        {"id": "each", "type": "nodetool.control.ForEach", "properties": {}},
        {"id": "slow", "type": "partner.test.Slow", "properties": {}},
        {"id": "out", "type": "nodetool.output.Output", "properties": {"name": "out"}},
    ], "edges": [
        {"id": "e1", "source": "list", "sourceHandle": "output", "target": "each", "targetHandle": "input_list"},
        {"id": "e2", "source": "each", "sourceHandle": "output", "target": "slow", "targetHandle": "value"},
        {"id": "e3", "source": "slow", "sourceHandle": "output", "target": "out", "targetHandle": "value"},
    ]}});
    let run = stack.run(&graph, json!({}));
    let crash = async {
        until(|| async { calls().len() == 3 })
            .within(Duration::from_secs(60))
            .await;
        process.start_kill()?;
        process.wait().await?;
        std::fs::write(folder.path().join("go"), "")?;
        worker(&python, &address, &file, &environment)
    };
    let (job, again) = tokio::join!(run, crash);
    let (job, _again) = (job?, again?);
    assert_eq!(text(&job, "status"), "completed", "{job}");
    assert_eq!(job["outputs"]["out"], json!([10, 20, 30, 40]), "{job}");
    assert_eq!(
        calls(),
        ["1", "2", "3", "3", "4"],
        "only what had no outcome was called again"
    );
    let frames = stack.frames(text(&job, "id")).await?;
    let made: Vec<&Value> = of_type(&frames, "generation_complete")
        .into_iter()
        .filter(|frame| text(frame, "node_id") == "slow")
        .collect();
    let indexes: Vec<Option<i64>> = made.iter().map(|frame| frame["index"].as_i64()).collect();
    assert_eq!(indexes, [Some(0), Some(1), Some(2), Some(3)]);
    stack.stop().await;
    Ok(())
}
#[tokio::test(flavor = "multi_thread")]
async fn without_authentication_workers_connect_on_the_loopback_only() -> anyhow::Result<()> {
    let refused = TestStack::with(&[("kernel.worker_listen", "0.0.0.0:0")]).await;
    let error = refused.err().context("it started")?.to_string();
    assert!(error.contains("loopback"), "{error}");
    Ok(())
}
#[tokio::test(flavor = "multi_thread")]
async fn services_believe_the_identity_that_the_package_signs() -> anyhow::Result<()> {
    let Some(python) = python() else { return Ok(()) };
    let secret = "a secret of some length";
    let program = format!("from atelier_worker.identity import sign; print(sign({secret:?}, '42'))");
    let output = Command::new(python)
        .args(["-c", &program])
        .env("PYTHONPATH", root().join("workers/python"))
        .output()
        .await?;
    let signed = String::from_utf8(output.stdout)?;
    let mut metadata = tonic::metadata::MetadataMap::new();
    metadata.insert(IDENTITY, signed.trim().parse()?);
    let caller = Signer::new(secret.into()).verify(&metadata)?;
    assert_eq!(caller, Caller::new("42", ["*"]));
    Ok(())
}
/// Tests of the Python package, which are written in Python.
#[tokio::test(flavor = "multi_thread")]
async fn the_python_package_agrees_with_the_contracts_and_passes_its_own_tests() -> anyhow::Result<()> {
    let Some(python) = python() else { return Ok(()) };
    let folder = root().join("workers/python");
    for arguments in [
        &["generate.py", "--check"][..],
        &["-m", "unittest", "discover", "-s", "tests"],
    ] {
        let output = Command::new(&python)
            .args(arguments)
            .current_dir(&folder)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .output()
            .await?;
        let said =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{arguments:?}: {said}");
    }
    Ok(())
}

//! Readers that are not ours agree with what we send.

use std::{path::PathBuf, process::Stdio};

use atelier_tests::{
    Socket, TestStack,
    process::root,
    stack::text,
    workflows::{example, fan_out},
};
use serde_json::json;
use tokio::io::AsyncWriteExt;

/// Python with the published packages, made by the test script.
fn python() -> Option<PathBuf> {
    let python = std::env::var_os("ATELIER_PYTHON")
        .map_or_else(|| root().join(".tools/python/bin/python"), PathBuf::from);
    python.exists().then_some(python)
}

#[tokio::test(flavor = "multi_thread")]
async fn w_013_w_310_w_311_published_message_types_accept_our_frames() -> anyhow::Result<()> {
    let Some(python) = python() else {
        assert!(
            std::env::var_os("CI").is_none(),
            "the published message types are not installed"
        );
        println!("the published message types are not installed: not compared");
        return Ok(());
    };
    let stack = TestStack::with(&[("provider.sketch.fail_match", "bad apple")]).await?;
    let graphs = [
        (
            "six",
            fan_out(
                &["one", "two", "three", "four", "five", "six"],
                json!({"progress": 3}),
            ),
        ),
        ("fails", fan_out(&["one", "bad apple"], json!({}))),
        ("example", example("text-to-speech")?["graph"].clone()),
    ];
    let mut lines = String::new();
    for (job_id, graph) in graphs {
        let mut socket = Socket::binary(stack.client().base()).await?;
        socket
            .send(&json!({"command": "run_job", "data": {"job_id": job_id, "graph": graph}}))
            .await?;
        for frame in socket.frames_of(job_id).await? {
            if text(&frame, "type") == "edge_update" {
                assert_eq!(frame["workflow_id"], json!(""), "readers want a text there");
            }
            lines.push_str(&frame.to_string());
            lines.push('\n');
        }
    }
    let mut child = tokio::process::Command::new(python)
        .arg(root().join("tests/clients/validate_frames.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()?;
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(lines.as_bytes()).await?;
    drop(stdin);
    let output = child.wait_with_output().await?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}");
    println!("{said}");
    stack.stop().await;
    Ok(())
}

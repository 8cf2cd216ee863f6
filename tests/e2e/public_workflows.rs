//! Workflow files of the field run as they are, when they are beside the project.

use std::{fs, path::PathBuf};

use atelier_tests::{
    TestStack,
    process::root,
    stack::{of_type, text},
};
use serde_json::{Value, json};

/// Files that need nothing but node types that are built in.
const FILES: &[&str] = &[
    "AI Workflows on Reddit",
    "agent_openai_basic_cli",
    "Autonomous Research Agent",
    "Hacker News Agent",
    "hello_reroute",
    "if_true_route",
    "Image To Audio Story",
    "Instagram Scraper",
    "Learning Path Generator",
    "Movie Posters",
    "Product Description Generator",
    "Reddit Scraper",
    "Research Paper Summarizer",
    "Social Media Calendar Filler",
    "Wikipedia Agent",
];

#[tokio::test(flavor = "multi_thread")]
async fn public_workflow_files_run_over_the_socket() -> anyhow::Result<()> {
    let folder = std::env::var_os("ATELIER_WORKFLOWS")
        .map_or_else(|| root().join("../shared/workflows"), PathBuf::from);
    if !folder.exists() {
        println!("no public workflow files beside the project");
        return Ok(());
    }
    let stack = TestStack::start().await?;
    for name in FILES {
        let file: Value = serde_json::from_slice(&fs::read(folder.join(name).with_extension("json"))?)?;
        let graph = file.get("graph").unwrap_or(&file);
        let params = file.get("params").cloned().unwrap_or_else(|| json!({}));
        let mut socket = stack.socket().await?;
        socket
            .send(&json!({"command": "run_job", "data": {"job_id": name, "graph": graph, "params": params}}))
            .await?;
        let frames = socket.frames_of(name).await?;
        let last = frames.last().expect("frames");
        assert_eq!(text(last, "status"), "completed", "{name}: {last}");
        let nodes = of_type(&frames, "node_update");
        for frame in nodes.iter().filter(|frame| text(frame, "status") == "running") {
            let ends = nodes.iter().filter(|other| {
                text(other, "node_id") == text(frame, "node_id") && text(other, "status") == "completed"
            });
            assert_eq!(ends.count(), 1, "{name}: {frame}");
        }
        let mut counts = std::collections::BTreeMap::<&str, Vec<i64>>::new();
        for frame in of_type(&frames, "generation_complete") {
            counts
                .entry(text(frame, "node_id"))
                .or_default()
                .push(frame["index"].as_i64().unwrap_or(-1));
        }
        for (node, indexes) in counts {
            assert_eq!(
                indexes,
                (0..i64::try_from(indexes.len())?).collect::<Vec<_>>(),
                "{name}: {node}"
            );
        }
    }
    stack.stop().await;
    Ok(())
}

//! Every workflow file of the field that lies beside the project: what is wrong with it, or how its run ends.
//!
//! A file whose node types are all here runs to its end with the offline provider, and makes as many artifacts as the table
//! says. A file that needs what no process can have by itself (a mail account, a search engine) says so in one sentence.

use std::{fs, path::PathBuf, time::Duration};

use atelier_tests::{TestStack, process::root, stack::text};
use serde_json::{Value, json};

/// How the run of a file ends.
#[derive(Debug, Clone, PartialEq)]
enum End {
    /// All is made; so many artifacts.
    Completed(i64),
    /// The run fails with this code.
    Failed(&'static str),
    /// The graph is refused; the first code.
    Refused(&'static str),
    /// It fetches from the internet, which a machine may not reach.
    Fetches,
}
use End::{Completed, Failed, Fetches, Refused};

/// A code that is no name of ours is told as it is.
fn known(code: &str) -> &'static str {
    const CODES: &[&str] = &[
        "missing_connector",
        "graph.unknown_type",
        "graph.unknown_output",
        "graph.type_mismatch",
        "input.missing",
        "input.required",
        "input.value",
        "command.off",
        "http.failed",
        "node.failed",
        "",
    ];
    CODES
        .iter()
        .find(|own| **own == code)
        .copied()
        .unwrap_or("another")
}

fn sound() -> Value {
    // A WAV file of 16 silent samples.
    json!({"type": "audio", "uri": "data:audio/wav;base64,UklGRkQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YSAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=="})
}
fn picture() -> Value {
    json!({"type": "image", "uri": "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="})
}

/// File, parameters beside those that it has itself, how it ends.
fn table() -> Vec<(&'static str, Value, End)> {
    let none = || json!({});
    vec![
        ("AI Workflows on Reddit", none(), Completed(2)),
        ("Agent Google Search", none(), Refused("graph.unknown_output")),
        ("Autonomous Research Agent", none(), Completed(3)),
        ("Categorize Mails", none(), Failed("missing_connector")),
        ("Chat with docs", none(), Failed("missing_connector")),
        ("ChromaDB Research Agent", none(), Failed("missing_connector")),
        (
            "Claude Agent with Node Tools",
            none(),
            Failed("missing_connector"),
        ),
        ("Competitive Analysis", none(), Refused("graph.unknown_output")),
        ("Conditional Logic Engine", none(), Completed(11)),
        ("Data Generator", none(), Completed(2)),
        ("Data Visualization Pipeline", none(), Fetches),
        ("Fetch Papers", none(), Fetches),
        ("Game Encounter Planner Agent", none(), Completed(8)),
        ("Hacker News Agent", none(), Completed(3)),
        ("Image To Audio Story", none(), Completed(2)),
        ("Image to Video Animation", none(), Completed(3)),
        ("Instagram Scraper", none(), Completed(3)),
        ("Learning Path Generator", none(), Completed(3)),
        ("Movie Posters", none(), Completed(6)),
        ("Photo Enhancement Suite", none(), Failed("input.value")),
        ("Pokemon Maker", none(), Completed(5)),
        ("Product Description Generator", none(), Completed(5)),
        (
            "Product Mockup Generator",
            json!({"product_image": picture()}),
            Completed(8),
        ),
        ("Reddit Scraper", none(), Completed(3)),
        ("Research Paper Summarizer", none(), Completed(5)),
        ("Social Media Calendar Filler", none(), Completed(8)),
        ("Story to Video Generator", none(), Completed(3)),
        ("Summarize Audio", json!({"audio": sound()}), Completed(2)),
        ("Summarize Mails", none(), Failed("missing_connector")),
        ("Transcribe Audio", json!({"audio": sound()}), Completed(1)),
        ("Wikipedia Agent", none(), Completed(2)),
        (
            "YouTube Research with Claude Agent",
            none(),
            Failed("missing_connector"),
        ),
        ("agent_openai_basic_cli", none(), Completed(2)),
        ("agent_openai_with_history_cli", none(), Completed(2)),
        ("agent_openai_with_messages_cli", none(), Completed(2)),
        ("agent_openai_with_thread_cli", none(), Completed(4)),
        ("hello_input_output_cli", json!({"text": "hello"}), Completed(1)),
        ("hello_reroute", none(), Completed(1)),
        ("if_branch_cli", none(), Refused("input.required")),
        ("if_true_route", none(), Completed(2)),
        ("import_csv_aggregate_cli", none(), Completed(3)),
        ("import_csv_select_cli", none(), Completed(3)),
        ("lib_librosa_mfcc_cli", none(), Refused("input.required")),
        (
            "lib_pedalboard_reverb_cli",
            json!({"audio_path": sound()}),
            Completed(2),
        ),
        ("run_shell_cli", none(), Failed("command.off")),
        ("wait_node_cli", none(), Completed(2)),
    ]
}

fn folder() -> Option<PathBuf> {
    let folder = std::env::var_os("ATELIER_WORKFLOWS")
        .map_or_else(|| root().join("../shared/workflows"), PathBuf::from);
    folder.exists().then_some(folder)
}

async fn end(stack: &TestStack, file: &Value, extra: &Value) -> anyhow::Result<(End, String)> {
    let graph = file.get("graph").unwrap_or(file);
    let mut params = file
        .get("params")
        .filter(|params| params.is_object())
        .cloned()
        .unwrap_or_else(|| json!({}));
    for (name, value) in extra.as_object().into_iter().flatten() {
        params[name] = value.clone();
    }
    let body = json!({"graph": graph, "params": params});
    let checked = stack.client().post("/api/v1/check", &body).await?;
    if checked["ok"] != true {
        let issue = &checked["issues"][0];
        return Ok((Refused(known(text(issue, "code"))), checked["issues"].to_string()));
    }
    let run = stack.client().post("/api/v1/jobs?wait=120", &body);
    let job = tokio::time::timeout(Duration::from_secs(150), run).await??;
    let told = format!(
        "{} {} {}",
        text(&job, "status"),
        text(&job, "error_code"),
        text(&job, "error")
    );
    let end = match text(&job, "status") {
        "completed" => Completed(job["artifact_count"].as_i64().unwrap_or(-1)),
        "failed" => {
            // The run says which node failed; the node says why.
            let frames = stack.frames(text(&job, "id")).await?;
            let errors = frames.iter().filter(|frame| text(frame, "status") == "error");
            let codes: Vec<&str> = errors.map(|frame| text(&frame["error_detail"], "code")).collect();
            let first = codes.into_iter().find(|code| !code.is_empty());
            Failed(known(first.unwrap_or_else(|| text(&job, "error_code"))))
        }
        other => anyhow::bail!("the run hangs or is {other}: {told}"),
    };
    Ok((end, told))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_public_workflow_file_ends_as_the_table_says() -> anyhow::Result<()> {
    let Some(folder) = folder() else {
        println!("no public workflow files beside the project");
        return Ok(());
    };
    let stack = TestStack::start().await?;
    let table = table();
    let mut wrong = Vec::new();
    for (name, params, expected) in &table {
        let file: Value = serde_json::from_slice(&fs::read(folder.join(name).with_extension("json"))?)?;
        match end(&stack, &file, params).await {
            Ok((ended, _)) if ended == *expected => {}
            Ok((Completed(_) | Failed("http.failed"), _)) if *expected == Fetches => {}
            Ok((ended, told)) => wrong.push(format!("{name}: {ended:?} instead of {expected:?}: {told}")),
            Err(error) => wrong.push(format!("{name}: {error:#}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let files = fs::read_dir(&folder)?.filter_map(Result::ok).count();
    assert_eq!(table.len(), files, "every file is in the table");
    stack.stop().await;
    Ok(())
}

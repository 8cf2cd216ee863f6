//! One idea becomes six images: six artifacts, six rows, six assets, one total.

use std::collections::BTreeSet;

use atelier_tests::{
    TestStack,
    stack::{of_type, text},
    workflows::example,
};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn w_071_w_081_g_001_six_images_are_kept_accounted_for_and_numbered() -> anyhow::Result<()> {
    let stack = TestStack::start().await?;
    let job = stack
        .run(&example("six-images")?, json!({"idea": "a paper boat"}))
        .await?;
    assert_eq!(text(&job, "status"), "completed", "{job}");
    let id = text(&job, "id");
    assert_eq!(
        (text(&job, "workflow_id"), text(&job, "name")),
        ("six-images", "Six images from one idea")
    );

    let frames = stack.frames(id).await?;
    let artifacts: Vec<_> = of_type(&frames, "generation_complete")
        .into_iter()
        .filter(|frame| text(frame, "node_id") == "draw")
        .collect();
    let indexes: Vec<_> = artifacts.iter().map(|frame| frame["index"].as_i64()).collect();
    assert_eq!(indexes, (0..6).map(Some).collect::<Vec<_>>());
    let named: BTreeSet<_> = artifacts
        .iter()
        .map(|frame| text(&frame["outputs"]["output"], "asset_id"))
        .collect();
    assert_eq!(named.len(), 6, "each artifact names an asset of its own");
    let ended: Vec<_> = of_type(&frames, "node_update")
        .into_iter()
        .filter(|frame| text(frame, "node_id") == "draw" && text(frame, "status") == "completed")
        .collect();
    assert_eq!(ended.len(), 1);
    let terminal: Vec<_> = of_type(&frames, "job_update")
        .into_iter()
        .filter(|frame| text(frame, "status") == "completed")
        .collect();
    assert_eq!(terminal.len(), 1);
    assert_eq!(
        terminal[0]["result"]["outputs"]["pictures"]
            .as_array()
            .map(Vec::len),
        Some(6)
    );

    let rows = stack.of_job("generations", id).await?;
    assert_eq!(rows.len(), 6);
    for row in &rows {
        assert_eq!(
            (text(row, "status"), text(row, "cost"), text(row, "currency")),
            ("completed", "0.04", "USD")
        );
        assert_eq!(row["asset_ids"].as_array().map(Vec::len), Some(1));
        assert!(!text(row, "provider_request_id").is_empty());
    }
    let of_rows: BTreeSet<_> = rows
        .iter()
        .filter_map(|row| row["asset_ids"][0].as_str())
        .collect();
    assert_eq!(of_rows, named, "rows and artifacts name the same assets");

    let assets = stack.of_job("assets", id).await?;
    assert_eq!(assets.len(), 6);
    let digests: BTreeSet<_> = assets.iter().map(|asset| text(asset, "digest")).collect();
    assert_eq!(digests.len(), 6, "six different pictures");
    let slots: BTreeSet<_> = assets
        .iter()
        .filter_map(|asset| asset["index"].as_i64())
        .collect();
    assert_eq!(slots, (0..6).collect());
    for asset in &assets {
        assert_eq!(
            asset["generation_ids"].as_array().map(Vec::len),
            Some(1),
            "{asset}"
        );
        let bytes = std::fs::read(text(asset, "path"))?;
        assert!(bytes.starts_with(b"\x89PNG\r\n\x1a\n"));
    }
    let costs = stack.client().get("/api/v1/costs", &[]).await?;
    assert_eq!(costs["total"]["amount"], json!("0.24"));
    assert_eq!(job["cost"]["amount"], json!("0.24"));
    stack.stop().await;
    Ok(())
}
#[tokio::test(flavor = "multi_thread")]
async fn the_other_examples_run() -> anyhow::Result<()> {
    let stack = TestStack::start().await?;
    let speech = stack.run(&example("text-to-speech")?, json!({})).await?;
    assert_eq!(text(&speech, "status"), "completed", "{speech}");
    let assets = stack.of_job("assets", text(&speech, "id")).await?;
    let kinds: BTreeSet<_> = assets.iter().map(|asset| text(asset, "content_type")).collect();
    assert!(kinds.iter().any(|kind| kind.starts_with("audio/")), "{kinds:?}");

    for (night, taken, other) in [(true, "night", "day"), (false, "day", "night")] {
        let job = stack.run(&example("branch")?, json!({"night": night})).await?;
        assert_eq!(text(&job, "status"), "completed", "{job}");
        assert_eq!(job["outputs"][taken].as_array().map(Vec::len), Some(1));
        assert_eq!(job["outputs"][other], json!([]));
        let rows = stack.of_job("generations", text(&job, "id")).await?;
        assert_eq!(rows.len(), 1, "the way that is not taken costs nothing");
    }
    stack.stop().await;
    Ok(())
}
#[tokio::test(flavor = "multi_thread")]
async fn w_136_the_prompt_and_its_making_are_with_the_asset() -> anyhow::Result<()> {
    let stack = TestStack::start().await?;
    let job = stack.run(&example("six-images")?, json!({})).await?;
    let assets = stack.of_job("assets", text(&job, "id")).await?;
    let prompts: BTreeSet<String> = assets
        .iter()
        .map(|asset| {
            asset["metadata"]["prompt"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        })
        .collect();
    assert_eq!(prompts.len(), 6);
    assert!(
        prompts.iter().all(|prompt| prompt.contains("lighthouse")),
        "{prompts:?}"
    );
    let known = |asset: &Value, key: &str| !asset["metadata"][key].is_null();
    assert!(
        assets
            .iter()
            .all(|asset| known(asset, "generation_index") && known(asset, "generation_ids"))
    );
    stack.stop().await;
    Ok(())
}

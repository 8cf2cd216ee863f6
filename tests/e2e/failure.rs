//! A provider that fails on item 3 of 6: the other five are kept, the failure has a row with its reason and its charge.

use atelier_tests::{
    TestStack,
    stack::{of_type, text},
    workflows::fan_out,
};
use serde_json::json;

const SIX: [&str; 6] = ["one", "two", "bad apple", "four", "five", "six"];

#[tokio::test(flavor = "multi_thread")]
async fn w_075_f_003_g_002_a_failing_item_is_lost_alone_and_the_run_says_so() -> anyhow::Result<()> {
    let stack = TestStack::with(&[("provider.sketch.fail_match", "bad apple")]).await?;
    let job = stack.run(&fan_out(&SIX, json!({})), json!({})).await?;
    assert_eq!(text(&job, "status"), "failed");
    assert!(
        text(&job, "error").starts_with("g: item 2: "),
        "the node, the item and the cause: {job}"
    );
    let id = text(&job, "id");
    let frames = stack.frames(id).await?;
    let made: Vec<_> = of_type(&frames, "generation_complete")
        .into_iter()
        .filter(|frame| text(frame, "node_id") == "g")
        .filter_map(|frame| frame["index"].as_i64())
        .collect();
    assert_eq!(made, [0, 1, 2, 3, 4]);
    let nodes = of_type(&frames, "node_update");
    assert!(
        nodes
            .iter()
            .any(|frame| text(frame, "node_id") == "g" && text(frame, "status") == "error")
    );
    assert!(
        !nodes
            .iter()
            .any(|frame| text(frame, "node_id") == "g" && text(frame, "status") == "completed")
    );
    let rows = stack.of_job("generations", id).await?;
    let failed: Vec<_> = rows
        .iter()
        .filter(|row| text(row, "status") == "failed")
        .collect();
    assert_eq!((rows.len(), failed.len()), (6, 1));
    assert_eq!(stack.of_job("assets", id).await?.len(), 5);
    assert!(!text(failed[0], "error").is_empty());
    assert_eq!(
        text(&failed[0]["params"], "prompt"),
        "bad apple",
        "what was asked can still be read"
    );
    assert_eq!(failed[0]["cost"], json!(null), "unknown is not zero");
    stack.stop().await;
    Ok(())
}
#[tokio::test(flavor = "multi_thread")]
async fn g_003_a_failure_that_is_billed_is_counted() -> anyhow::Result<()> {
    let overrides = [
        ("provider.sketch.fail_match", "bad apple"),
        ("provider.sketch.bill_on_failure", "true"),
    ];
    let stack = TestStack::with(&overrides).await?;
    let job = stack.run(&fan_out(&SIX, json!({})), json!({})).await?;
    assert_eq!(text(&job, "status"), "failed");
    let rows = stack.of_job("generations", text(&job, "id")).await?;
    let failed = rows
        .iter()
        .find(|row| text(row, "status") == "failed")
        .expect("a failed row");
    assert_eq!(
        (text(failed, "cost"), text(failed, "price_source")),
        ("0.04", "provider")
    );
    let costs = stack.client().get("/api/v1/costs", &[]).await?;
    assert_eq!(costs["total"]["amount"], json!("0.24"));
    stack.stop().await;
    Ok(())
}

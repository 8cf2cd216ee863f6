//! After a restart all of it is still there.

use atelier_tests::{TestStack, stack::text, workflows::example};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn runs_rows_assets_and_events_outlive_the_process() -> anyhow::Result<()> {
    let stack = TestStack::start().await?;
    let job = stack.run(&example("six-images")?, json!({})).await?;
    let id = text(&job, "id").to_owned();
    let frames = stack.frames(&id).await?;
    let stack = stack.restart().await?;
    let again = stack.client().get(&format!("/api/v1/jobs/{id}"), &[]).await?;
    assert_eq!(text(&again, "status"), "completed");
    assert_eq!(again["cost"]["amount"], json!("0.24"));
    assert_eq!(
        stack.frames(&id).await?,
        frames,
        "the events are the same, to the letter"
    );
    assert_eq!(stack.of_job("generations", &id).await?.len(), 6);
    let assets = stack.of_job("assets", &id).await?;
    assert_eq!(assets.len(), 6);
    let url = stack.client().base().join(text(&assets[0], "url"))?;
    assert!(reqwest::get(url).await?.bytes().await?.starts_with(b"\x89PNG"));
    let second = stack.run(&example("six-images")?, json!({})).await?;
    assert_eq!(text(&second, "status"), "completed", "a second run works");
    stack.stop().await;
    Ok(())
}

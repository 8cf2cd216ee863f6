//! A file that names a provider which is not configured.

use atelier_tests::{
    TestStack,
    stack::{of_type, text},
    workflows::fan_out,
};
use serde_json::json;

fn names_another() -> serde_json::Value {
    fan_out(
        &["one"],
        json!({"model": {"type": "image_model", "provider": "openai", "id": "gpt-image-1"}}),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_new_installation_the_offline_provider_stands_in_and_says_so() -> anyhow::Result<()> {
    let stack = TestStack::start().await?;
    let job = stack.run(&names_another(), json!({})).await?;
    assert_eq!(text(&job, "status"), "completed", "{job}");
    let rows = stack.of_job("generations", text(&job, "id")).await?;
    assert_eq!(
        (text(&rows[0], "provider"), text(&rows[0], "model")),
        ("sketch", "sketch-image")
    );
    let frames = stack.frames(text(&job, "id")).await?;
    let told = of_type(&frames, "log_update");
    assert!(
        told.iter()
            .any(|line| text(line, "severity") == "warning" && text(line, "content").contains("openai"))
    );
    stack.stop().await;
    Ok(())
}
#[tokio::test(flavor = "multi_thread")]
async fn g_017_without_a_stand_in_a_missing_key_is_an_error_and_leaves_no_row() -> anyhow::Result<()> {
    let stack = TestStack::with(&[("provider.stand_in", "never")]).await?;
    let job = stack.run(&names_another(), json!({})).await?;
    assert_eq!(text(&job, "status"), "failed");
    assert!(text(&job, "error").contains("openai"), "{job}");
    assert!(stack.of_job("generations", text(&job, "id")).await?.is_empty());
    stack.stop().await;
    Ok(())
}

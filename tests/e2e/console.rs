//! The console in a real browser, against the real server.

use std::process::Stdio;

use anyhow::Context;
use atelier_tests::{TestStack, process::root, stack::text, workflows::example};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_follows_six_images_live_and_finds_them_after_a_reload() -> anyhow::Result<()> {
    let web = root().join("gateway/web");
    let chromium = std::env::var("CHROMIUM").unwrap_or_else(|_| "/usr/bin/chromium".to_owned());
    if !web.join("node_modules/playwright-core").exists() || !std::path::Path::new(&chromium).exists() {
        assert!(
            std::env::var_os("CI").is_none(),
            "the browser, or what drives it, is not installed"
        );
        println!("the browser, or what drives it, is not installed: the console was not looked at");
        return Ok(());
    }
    let stack = TestStack::with(&[("provider.sketch.delay_ms", "700")]).await?;
    let body = json!({"workflow": example("six-images")?, "params": {}, "name": "Six images from one idea"});
    let job = stack.client().post("/api/v1/jobs", &body).await?;
    let base = stack.client().base().as_str().trim_end_matches('/').to_owned();
    let run = tokio::process::Command::new("node")
        .arg(web.join("e2e/console.mjs"))
        .args([base.as_str(), text(&job, "id")])
        .env("CHROMIUM", chromium)
        .kill_on_drop(true)
        .stdin(Stdio::null())
        .output();
    let output = tokio::time::timeout(std::time::Duration::from_secs(180), run)
        .await
        .context("no end")??;
    let said = [output.stdout, output.stderr]
        .map(|text| String::from_utf8_lossy(&text).into_owned())
        .concat();
    assert!(output.status.success(), "{said}");
    println!("{said}");
    stack.stop().await;
    Ok(())
}

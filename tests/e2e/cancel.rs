//! Cancelling in the middle: the run, the node and the rows say so, and the provider saw it.

use std::time::Duration;

use atelier_common::testkit::until;
use atelier_tests::{
    TestStack,
    stack::{of_type, text},
    workflows::fan_out,
};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn w_037_k_210_g_004_a_cancelled_run_keeps_what_was_made_and_says_what_was_not() -> anyhow::Result<()> {
    let stack = TestStack::start().await?;
    let graph = fan_out(
        &["one", "two", "three", "four", "five", "six"],
        json!({"delay_ms": 400}),
    );
    let mut socket = stack.socket().await?;
    socket
        .send(&json!({"command": "run_job", "data": {"job_id": "C", "graph": graph}}))
        .await?;
    socket
        .wait(|frame| text(frame, "type") == "generation_complete" && text(frame, "node_id") == "g")
        .await?;
    socket
        .send(&json!({"command": "cancel_job", "data": {"job_id": "C"}}))
        .await?;
    let ack = socket
        .wait(|frame| {
            frame
                .get("message")
                .is_some_and(|text| text == "Job cancellation requested")
        })
        .await?;
    assert_eq!(text(&ack, "job_id"), "C");
    let frames = stack.frames("C").await?;
    let last = frames.last().expect("frames");
    assert_eq!(
        (text(last, "type"), text(last, "status")),
        ("job_update", "cancelled")
    );

    let rows = stack.of_job("generations", "C").await?;
    let count = |status: &str| rows.iter().filter(|row| text(row, "status") == status).count();
    assert_eq!(count("running"), 0);
    assert!(count("completed") >= 1 && count("cancelled") <= 1, "{rows:?}");
    assert!(rows.len() < 6, "nothing starts after a cancel");
    let cancelled = rows
        .iter()
        .find(|row| text(row, "status") == "cancelled")
        .expect("the one that ran");
    assert!(!text(cancelled, "provider_request_id").is_empty());
    assert_eq!(
        text(&cancelled["reconcile"], "state"),
        "queued",
        "it may be billed all the same"
    );
    // What the provider answered arrives after the row was closed.
    let id = text(cancelled, "id").to_owned();
    let client = stack.client().clone();
    until(|| async {
        let row = client.get(&format!("/api/v1/generations/{id}"), &[]).await;
        row.is_ok_and(|row| text(&row["metadata"]["provider_cancel"], "result") == "requested")
    })
    .within(Duration::from_secs(10))
    .await;
    let kept = stack.of_job("assets", "C").await?;
    assert_eq!(kept.len(), count("completed"), "what was bought is kept");
    let told: Vec<_> = of_type(&frames, "prediction")
        .into_iter()
        .filter(|frame| text(frame, "status") == "cancelled")
        .collect();
    assert_eq!(told.len(), 1);
    let nodes = of_type(&frames, "node_update");
    let node = nodes
        .iter()
        .find(|frame| text(frame, "node_id") == "g" && text(frame, "status") == "completed");
    let node = node.expect("the node ended");
    assert_eq!(
        (node["error"].is_null(), text(&node["error_detail"], "code")),
        (true, "cancelled")
    );
    stack.stop().await;
    Ok(())
}
#[tokio::test(flavor = "multi_thread")]
async fn g_037_one_generation_is_cancelled_by_its_id() -> anyhow::Result<()> {
    let stack = TestStack::start().await?;
    let graph = fan_out(&["slow"], json!({"delay_ms": 20_000}));
    let job = stack
        .client()
        .post("/api/v1/jobs", &json!({"graph": graph}))
        .await?;
    let job_id = text(&job, "id").to_owned();
    let client = stack.client().clone();
    until(|| async {
        let rows = client
            .list(
                "/api/v1/generations",
                "generations",
                &[("job_id", job_id.clone())],
                10,
            )
            .await;
        rows.is_ok_and(|rows| {
            rows.iter()
                .any(|row| !text(row, "provider_request_id").is_empty())
        })
    })
    .within(Duration::from_secs(20))
    .await;
    let rows = stack.of_job("generations", &job_id).await?;
    let id = text(&rows[0], "id");
    let answer = stack
        .client()
        .post(&format!("/api/v1/generations/{id}/cancel"), &json!({}))
        .await?;
    assert_eq!(
        (answer["cancelled"].as_bool(), text(&answer, "status")),
        (Some(true), "cancelled")
    );
    let again = stack
        .client()
        .post(&format!("/api/v1/generations/{id}/cancel"), &json!({}))
        .await?;
    assert_eq!(
        (again["cancelled"].as_bool(), text(&again, "status")),
        (Some(false), "cancelled")
    );
    let frames = stack.frames(&job_id).await?;
    let last = frames.last().expect("frames");
    assert_ne!(
        text(last, "status"),
        "completed",
        "the node did not get its picture"
    );
    stack.stop().await;
    Ok(())
}

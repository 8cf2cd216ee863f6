//! One call to a provider, asked for directly.

use atelier_proto::common::v1::Surface;
use serde_json::{Value, json};

use crate::stack::Stack;

/// Events of a body, as JSON.
async fn events(stack: &Stack, body: Value) -> Vec<Value> {
    let request = stack.http.post(stack.url("/api/v1/generations")).json(&body);
    let response = request.send().await.expect("answer");
    assert_eq!(response.status().as_u16(), 200);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let text = response.text().await.expect("text");
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|line| serde_json::from_str(line).expect("json"))
        .collect()
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().filter_map(|event| event["type"].as_str()).collect()
}

#[tokio::test]
async fn a_call_is_followed_by_events_from_its_row_to_its_result() {
    let stack = Stack::start().await;
    let body = json!({"capability": "generate_message", "params": {"prompt": "a colour"}, "surface": "cli",
        "idempotency_key": "k1", "name": "colour"});
    let told = events(&stack, body).await;
    assert_eq!(kinds(&told), ["prediction", "chunk", "result", "prediction"]);
    assert_eq!(
        (&told[0]["generation"]["status"], &told[3]["generation"]["status"]),
        (&json!("running"), &json!("completed"))
    );
    assert_eq!(
        (&told[1]["text"], &told[2]["output"]),
        (&json!("grün"), &json!("grün"))
    );
    assert_eq!(told[2]["assets"][0]["id"], "A1");
    let asked = stack.fakes.calls.lock().expect("lock").remove(0);
    let origin = asked.origin.clone().expect("origin");
    assert_eq!(
        (origin.surface(), asked.idempotency_key.as_deref()),
        (Surface::Cli, Some("k1"))
    );
    assert_eq!(
        asked.persist.and_then(|persist| persist.name).as_deref(),
        Some("colour")
    );
    assert!(!asked.background && !asked.cancel_on_disconnect);
}

#[tokio::test]
async fn a_failure_after_the_row_is_an_event_and_one_before_it_an_answer() {
    let stack = Stack::start().await;
    let told = events(&stack, json!({"capability": "text_to_image", "model": "broken"})).await;
    assert_eq!(kinds(&told), ["prediction", "prediction", "error"]);
    assert_eq!(
        (&told[1]["generation"]["error"], &told[2]["message"]),
        (&json!("it broke"), &json!("it broke"))
    );
    let (status, body) = stack
        .post(
            "/api/v1/generations",
            json!({"capability": "text_to_image", "model": "unheard"}),
        )
        .await;
    assert_eq!(
        (status, &body["error"]["reason"]),
        (404, &json!("GENERATION_NOT_FOUND"))
    );
}

#[tokio::test]
async fn in_the_background_the_row_is_the_answer() {
    let stack = Stack::start().await;
    let body = json!({"capability": "text_to_image", "params": {"prompt": "x"}, "background": true});
    let (status, row) = stack.post("/api/v1/generations", body).await;
    assert_eq!(
        (status, &row["id"], &row["status"]),
        (202, &json!("019a0000-0000"), &json!("running"))
    );
    let asked = stack.fakes.calls.lock().expect("lock").remove(0);
    assert_eq!(asked.origin.expect("origin").surface(), Surface::Rpc);
}

#[tokio::test]
async fn a_body_that_is_wrong_names_what_and_asks_nobody() {
    let stack = Stack::start().await;
    for (body, word) in [
        (json!({"params": {}}), "capability"),
        (json!({"capability": "text_to_image", "colour": "red"}), "colour"),
        (
            json!({"capability": "text_to_image", "surface": "chat"}),
            "surface",
        ),
    ] {
        let (status, answer) = stack.post("/api/v1/generations", body).await;
        assert_eq!(status, 400, "{answer}");
        assert!(answer.to_string().contains(word), "{answer}");
    }
    assert!(stack.fakes.calls.lock().expect("lock").is_empty());
}

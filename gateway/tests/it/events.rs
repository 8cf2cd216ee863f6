//! Events of a run over HTTP.

use atelier_proto::kernel::v1::JobStatus;
use futures_util::StreamExt;
use serde_json::{Value, json};

use crate::fakes::job_update;
use crate::stack::Stack;

async fn with_run(over: bool) -> Stack {
    let stack = Stack::start().await;
    stack.fakes.add_run("1", "J", JobStatus::Running);
    stack.fakes.emit("J", job_update(JobStatus::Running));
    stack.fakes.emit("J", job_update(JobStatus::Running));
    if over {
        stack.fakes.emit("J", job_update(JobStatus::Completed));
    }
    stack
}

/// Ids, types and data of server-sent events.
fn parsed(text: &str) -> Vec<(String, String, Value)> {
    let field = |event: &str, name: &str| {
        event
            .lines()
            .find_map(|line| line.strip_prefix(&format!("{name}: ")))
            .unwrap_or_default()
            .to_owned()
    };
    let events = text.split("\n\n").filter(|event| event.contains("data: "));
    events
        .map(|event| {
            let data = serde_json::from_str(&field(event, "data")).expect("json");
            (field(event, "id"), field(event, "event"), data)
        })
        .collect()
}

#[tokio::test]
async fn events_come_with_number_and_type_and_end_with_the_run() {
    let stack = with_run(true).await;
    let response = stack
        .http
        .get(stack.url("/api/v1/jobs/J/events"))
        .send()
        .await
        .expect("answer");
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let events = parsed(&response.text().await.expect("text"));
    let ids: Vec<_> = events.iter().map(|(id, _, _)| id.as_str()).collect();
    assert_eq!(ids, ["1", "2", "3"]);
    let (_, kind, data) = events.last().expect("last");
    assert_eq!(kind, "job_update");
    let expected = json!({"type": "job_update", "job_id": "J", "workflow_id": null, "job_seq": 3,
        "status": "completed", "error": null, "result": {"outputs": {}}});
    assert_eq!(data, &expected);
}

#[tokio::test]
async fn a_reader_begins_after_the_higher_of_both_numbers() {
    let stack = with_run(true).await;
    let first = |query: &str, last: Option<&str>| {
        let mut request = stack
            .http
            .get(stack.url(&format!("/api/v1/jobs/J/events{query}")));
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        async move {
            let text = request.send().await.expect("answer").text().await.expect("text");
            parsed(&text).first().expect("event").0.clone()
        }
    };
    assert_eq!(first("?after_seq=1", None).await, "2");
    assert_eq!(first("", Some("2")).await, "3");
    assert_eq!(first("?after_seq=1", Some("2")).await, "3");
    assert_eq!(first("?after_seq=2", Some("1")).await, "3");
    let (status, body) = stack.get("/api/v1/jobs/J/events?after_seq=-1").await;
    assert_eq!(
        (status, &body["error"]["details"]["fields"][0]["field"]),
        (400, &json!("after_seq"))
    );
    let wrong = stack
        .http
        .get(stack.url("/api/v1/jobs/J/events"))
        .header("last-event-id", "x");
    assert_eq!(wrong.send().await.expect("answer").status().as_u16(), 400);
}

#[tokio::test]
async fn events_that_come_later_are_streamed() {
    let stack = with_run(false).await;
    let response = stack
        .http
        .get(stack.url("/api/v1/jobs/J/events?after_seq=2"))
        .send()
        .await
        .expect("answer");
    stack.fakes.emit("J", job_update(JobStatus::Failed));
    let mut stream = response.bytes_stream();
    let mut text = String::new();
    while let Some(bytes) = stream.next().await {
        text.push_str(std::str::from_utf8(&bytes.expect("bytes")).expect("text"));
    }
    let events = parsed(&text);
    assert_eq!((events.len(), &events[0].2["status"]), (1, &json!("failed")));
}

#[tokio::test]
async fn as_json_the_events_so_far_come_at_once() {
    let stack = with_run(false).await;
    let request = stack
        .http
        .get(stack.url("/api/v1/jobs/J/events?after_seq=1"))
        .header("accept", "application/json");
    let body: Value = request.send().await.expect("answer").json().await.expect("json");
    assert_eq!((&body["last_seq"], &body["finished"]), (&json!(2), &json!(false)));
    assert_eq!(body["events"].as_array().expect("list").len(), 1);
}

#[tokio::test]
async fn a_run_that_is_not_there_is_an_error_and_not_a_stream() {
    let stack = Stack::start().await;
    stack.fakes.add_run("2", "F", JobStatus::Running);
    for job_id in ["missing", "F"] {
        let (status, body) = stack.get(&format!("/api/v1/jobs/{job_id}/events")).await;
        assert_eq!((status, &body["error"]["reason"]), (404, &json!("JOB_NOT_FOUND")));
    }
}

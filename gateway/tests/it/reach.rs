//! Reaching into runs: values for inputs, control events, going on.

use atelier_proto::kernel::v1::JobStatus;
use atelier_proto::value::{Map, Value as Kernel};
use serde_json::{Value, json};

use crate::fakes::job_update;
use crate::stack::Stack;

#[tokio::test]
async fn w_052_values_are_streamed_into_an_input_and_it_ends() {
    let stack = Stack::start().await;
    stack.fakes.add_run("1", "J", JobStatus::Running);
    let mut socket = stack.text_socket().await;
    for value in [json!(1), json!("two"), json!({"three": [3]})] {
        let data = json!({"job_id": "J", "input": "in", "value": value, "workflow_id": "W"});
        socket.command("stream_input", data).await;
        let ack = json!({"message": "Input item streamed", "job_id": "J", "workflow_id": "W"});
        assert_eq!(socket.next().await, ack);
    }
    let end = json!({"job_id": "J", "input": "in", "handle": "h"});
    socket.command("end_input_stream", end.clone()).await;
    let ack = json!({"message": "Input stream ended", "job_id": "J", "workflow_id": ""});
    assert_eq!(socket.next().await, ack);
    let pushed = stack.fakes.pushed.lock().expect("lock").clone();
    let values: Vec<_> = pushed
        .iter()
        .map(|push| (push.value.is_some(), push.finish))
        .collect();
    assert_eq!(
        values,
        [(true, false), (true, false), (true, false), (false, true)]
    );
    let second = Kernel::try_from(pushed[1].value.clone().expect("value")).expect("value");
    assert_eq!(second, Kernel::from("two"));
    assert_eq!(
        (pushed[0].name.as_str(), pushed[3].handle.as_deref()),
        ("in", Some("h"))
    );
    let ids: std::collections::HashSet<_> = pushed.iter().map(|push| push.input_id.as_str()).collect();
    assert_eq!(ids.len(), 4);
    socket.command("end_input_stream", end).await;
    let over = json!({"error": "input is finished", "job_id": "J", "workflow_id": ""});
    assert_eq!(socket.next().await, over);
}

#[tokio::test]
async fn w_053_nothing_is_streamed_into_a_run_that_ended_or_is_not_there() {
    let stack = Stack::start().await;
    stack.fakes.add_run("1", "over", JobStatus::Completed);
    stack.fakes.add_run("1", "J", JobStatus::Running);
    stack.fakes.add_run("2", "theirs", JobStatus::Running);
    let mut socket = stack.text_socket().await;
    for (data, told) in [
        (
            json!({"job_id": "over", "input": "in", "value": 1}),
            "No active job/context",
        ),
        (
            json!({"job_id": "theirs", "input": "in", "value": 1}),
            "No active job/context",
        ),
        (
            json!({"job_id": "none", "input": "in", "value": 1}),
            "No active job/context",
        ),
        (
            json!({"job_id": "J", "input": "unknown", "value": 1}),
            "Invalid input name",
        ),
        (json!({"job_id": "J", "value": 1}), "Invalid input name"),
        (json!({"input": "in"}), "job_id is required"),
    ] {
        socket.command("stream_input", data.clone()).await;
        assert_eq!(socket.next().await, json!({"error": told}), "{data}");
    }
    assert!(stack.fakes.pushed.lock().expect("lock").is_empty());
}

#[tokio::test]
async fn inputs_are_pushed_over_rest_and_a_repeat_changes_nothing() {
    let stack = Stack::start().await;
    stack.fakes.add_run("1", "J", JobStatus::Running);
    stack.fakes.add_run("1", "over", JobStatus::Failed);
    let path = "/api/v1/jobs/J/inputs";
    let push = json!({"name": "in", "value": null, "input_id": "a"});
    let answer = |created: bool| json!({"job_id": "J", "input_id": "a", "created": created});
    assert_eq!(stack.post(path, push.clone()).await, (200, answer(true)));
    assert_eq!(stack.post(path, push).await, (200, answer(false)));
    assert_eq!(
        stack
            .post(path, json!({"name": "in", "value": 2, "finish": true}))
            .await
            .0,
        200
    );
    let (status, error) = stack.post(path, json!({"name": "in", "value": 3})).await;
    assert_eq!(
        (status, &error["error"]["reason"]),
        (409, &json!("INPUT_FINISHED"))
    );
    for (field, body) in [
        ("name", json!({"value": 1})),
        ("value", json!({"name": "in"})),
        ("finish", json!({"name": "in", "finish": 1})),
        ("name", json!({"name": "unknown", "value": 1})),
        ("extra", json!({"name": "in", "value": 1, "extra": 1})),
    ] {
        let (status, error) = stack.post(path, body).await;
        assert_eq!(
            (status, &error["error"]["details"]["fields"][0]["field"]),
            (400, &json!(field))
        );
    }
    let push = json!({"name": "in", "value": 1});
    assert_eq!(stack.post("/api/v1/jobs/none/inputs", push.clone()).await.0, 404);
    let (status, error) = stack.post("/api/v1/jobs/over/inputs", push).await;
    assert_eq!(
        (status, &error["error"]["reason"]),
        (409, &json!("JOB_NOT_RUNNING"))
    );
    assert_eq!(stack.fakes.pushed.lock().expect("lock").len(), 2);
}

#[tokio::test]
async fn control_events_are_sent_and_waited_for() {
    let stack = Stack::start().await;
    stack.fakes.add_run("1", "J", JobStatus::Running);
    let path = "/api/v1/jobs/J/control";
    let send = |wait: bool| json!({"node_id": "n", "properties": {"x": 1}, "wait": wait});
    let (_, sent) = stack.post(path, send(false)).await;
    assert_eq!(sent, json!({"job_id": "J", "node_id": "n", "outputs": null}));
    let (_, sent) = stack.post(path, send(true)).await;
    assert_eq!(sent["outputs"], json!({"x": 1}));
    let (status, error) = stack.post(path, json!({"node_id": "fails"})).await;
    assert_eq!((status, &error["error"]["reason"]), (409, &json!("NODE_FAILED")));
    assert_eq!(stack.post(path, json!({"properties": {}})).await.0, 400);
    assert_eq!(
        stack.post(path, json!({"node_id": "n", "properties": 7})).await.0,
        400
    );
    assert_eq!(stack.post("/api/v1/jobs/x/control", send(true)).await.0, 404);
}

#[tokio::test]
async fn a_suspended_run_goes_on_over_rest_and_the_socket() {
    let stack = Stack::start().await;
    for job_id in ["A", "B"] {
        stack.fakes.add_run("1", job_id, JobStatus::Running);
        stack.fakes.emit(job_id, job_update(JobStatus::Suspended));
    }
    let (status, job) = stack
        .post("/api/v1/jobs/A/resume", json!({"state": {"answer": 42}}))
        .await;
    assert_eq!((status, &job["status"]), (200, &json!("running")));
    let resumed = stack.fakes.resumed.lock().expect("lock").clone();
    let state = Map::try_from(resumed[0].state.clone().expect("state")).expect("map");
    assert_eq!(state["answer"], Kernel::Int(42));
    let (status, error) = stack.post("/api/v1/jobs/A/resume", json!({})).await;
    assert_eq!(
        (status, &error["error"]["reason"]),
        (409, &json!("JOB_NOT_SUSPENDED"))
    );
    let mut socket = stack.text_socket().await;
    socket.command("resume_job", json!({"job_id": "B"})).await;
    let frames = socket.until(|frame| frame["type"] == "job_update").await;
    // Only what follows: the frame that says that it goes on.
    let last = frames.last().expect("frame");
    assert_eq!(
        (&last["status"], &last["job_seq"]),
        (&json!("running"), &json!(2))
    );
    assert_eq!(
        frames
            .iter()
            .filter(|frame| frame["type"] == "job_resumed")
            .count(),
        1
    );
    stack.fakes.emit("B", job_update(JobStatus::Completed));
    let frames: Vec<Value> = socket.until_the_end().await;
    assert_eq!(frames.last().expect("end")["status"], "completed");
    socket.command("resume_job", json!({"job_id": "B"})).await;
    assert_eq!(
        socket.next().await,
        json!({"error": "Job cannot be resumed", "job_id": "B"})
    );
}

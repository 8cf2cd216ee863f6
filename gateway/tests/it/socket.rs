//! The socket itself: frames, modes, rate, who may open one.

use atelier_proto::kernel::v1::job_event::Event;
use atelier_proto::kernel::v1::{JobStatus, JobUpdate};
use atelier_proto::value::{Map, Value};
use serde_json::json;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{self, Message};

use crate::fakes::job_update;
use crate::stack::{Stack, graph};

#[tokio::test]
async fn w_001_any_query_is_fine_and_the_first_frame_is_binary() {
    let stack = Stack::start().await;
    let mut socket = stack.raw_socket("/ws?foo=1&resume_job=x").await;
    let Some(Ok(Message::Binary(bytes))) = socket.next_message().await else {
        panic!("not binary")
    };
    let frame: serde_json::Value =
        rmpv::ext::from_value(rmpv::decode::read_value(&mut bytes.as_ref()).expect("msgpack"))
            .expect("value");
    assert_eq!(frame["type"], "sdk_execution_target");
    assert!(
        frame["features"]
            .as_array()
            .expect("list")
            .contains(&json!("generation_events"))
    );
}

#[tokio::test]
async fn w_002_and_003_the_mode_is_of_what_goes_out_only() {
    let stack = Stack::start().await;
    let mut socket = stack.socket().await;
    socket.command("set_mode", json!({"mode": "text"})).await;
    let Some(Ok(Message::Text(text))) = socket.next_message().await else {
        panic!("not text")
    };
    assert_eq!(text, r#"{"message":"Mode set to text"}"#);
    let mut pack = Vec::new();
    let command = rmpv::Value::Map(vec![
        ("command".into(), "get_status".into()),
        ("data".into(), rmpv::Value::Map(Vec::new())),
    ]);
    rmpv::encode::write_value(&mut pack, &command).expect("packed");
    socket.send_raw(Message::binary(pack)).await;
    let Some(Ok(Message::Text(text))) = socket.next_message().await else {
        panic!("not text")
    };
    assert_eq!(text, r#"{"active_jobs":[]}"#);
}

#[tokio::test]
async fn w_004_an_unknown_mode_changes_nothing() {
    let stack = Stack::start().await;
    let mut socket = stack.text_socket().await;
    socket.command("set_mode", json!({"mode": "xml"})).await;
    let Some(Ok(Message::Text(text))) = socket.next_message().await else {
        panic!("not text")
    };
    assert_eq!(text, r#"{"error":"mode must be binary or text"}"#);
}

#[tokio::test]
async fn w_005_and_006_garbage_is_told_and_the_next_command_works() {
    let stack = Stack::start().await;
    let mut socket = stack.socket().await;
    for garbage in [
        Message::binary(vec![0xc1]),
        Message::text("{not json"),
        Message::binary(Vec::new()),
    ] {
        socket.send_raw(garbage).await;
        let reply = socket.next().await;
        assert_eq!(reply["error"], "invalid_frame");
        assert!(reply["message"].is_string());
        assert!(reply.get("type").is_none());
    }
    socket.command("get_status", json!({})).await;
    assert_eq!(socket.next().await, json!({"active_jobs": []}));
}

#[tokio::test]
async fn w_008_too_many_frames_within_a_second_close_the_socket() {
    let stack = Stack::start().await;
    let mut socket = stack.socket().await;
    for _ in 0..201 {
        socket.send(json!({"type": "pong", "ts": 1})).await;
    }
    assert_eq!(
        socket.closed().await,
        (1008, "Message rate limit exceeded".to_owned())
    );
}

#[tokio::test]
async fn w_010_a_ping_gets_a_pong() {
    let stack = Stack::start().await;
    let mut socket = stack.socket().await;
    socket.send(json!({"type": "ping"})).await;
    let pong = socket.next().await;
    assert_eq!(pong["type"], "pong");
    assert!(pong["ts"].is_f64());
    socket.send(json!({"type": "ping", "ts": "x"})).await;
    let reply = socket.next().await;
    assert_eq!(
        reply,
        json!({"error": "invalid_message", "message": "Malformed 'ping' frame: ts must be a number"})
    );
}

#[tokio::test]
async fn w_011_bytes_of_a_result_are_bytes_or_integers() {
    let stack = Stack::start().await;
    let outputs = Map::from_iter([(
        "raw".to_owned(),
        Value::list(vec![Value::Bytes(vec![1, 255].into())]),
    )]);
    let done = JobUpdate {
        status: JobStatus::Completed.into(),
        result: Some((&outputs).into()),
        ..JobUpdate::default()
    };
    *stack.fakes.script.lock().expect("lock") = vec![job_update(JobStatus::Running), Event::JobUpdate(done)];
    let mut text = stack.text_socket().await;
    text.command("run_job", json!({"graph": graph(), "job_id": "J"}))
        .await;
    let frames = text.until_the_end().await;
    assert_eq!(
        frames.last().expect("last")["result"]["outputs"]["raw"],
        json!([[1, 255]])
    );
    let mut binary = stack.socket().await;
    binary.command("reconnect_job", json!({"job_id": "J"})).await;
    loop {
        let Some(Ok(Message::Binary(bytes))) = binary.next_message().await else {
            panic!("not binary")
        };
        if bytes.windows(4).any(|four| four == [0xc4, 2, 1, 255]) {
            break;
        }
    }
}

#[tokio::test]
async fn w_016_a_body_does_not_say_who_somebody_is() {
    let stack = Stack::start().await;
    let mut socket = stack.socket().await;
    let data = json!({"graph": graph(), "job_id": "J", "user_id": "42", "auth_token": "local_token"});
    socket.command("run_job", data).await;
    socket.until(|frame| frame["message"] == "Job started").await;
    assert_eq!(stack.fakes.owner_of("J"), "1");
}

#[tokio::test]
async fn a_foreign_page_cannot_open_a_socket() {
    let stack = Stack::start().await;
    for (header, value) in [
        ("origin", "http://evil.example"),
        ("origin", "null"),
        ("host", "evil.example"),
    ] {
        let mut request = format!("ws://{}/ws", stack.address)
            .into_client_request()
            .expect("request");
        request
            .headers_mut()
            .insert(header, value.parse().expect("value"));
        let refused = tokio_tungstenite::connect_async(request).await;
        let Err(tungstenite::Error::Http(response)) = refused else {
            panic!("{header}: {value} was let in")
        };
        assert_eq!(response.status().as_u16(), 403);
    }
    let mut request = format!("ws://{}/ws", stack.address)
        .into_client_request()
        .expect("request");
    request
        .headers_mut()
        .insert("origin", "http://localhost:5173".parse().expect("value"));
    tokio_tungstenite::connect_async(request)
        .await
        .expect("a page of this machine");
}

#[tokio::test]
async fn w_017_a_socket_without_work_is_closed_when_the_process_stops() {
    let stack = Stack::start().await;
    let mut idle = stack.socket().await;
    let mut busy = stack.socket().await;
    busy.command("run_job", json!({"graph": graph(), "job_id": "J"}))
        .await;
    busy.until(|frame| frame["message"] == "Job started").await;
    stack.deps.tasks.stop();
    assert_eq!(idle.closed().await, (1012, "Server draining".to_owned()));
    busy.command("run_job", json!({"graph": graph(), "job_id": "K"}))
        .await;
    let refused = busy.next().await;
    assert_eq!(refused["type"], "error");
    assert_eq!(
        refused["message"],
        "This server is restarting. Reconnect and try again."
    );
    assert_eq!(stack.fakes.count_of_runs(), 1);
    stack.fakes.emit("J", job_update(JobStatus::Completed));
    busy.until_the_end().await;
    assert_eq!(busy.closed().await, (1012, "Server draining".to_owned()));
}

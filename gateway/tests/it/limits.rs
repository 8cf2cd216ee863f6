//! What is too much: bodies, messages, clients that do not read.

use std::time::Duration;

use atelier_gateway::{Settings, Ws};
use atelier_proto::kernel::v1::job_event::Event;
use atelier_proto::kernel::v1::{JobStatus, LogUpdate, OutputUpdate};
use atelier_proto::value::{Map, Value};
use futures_util::{SinkExt, StreamExt};
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

use crate::fakes::job_update;
use crate::stack::{Stack, graph};

#[tokio::test]
async fn two_hundred_megabytes_of_json_are_refused_with_one_clear_error() {
    let stack = Stack::start().await;
    let size = 200 * 1024 * 1024;
    let piece = bytes::Bytes::from(vec![b'['; 1024 * 1024]);
    // With the size stated, and in pieces without one.
    for stated in [true, false] {
        let pieces = tokio_stream::iter((0..200).map({
            let piece = piece.clone();
            move |_| Ok::<_, std::io::Error>(piece.clone())
        }));
        let mut request = stack
            .http
            .post(stack.url("/api/v1/jobs"))
            .header("content-type", "application/json")
            .body(reqwest::Body::wrap_stream(pieces));
        if stated {
            request = request.header("content-length", size);
        }
        let response = request.send().await.expect("an answer");
        assert_eq!(response.status().as_u16(), 413);
        let body: serde_json::Value = response.json().await.expect("json");
        assert_eq!(body["error"]["reason"], "BODY_TOO_LARGE");
        assert_eq!(body["error"]["message"], "the body is larger than 33554432 bytes");
    }
    assert_eq!(stack.fakes.count_of_runs(), 0);
    assert_eq!(stack.get("/livez").await.0, 200);
}

#[tokio::test]
async fn w_007_a_message_that_is_too_large_is_refused_by_its_header() {
    let ws = Ws {
        max_message_bytes: 64 * 1024,
        ..Ws::default()
    };
    let stack = Stack::with(Settings {
        ws,
        ..Settings::default()
    })
    .await;
    let socket = stack.socket().await;
    let (mut sink, stream) = socket.inner.split();
    let text = format!("{{\"command\":\"{}\"}}", "x".repeat(128 * 1024));
    let sending = async move {
        // The server stops reading, so this may never be through.
        let _ = sink.send(Message::text(text)).await;
        sink
    };
    let reading = async {
        let messages: Vec<_> = stream.take(2).collect().await;
        messages
            .into_iter()
            .map(|message| message.expect("message"))
            .collect::<Vec<_>>()
    };
    let (_sink, messages) = tokio::join!(sending, reading);
    let Message::Binary(bytes) = &messages[0] else {
        panic!("{messages:?}")
    };
    let frame: serde_json::Value =
        rmpv::ext::from_value(rmpv::decode::read_value(&mut bytes.as_ref()).expect("msgpack"))
            .expect("value");
    assert_eq!(
        frame,
        json!({"error": "invalid_frame", "message": "The frame is larger than 65536 bytes"})
    );
    let Message::Close(Some(close)) = &messages[1] else {
        panic!("{messages:?}")
    };
    assert_eq!(u16::from(close.code), 1009);
}

fn audio(bytes: usize) -> Event {
    let chunk = Map::from_iter([
        ("type".to_owned(), "chunk".into()),
        ("content_type".to_owned(), "audio".into()),
        ("content".to_owned(), Value::Bytes(vec![7; bytes].into())),
    ]);
    Event::OutputUpdate(OutputUpdate {
        value: Some((&Value::map(chunk)).into()),
        ..OutputUpdate::default()
    })
}

#[tokio::test]
async fn w_018_a_viewer_that_does_not_read_misses_audio_only() {
    let ws = Ws {
        queue_frames: 16,
        queue_bytes: 1024 * 1024,
        ..Ws::default()
    };
    let stack = Stack::with(Settings {
        ws,
        ..Settings::default()
    })
    .await;
    let mut socket = stack.socket().await;
    socket
        .command("run_job", json!({"graph": graph(), "job_id": "J"}))
        .await;
    socket.until(|frame| frame["message"] == "Job started").await;
    // Far more than socket buffers hold. The run does not wait for anybody.
    for _ in 0..2000 {
        stack.fakes.emit("J", audio(32 * 1024));
    }
    let log = LogUpdate {
        content: "kept".to_owned(),
        ..LogUpdate::default()
    };
    stack.fakes.emit("J", Event::LogUpdate(log));
    stack.fakes.emit("J", job_update(JobStatus::Completed));
    assert_eq!(stack.fakes.status_of("J"), JobStatus::Completed);
    let page = || async {
        stack
            .http
            .get(stack.url("/metrics"))
            .send()
            .await
            .expect("page")
            .text()
            .await
            .expect("text")
    };
    atelier_common::testkit::until(|| async {
        page()
            .await
            .contains("atelier_gateway_frames_dropped_total{kind=\"audio\"}")
    })
    .within(Duration::from_secs(20))
    .await;
    let (mut audio, mut kept, mut over) = (0, 0, false);
    while !over {
        let Some(Ok(Message::Binary(bytes))) = socket.next_message().await else {
            panic!("cut off")
        };
        let pack = rmpv::decode::read_value(&mut bytes.as_ref()).expect("msgpack");
        match pack["type"].as_str() {
            Some("output_update") => audio += 1,
            Some("log_update") => kept += 1,
            Some("job_update") => over = pack["status"].as_str() == Some("completed"),
            other => panic!("{other:?}"),
        }
    }
    assert!(audio < 2000, "{audio}");
    assert_eq!(kept, 1);
}

#[tokio::test]
async fn r_012_a_viewer_that_does_not_read_what_must_be_read_is_cut_off() {
    let ws = Ws {
        queue_frames: 8,
        slow_limit: Duration::from_millis(200),
        ..Ws::default()
    };
    let stack = Stack::with(Settings {
        ws,
        ..Settings::default()
    })
    .await;
    let mut socket = stack.socket().await;
    socket
        .command("run_job", json!({"graph": graph(), "job_id": "J"}))
        .await;
    socket.until(|frame| frame["message"] == "Job started").await;
    let log = LogUpdate {
        content: "x".repeat(64 * 1024),
        ..LogUpdate::default()
    };
    for _ in 0..400 {
        stack.fakes.emit("J", Event::LogUpdate(log.clone()));
    }
    let page = || async {
        stack
            .http
            .get(stack.url("/metrics"))
            .send()
            .await
            .expect("page")
            .text()
            .await
            .expect("text")
    };
    atelier_common::testkit::until(|| async {
        page().await.contains("atelier_gateway_slow_consumers_total")
    })
    .within(Duration::from_secs(20))
    .await;
    assert_eq!(socket.closed().await, (1013, "slow consumer".to_owned()));
    // The run is untouched, and another viewer gets all of it.
    stack.fakes.emit("J", job_update(JobStatus::Completed));
    let mut other = stack.socket().await;
    other.command("reconnect_job", json!({"job_id": "J"})).await;
    assert_eq!(other.until_the_end().await.last().expect("last")["job_seq"], 401);
}

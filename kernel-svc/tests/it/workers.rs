//! Node types that are served from outside: all modes, and what a worker may say beside its results.

mod client;
mod protocol;
mod reconnect;

use atelier_kernel::{
    event::{Event, Note},
    node::NodeErrorKind,
};
use atelier_proto::{
    common::v1::{MediaRef, Value, value::Kind},
    kernel::v1::{
        FailureKind, FrameChunk, FrameComplete, FrameDrop, FrameFailure, FrameForward, FrameLog, FrameMedia,
        FrameProgress, FrameYield, InputReceipt, InvocationInput, InvocationMode, JobStatus, MediaFetch,
        OutputCorrelation, OutputCorrelationKind, Severity, WorkerNodeType, connect_request::Message as Say,
        connect_response::Message as Said, invocation_frame::Body,
    },
};
use client::{Client, Kernel, end, map, result, served, yielded};
use serde_json::json;

use crate::harness::{Graph, graph, json as to_json};

/// `test.StreamN` gives 0, 1, … to a served node, whose outputs `test.Cap` takes.
fn three(node_type: &str) -> Graph {
    graph()
        .node("s", "test.StreamN", json!({"n": 3}))
        .node("w", node_type, json!({}))
        .node("k", "test.Cap", json!({}))
        .edges(["s.output > w.value", "w.output > k.value"])
}
fn one(node_type: &str) -> Graph {
    graph()
        .node("w", node_type, json!({"value": 7}))
        .sink("out")
        .edges(["w.output > out.value"])
}
fn streaming(name: &str, kind: OutputCorrelationKind) -> WorkerNodeType {
    let mut ty = served(name);
    if let Some(node_type) = &mut ty.node_type {
        node_type.streaming_output = true;
    }
    ty.output_correlations = vec![OutputCorrelation {
        output: "output".to_owned(),
        kind: kind.into(),
        group: "items".to_owned(),
        ..OutputCorrelation::default()
    }];
    ty
}
fn reader(name: &str) -> WorkerNodeType {
    let mut ty = served(name);
    if let Some(node_type) = &mut ty.node_type {
        node_type.streaming_input = true;
    }
    ty.output_correlations = vec![OutputCorrelation {
        output: "output".to_owned(),
        kind: OutputCorrelationKind::Forward.into(),
        source: "value".to_owned(),
        ..OutputCorrelation::default()
    }];
    ty
}
fn number(map: &atelier_proto::common::v1::MapValue) -> i64 {
    let value = map.entries.iter().find(|entry| entry.key == "value");
    match value.and_then(|entry| entry.value.as_ref()?.kind.clone()) {
        Some(Kind::IntValue(number)) => number,
        other => panic!("{other:?} is no number"),
    }
}
async fn input(client: &mut Client) -> InvocationInput {
    loop {
        match client.next().await {
            Said::Input(input) => return input,
            Said::FrameReceipt(_) => {}
            other => panic!("{other:?} and no input"),
        }
    }
}

#[tokio::test]
async fn a_served_node_is_called_once_for_each_item_and_keeps_its_place() {
    let kernel = Kernel::new();
    let mut client = kernel.worker("one", vec![served("partner.Double")]).await;
    let run = kernel.setup(&three("partner.Double")).start();
    for expected in 0..3 {
        let invocation = client.invocation().await;
        assert_eq!(invocation.mode(), InvocationMode::Process);
        assert_eq!(
            (
                invocation.node_id.as_str(),
                invocation.attempt,
                number(invocation.inputs.as_ref().unwrap())
            ),
            ("w", 1, expected)
        );
        assert_eq!(invocation.invocation_id, format!("job/w/s:items={expected}#0/1"));
        client
            .frame(&invocation.invocation_id, 0, result(json!(expected * 2)))
            .await;
        assert_eq!(client.receipt().await, (1, true));
    }
    let done = run.done().await;
    assert_eq!(done.status(), JobStatus::Completed, "{:?}", done.result.error);
    let delivered = done.delivered("e2");
    assert_eq!(delivered[2], (json!(4), "s:items=2".to_owned()));
    assert_eq!(done.artifacts("w").len(), 3);
    assert_eq!(kernel.workers.invocations(), 0);
}
#[tokio::test]
async fn yields_are_items_pieces_or_artifacts_as_declared() {
    let kernel = Kernel::new();
    let mut marked = streaming("partner.Marked", OutputCorrelationKind::Iteration);
    marked.artifact_outputs = vec!["output".to_owned()];
    let items = streaming("partner.Items", OutputCorrelationKind::Iteration);
    let mut client = kernel.worker("one", vec![marked, items]).await;
    for (ty, artifacts) in [("partner.Marked", 3), ("partner.Items", 1)] {
        let graph = graph()
            .node("w", ty, json!({}))
            .node("k", "test.Cap", json!({}))
            .edges(["w.output > k.value"]);
        let run = kernel.setup(&graph).start();
        let invocation = client.invocation().await;
        assert_eq!(invocation.mode(), InvocationMode::Stream);
        for ordinal in 0..3 {
            client
                .frame(&invocation.invocation_id, ordinal, yielded(json!(ordinal)))
                .await;
        }
        client.frame(&invocation.invocation_id, 3, end()).await;
        client.closed().await;
        let done = run.done().await;
        assert_eq!(done.status(), JobStatus::Completed, "{:?}", done.result.error);
        assert_eq!(done.delivered("e1")[2], (json!(2), "w:items=2".to_owned()));
        assert_eq!(done.artifacts("w").len(), artifacts, "{ty}");
    }
}
#[tokio::test]
async fn a_reader_of_streams_forwards_drops_and_completes_with_lineage() {
    let kernel = Kernel::new();
    let mut client = kernel.worker("one", vec![reader("partner.Filter")]).await;
    let run = kernel.setup(&three("partner.Filter")).start();
    let invocation = client.invocation().await;
    let id = invocation.invocation_id.clone();
    assert_eq!(
        (invocation.mode(), invocation.stream_inputs.as_slice()),
        (InvocationMode::Run, &["value".to_owned()][..])
    );
    let mut frames = Vec::new();
    let mut numbers = Vec::new();
    loop {
        let input = input(&mut client).await;
        numbers.push(input.number);
        let Some(value) = input.value else { break };
        let output = "output".to_owned();
        frames.push(match input.number {
            0 => Body::Forward(FrameForward {
                output,
                value: Some(value),
                lineage: input.lineage,
            }),
            1 => Body::Drop(FrameDrop {
                output,
                lineage: input.lineage,
            }),
            _ => Body::Values(FrameYield {
                values: Some(map(json!({"output": 20}))),
                lineage: Some(input.lineage),
            }),
        });
    }
    assert_eq!(numbers, [0, 1, 2, 3]);
    frames.push(Body::Complete(FrameComplete {
        output: "output".to_owned(),
    }));
    frames.push(end());
    for (ordinal, frame) in (0..).zip(frames) {
        client.frame(&id, ordinal, frame).await;
    }
    client.closed().await;
    let done = run.done().await;
    assert_eq!(done.status(), JobStatus::Completed, "{:?}", done.result.error);
    assert_eq!(
        done.delivered("e2"),
        [
            (json!(0), "s:items=0".to_owned()),
            (json!(20), "s:items=2".to_owned())
        ]
    );
}
#[tokio::test]
async fn inputs_wait_for_their_reader_and_a_slow_worker_is_no_standstill() {
    let kernel = Kernel::new();
    let mut client = kernel.worker("one", vec![reader("partner.Slow")]).await;
    let graph = graph()
        .node("s", "test.StreamN", json!({"n": 40}))
        .node("w", "partner.Slow", json!({}))
        .node("k", "test.Cap", json!({}))
        .edges(["s.output > w.value", "w.output > k.value"]);
    let run = kernel.setup(&graph).options(|options| {
        options.stall_timeout = std::time::Duration::from_millis(50);
        options.buffer_limit = Some(2);
    });
    let run = run.start();
    let id = client.invocation().await.invocation_id;
    for number in 0..16 {
        assert_eq!(input(&mut client).await.number, number);
    }
    let quiet = tokio::time::timeout(std::time::Duration::from_millis(300), client.hear()).await;
    assert!(quiet.is_err(), "more than the window came: {quiet:?}");
    let mut next = 16;
    client
        .say(Say::InputReceipt(InputReceipt {
            invocation_id: id.clone(),
            numbers: (0..16).collect(),
        }))
        .await;
    loop {
        let input = input(&mut client).await;
        assert_eq!(input.number, next);
        next += 1;
        let numbers = vec![input.number];
        client
            .say(Say::InputReceipt(InputReceipt {
                invocation_id: id.clone(),
                numbers,
            }))
            .await;
        if input.value.is_none() {
            break;
        }
    }
    assert_eq!(next, 41);
    client.frame(&id, 0, end()).await;
    client.closed().await;
    let done = run.done().await;
    assert_eq!(done.status(), JobStatus::Completed, "{:?}", done.result.error);
}
#[tokio::test]
async fn progress_logs_and_chunks_are_notes_of_the_node() {
    let kernel = Kernel::new();
    let mut client = kernel.worker("one", vec![served("partner.Talks")]).await;
    let run = kernel.setup(&one("partner.Talks")).start();
    let id = client.invocation().await.invocation_id;
    client
        .frame(
            &id,
            0,
            Body::Progress(FrameProgress {
                progress: 1,
                total: 2,
            }),
        )
        .await;
    let severity = Severity::Warning.into();
    client
        .frame(
            &id,
            1,
            Body::Log(FrameLog {
                content: "hm".to_owned(),
                severity,
            }),
        )
        .await;
    let chunk = FrameChunk {
        content: "tok".to_owned(),
        done: true,
        thinking: true,
    };
    client.frame(&id, 2, Body::Chunk(chunk)).await;
    client.frame(&id, 3, result(json!(1))).await;
    let done = run.done().await;
    assert_eq!(done.outputs(), json!({"out": [1]}));
    let notes: Vec<&Note> = done
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Note { note, node } if &*node.id == "w" => Some(note),
            _ => None,
        })
        .collect();
    assert!(matches!(
        notes[..],
        [
            Note::Progress {
                progress: 1,
                total: 2,
                ..
            },
            Note::Log {
                severity: Severity::Warning,
                ..
            },
            Note::Chunk {
                done: true,
                thinking: true,
                ..
            }
        ]
    ));
}
#[tokio::test]
async fn a_failure_fails_the_node_with_its_code_or_loses_only_its_item() {
    let kernel = Kernel::new();
    let mut client = kernel.worker("one", vec![served("partner.Fails")]).await;
    let fail = |kind: FailureKind| {
        Body::Failure(FrameFailure {
            message: "no luck".to_owned(),
            code: "partner.luck".to_owned(),
            kind: kind.into(),
        })
    };
    let run = kernel.setup(&one("partner.Fails")).start();
    let id = client.invocation().await.invocation_id;
    client.frame(&id, 0, fail(FailureKind::Node)).await;
    assert_eq!(client.receipt().await, (1, true));
    let done = run.done().await;
    assert_eq!(done.status(), JobStatus::Failed);
    let detail = done.events.iter().find_map(|event| match event {
        Event::Node {
            detail: Some(detail), ..
        } => Some(detail),
        _ => None,
    });
    let detail = detail.expect("the cause");
    assert_eq!(
        (detail.message.as_str(), detail.code.as_deref(), &detail.kind),
        ("no luck", Some("partner.luck"), &NodeErrorKind::Failed)
    );
    let run = kernel.setup(&three("partner.Fails")).start();
    for item in 0..3 {
        let id = client.invocation().await.invocation_id;
        let body = if item == 1 {
            fail(FailureKind::Item)
        } else {
            result(json!(item))
        };
        client.frame(&id, 0, body).await;
    }
    let done = run.done().await;
    assert_eq!(done.delivered("e2").len(), 2, "the other items go on");
    assert_eq!(done.status(), JobStatus::Failed);
}
#[tokio::test]
async fn a_cancel_reaches_the_worker_and_a_worker_that_does_not_hear_it_is_left() {
    let kernel = Kernel::new();
    let mut client = kernel.worker("one", vec![served("partner.Long")]).await;
    for hears in [true, false] {
        let run = kernel
            .setup(&one("partner.Long"))
            .options(|options| options.cancel_grace = std::time::Duration::from_millis(200))
            .start();
        let id = client.invocation().await.invocation_id;
        run.cancel.cancel();
        let Said::Cancel(cancel) = client.next().await else {
            panic!("no cancel")
        };
        assert_eq!(
            (cancel.invocation_id.as_str(), cancel.forgotten),
            (id.as_str(), false)
        );
        if hears {
            let kind = FailureKind::Cancelled.into();
            let failure = FrameFailure {
                message: "cancelled".to_owned(),
                kind,
                ..FrameFailure::default()
            };
            client.frame(&id, 0, Body::Failure(failure)).await;
            assert_eq!(client.receipt().await, (1, true));
        } else {
            let Said::Cancel(cancel) = client.next().await else {
                panic!("not left")
            };
            assert!(cancel.forgotten);
        }
        let done = run.done().await;
        assert_eq!(done.status(), JobStatus::Cancelled);
        assert_eq!(kernel.workers.invocations(), 0);
    }
}
#[tokio::test]
async fn media_go_as_references_are_fetched_in_parts_and_come_back_in_parts() {
    let kernel = Kernel::new();
    let mut makes = served("partner.Makes");
    makes.retry_safe = true;
    let mut client = kernel.worker("one", vec![makes, served("partner.Reads")]).await;
    let graph = graph()
        .node("m", "partner.Makes", json!({}))
        .node("r", "partner.Reads", json!({}))
        .sink("out")
        .edges(["m.output > r.value", "r.output > out.value"]);
    let run = kernel.setup(&graph).start();
    let id = client.invocation().await.invocation_id;
    let bytes: Vec<u8> = (0..150_000_u32)
        .map(|at| at.to_le_bytes()[0] ^ at.to_le_bytes()[1])
        .collect();
    let mut ordinal = 0;
    for part in bytes.chunks(64 * 1024) {
        let media = FrameMedia {
            upload_id: 9,
            data: part.to_vec().into(),
        };
        client.frame(&id, ordinal, Body::Media(media)).await;
        ordinal += 1;
    }
    let made = MediaRef {
        r#type: "image".to_owned(),
        uri: "upload:9".to_owned(),
        ..MediaRef::default()
    };
    let entry = atelier_proto::common::v1::MapEntry {
        key: "output".to_owned(),
        value: Some(Value {
            kind: Some(Kind::MediaValue(made)),
        }),
    };
    let outputs = atelier_proto::common::v1::MapValue { entries: vec![entry] };
    client.frame(&id, ordinal, Body::Result(outputs)).await;
    let second = client.invocation().await;
    let value = second.inputs.unwrap().entries.remove(0).value.unwrap();
    let Some(Kind::MediaValue(media)) = value.kind else {
        panic!("no media")
    };
    assert!(
        media.data.is_none() && media.uri.starts_with("inline:"),
        "{media:?}"
    );
    let fetch = |fetch_id, media| {
        let invocation_id = second.invocation_id.clone();
        Say::MediaFetch(MediaFetch {
            invocation_id,
            fetch_id,
            media: Some(media),
        })
    };
    client.say(fetch(5, media)).await;
    let mut fetched = Vec::new();
    loop {
        let Said::MediaPart(part) = client.next().await else {
            panic!("no part")
        };
        assert!(part.data.len() <= 64 * 1024 && part.fetch_id == 5 && part.error.is_none());
        fetched.extend_from_slice(&part.data);
        if part.last {
            break;
        }
    }
    assert!(fetched == bytes);
    client
        .say(fetch(
            6,
            MediaRef {
                uri: "asset://elsewhere.png".to_owned(),
                ..MediaRef::default()
            },
        ))
        .await;
    let Said::MediaPart(part) = client.next().await else {
        panic!("no part")
    };
    assert_eq!((part.last, part.error.as_deref()), (true, Some("no media")));
    client
        .frame(&second.invocation_id, 0, result(json!("read")))
        .await;
    let done = run.done().await;
    assert_eq!(done.outputs(), json!({"out": ["read"]}));
    let passed = to_json(&done.traffic.delivered.lock().unwrap()["e1"][0].0);
    assert!(
        passed.to_string().len() > bytes.len(),
        "the bytes are in the value"
    );
}
#[tokio::test]
async fn the_least_loaded_worker_gets_the_next_invocation_and_slots_are_a_bound() {
    let kernel = Kernel::new();
    let mut first = kernel.worker("one", vec![served("partner.Work")]).await;
    let mut second = kernel.worker("two", vec![served("partner.Work")]).await;
    let mut graph = graph();
    for number in 0..10 {
        graph = graph.node(&format!("w{number}"), "partner.Work", json!({}));
    }
    let run = kernel.setup(&graph).lenient().start();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..4 {
        ours.push(first.invocation().await.invocation_id);
        theirs.push(second.invocation().await.invocation_id);
    }
    let quiet = tokio::time::timeout(std::time::Duration::from_millis(200), first.hear()).await;
    assert!(quiet.is_err(), "more than its slots: {quiet:?}");
    first.frame(&ours[0], 0, result(json!(0))).await;
    ours[0] = first.invocation().await.invocation_id;
    second.frame(&theirs[0], 0, result(json!(0))).await;
    theirs[0] = second.invocation().await.invocation_id;
    for id in &ours {
        first.frame(id, 0, result(json!(1))).await;
    }
    for id in &theirs {
        second.frame(id, 0, result(json!(1))).await;
    }
    assert_eq!(run.done().await.status(), JobStatus::Completed);
}
/// Readers of streams wait for each other and for other nodes of their worker: they take none of its slots.
#[tokio::test]
async fn readers_of_streams_leave_the_slots_of_their_worker_to_others() {
    let kernel = Kernel::new();
    let types = vec![reader("partner.Reads"), served("partner.Work")];
    let mut client = kernel.worker("one", types).await;
    let mut graph = graph().node("s", "nodetool.input.Stream", json!({"name": "x"}));
    for number in 0..6 {
        let (id, edge) = (format!("r{number}"), format!("s.output > r{number}.value"));
        graph = graph.node(&id, "partner.Reads", json!({})).edges([edge.as_str()]);
    }
    let graph = graph.node("w", "partner.Work", json!({}));
    let run = kernel.setup(&graph).lenient().start();
    let mut ids = std::collections::HashMap::new();
    for _ in 0..7 {
        let invocation = client.invocation().await;
        ids.insert(invocation.node_id, invocation.invocation_id);
    }
    client.frame(&ids["w"], 0, result(json!(0))).await;
    run.cancel.cancel();
    assert_eq!(run.done().await.status(), JobStatus::Cancelled);
}
/// The code reads `b` first, which comes of all of `a`: what is there of `a` must not hold up the rest of it.
#[tokio::test]
async fn code_outside_that_waits_for_what_small_buffers_hold_back_gets_it() {
    let kernel = Kernel::new();
    let mut ty = served("partner.Late");
    if let Some(node_type) = &mut ty.node_type {
        node_type.streaming_input = true;
    }
    let mut client = kernel.worker("one", vec![ty]).await;
    let graph = graph()
        .node("s", "test.StreamN", json!({"n": 60}))
        .node("c", "test.Count", json!({}))
        .node("w", "partner.Late", json!({}))
        .edges(["s.output > w.a", "s.output > c.value", "c.output > w.b"]);
    let run = kernel.setup(&graph).lenient().options(|options| {
        options.stall_timeout = std::time::Duration::from_millis(50);
        options.buffer_limit = Some(1);
    });
    let run = run.start();
    let id = client.invocation().await.invocation_id;
    let found = async {
        loop {
            let input = input(&mut client).await;
            if input.input == "b" {
                return;
            }
        }
    };
    let found = tokio::time::timeout(std::time::Duration::from_secs(20), found).await;
    found.expect("what comes of all of `a`");
    client.frame(&id, 0, end()).await;
    let done = run.done().await;
    assert_eq!(done.status(), JobStatus::Completed, "{:?}", done.result.error);
}

//! What a worker may not say, and what becomes of it when it does.

use std::time::Duration;

use atelier_common::{identity::Caller, testkit::until};
use atelier_proto::{
    common::v1::{MapEntry, MapValue, MediaRef, Value},
    kernel::v1::{
        ConnectRequest, FrameDrop, FrameForward, FrameLog, FrameMedia, FrameYield, InputReceipt,
        InvocationFrame, JobStatus, MediaFetch, OutputCorrelation, WorkerGoodbye, WorkerHeartbeat,
        WorkerHello, WorkerNodeType, connect_request::Message as Say, connect_response::Message as Said,
        invocation_frame::Body,
    },
    reason::reason_of,
};
use proptest::{
    prelude::{Strategy, any, prop_oneof},
    strategy::{Just, ValueTree},
    test_runner::TestRunner,
};
use serde_json::json;

use super::{
    client::{Kernel, end, hello, result, served, yielded},
    one, reader, three,
};

#[tokio::test]
async fn a_greeting_comes_first_once_and_says_what_it_must() {
    let kernel = Kernel::new();
    let change = |change: fn(&mut WorkerHello)| {
        let mut hello = hello("one", 4, &[]);
        change(&mut hello);
        Say::Hello(hello)
    };
    let wrong = [
        (Say::Heartbeat(WorkerHeartbeat {}), "must be hello"),
        (change(|hello| hello.protocol_version = 2), "protocol_version 2"),
        (change(|hello| hello.instance_id.clear()), "instance_id"),
        (
            change(|hello| hello.worker_name = "a\nb".to_owned()),
            "worker_name",
        ),
        (change(|hello| hello.max_invocations = 0), "max_invocations"),
        (
            change(|hello| hello.held_ids = vec![String::new(); 5_000]),
            "held",
        ),
    ];
    for (say, text) in wrong {
        let mut client = kernel.open(None).await;
        client.say(say).await;
        let status = client.error().await;
        assert!(status.message().contains(text), "{status:?}");
        assert_eq!(reason_of(&status), "WORKER_PROTOCOL");
    }
    let (mut client, _) = kernel.connect("one", &[]).await;
    client.say(Say::Hello(hello("one", 4, &[]))).await;
    assert!(client.error().await.message().contains("twice"));
    until(|| async { kernel.workers.connected() == 0 })
        .within(Duration::from_secs(10))
        .await;
}
#[tokio::test]
async fn declarations_that_cannot_be_are_refused_by_name_and_the_others_hold() {
    let kernel = Kernel::new();
    let _other = kernel
        .worker("other", vec![served("partner.Same"), served("partner.Taken")])
        .await;
    let (mut client, _) = kernel.connect("one", &[]).await;
    let change = |name: &str, change: fn(&mut WorkerNodeType)| {
        let mut ty = served(name);
        change(&mut ty);
        ty
    };
    let declared = client
        .declare(vec![
            served("partner.Same"),
            change("partner.Taken", |ty| ty.retry_safe = true),
            served("test.Pass"),
            served("nodots"),
            served("partner.Twice"),
            served("partner.Twice"),
            WorkerNodeType::default(),
            change("partner.A", |ty| ty.artifact_outputs = vec!["nothing".to_owned()]),
            change("partner.B", |ty| {
                ty.output_correlations = vec![OutputCorrelation::default()]
            }),
            change("partner.C", |ty| {
                let node_type = ty.node_type.as_mut().unwrap();
                node_type.properties.push(node_type.properties[0].clone());
            }),
        ])
        .await;
    let answers: Vec<(bool, &str)> = declared
        .types
        .iter()
        .map(|ty| (ty.accepted, ty.reason.as_str()))
        .collect();
    let expected = [
        (true, ""),
        (false, "tester (instance other) with other metadata"),
        (false, "built-in"),
        (false, "dotted name"),
        (true, ""),
        (false, "twice"),
        (false, "node_type: missing"),
        (false, "\"nothing\" is no output"),
        (false, "\"\" is no output"),
        (false, "properties: \"value\" occurs twice"),
    ];
    for ((accepted, reason), (expected, text)) in answers.iter().zip(expected) {
        assert_eq!(*accepted, expected, "{reason}");
        assert!(reason.contains(text), "{reason:?} is not about {text:?}");
    }
    assert!(kernel.types.of("1").meta("partner.Twice").is_some());
    assert!(kernel.types.of("anybody").meta("partner.A").is_none());
}
#[tokio::test]
async fn types_of_a_user_are_seen_by_that_user() {
    let kernel = Kernel::new();
    let mut client = kernel.open(Some(&Caller::new("ann", ["run"]))).await;
    client.say(Say::Hello(hello("one", 4, &[]))).await;
    assert!(matches!(client.next().await, Said::Welcome(_)));
    client.declare(vec![served("partner.Mine")]).await;
    let sees = |user: &str| kernel.types.of(user).meta("partner.Mine").is_some();
    assert_eq!((sees("ann"), sees("bob"), sees("1")), (true, false, false));
    // What is served for everybody cannot be taken over by one of them.
    let _all = kernel.worker("all", vec![served("partner.All")]).await;
    let declared = client
        .declare(vec![served("partner.Mine"), served("partner.All")])
        .await;
    assert!(
        declared.types[1].reason.contains("whole deployment"),
        "{declared:?}"
    );
    assert!(kernel.types.of("ann").meta("partner.All").is_some() && sees("ann"));
}
#[tokio::test]
async fn frames_out_of_order_beyond_the_window_or_after_the_end_cost_the_stream_and_not_the_run() {
    let kernel = Kernel::new();
    let mut frames = Vec::new();
    frames.push(vec![(1, yielded(json!(0)))]);
    frames.push(vec![(0, end()), (1, end())]);
    for wrong in frames {
        let mut client = kernel.worker("one", vec![served("partner.Work")]).await;
        let run = kernel.setup(&one("partner.Work")).start();
        let id = client.invocation().await.invocation_id;
        let ended = wrong.len() == 2;
        for (ordinal, body) in wrong {
            client.frame(&id, ordinal, body).await;
        }
        if ended {
            // The run may be over before the second one arrives: then nobody knows the invocation any more.
            assert_eq!(run.done().await.status(), JobStatus::Completed);
            continue;
        }
        assert!(client.error().await.message().contains("ordinal 1"));
        let (client, _) = kernel.connect("one", &[&id]).await;
        client.frame(&id, 0, result(json!(1))).await;
        assert_eq!(run.done().await.status(), JobStatus::Completed);
    }
}
#[tokio::test]
async fn what_is_no_value_no_upload_or_out_of_place_fails_the_node() {
    let kernel = Kernel::new();
    let mut client = kernel
        .worker("one", vec![served("partner.Work"), reader("partner.Read")])
        .await;
    let unset = MapValue {
        entries: vec![MapEntry {
            key: "output".to_owned(),
            value: Some(Value { kind: None }),
        }],
    };
    let upload = |uri: &str| {
        let media = MediaRef {
            uri: uri.to_owned(),
            ..MediaRef::default()
        };
        MapValue {
            entries: vec![MapEntry {
                key: "output".to_owned(),
                value: Some(Value {
                    kind: Some(atelier_proto::common::v1::value::Kind::MediaValue(media)),
                }),
            }],
        }
    };
    let cases = [
        (Body::Result(unset), "a value has no kind"),
        (Body::Result(upload("upload:3")), "upload:3 was not sent"),
        (Body::Result(upload("inline:9")), "inline:9"),
        (yielded(json!(1)), "a yield where one result was asked for"),
    ];
    for (body, text) in cases {
        let run = kernel.setup(&one("partner.Work")).start();
        let id = client.invocation().await.invocation_id;
        client.frame(&id, 0, body).await;
        let done = run.done().await;
        let error = done.result.error.unwrap_or_default();
        assert!(error.contains(text), "{error}");
        while !matches!(client.next().await, Said::Cancel(_) | Said::FrameReceipt(_)) {}
    }
    let run = kernel.setup(&three("partner.Read")).start();
    let id = loop {
        if let Said::Invocation(invocation) = client.next().await {
            break invocation.invocation_id;
        }
    };
    let forged = FrameDrop {
        output: "output".to_owned(),
        lineage: vec![255; 8].into(),
    };
    client.frame(&id, 0, Body::Drop(forged)).await;
    let error = run.done().await.result.error.unwrap_or_default();
    assert!(error.contains("lineage"), "{error}");
}
#[tokio::test]
async fn an_oversized_message_ends_the_stream_and_a_worker_that_repeats_it_fails_its_node() {
    let kernel = Kernel::new();
    let mut client = kernel.worker("one", vec![served("partner.Work")]).await;
    let run = kernel.setup(&one("partner.Work")).start();
    let id = client.invocation().await.invocation_id;
    let huge = "x".repeat(5 * 1024 * 1024);
    for _ in 0..9 {
        client.frame(&id, 0, result(json!(huge))).await;
        let status = client.error().await;
        assert_eq!(status.code(), tonic::Code::OutOfRange, "{status:?}");
        client = kernel.connect("one", &[&id]).await.0;
    }
    let error = run.done().await.result.error.unwrap_or_default();
    assert!(error.contains("nothing over several streams"), "{error}");
}

/// Any message about a few invocations that may or may not exist.
fn anything(ids: Vec<String>) -> impl Strategy<Value = ConnectRequest> {
    let id = prop_oneof![proptest::sample::select(ids), Just("nobody/knows/it".to_owned())];
    let name = || proptest::sample::select(vec!["output", "value", "", "other"]).prop_map(str::to_owned);
    let bytes = || proptest::collection::vec(any::<u8>(), 0..40);
    let map = (name(), any::<i64>()).prop_map(|(name, number)| super::client::map(json!({name: number})));
    let body = prop_oneof![
        map.clone().prop_map(Body::Result),
        (map, proptest::option::of(bytes())).prop_map(|(values, lineage)| {
            Body::Values(FrameYield {
                values: Some(values),
                lineage: lineage.map(Into::into),
            })
        }),
        (name(), bytes()).prop_map(|(output, lineage)| {
            Body::Forward(FrameForward {
                output,
                value: None,
                lineage: lineage.into(),
            })
        }),
        (name(), bytes()).prop_map(|(output, lineage)| {
            Body::Drop(FrameDrop {
                output,
                lineage: lineage.into(),
            })
        }),
        (any::<i64>(), bytes()).prop_map(|(upload_id, data)| {
            Body::Media(FrameMedia {
                upload_id,
                data: data.into(),
            })
        }),
        (name(), any::<i32>()).prop_map(|(content, severity)| Body::Log(FrameLog { content, severity })),
        Just(end()),
    ];
    let message = prop_oneof![
        6 => (id.clone(), 0_i64..4, proptest::option::of(body)).prop_map(|(invocation_id, ordinal, body)| {
            Say::Frame(InvocationFrame { invocation_id, ordinal, body })
        }),
        1 => (id.clone(), any::<i64>()).prop_map(|(invocation_id, ordinal)| {
            Say::Frame(InvocationFrame { invocation_id, ordinal, body: Some(end()) })
        }),
        2 => (id.clone(), proptest::collection::vec(any::<i64>(), 0..5)).prop_map(|(invocation_id, numbers)| {
            Say::InputReceipt(InputReceipt { invocation_id, numbers })
        }),
        2 => (id, any::<i64>(), name()).prop_map(|(invocation_id, fetch_id, uri)| {
            let media = MediaRef { uri, ..MediaRef::default() };
            Say::MediaFetch(MediaFetch { invocation_id, fetch_id, media: Some(media) })
        }),
        1 => Just(Say::Heartbeat(WorkerHeartbeat {})),
        1 => Just(Say::Goodbye(WorkerGoodbye {})),
        1 => Just(Say::Hello(hello("one", 4, &[]))),
    ];
    proptest::option::weighted(0.95, message).prop_map(|message| ConnectRequest { message })
}
#[tokio::test]
async fn random_messages_neither_break_nor_block_the_kernel() {
    let kernel = Kernel::with(Duration::from_millis(100), Duration::from_millis(200));
    let mut runner = TestRunner::deterministic();
    for round in 0..60 {
        let types = vec![served("partner.Work"), reader("partner.Read")];
        let mut client = kernel.worker("one", types.clone()).await;
        let runs = [
            kernel.setup(&one("partner.Work")).start(),
            kernel.setup(&three("partner.Read")).start(),
        ];
        let mut ids = Vec::new();
        while ids.len() < 2 {
            if let Said::Invocation(invocation) = client.next().await {
                ids.push(invocation.invocation_id);
            }
        }
        let strategy = anything(ids);
        for _ in 0..20 {
            let message = strategy.new_tree(&mut runner).expect("a message").current();
            if client.out.send(message).await.is_err() {
                break;
            }
        }
        drop(client);
        for run in runs {
            // Completed or failed, but ended, and without a panic.
            let done = run.done().await;
            assert_ne!(done.status(), JobStatus::Running, "round {round}");
        }
        until(|| async { kernel.workers.connected() == 0 && kernel.workers.invocations() == 0 })
            .within(Duration::from_secs(10))
            .await;
    }
    // And it still serves.
    let mut client = kernel.worker("two", vec![served("partner.Work")]).await;
    let run = kernel.setup(&one("partner.Work")).start();
    let id = client.invocation().await.invocation_id;
    client.frame(&id, 0, result(json!(1))).await;
    assert_eq!(run.done().await.status(), JobStatus::Completed);
}

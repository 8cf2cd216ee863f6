//! Chat of OpenAI and of servers that speak its language.

use std::time::Duration;

use atelier_common::testkit::until;
use atelier_proto::tracker::v1::GenerationStatus;
use atelier_proto::value::{BytesForm, Value, to_json};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::openai::{class, stack, stack_with};
use crate::stack::{Stack, cost, first_id, read, request, status, u1};
use crate::standin::{Answer, PNG, StandIn};

fn ask() -> atelier_proto::provider::v1::RunGenerationRequest {
    let messages =
        json!({"messages": [{"role": "user", "content": "say hi"}], "system": "be short", "max_tokens": 9});
    request("openai", "generate_message", messages)
}
fn piece(text: &str) -> String {
    format!(
        "data: {}\n\n",
        json!({"id": "chatcmpl-1", "choices": [{"index": 0, "delta": {"content": text}}]})
    )
}
fn finish() -> String {
    format!(
        "data: {}\n\n",
        json!({"id": "chatcmpl-1", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    )
}
fn usage() -> String {
    let details = json!({"cached_tokens": 8_000});
    let usage =
        json!({"prompt_tokens": 12_000, "completion_tokens": 1_500, "prompt_tokens_details": details});
    format!("data: {}\n\n", json!({"choices": [], "usage": usage}))
}
async fn answered(stack: &Stack, server: &StandIn, body: String) -> crate::stack::Told {
    server.answer([Answer::sse(&body).header("x-request-id", "req_c").chunked(5)]);
    stack.run(ask()).await
}

#[tokio::test]
async fn a_chat_is_streamed_and_billed_by_its_tokens() {
    let server = StandIn::start([Answer::picture()]).await;
    let stack = stack(&server).await;
    let body = [
        piece("Grü"),
        piece("ße"),
        finish(),
        usage(),
        "data: [DONE]\n\n".to_owned(),
    ]
    .concat();
    let told = answered(&stack, &server, body).await;
    assert_eq!(told.error.as_ref().map(ToString::to_string), None);
    assert_eq!(
        (told.output(), told.text()),
        (Value::from("Grüße"), "Grüße".to_owned())
    );
    assert!(told.chunks.len() == 3 && told.chunks.last().unwrap().done);
    let row = stack.row(&told.id()).await;
    assert_eq!(
        (row.input_tokens, row.output_tokens, cost(&row)),
        (Some(12_000), Some(1_500), Some("0.002100000"))
    );
    assert_eq!(row.provider_request_id.as_deref(), Some("req_c"));
    let sent = server.seen()[0].json();
    assert_eq!(
        sent["messages"],
        json!([{"role": "system", "content": "be short"}, {"role": "user", "content": "say hi"}])
    );
    assert_eq!(
        (&sent["stream"], &sent["max_tokens"], &sent["model"]),
        (&json!(true), &json!(9), &json!("gpt-4o-mini"))
    );
}

/// Tools go along, and calls of them come back whole: from a stream and from an answer that is not one.
#[tokio::test]
async fn tools_are_offered_and_their_calls_put_together() {
    let server = StandIn::start([Answer::picture()]).await;
    let stack = stack(&server).await;
    let delta = |call: serde_json::Value| {
        let choice = json!({"index": 0, "delta": {"tool_calls": [call]}});
        format!("data: {}\n\n", json!({"id": "chatcmpl-1", "choices": [choice]}))
    };
    let end =
        json!({"id": "chatcmpl-1", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]});
    let body = [
        delta(json!({"index": 0, "id": "c1", "function": {"name": "add", "arguments": ""}})),
        delta(json!({"index": 0, "function": {"arguments": "{\"x\":"}})),
        delta(json!({"index": 0, "function": {"arguments": "1}"}})),
        format!("data: {end}\n\n"),
        usage(),
        "data: [DONE]\n\n".to_owned(),
    ]
    .concat();
    let tools = json!([{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}]);
    let earlier = json!({"role": "tool", "tool_call_id": "c0", "content": "7"});
    let params = json!({"messages": [{"role": "user", "content": "add"}, earlier], "tools": tools});
    let function = json!({"name": "add", "arguments": "{\"x\":1}"});
    let call = json!({"id": "c1", "type": "function", "function": function});
    let expected = json!({"role": "assistant", "content": "", "tool_calls": [call]});
    server.answer([Answer::sse(&body).chunked(5)]);
    let told = stack
        .run(request("openai", "generate_message", params.clone()))
        .await;
    assert_eq!(to_json(&told.output(), BytesForm::Tagged), expected);
    assert!(told.result.as_ref().unwrap().assets.is_empty());
    let sent = server.seen()[0].json();
    assert_eq!((&sent["tools"], &sent["messages"][1]), (&tools, &earlier));
    let message = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    let whole = json!({"id": "chatcmpl-2", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]});
    server.answer([Answer::json(200, whole)]);
    let told = stack.run(request("openai", "generate_message", params)).await;
    assert_eq!(to_json(&told.output(), BytesForm::Tagged), expected);
}

#[tokio::test]
async fn p_015_an_error_inside_of_the_stream() {
    let server = StandIn::start([Answer::picture()]).await;
    let stack = stack(&server).await;
    let error = json!({"error": {"message": "overloaded", "type": "server_error", "code": null}});
    let told = answered(&stack, &server, format!("{}data: {error}\n\n", piece("h"))).await;
    assert_eq!(class(&told), "provider_transient");
    let row = stack.row(&told.id()).await;
    assert_eq!(
        (status(&row), row.error.as_deref()),
        (GenerationStatus::Failed, Some("overloaded"))
    );
    assert_eq!(row.provider_request_id.as_deref(), Some("req_c"));
    assert!(told.text() == "h" && !told.chunks.iter().any(|chunk| chunk.done));
    assert_eq!(server.submits(), 1);
}

#[tokio::test]
async fn p_114_a_compatible_server_with_its_habits() {
    let server = StandIn::start([Answer::picture()]).await;
    let stack = stack_with(&server, |openai| {
        openai.api_key = None;
        openai.free = true;
    })
    .await;
    // No usage, no last word, but a reason to be finished.
    let told = answered(&stack, &server, [piece("hi"), finish()].concat()).await;
    assert_eq!(
        (told.error.as_ref().map(ToString::to_string), told.output()),
        (None, Value::from("hi"))
    );
    let row = stack.row(&told.id()).await;
    assert_eq!(
        (cost(&row), row.price_source.as_deref()),
        (Some("0.000000000"), Some("provider"))
    );
    assert_eq!(server.seen()[0].authorization, None);
    // Neither a reason nor a last word.
    let told = answered(&stack, &server, piece("hi")).await;
    assert_eq!(
        (class(&told).as_str(), told.reason().as_str()),
        ("unknown", "SUBMISSION_UNKNOWN")
    );
    // An error that is only text.
    server.answer([Answer::json(401, json!({"error": "Unauthorized"}))]);
    let told = stack.run(ask()).await;
    assert_eq!(
        (class(&told).as_str(), told.error.as_ref().unwrap().message()),
        ("auth", "Unauthorized")
    );
    // A server that does not stream, and a model that only it knows.
    let whole = json!({"id": "chatcmpl-1", "object": "chat.completion", "created": 0, "extra": {"x": 1},
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}]});
    server.answer([Answer::json(200, whole)]);
    let mut call = ask();
    call.model = "llama9:3b".to_owned();
    let told = stack.run(call).await;
    assert_eq!(told.output(), Value::from("hi"));
    assert_eq!(
        stack.row(&told.id()).await.provider_request_id.as_deref(),
        Some("chatcmpl-1")
    );
    // A model that is not there.
    server.answer([Answer::error(
        404,
        "model \"x\" not found, try pulling it first",
        "api_error",
        None,
    )]);
    let told = stack.run(ask()).await;
    assert_eq!(
        (class(&told).as_str(), told.error.as_ref().unwrap().code()),
        ("invalid_input", tonic::Code::NotFound)
    );
}

#[tokio::test]
async fn without_usage_a_chat_has_no_price_and_says_so() {
    let server = StandIn::start([Answer::picture()]).await;
    let stack = stack(&server).await;
    let told = answered(&stack, &server, [piece("hi"), finish()].concat()).await;
    let row = stack.row(&told.id()).await;
    assert_eq!((status(&row), cost(&row)), (GenerationStatus::Completed, None));
    assert!(stack.facts(&told.id()).await.contains_key("unpriced_reason"));
}

#[tokio::test]
async fn a_cancel_closes_the_connection_of_a_chat() {
    let mut slow = Answer::sse(&[piece("never"), finish()].concat());
    slow.delay = Duration::from_secs(600);
    let server = StandIn::start([slow]).await;
    let stack = stack(&server).await;
    let mut stream = stack.open(&u1(), ask()).await.unwrap();
    let id = first_id(&mut stream).await;
    until(async || server.submits() == 1)
        .within(Duration::from_secs(10))
        .await;
    assert!(stack.cancel(&u1(), &id).await.aborted);
    assert_eq!(read(stream).await.reason(), "CANCELLED");
    let registry = stack.seam.registry().clone();
    until(async || registry.running().is_empty())
        .within(Duration::from_secs(5))
        .await;
}

fn shown(part: serde_json::Value) -> atelier_proto::provider::v1::RunGenerationRequest {
    let message = json!({"role": "user", "content": [{"type": "text", "text": "what is it"}, part]});
    request("openai", "generate_message", json!({"messages": [message]}))
}

/// The server that answers is told no address: it may stand where the caller could not fetch from.
#[tokio::test]
async fn pictures_and_sounds_in_messages_go_as_their_bytes() {
    let png = STANDARD.decode(PNG).unwrap();
    let other = StandIn::start([Answer::new(200, "image/png", png)]).await;
    let server = StandIn::start([Answer::picture()]).await;
    let allowed = other.address.to_string();
    let stack = stack_with(&server, |openai| openai.allowed_hosts = vec![allowed]).await;
    let (address, inline) = (
        format!("http://{}/a.png", other.address),
        format!("data:image/png;base64,{PNG}"),
    );
    let picture = json!({"type": "image_url", "image_url": {"url": inline}});
    let parts = [
        (json!({"type": "image", "uri": address}), picture.clone()),
        (
            json!({"type": "image_url", "image_url": {"url": address}}),
            picture.clone(),
        ),
        (
            json!({"type": "image_url", "image_url": {"url": inline}}),
            picture,
        ),
        (
            json!({"type": "input_image", "image_url": address}),
            json!({"type": "input_image", "image_url": inline}),
        ),
        (
            json!({"type": "audio", "uri": "data:audio/wav;base64,UklGRg=="}),
            json!({"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}),
        ),
    ];
    for (at, (part, expected)) in parts.into_iter().enumerate() {
        let body = [piece("a pixel"), finish()].concat();
        server.answer([Answer::sse(&body)]);
        let told = stack.run(shown(part)).await;
        assert_eq!(told.error.as_ref().map(ToString::to_string), None);
        assert_eq!(server.seen()[at].json()["messages"][0]["content"][1], expected);
    }
    assert!(other.seen().iter().all(|seen| seen.authorization.is_none()));
}

#[tokio::test]
async fn p_120_hostile_addresses_in_messages_reach_nobody() {
    let server = StandIn::start([Answer::picture()]).await;
    let stack = stack(&server).await;
    for address in [
        "http://169.254.169.254/latest",
        "file:///etc/passwd",
        "http://127.0.0.1:1/x",
        "nowhere",
    ] {
        for part in [
            json!({"type": "image", "uri": address}),
            json!({"type": "audio", "uri": address}),
            json!({"type": "image_url", "image_url": {"url": address}}),
            json!({"type": "video_url", "video_url": {"url": address, "more": [{"file_url": address}]}}),
        ] {
            let told = stack.run(shown(part)).await;
            assert_eq!(class(&told), "invalid_input", "{address}");
        }
    }
    assert_eq!(server.submits(), 0);
}

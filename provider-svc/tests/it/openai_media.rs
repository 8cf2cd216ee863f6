//! Streams, sound and downloads of OpenAI against a stand-in (providers specification 23).

use atelier_proto::common::v1::MapValue;
use atelier_proto::value::{BytesForm, Map, MediaRef, Value, to_json};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::openai::{class, failed, kettle, stack, stack_with};
use crate::stack::{cost, request};
use crate::standin::{Answer, MP3, PNG, StandIn};

fn frames() -> String {
    let partial = json!({"type": "image_generation.partial_image", "partial_image_index": 0, "b64_json": PNG, "usage": {"output_tokens": 1}});
    let done = json!({"type": "image_generation.completed", "b64_json": PNG, "usage": {"input_tokens": 12, "output_tokens": 1056}});
    format!(
        "event: image_generation.partial_image\r\ndata: {partial}\r\n\r\n: ping\r\n\r\nevent: image_generation.completed\r\ndata: {done}\r\n\r\n"
    )
}
fn streamed() -> atelier_proto::provider::v1::RunGenerationRequest {
    let mut call = request(
        "openai",
        "text_to_image",
        json!({"prompt": "a kettle", "stream": true, "partial_images": 1}),
    );
    call.model = "gpt-image-1.5".to_owned();
    call
}

#[tokio::test]
async fn p_010_a_stream_that_is_cut_anywhere() {
    let server = StandIn::start([Answer::sse(&frames()).header("x-request-id", "req_s").chunked(7)]).await;
    let stack = stack(&server).await;
    let told = stack.run(streamed()).await;
    assert_eq!(told.error.as_ref().map(ToString::to_string), None);
    assert_eq!(told.progress.len(), 1);
    let row = stack.row(&told.id()).await;
    assert_eq!((row.output_tokens, row.input_tokens), (Some(1056), Some(12)));
    assert_eq!(told.result.unwrap().assets[0].size_bytes, 69);
}

#[tokio::test]
async fn p_011_a_stream_that_breaks_off_leaves_no_output() {
    let frames = frames();
    let half = frames.find(": ping").unwrap();
    let server = StandIn::start([Answer::sse(&frames)
        .header("x-request-id", "req_cut")
        .reset_after(half)])
    .await;
    let stack = stack(&server).await;
    let (told, row) = failed(&stack, streamed()).await;
    assert_eq!(
        (class(&told).as_str(), told.reason().as_str()),
        ("unknown", "SUBMISSION_UNKNOWN")
    );
    assert_eq!(row.provider_request_id.as_deref(), Some("req_cut"));
}

fn hello() -> atelier_proto::provider::v1::RunGenerationRequest {
    let mut call = request(
        "openai",
        "text_to_speech",
        json!({"text": "Hello there", "voice": "alloy"}),
    );
    call.model = "tts-1".to_owned();
    call
}

#[tokio::test]
async fn p_012_speech() {
    let server = StandIn::start([Answer::new(200, "audio/mpeg", MP3)
        .header("x-request-id", "req_tts")
        .chunked(5)])
    .await;
    let stack = stack(&server).await;
    let told = stack.run(hello()).await;
    assert_eq!(told.error.as_ref().map(ToString::to_string), None);
    let row = stack.row(&told.id()).await;
    assert_eq!(cost(&row), Some("0.000165000"));
    assert_eq!(
        row.quantity.as_deref().and_then(|text| text.parse::<f64>().ok()),
        Some(11.0)
    );
    let asset = &told.result.as_ref().unwrap().assets[0];
    assert_eq!(
        (asset.size_bytes, asset.name.rsplit('.').next()),
        (12, Some("mp3"))
    );
    let expected =
        json!({"model": "tts-1", "input": "Hello there", "voice": "alloy", "response_format": "mp3"});
    assert_eq!(server.seen()[0].json(), expected);
}

#[tokio::test]
async fn p_013_speech_that_breaks_off() {
    let server = StandIn::start([Answer::new(200, "audio/mpeg", MP3)
        .header("x-request-id", "req_tts")
        .reset_after(6)])
    .await;
    let stack = stack(&server).await;
    let (told, row) = failed(&stack, hello()).await;
    assert_eq!(
        (class(&told).as_str(), row.provider_request_id.as_deref()),
        ("unknown", Some("req_tts"))
    );
}

#[tokio::test]
async fn p_014_a_transcript() {
    let server = StandIn::start([Answer::json(
        200,
        json!({"text": "hi", "usage": {"type": "duration", "seconds": 30}}),
    )])
    .await;
    let stack = stack(&server).await;
    let sound = MediaRef {
        kind: "audio".into(),
        data: Some(vec![1, 2, 3].into()),
        ..MediaRef::default()
    };
    let mut call = request("openai", "automatic_speech_recognition", json!({}));
    call.params = Some(MapValue::from(&Map::from([(
        "audio".to_owned(),
        Value::media(sound),
    )])));
    let told = stack.run(call).await;
    assert_eq!(told.output(), Value::from("hi"));
    let row = stack.row(&told.id()).await;
    assert_eq!(
        (row.model.as_str(), cost(&row)),
        ("whisper-1", Some("0.003000000"))
    );
    let stored: Map = row.parameters.unwrap().try_into().unwrap();
    assert_eq!(
        to_json(&stored["audio"], BytesForm::Tagged)["data"],
        json!({"bytes": 3})
    );
    assert!(server.seen()[0].kind.starts_with("multipart/form-data"));
}

#[tokio::test]
async fn pictures_by_address_are_fetched_with_the_key_from_the_own_host_only() {
    let png = STANDARD.decode(PNG).unwrap();
    let other = StandIn::start([Answer::new(200, "image/png", png.clone())]).await;
    let relative = Answer::json(
        200,
        json!({"created": 0, "data": [{"url": "/generated-images/a.png"}]}),
    );
    let server = StandIn::start([relative, Answer::new(200, "image/png", png)]).await;
    let allowed = other.address.to_string();
    let stack = stack_with(&server, |openai| openai.allowed_hosts = vec![allowed]).await;
    let told = stack.run(kettle()).await;
    assert_eq!(told.error.as_ref().map(ToString::to_string), None);
    let seen = server.seen();
    assert_eq!(
        (seen[1].path.as_str(), seen[1].authorization.is_some()),
        ("/generated-images/a.png", true)
    );
    let elsewhere = format!("http://{}/signed.png?sig=1", other.address);
    server.answer([Answer::json(200, json!({"data": [{ "url": elsewhere }]}))]);
    let told = stack.run(kettle()).await;
    assert_eq!(told.error.as_ref().map(ToString::to_string), None);
    assert_eq!(other.seen()[0].authorization, None);
    // A redirect of the own host to another one loses the key, too.
    let away = Answer::new(302, "text/plain", "").header("location", &elsewhere);
    server.answer([Answer::json(200, json!({"data": [{"url": "/moved.png"}]})), away]);
    let told = stack.run(kettle()).await;
    assert_eq!(told.error.as_ref().map(ToString::to_string), None);
    assert_eq!(other.seen()[1].authorization, None);
}

#[tokio::test]
async fn p_120_hostile_addresses_are_refused() {
    let server = StandIn::start([Answer::picture()]).await;
    let stack = stack(&server).await;
    for address in [
        "http://169.254.169.254/latest",
        "file:///etc/passwd",
        "http://127.0.0.1:1/x",
        "http://[::1]/x",
    ] {
        server.answer([Answer::json(200, json!({"data": [{ "url": address }]}))]);
        let (told, row) = failed(&stack, kettle()).await;
        assert_eq!(class(&told), "provider_permanent", "{address}");
        assert_eq!(row.error_code.as_deref(), Some("OUTPUT_UNDECODABLE"));
    }
    let inside = Answer::new(302, "text/plain", "").header("location", "http://127.0.0.1:9/x");
    server.answer([
        Answer::json(200, json!({"data": [{"url": "/moved.png"}]})),
        inside,
    ]);
    let (told, _) = failed(&stack, kettle()).await;
    assert_eq!(class(&told), "provider_permanent");
}

#[tokio::test]
async fn p_121_a_download_without_end_is_given_up() {
    let mut endless = Answer::new(200, "image/png", "");
    endless.endless = true;
    let server = StandIn::start([
        Answer::json(200, json!({"data": [{"url": "/a.png"}]})),
        endless.clone(),
    ])
    .await;
    let stack = stack_with(&server, |openai| openai.max_media_bytes = 1 << 20).await;
    let (told, row) = failed(&stack, kettle()).await;
    assert_eq!(class(&told), "provider_permanent");
    assert!(row.error.unwrap().contains("too large"));
    server.answer([endless]);
    assert_eq!(class(&failed(&stack, hello()).await.0), "provider_permanent");
}

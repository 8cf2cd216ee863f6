//! OpenAI's pictures, speech and transcripts against a stand-in (providers specification 23).

use std::time::Duration;

use atelier_proto::common::v1::MapValue;
use atelier_proto::tracker::v1::{Generation, GenerationStatus, SubmissionStatus};
use atelier_proto::value::{BytesForm, Map, MediaRef, Value, to_json};
use atelier_provider::settings::{OpenAi, Settings};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use tonic::Code;
use tonic_types::StatusExt as _;

use crate::stack::{Stack, Told, cost, request, status};
use crate::standin::{Answer, PNG, StandIn};

const KEY: &str = "sk-secret-1";

pub async fn stack(server: &StandIn) -> Stack {
    stack_with(server, |_| {}).await
}
pub async fn stack_with(server: &StandIn, change: impl FnOnce(&mut OpenAi)) -> Stack {
    let mut openai = OpenAi {
        base_url: server.base(),
        api_key: Some(KEY.into()),
        first_pause: Duration::from_millis(20),
        ..OpenAi::default()
    };
    change(&mut openai);
    Stack::with(Settings {
        openai,
        ..Settings::default()
    })
    .await
}
pub fn class(told: &Told) -> String {
    let info = told.error.as_ref().unwrap().get_details_error_info().unwrap();
    info.metadata["class"].clone()
}
pub fn kettle() -> atelier_proto::provider::v1::RunGenerationRequest {
    let params = json!({"prompt": "a teal kettle", "size": "1024x1024", "quality": "medium"});
    let mut call = request("openai", "text_to_image", params);
    call.model = "gpt-image-1.5".to_owned();
    call
}
pub async fn failed(
    stack: &Stack,
    call: atelier_proto::provider::v1::RunGenerationRequest,
) -> (Told, Generation) {
    let told = stack.run(call).await;
    let row = stack.row(&told.id()).await;
    assert_eq!(status(&row), GenerationStatus::Failed);
    assert!(cost(&row).is_none() && stack.assets().await.is_empty());
    (told, row)
}

#[tokio::test]
async fn p_001_a_picture() {
    let server = StandIn::start([Answer::picture()]).await;
    let stack = stack(&server).await;
    let told = stack.run(kettle()).await;
    assert_eq!(told.error.as_ref().map(ToString::to_string), None);
    let row = stack.row(&told.id()).await;
    assert_eq!(row.provider_request_id.as_deref(), Some("req_oa1"));
    assert_eq!(
        (cost(&row), row.billing_unit.as_deref()),
        (Some("0.034000000"), Some("images"))
    );
    assert_eq!(row.price_source.as_deref(), Some("model-catalog"));
    let asset = &told.result.as_ref().unwrap().assets[0];
    assert_eq!((asset.content_type.as_str(), asset.size_bytes), ("image/png", 69));
    let seen = &server.seen()[0];
    assert_eq!(
        (server.submits(), seen.path.as_str()),
        (1, "/v1/images/generations")
    );
    assert_eq!(seen.authorization.as_deref(), Some("Bearer sk-secret-1"));
    let expected = json!({"model": "gpt-image-1.5", "prompt": "a teal kettle", "n": 1, "size": "1024x1024", "quality": "medium"});
    assert_eq!(seen.json(), expected);
}

#[tokio::test]
async fn p_002_an_edit_is_multipart() {
    let server = StandIn::start([Answer::picture()]).await;
    let stack = stack(&server).await;
    let png = STANDARD.decode(PNG).unwrap();
    let picture = |data: Vec<u8>| {
        Value::media(MediaRef {
            kind: "image".into(),
            data: Some(data.into()),
            ..MediaRef::default()
        })
    };
    let params = Map::from([
        ("prompt".to_owned(), "make it red".into()),
        (
            "images".to_owned(),
            Value::list(vec![picture(png.clone()), picture(png.clone())]),
        ),
        ("mask".to_owned(), picture(png)),
    ]);
    let mut call = request("openai", "image_to_image", json!({}));
    call.params = Some(MapValue::from(&params));
    let told = stack.run(call).await;
    assert_eq!(told.error.as_ref().map(ToString::to_string), None);
    let seen = &server.seen()[0];
    assert!(seen.path.ends_with("/images/edits") && seen.kind.starts_with("multipart/form-data; boundary="));
    let body = String::from_utf8_lossy(&seen.body);
    assert_eq!(body.matches("name=\"image[]\"; filename=\"image-").count(), 2);
    for part in [
        "name=\"model\"",
        "name=\"prompt\"",
        "name=\"mask\"; filename=\"mask.png\"",
        "image/png",
    ] {
        assert!(body.contains(part), "{part}");
    }
    assert_eq!(told.result.unwrap().assets.len(), 1);
}

#[tokio::test]
async fn p_002_references_to_assets_are_sent_as_bytes() {
    let server = StandIn::start([Answer::picture()]).await;
    let stack = stack(&server).await;
    let first = stack.run(kettle()).await;
    let params = Map::from([
        ("prompt".to_owned(), "again".into()),
        ("image".to_owned(), first.output()),
    ]);
    let mut call = request("openai", "image_to_image", json!({}));
    call.params = Some(MapValue::from(&params));
    let told = stack.run(call).await;
    assert_eq!(told.error.as_ref().map(ToString::to_string), None);
    let png = STANDARD.decode(PNG).unwrap();
    assert!(
        server.seen()[1]
            .body
            .windows(png.len())
            .any(|window| window == png)
    );
}

#[tokio::test]
async fn p_003_a_refusal_is_a_failure_of_the_content() {
    let words = "Your request was rejected by the safety system. safety_violations=[violence].";
    let answer = Answer::error(
        400,
        words,
        "image_generation_user_error",
        Some("moderation_blocked"),
    );
    let server = StandIn::start([answer.header("x-request-id", "req_oa2")]).await;
    let stack = stack(&server).await;
    let (told, row) = failed(&stack, kettle()).await;
    assert_eq!(
        (class(&told).as_str(), told.reason().as_str()),
        ("content_policy", "CONTENT_FILTERED")
    );
    assert_eq!(row.provider_request_id.as_deref(), Some("req_oa2"));
    assert_eq!(server.submits(), 1);
}

#[tokio::test]
async fn p_004_too_fast_then_fine_is_one_row_and_one_charge() {
    let slow = Answer::error(429, "Rate limit reached", "requests", Some("rate_limit_exceeded"));
    let server = StandIn::start([slow.header("retry-after", "2"), Answer::picture()]).await;
    let stack = stack(&server).await;
    let told = stack.run(kettle()).await;
    let row = stack.row(&told.id()).await;
    assert_eq!(
        (status(&row), cost(&row)),
        (GenerationStatus::Completed, Some("0.034000000"))
    );
    let seen = server.seen();
    assert_eq!((seen.len(), stack.rows().await.len()), (2, 1));
    assert!(seen[1].at - seen[0].at >= Duration::from_secs(2));
}

#[tokio::test]
async fn p_005_a_quota_that_looks_like_a_rate_is_not_tried_again() {
    let server = StandIn::start([Answer::error(
        429,
        "You exceeded your current quota",
        "insufficient_quota",
        Some("insufficient_quota"),
    )])
    .await;
    let stack = stack(&server).await;
    let (told, row) = failed(&stack, kettle()).await;
    assert_eq!(
        (class(&told).as_str(), row.error_code.as_deref()),
        ("quota", Some("QUOTA"))
    );
    assert_eq!(server.submits(), 1);
}

#[tokio::test]
async fn p_006_a_bad_key_is_not_repeated_in_the_row() {
    let words = "Incorrect API key provided: sk-...9, you sent sk-secret-1.";
    let server = StandIn::start([Answer::error(
        401,
        words,
        "invalid_request_error",
        Some("invalid_api_key"),
    )])
    .await;
    let stack = stack(&server).await;
    let (told, row) = failed(&stack, kettle()).await;
    assert_eq!(
        (class(&told).as_str(), row.error_code.as_deref()),
        ("auth", Some("AUTH"))
    );
    let stored = row.error.unwrap();
    assert!(
        !stored.contains("sk-") && stored.starts_with("Incorrect API key provided"),
        "{stored}"
    );
    assert!(!format!("{:?}", told.error).contains("sk-secret"));
}

#[tokio::test]
async fn p_007_p_008_a_hopeless_wait_and_a_veto_end_at_once() {
    let slow = || Answer::error(429, "Rate limit reached", "requests", Some("rate_limit_exceeded"));
    let server = StandIn::start([slow().header("retry-after", "600")]).await;
    let stack = stack(&server).await;
    let start = tokio::time::Instant::now();
    let (told, _) = failed(&stack, kettle()).await;
    assert!(start.elapsed() < Duration::from_secs(1));
    assert_eq!(
        (class(&told).as_str(), told.error.as_ref().unwrap().code()),
        ("rate_limit", Code::ResourceExhausted)
    );
    let wait = told
        .error
        .as_ref()
        .unwrap()
        .get_details_retry_info()
        .unwrap()
        .retry_delay;
    assert_eq!((server.submits(), wait), (1, Some(Duration::from_secs(600))));
    server.answer([slow()
        .header("retry-after", "1")
        .header("x-should-retry", "false")]);
    let (told, _) = failed(&stack, kettle()).await;
    assert_eq!((class(&told).as_str(), server.submits()), ("rate_limit", 2));
}

#[tokio::test]
async fn p_009_an_error_after_acceptance_is_not_sent_again() {
    let answer = Answer::error(500, "The server had an error", "server_error", None);
    let server = StandIn::start([answer.header("x-request-id", "req_e5")]).await;
    let stack = stack(&server).await;
    let (told, row) = failed(&stack, kettle()).await;
    assert_eq!(
        (class(&told).as_str(), row.provider_request_id.as_deref()),
        ("provider_transient", Some("req_e5"))
    );
    assert_eq!(
        told.error
            .as_ref()
            .unwrap()
            .get_details_error_info()
            .unwrap()
            .metadata["maybe_billed"],
        "true"
    );
    assert_eq!(server.submits(), 1);
}

#[tokio::test]
async fn p_115_neither_key_nor_media_occur_anywhere() {
    let url = format!("data:image/png;base64,{PNG}");
    let echo = format!("cannot use {url} with key {KEY}");
    let server = StandIn::start([Answer::error(400, &echo, "invalid_request_error", None)]).await;
    let stack = stack(&server).await;
    let mut call = kettle();
    let mut params: Map = call.params.take().unwrap().try_into().unwrap();
    params.insert("seed_image".to_owned(), url.as_str().into());
    call.params = Some(MapValue::from(&params));
    let answers = [
        Answer::error(400, &echo, "invalid_request_error", None),
        Answer::error(401, &echo, "invalid_request_error", None),
        Answer::error(500, &echo, "server_error", None),
        Answer::new(200, "text/html", format!("<html>{echo}</html>")),
        Answer::new(200, "application/json", echo.clone()),
    ];
    for answer in answers {
        server.answer([answer]);
        let (told, row) = failed(&stack, call.clone()).await;
        for text in [format!("{told:?}"), format!("{row:?}")] {
            assert!(!text.contains(KEY) && !text.contains("iVBORw0"), "{text}");
        }
        let stored: Map = row.parameters.unwrap().try_into().unwrap();
        assert_eq!(
            to_json(&stored["seed_image"], BytesForm::Tagged),
            json!({"bytes": 69})
        );
    }
}

#[tokio::test]
async fn p_116_a_page_in_the_place_of_an_answer() {
    let page = format!(
        "<html><body>Sign in to the network {}</body></html>",
        "x ".repeat(400)
    );
    let server = StandIn::start([Answer::new(200, "text/html; charset=utf-8", page)]).await;
    let stack = stack(&server).await;
    let (told, row) = failed(&stack, kettle()).await;
    assert_eq!(
        (class(&told).as_str(), row.error_code.as_deref()),
        ("unknown", Some("SUBMISSION_UNKNOWN"))
    );
    let words = row.error.unwrap();
    assert!(
        words.contains("Sign in to the network") && words.len() < 300,
        "{words}"
    );
    assert_eq!(row.facets.unwrap().submission(), SubmissionStatus::Unknown);
    assert_eq!(server.submits(), 1);
}

#[tokio::test]
async fn p_117_dates_in_retry_after() {
    let slow = || Answer::error(429, "Rate limit reached", "requests", None);
    let server = StandIn::start([slow().header("retry-after", "Wed, 21 Oct 2099 07:28:00 GMT")]).await;
    let stack = stack(&server).await;
    let (told, _) = failed(&stack, kettle()).await;
    assert_eq!((class(&told).as_str(), server.submits()), ("rate_limit", 1));
    let past = slow().header("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT");
    server.answer([past, slow().header("retry-after", "soon"), Answer::picture()]);
    let told = stack.run(kettle()).await;
    assert_eq!(
        (told.error.as_ref().map(ToString::to_string), server.submits()),
        (None, 4)
    );
}

#[tokio::test]
async fn p_124_a_server_that_is_not_there_is_tried_three_times_and_nothing_was_sent() {
    let server = StandIn::start([Answer::picture()]).await;
    // A port that was free a moment ago, and whose listener is gone.
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let stack = stack_with(&server, |openai| openai.base_url = format!("http://{closed}/v1")).await;
    let (told, row) = failed(&stack, kettle()).await;
    assert_eq!(
        (class(&told).as_str(), told.reason().as_str()),
        ("provider_transient", "PROVIDER_UNREACHABLE")
    );
    assert_eq!(
        (
            row.provider_request_id,
            row.reconciliation.unwrap().state.as_str()
        ),
        (None, "none")
    );
    assert_eq!(
        told.error
            .as_ref()
            .unwrap()
            .get_details_error_info()
            .unwrap()
            .metadata["maybe_billed"],
        "false"
    );
}

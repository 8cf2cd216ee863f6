//! Gemini (providers specification 23, P-019 to P-028).

use serde_json::{Value as Json, json};

use crate::remote::{Ran, call, json as answer, run, run_at};
use crate::standin::{Answer, PNG, StandIn, WAV};

const IMAGE: &str = "gemini-2.5-flash-image";

fn picture_call() -> atelier_proto::provider::v1::RunGenerationRequest {
    call(
        "gemini",
        "text_to_image",
        IMAGE,
        json!({"prompt": "a teal kettle"}),
    )
}
async fn picture(body: Json) -> Ran {
    run(picture_call(), [answer(200, body)]).await
}
fn film_call() -> atelier_proto::provider::v1::RunGenerationRequest {
    let params = json!({"prompt": "fog", "duration": 8});
    call("gemini", "text_to_video", "veo-3.1-generate-preview", params)
}
fn operation(more: Json) -> Answer {
    let mut body = json!({"name": "models/v/operations/op_1"});
    for (key, value) in more.as_object().unwrap() {
        body[key] = value.clone();
    }
    answer(200, body)
}

#[tokio::test]
async fn p_019_a_picture_between_texts() {
    let ran = picture(json!({
        "candidates": [{"content": {"role": "model", "parts": [
            {"text": "Here it is."}, {"inlineData": {"mimeType": "image/png", "data": PNG}}]},
            "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 1290, "totalTokenCount": 1299},
        "modelVersion": IMAGE, "responseId": "rsp_g1",
    }))
    .await;
    assert_eq!((ran.ending().as_str(), ran.request_id()), ("completed", "rsp_g1"));
    assert_eq!(ran.cost(), "0.039000000 USD");
    assert_eq!(ran.assets(), [("image/png".to_owned(), 69)]);
    let caption = ran.told.output().get("caption");
    assert_eq!(
        caption.as_ref().and_then(|text| text.as_str()),
        Some("Here it is.")
    );
    let seen = &ran.server.seen()[0];
    assert_eq!(seen.path, "/v1/models/gemini-2.5-flash-image:generateContent");
    assert_eq!(
        (seen.header("x-goog-api-key"), &seen.authorization),
        ("sk-secret-1", &None)
    );
    assert_eq!(
        seen.json(),
        json!({"contents": [{"role": "user", "parts": [{"text": "a teal kettle"}]}],
            "generationConfig": {"responseModalities": ["TEXT", "IMAGE"]}})
    );
}

#[tokio::test]
async fn p_020_p_021_refusals_are_answers_of_success() {
    let blocked = picture(json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}})).await;
    assert_eq!(blocked.ending(), "content_policy/input");
    assert!(
        blocked.error().contains("PROHIBITED_CONTENT"),
        "{}",
        blocked.error()
    );
    for (finish, ending) in [
        ("IMAGE_SAFETY", "content_policy/output"),
        ("NO_IMAGE", "provider_permanent/no_output"),
    ] {
        let ran = picture(json!({"candidates": [{"finishReason": finish, "content": {"parts": []}}]})).await;
        assert_eq!((ran.ending().as_str(), ran.posts()), (ending, 1), "{finish}");
    }
}

#[tokio::test]
async fn p_022_a_film_is_polled_and_fetched_with_the_key_on_its_own_host_only() {
    let store = StandIn::start([Answer::film()]).await;
    let server = StandIn::start([]).await;
    let sample =
        json!({"video": {"uri": format!("http://{}/v1/files/f1:download?alt=media", server.address)}});
    let done = operation(
        json!({"done": true, "response": {"generateVideoResponse": {"generatedSamples": [sample]}}}),
    );
    server.answer([
        operation(json!({})),
        operation(json!({})),
        done,
        Answer::moved(&format!("http://{}/film.mp4", store.address)),
    ]);
    let ran = run_at(film_call(), server).await;
    assert_eq!(
        (ran.ending().as_str(), ran.request_id()),
        ("completed", "models/v/operations/op_1")
    );
    assert_eq!(ran.cost(), "3.200000000 USD");
    assert_eq!(ran.assets(), [("video/mp4".to_owned(), 32)]);
    assert_eq!(
        ran.server.targets(),
        [
            "POST /v1/models/veo-3.1-generate-preview:predictLongRunning",
            "GET /v1/models/v/operations/op_1",
            "GET /v1/models/v/operations/op_1",
            "GET /v1/files/f1:download?alt=media",
        ]
    );
    assert_eq!(ran.server.seen()[3].header("x-goog-api-key"), "sk-secret-1");
    assert_eq!(store.seen()[0].header("x-goog-api-key"), "");
    assert_eq!(
        ran.server.seen()[0].json()["parameters"],
        json!({"durationSeconds": 8})
    );
}

#[tokio::test]
async fn p_023_p_024_films_that_were_filtered_or_broke() {
    let filtered = json!({"done": true, "response": {"generateVideoResponse": {
        "raiMediaFilteredCount": 1, "raiMediaFilteredReasons": ["filtered: celebrity likeness."]}}});
    let broken = json!({"done": true, "error": {"code": 13, "message": "Internal error"}});
    for (end, ending) in [
        (filtered, "content_policy/output"),
        (broken, "provider_transient"),
    ] {
        let ran = run(film_call(), [operation(json!({})), operation(end)]).await;
        assert_eq!((ran.ending().as_str(), ran.posts()), (ending, 1));
        assert_eq!(
            (ran.cost().as_str(), ran.request_id()),
            ("-", "models/v/operations/op_1")
        );
    }
}

#[tokio::test]
async fn p_025_a_refusal_in_a_list_says_how_long_to_wait() {
    let slow = json!([{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "q", "details": [
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1.5s"}]}}]);
    let good = json!({"candidates": [{"content": {"parts": [
        {"inlineData": {"mimeType": "image/png", "data": PNG}}]}, "finishReason": "STOP"}]});
    let ran = run(picture_call(), [answer(429, slow), answer(200, good)]).await;
    let seen = ran.server.seen();
    assert_eq!((ran.ending().as_str(), seen.len()), ("completed", 2));
    assert!((seen[1].at - seen[0].at).as_secs_f64() >= 1.5);
}

#[tokio::test]
async fn p_026_a_bad_key_is_no_bad_input() {
    let body = json!({"error": {"code": 400, "message": "API key not valid. Please pass a valid API key.",
        "status": "INVALID_ARGUMENT", "details": [{"reason": "API_KEY_INVALID"}]}});
    let ran = run(picture_call(), [answer(400, body)]).await;
    assert_eq!(ran.ending(), "auth");
    let poor = json!({"error": {"code": 403, "message": "Billing is disabled for project 12", "status": "PERMISSION_DENIED"}});
    let ran = run(picture_call(), [answer(403, poor)]).await;
    assert_eq!(ran.ending(), "quota/INSUFFICIENT_CREDIT");
}

#[tokio::test]
async fn p_027_raw_speech_gets_the_head_of_a_file() {
    let body = json!({"candidates": [{"content": {"parts": [{"inlineData": {
        "mimeType": "audio/L16;codec=pcm;rate=24000", "data": "AAABAAAA//8="}}]}, "finishReason": "STOP"}]});
    let speak = call(
        "gemini",
        "text_to_speech",
        "gemini-2.5-flash-preview-tts",
        json!({"text": "hi"}),
    );
    let mut speak = speak;
    speak.persist = None;
    let ran = run(speak, [answer(200, body)]).await;
    assert_eq!(ran.ending(), "completed", "{:?}", ran.told.error);
    use base64::Engine as _;
    let wav = base64::engine::general_purpose::STANDARD.decode(WAV).unwrap();
    let output = ran.told.output();
    let media = output.as_media().unwrap();
    assert_eq!(media.data.as_deref(), Some(wav.as_slice()));
}

#[tokio::test]
async fn p_028_totals_of_a_stream_are_not_added_up() {
    let event = |text: &str, total: i64, end: Option<&str>| {
        let json = json!({"candidates": [{"content": {"parts": [{"text": text}]}, "finishReason": end}],
            "usageMetadata": {"promptTokenCount": 4, "totalTokenCount": total}, "responseId": "rsp_s"});
        format!("data: {json}\r\n\r\n")
    };
    let body = [
        event("gr", 5, None),
        event("ü", 9, None),
        event("n", 14, Some("STOP")),
    ]
    .concat();
    let chat = call(
        "gemini",
        "generate_message",
        "gemini-2.5-flash",
        json!({"prompt": "a colour"}),
    );
    let ran = run(chat, [Answer::sse(&body).chunked(7)]).await;
    assert_eq!(
        (ran.ending().as_str(), ran.told.text().as_str()),
        ("completed", "grün")
    );
    assert_eq!((ran.row.input_tokens, ran.row.output_tokens), (Some(4), Some(10)));
    assert_eq!(ran.request_id(), "rsp_s");
    assert_eq!(
        ran.server.targets(),
        ["POST /v1/models/gemini-2.5-flash:streamGenerateContent?alt=sse"]
    );
}

//! kie.ai against a stand-in that answers as its documentation has it (providers specification 4 and 23).

use std::time::Duration;

use atelier_common::testkit::until;
use atelier_proto::provider::v1::RunGenerationRequest;
use atelier_proto::tracker::v1::GenerationStatus;
use atelier_provider::settings::{Kie, Manners, Settings};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::openai::class;
use crate::stack::{Stack, Told, cost, first_id, request, status, u1};
use crate::standin::{Answer, PNG, StandIn};

const KEY: &str = "kie-secret-1";
const LIMIT: Duration = Duration::from_secs(10);

async fn stack(server: &StandIn) -> Stack {
    stack_with(server, "").await
}

async fn stack_with(server: &StandIn, callback_url: &str) -> Stack {
    let kie = Kie {
        api_key: Some(KEY.into()),
        base_url: server.root(),
        callback_url: callback_url.to_owned(),
        manners: Manners {
            first_pause: Duration::from_millis(10),
            poll_pause: Some(Duration::from_millis(2)),
            answer_timeout: Duration::from_secs(5),
            allowed_hosts: vec![server.address.to_string()],
            ..Manners::default()
        },
        ..Kie::default()
    };
    Stack::with(Settings {
        kie,
        ..Settings::default()
    })
    .await
}

fn call() -> RunGenerationRequest {
    let mut call = request("kie", "text_to_image", json!({"prompt": "a kettle"}));
    call.model = "google/nano-banana".to_owned();
    call
}
fn envelope(code: i64, message: &str, data: Value) -> Answer {
    Answer::json(200, json!({"code": code, "msg": message, "data": data}))
}
fn created() -> Answer {
    envelope(200, "success", json!({"taskId": "kt_1"}))
}
fn state(word: &str) -> Answer {
    envelope(
        200,
        "success",
        json!({"taskId": "kt_1", "state": word, "resultJson": ""}),
    )
}
fn success(server: &StandIn, credits: Option<Value>) -> Answer {
    let urls = json!({"resultUrls": [format!("{}/files/k1.png", server.root())]});
    let mut data = json!({"taskId": "kt_1", "model": "google/nano-banana", "state": "success",
        "param": "{\"model\":\"google/nano-banana\"}", "resultJson": urls.to_string(), "failCode": null,
        "failMsg": null, "costTime": 8123, "createTime": 1_750_000_000_000_i64});
    if let Some(credits) = credits {
        data["creditsConsumed"] = credits;
    }
    envelope(200, "success", data)
}
fn picture() -> Answer {
    Answer::new(200, "image/png", STANDARD.decode(PNG).unwrap())
}
fn submits(server: &StandIn) -> usize {
    server.seen().iter().filter(|seen| seen.method == "POST").count()
}
async fn run(server: &StandIn, stack: &Stack, answers: Vec<Answer>) -> Told {
    server.answer(answers);
    stack.run(call()).await
}

#[tokio::test]
async fn p_048_p_057_life_of_a_task() {
    let server = StandIn::start([]).await;
    let stack = stack_with(&server, "https://us.example/hook").await;
    let answers = vec![
        created(),
        state("waiting"),
        state("generating"),
        success(&server, Some(json!(4))),
        picture(),
    ];
    let told = run(&server, &stack, answers).await;
    assert_eq!(told.error.as_ref().map(ToString::to_string), None);
    let row = stack.row(&told.id()).await;
    assert_eq!(
        (status(&row), cost(&row)),
        (GenerationStatus::Completed, Some("0.020000000"))
    );
    assert_eq!(
        (
            row.billing_unit.as_deref(),
            row.quantity.as_deref(),
            row.unit_price.as_deref()
        ),
        (Some("credits"), Some("4"), Some("0.005000000"))
    );
    assert_eq!(row.price_source.as_deref(), Some("provider"));
    assert_eq!(row.provider_request_id.as_deref(), Some("kt_1"));
    assert_eq!(row.asset_ids.len(), 1);
    let seen = server.seen();
    assert_eq!(seen[0].path, "/api/v1/jobs/createTask");
    assert_eq!(
        seen[0].json(),
        json!({"callBackUrl": "https://us.example/hook", "model": "google/nano-banana", "input": {"prompt": "a kettle"}})
    );
    assert_eq!(
        (seen[1].path.as_str(), seen[1].query.as_str()),
        ("/api/v1/jobs/recordInfo", "taskId=kt_1")
    );
    for seen in &seen {
        let expected = (!seen.path.starts_with("/files/")).then(|| format!("Bearer {KEY}"));
        assert_eq!(seen.authorization, expected, "{}", seen.path);
    }
}

#[tokio::test]
async fn p_049_p_050_codes_inside_of_200_are_refusals() {
    let server = StandIn::start([]).await;
    let stack = stack(&server).await;
    for (case, code, words, expected) in [
        ("P-049", 402, "Insufficient credits", "quota"),
        ("P-050", 401, "You do not have access permissions", "auth"),
        ("P-050", 422, "duration is wrong", "invalid_input"),
        ("P-050", 455, "maintenance", "provider_transient"),
        ("P-050", 505, "feature off", "provider_permanent"),
    ] {
        let before = submits(&server);
        let told = run(&server, &stack, vec![envelope(code, words, Value::Null)]).await;
        let row = stack.row(&told.id()).await;
        assert_eq!(
            (class(&told).as_str(), row.error.as_deref()),
            (expected, Some(words)),
            "{case}"
        );
        assert_eq!(
            (row.provider_request_id, submits(&server) - before),
            (None, 1),
            "{case}"
        );
    }
}

#[tokio::test]
async fn p_051_too_fast_is_sent_again() {
    let server = StandIn::start([]).await;
    let stack = stack(&server).await;
    let answers = vec![
        envelope(429, "rate limit", Value::Null),
        created(),
        success(&server, Some(json!("16"))),
        picture(),
    ];
    let told = run(&server, &stack, answers).await;
    let row = stack.row(&told.id()).await;
    assert_eq!((submits(&server), row.attempts.len()), (2, 1));
    // The text "16", as the number that it is.
    assert_eq!(
        (cost(&row), row.quantity.as_deref()),
        (Some("0.080000000"), Some("16"))
    );
}

#[tokio::test]
async fn p_052_a_task_that_was_refused_may_cost_all_the_same() {
    let server = StandIn::start([]).await;
    let stack = stack(&server).await;
    let refused = json!({"taskId": "kt_1", "state": "fail", "failCode": "400",
        "failMsg": "Your prompt was flagged as sensitive", "creditsConsumed": 4});
    let told = run(
        &server,
        &stack,
        vec![created(), envelope(200, "success", refused)],
    )
    .await;
    let row = stack.row(&told.id()).await;
    assert_eq!(
        (status(&row), class(&told).as_str()),
        (GenerationStatus::Failed, "content_policy")
    );
    assert_eq!(
        (cost(&row), row.price_source.as_deref()),
        (Some("0.020000000"), Some("provider"))
    );
}

#[tokio::test]
async fn p_053_pages_of_a_gateway_do_not_end_the_task() {
    let server = StandIn::start([]).await;
    let stack = stack(&server).await;
    let html = || Answer::new(502, "text/html", "<html>bad gateway</html>");
    // A page says nothing of when to ask again, so the seam's own schedule is waited for: once is enough here.
    let answers = vec![created(), html(), success(&server, Some(json!(4))), picture()];
    let told = run(&server, &stack, answers).await;
    assert_eq!(told.error.as_ref().map(ToString::to_string), None);
    server.answer([created(), html()]);
    let mut late = call();
    late.deadline = Some(prost_types::Duration {
        seconds: 0,
        nanos: 200_000_000,
    });
    let told = stack.run(late).await;
    let row = stack.row(&told.id()).await;
    assert_eq!(
        (class(&told).as_str(), row.provider_request_id.as_deref()),
        ("timeout", Some("kt_1"))
    );
    assert_eq!(row.reconciliation.unwrap().state, "queued");
}

#[tokio::test]
async fn p_054_a_success_without_media_is_a_failure() {
    let server = StandIn::start([]).await;
    let stack = stack(&server).await;
    for result in ["", "{\"resultUrls\":[]}", "{\"resultUrls\":"] {
        let data = json!({"taskId": "kt_1", "state": "success", "resultJson": result, "creditsConsumed": 4});
        let told = run(&server, &stack, vec![created(), envelope(200, "success", data)]).await;
        let row = stack.row(&told.id()).await;
        assert_eq!(
            (status(&row), class(&told).as_str()),
            (GenerationStatus::Failed, "provider_permanent")
        );
        assert_eq!(
            (row.error_code.as_deref(), cost(&row)),
            (Some("OUTPUT_UNDECODABLE"), Some("0.020000000"))
        );
    }
}

#[tokio::test]
async fn p_055_g_082_g_083_credits_that_are_stated_later_are_found() {
    let server = StandIn::start([]).await;
    let stack = stack(&server).await;
    let told = run(
        &server,
        &stack,
        vec![created(), success(&server, None), picture()],
    )
    .await;
    let id = told.id();
    let row = stack.row(&id).await;
    assert_eq!(
        (cost(&row), row.price_source.as_deref()),
        (Some("0.020000000"), Some("model-catalog"))
    );
    let attempts = async |count: i32| {
        until(async || stack.row(&id).await.reconciliation.unwrap().attempts == count)
            .within(LIMIT)
            .await;
        stack.row(&id).await.reconciliation.unwrap().error
    };
    server.answer([success(&server, None)]);
    stack.later(Duration::from_mins(1));
    assert_eq!(attempts(1).await.as_deref(), Some("billing not posted"));
    server.answer([envelope(429, "rate limit", Value::Null)]);
    stack.later(Duration::from_mins(5));
    assert_eq!(attempts(2).await.as_deref(), Some("rate limit"));
    server.answer([success(&server, Some(json!("16")))]);
    stack.later(Duration::from_mins(30));
    let row = stack.bill_in(&id, "done").await;
    assert_eq!(
        (cost(&row), row.quantity.as_deref(), row.unit_price.as_deref()),
        (Some("0.080000000"), Some("16"), Some("0.005000000"))
    );
    assert_eq!(row.price_source.as_deref(), Some("provider-billing"));
}

#[tokio::test]
async fn p_056_a_cancelled_row_gets_its_bill_and_nothing_else() {
    let server = StandIn::start([]).await;
    let stack = stack(&server).await;
    server.answer([created(), state("generating")]);
    let mut stream = stack.open(&u1(), call()).await.unwrap();
    let id = first_id(&mut stream).await;
    until(async || server.seen().len() > 2).within(LIMIT).await;
    assert!(stack.cancel(&u1(), &id).await.cancelled);
    until(async || stack.facts(&id).await.contains_key("provider_cancel"))
        .within(LIMIT)
        .await;
    stack.later(Duration::from_mins(1));
    until(async || stack.row(&id).await.reconciliation.unwrap().attempts == 1)
        .within(LIMIT)
        .await;
    server.answer([success(&server, Some(json!(60)))]);
    stack.later(Duration::from_mins(5));
    let row = stack.bill_in(&id, "done").await;
    assert_eq!(
        (status(&row), cost(&row)),
        (GenerationStatus::Cancelled, Some("0.300000000"))
    );
    assert!(row.asset_ids.is_empty() && stack.assets().await.is_empty());
}

#[tokio::test]
async fn g_084_songs_have_paths_of_their_own() {
    let server = StandIn::start([]).await;
    let stack = stack_with(&server, "https://us.example/hook").await;
    let song = json!({"taskId": "kt_1", "status": "SUCCESS", "response": {"sunoData": [
        {"audioUrl": format!("{}/files/song.mp3", server.root())}]}, "creditsConsumed": 12});
    let audio = Answer::new(200, "audio/mpeg", crate::standin::MP3);
    server.answer([created(), envelope(200, "success", song.clone()), audio]);
    let mut call = request("kie", "text_to_music", json!({"prompt": "rain"}));
    call.model = "suno/V5".to_owned();
    let told = stack.run(call).await;
    assert_eq!(told.error.as_ref().map(ToString::to_string), None);
    let row = stack.row(&told.id()).await;
    assert_eq!((cost(&row), row.asset_ids.len()), (Some("0.060000000"), 1));
    let before = server.seen().len();
    server.answer([envelope(200, "success", song)]);
    stack.later(Duration::from_mins(1));
    stack.bill_in(&told.id(), "done").await;
    let paths: Vec<String> = server.seen().into_iter().map(|seen| seen.path).collect();
    assert_eq!(paths[0], "/api/v1/generate");
    assert_eq!(paths[before..], ["/api/v1/generate/record-info"]);
}

#[tokio::test]
async fn g_071_a_refused_key_denies_the_bill() {
    let server = StandIn::start([]).await;
    let stack = stack(&server).await;
    let told = run(
        &server,
        &stack,
        vec![created(), success(&server, None), picture()],
    )
    .await;
    server.answer([envelope(401, "You do not have access permissions", Value::Null)]);
    stack.later(Duration::from_mins(1));
    let row = stack.bill_in(&told.id(), "denied").await;
    assert_eq!(
        (cost(&row), row.reconciliation.as_ref().unwrap().attempts),
        (Some("0.020000000"), 0)
    );
}

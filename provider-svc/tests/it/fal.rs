//! FAL against a stand-in that answers as its documentation has it (providers specification 3 and 23).

use std::time::Duration;

use atelier_common::testkit::until;
use atelier_proto::provider::v1::RunGenerationRequest;
use atelier_proto::tracker::v1::{GenerationStatus, SubmissionStatus};
use atelier_proto::value::Value;
use atelier_provider::settings::{Fal, Manners, Settings};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::openai::class;
use crate::stack::{Stack, Told, cost, first_id, request, status, u1};
use crate::standin::{Answer, PNG, Seen, StandIn};

const KEY: &str = "id-1:sk-secret-1";
const LIMIT: Duration = Duration::from_secs(10);

async fn stack(server: &StandIn) -> Stack {
    let fal = Fal {
        api_key: Some(KEY.into()),
        queue_url: server.root(),
        platform_url: server.root(),
        manners: Manners {
            first_pause: Duration::from_millis(10),
            poll_pause: Some(Duration::from_millis(2)),
            answer_timeout: Duration::from_secs(5),
            allowed_hosts: vec![server.address.to_string()],
            ..Manners::default()
        },
        ..Fal::default()
    };
    Stack::with(Settings {
        fal,
        ..Settings::default()
    })
    .await
}

fn call() -> RunGenerationRequest {
    let params = json!({"prompt": "dusk", "image_url": "https://s.example/in.png"});
    let mut call = request("fal_ai", "image_to_image", params);
    call.model = "fal-ai/flux/dev/image-to-image".to_owned();
    call
}

fn job(server: &StandIn) -> String {
    format!("{}/fal-ai/flux/requests/fr_1", server.root())
}
fn submitted(server: &StandIn) -> Answer {
    let job = job(server);
    Answer::json(
        200,
        json!({"status": "IN_QUEUE", "request_id": "fr_1", "gateway_request_id": "fr_1", "queue_position": 2,
            "response_url": job, "status_url": format!("{job}/status"), "cancel_url": format!("{job}/cancel")}),
    )
    .header("x-fal-request-id", "fr_1")
}
fn state(server: &StandIn, status: u16, word: &str) -> Answer {
    let body = json!({"status": word, "request_id": "fr_1", "response_url": job(server), "logs": []});
    Answer::json(status, body)
}
fn media(server: &StandIn) -> String {
    format!("{}/files/a/x.png", server.root())
}
fn result(server: &StandIn) -> Answer {
    let image = json!({"url": media(server), "width": 1, "height": 1, "content_type": "image/png"});
    Answer::json(
        200,
        json!({"images": [image], "seed": 42, "has_nsfw_concepts": [false], "timings": {"inference": 3.1}}),
    )
    .header("x-fal-request-id", "fr_1")
}
fn picture() -> Answer {
    Answer::new(200, "image/png", STANDARD.decode(PNG).unwrap())
}
fn submits(server: &StandIn) -> Vec<Seen> {
    server
        .seen()
        .into_iter()
        .filter(|seen| seen.method == "POST")
        .collect()
}
async fn run(server: &StandIn, stack: &Stack, answers: Vec<Answer>) -> Told {
    server.answer(answers);
    stack.run(call()).await
}
/// Every key that was sent went to the queue, in the documented form.
fn keys_stay_home(server: &StandIn) {
    for seen in server.seen() {
        let expected = (!seen.path.starts_with("/files/")).then(|| format!("Key {KEY}"));
        assert_eq!(seen.authorization, expected, "{}", seen.path);
    }
}

#[tokio::test]
async fn p_029_life_of_a_model_with_a_subpath() {
    let server = StandIn::start([]).await;
    let stack = stack(&server).await;
    let answers = vec![
        submitted(&server),
        state(&server, 202, "IN_QUEUE"),
        state(&server, 202, "IN_PROGRESS"),
        state(&server, 200, "COMPLETED"),
        result(&server),
        picture(),
    ];
    let told = run(&server, &stack, answers).await;
    assert_eq!(told.error.as_ref().map(ToString::to_string), None);
    let row = stack.row(&told.id()).await;
    assert_eq!(row.provider_request_id.as_deref(), Some("fr_1"));
    assert_eq!(
        (status(&row), cost(&row)),
        (GenerationStatus::Completed, Some("0.025000000"))
    );
    assert_eq!(row.price_source.as_deref(), Some("model-catalog"));
    let bill = row.reconciliation.as_ref().unwrap();
    let settled = row.completed_at.unwrap().seconds;
    assert_eq!(bill.state, "queued");
    assert_eq!(bill.next_at.unwrap().seconds - settled, 60);
    let seen = server.seen();
    let paths: Vec<&str> = seen.iter().map(|seen| seen.path.as_str()).collect();
    let status_path = "/fal-ai/flux/requests/fr_1/status";
    assert_eq!(
        paths,
        [
            "/fal-ai/flux/dev/image-to-image",
            status_path,
            status_path,
            status_path,
            "/fal-ai/flux/requests/fr_1",
            "/files/a/x.png"
        ]
    );
    // The model's own object, without anything around it.
    assert_eq!(
        seen[0].json(),
        json!({"prompt": "dusk", "image_url": "https://s.example/in.png"})
    );
    keys_stay_home(&server);
    let asset = stack.asset(&row.asset_ids[0]).await;
    assert_eq!((asset.content_type.as_str(), asset.size_bytes), ("image/png", 69));
    let token: serde_json::Value =
        serde_json::from_str(row.attempts[0].resume_token.as_ref().unwrap()).unwrap();
    assert_eq!(token["status_url"], format!("{}/status", job(&server)));
}

#[tokio::test]
async fn addresses_of_another_host_get_no_key() {
    let server = StandIn::start([]).await;
    let stack = stack(&server).await;
    let answers = vec![
        Answer::json(
            200,
            json!({"request_id": "fr_1", "status_url": "https://evil.example/s", "response_url": "file:///etc/passwd"}),
        ),
        state(&server, 200, "COMPLETED"),
        result(&server),
        picture(),
    ];
    let told = run(&server, &stack, answers).await;
    assert_eq!(told.error.as_ref().map(ToString::to_string), None);
    assert_eq!(server.seen()[1].path, "/fal-ai/flux/requests/fr_1/status");
    assert_eq!(server.seen()[2].path, "/fal-ai/flux/requests/fr_1");
}

#[tokio::test]
async fn p_030_p_031_p_032_jobs_that_fail() {
    let server = StandIn::start([]).await;
    let stack = stack(&server).await;
    let refused = |kind: &str, loc: serde_json::Value, message: &str| {
        let detail = json!([{"loc": loc, "msg": message, "type": kind, "input": "…"}]);
        Answer::json(422, json!({ "detail": detail })).header("x-fal-retryable", "false")
    };
    let lost = json!({"status": "COMPLETED", "request_id": "fr_1", "error": "Runner disconnected",
        "error_type": "runner_disconnected"});
    let policy = refused(
        "content_policy_violation",
        json!(["body", "prompt"]),
        "content flagged by a checker",
    );
    let literal = refused(
        "literal_error",
        json!(["body", "duration"]),
        "Input should be '5' or '10'",
    );
    let done = || state(&server, 200, "COMPLETED");
    let cases = [
        (
            "P-030",
            vec![submitted(&server), Answer::json(200, lost)],
            "provider_transient",
            "Runner",
        ),
        (
            "P-031",
            vec![submitted(&server), done(), policy],
            "content_policy",
            "prompt",
        ),
        (
            "P-032",
            vec![submitted(&server), done(), literal],
            "invalid_input",
            "duration: Input",
        ),
    ];
    for (case, answers, expected, words) in cases {
        let before = submits(&server).len();
        let told = run(&server, &stack, answers).await;
        let row = stack.row(&told.id()).await;
        assert_eq!(
            (status(&row), class(&told).as_str()),
            (GenerationStatus::Failed, expected),
            "{case}"
        );
        assert!(
            row.error.as_ref().unwrap().contains(words),
            "{case}: {:?}",
            row.error
        );
        assert_eq!(row.provider_request_id.as_deref(), Some("fr_1"), "{case}");
        assert_eq!(
            (row.reconciliation.unwrap().state.as_str(), row.cost),
            ("queued", None),
            "{case}"
        );
        assert_eq!(submits(&server).len() - before, 1, "{case}");
    }
}

#[tokio::test]
async fn p_033_p_034_p_035_p_116_submits_that_are_refused() {
    let server = StandIn::start([]).await;
    let stack = stack(&server).await;
    let detail = |status: u16, words: &str| Answer::json(status, json!({ "detail": words }));
    let locked =
        "User is locked. Reason: Exhausted balance. Top up your balance at fal.ai/dashboard/billing.";
    let timeout = Answer::json(504, json!({"detail": "late", "error_type": "request_timeout"}))
        .header("x-fal-request-timeout-type", "user")
        .header("x-fal-request-id", "fr_7");
    let page = Answer::new(200, "text/html", "<html>sign in, sk-secret-1</html>");
    let cases = [
        ("P-033", detail(403, locked), "quota", None, false),
        (
            "P-034",
            detail(401, "No user found for Key ID and Secret"),
            "auth",
            None,
            false,
        ),
        ("P-034", detail(403, "not for this model"), "auth", None, false),
        ("P-035", timeout, "timeout", Some("fr_7"), false),
        ("P-116", page, "unknown", None, true),
    ];
    for (case, answer, expected, request_id, unknown) in cases {
        let before = submits(&server).len();
        let told = run(&server, &stack, vec![answer]).await;
        let row = stack.row(&told.id()).await;
        assert_eq!(
            (status(&row), class(&told).as_str()),
            (GenerationStatus::Failed, expected),
            "{case}"
        );
        assert_eq!(row.provider_request_id.as_deref(), request_id, "{case}");
        assert_eq!(submits(&server).len() - before, 1, "{case}");
        let submission = row.facets.unwrap().submission();
        assert_eq!(submission == SubmissionStatus::Unknown, unknown, "{case}");
        assert!(!row.error.unwrap().contains("secret"), "{case}");
    }
}

#[tokio::test]
async fn p_036_a_hiccup_of_the_gateway_is_sent_again_and_what_the_queue_saw_is_not() {
    let server = StandIn::start([]).await;
    let stack = stack(&server).await;
    let nginx = || Answer::new(502, "text/html", "<html>nginx</html>");
    let answers = vec![
        nginx(),
        submitted(&server),
        state(&server, 200, "COMPLETED"),
        result(&server),
        picture(),
    ];
    let told = run(&server, &stack, answers).await;
    assert_eq!(told.error.as_ref().map(ToString::to_string), None);
    assert_eq!(submits(&server).len(), 2);
    let told = run(&server, &stack, vec![nginx().header("x-fal-request-id", "fr_9")]).await;
    let row = stack.row(&told.id()).await;
    assert_eq!(
        (class(&told).as_str(), row.error_code.as_deref()),
        ("unknown", Some("SUBMISSION_UNKNOWN"))
    );
    assert_eq!(row.provider_request_id.as_deref(), Some("fr_9"));
    assert_eq!(submits(&server).len(), 3);
}

#[tokio::test]
async fn p_037_trouble_while_polling_does_not_end_the_job() {
    let server = StandIn::start([]).await;
    let stack = stack(&server).await;
    let answers = vec![
        submitted(&server),
        Answer::json(503, json!({"detail": "busy"})).header("retry-after", "0"),
        state(&server, 200, "IN_PROGRESS").reset_after(5),
        Answer::json(429, json!({"detail": "Too many requests"})).header("retry-after", "0"),
        state(&server, 200, "COMPLETED"),
        result(&server),
        picture(),
    ];
    let told = run(&server, &stack, answers).await;
    assert_eq!(told.error.as_ref().map(ToString::to_string), None);
    assert_eq!(submits(&server).len(), 1);
}

#[tokio::test]
async fn p_038_g_049_a_cancel_is_put_to_the_queue_and_the_row_stays_cancelled() {
    for (answer, word) in [
        (
            Answer::json(202, json!({"status": "CANCELLATION_REQUESTED"})),
            "requested",
        ),
        (
            Answer::json(400, json!({"status": "ALREADY_COMPLETED"})),
            "already_done",
        ),
        (Answer::json(404, json!({"status": "NOT_FOUND"})), "not_found"),
    ] {
        let server = StandIn::start([]).await;
        let stack = stack(&server).await;
        server.answer([submitted(&server), state(&server, 202, "IN_QUEUE")]);
        let mut stream = stack.open(&u1(), call()).await.unwrap();
        let id = first_id(&mut stream).await;
        until(async || server.seen().len() > 2).within(LIMIT).await;
        server.answer_put(answer);
        assert!(stack.cancel(&u1(), &id).await.cancelled);
        until(async || stack.facts(&id).await.contains_key("provider_cancel"))
            .within(LIMIT)
            .await;
        let puts: Vec<Seen> = server
            .seen()
            .into_iter()
            .filter(|seen| seen.method == "PUT")
            .collect();
        assert_eq!(puts.len(), 1);
        assert_eq!(puts[0].path, "/fal-ai/flux/requests/fr_1/cancel");
        let told = stack.facts(&id).await["provider_cancel"].clone();
        assert_eq!(told.as_map().unwrap()["result"], Value::from(word));
        let row = stack.row(&id).await;
        assert_eq!(status(&row), GenerationStatus::Cancelled);
        assert_eq!(row.provider_request_id.as_deref(), Some("fr_1"));
        assert_eq!(row.reconciliation.unwrap().state, "queued");
    }
}

fn event(id: &str, more: serde_json::Value) -> serde_json::Value {
    let mut event = json!({"request_id": id, "endpoint_id": "fal-ai/flux/dev", "timestamp": "2026-01-02T03:04:05Z",
        "output_units": 1, "unit_price": 0.025, "percent_discount": 0, "cost_estimate_nano_usd": 25_000_000});
    event
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    event
}
fn page(events: &[serde_json::Value], cursor: Option<&str>) -> Answer {
    Answer::json(
        200,
        json!({"billing_events": events, "next_cursor": cursor, "has_more": cursor.is_some()}),
    )
}

#[tokio::test]
async fn p_040_p_041_p_042_g_085_bills_are_read_to_the_digit() {
    let ours = |more| event("fr_1", more);
    let cases = [
        ("P-040", vec![page(&[ours(json!({}))], None)], "0.025000000", "1"),
        (
            "P-041",
            vec![page(
                &[ours(json!({"cost_total": 0.0225, "percent_discount": 10}))],
                None,
            )],
            "0.022500000",
            "1",
        ),
        (
            "P-042",
            vec![
                page(&[event("fr_2", json!({"cost_total": 9}))], Some("c2")),
                page(&[ours(json!({})), ours(json!({"cost_total": 0.01}))], None),
            ],
            "0.035000000",
            "2",
        ),
        (
            "G-085",
            vec![page(
                &[ours(
                    json!({"cost_total": null, "cost_estimate_nano_usd": 1_234_567_890}),
                )],
                None,
            )],
            "1.234567890",
            "1",
        ),
    ];
    for (case, pages, expected, quantity) in cases {
        let server = StandIn::start([]).await;
        let stack = stack(&server).await;
        let answers = vec![
            submitted(&server),
            state(&server, 200, "COMPLETED"),
            result(&server),
            picture(),
        ];
        let told = run(&server, &stack, answers).await;
        let before = server.seen().len();
        let count = pages.len();
        server.answer(pages);
        stack.later(Duration::from_mins(1));
        let row = stack.bill_in(&told.id(), "done").await;
        assert_eq!(
            (cost(&row), row.quantity.as_deref()),
            (Some(expected), Some(quantity)),
            "{case}"
        );
        assert_eq!(row.price_source.as_deref(), Some("provider-billing"), "{case}");
        assert_eq!(row.reconciliation.unwrap().attempts, 1, "{case}");
        let looks = server.seen().split_off(before);
        assert_eq!(looks.len(), count, "{case}");
        for look in &looks {
            assert_eq!(look.path, "/v1/models/billing-events", "{case}");
            assert!(
                look.query.contains("request_id=fr_1&start=2"),
                "{case}: {}",
                look.query
            );
        }
        assert_eq!(
            looks.last().unwrap().query.contains("cursor=c2"),
            count == 2,
            "{case}"
        );
        keys_stay_home(&server);
    }
}

#[tokio::test]
async fn p_043_p_044_g_086_bills_that_are_not_there() {
    let server = StandIn::start([]).await;
    let stack = stack(&server).await;
    let answers = || {
        vec![
            submitted(&server),
            state(&server, 200, "COMPLETED"),
            result(&server),
            picture(),
        ]
    };
    let denied = run(&server, &stack, answers()).await.id();
    server.answer([Answer::json(403, json!({"detail": "needs an admin key"}))]);
    stack.later(Duration::from_mins(1));
    let row = stack.bill_in(&denied, "denied").await;
    assert_eq!(
        (cost(&row), row.reconciliation.as_ref().unwrap().attempts),
        (Some("0.025000000"), 0)
    );
    let other = run(&server, &stack, answers()).await.id();
    let before = server.seen().len();
    server.answer([page(&[event("fr_2", json!({}))], None)]);
    for minutes in [1, 5, 30, 120, 720] {
        let looks = server.seen().len();
        stack.later(Duration::from_mins(minutes) + Duration::from_secs(1));
        until(async || server.seen().len() > looks).within(LIMIT).await;
        let attempts = i32::try_from(looks - before).unwrap() + 1;
        until(async || stack.row(&other).await.reconciliation.unwrap().attempts == attempts)
            .within(LIMIT)
            .await;
    }
    let row = stack.bill_in(&other, "exhausted").await;
    assert_eq!(
        (cost(&row), row.reconciliation.as_ref().unwrap().error.as_deref()),
        (Some("0.025000000"), Some("no event"))
    );
}

#[tokio::test]
async fn p_046_blackened_pictures_are_no_outputs() {
    let server = StandIn::start([]).await;
    let stack = stack(&server).await;
    let file = json!({"url": media(&server), "content_type": "image/png"});
    let images = |flags: serde_json::Value| {
        Answer::json(200, json!({"images": [file, file], "has_nsfw_concepts": flags}))
    };
    let done = || vec![submitted(&server), state(&server, 200, "COMPLETED")];
    let mut answers = done();
    answers.extend([images(json!([true, false])), picture()]);
    let told = run(&server, &stack, answers).await;
    assert_eq!(told.error.as_ref().map(ToString::to_string), None);
    assert_eq!(stack.row(&told.id()).await.asset_ids.len(), 1);
    let mut answers = done();
    answers.push(images(json!([true, true])));
    let told = run(&server, &stack, answers).await;
    assert_eq!(class(&told), "content_policy");
}

#[tokio::test]
async fn p_118_an_expired_output_is_asked_for_once_more() {
    let server = StandIn::start([]).await;
    let stack = stack(&server).await;
    let start = || {
        vec![
            submitted(&server),
            state(&server, 200, "COMPLETED"),
            result(&server),
        ]
    };
    let gone = || Answer::new(403, "text/plain", "expired");
    let mut answers = start();
    answers.extend([gone(), result(&server), picture()]);
    let told = run(&server, &stack, answers).await;
    assert_eq!(told.error.as_ref().map(ToString::to_string), None);
    let mut answers = start();
    answers.extend([gone(), result(&server), gone()]);
    let told = run(&server, &stack, answers).await;
    assert_eq!(class(&told), "provider_permanent");
    assert_eq!(
        stack.row(&told.id()).await.provider_request_id.as_deref(),
        Some("fr_1")
    );
}

#[tokio::test]
async fn p_119_a_job_is_taken_up_by_its_token_and_not_submitted_again() {
    let server = StandIn::start([]).await;
    let stack = stack(&server).await;
    server.answer([submitted(&server), state(&server, 202, "IN_QUEUE")]);
    let mut stream = stack.open(&u1(), call()).await.unwrap();
    let id = first_id(&mut stream).await;
    until(async || server.seen().len() > 1).within(LIMIT).await;
    // The first process is left behind: it is not heard any more, and stops without a word.
    stack.ledger.cut("*");
    stack.ledger.break_streams();
    assert_eq!(stack.seam.registry().release(), 1);
    let registry = stack.seam.registry().clone();
    until(async || registry.running().is_empty()).within(LIMIT).await;
    server.answer([state(&server, 200, "COMPLETED"), result(&server), picture()]);
    stack.time.advance(Duration::from_secs(46));
    let _other = stack.other().await;
    let row = stack.row_in(&id, GenerationStatus::Completed).await;
    assert_eq!(submits(&server).len(), 1);
    assert_eq!(
        (row.asset_ids.len(), row.owner_epoch, cost(&row)),
        (1, 2, Some("0.025000000"))
    );
    assert_eq!(row.attempts.len(), 1);
    let asset = stack.asset(&row.asset_ids[0]).await;
    assert!(
        format!("{asset:?}").contains("dusk"),
        "the prompt is with the asset"
    );
}

#[tokio::test]
async fn p_123_a_word_that_nobody_knows_is_in_the_end_the_reason() {
    let server = StandIn::start([]).await;
    let stack = stack(&server).await;
    server.answer([submitted(&server), state(&server, 200, "REHEATING")]);
    let mut call = call();
    call.deadline = Some(prost_types::Duration {
        seconds: 0,
        nanos: 150_000_000,
    });
    let told = stack.run(call).await;
    assert_eq!(class(&told), "unknown");
    let row = stack.row(&told.id()).await;
    assert!(row.error.unwrap().contains("REHEATING"));
    assert_eq!(row.reconciliation.unwrap().state, "queued");
}

#[tokio::test]
async fn p_124_p_125_nothing_sent_is_retried_and_a_deadline_cancels() {
    let server = StandIn::start([]).await;
    let stack = stack(&server).await;
    server.answer([submitted(&server), state(&server, 202, "IN_QUEUE")]);
    let mut late = call();
    late.deadline = Some(prost_types::Duration {
        seconds: 0,
        nanos: 150_000_000,
    });
    let told = stack.run(late).await;
    assert_eq!(class(&told), "timeout");
    let row = stack.row(&told.id()).await;
    assert_eq!(
        (
            row.provider_request_id.as_deref(),
            row.reconciliation.unwrap().state.as_str()
        ),
        (Some("fr_1"), "queued")
    );
    assert_eq!(
        server.seen().iter().filter(|seen| seen.method == "PUT").count(),
        1
    );
    let fal = Fal {
        api_key: Some(KEY.into()),
        queue_url: "http://127.0.0.1:1".to_owned(),
        manners: Manners {
            first_pause: Duration::from_millis(5),
            ..Manners::default()
        },
        ..Fal::default()
    };
    let stack = Stack::with(Settings {
        fal,
        ..Settings::default()
    })
    .await;
    let told = stack.run(call()).await;
    let row = stack.row(&told.id()).await;
    assert_eq!(
        (class(&told).as_str(), row.error_code.as_deref()),
        ("provider_transient", Some("PROVIDER_UNREACHABLE"))
    );
    assert_eq!(
        (
            row.provider_request_id,
            row.reconciliation.unwrap().state.as_str()
        ),
        (None, "none")
    );
}

#[tokio::test]
async fn g_087_its_key_is_found_under_one_name() {
    let server = StandIn::start([]).await;
    let stack = stack(&server).await;
    let answers = vec![
        submitted(&server),
        state(&server, 200, "COMPLETED"),
        result(&server),
        picture(),
    ];
    server.answer(answers);
    let mut by_other_name = call();
    by_other_name.provider = "fal".to_owned();
    let told = stack.run(by_other_name).await;
    assert_eq!(stack.row(&told.id()).await.provider, "fal_ai");
    let loaded = atelier_common::settings::Loader::bare()
        .variable("FAL_API_KEY", "id:secret")
        .load::<Settings>()
        .unwrap();
    assert!(loaded.settings.fal.api_key.is_some() && !loaded.print().contains("id:secret"));
}

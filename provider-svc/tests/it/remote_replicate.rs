//! Replicate and the films of OpenAI (providers specification 23, P-016 to P-018 and P-059 to P-069).

use std::time::Duration;

use atelier_proto::tracker::v1::GenerationStatus;
use serde_json::{Value as Json, json};

use crate::remote::{Ran, call, finish, json as answer, png, run, run_at, stack};
use crate::stack::{cost, first_id, u1};
use crate::standin::{Answer, StandIn};

const FLUX: &str = "black-forest-labs/flux-schnell";

fn barge(model: &str) -> atelier_proto::provider::v1::RunGenerationRequest {
    call("replicate", "text_to_image", model, json!({"prompt": "a barge"}))
}
fn prediction(status: &str, output: Json, more: Json) -> Json {
    let mut body = json!({"id": "rp1", "status": status, "output": output, "error": null, "metrics": {}});
    for (key, value) in more.as_object().unwrap() {
        body[key] = value.clone();
    }
    body
}
/// A server whose predictions name a picture on it.
async fn with_picture(first: &[(u16, &str)]) -> StandIn {
    let server = StandIn::start([]).await;
    let url = format!("http://{}/out.png", server.address);
    let mut answers: Vec<Answer> = first
        .iter()
        .map(|(status, word)| {
            let output = if *word == "starting" {
                Json::Null
            } else {
                json!([url])
            };
            answer(
                *status,
                prediction(word, output, json!({"metrics": {"predict_time": 1.42}})),
            )
        })
        .collect();
    answers.push(png());
    server.answer(answers);
    server
}

#[tokio::test]
async fn p_059_an_answer_that_is_finished_is_not_polled() {
    let ran = run_at(barge(FLUX), with_picture(&[(201, "succeeded")]).await).await;
    assert_eq!((ran.ending().as_str(), ran.request_id()), ("completed", "rp1"));
    assert_eq!(ran.cost(), "0.003000000 USD");
    assert_eq!(
        ran.server.targets(),
        [
            format!("POST /v1/models/{FLUX}/predictions"),
            "GET /out.png".to_owned()
        ]
    );
    let seen = &ran.server.seen()[0];
    assert_eq!(
        (seen.header("prefer"), seen.header("authorization")),
        ("wait=5", "Bearer sk-secret-1")
    );
    assert_eq!(seen.json(), json!({"input": {"prompt": "a barge"}}));
}

#[tokio::test]
async fn p_060_an_output_before_the_word_does_not_close_the_row() {
    let server = with_picture(&[(201, "processing"), (200, "succeeded")]).await;
    let ran = run_at(barge(FLUX), server).await;
    assert_eq!(ran.ending(), "completed");
    assert_eq!(ran.server.targets()[1], "GET /v1/predictions/rp1");
}

#[tokio::test]
async fn p_061_p_062_p_063_how_predictions_end() {
    let failed = |text: &str| {
        prediction(
            "failed",
            Json::Null,
            json!({"error": text, "metrics": {"predict_time": 2.0}}),
        )
    };
    let nsfw = "NSFW content detected. Try running it again, or try a different prompt.";
    let cases = [
        (
            "own/slow",
            prediction("aborted", Json::Null, json!({})),
            "timeout",
            "0.000000000 USD",
        ),
        (
            "own/slow",
            failed(nsfw),
            "content_policy/output",
            "0.002800000 USD",
        ),
        (FLUX, failed(nsfw), "content_policy/output", "-"),
        (FLUX, failed("CUDA out of memory"), "provider_transient", "-"),
        (FLUX, failed("bad weights"), "provider_permanent", "-"),
        (
            FLUX,
            prediction("succeeded", json!([]), json!({})),
            "provider_permanent/no_output",
            "-",
        ),
        (
            FLUX,
            prediction("succeeded", Json::Null, json!({})),
            "provider_permanent/no_output",
            "-",
        ),
    ];
    for (model, body, ending, cost) in cases {
        let ran = run(
            barge(model),
            [
                answer(201, prediction("starting", Json::Null, json!({}))),
                answer(200, body),
            ],
        )
        .await;
        assert_eq!(
            (ran.ending().as_str(), ran.cost().as_str()),
            (ending, cost),
            "{model} {}",
            ran.error()
        );
        assert_eq!((ran.request_id(), ran.posts()), ("rp1", 1));
    }
    let server = StandIn::start([]).await;
    let bare = json!(format!("http://{}/a.png", server.address));
    server.answer([answer(201, prediction("succeeded", bare, json!({}))), png()]);
    assert_eq!(run_at(barge(FLUX), server).await.ending(), "completed");
}

#[tokio::test]
async fn p_064_p_065_waits_in_the_body_and_in_words() {
    for (body, least) in [
        (
            json!({"detail": "Request was throttled.", "status": 429, "retry_after": 2}),
            2.0,
        ),
        (
            json!({"detail": "Your rate limit resets in ~1s.", "status": 429}),
            1.0,
        ),
    ] {
        let server = with_picture(&[(201, "succeeded")]).await;
        let rest = server.clone();
        let url = format!("http://{}/out.png", server.address);
        rest.answer([
            answer(429, body),
            answer(201, prediction("succeeded", json!([url]), json!({}))),
            png(),
        ]);
        let ran = run_at(barge(FLUX), server).await;
        let seen = ran.server.seen();
        assert_eq!((ran.ending().as_str(), ran.posts()), ("completed", 2));
        assert!((seen[1].at - seen[0].at).as_secs_f64() >= least);
    }
}

#[tokio::test]
async fn p_066_time_that_ran_until_a_cancel_is_charged() {
    let server = StandIn::start([]).await;
    server.answer([answer(200, prediction("processing", Json::Null, json!({})))]);
    let stack = stack("replicate", &server).await;
    let mut stream = stack.open(&u1(), barge("own/slow")).await.unwrap();
    let id = first_id(&mut stream).await;
    let polled = || server.seen().len() >= 2;
    atelier_common::testkit::until(async || polled())
        .within(Duration::from_secs(10))
        .await;
    server.answer([answer(
        200,
        prediction("canceled", Json::Null, json!({"metrics": {"predict_time": 2.0}})),
    )]);
    assert!(stack.cancel(&u1(), &id).await.cancelled);
    crate::stack::read(stream).await;
    let row = stack.row_in(&id, GenerationStatus::Cancelled).await;
    assert_eq!(cost(&row), Some("0.002800000"));
    let targets = server.targets();
    assert_eq!(
        targets
            .iter()
            .filter(|target| target.ends_with("/predictions/rp1/cancel"))
            .count(),
        1
    );
}

#[tokio::test]
async fn p_067_refusals() {
    let cases = [
        (
            402,
            json!({"title": "Insufficient credit", "detail": "You have insufficient credit.", "status": 402}),
            "quota/INSUFFICIENT_CREDIT",
            "insufficient credit",
        ),
        (
            422,
            json!({"title": "Input validation failed", "detail": "- input: prompt is required\n", "status": 422}),
            "invalid_input",
            "prompt is required",
        ),
        (
            401,
            json!({"title": "Unauthenticated", "detail": "You did not pass a valid authentication token"}),
            "auth",
            "authentication",
        ),
    ];
    for (status, body, ending, words) in cases {
        let ran = run(barge(FLUX), [answer(status, body)]).await;
        assert_eq!(
            (ran.ending().as_str(), ran.posts(), ran.request_id()),
            (ending, 1, "")
        );
        assert!(ran.error().contains(words), "{}", ran.error());
    }
}

#[tokio::test]
async fn p_069_a_lost_response_is_not_sent_again() {
    let lost = answer(201, prediction("starting", Json::Null, json!({}))).reset_after(0);
    let ran = run(barge(FLUX), [lost]).await;
    assert_eq!(
        (ran.ending().as_str(), ran.posts()),
        ("unknown/submit_outcome_unknown", 1)
    );
}

#[tokio::test]
async fn p_118_an_address_that_ran_out_is_asked_for_anew_once() {
    let server = StandIn::start([]).await;
    let url = format!("http://{}/out.png", server.address);
    let done = || answer(200, prediction("succeeded", json!([url]), json!({})));
    let gone = || Answer::new(403, "text/plain", "expired");
    server.answer([
        answer(201, prediction("starting", Json::Null, json!({}))),
        done(),
        gone(),
        done(),
        png(),
    ]);
    let ran = run_at(barge(FLUX), server.clone()).await;
    assert_eq!((ran.ending().as_str(), ran.posts()), ("completed", 1));
    server.answer([
        answer(201, prediction("starting", Json::Null, json!({}))),
        done(),
        gone(),
        done(),
        gone(),
    ]);
    let ran: Ran = finish(ran.stack, server, barge(FLUX)).await;
    assert_eq!(ran.ending(), "provider_permanent/result_expired");
}

#[tokio::test]
async fn p_016_p_018_a_film_of_openai_is_a_job_and_its_bytes_may_be_elsewhere() {
    let store = StandIn::start([Answer::film()]).await;
    let film = |status: &str| {
        let body = json!({"id": "video_7", "object": "video", "model": "sora-2", "status": status, "progress": 40, "seconds": "8"});
        answer(200, body).header("openai-poll-after-ms", "300")
    };
    let content = Answer::moved(&format!("http://{}/v.mp4", store.address));
    let fog = call(
        "openai",
        "text_to_video",
        "sora-2",
        json!({"prompt": "fog", "duration": 8, "size": "1280x720"}),
    );
    let ran = run(
        fog,
        [
            film("queued"),
            film("in_progress"),
            film("in_progress"),
            film("completed"),
            content,
        ],
    )
    .await;
    assert_eq!(
        (ran.ending().as_str(), ran.request_id()),
        ("completed", "video_7")
    );
    assert_eq!(ran.cost(), "0.800000000 USD");
    let seen = ran.server.seen();
    assert_eq!(
        seen[0].json(),
        json!({"model": "sora-2", "prompt": "fog", "seconds": "8", "size": "1280x720"})
    );
    assert!((seen[2].at - seen[1].at) >= Duration::from_millis(300));
    assert_eq!(seen[4].target, "/v1/videos/video_7/content?variant=video");
    assert_eq!(store.seen()[0].authorization, None);
    assert_eq!(ran.assets(), [("video/mp4".to_owned(), 32)]);
}

#[tokio::test]
async fn p_017_a_film_that_was_refused_after_it_was_taken() {
    let film =
        |status: &str, error: Json| answer(200, json!({"id": "video_7", "status": status, "error": error}));
    let fog = call("openai", "text_to_video", "sora-2", json!({"prompt": "fog"}));
    let error = json!({"code": "image_content_policy_violation", "message": "no"});
    let ran = run(fog, [film("queued", Json::Null), film("failed", error)]).await;
    assert_eq!(
        (ran.ending().as_str(), ran.request_id()),
        ("content_policy/output", "video_7")
    );
}

#[tokio::test]
async fn p_125_a_deadline_in_the_queue_asks_for_a_stop_once() {
    let mut late = barge(FLUX);
    late.deadline = Some(Duration::from_millis(600).try_into().unwrap());
    let ran = run(late, [answer(201, prediction("starting", Json::Null, json!({})))]).await;
    assert_eq!((ran.ending().as_str(), ran.request_id()), ("timeout", "rp1"));
    let targets = ran.server.targets();
    let stops = targets
        .iter()
        .filter(|target| target.ends_with("/predictions/rp1/cancel"));
    assert_eq!(stops.count(), 1);
}

//! Jobs of Meshy, Rodin, MiniMax, Together, xAI, AtlasCloud and Evolink (providers specification 23, P-070 to P-096).

use std::time::Duration;

use atelier_proto::tracker::v1::GenerationStatus;
use serde_json::{Value as Json, json};

use crate::remote::{at, call, finish, json as answer, run, run_at, stack, stack_at, with_picture};
use crate::stack::{first_id, read, u1};
use crate::standin::{Answer, GLB, PNG, StandIn};

fn sextant() -> atelier_proto::provider::v1::RunGenerationRequest {
    call(
        "meshy",
        "text_to_3d",
        "meshy-6",
        json!({"prompt": "a brass sextant"}),
    )
}
fn task(status: &str, more: Json) -> Answer {
    let mut body = json!({"id": "019-ms1", "status": status, "progress": 37, "finished_at": 0, "expires_at": 0,
        "model_urls": {}, "task_error": null});
    for (key, value) in more.as_object().unwrap() {
        body[key] = value.clone();
    }
    answer(200, body)
}
fn taken() -> Answer {
    answer(202, json!({"result": "019-ms1"}))
}

#[tokio::test]
async fn p_070_p_073_p_075_a_task_of_meshy_states_its_credits() {
    let server = StandIn::start([]).await;
    let glb = format!("http://{}/t/ms1.glb?Expires=1", server.address);
    let done = json!({"progress": 100, "model_urls": {"glb": glb}, "task_error": {"message": ""}, "consumed_credits": 20});
    let file = Answer::new(200, "application/octet-stream", GLB);
    server.answer([
        taken(),
        task("IN_PROGRESS", json!({})),
        Answer::new(429, "application/json", "{}").header("retry-after", "0"),
        Answer::new(502, "text/html", "<html>").header("retry-after", "0"),
        task("SUCCEEDED", done),
        file,
    ]);
    let ran = run_at(sextant(), server).await;
    assert_eq!(
        (ran.ending().as_str(), ran.request_id()),
        ("completed", "019-ms1")
    );
    assert_eq!(ran.cost(), "20.000000000 CREDITS:meshy");
    assert_eq!(ran.row.quantity.as_deref(), Some("20"));
    assert_eq!(ran.assets(), [("model/gltf-binary".to_owned(), 48)]);
    let targets = ran.server.targets();
    assert_eq!(
        (targets[0].as_str(), targets[1].as_str()),
        ("POST /v1/v2/text-to-3d", "GET /v1/v2/text-to-3d/019-ms1")
    );
    let asked = json!({"mode": "preview", "prompt": "a brass sextant", "ai_model": "meshy-6"});
    assert_eq!(ran.server.seen()[0].json(), asked);

    let busy = json!({"task_error": {"message": "The server is busy. Please try again later."}, "consumed_credits": 0});
    let ran = run(sextant(), [taken(), task("FAILED", busy)]).await;
    assert_eq!(
        (ran.ending().as_str(), ran.cost().as_str()),
        ("provider_transient", "0.000000000 CREDITS:meshy")
    );
}

#[tokio::test]
async fn p_071_p_074_refusals_of_meshy_wait_for_what_they_are() {
    let server = StandIn::start([]).await;
    server.answer([
        answer(429, json!({"message": "RateLimitExceeded: slow"})),
        taken(),
        task("FAILED", json!({})),
    ]);
    let ran = run_at(sextant(), server).await;
    let seen = ran.server.seen();
    assert!((seen[1].at - seen[0].at) >= Duration::from_secs(1));
    // Half a minute is more than the test lets it wait.
    let full = run(
        sextant(),
        [answer(429, json!({"message": "NoMoreConcurrentTasks: full"}))],
    )
    .await;
    assert_eq!(
        (full.ending().as_str(), full.posts()),
        ("rate_limit/concurrency", 1)
    );
    let lost = run(sextant(), [taken().reset_after(0)]).await;
    assert_eq!(
        (lost.ending().as_str(), lost.posts()),
        ("unknown/submit_outcome_unknown", 1)
    );
}

#[tokio::test]
async fn p_072_a_task_that_waits_can_be_deleted_and_one_that_runs_cannot() {
    for (state, answered, cost, word) in [
        ("PENDING", 200, Some("0.000000000"), "requested"),
        ("IN_PROGRESS", 400, None, "unsupported"),
    ] {
        let server = StandIn::start([taken(), task(state, json!({}))]).await;
        let stack = stack("meshy", &server).await;
        let mut stream = stack.open(&u1(), sextant()).await.unwrap();
        let id = first_id(&mut stream).await;
        atelier_common::testkit::until(async || server.seen().len() >= 2)
            .within(Duration::from_secs(10))
            .await;
        server.answer([Answer::json(answered, json!({}))]);
        assert!(stack.cancel(&u1(), &id).await.cancelled);
        read(stream).await;
        let row = stack.row_in(&id, GenerationStatus::Cancelled).await;
        assert_eq!(
            row.cost.as_ref().map(|cost| cost.amount.as_str()),
            cost,
            "{state}"
        );
        let told = stack.facts(&id).await;
        let told = format!("{told:?}");
        assert!(told.contains(word), "{told}");
        assert_eq!(
            server
                .seen()
                .iter()
                .filter(|seen| seen.method == "DELETE")
                .count(),
            1
        );
    }
}

#[tokio::test]
async fn p_076_p_077_a_task_of_rodin_is_done_when_all_its_jobs_are() {
    let server = StandIn::start([]).await;
    let jobs = |words: [&str; 3]| {
        let jobs: Vec<Json> = words
            .iter()
            .map(|word| json!({"uuid": "j", "status": word}))
            .collect();
        answer(201, json!({"jobs": jobs}))
    };
    let submitted = || {
        answer(
            201,
            json!({"error": null, "message": "Submitted.", "uuid": "rd-task-1",
        "jobs": {"uuids": ["j1", "j2", "j3"], "subscription_key": "sk-rd-1"}}),
        )
    };
    let url = format!("http://{}/rd/base.glb", server.address);
    let files = answer(
        201,
        json!({"error": "OK", "list": [
        {"url": "http://elsewhere/p.webp", "name": "preview.webp"}, {"url": url, "name": "base_basic_pbr.glb"}]}),
    );
    server.answer([
        submitted(),
        jobs(["Done", "Generating", "Waiting"]),
        jobs(["Done", "Done", "Done"]),
        answer(201, json!({"list": []})),
        files,
        Answer::new(200, "model/gltf-binary", GLB),
    ]);
    let lamp = || {
        with_picture(
            call("rodin", "image_to_3d", "Regular", json!({})),
            json!({"prompt": "a brass lamp"}),
        )
    };
    let ran = run_at(lamp(), server).await;
    assert_eq!(
        (ran.ending().as_str(), ran.request_id()),
        ("completed", "rd-task-1")
    );
    let seen = ran.server.seen();
    let form = String::from_utf8_lossy(&seen[0].body).into_owned();
    assert!(seen[0].kind.starts_with("multipart/form-data"));
    for part in [
        "name=\"images\"",
        "name=\"prompt\"",
        "a brass lamp",
        "name=\"tier\"",
        "Regular",
        "glb",
    ] {
        assert!(form.contains(part), "{part}");
    }
    assert_eq!(
        (seen[1].target.as_str(), seen[1].json()),
        ("/v1/status", json!({"subscription_key": "sk-rd-1"}))
    );
    assert_eq!(
        (seen[3].target.as_str(), seen[3].json()),
        ("/v1/download", json!({"task_uuid": "rd-task-1"}))
    );
    assert_eq!(ran.assets(), [("model/gltf-binary".to_owned(), 48)]);

    let ran = run(lamp(), [submitted(), jobs(["Done", "Failed", "Done"])]).await;
    assert_eq!(
        (ran.ending().as_str(), ran.request_id()),
        ("provider_permanent", "rd-task-1")
    );
}

fn heron(provider: &str, model: &str) -> atelier_proto::provider::v1::RunGenerationRequest {
    call(
        provider,
        "text_to_video",
        model,
        json!({"prompt": "a heron", "duration": 6}),
    )
}

#[tokio::test]
async fn p_079_a_film_of_minimax_is_three_calls() {
    let good = json!({"status_code": 0, "status_msg": "success"});
    for file in [json!("f9"), json!(9)] {
        let server = StandIn::start([]).await;
        let url = format!("http://{}/o.mp4?sig=1", server.address);
        let done = answer(
            200,
            json!({"task_id": "mm1", "status": "Success", "file_id": file, "base_resp": good}),
        );
        server.answer([
            answer(200, json!({"task_id": "mm1", "base_resp": good})),
            done.clone(),
            done,
            answer(
                200,
                json!({"file": {"file_id": file, "download_url": url}, "base_resp": good}),
            ),
            Answer::film(),
        ]);
        let ran = run_at(heron("minimax", "MiniMax-Hailuo-2.3"), server).await;
        assert_eq!((ran.ending().as_str(), ran.request_id()), ("completed", "mm1"));
        let name = file.as_str().map_or("9".to_owned(), ToOwned::to_owned);
        assert_eq!(
            ran.server.targets()[3],
            format!("GET /v1/v1/files/retrieve?file_id={name}")
        );
    }
    let empty = answer(
        200,
        json!({"task_id": "mm1", "status": "Success", "file_id": "", "base_resp": good}),
    );
    let ran = run(
        heron("minimax", "MiniMax-Hailuo-2.3"),
        [answer(200, json!({"task_id": "mm1", "base_resp": good})), empty],
    )
    .await;
    assert_eq!(ran.ending(), "provider_permanent/no_output");
}

#[tokio::test]
async fn p_080_codes_of_minimax_in_answers_of_success() {
    for (code, ending, posts) in [
        (1002, "rate_limit", 4),
        (1004, "auth", 1),
        (2049, "auth", 1),
        (1008, "quota", 1),
        (2056, "quota", 1),
        (1026, "content_policy/input", 1),
        (1027, "content_policy/output", 1),
        (2013, "invalid_input", 1),
        (1000, "provider_transient", 1),
        (1024, "provider_transient", 1),
        (9999, "unknown", 1),
    ] {
        let body = json!({"task_id": "", "base_resp": {"status_code": code, "status_msg": "told"}});
        let ran = run(heron("minimax", "MiniMax-Hailuo-2.3"), [answer(200, body)]).await;
        assert_eq!(
            (ran.ending().as_str(), ran.posts(), ran.request_id()),
            (ending, posts, ""),
            "{code}"
        );
    }
}

#[tokio::test]
async fn p_083_p_084_p_085_together() {
    let store = StandIn::start([Answer::film()]).await;
    let server = StandIn::start([]).await;
    let url = format!("http://{}/shrt/x", server.address);
    let film = |status: &str, more: Json| {
        let mut body = json!({"id": "tg1", "object": "video", "status": status, "seconds": "6"});
        for (key, value) in more.as_object().unwrap() {
            body[key] = value.clone();
        }
        answer(200, body)
    };
    server.answer([
        answer(200, json!({"id": "tg1"})),
        film("in_progress", json!({})),
        film("completed", json!({"outputs": {"cost": 0.28, "video_url": url}})),
        Answer::moved(&format!("http://{}/v.mp4", store.address)),
    ]);
    let ran = run_at(heron("together", "minimax/hailuo-02"), server).await;
    assert_eq!((ran.ending().as_str(), ran.request_id()), ("completed", "tg1"));
    assert_eq!(
        (ran.cost().as_str(), ran.row.price_source.as_deref()),
        ("0.280000000 USD", Some("provider"))
    );
    assert_eq!(ran.server.seen()[0].json()["seconds"], "6");
    assert_eq!(store.seen()[0].authorization, None);

    let failed = film(
        "failed",
        json!({"error": {"code": "internal", "message": "upstream failed"}}),
    );
    let ran = run(
        heron("together", "minimax/hailuo-02"),
        [answer(200, json!({"id": "tg1"})), failed],
    )
    .await;
    assert_eq!(
        (ran.ending().as_str(), ran.cost().as_str()),
        ("provider_permanent", "-")
    );
    assert!(ran.error().contains("internal"), "{}", ran.error());

    let picture = || {
        call(
            "together",
            "text_to_image",
            "black-forest-labs/FLUX.1-schnell",
            json!({"prompt": "x"}),
        )
    };
    let good = answer(200, json!({"id": "im1", "data": [{"index": 0, "b64_json": PNG}]}));
    let limited = json!({"error": {"message": "slow", "code": "rate_limit"}});
    let busy = json!({"error": {"message": "model overloaded", "type": "service_unavailable"}});
    for (status, body, ending) in [(400, limited, "rate_limit"), (503, busy, "provider_transient")] {
        let ran = run(picture(), [answer(status, body.clone()), good.clone()]).await;
        assert_eq!(
            (ran.ending().as_str(), ran.posts(), ran.request_id()),
            ("completed", 2, "im1")
        );
        assert_eq!(run(picture(), [answer(status, body)]).await.ending(), ending);
    }
}

#[tokio::test]
async fn p_086_p_087_p_088_xai_states_its_charge_to_the_tick() {
    let server = StandIn::start([]).await;
    let url = format!("http://{}/o.mp4", server.address);
    let ticks = json!({"cost_in_usd_ticks": 3_000_000_000_i64});
    let done = |url: &str, good: bool, usage: Json| {
        answer(
            200,
            json!({"status": "done", "usage": usage,
        "video": {"url": url, "duration": 6, "respect_moderation": good}}),
        )
    };
    let id = || answer(200, json!({"request_id": "xr1"}));
    server.answer([id(), id(), done(&url, true, ticks.clone()), Answer::film()]);
    let ran = run_at(heron("xai", "grok-imagine-video"), server).await;
    assert_eq!(
        (ran.ending().as_str(), ran.request_id(), ran.cost().as_str()),
        ("completed", "xr1", "0.300000000 USD")
    );

    let ran = run(heron("xai", "grok-imagine-video"), [id(), done("", false, ticks)]).await;
    assert_eq!(
        (ran.ending().as_str(), ran.cost().as_str()),
        ("content_policy/output", "0.300000000 USD")
    );
    assert_eq!(ran.server.seen().len(), 2);

    let ran = run(
        heron("xai", "grok-imagine-video"),
        [id(), answer(200, json!({"status": "expired"}))],
    )
    .await;
    assert_eq!(ran.ending(), "provider_permanent/result_expired");

    let server = StandIn::start([]).await;
    let url = format!("http://{}/o.mp4", server.address);
    server.answer([id(), done(&url, true, Json::Null), Answer::film()]);
    let ran = run_at(heron("xai", "grok-imagine-video"), server).await;
    assert_eq!(
        (ran.cost().as_str(), ran.row.price_source.as_deref()),
        ("0.300000000 USD", Some("model-catalog"))
    );

    let body = json!({"data": [{"b64_json": PNG, "mime_type": "image/jpeg"}], "usage": {"cost_in_usd_ticks": 200_000_000}});
    let picture = call(
        "xai",
        "text_to_image",
        "grok-imagine-image",
        json!({"prompt": "x"}),
    );
    let ran = run(picture, [answer(200, body).header("x-request-id", "xi1")]).await;
    assert_eq!(
        (ran.cost().as_str(), ran.request_id()),
        ("0.020000000 USD", "xi1")
    );
}

#[tokio::test]
async fn p_089_p_090_p_092_words_of_atlascloud() {
    let made = || {
        answer(
            200,
            json!({"code": 200, "data": {"id": "at1", "status": "created"}}),
        )
    };
    let said = |status: u16, word: &str, outputs: Json| {
        answer(
            status,
            json!({"code": status, "data": {"id": "at1", "status": word, "outputs": outputs, "error": "x"}}),
        )
    };
    let film = || heron("atlascloud", "bytedance/seedance-2.0/text-to-video");
    let server = StandIn::start([]).await;
    let url = format!("http://{}/at1.mp4", server.address);
    server.answer([
        made(),
        said(200, "Succeeded", json!([{"url": url}])),
        Answer::film(),
    ]);
    let ran = run_at(film(), server).await;
    assert_eq!((ran.ending().as_str(), ran.request_id()), ("completed", "at1"));
    let asked = json!({"model": "bytedance/seedance-2.0/text-to-video", "prompt": "a heron", "duration": 6});
    assert_eq!(ran.server.seen()[0].json(), asked);
    for (status, word, ending) in [
        (200, "TIMEOUT", "timeout"),
        (500, "failed", "provider_permanent"),
        (200, "completed", "provider_permanent/no_output"),
    ] {
        let ran = run(film(), [made(), said(status, word, json!([]))]).await;
        assert_eq!(ran.ending(), ending, "{word}");
    }
    let slow = answer(429, json!({"code": 429, "msg": "rate limited"})).header("retry-after", "5");
    let ran = run(film(), [slow]).await;
    assert_eq!((ran.ending().as_str(), ran.posts()), ("rate_limit", 1));
    use tonic_types::StatusExt as _;
    let wait = ran.told.error.as_ref().unwrap().get_details_retry_info().unwrap();
    assert_eq!(wait.retry_delay, Some(Duration::from_secs(5)));
}

#[tokio::test]
async fn p_093_p_094_p_095_p_096_evolink_knows_a_request_by_its_key() {
    let film = || heron("evolink", "veo-3.1");
    let task = |status: &str, more: Json| {
        let mut body = json!({"id": "task-ev1", "status": status, "usage": {"credits_reserved": 40.8}});
        for (key, value) in more.as_object().unwrap() {
            body[key] = value.clone();
        }
        answer(200, body)
    };
    let refused = |status: u16, code: &str| answer(status, json!({"error": {"code": code, "message": "no"}}));
    let conflict = run(film(), [refused(409, "idempotency_conflict")]).await;
    assert_eq!(
        (conflict.ending().as_str(), conflict.posts()),
        ("unknown/idempotency_conflict", 1)
    );
    let daily = run(film(), [refused(402, "token_daily_quota_exceeded")]).await;
    assert_eq!(daily.ending(), "quota/INSUFFICIENT_CREDIT");
    use tonic_types::StatusExt as _;
    assert!(
        daily
            .told
            .error
            .as_ref()
            .unwrap()
            .get_details_retry_info()
            .is_some()
    );
    let poor = run(film(), [refused(402, "insufficient_quota")]).await;
    assert!(
        poor.told
            .error
            .as_ref()
            .unwrap()
            .get_details_retry_info()
            .is_none()
    );

    for (code, ending) in [
        ("content_policy_violation", "content_policy"),
        ("generation_failed_no_content", "provider_transient"),
        ("invalid_parameters", "invalid_input"),
    ] {
        let failed = task("failed", json!({"error": {"code": code, "message": "m"}}));
        let ran = run(film(), [task("pending", json!({})), failed]).await;
        assert_eq!(
            (ran.ending().as_str(), ran.cost().as_str()),
            (ending, "-"),
            "{code}"
        );
    }
}

#[tokio::test]
async fn p_093_a_request_that_was_cut_off_is_sent_again_with_the_same_key() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let film = StandIn::start([Answer::film()]).await;
    let url = format!("http://{}/ev1.mp4", film.address);
    let heads = std::sync::Arc::new(std::sync::Mutex::new(Vec::<String>::new()));
    let seen = heads.clone();
    atelier_common::tasks::Tasks::new().spawn("cutter", async move {
        let mut number = 0;
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            number += 1;
            let mut text = Vec::new();
            let mut piece = [0_u8; 4096];
            loop {
                let read = socket.read(&mut piece).await.unwrap();
                text.extend_from_slice(&piece[..read]);
                if read == 0 || text.ends_with(b"}") || text.starts_with(b"GET") {
                    break;
                }
            }
            seen.lock().unwrap().push(String::from_utf8_lossy(&text).into_owned());
            if number == 1 {
                continue;
            }
            let state = if number == 2 { "pending" } else { "completed" };
            let body = json!({"id": "task-ev1", "status": state, "results": [url]}).to_string();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            socket.write_all(head.as_bytes()).await.unwrap();
            socket.write_all(body.as_bytes()).await.unwrap();
        }
    });
    let mut remote = at(&film);
    remote.base_url = format!("http://{address}");
    let stack = stack_at("evolink", remote).await;
    let ran = finish(stack, film, heron("evolink", "veo-3.1")).await;
    assert_eq!(
        (ran.ending().as_str(), ran.request_id()),
        ("completed", "task-ev1"),
        "{}",
        ran.error()
    );
    let heads = heads.lock().unwrap().clone();
    let posts: Vec<&String> = heads.iter().filter(|head| head.starts_with("POST")).collect();
    assert_eq!(posts.len(), 2);
    assert_eq!(posts[0], posts[1], "the same bytes");
    assert!(posts[0].contains(&format!("idempotency-key: {}", ran.row.generation_id)));
}

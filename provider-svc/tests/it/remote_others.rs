//! Reve, Topaz, Hugging Face, and what holds for every provider on the network (providers specification 23).

use atelier_proto::tracker::v1::ListGenerationsRequest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value as Json, json};

use crate::remote::{KEY, call, json as answer, png, run, run_at, with_picture};
use crate::standin::{Answer, PNG, StandIn};

fn kettle(provider: &str, model: &str) -> atelier_proto::provider::v1::RunGenerationRequest {
    call(
        provider,
        "text_to_image",
        model,
        json!({"prompt": "a teal kettle"}),
    )
}
fn reve(kind: &str, body: impl Into<Vec<u8>>, violates: &str) -> Answer {
    Answer::new(200, kind, body)
        .header("x-reve-request-id", "rv1")
        .header("x-reve-credits-used", "18")
        .header("x-reve-content-violation", violates)
}

#[tokio::test]
async fn p_106_p_107_reve_says_the_same_in_bytes_and_in_json() {
    let picture = STANDARD.decode(PNG).unwrap();
    let json = json!({"image": PNG, "content_violation": false, "request_id": "rv1", "credits_used": 18});
    for answer in [reve("image/png", picture, "false"), Answer::json(200, json)] {
        let ran = run(kettle("reve", "reve-create"), [answer]).await;
        assert_eq!((ran.ending().as_str(), ran.request_id()), ("completed", "rv1"));
        assert_eq!(ran.cost(), "18.000000000 CREDITS:reve");
        assert_eq!(ran.assets(), [("image/png".to_owned(), 69)]);
    }
    let refused = json!({"image": "", "content_violation": true, "request_id": "rv2", "credits_used": 18});
    for answer in [reve("image/webp", "", "true"), Answer::json(200, refused)] {
        let ran = run(kettle("reve", "reve-create"), [answer]).await;
        assert_eq!(
            (ran.ending().as_str(), ran.cost().as_str()),
            ("content_policy/output", "18.000000000 CREDITS:reve")
        );
    }
}

#[tokio::test]
async fn p_097_a_picture_of_topaz_is_downloaded_when_it_is_there() {
    let server = StandIn::start([]).await;
    let url = format!("http://{}/tp1.png?sig=1", server.address);
    let status = |word: &str, more: Json| {
        let mut body = json!({"process_id": "tp1", "status": word, "progress": 41});
        for (key, value) in more.as_object().unwrap() {
            body[key] = value.clone();
        }
        answer(200, body)
    };
    server.answer([
        answer(200, json!({"process_id": "tp1", "source_id": "ts1"})).header("x-process-id", "tp1"),
        status("Processing", json!({})),
        status("Completed", json!({"credits": 1})),
        answer(409, json!({"message": "not ready"})),
        answer(200, json!({"download_url": url})),
        png(),
    ]);
    let larger = with_picture(
        call("topaz", "upscale_image", "Standard V2", json!({})),
        json!({}),
    );
    let ran = run_at(larger, server).await;
    assert_eq!((ran.ending().as_str(), ran.request_id()), ("completed", "tp1"));
    // The price of a credit is in the catalog of the test.
    assert_eq!(ran.cost(), "0.100000000 USD");
    assert_eq!(
        (ran.row.quantity.as_deref(), ran.row.unit_price.as_deref()),
        (Some("1"), Some("0.100000000"))
    );
    assert_eq!(ran.server.seen()[0].header("x-api-key"), KEY);
}

#[tokio::test]
async fn p_108_a_model_that_is_loading_is_waited_for() {
    let loading = json!({"error": "Model x is currently loading", "estimated_time": 1.0});
    let good = Answer::new(200, "image/png", STANDARD.decode(PNG).unwrap()).header("inference-id", "hf1");
    let model = "black-forest-labs/FLUX.1-schnell";
    let ran = run(kettle("huggingface", model), [answer(503, loading), good]).await;
    let seen = ran.server.seen();
    assert_eq!(
        (ran.ending().as_str(), ran.request_id(), seen.len()),
        ("completed", "hf1", 2)
    );
    assert!((seen[1].at - seen[0].at).as_secs_f64() >= 1.0);
    let poor = run(
        kettle("huggingface", model),
        [answer(402, json!({"error": "You have depleted your credits"}))],
    )
    .await;
    assert_eq!(poor.ending(), "quota/INSUFFICIENT_CREDIT");
    let listed = run(
        kettle("huggingface", model),
        [answer(400, json!({"error": ["a", "b"]}))],
    )
    .await;
    assert_eq!(
        (listed.ending().as_str(), listed.error()),
        ("invalid_input", "a; b")
    );
}

const PICTURES: &[(&str, &str)] = &[
    ("gemini", "gemini-2.5-flash-image"),
    ("replicate", "black-forest-labs/flux-schnell"),
    ("xai", "grok-imagine-image"),
    ("together", "black-forest-labs/FLUX.1-schnell"),
    ("minimax", "image-01"),
    ("reve", "reve-create"),
    ("atlascloud", "bytedance/seedream-v4"),
    ("evolink", "nano-banana-pro"),
];

#[tokio::test]
async fn p_115_no_provider_lets_key_or_media_out() {
    let echo = json!({"error": {"message": format!("bad key {KEY} with data:image/png;base64,{PNG}")}, "detail": KEY});
    for (provider, model) in PICTURES {
        for status in [400, 401, 403, 500] {
            let call = with_picture(kettle(provider, model), json!({"prompt": "x"}));
            let ran = run(call, [answer(status, echo.clone())]).await;
            let listed = ran.stack.signed(ListGenerationsRequest::default());
            let rows = ran.stack.tracker().list_generations(listed).await.unwrap();
            let told = format!("{:?} {:?}", rows.into_inner(), ran.told);
            assert!(
                !told.contains(KEY) && !told.contains("iVBORw0"),
                "{provider} {status}: {told}"
            );
            assert_eq!(ran.posts(), 1, "{provider} {status}");
        }
    }
}

#[tokio::test]
async fn p_116_p_124_a_page_and_a_server_that_is_not_there() {
    for (provider, model) in PICTURES {
        let page = Answer::new(200, "text/html", "<html>please log in</html>");
        let ran = run(kettle(provider, model), [page]).await;
        assert_eq!(
            (ran.ending().as_str(), ran.posts()),
            ("unknown/submit_outcome_unknown", 1),
            "{provider}"
        );
    }
    let server = StandIn::start([png()]).await;
    let mut remote = crate::remote::at(&server);
    remote.base_url = "http://127.0.0.1:1".to_owned();
    let stack = crate::remote::stack_at("xai", remote).await;
    let ran = crate::remote::finish(stack, server, kettle("xai", "grok-imagine-image")).await;
    assert_eq!(
        (ran.ending().as_str(), ran.request_id()),
        ("provider_transient", "")
    );
}

#[tokio::test]
async fn p_120_hostile_addresses_of_jobs_are_refused() {
    for address in [
        "http://169.254.169.254/latest",
        "file:///etc/passwd",
        "http://10.0.0.1/x",
    ] {
        let body = json!({"id": "rp1", "status": "succeeded", "output": [address]});
        let starting = json!({"id": "rp1", "status": "starting"});
        let replicate = kettle("replicate", "black-forest-labs/flux-schnell");
        let ran = run(replicate, [answer(201, starting), answer(200, body)]).await;
        let ending = ran.ending();
        assert!(ending.starts_with("provider_permanent/"), "{address}: {ending}");
    }
}

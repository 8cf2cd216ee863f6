//! ElevenLabs and the speech of MiniMax (providers specification 23, P-081 and P-100 to P-103).

use serde_json::json;

use crate::remote::{call, json as answer, run};
use crate::standin::{Answer, MP3};

fn hello() -> atelier_proto::provider::v1::RunGenerationRequest {
    let params = json!({"text": "Hello there", "voice": "v1ce"});
    call("elevenlabs", "text_to_speech", "eleven_multilingual_v2", params)
}
fn spoken() -> Answer {
    Answer::new(200, "audio/mpeg", MP3)
        .header("request-id", "el1")
        .header("character-cost", "11")
        .chunked(5)
}

#[tokio::test]
async fn p_100_the_head_states_the_id_and_the_credits() {
    let ran = run(hello(), [spoken()]).await;
    assert_eq!((ran.ending().as_str(), ran.request_id()), ("completed", "el1"));
    // What a credit is worth depends on the plan; until somebody says so the charge is in credits.
    assert_eq!(ran.cost(), "11.000000000 CREDITS:elevenlabs");
    assert_eq!(
        (ran.row.quantity.as_deref(), ran.row.billing_unit.as_deref()),
        (Some("11"), Some("credits"))
    );
    assert_eq!(ran.row.price_source.as_deref(), Some("provider"));
    assert_eq!(ran.assets(), [("audio/mpeg".to_owned(), 12)]);
    let seen = &ran.server.seen()[0];
    assert_eq!(
        seen.target,
        "/v1/v1/text-to-speech/v1ce?output_format=mp3_44100_128"
    );
    assert_eq!(
        (seen.header("xi-api-key"), &seen.authorization),
        ("sk-secret-1", &None)
    );
    assert_eq!(
        seen.json(),
        json!({"text": "Hello there", "model_id": "eleven_multilingual_v2"})
    );
}

#[tokio::test]
async fn p_100_a_stream_tells_its_pieces() {
    let mut call = hello();
    let params = json!({"text": "Hello there", "voice": "v1ce", "stream": true});
    call.params = Some((&crate::stack::params(params)).into());
    let ran = run(call, [spoken()]).await;
    assert_eq!(ran.ending(), "completed");
    let told: Vec<u8> = ran
        .told
        .chunks
        .iter()
        .flat_map(|chunk| chunk.data.to_vec())
        .collect();
    assert_eq!(told, MP3);
}

#[tokio::test]
async fn p_101_an_empty_account_is_no_bad_key() {
    let body = |status: &str| json!({"detail": {"status": status, "message": "no"}});
    for (word, ending) in [
        ("quota_exceeded", "quota/INSUFFICIENT_CREDIT"),
        ("invalid_api_key", "auth"),
        ("missing_permissions", "auth/permission"),
    ] {
        let ran = run(hello(), [answer(401, body(word))]).await;
        assert_eq!((ran.ending().as_str(), ran.posts()), (ending, 1));
    }
    let policy = run(hello(), [answer(403, body("content_against_policy"))]).await;
    assert_eq!(policy.ending(), "content_policy/input");
    let listed = json!({"detail": [{"loc": ["body", "text"], "msg": "field required", "type": "value_error.missing"}]});
    let bad = run(hello(), [answer(422, listed)]).await;
    assert_eq!(
        (bad.ending().as_str(), bad.error()),
        ("invalid_input", "text: field required")
    );
}

#[tokio::test]
async fn p_102_both_refusals_for_its_load_are_tried_again() {
    for word in ["too_many_concurrent_requests", "system_busy"] {
        let busy = answer(429, json!({"detail": {"status": word, "message": "later"}}));
        let ran = run(hello(), [busy.clone(), spoken()]).await;
        assert_eq!((ran.ending().as_str(), ran.posts()), ("completed", 2), "{word}");
        let ran = run(hello(), [busy]).await;
        let ending = if word == "system_busy" {
            "provider_transient"
        } else {
            "rate_limit/concurrency"
        };
        assert_eq!((ran.ending().as_str(), ran.posts()), (ending, 4));
    }
}

#[tokio::test]
async fn p_103_sound_that_breaks_off_is_charged_and_kept_nowhere() {
    let ran = run(hello(), [spoken().reset_after(6)]).await;
    assert_eq!(
        (ran.ending().as_str(), ran.request_id()),
        ("unknown/submit_outcome_unknown", "el1")
    );
    assert_eq!(ran.cost(), "11.000000000 CREDITS:elevenlabs");
    assert!(ran.stack.assets().await.is_empty());
}

#[tokio::test]
async fn p_081_speech_of_minimax_is_hex() {
    let body = |audio: &str| {
        json!({
            "data": {"audio": audio, "status": 2},
            "extra_info": {"audio_length": 900, "audio_size": 12, "usage_characters": 11, "audio_format": "mp3"},
            "trace_id": "tr1", "base_resp": {"status_code": 0, "status_msg": "success"},
        })
    };
    let speak = || {
        call(
            "minimax",
            "text_to_speech",
            "speech-2.6-hd",
            json!({"text": "Hello there"}),
        )
    };
    let ran = run(speak(), [answer(200, body("fffb90640000000000000000"))]).await;
    assert_eq!((ran.ending().as_str(), ran.request_id()), ("completed", "tr1"));
    assert_eq!(ran.assets(), [("audio/mpeg".to_owned(), 12)]);
    assert_eq!(
        (ran.row.quantity.as_deref(), ran.cost().as_str()),
        (Some("11"), "0.001100000 USD")
    );
    let odd = run(speak(), [answer(200, body("fff"))]).await;
    assert_eq!(odd.ending(), "provider_permanent/bad_output");
}

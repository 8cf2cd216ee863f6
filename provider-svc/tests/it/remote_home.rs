//! Servers of one's own: ComfyUI and AUTOMATIC1111 (providers specification 23, P-109 to P-113).

use std::time::Duration;

use atelier_proto::tracker::v1::GenerationStatus;
use serde_json::{Value as Json, json};

use crate::remote::{call, json as answer, png, run, run_at, stack};
use crate::stack::{first_id, read, u1};
use crate::standin::{PNG, StandIn};

fn graph() -> Json {
    json!({"6": {"class_type": "CLIPTextEncode", "inputs": {"text": "{{prompt}}, oil"}},
        "3": {"class_type": "KSampler", "inputs": {"seed": "{{seed}}"}}})
}
fn comfy() -> atelier_proto::provider::v1::RunGenerationRequest {
    let params = json!({"prompt": "a barge", "seed": 7, "workflow": graph()});
    call("comfyui", "text_to_image", "workflow", params)
}
fn taken() -> crate::standin::Answer {
    answer(200, json!({"prompt_id": "p1", "number": 3, "node_errors": {}}))
}
fn history(outputs: Json, messages: Json) -> crate::standin::Answer {
    answer(
        200,
        json!({"p1": {"outputs": outputs, "status": {"messages": messages}}}),
    )
}

#[tokio::test]
async fn p_109_outputs_are_read_from_the_history_and_cost_nothing() {
    let files = json!({"9": {"images": [
        {"filename": "Out 1.png", "subfolder": "a", "type": "output"},
        {"filename": "preview.png", "subfolder": "", "type": "temp"}]}});
    let cached = json!([["execution_cached", {"nodes": ["9"]}], ["execution_success", {"prompt_id": "p1"}]]);
    let ran = run(
        comfy(),
        [taken(), answer(200, json!({})), history(files, cached), png()],
    )
    .await;
    assert_eq!(
        (ran.ending().as_str(), ran.request_id(), ran.cost().as_str()),
        ("completed", "p1", "0.000000000 USD")
    );
    assert_eq!(ran.assets().len(), 1);
    let targets = ran.server.targets();
    assert_eq!(targets[1], "GET /v1/history/p1");
    assert_eq!(
        targets[3],
        "GET /v1/view?filename=Out+1.png&subfolder=a&type=output"
    );
    let sent = &ran.server.seen()[0].json()["prompt"];
    assert_eq!(
        (&sent["6"]["inputs"]["text"], &sent["3"]["inputs"]["seed"]),
        (&json!("a barge, oil"), &json!(7))
    );
    let broken = json!([["execution_error", {"node_id": "3", "node_type": "KSampler",
        "exception_message": "CUDA out of memory", "exception_type": "OutOfMemoryError"}]]);
    let ran = run(comfy(), [taken(), history(json!({}), broken)]).await;
    assert_eq!(ran.ending(), "provider_transient");
    assert!(ran.error().contains("node 3 (KSampler): CUDA"), "{}", ran.error());
}

#[tokio::test]
async fn a_server_that_needs_a_workflow_is_only_asked_by_name() {
    let server = StandIn::start([taken()]).await;
    let stack = stack("comfyui", &server).await;
    let told = stack
        .run(call("", "text_to_image", "", json!({"prompt": "a barge"})))
        .await;
    assert_ne!(told.predictions[0].provider, "comfyui");
    let told = stack
        .run(call("comfyui", "text_to_image", "", json!({"prompt": "a barge"})))
        .await;
    assert!(told.error.as_ref().unwrap().message().contains("workflow"));
    assert!(server.seen().is_empty(), "nothing was sent");
}

#[tokio::test]
async fn p_110_a_graph_that_is_refused_names_the_node() {
    let body = json!({"error": {"type": "prompt_outputs_failed_validation", "message": "Prompt outputs failed validation"},
        "node_errors": {"4": {"errors": [{"type": "value_not_in_list", "message": "Value not in list",
            "details": "ckpt_name: 'x' not in []"}], "class_type": "CheckpointLoaderSimple"}}});
    let ran = run(comfy(), [answer(400, body)]).await;
    assert_eq!(ran.ending(), "invalid_input");
    for word in ["node 4", "CheckpointLoaderSimple", "ckpt_name"] {
        assert!(ran.error().contains(word), "{}", ran.error());
    }
}

#[tokio::test]
async fn p_111_a_job_that_waits_is_taken_out_and_one_that_runs_is_interrupted_by_its_id() {
    let own = json!([[3, "p1", {}]]);
    let other = json!([[2, "p0", {}]]);
    for (running, pending, expected) in [
        (&other, &own, Some(("/v1/queue", json!({"delete": ["p1"]})))),
        (&own, &other, Some(("/v1/interrupt", json!({"prompt_id": "p1"})))),
        (&other, &other, None),
    ] {
        let server = StandIn::start([taken(), answer(200, json!({}))]).await;
        let stack = stack("comfyui", &server).await;
        let mut stream = stack.open(&u1(), comfy()).await.unwrap();
        let id = first_id(&mut stream).await;
        atelier_common::testkit::until(async || server.seen().len() >= 2)
            .within(Duration::from_secs(10))
            .await;
        server.answer([
            answer(200, json!({"queue_running": running, "queue_pending": pending})),
            answer(200, json!({})),
        ]);
        assert!(stack.cancel(&u1(), &id).await.cancelled);
        read(stream).await;
        stack.row_in(&id, GenerationStatus::Cancelled).await;
        let posts: Vec<(String, Json)> = server.seen()[1..]
            .iter()
            .filter(|seen| seen.method == "POST")
            .map(|seen| (seen.path.clone(), seen.json()))
            .collect();
        let expected: Vec<(String, Json)> = expected
            .into_iter()
            .map(|(path, body)| (path.to_owned(), body))
            .collect();
        assert_eq!(posts, expected);
    }
}

#[tokio::test]
async fn p_113_the_web_ui_gives_pictures_and_their_seeds() {
    let paint = || {
        call(
            "automatic1111",
            "text_to_image",
            "loaded",
            json!({"prompt": "x", "steps": 20}),
        )
    };
    let good = json!({"images": [PNG], "parameters": {}, "info": "{\"seed\": 7, \"all_seeds\": [7]}"});
    let server = StandIn::start([answer(200, good)]).await;
    let ran = run_at(paint(), server).await;
    assert_eq!(
        (ran.ending().as_str(), ran.cost().as_str()),
        ("completed", "0.000000000 USD")
    );
    assert_eq!(
        ran.told.output().get("seed").and_then(|seed| seed.as_i64()),
        Some(7)
    );
    assert_eq!(ran.server.targets(), ["POST /v1/sdapi/v1/txt2img"]);
    let memory = json!({"error": "OutOfMemoryError", "detail": "", "errors": "CUDA out of memory."});
    for (status, body, ending) in [
        (
            200,
            json!({"images": [], "info": "{}"}),
            "provider_permanent/no_output",
        ),
        (401, json!({"detail": "Incorrect username or password"}), "auth"),
        (
            404,
            json!({"error": "HTTPException", "detail": "Sampler not found"}),
            "invalid_input/unknown_model",
        ),
        (500, memory, "provider_transient"),
    ] {
        let ran = run(paint(), [answer(status, body)]).await;
        assert_eq!(
            (ran.ending().as_str(), ran.posts()),
            (ending, 1),
            "{}",
            ran.error()
        );
    }
}

//! What the offline provider makes beside pictures, speech and text, from the outside.

use atelier_proto::value::{BytesForm, Value, to_json};
use serde_json::{Value as Json, json};

use crate::stack::{Stack, Told, cost, request};

async fn made(stack: &Stack, capability: &str, params: Json) -> Told {
    let told = stack.run(request("sketch", capability, params)).await;
    assert_eq!(told.error.as_ref().map(ToString::to_string), None, "{capability}");
    told
}

/// Each capability: parameters, the kind and type of the result, and what it costs; the store reads the type from the bytes.
#[tokio::test]
async fn every_kind_of_media_is_made_priced_and_stored() {
    let stack = Stack::start().await;
    let picture = made(
        &stack,
        "text_to_image",
        json!({"prompt": "a boat", "width": 96, "height": 64}),
    )
    .await;
    let image = to_json(&picture.output(), BytesForm::Tagged);
    let table = [
        (
            "text_to_video",
            json!({"prompt": "a boat", "duration": 3, "width": 128, "height": 64}),
            "video",
            "video/x-msvideo",
            "0.300000000",
        ),
        (
            "image_to_video",
            json!({"image": image, "duration": 1}),
            "video",
            "video/x-msvideo",
            "0.100000000",
        ),
        (
            "image_to_image",
            json!({"image": image, "prompt": "at night"}),
            "image",
            "image/png",
            "0.040000000",
        ),
        (
            "inpainting",
            json!({"image": image, "mask": image, "prompt": "a moon"}),
            "image",
            "image/png",
            "0.040000000",
        ),
        (
            "upscale_image",
            json!({"image": [image], "scale": 2}),
            "image",
            "image/png",
            "0.040000000",
        ),
        (
            "vectorize_image",
            json!({"image": image}),
            "image",
            "image/svg+xml",
            "0.040000000",
        ),
        (
            "text_to_music",
            json!({"prompt": "a waltz", "duration": 1.5}),
            "audio",
            "audio/wav",
            "0.003000000",
        ),
        (
            "text_to_3d",
            json!({"prompt": "a ruby"}),
            "model_3d",
            "model/gltf-binary",
            "0.200000000",
        ),
        (
            "image_to_3d",
            json!({"image": image}),
            "model_3d",
            "model/gltf-binary",
            "0.200000000",
        ),
    ];
    for (capability, mut params, kind, mime, price) in table {
        params["seed"] = json!(5);
        let told = made(&stack, capability, params.clone()).await;
        let output = told.output();
        let media = output.as_media().unwrap();
        assert_eq!(
            (media.kind.as_str(), media.mime_type.as_deref()),
            (kind, Some(mime)),
            "{capability}"
        );
        let asset = &told.result.as_ref().unwrap().assets[0];
        assert_eq!(asset.content_type, mime, "{capability}");
        assert_eq!(cost(&stack.row(&told.id()).await), Some(price), "{capability}");
        // Equal by seed, and the picture itself is not what comes back.
        let again = made(&stack, capability, params).await;
        assert_eq!(
            again.result.unwrap().assets[0].digest,
            asset.digest,
            "{capability}"
        );
        assert_ne!(
            picture.result.as_ref().unwrap().assets[0].digest,
            asset.digest,
            "{capability}"
        );
    }
}

#[tokio::test]
async fn knobs_hold_for_every_kind() {
    let stack = Stack::start().await;
    let told = stack
        .run(request(
            "sketch",
            "text_to_video",
            json!({"prompt": "x", "fail": "no film", "bill_on_failure": true}),
        ))
        .await;
    assert!(told.error.as_ref().unwrap().message().contains("no film"));
    assert!(cost(&stack.row(&told.id()).await).is_some());
    let told = made(&stack, "text_to_music", json!({"prompt": "x", "steps": 3})).await;
    assert_eq!(told.progress.len(), 3);
}

#[tokio::test]
async fn sound_is_written_down_by_a_stand_in_that_says_so() {
    let stack = Stack::start().await;
    let told = made(&stack, "text_to_speech", json!({"text": "Good morning"})).await;
    let audio = to_json(&told.output(), BytesForm::Tagged);
    let told = made(&stack, "automatic_speech_recognition", json!({"audio": audio})).await;
    let text = told.output();
    assert!(
        text.as_str().unwrap().starts_with("[Stand-in transcript of "),
        "{text:?}"
    );
    let again = made(&stack, "automatic_speech_recognition", json!({"audio": audio})).await;
    assert_eq!(text, again.output());
    assert!(cost(&stack.row(&told.id()).await).unwrap() > "0.000000000");
}

#[tokio::test]
async fn texts_become_vectors() {
    let stack = Stack::start().await;
    let one = made(
        &stack,
        "embedding",
        json!({"input": "a red boat", "dimensions": 32}),
    )
    .await;
    let one = one.output();
    assert_eq!(one.as_list().map(<[Value]>::len), Some(32));
    let both = made(
        &stack,
        "embedding",
        json!({"input": ["a red boat", "x"], "dimensions": 32}),
    )
    .await;
    assert_eq!(both.output().as_list().unwrap()[0], one);
    let refused = stack
        .run(request("sketch", "embedding", json!({"input": []})))
        .await;
    assert!(refused.error.unwrap().message().contains("input"));
}

/// A question with tools: a call, and after its result an answer.
#[tokio::test]
async fn tools_are_called_and_their_results_answered() {
    let stack = Stack::start().await;
    let parameters = json!({"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]});
    let tools = json!([{"type": "function", "function": {"name": "calculator", "parameters": parameters}}]);
    let question = json!({"role": "user", "content": "use the calculator for 6 * 7"});
    let told = made(
        &stack,
        "generate_message",
        json!({"messages": [question], "tools": tools}),
    )
    .await;
    let message = to_json(&told.output(), BytesForm::Tagged);
    let call = &message["tool_calls"][0];
    assert_eq!(
        (&call["function"]["name"], &call["function"]["arguments"]),
        (&json!("calculator"), &json!("{\"expression\":\"6 * 7\"}"))
    );
    assert!(told.result.as_ref().unwrap().assets.is_empty());
    let result = json!({"role": "tool", "tool_call_id": call["id"], "name": "calculator", "content": "42"});
    let told = made(
        &stack,
        "generate_message",
        json!({"messages": [question, message, result], "tools": tools}),
    )
    .await;
    assert!(
        told.output().as_str().unwrap().starts_with("calculator: 42"),
        "{:?}",
        told.output()
    );
    let told = made(
        &stack,
        "generate_message",
        json!({"messages": [question], "tools": tools, "tool_choice": "none"}),
    )
    .await;
    assert!(told.output().as_str().is_some());
}

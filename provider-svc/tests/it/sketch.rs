//! The offline provider, from the outside.

use std::time::Duration;

use atelier_common::testkit::until;
use atelier_proto::provider::v1::ListModelsRequest;
use atelier_proto::tracker::v1::GenerationStatus;
use atelier_proto::value::Value;
use atelier_provider::settings::{Settings, Sketch};
use serde_json::json;

use crate::stack::{Stack, cost, first_id, read, request, status, u1};

fn small(extra: serde_json::Value) -> serde_json::Value {
    let mut params = json!({"prompt": "a red boat", "width": 96, "height": 64});
    params
        .as_object_mut()
        .unwrap()
        .extend(extra.as_object().unwrap().clone());
    params
}

#[tokio::test]
async fn a_picture_is_made_with_progress_priced_and_stored() {
    let stack = Stack::start().await;
    let told = stack
        .run(request(
            "sketch",
            "text_to_image",
            small(json!({"seed": 7, "steps": 3})),
        ))
        .await;
    assert_eq!(told.error.as_ref().map(ToString::to_string), None);
    let steps: Vec<_> = told
        .progress
        .iter()
        .map(|step| (step.progress, step.total))
        .collect();
    assert_eq!(steps, [(1, 3), (2, 3), (3, 3)]);
    assert!(
        told.progress[0]
            .preview
            .as_ref()
            .unwrap()
            .data
            .as_ref()
            .unwrap()
            .starts_with(b"\x89PNG")
    );
    let output = told.output();
    let media = output.as_media().unwrap();
    assert_eq!(
        (media.kind.as_str(), media.mime_type.as_deref()),
        ("image", Some("image/png"))
    );
    assert_eq!(media.extra["width"], Value::Int(96));
    let row = stack.row(&told.id()).await;
    assert_eq!(
        (cost(&row), row.price_source.as_deref()),
        (Some("0.040000000"), Some("provider"))
    );
    assert_eq!(row.provider_request_id, Some(format!("sk_{}", told.id())));
    let again = stack
        .run(request("sketch", "text_to_image", small(json!({"seed": 7}))))
        .await;
    let (first, second) = (&told.result.unwrap().assets[0], &again.result.unwrap().assets[0]);
    assert_eq!(first.digest, second.digest);
}

#[tokio::test]
async fn six_pictures_cost_twenty_four_cents() {
    let stack = Stack::start().await;
    let told = stack
        .run(request(
            "sketch",
            "text_to_image",
            small(json!({"num_images": 6, "steps": 0})),
        ))
        .await;
    let row = stack.row(&told.id()).await;
    assert_eq!((cost(&row), row.asset_ids.len()), (Some("0.240000000"), 6));
    let digests: std::collections::HashSet<_> = stack
        .assets()
        .await
        .into_iter()
        .map(|asset| asset.digest)
        .collect();
    assert_eq!(digests.len(), 6);
}

#[tokio::test]
async fn speech_comes_as_a_sound_file_and_in_pieces_when_asked() {
    let stack = Stack::start().await;
    let call = request(
        "sketch",
        "text_to_speech",
        json!({"text": "Hello there", "stream": true}),
    );
    let told = stack.run(call).await;
    let output = told.output();
    let media = output.as_media().unwrap();
    assert_eq!(
        (media.kind.as_str(), media.mime_type.as_deref()),
        ("audio", Some("audio/wav"))
    );
    let pieces: Vec<u8> = told.chunks.iter().flat_map(|chunk| chunk.data.clone()).collect();
    assert!(pieces.starts_with(b"RIFF") && told.chunks.last().unwrap().done);
    let asset = &told.result.as_ref().unwrap().assets[0];
    assert_eq!(asset.size_bytes, i64::try_from(pieces.len()).unwrap());
    let row = stack.row(&told.id()).await;
    assert_eq!(cost(&row), Some("0.000165000"));
}

#[tokio::test]
async fn texts_follow_the_form_that_is_asked_for() {
    let stack = Stack::start().await;
    let ask = async |extra: serde_json::Value| {
        let mut params = json!({"messages": [{"role": "user", "content": "three names for a boat"}]});
        params
            .as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        let told = stack.run(request("sketch", "generate_message", params)).await;
        told.output().as_str().unwrap().to_owned()
    };
    assert!(!ask(json!({})).await.is_empty());
    let list: Vec<String> =
        serde_json::from_str(&ask(json!({"response_format": "list", "count": 4})).await).unwrap();
    assert_eq!(list.len(), 4);
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}, "size": {"type": "integer"}}, "required": ["name", "size"]});
    let format = json!({"response_format": {"type": "json_schema", "json_schema": {"name": "boat", "schema": schema}}});
    let object: serde_json::Value = serde_json::from_str(&ask(format).await).unwrap();
    assert!(object["name"].is_string() && object["size"].is_i64(), "{object}");
    let free: serde_json::Value =
        serde_json::from_str(&ask(json!({"response_format": "json"})).await).unwrap();
    assert!(free.is_object() || free.is_array());
}

#[tokio::test]
async fn failures_are_had_by_parameter_and_by_setting_with_and_without_a_bill() {
    let sketch = Sketch {
        fail_match: "storm".to_owned(),
        fail_nth: 4,
        ..Sketch::default()
    };
    let stack = Stack::with(Settings {
        sketch,
        ..Settings::default()
    })
    .await;
    let fail = async |params| {
        let told = stack.run(request("sketch", "text_to_image", params)).await;
        stack.row(&told.id()).await
    };
    let row = fail(small(json!({"fail": "out of ink"}))).await;
    assert_eq!(
        (status(&row), row.error.as_deref()),
        (GenerationStatus::Failed, Some("out of ink"))
    );
    assert_eq!(cost(&row), None);
    let billed = fail(small(
        json!({"fail": true, "bill_on_failure": true, "num_images": 2}),
    ))
    .await;
    assert_eq!(
        (status(&billed), cost(&billed)),
        (GenerationStatus::Failed, Some("0.080000000"))
    );
    assert_eq!(
        status(&fail(small(json!({"prompt": "a storm at sea"}))).await),
        GenerationStatus::Failed
    );
    assert_eq!(status(&fail(small(json!({}))).await), GenerationStatus::Failed);
    assert_eq!(status(&fail(small(json!({}))).await), GenerationStatus::Completed);
    assert_eq!(
        status(&fail(small(json!({"fail_prompt": "red"}))).await),
        GenerationStatus::Failed
    );
    assert_eq!(stack.sketch.submits(), 6);
}

#[tokio::test]
async fn a_cancel_stops_the_job_and_is_counted() {
    let stack = Stack::start().await;
    let call = request("sketch", "text_to_image", small(json!({"delay_ms": 600_000})));
    let mut stream = stack.open(&u1(), call).await.unwrap();
    let id = first_id(&mut stream).await;
    until(async || stack.row(&id).await.provider_request_id.is_some())
        .within(Duration::from_secs(10))
        .await;
    assert!(stack.cancel(&u1(), &id).await.aborted);
    assert_eq!(read(stream).await.reason(), "CANCELLED");
    assert_eq!(
        (
            stack.sketch.submits(),
            stack.sketch.cancels(),
            stack.sketch.fetches()
        ),
        (1, 1, 0)
    );
}

#[tokio::test]
async fn models_are_listed_with_prices_and_what_is_missing() {
    let stack = Stack::start().await;
    let list = async |request| {
        stack
            .client()
            .list_models(stack.signed(request))
            .await
            .unwrap()
            .into_inner()
            .models
    };
    let all = list(ListModelsRequest::default()).await;
    let image = all.iter().find(|model| model.model == "sketch-image").unwrap();
    assert_eq!(
        (image.price.as_str(), image.available),
        ("0.04 USD / image", true)
    );
    let openai = all.iter().find(|model| model.provider == "openai").unwrap();
    assert!(!openai.available && openai.unavailable_reason.contains("OPENAI_API_KEY"));
    let speech = ListModelsRequest {
        provider: Some("sketch".into()),
        capability: Some("text_to_speech".into()),
    };
    let models: Vec<_> = list(speech).await.into_iter().map(|model| model.model).collect();
    assert_eq!(models, ["sketch-speech"]);
}

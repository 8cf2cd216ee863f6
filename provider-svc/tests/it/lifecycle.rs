//! Open, close, statuses, joins, and the ledger when it is away (generations specification 15.1).

use atelier_proto::common::v1::{Origin, Surface};
use atelier_proto::tracker::v1::GenerationStatus;
use atelier_proto::value::{Map, Value};
use atelier_provider::settings::Settings;
use serde_json::json;
use tonic::Code;

use crate::acme::Script;
use crate::stack::{Stack, cost, picture, read, request, status, u1};

#[tokio::test]
async fn g_001_a_row_is_open_before_the_submit_and_closed_with_cost_and_asset() {
    let stack = Stack::start().await;
    let held = stack.ledger.hold("MarkSubmitting");
    let stream = stack.open(&u1(), picture()).await.unwrap();
    held.arrived().await;
    assert_eq!(stack.acme.submits(), 0);
    let open = stack.rows().await;
    assert_eq!((open.len(), status(&open[0])), (1, GenerationStatus::Running));
    held.release();
    let told = read(stream).await;
    assert_eq!(told.error.as_ref().map(ToString::to_string), None);
    let order = [
        "OpenGeneration",
        "MarkSubmitting",
        "BindAttempt",
        "ObserveGeneration",
        "CloseGeneration",
    ];
    let calls = stack.ledger.calls();
    let places: Vec<_> = order
        .iter()
        .map(|name| calls.iter().position(|call| call == name).unwrap())
        .collect();
    assert!(places.is_sorted(), "{calls:?}");
    let row = stack.row(&told.id()).await;
    assert_eq!(status(&row), GenerationStatus::Completed);
    assert_eq!(cost(&row), Some("0.040000000"));
    assert_eq!(row.billing_unit.as_deref(), Some("images"));
    assert_eq!(
        row.quantity
            .as_deref()
            .map(|text| text.trim_end_matches(['0', '.'])),
        Some("1")
    );
    assert_eq!(row.price_source.as_deref(), Some("model-catalog"));
    assert_eq!(row.asset_ids.len(), 1);
    let asset = stack.asset(&row.asset_ids[0]).await;
    assert_eq!(asset.generation_ids, [told.id()]);
    let facts: Map = asset.metadata.unwrap().try_into().unwrap();
    assert_eq!(facts["generation_id"], Value::from(told.id()));
    assert_eq!(facts["prompt"], Value::from("a paper boat"));
    assert!(
        asset.name.starts_with("text_to_image-") && asset.name.ends_with(".png"),
        "{}",
        asset.name
    );
    assert_eq!(told.predictions.len(), 2);
    assert_eq!(told.last().generation_id, told.id());
    assert_eq!(
        told.output().as_media().unwrap().asset_id.as_deref(),
        Some(row.asset_ids[0].as_str())
    );
}

#[tokio::test]
async fn g_002_a_failure_is_a_row_and_an_error() {
    let stack = Stack::start().await;
    stack.acme.script(Script {
        fails: Some("exploded"),
        ..Script::default()
    });
    let told = stack.run(picture()).await;
    let row = stack.row(&told.id()).await;
    assert_eq!(status(&row), GenerationStatus::Failed);
    assert_eq!(
        (row.error.as_deref(), row.error_code.as_deref()),
        (Some("exploded"), Some("PROVIDER_ERROR"))
    );
    assert_eq!((cost(&row), row.assets_known), (None, false));
    assert_eq!(told.reason(), "PROVIDER_ERROR");
    let details = tonic_types::StatusExt::get_details_error_info(told.error.as_ref().unwrap()).unwrap();
    assert_eq!(details.metadata["generation_id"], told.id());
    assert_eq!(details.metadata["class"], "provider_permanent");
    assert_eq!(status(told.last()), GenerationStatus::Failed);
}

#[tokio::test]
async fn g_003_a_failure_with_a_stated_cost_keeps_it() {
    let stack = Stack::start().await;
    stack.acme.script(Script {
        fails: Some("exploded"),
        charge: Some(0.03),
        ..Script::default()
    });
    let told = stack.run(picture()).await;
    let row = stack.row(&told.id()).await;
    assert_eq!(status(&row), GenerationStatus::Failed);
    assert_eq!(
        (cost(&row), row.price_source.as_deref()),
        (Some("0.030000000"), Some("provider"))
    );
}

#[tokio::test]
async fn g_005_a_chat_opens_exactly_one_row_that_carries_its_tokens() {
    let stack = Stack::start().await;
    let told = stack
        .run(request(
            "sketch",
            "generate_message",
            json!({"prompt": "say hello"}),
        ))
        .await;
    let rows = stack.rows().await;
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].capability, "generate_message");
    assert!(rows[0].input_tokens.unwrap() > 0 && rows[0].output_tokens.unwrap() > 0);
    assert!(rows[0].cost.is_some());
    assert_eq!(stack.ledger.count("CloseGeneration"), 1);
    assert_eq!(told.output().as_str().unwrap(), told.text());
}

#[tokio::test]
async fn g_006_g_009_repeats_of_a_key_pay_once_and_get_the_same_outcome() {
    let stack = Stack::start().await;
    let keyed = || atelier_proto::provider::v1::RunGenerationRequest {
        idempotency_key: Some("inv:n1:0".to_owned()),
        ..picture()
    };
    let (a, b) = tokio::join!(stack.run(keyed()), stack.run(keyed()));
    let later = stack.run(keyed()).await;
    assert_eq!(stack.acme.submits(), 1);
    assert_eq!((a.id(), a.id()), (b.id(), later.id()));
    assert!(a.joined[0] ^ b.joined[0] && later.joined[0]);
    for told in [&a, &b, &later] {
        assert_eq!(told.error.as_ref().map(ToString::to_string), None);
        assert_eq!(
            told.output().as_media().unwrap().asset_id,
            a.output().as_media().unwrap().asset_id
        );
    }
    let other = request("acme", "text_to_image", json!({"prompt": "something else"}));
    let other = atelier_proto::provider::v1::RunGenerationRequest {
        idempotency_key: Some("inv:n1:0".into()),
        ..other
    };
    let refused = stack.run(other).await;
    assert_eq!(
        (refused.error.as_ref().unwrap().code(), refused.reason()),
        (Code::AlreadyExists, "IDEMPOTENCY_CONFLICT".to_owned())
    );
}

#[tokio::test]
async fn a_repeat_after_a_restart_rebuilds_the_outcome_from_the_assets() {
    let stack = Stack::start().await;
    let keyed = |capability: &str, prompt: &str| atelier_proto::provider::v1::RunGenerationRequest {
        idempotency_key: Some(format!("k:{capability}")),
        ..request(
            "sketch",
            capability,
            json!({"prompt": prompt, "width": 64, "height": 64}),
        )
    };
    let text = stack.run(keyed("generate_message", "hello")).await;
    let image = stack.run(keyed("text_to_image", "hello")).await;
    let (first_text, first_image) = (text.output(), image.output());
    // Another provider-svc on the same ledger: it remembers nothing of the calls.
    let deps = {
        let mut deps = crate::stack::deps(stack.folder.path());
        deps.signer = stack.signer();
        deps.data_dir = stack.folder.path().join("second");
        deps.peers.insert("tracker", stack.tracker_transport());
        deps.peers.insert("asset", stack.asset_transport());
        deps
    };
    let second = atelier_common::component::start::<atelier_provider::Providers>(Settings::default(), &deps)
        .await
        .unwrap();
    let mut client =
        atelier_proto::provider::v1::provider_service_client::ProviderServiceClient::new(second.transport);
    for (call, first) in [
        (keyed("generate_message", "hello"), first_text),
        (keyed("text_to_image", "hello"), first_image),
    ] {
        let told = read(
            client
                .run_generation(stack.signed(call))
                .await
                .unwrap()
                .into_inner(),
        )
        .await;
        assert!(told.joined[0]);
        match (told.output(), first) {
            (Value::Media(again), Value::Media(first)) => assert_eq!(again.asset_id, first.asset_id),
            (again, first) => assert_eq!(again, first),
        }
    }
    assert_eq!(stack.sketch.submits(), 2);
    deps.tasks.stop();
}

#[tokio::test]
async fn g_015_an_answer_without_output_is_a_failure() {
    let stack = Stack::start().await;
    stack.oneshot.script(Script {
        images: 0,
        ..Script::default()
    });
    let told = stack
        .run(request("oneshot", "text_to_speech", json!({"text": "hello"})))
        .await;
    let row = stack.row(&told.id()).await;
    assert_eq!(
        (status(&row), row.error_code.as_deref()),
        (GenerationStatus::Failed, Some("OUTPUT_UNDECODABLE"))
    );
    assert_eq!(cost(&row), None);
    assert_eq!(told.reason(), "OUTPUT_UNDECODABLE");
}

#[tokio::test]
async fn g_016_g_017_what_is_wrong_before_there_is_a_row_leaves_none() {
    let stack = Stack::start().await;
    let refused = |request| async {
        let told = stack.run(request).await;
        (told.error.as_ref().unwrap().code(), told.reason())
    };
    let prompt = || json!({"prompt": "x"});
    let expect = |code, reason: &str| (code, reason.to_owned());
    assert_eq!(
        refused(request("acme", "text_to_smell", prompt())).await,
        expect(Code::InvalidArgument, "UNKNOWN_CAPABILITY")
    );
    assert_eq!(
        refused(request("acme", "text_to_video", prompt())).await,
        expect(Code::InvalidArgument, "UNKNOWN_CAPABILITY")
    );
    assert_eq!(
        refused(request("nobody", "text_to_image", prompt())).await,
        expect(Code::InvalidArgument, "UNKNOWN_PROVIDER")
    );
    let mut wrong = picture();
    wrong.model = "m9".to_owned();
    assert_eq!(
        refused(wrong).await,
        expect(Code::InvalidArgument, "UNKNOWN_MODEL")
    );
    assert_eq!(
        refused(request("acme", "text_to_image", json!({}))).await,
        expect(Code::InvalidArgument, "INVALID_FIELD")
    );
    assert_eq!(
        refused(request("openai", "text_to_image", prompt())).await,
        expect(Code::FailedPrecondition, "MISSING_CREDENTIAL")
    );
    assert!(stack.rows().await.is_empty());
    assert_eq!(stack.acme.submits(), 0);
}

#[tokio::test]
async fn g_021_four_pictures_of_one_call_are_one_row_and_four_assets() {
    let stack = Stack::start().await;
    stack.acme.script(Script {
        images: 4,
        ..Script::default()
    });
    let told = stack
        .run(request(
            "acme",
            "text_to_image",
            json!({"prompt": "boats", "num_images": 4}),
        ))
        .await;
    let row = stack.row(&told.id()).await;
    assert_eq!((cost(&row), row.asset_ids.len()), (Some("0.160000000"), 4));
    assert_eq!(
        row.quantity.as_deref().and_then(|text| text.parse::<f64>().ok()),
        Some(4.0)
    );
    assert_eq!(stack.rows().await.len(), 1);
    assert_eq!(told.output().as_list().unwrap().len(), 4);
    let mut names: Vec<_> = stack.assets().await.into_iter().map(|asset| asset.name).collect();
    names.sort();
    assert!(
        names[0].ends_with("-1.png") && names[3].ends_with("-4.png"),
        "{names:?}"
    );
}

#[tokio::test]
async fn g_023_g_024_g_025_the_row_knows_who_asked() {
    let stack = Stack::start().await;
    let origins = [
        (
            Origin {
                job_id: Some("j1".into()),
                node_id: Some("n1".into()),
                invocation_id: Some("i".into()),
                ..Origin::default()
            },
            Surface::Workflow,
        ),
        (
            Origin {
                job_id: Some("j1".into()),
                thread_id: Some("t1".into()),
                ..Origin::default()
            },
            Surface::Chat,
        ),
        (
            Origin {
                surface: Surface::Chat.into(),
                ..Origin::default()
            },
            Surface::Chat,
        ),
        (Origin::default(), Surface::Rpc),
    ];
    for (origin, surface) in origins {
        let mut call = picture();
        call.origin = Some(origin.clone());
        let told = stack.run(call).await;
        let row = stack.row(&told.id()).await;
        assert_eq!(
            row.origin,
            Some(Origin {
                surface: surface.into(),
                ..origin
            })
        );
    }
}

#[tokio::test]
async fn without_persist_media_come_inline_and_nothing_is_stored() {
    let stack = Stack::start().await;
    let mut call = picture();
    call.persist = None;
    let told = stack.run(call).await;
    assert!(told.output().as_media().unwrap().data.is_some());
    assert!(stack.assets().await.is_empty());
    assert_eq!(stack.facts(&told.id()).await["persisted"], Value::from("none"));
}

#[tokio::test]
async fn g_116_a_background_call_answers_at_once_and_goes_on() {
    let stack = Stack::start().await;
    let gate = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    stack.acme.script(Script {
        gate: Some(gate.clone()),
        ..Script::default()
    });
    let mut call = picture();
    call.background = true;
    let told = stack.run(call).await;
    assert_eq!(
        (told.predictions.len(), status(told.last())),
        (1, GenerationStatus::Running)
    );
    assert!(told.last().background);
    assert_eq!(told.last().estimated_cost.as_ref().unwrap().amount, "0.040000000");
    gate.add_permits(1);
    stack.row_in(&told.id(), GenerationStatus::Completed).await;
}

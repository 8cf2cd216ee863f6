//! What providers tell, and what becomes of it (generations specification 15.2 and 15.10).

use std::sync::Arc;
use std::time::Duration;

use atelier_common::testkit::until;
use atelier_proto::tracker::v1::GenerationStatus;
use atelier_proto::value::{BytesForm, Map, Value, to_json};
use bytes::Bytes;
use prost::Message as _;
use tokio::sync::Semaphore;

use crate::acme::{PNG, Script};
use crate::stack::{Stack, cost, picture, request, status};

#[tokio::test]
async fn g_026_a_stated_charge_wins_over_the_catalog_and_the_estimate_stays() {
    let stack = Stack::start().await;
    stack.acme.script(Script {
        charge: Some(0.42),
        ..Script::default()
    });
    let told = stack.run(picture()).await;
    let row = stack.row(&told.id()).await;
    assert_eq!(
        (cost(&row), row.price_source.as_deref()),
        (Some("0.420000000"), Some("provider"))
    );
    assert_eq!(row.estimated_cost.unwrap().amount, "0.040000000");
    assert_eq!(row.attempts.len(), 1);
    assert_eq!(
        row.attempts[0].provider_request_id,
        Some(format!("req-{}", told.id()))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g_027_every_row_of_many_at_once_holds_its_own_id() {
    let stack = Arc::new(Stack::start().await);
    let gate = Arc::new(Semaphore::new(0));
    stack.acme.script(Script {
        gate: Some(gate.clone()),
        ..Script::default()
    });
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..200 {
        let stack = stack.clone();
        calls.spawn(async move {
            let mut call = picture();
            call.persist = None;
            stack.run(call).await.id()
        });
    }
    until(async || stack.acme.submits() == 200)
        .within(Duration::from_secs(30))
        .await;
    gate.add_permits(200);
    for id in calls.join_all().await {
        let row = stack.row(&id).await;
        assert_eq!(row.provider_request_id, Some(format!("req-{id}")));
        assert_eq!(status(&row), GenerationStatus::Completed);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g_032_both_tasks_of_a_job_are_paid_for_also_when_another_process_ends_it() {
    for killed in [false, true] {
        let stack = Stack::start().await;
        let gate = Arc::new(Semaphore::new(0));
        stack.acme.script(Script {
            first: Some(("preview-1", 0.42)),
            charge: Some(1.05),
            gate: Some(gate.clone()),
            ..Script::default()
        });
        let mut call = picture();
        call.background = true;
        let id = stack.run(call).await.id();
        until(async || stack.row(&id).await.attempts.len() == 2)
            .within(Duration::from_secs(10))
            .await;
        // What the first task cost is in the ledger before anything comes of the second.
        let row = stack.row(&id).await;
        assert_eq!(row.attempts[0].cost.as_ref().unwrap().amount, "0.420000000");
        let other = if killed {
            until(async || stack.row(&id).await.provider_request_id.is_some())
                .within(Duration::from_secs(10))
                .await;
            stack.ledger.cut("*");
            stack.ledger.break_streams();
            until(async || stack.seam.registry().release() == 1)
                .within(Duration::from_secs(10))
                .await;
            stack.time.advance(Duration::from_secs(46));
            let other = stack.other().await;
            other.acme.script(Script {
                charge: Some(1.05),
                ..Script::default()
            });
            Some(other)
        } else {
            gate.add_permits(1);
            None
        };
        let row = stack.row_in(&id, GenerationStatus::Completed).await;
        assert_eq!(cost(&row), Some("1.470000000"), "killed: {killed}");
        let ids: Vec<_> = row
            .attempts
            .iter()
            .map(|attempt| attempt.provider_request_id.clone().unwrap())
            .collect();
        assert_eq!(ids, ["preview-1".to_owned(), format!("req-{id}")]);
        drop(other);
    }
}

#[tokio::test]
async fn g_033_a_charge_that_is_no_number_leaves_the_catalogs() {
    let stack = Stack::start().await;
    stack.acme.script(Script {
        charge: Some(f64::NAN),
        ..Script::default()
    });
    let row = stack.row(&stack.run(picture()).await.id()).await;
    assert_eq!(
        (cost(&row), row.price_source.as_deref()),
        (Some("0.040000000"), Some("model-catalog"))
    );
}

#[tokio::test]
async fn g_034_a_failure_after_the_id_was_told_is_queued_for_its_bill() {
    let stack = Stack::start().await;
    stack.acme.script(Script {
        fails: Some("no"),
        ..Script::default()
    });
    let told = stack.run(picture()).await;
    let row = stack.row(&told.id()).await;
    assert_eq!(row.provider_request_id, Some(format!("req-{}", told.id())));
    assert_eq!(row.reconciliation.unwrap().state, "queued");
}

#[tokio::test]
async fn g_035_an_id_that_cannot_be_bound_arrives_later() {
    let stack = Stack::start().await;
    stack.ledger.cut("BindAttempt");
    let told = stack.run(picture()).await;
    assert_eq!(told.error.as_ref().map(ToString::to_string), None);
    // What follows the id waits behind it.
    assert!(told.result.as_ref().unwrap().ledger_pending);
    stack.ledger.mend();
    stack.seam.ledger().spool().kick();
    let row = stack.row_in(&told.id(), GenerationStatus::Completed).await;
    assert_eq!(row.provider_request_id, Some(format!("req-{}", told.id())));
    assert_eq!(
        (cost(&row), row.asset_ids.len(), row.attempts.len()),
        (Some("0.040000000"), 1, 1)
    );
}

#[tokio::test]
async fn g_036_a_stated_zero_is_a_price() {
    let stack = Stack::start().await;
    stack.acme.script(Script {
        charge: Some(0.0),
        ..Script::default()
    });
    let row = stack.row(&stack.run(picture()).await.id()).await;
    assert_eq!(
        (cost(&row), row.price_source.as_deref()),
        (Some("0.000000000"), Some("provider"))
    );
}

#[tokio::test]
async fn g_165_g_166_no_bytes_and_no_secrets_in_rows_and_messages() {
    let stack = Stack::start().await;
    let mut call = request(
        "acme",
        "text_to_image",
        serde_json::json!({"prompt": "x", "api_key": "sk-1"}),
    );
    let mut given: Map = call.params.take().unwrap().try_into().unwrap();
    given.insert(
        "reference".to_owned(),
        Value::Bytes(Bytes::from(vec![7; 100_000])),
    );
    call.params = Some((&given).into());
    let told = stack.run(call).await;
    let row = stack.row(&told.id()).await;
    for prediction in told.predictions.iter().chain([&row]) {
        assert!(prediction.encoded_len() < 64 * 1024);
        let bytes = prediction.encode_to_vec();
        assert!(!bytes.windows(8).any(|window| window == &PNG[..8]));
        let stored: Map = prediction.parameters.clone().unwrap().try_into().unwrap();
        let stored = to_json(&Value::map(stored), BytesForm::Tagged);
        let expected =
            serde_json::json!({"prompt": "x", "api_key": "[redacted]", "reference": {"bytes": 100_000}});
        assert_eq!(stored, expected);
    }
    let asset = stack.asset(&row.asset_ids[0]).await;
    assert!(!format!("{asset:?}").contains("sk-1"));
}

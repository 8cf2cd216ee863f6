//! Cancelling, at every moment (generations specification 15.3).

use std::sync::Arc;
use std::time::Duration;

use atelier_common::testkit::until;
use atelier_proto::tracker::v1::{CancelGenerationRequest, GenerationStatus, SubmissionStatus};
use atelier_proto::value::Value;
use atelier_provider::provider::CancelAnswer;
use serde_json::json;
use tokio::sync::Semaphore;
use tonic::Code;

use crate::acme::Script;
use crate::stack::{Stack, first_id, picture, read, request, status, u1, u2};

const LIMIT: Duration = Duration::from_secs(10);

fn gate() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(0))
}
fn gated() -> Script {
    Script {
        gate: Some(gate()),
        ..Script::default()
    }
}

#[tokio::test]
async fn g_004_g_037_a_cancel_closes_the_row_and_stops_the_call_at_the_provider_once() {
    let stack = Stack::start().await;
    stack.acme.script(gated());
    let mut stream = stack.open(&u1(), picture()).await.unwrap();
    let id = first_id(&mut stream).await;
    until(async || stack.row(&id).await.provider_request_id.is_some())
        .within(LIMIT)
        .await;
    let answer = stack.cancel(&u1(), &id).await;
    assert_eq!(
        (answer.cancelled, answer.status.as_str(), answer.aborted),
        (true, "cancelled", true)
    );
    let told = read(stream).await;
    assert_eq!(
        (told.error.as_ref().unwrap().code(), told.reason()),
        (Code::Cancelled, "CANCELLED".to_owned())
    );
    assert_eq!(status(told.last()), GenerationStatus::Cancelled);
    let row = stack.row(&id).await;
    assert_eq!(status(&row), GenerationStatus::Cancelled);
    assert_eq!(row.provider_request_id, Some(format!("req-{id}")));
    assert_eq!(row.reconciliation.unwrap().state, "queued");
    assert_eq!(stack.acme.cancelled(), [format!("req-{id}")]);
    let facts = stack.facts(&id).await;
    assert_eq!(
        facts["provider_cancel"].get("result"),
        Some(Value::from("requested"))
    );
    let again = stack.cancel(&u1(), &id).await;
    assert_eq!(
        (again.cancelled, again.status.as_str(), again.aborted),
        (false, "cancelled", false)
    );
}

#[tokio::test]
async fn g_038_g_039_g_040_foreign_unknown_and_settled_calls_are_the_same() {
    let stack = Stack::start().await;
    stack.acme.script(gated());
    let mut stream = stack.open(&u1(), picture()).await.unwrap();
    let id = first_id(&mut stream).await;
    let foreign = stack.cancel(&u2(), &id).await;
    let unknown = stack.cancel(&u1(), &uuid::Uuid::now_v7().to_string()).await;
    assert_eq!(foreign, unknown);
    assert_eq!(foreign.error.as_deref(), Some("not running"));
    assert_eq!(status(&stack.row(&id).await), GenerationStatus::Running);
    stack.acme.script(Script::default());
    let told = read(stream).await;
    assert_eq!(status(told.last()), GenerationStatus::Completed);
    assert_eq!(stack.cancel(&u1(), &id).await, unknown);
}

#[tokio::test]
async fn g_042_a_cancel_through_another_instance_arrives_by_the_stream_to_the_ledger() {
    let stack = Stack::start().await;
    stack.acme.script(gated());
    let mut stream = stack.open(&u1(), picture()).await.unwrap();
    let id = first_id(&mut stream).await;
    until(async || stack.row(&id).await.provider_request_id.is_some())
        .within(LIMIT)
        .await;
    // As another instance would: the ledger is told, the registry here is not.
    let request = stack.signed(CancelGenerationRequest {
        generation_id: id.clone(),
    });
    let answer = stack
        .tracker()
        .cancel_generation(request)
        .await
        .unwrap()
        .into_inner();
    assert!(answer.cancelled);
    let told = tokio::time::timeout(Duration::from_secs(5), read(stream))
        .await
        .unwrap();
    assert_eq!(told.reason(), "CANCELLED");
    assert_eq!(stack.acme.cancelled().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g_043_of_cancel_and_complete_exactly_one_wins_and_every_answer_agrees() {
    let stack = Arc::new(Stack::start().await);
    let mut races = tokio::task::JoinSet::new();
    let turns = Arc::new(Semaphore::new(16));
    for n in 0..1_000_u64 {
        let (stack, turns) = (stack.clone(), turns.clone());
        races.spawn(async move {
            let _turn = turns.acquire().await.unwrap();
            let mut call = picture();
            call.persist = None;
            let mut stream = stack.open(&u1(), call).await.unwrap();
            let id = first_id(&mut stream).await;
            for _ in 0..(n % 40) {
                tokio::task::yield_now().await;
            }
            let user = u1();
            let (answer, told) = tokio::join!(stack.cancel(&user, &id), read(stream));
            let row = status(&stack.row(&id).await);
            match row {
                GenerationStatus::Cancelled => {
                    assert!(
                        answer.cancelled && told.result.is_none() && told.reason() == "CANCELLED",
                        "{told:?}"
                    );
                }
                GenerationStatus::Completed => {
                    assert!(
                        !answer.cancelled && told.error.is_none() && told.result.is_some(),
                        "{told:?}"
                    );
                }
                other => panic!("{other:?}"),
            }
            assert_eq!(status(told.last()), row);
            row == GenerationStatus::Cancelled
        });
    }
    let won = races
        .join_all()
        .await
        .into_iter()
        .filter(|cancelled| *cancelled)
        .count();
    assert!(won > 0, "no cancel ever won");
}

#[tokio::test]
async fn g_044_a_cancel_after_the_asset_was_stored_links_it_as_late() {
    let stack = Stack::start().await;
    let held = stack.ledger.hold("CloseGeneration");
    let mut stream = stack.open(&u1(), picture()).await.unwrap();
    let id = first_id(&mut stream).await;
    held.arrived().await;
    assert!(stack.cancel(&u1(), &id).await.cancelled);
    held.release();
    let told = read(stream).await;
    assert_eq!(told.reason(), "CANCELLED");
    let row = stack.row(&id).await;
    assert_eq!(
        (status(&row), row.asset_ids.len()),
        (GenerationStatus::Cancelled, 1)
    );
    assert_eq!(stack.facts(&id).await["late_result"], Value::from(true));
    assert_eq!(stack.assets().await.len(), 1);
}

#[tokio::test]
async fn g_045_a_cancel_before_anything_was_stored_stores_nothing() {
    let stack = Stack::start().await;
    stack.acme.script(gated());
    let mut stream = stack.open(&u1(), picture()).await.unwrap();
    let id = first_id(&mut stream).await;
    stack.cancel(&u1(), &id).await;
    assert_eq!(read(stream).await.reason(), "CANCELLED");
    let row = stack.row(&id).await;
    assert!(row.asset_ids.is_empty() && !row.assets_known);
    assert!(stack.assets().await.is_empty());
}

#[tokio::test]
async fn g_046_a_cancel_before_the_submit_pays_nothing() {
    let stack = Stack::start().await;
    let held = stack.ledger.hold("MarkSubmitting");
    let mut stream = stack.open(&u1(), picture()).await.unwrap();
    let id = first_id(&mut stream).await;
    held.arrived().await;
    assert!(stack.cancel(&u1(), &id).await.cancelled);
    held.release();
    assert_eq!(read(stream).await.reason(), "CANCELLED");
    assert_eq!(stack.acme.submits(), 0);
    let row = stack.row(&id).await;
    assert_eq!(row.facets.unwrap().submission(), SubmissionStatus::Accepted);
    assert!(row.cost.is_none());
}

#[tokio::test]
async fn g_047_a_cancel_between_submit_and_bind_binds_first_and_then_cancels() {
    let stack = Stack::start().await;
    stack.acme.script(gated());
    let held = stack.ledger.hold("BindAttempt");
    let mut stream = stack.open(&u1(), picture()).await.unwrap();
    let id = first_id(&mut stream).await;
    held.arrived().await;
    assert!(stack.cancel(&u1(), &id).await.cancelled);
    assert!(stack.acme.cancelled().is_empty());
    for _ in 0..4 {
        held.release();
    }
    assert_eq!(read(stream).await.reason(), "CANCELLED");
    until(async || !stack.acme.cancelled().is_empty())
        .within(LIMIT)
        .await;
    let row = stack.row(&id).await;
    assert_eq!(row.provider_request_id, Some(format!("req-{id}")));
    assert_eq!(row.reconciliation.unwrap().state, "queued");
    assert_eq!(stack.acme.cancelled(), [format!("req-{id}")]);
}

#[tokio::test]
async fn g_048_a_provider_that_cannot_cancel_finishes_for_nobody() {
    let stack = Stack::start().await;
    let open = gate();
    stack.oneshot.script(Script {
        gate: Some(open.clone()),
        ..Script::default()
    });
    let mut stream = stack
        .open(&u1(), request("oneshot", "text_to_speech", json!({"text": "hi"})))
        .await
        .unwrap();
    let id = first_id(&mut stream).await;
    until(async || stack.oneshot.submits() == 1).within(LIMIT).await;
    assert!(stack.cancel(&u1(), &id).await.cancelled);
    // Who asked is told at once, although the provider still works.
    assert_eq!(read(stream).await.reason(), "CANCELLED");
    open.add_permits(1);
    let known = async || {
        stack
            .facts(&id)
            .await
            .get("provider_cancel")
            .and_then(|fact| fact.get("result"))
    };
    let result = until(known).within(LIMIT).await;
    assert_eq!(result, Value::from("unsupported"));
    assert!(stack.assets().await.is_empty());
    assert_eq!(status(&stack.row(&id).await), GenerationStatus::Cancelled);
}

#[tokio::test]
async fn g_049_a_provider_that_was_done_already_changes_nothing() {
    let stack = Stack::start().await;
    stack.acme.script(Script {
        cancel: CancelAnswer::AlreadyDone,
        ..gated()
    });
    let mut stream = stack.open(&u1(), picture()).await.unwrap();
    let id = first_id(&mut stream).await;
    until(async || stack.row(&id).await.provider_request_id.is_some())
        .within(LIMIT)
        .await;
    stack.cancel(&u1(), &id).await;
    assert_eq!(read(stream).await.reason(), "CANCELLED");
    assert_eq!(
        stack.facts(&id).await["provider_cancel"].get("result"),
        Some(Value::from("already_done"))
    );
    assert_eq!(status(&stack.row(&id).await), GenerationStatus::Cancelled);
}

#[tokio::test]
async fn g_052_a_client_that_goes_away_changes_nothing() {
    let stack = Stack::start().await;
    let open = gate();
    stack.acme.script(Script {
        gate: Some(open.clone()),
        ..Script::default()
    });
    let mut stream = stack.open(&u1(), picture()).await.unwrap();
    let id = first_id(&mut stream).await;
    drop(stream);
    open.add_permits(1);
    let row = stack.row_in(&id, GenerationStatus::Completed).await;
    assert_eq!(row.asset_ids.len(), 1);
}

#[tokio::test]
async fn g_053_unless_it_asked_for_that() {
    let stack = Stack::start().await;
    stack.acme.script(gated());
    let mut call = picture();
    call.cancel_on_disconnect = true;
    let mut stream = stack.open(&u1(), call).await.unwrap();
    let id = first_id(&mut stream).await;
    until(async || stack.row(&id).await.provider_request_id.is_some())
        .within(LIMIT)
        .await;
    drop(stream);
    let row = stack.row_in(&id, GenerationStatus::Cancelled).await;
    assert_eq!(row.error_code.as_deref(), Some("CANCELLED"));
    until(async || stack.acme.cancelled().len() == 1)
        .within(LIMIT)
        .await;
}

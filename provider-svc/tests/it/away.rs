//! The ledger, the store, the provider or the process itself when it is away (generations specification 3.5 and 3.6).

use std::time::Duration;

use atelier_common::testkit::until;
use atelier_proto::tracker::v1::{GenerationStatus, SubmissionStatus};
use atelier_proto::value::Value;
use atelier_provider::settings::{LedgerMode, Settings};
use tonic::Code;

use crate::acme::Script;
use crate::stack::{Stack, cost, first_id, picture, read, status, u1};

const LIMIT: Duration = Duration::from_secs(10);

#[tokio::test]
async fn g_018_a_best_effort_deployment_goes_on_without_a_ledger() {
    let stack = Stack::with(Settings {
        ledger: LedgerMode::BestEffort,
        ..Settings::default()
    })
    .await;
    stack.ledger.cut("*");
    for calls in 1..=2 {
        let told = stack.run(picture()).await;
        assert_eq!(told.error.as_ref().map(ToString::to_string), None);
        assert!(told.output().as_media().is_some());
        assert_eq!(stack.ledger.count("CloseGeneration"), 0);
        assert_eq!(stack.acme.submits(), calls);
    }
    stack.ledger.mend();
    assert!(stack.rows().await.is_empty());
    assert!(stack.seam.ledger().spool().is_empty());
}

#[tokio::test]
async fn g_019_without_a_ledger_nothing_is_sent() {
    let stack = Stack::start().await;
    stack.ledger.cut("OpenGeneration");
    let told = stack.run(picture()).await;
    assert_eq!(
        (told.error.as_ref().unwrap().code(), told.reason()),
        (Code::Unavailable, "LEDGER_UNAVAILABLE".to_owned())
    );
    assert_eq!(stack.acme.submits(), 0);
    stack.ledger.mend();
    stack.ledger.cut("MarkSubmitting");
    let told = stack.run(picture()).await;
    assert_eq!(
        (told.error.as_ref().unwrap().code(), told.reason()),
        (Code::Unavailable, "LEDGER_UNAVAILABLE".to_owned())
    );
    assert_eq!(stack.acme.submits(), 0);
    let row = stack.row(&told.id()).await;
    assert_eq!(
        (row.error_code.as_deref(), row.facets.unwrap().submission()),
        (Some("LEDGER_UNAVAILABLE"), SubmissionStatus::Accepted)
    );
}

#[tokio::test]
async fn a_row_whose_opening_was_not_heard_of_is_driven_by_its_call() {
    let stack = Stack::start().await;
    stack.ledger.lose("OpenGeneration");
    let told = stack.run(picture()).await;
    assert_eq!(told.error.as_ref().map(ToString::to_string), None);
    assert_eq!(stack.acme.submits(), 1);
    let rows = stack.rows().await;
    let statuses: Vec<GenerationStatus> = rows.iter().map(status).collect();
    assert_eq!(statuses, [GenerationStatus::Completed]);
}

#[tokio::test]
async fn g_020_an_outcome_that_cannot_be_told_is_kept_and_delivered_once() {
    let stack = Stack::start().await;
    stack.ledger.cut("CloseGeneration");
    let told = stack.run(picture()).await;
    assert_eq!(told.error.as_ref().map(ToString::to_string), None);
    assert!(told.result.as_ref().unwrap().ledger_pending);
    assert_eq!(
        (status(told.last()), cost(told.last())),
        (GenerationStatus::Completed, Some("0.040000000"))
    );
    assert_eq!(status(&stack.row(&told.id()).await), GenerationStatus::Running);
    stack.ledger.mend();
    stack.seam.ledger().spool().kick();
    let row = stack.row_in(&told.id(), GenerationStatus::Completed).await;
    assert_eq!(cost(&row), Some("0.040000000"));
    assert_eq!(row.asset_ids.len(), 1);
    let spool = stack.seam.ledger().spool().clone();
    until(async || spool.is_empty()).within(LIMIT).await;
}

#[tokio::test]
async fn g_020_the_spool_outlives_the_process() {
    let stack = Stack::start().await;
    stack.ledger.cut("CloseGeneration");
    let told = stack.run(picture()).await;
    stack.tasks.stop();
    let spool = stack.seam.ledger().spool().clone();
    assert_eq!(spool.len(), 1);
    let again =
        atelier_provider::seam::spool::Spool::open(stack.folder.path(), atelier_common::tasks::Tasks::new())
            .unwrap();
    assert!(again.holds(&told.id()));
}

#[tokio::test]
async fn a_store_that_fails_costs_the_caller_nothing() {
    let stack = Stack::start().await;
    stack.store.cut("UploadAsset");
    let told = stack.run(picture()).await;
    assert_eq!(told.error.as_ref().map(ToString::to_string), None);
    assert!(told.result.as_ref().unwrap().persist_error.is_some());
    assert!(told.output().as_media().unwrap().data.is_some());
    let row = stack.row(&told.id()).await;
    assert_eq!(
        (status(&row), row.asset_ids.len()),
        (GenerationStatus::Completed, 0)
    );
    assert_eq!(stack.facts(&told.id()).await["persisted"], Value::from("lost"));
    assert_eq!(stack.store.count("UploadAsset"), 3);
}

#[tokio::test]
async fn a_deadline_ends_a_call_that_polls() {
    let stack = Stack::start().await;
    let gate = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    stack.acme.script(Script {
        gate: Some(gate),
        ..Script::default()
    });
    let mut call = picture();
    call.deadline = Some(prost_types::Duration {
        seconds: 0,
        nanos: 80_000_000,
    });
    let told = stack.run(call).await;
    assert_eq!(
        (told.error.as_ref().unwrap().code(), told.reason()),
        (Code::DeadlineExceeded, "TIMEOUT".to_owned())
    );
    let row = stack.row(&told.id()).await;
    assert_eq!(row.error_code.as_deref(), Some("TIMEOUT"));
    assert!(row.provider_request_id.is_some());
    assert_eq!(stack.acme.cancelled().len(), 1);
}

#[tokio::test]
async fn a_panic_of_an_adapter_is_a_failed_row_that_kept_its_id() {
    let stack = Stack::start().await;
    stack.acme.script(Script {
        panics: true,
        ..Script::default()
    });
    let told = stack.run(picture()).await;
    let row = stack.row(&told.id()).await;
    assert_eq!(status(&row), GenerationStatus::Failed);
    assert_eq!(row.provider_request_id, Some(format!("req-{}", told.id())));
}

#[tokio::test]
async fn a_stop_waits_for_calls_in_flight() {
    let stack = Stack::start().await;
    let gate = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    stack.acme.script(Script {
        gate: Some(gate.clone()),
        ..Script::default()
    });
    let mut stream = stack.open(&u1(), picture()).await.unwrap();
    let id = first_id(&mut stream).await;
    stack.tasks.stop();
    let refused = stack.run(picture()).await;
    assert_eq!(refused.reason(), "DRAINING");
    gate.add_permits(1);
    let told = read(stream).await;
    assert_eq!(
        (told.last().generation_id.as_str(), status(told.last())),
        (id.as_str(), GenerationStatus::Completed)
    );
}

#[tokio::test]
async fn a_lost_stream_to_the_ledger_is_opened_again() {
    let stack = Stack::start().await;
    let followed = stack.ledger.count("Follow");
    stack.ledger.break_streams();
    until(async || stack.ledger.count("Follow") > followed)
        .within(LIMIT)
        .await;
    // Cancel orders come down the stream again.
    let gate = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    stack.acme.script(Script {
        gate: Some(gate),
        ..Script::default()
    });
    let mut stream = stack.open(&u1(), picture()).await.unwrap();
    let id = first_id(&mut stream).await;
    until(async || stack.row(&id).await.provider_request_id.is_some())
        .within(LIMIT)
        .await;
    let request = stack.signed(atelier_proto::tracker::v1::CancelGenerationRequest { generation_id: id });
    assert!(
        stack
            .tracker()
            .cancel_generation(request)
            .await
            .unwrap()
            .into_inner()
            .cancelled
    );
    assert_eq!(read(stream).await.reason(), "CANCELLED");
}

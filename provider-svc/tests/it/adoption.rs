//! A call outlives the process that began it: another one polls its job to the end (generations specification 7).

use std::sync::Arc;
use std::time::Duration;

use atelier_common::testkit::until;
use atelier_proto::tracker::v1::GenerationStatus;
use atelier_provider::settings::Settings;
use tokio::sync::Semaphore;

use crate::acme::Script;
use crate::stack::{Other, Stack, cost, first_id, picture, status, u1};

const LIMIT: Duration = Duration::from_secs(10);
const LEASE: Duration = Duration::from_secs(46);

/// A call whose job is polled and not done, and what lets it be done.
async fn polling(stack: &Stack) -> (String, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(0));
    stack.acme.script(Script {
        gate: Some(gate.clone()),
        ..Script::default()
    });
    let mut call = picture();
    call.background = true;
    let mut stream = stack.open(&u1(), call).await.unwrap();
    let id = first_id(&mut stream).await;
    until(async || stack.row(&id).await.provider_request_id.is_some())
        .within(LIMIT)
        .await;
    (id, gate)
}

async fn driven_by_another(stack: &Stack, other: &Other, id: &str) {
    until(async || stack.row(id).await.owner_epoch == 2)
        .within(LIMIT)
        .await;
    let id = id.parse().unwrap();
    until(async || other.seam.registry().drives(id))
        .within(LIMIT)
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g_093_g_094_a_job_whose_driver_is_cut_off_is_finished_by_another_once() {
    let stack = Stack::start().await;
    let (id, gate) = polling(&stack).await;
    // The first one hears nothing and is not heard.
    stack.ledger.cut("*");
    stack.ledger.break_streams();
    stack.time.advance(LEASE);
    let other = stack.other().await;
    driven_by_another(&stack, &other, &id).await;
    let row = stack.row_in(&id, GenerationStatus::Completed).await;
    assert_eq!((row.attempts.len(), row.asset_ids.len()), (1, 1));
    assert_eq!(cost(&row), Some("0.040000000"));
    assert_eq!((stack.acme.submits(), other.acme.submits()), (1, 0));
    // The first one comes back with an outcome of its own: it is the same asset, and the row does not change its mind.
    gate.add_permits(10);
    let first = stack.seam.registry().clone();
    until(async || first.running().is_empty()).within(LIMIT).await;
    stack.ledger.mend();
    stack.seam.ledger().spool().kick();
    let spool = stack.seam.ledger().spool().clone();
    until(async || spool.is_empty()).within(LIMIT).await;
    let after = stack.row(&id).await;
    assert_eq!(
        (status(&after), &after.asset_ids, cost(&after)),
        (GenerationStatus::Completed, &row.asset_ids, Some("0.040000000"))
    );
    assert_eq!(stack.assets().await.len(), 1);
    assert!(stack.acme.cancelled().is_empty() && other.acme.cancelled().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fenced_driver_does_not_cancel_the_job_that_goes_on_elsewhere() {
    let stack = Stack::start().await;
    let (id, gate) = polling(&stack).await;
    stack.ledger.cut("Follow");
    stack.ledger.break_streams();
    stack.time.advance(LEASE);
    let other = stack.other().await;
    let held = Arc::new(Semaphore::new(0));
    other.acme.script(Script {
        gate: Some(held.clone()),
        ..Script::default()
    });
    driven_by_another(&stack, &other, &id).await;
    // The first one, which is alive, finds out with its next write.
    gate.add_permits(10);
    let first = stack.seam.registry().clone();
    until(async || first.running().is_empty()).within(LIMIT).await;
    assert!(stack.acme.cancelled().is_empty());
    assert_eq!(status(&stack.row(&id).await), GenerationStatus::Running);
    held.add_permits(10);
    let row = stack.row_in(&id, GenerationStatus::Completed).await;
    assert_eq!((row.asset_ids.len(), stack.assets().await.len()), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g_113_a_stop_leaves_its_jobs_to_another_at_once() {
    let stack = Stack::with(Settings {
        stop_grace: Duration::from_millis(50),
        ..Settings::default()
    })
    .await;
    let other = stack.other().await;
    let mut ids = Vec::new();
    for _ in 0..10 {
        ids.push(polling(&stack).await.0);
    }
    other.acme.script(Script::default());
    stack.stop_provider().await;
    other.ledger.break_streams();
    for id in &ids {
        let row = stack.row_in(id, GenerationStatus::Completed).await;
        assert_eq!((row.owner_epoch, row.asset_ids.len()), (2, 1));
    }
    assert!(stack.acme.cancelled().is_empty());
    assert_eq!(stack.assets().await.len(), 10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_reaches_a_job_that_was_taken_up() {
    let stack = Stack::start().await;
    let (id, _gate) = polling(&stack).await;
    stack.ledger.cut("*");
    stack.ledger.break_streams();
    stack.time.advance(LEASE);
    let other = stack.other().await;
    other.acme.script(Script {
        gate: Some(Arc::new(Semaphore::new(0))),
        ..Script::default()
    });
    driven_by_another(&stack, &other, &id).await;
    let request = stack.signed(atelier_proto::tracker::v1::CancelGenerationRequest {
        generation_id: id.clone(),
    });
    assert!(
        stack
            .tracker()
            .cancel_generation(request)
            .await
            .unwrap()
            .into_inner()
            .cancelled
    );
    until(async || other.acme.cancelled() == [format!("req-{id}")])
        .within(LIMIT)
        .await;
    assert_eq!(status(&stack.row(&id).await), GenerationStatus::Cancelled);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_job_of_a_dead_driver_is_called_off_at_the_provider() {
    let stack = Stack::start().await;
    let (id, _gate) = polling(&stack).await;
    stack.ledger.cut("*");
    stack.ledger.break_streams();
    let request = stack.signed(atelier_proto::tracker::v1::CancelGenerationRequest {
        generation_id: id.clone(),
    });
    assert!(
        stack
            .tracker()
            .cancel_generation(request)
            .await
            .unwrap()
            .into_inner()
            .cancelled
    );
    stack.time.advance(LEASE);
    let other = stack.other().await;
    until(async || other.acme.cancelled() == [format!("req-{id}")])
        .within(LIMIT)
        .await;
    until(async || stack.facts(&id).await.contains_key("provider_cancel"))
        .within(LIMIT)
        .await;
    assert_eq!(status(&stack.row(&id).await), GenerationStatus::Cancelled);
    assert!(stack.assets().await.is_empty());
}

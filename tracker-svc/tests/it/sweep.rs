//! Rows whose driver is gone, and evidence that comes later.

use std::time::Duration;

use atelier_proto::reason;
use atelier_proto::tracker::v1::{self, GenerationStatus as Is, SubmissionStatus};
use tonic::Code;

use crate::stack::{Stack, amount, conflicts, receipt, refused, text_fact};

pub async fn g_095_driven_rows_are_never_swept(stack: Stack) {
    let u1 = stack.user("u1");
    let _driver = u1.follow().await;
    let mut ids = Vec::new();
    for _ in 0..50 {
        ids.push(u1.submitted().await);
    }
    // A second replica starts, long after the rows were opened.
    let r2 = stack.replica().await;
    for replica in [&stack.r1, &r2] {
        replica.time.advance(Duration::from_secs(30));
    }
    assert_eq!(stack.user_of(&r2, "u1").sweep().await, 0);
    assert_eq!(u1.total().await.running_count, 50);
}

pub async fn g_096_a_sweep_by_hand_touches_nothing_that_is_driven(stack: Stack) {
    let (u1, operator) = (stack.user("u1"), stack.user("operator"));
    let _driver = u1.follow().await;
    let driven = u1.submitted().await;
    let orphan = u1.driven_by("gone").submitted().await;
    assert_eq!(operator.sweep().await, 1);
    assert_eq!(u1.get(&driven).await.status(), Is::Running);
    assert_eq!(u1.get(&orphan).await.status(), Is::Interrupted);
    assert_eq!(operator.sweep().await, 0);
}

pub async fn g_097_a_late_heartbeat_is_in_time_until_the_lease_ends(stack: Stack) {
    let u1 = stack.user("u1");
    let mut driver = u1.follow().await;
    let id = u1.submitted().await;
    stack.r1.time.advance(Duration::from_secs(40));
    assert_eq!(u1.sweep().await, 0);
    assert_eq!(driver.beat(1).await, 1);
    stack.r1.time.advance(Duration::from_secs(40));
    assert_eq!(u1.sweep().await, 0);
    stack.r1.time.advance(Duration::from_secs(6));
    assert_eq!(u1.sweep().await, 1);
    refused(u1.bind(&id, "r1").await, Code::Aborted, reason::FENCED);
}

pub async fn g_098_what_was_never_submitted_says_so(stack: Stack) {
    let u1 = stack.user("u1");
    let id = u1.open().await;
    assert_eq!(u1.sweep().await, 1);
    let row = u1.get(&id).await;
    assert_eq!(
        (row.status(), row.error_code.as_deref()),
        (Is::Interrupted, Some("INTERRUPTED"))
    );
    assert_eq!(
        text_fact(&row, "interrupted_reason").as_deref(),
        Some("never submitted")
    );
    assert_eq!(row.reconciliation.unwrap().state, "none");
    let total = u1.total().await;
    assert_eq!(
        (total.interrupted_count, total.unsent_count, total.unpriced_count),
        (1, 1, 0)
    );
}

pub async fn g_099_what_was_submitted_is_interrupted_by_the_restart(stack: Stack) {
    let u1 = stack.user("u1");
    let id = u1.submitted().await;
    let version = u1.get(&id).await.version;
    assert_eq!(u1.sweep().await, 1);
    let row = u1.get(&id).await;
    assert_eq!(
        text_fact(&row, "interrupted_reason").as_deref(),
        Some("process restart")
    );
    // It may or may not have arrived, and nobody will find out by sending it again.
    assert_eq!(
        row.facets.as_ref().unwrap().submission(),
        SubmissionStatus::Unknown
    );
    assert_eq!(row.attempts[0].submission(), SubmissionStatus::Unknown);
    assert_eq!((row.version, row.cost.as_ref()), (version + 1, None));
    assert!(row.completed_at.is_some() && text_fact(&row, "unpriced_reason").is_some());
    assert_eq!(u1.total().await.unpriced_count, 1);
}

pub async fn g_080_an_interrupted_row_with_an_id_waits_for_its_bill(stack: Stack) {
    let u1 = stack.user("u1");
    let id = u1.bound("r1").await;
    assert_eq!(u1.sweep().await, 1);
    let row = u1.get(&id).await;
    assert_eq!(
        (row.status(), row.provider_request_id.as_deref()),
        (Is::Interrupted, Some("r1"))
    );
    let reconciliation = row.reconciliation.unwrap();
    let seconds = |at: Option<prost_types::Timestamp>| at.unwrap().seconds;
    assert_eq!(reconciliation.state, "queued");
    assert_eq!(seconds(reconciliation.next_at) - seconds(row.completed_at), 60);
}

pub async fn g_115_two_sweeps_at_once_interrupt_each_row_once(stack: Stack) {
    let r2 = stack.replica().await;
    let (one, two) = (stack.user("u1"), stack.user_of(&r2, "u1"));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..500 {
        let one = one.clone();
        tasks.spawn(async move { one.submitted().await });
    }
    let ids = tasks.join_all().await;
    let (first, second) = tokio::join!(one.sweep(), two.sweep());
    // What one of them stepped around because the other had it in hand is the other's.
    assert_eq!(first + second, 500);
    for id in ids.iter().step_by(50) {
        assert_eq!(one.get(id).await.version, 3);
    }
    assert_eq!(one.total().await.interrupted_count, 500);
}

pub async fn g_094_evidence_replaces_interrupted_once(stack: Stack) {
    let u1 = stack.user("u1");
    let id = u1.bound("r1").await;
    assert_eq!(u1.sweep().await, 1);
    let complete = v1::CloseGenerationRequest {
        receipt: receipt(Some("r1"), Some("0.42")),
        ..u1.to_complete(&id)
    };
    refused(
        u1.close_generation(complete.clone()).await,
        Code::Aborted,
        reason::FENCED,
    );
    let evidence = v1::CloseGenerationRequest {
        evidence: true,
        ..complete
    };
    let closed = u1.close_generation(evidence.clone()).await.unwrap();
    assert!(closed.changed && !closed.lost_race);
    let row = closed.generation.unwrap();
    assert_eq!(
        (row.status(), amount(row.cost.as_ref())),
        (Is::Completed, Some("0.420000000"))
    );
    assert_eq!(
        text_fact(&row, "superseded_status").as_deref(),
        Some("interrupted")
    );
    assert_eq!(row.asset_ids, ["a1"]);
    assert_eq!(row.reconciliation.as_ref().unwrap().state, "queued");
    // Again it changes nothing; another outcome is a conflict.
    assert!(!u1.close_generation(evidence.clone()).await.unwrap().changed);
    assert_eq!(u1.get(&id).await, row);
    let failed = v1::CloseGenerationRequest {
        status: Is::Failed.into(),
        ..evidence
    };
    let lost = u1.close_generation(failed).await.unwrap();
    assert!(lost.lost_race);
    assert_eq!(conflicts(&lost.generation.unwrap()), 1);
}

pub async fn evidence_of_another_request_is_refused(stack: Stack) {
    let u1 = stack.user("u1");
    let id = u1.bound("r1").await;
    let unbound = u1.submitted().await;
    assert_eq!(u1.sweep().await, 2);
    let evidence = |id: &str, request_id: Option<&str>| v1::CloseGenerationRequest {
        evidence: true,
        receipt: receipt(request_id, None),
        ..u1.to_complete(id)
    };
    let lost = u1.close_generation(evidence(&id, Some("r2"))).await.unwrap();
    assert!(!lost.changed && lost.lost_race);
    assert_eq!(lost.generation.unwrap().status(), Is::Interrupted);
    // Somebody else's word on a row without an id is worth nothing; its driver's is, and brings the id.
    let other = u1.driven_by("i2");
    let foreign = v1::CloseGenerationRequest {
        driver: other.driver(),
        ..evidence(&unbound, Some("r3"))
    };
    assert!(!other.close_generation(foreign).await.unwrap().changed);
    let own = u1.close_generation(evidence(&unbound, Some("r3"))).await.unwrap();
    assert!(own.changed);
    assert_eq!(own.generation.unwrap().provider_request_id.as_deref(), Some("r3"));
}

pub async fn a_swept_driver_is_fenced(stack: Stack) {
    let u1 = stack.user("u1");
    let id = u1.open().await;
    assert_eq!(u1.sweep().await, 1);
    refused(u1.mark(&id).await, Code::Aborted, reason::FENCED);
    refused(
        u1.observe(&id, v1::Facets::default()).await,
        Code::Aborted,
        reason::FENCED,
    );
    refused(u1.fail(&id).await, Code::Aborted, reason::FENCED);
    assert_eq!(u1.cancel(&id).await.error.as_deref(), Some("not running"));
}

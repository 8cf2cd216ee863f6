//! Marking, observing, closing; who may and who may not.

use std::time::Duration;

use atelier_proto::reason;
use atelier_proto::time::{micros_from_proto, proto_duration, seconds};
use atelier_proto::tracker::v1::{
    self, GenerationStatus as Is, OutputStatus, ProviderStatus, SubmissionStatus,
};
use tonic::Code;

use crate::stack::{Stack, amount, charge, conflicts, receipt, refused, text_fact};

pub async fn g_011_the_same_close_twice_changes_once(stack: Stack) {
    let u1 = stack.user("u1");
    let id = u1.submitted().await;
    let before = u1.get(&id).await.version;
    let first = u1.complete(&id).await.unwrap();
    assert!(first.changed && !first.lost_race);
    let second = u1.complete(&id).await.unwrap();
    assert!(!second.changed && !second.lost_race);
    assert_eq!(second.generation, first.generation);
    let row = u1.get(&id).await;
    assert_eq!((row.status(), row.version), (Is::Completed, before + 1));
    assert_eq!(amount(row.cost.as_ref()), Some("0.040000000"));
    assert_eq!(
        (row.asset_ids.as_slice(), row.assets_known),
        (["a1".to_owned()].as_slice(), true)
    );
    assert_eq!(text_fact(&row, "persisted").as_deref(), Some("assets"));
}

pub async fn g_012_a_second_outcome_loses_and_is_recorded(stack: Stack) {
    let u1 = stack.user("u1");
    let id = u1.submitted().await;
    let won = u1.complete(&id).await.unwrap().generation.unwrap();
    for _ in 0..3 {
        let lost = u1.fail(&id).await.unwrap();
        assert!(!lost.changed && lost.lost_race);
        let row = lost.generation.unwrap();
        assert_eq!(conflicts(&row), 1);
        let unchanged = v1::Generation {
            version: won.version,
            metadata: won.metadata.clone(),
            ..row
        };
        assert_eq!(unchanged, won);
    }
    for n in 0..15 {
        let other = v1::CloseGenerationRequest {
            receipt: receipt(Some(&format!("r{n}")), None),
            ..u1.to_close(&id, Is::Failed)
        };
        assert!(u1.close_generation(other).await.unwrap().lost_race);
    }
    assert_eq!(conflicts(&u1.get(&id).await), 10);
}

pub async fn g_013_outputs_on_their_way_keep_the_row_open(stack: Stack) {
    let u1 = stack.user("u1");
    let id = u1.submitted().await;
    let saving = v1::Facets {
        output: OutputStatus::Saving.into(),
        ..Default::default()
    };
    u1.observe(&id, saving).await.unwrap();
    refused(
        u1.complete(&id).await,
        Code::FailedPrecondition,
        reason::OUTPUTS_OPEN,
    );
    assert_eq!(u1.get(&id).await.status(), Is::Running);
    let ready = v1::Facets {
        output: OutputStatus::Ready.into(),
        ..Default::default()
    };
    let close = v1::CloseGenerationRequest {
        facets: Some(ready),
        ..u1.to_complete(&id)
    };
    assert!(u1.close_generation(close).await.unwrap().changed);
    assert_eq!(u1.get(&id).await.facets.unwrap().output(), OutputStatus::Ready);
}

pub async fn g_014_five_hundred_fast_generations_lose_nothing(stack: Stack) {
    let u1 = stack.user("u1");
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..500 {
        let u1 = u1.clone();
        tasks.spawn(async move {
            let id = u1.submitted().await;
            assert!(u1.complete(&id).await.unwrap().changed);
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let total = u1.total().await;
    assert_eq!(
        (total.call_count, total.completed_count, total.running_count),
        (500, 500, 0)
    );
    assert_eq!(total.costs[0].amount, "20.000000000");
}

pub async fn g_022_the_duration_is_the_drivers(stack: Stack) {
    let u1 = stack.user("u1");
    let id = u1.submitted().await;
    let close = v1::CloseGenerationRequest {
        duration: Some(proto_duration(Duration::from_millis(4_200))),
        input_tokens: Some(12),
        output_tokens: Some(34),
        ..u1.to_complete(&id)
    };
    u1.close_generation(close).await.unwrap();
    let row = u1.get(&id).await;
    assert!((seconds(row.duration.as_ref().unwrap()) - 4.2).abs() < 1e-9);
    assert_eq!((row.input_tokens, row.output_tokens), (Some(12), Some(34)));
    let at = |at: &Option<prost_types::Timestamp>| micros_from_proto(at.as_ref().unwrap());
    assert!(at(&row.created_at) <= at(&row.started_at) && at(&row.started_at) <= at(&row.completed_at));
}

pub async fn a_submission_is_marked_once(stack: Stack) {
    let u1 = stack.user("u1");
    let id = u1.submitted().await;
    let row = u1.get(&id).await;
    assert_eq!(
        row.facets.as_ref().unwrap().submission(),
        SubmissionStatus::Submitting
    );
    assert_eq!((row.version, row.attempts.len()), (2, 1));
    assert_eq!(
        (row.attempts[0].attempt_number, row.attempts[0].kind.as_str()),
        (1, "main")
    );
    assert!(!u1.mark(&id).await.unwrap().cancelled);
    assert_eq!(u1.get(&id).await, row);
    u1.complete(&id).await.unwrap();
    refused(u1.mark(&id).await, Code::FailedPrecondition, reason::NOT_RUNNING);
    refused(
        u1.mark("nothing").await,
        Code::NotFound,
        reason::GENERATION_NOT_FOUND,
    );
}

pub async fn facets_move_only_forward(stack: Stack) {
    let u1 = stack.user("u1");
    let id = u1.bound("r1").await;
    let told = v1::Facets {
        submission: SubmissionStatus::Unspecified.into(),
        provider: ProviderStatus::Running.into(),
        output: OutputStatus::Saving.into(),
    };
    assert!(!u1.observe(&id, told).await.unwrap().cancelled);
    let row = u1.get(&id).await;
    assert_eq!(row.facets.as_ref().unwrap().provider(), ProviderStatus::Running);
    assert_eq!(row.attempts[0].provider(), ProviderStatus::Running);
    let back = v1::Facets {
        submission: SubmissionStatus::Submitting.into(),
        provider: ProviderStatus::Queued.into(),
        output: OutputStatus::Pending.into(),
    };
    u1.observe(&id, back).await.unwrap();
    u1.observe(&id, told).await.unwrap();
    assert_eq!(u1.get(&id).await, row);
    let ready = v1::Facets {
        output: OutputStatus::Ready.into(),
        ..Default::default()
    };
    u1.observe(&id, ready).await.unwrap();
    let saving = v1::Facets {
        output: OutputStatus::Retrying.into(),
        ..Default::default()
    };
    u1.observe(&id, saving).await.unwrap();
    assert_eq!(u1.get(&id).await.facets.unwrap().output(), OutputStatus::Ready);
}

pub async fn a_proof_that_nothing_left_takes_the_submission_back(stack: Stack) {
    let u1 = stack.user("u1");
    let id = u1.submitted().await;
    let back = v1::Facets {
        submission: SubmissionStatus::Accepted.into(),
        ..Default::default()
    };
    u1.observe(&id, back).await.unwrap();
    assert_eq!(
        u1.get(&id).await.facets.unwrap().submission(),
        SubmissionStatus::Accepted
    );
    u1.mark(&id).await.unwrap();
    let row = u1.get(&id).await;
    assert_eq!(row.facets.unwrap().submission(), SubmissionStatus::Submitting);
    assert_eq!(row.attempts.len(), 1);
    u1.bind(&id, "r1").await.unwrap();
    u1.observe(&id, back).await.unwrap();
    assert_eq!(
        u1.get(&id).await.facets.unwrap().submission(),
        SubmissionStatus::Submitted
    );
    // A call that never left is a failure that nothing was spent on.
    let unsent = u1.submitted().await;
    let close = v1::CloseGenerationRequest {
        error_code: Some("PROVIDER_UNREACHABLE".into()),
        facets: Some(back),
        ..u1.to_close(&unsent, Is::Failed)
    };
    let row = u1.close_generation(close).await.unwrap().generation.unwrap();
    assert_eq!(row.error_code.as_deref(), Some("PROVIDER_UNREACHABLE"));
    let total = u1.total().await;
    assert_eq!(
        (total.failed_count, total.unsent_count, total.unpriced_count),
        (1, 1, 0)
    );
}

pub async fn a_stale_driver_is_fenced_everywhere(stack: Stack) {
    let u1 = stack.user("u1");
    let id = u1.submitted().await;
    let before = u1.get(&id).await;
    let other = u1.driven_by("i2");
    refused(other.mark(&id).await, Code::Aborted, reason::FENCED);
    refused(other.bind(&id, "r9").await, Code::Aborted, reason::FENCED);
    refused(
        other.observe(&id, v1::Facets::default()).await,
        Code::Aborted,
        reason::FENCED,
    );
    refused(other.complete(&id).await, Code::Aborted, reason::FENCED);
    let older = Some(v1::Driver {
        epoch: 0,
        ..u1.driver().unwrap()
    });
    let close = v1::CloseGenerationRequest {
        driver: older,
        ..u1.to_complete(&id)
    };
    refused(u1.close_generation(close).await, Code::Aborted, reason::FENCED);
    // Evidence does not open the fence while the row is driven.
    let evidence = v1::CloseGenerationRequest {
        evidence: true,
        ..other.to_complete(&id)
    };
    refused(
        other.close_generation(evidence).await,
        Code::Aborted,
        reason::FENCED,
    );
    // Another user does not even learn that there is a fence.
    let u2 = stack.user("u2");
    refused(u2.mark(&id).await, Code::NotFound, reason::GENERATION_NOT_FOUND);
    refused(
        u2.bind(&id, "r9").await,
        Code::NotFound,
        reason::GENERATION_NOT_FOUND,
    );
    refused(
        u2.complete(&id).await,
        Code::NotFound,
        reason::GENERATION_NOT_FOUND,
    );
    let link = v1::LinkAssetsRequest {
        generation_id: id.clone(),
        asset_ids: vec!["a9".into()],
    };
    refused(
        u2.link_assets(link).await,
        Code::NotFound,
        reason::GENERATION_NOT_FOUND,
    );
    assert_eq!(u1.get(&id).await, before);
}

pub async fn errors_are_bounded_and_carry_no_secret(stack: Stack) {
    let u1 = stack.user("u1");
    let id = u1.submitted().await;
    let error = format!(
        "refused: Authorization: Bearer s3cr3t-token {}",
        "x".repeat(10_000)
    );
    let close = v1::CloseGenerationRequest {
        error: Some(error),
        error_code: Some("not a code".into()),
        ..u1.to_close(&id, Is::Failed)
    };
    let row = u1.close_generation(close).await.unwrap().generation.unwrap();
    let error = row.error.unwrap();
    assert!(error.chars().count() <= 4_000 && error.starts_with("refused:"));
    assert!(!error.contains("s3cr3t"));
    assert_eq!(row.error_code.as_deref(), Some("PROVIDER_ERROR"));
}

pub async fn links_are_an_ordered_set(stack: Stack) {
    let u1 = stack.user("u1");
    let id = u1.submitted().await;
    u1.complete(&id).await.unwrap();
    let link = |ids: &[&str]| v1::LinkAssetsRequest {
        generation_id: id.clone(),
        asset_ids: ids.iter().map(ToString::to_string).collect(),
    };
    let row = u1
        .link_assets(link(&["a2", "a1", "a3"]))
        .await
        .unwrap()
        .generation
        .unwrap();
    assert_eq!(row.asset_ids, ["a1", "a2", "a3"]);
    let again = u1.link_assets(link(&["a3"])).await.unwrap().generation.unwrap();
    assert_eq!(again, row);
}

pub async fn a_caller_without_identity_is_refused(stack: Stack) {
    let mut client = stack.r1.client.clone();
    let user = stack.user("u1");
    let refused = [
        client.open_generation(user.to_open()).await.err(),
        client
            .list_generations(v1::ListGenerationsRequest::default())
            .await
            .err(),
        client
            .sweep_generations(v1::SweepGenerationsRequest {})
            .await
            .err(),
    ];
    for status in refused {
        assert_eq!(status.unwrap().code(), Code::Unauthenticated);
    }
    let mut forged = tonic::Request::new(user.to_open());
    forged
        .extensions_mut()
        .insert(atelier_common::identity::Caller::local());
    assert_eq!(
        client.open_generation(forged).await.unwrap_err().code(),
        Code::Unauthenticated
    );
    let estimate = charge("0.04");
    assert!(
        user.opened(v1::OpenGenerationRequest {
            estimate: Some(estimate),
            ..user.to_open()
        })
        .await
        .version
            == 1
    );
}

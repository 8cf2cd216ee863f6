//! Cancelling: the row first, then its driver; and what comes after it.

use std::time::Duration;

use atelier_proto::tracker::v1::{self, GenerationStatus as Is, SubmissionStatus};
use uuid::Uuid;

use crate::stack::{Stack, amount, conflicts, fact, receipt};

fn not_running() -> v1::CancelGenerationResponse {
    v1::CancelGenerationResponse {
        cancelled: false,
        status: String::new(),
        error: Some("not running".into()),
    }
}

pub async fn g_037_a_cancel_closes_the_row_and_orders_its_driver(stack: Stack) {
    let u1 = stack.user("u1");
    let mut driver = u1.follow().await;
    let id = u1.bound("r1").await;
    let answer = u1.cancel(&id).await;
    assert_eq!(
        (answer.cancelled, answer.status.as_str(), answer.error),
        (true, "cancelled", None)
    );
    assert_eq!(driver.order().await, id);
    let row = u1.get(&id).await;
    assert_eq!(
        (row.status(), row.error_code.as_deref()),
        (Is::Cancelled, Some("CANCELLED"))
    );
    assert_eq!(row.provider_request_id.as_deref(), Some("r1"));
    assert_eq!(row.reconciliation.unwrap().state, "queued");
    // Told again with every heartbeat, until the driver shows that it knows.
    driver.beat(1).await;
    assert_eq!(driver.order().await, id);
    assert!(u1.observe(&id, v1::Facets::default()).await.unwrap().cancelled);
    // What was on its way before that may still come with the next beat, and nothing after it.
    driver.beat(2).await;
    driver.orders.clear();
    driver.beat(3).await;
    assert!(driver.orders.is_empty());
}

pub async fn g_038_g_039_g_040_what_cannot_be_cancelled_looks_the_same(stack: Stack) {
    let (u1, u2) = (stack.user("u1"), stack.user("u2"));
    let running = u1.submitted().await;
    let completed = u2.submitted().await;
    u2.complete(&completed).await.unwrap();
    let failed = u2.submitted().await;
    u2.fail(&failed).await.unwrap();
    let unknown = Uuid::now_v7().to_string();
    for id in [
        running.as_str(),
        completed.as_str(),
        failed.as_str(),
        unknown.as_str(),
        "nothing",
        "",
    ] {
        assert_eq!(u2.cancel(id).await, not_running(), "{id}");
    }
    assert_eq!(u1.get(&running).await.status(), Is::Running);
}

pub async fn g_041_a_second_cancel_says_so(stack: Stack) {
    let u1 = stack.user("u1");
    let id = u1.submitted().await;
    assert!(u1.cancel(&id).await.cancelled);
    let row = u1.get(&id).await;
    let again = u1.cancel(&id).await;
    assert_eq!((again.cancelled, again.status.as_str()), (false, "cancelled"));
    assert_eq!(again.error.as_deref(), Some("already settled"));
    assert_eq!(stack.user("u2").cancel(&id).await, not_running());
    assert_eq!(u1.get(&id).await, row);
}

pub async fn g_042_a_cancel_through_another_replica_reaches_the_driver(stack: Stack) {
    let r2 = stack.replica().await;
    let u1 = stack.user("u1");
    let mut driver = u1.follow().await;
    let id = u1.submitted().await;
    assert!(stack.user_of(&r2, "u1").cancel(&id).await.cancelled);
    assert_eq!(u1.get(&id).await.status(), Is::Cancelled);
    assert!(driver.orders.is_empty());
    driver.beat(1).await;
    assert_eq!(driver.order().await, id);
}

pub async fn g_043_of_cancel_and_close_exactly_one_wins(stack: Stack) {
    let r2 = stack.replica().await;
    let u1 = stack.user("u1");
    let mut tasks = tokio::task::JoinSet::new();
    let (mut cancelled, mut completed) = (0, 0);
    for race in 0..1_000 {
        if tasks.len() >= 64 {
            tasks.join_next().await.unwrap().unwrap();
        }
        let (driver, user) = (u1.clone(), stack.user_of(&r2, "u1"));
        tasks.spawn(async move {
            let id = driver.submitted().await;
            let close = async {
                tokio::time::sleep(Duration::from_micros(race % 7 * 300)).await;
                driver.complete(&id).await.unwrap()
            };
            let cancel = async {
                tokio::time::sleep(Duration::from_micros(race % 5 * 300)).await;
                user.cancel(&id).await
            };
            let (close, cancel) = tokio::join!(close, cancel);
            let row = driver.get(&id).await;
            match row.status() {
                Is::Completed => {
                    assert!(close.changed && !close.lost_race);
                    assert_eq!(cancel, not_running());
                }
                Is::Cancelled => {
                    assert!(!close.changed && close.lost_race);
                    assert!(cancel.cancelled);
                    assert_eq!((row.cost.as_ref(), conflicts(&row)), (None, 1));
                }
                other => panic!("{other:?}"),
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let total = u1.total().await;
    cancelled += total.cancelled_count;
    completed += total.completed_count;
    assert_eq!(cancelled + completed, 1_000);
    assert_eq!(total.running_count, 0);
}

pub async fn g_044_stored_assets_of_a_cancelled_row_are_linked_as_late(stack: Stack) {
    let u1 = stack.user("u1");
    let id = u1.bound("r1").await;
    u1.cancel(&id).await;
    assert!(u1.complete(&id).await.unwrap().lost_race);
    assert!(u1.get(&id).await.asset_ids.is_empty());
    let annotate = v1::AnnotateGenerationRequest {
        generation_id: id.clone(),
        receipt: receipt(Some("r1"), Some("0.42")),
        asset_ids: vec!["a1".into()],
        provider_cancel: None,
    };
    for _ in 0..2 {
        let row = u1
            .annotate_generation(annotate.clone())
            .await
            .unwrap()
            .generation
            .unwrap();
        assert_eq!(
            (row.status(), row.asset_ids.as_slice()),
            (Is::Cancelled, ["a1".to_owned()].as_slice())
        );
        assert_eq!(
            fact(&row, "late_result").and_then(|late| late.as_bool()),
            Some(true)
        );
        assert_eq!(amount(row.cost.as_ref()), Some("0.420000000"));
    }
}

pub async fn g_045_a_cancelled_row_without_assets_has_none(stack: Stack) {
    let u1 = stack.user("u1");
    let id = u1.bound("r1").await;
    u1.cancel(&id).await;
    let close = u1.to_close(&id, Is::Cancelled);
    let closed = u1.close_generation(close).await.unwrap();
    assert!(!closed.changed && !closed.lost_race);
    let row = closed.generation.unwrap();
    assert!(!row.assets_known && row.asset_ids.is_empty() && fact(&row, "late_result").is_none());
}

pub async fn g_046_a_cancel_before_the_submit_stops_it(stack: Stack) {
    let u1 = stack.user("u1");
    let id = u1.open().await;
    assert!(u1.cancel(&id).await.cancelled);
    assert!(u1.mark(&id).await.unwrap().cancelled);
    let row = u1.get(&id).await;
    assert_eq!((row.status(), row.cost.as_ref()), (Is::Cancelled, None));
    assert_eq!(row.facets.unwrap().submission(), SubmissionStatus::Accepted);
    assert_eq!(row.reconciliation.unwrap().state, "none");
    assert!(row.attempts.is_empty());
    let total = u1.total().await;
    assert_eq!(
        (total.unpriced_count, total.unsent_count, total.cancelled_count),
        (0, 1, 1)
    );
}

pub async fn g_047_an_id_that_comes_after_the_cancel_is_bound(stack: Stack) {
    let u1 = stack.user("u1");
    let id = u1.submitted().await;
    u1.cancel(&id).await;
    assert_eq!(u1.get(&id).await.reconciliation.unwrap().state, "none");
    assert!(u1.bind(&id, "r1").await.unwrap().cancelled);
    let row = u1.get(&id).await;
    assert_eq!(
        (row.status(), row.provider_request_id.as_deref()),
        (Is::Cancelled, Some("r1"))
    );
    assert_eq!(row.reconciliation.unwrap().state, "queued");
    assert_eq!(row.attempts.len(), 1);
}

pub async fn g_048_g_049_what_the_provider_answered_is_kept(stack: Stack) {
    let u1 = stack.user("u1");
    for word in ["requested", "already_done", "not_found", "unsupported", "error"] {
        let id = u1.bound("r1").await;
        u1.cancel(&id).await;
        let annotate = v1::AnnotateGenerationRequest {
            generation_id: id.clone(),
            provider_cancel: Some(word.into()),
            ..Default::default()
        };
        let row = u1
            .annotate_generation(annotate.clone())
            .await
            .unwrap()
            .generation
            .unwrap();
        let told = fact(&row, "provider_cancel").unwrap();
        assert_eq!(told.get("result").unwrap().as_str(), Some(word));
        assert!(told.get("at").unwrap().as_i64().unwrap() > 1_600_000_000_000_000);
        let again = u1
            .annotate_generation(annotate)
            .await
            .unwrap()
            .generation
            .unwrap();
        assert_eq!(again, row);
    }
    let id = u1.bound("r1").await;
    u1.cancel(&id).await;
    let bad = v1::AnnotateGenerationRequest {
        generation_id: id,
        provider_cancel: Some("perhaps".into()),
        ..Default::default()
    };
    let answer = u1.annotate_generation(bad).await;
    crate::stack::refused(
        answer,
        tonic::Code::InvalidArgument,
        atelier_proto::reason::INVALID_FIELD,
    );
}

pub async fn g_053_a_driver_may_cancel_too(stack: Stack) {
    let u1 = stack.user("u1");
    let id = u1.bound("r1").await;
    let closed = u1
        .close_generation(u1.to_close(&id, Is::Cancelled))
        .await
        .unwrap();
    assert!(closed.changed);
    let row = closed.generation.unwrap();
    assert_eq!(
        (row.status(), row.error_code.as_deref()),
        (Is::Cancelled, Some("CANCELLED"))
    );
    assert_eq!(row.reconciliation.unwrap().state, "queued");
    assert_eq!(u1.cancel(&id).await.error.as_deref(), Some("already settled"));
}

pub async fn g_042_a_cancel_through_another_replica_is_ordered_without_a_heartbeat(stack: Stack) {
    let r2 = stack.replica().await;
    let u1 = stack.user("u1");
    let mut driver = u1.follow().await;
    let id = u1.submitted().await;
    assert!(stack.user_of(&r2, "u1").cancel(&id).await.cancelled);
    let asked = std::time::Instant::now();
    assert_eq!(driver.order().await, id);
    // A heartbeat would have come after ten seconds.
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
}

pub async fn g_051_the_running_rows_of_a_run_are_cancelled_together(stack: Stack) {
    let (u1, u2) = (stack.user("u1"), stack.user("u2"));
    let mut driver = u1.follow().await;
    let open = |user: &crate::stack::User, job: &str| v1::OpenGenerationRequest {
        origin: crate::stack::in_job(job, "n1"),
        ..user.to_open()
    };
    let mut running = Vec::new();
    for _ in 0..3 {
        running.push(u1.opened(open(&u1, "j1")).await.generation_id);
    }
    for _ in 0..2 {
        let id = u1.opened(open(&u1, "j1")).await.generation_id;
        u1.mark(&id).await.unwrap();
        u1.complete(&id).await.unwrap();
    }
    let foreign = u2.opened(open(&u2, "j1")).await.generation_id;
    let other = u1.opened(open(&u1, "j2")).await.generation_id;
    let background = v1::OpenGenerationRequest {
        background: true,
        ..open(&u1, "j1")
    };
    let background = u1.opened(background).await.generation_id;
    let cancel = |include_background| v1::CancelGenerationsRequest {
        job_id: "j1".into(),
        include_background,
    };
    let answer = u1.cancel_generations(cancel(false)).await.unwrap();
    assert_eq!((answer.cancelled_count, answer.skipped_count), (3, 3));
    for id in &running {
        assert_eq!(u1.get(id).await.status(), Is::Cancelled);
    }
    let mut ordered = Vec::new();
    while ordered.len() < 3 {
        let id = driver.order().await;
        if !ordered.contains(&id) {
            ordered.push(id);
        }
    }
    ordered.sort_unstable();
    assert_eq!(ordered, running);
    assert_eq!(u2.get(&foreign).await.status(), Is::Running);
    for id in [&other, &background] {
        assert_eq!(u1.get(id).await.status(), Is::Running);
    }
    // Again it finds nothing, and what went on in the background goes only when asked for.
    let again = u1.cancel_generations(cancel(false)).await.unwrap();
    assert_eq!((again.cancelled_count, again.skipped_count), (0, 6));
    let all = u1.cancel_generations(cancel(true)).await.unwrap();
    assert_eq!((all.cancelled_count, all.skipped_count), (1, 5));
    // Nobody's run and no run.
    let nobody = stack.user("u3").cancel_generations(cancel(true)).await.unwrap();
    assert_eq!((nobody.cancelled_count, nobody.skipped_count), (0, 0));
    let none = u1
        .cancel_generations(v1::CancelGenerationsRequest::default())
        .await;
    crate::stack::refused(
        none,
        tonic::Code::InvalidArgument,
        atelier_proto::reason::INVALID_FIELD,
    );
}

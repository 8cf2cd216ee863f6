//! One slot and those who wait for it.

use std::time::Duration;

use atelier_common::testkit::{TestDb, engines, until};
use atelier_kernel::settings::Settings;
use atelier_proto::kernel::v1::{CancelJobRequest, JobEvent, JobStatus, job_event::Event as Frame};
use tonic::Code;

use super::{
    fakes::Provider,
    kernel::{Up, paint, shout},
    scene::image,
};

const SOON: Duration = Duration::from_secs(10);

/// One run holds the only slot until its provider is let go on; one more may wait, and another.
async fn busy() -> Vec<(Up, TestDb)> {
    let mut kernels = Vec::new();
    for db in engines().await {
        let settings = Settings {
            max_concurrent_jobs: 1,
            max_queued_jobs: 2,
            ..Settings::default()
        };
        let up = Up::new(&db, settings, Provider::new((&image(b"sea")).into(), false)).await;
        up.run("first", &paint()).await.unwrap();
        until(async || up.provider.calls() == 1).within(SOON).await;
        kernels.push((up, db));
    }
    kernels
}
/// States of the run with places in the queue.
fn states(events: &[JobEvent]) -> Vec<(JobStatus, Option<i32>)> {
    let state = |event: &JobEvent| match &event.event {
        Some(Frame::JobUpdate(update)) => Some((update.status(), update.queue_position)),
        _ => None,
    };
    events.iter().filter_map(state).collect()
}
async fn waits(up: &Up, job_id: &str) {
    until(async || up.get(job_id).await.last_seq > 0)
        .within(SOON)
        .await;
}
async fn cancel(up: &Up, job_id: &str) -> bool {
    let request = CancelJobRequest {
        job_id: job_id.to_owned(),
    };
    up.client()
        .cancel_job(up.signed(request))
        .await
        .unwrap()
        .into_inner()
        .cancelled
}

#[tokio::test]
async fn w_034_a_run_without_a_slot_is_told_its_place_and_starts_when_one_is_free() {
    for (up, db) in busy().await {
        up.run("second", &shout("hello")).await.unwrap();
        waits(&up, "second").await;
        let (_, events) = up.watch("second", 0, true).await;
        assert_eq!(states(&events), [(JobStatus::Queued, Some(1))], "{}", db.engine());
        let Some(Frame::JobUpdate(told)) = &events[0].event else {
            panic!("no place")
        };
        assert_eq!(told.message.as_deref(), Some("Queued (#1)"));
        assert_eq!(up.get("second").await.status(), JobStatus::Queued);
        up.provider.open();
        let (_, events) = up.watch("second", 0, false).await;
        let expected = [
            (JobStatus::Queued, Some(1)),
            (JobStatus::Running, None),
            (JobStatus::Completed, None),
        ];
        assert_eq!(states(&events), expected);
        assert_eq!(up.end("first").await.status(), JobStatus::Completed);
    }
}
#[tokio::test]
async fn w_035_who_waits_behind_a_cancelled_run_moves_up() {
    for (up, db) in busy().await {
        for job in ["second", "third"] {
            up.run(job, &shout(job)).await.unwrap();
            waits(&up, job).await;
        }
        assert!(
            cancel(&up, "second").await && !cancel(&up, "second").await,
            "{}",
            db.engine()
        );
        let cancelled = up.watch("second", 0, false).await.1;
        assert_eq!(
            states(&cancelled),
            [(JobStatus::Queued, Some(1)), (JobStatus::Cancelled, None)]
        );
        assert_eq!(up.get("second").await.status(), JobStatus::Cancelled);
        until(async || up.get("third").await.last_seq == 2)
            .within(SOON)
            .await;
        let (_, events) = up.watch("third", 0, true).await;
        assert_eq!(
            states(&events),
            [(JobStatus::Queued, Some(2)), (JobStatus::Queued, Some(1))]
        );
        up.provider.open();
        assert_eq!(up.end("third").await.status(), JobStatus::Completed);
    }
}
#[tokio::test]
async fn a_full_queue_refuses_but_answers_a_repeated_request() {
    for (up, db) in busy().await {
        for job in ["second", "third"] {
            up.run(job, &shout(job)).await.unwrap();
        }
        let refused = up.run("fourth", &shout("fourth")).await.unwrap_err();
        assert_eq!(refused.code(), Code::ResourceExhausted, "{}", db.engine());
        assert!(!up.run("third", &shout("third")).await.unwrap().1);
        assert!(!up.run("first", &paint()).await.unwrap().1);
        up.provider.open();
        assert_eq!(up.end("third").await.status(), JobStatus::Completed);
        assert!(
            up.run("fourth", &shout("fourth")).await.unwrap().1,
            "what was refused left nothing behind"
        );
    }
}
#[tokio::test]
async fn a_running_run_is_cancelled_with_its_provider_call() {
    for (up, db) in busy().await {
        assert!(cancel(&up, "first").await, "{}", db.engine());
        let job = up.end("first").await;
        assert_eq!(job.status(), JobStatus::Cancelled, "{job:?}");
        assert!(!cancel(&up, "first").await);
        assert!(up.assets.saved().is_empty());
    }
}

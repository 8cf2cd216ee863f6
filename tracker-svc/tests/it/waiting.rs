//! Waiting for a row, whoever settles it and wherever.

use std::time::{Duration, Instant};

use atelier_proto::reason;
use atelier_proto::tracker::v1::{self, GenerationStatus as Is};
use tonic::Code;
use uuid::Uuid;

use crate::stack::{Answer, Stack, User, refused};

async fn wait(user: &User, id: &str, seconds: i64) -> Answer<(v1::Generation, f64)> {
    let answer = user
        .await_generation(v1::AwaitGenerationRequest {
            generation_id: id.into(),
            timeout: Some(prost_types::Duration { seconds, nanos: 0 }),
        })
        .await?;
    let waited = answer.waited.as_ref().map(atelier_proto::time::seconds);
    Ok((answer.generation.unwrap(), waited.unwrap()))
}

/// The wait in a task of its own, which has surely begun when this returns.
async fn waiting(user: &User, id: &str) -> tokio::task::JoinHandle<(v1::Generation, f64)> {
    let (user, id) = (user.clone(), id.to_owned());
    let (begun, begins) = tokio::sync::oneshot::channel();
    let task = tokio::spawn(async move {
        begun.send(()).unwrap();
        wait(&user, &id, 60).await.unwrap()
    });
    begins.await.unwrap();
    task
}

pub async fn g_127_a_wait_ends_with_its_patience_and_leaves_the_row(stack: Stack) {
    let u1 = stack.user("u1");
    let id = u1.submitted().await;
    let (row, waited) = wait(&u1, &id, 1).await.unwrap();
    assert_eq!(row.status(), Is::Running);
    assert!((1.0..10.0).contains(&waited), "{waited}");
    assert_eq!(u1.get(&id).await, row);
    u1.complete(&id).await.unwrap();
    assert_eq!(wait(&u1, &id, 60).await.unwrap().0.status(), Is::Completed);
}

pub async fn g_128_what_another_replica_closes_is_heard_of_within_a_second(stack: Stack) {
    let r2 = stack.replica().await;
    let (u1, there) = (stack.user("u1"), stack.user_of(&r2, "u1"));
    let id = u1.submitted().await;
    let wait = waiting(&there, &id).await;
    u1.complete(&id).await.unwrap();
    let closed = Instant::now();
    let (row, _) = wait.await.unwrap();
    assert_eq!(
        (row.status(), row.asset_ids.as_slice()),
        (Is::Completed, ["a1".to_owned()].as_slice())
    );
    // Half a second between looks; the rest is for a busy machine.
    assert!(
        closed.elapsed() < Duration::from_secs(3),
        "{:?}",
        closed.elapsed()
    );
}

pub async fn g_129_settled_rows_answer_at_once_and_unknown_ones_too(stack: Stack) {
    let (u1, u2) = (stack.user("u1"), stack.user("u2"));
    let completed = u1.submitted().await;
    u1.complete(&completed).await.unwrap();
    let interrupted = u1.submitted().await;
    u1.sweep().await;
    for (id, status) in [(&completed, Is::Completed), (&interrupted, Is::Interrupted)] {
        let (row, waited) = wait(&u1, id, 60).await.unwrap();
        assert_eq!(row.status(), status);
        assert!(waited < 5.0, "{waited}");
        let foreign = wait(&u2, id, 60).await;
        refused(foreign, Code::NotFound, reason::GENERATION_NOT_FOUND);
    }
    let unknown = wait(&u1, &Uuid::now_v7().to_string(), 60).await;
    refused(unknown, Code::NotFound, reason::GENERATION_NOT_FOUND);
}

pub async fn g_130_a_negative_patience_is_refused(stack: Stack) {
    let u1 = stack.user("u1");
    let id = u1.submitted().await;
    refused(
        wait(&u1, &id, -1).await,
        Code::InvalidArgument,
        reason::INVALID_FIELD,
    );
}

pub async fn a_close_and_a_cancel_here_wake_at_once(stack: Stack) {
    let u1 = stack.user("u1");
    for round in 0..20 {
        let id = u1.submitted().await;
        let waits = [waiting(&u1, &id).await, waiting(&u1, &id).await];
        let status = if round % 2 == 0 {
            u1.complete(&id).await.unwrap();
            Is::Completed
        } else {
            assert!(u1.cancel(&id).await.cancelled);
            Is::Cancelled
        };
        for wait in waits {
            assert_eq!(wait.await.unwrap().0.status(), status);
        }
    }
}

pub async fn a_sweep_ends_a_wait(stack: Stack) {
    let u1 = stack.user("u1");
    let id = u1.submitted().await;
    let wait = waiting(&u1, &id).await;
    assert_eq!(u1.sweep().await, 1);
    assert_eq!(wait.await.unwrap().0.status(), Is::Interrupted);
}

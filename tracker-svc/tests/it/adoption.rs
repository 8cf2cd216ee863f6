//! Jobs whose driver is gone: given to another one, which polls them to their end (generations specification 7).

use std::time::Duration;

use atelier_proto::reason;
use atelier_proto::tracker::v1::{self, GenerationStatus as Is};
use tonic::Code;

use crate::stack::{Follower, Stack, User, refused, text_fact};

const LEASE: Duration = Duration::from_secs(46);

/// A row whose provider has a job that can be polled by anybody.
async fn pollable(user: &User, request_id: &str) -> String {
    let request = v1::OpenGenerationRequest {
        plan: Some("{\"persist\":true}".into()),
        ..user.to_open()
    };
    let id = user.opened(request).await.generation_id;
    user.mark(&id).await.unwrap();
    let bind = v1::BindAttemptRequest {
        resume_token: Some(format!("token-{request_id}")),
        ..user.to_bind(&id, request_id)
    };
    user.bind_attempt(bind).await.unwrap();
    id
}

async fn hear(driver: &mut Follower, order: &v1::ResumeOrder) {
    let row = order.generation.as_ref().unwrap();
    driver
        .say(v1::follow_request::Message::Resumed(v1::Resumed {
            generation_id: row.generation_id.clone(),
            epoch: row.owner_epoch,
        }))
        .await;
}

fn at(user: &User, epoch: i64) -> Option<v1::Driver> {
    Some(v1::Driver {
        instance_id: user.instance.clone(),
        epoch,
    })
}

/// Orders of the hello and of the next round together.
async fn given(driver: &mut Follower) -> Vec<v1::ResumeOrder> {
    let mut orders = std::mem::take(&mut driver.resumes);
    if orders.is_empty() {
        orders = driver.jobs().await;
        orders.truncate(1);
    }
    orders
}

pub async fn g_093_a_job_of_a_dead_driver_is_given_to_a_live_one(stack: Stack) {
    let (u1, u1_of_r2) = (stack.user("u1"), stack.user("u1").driven_by("i2"));
    let dead = u1.follow_able("k1").await;
    let id = pollable(&u1, "r1").await;
    dead.hang_up().await;
    let mut live = u1_of_r2.follow_able("k1").await;
    assert!(live.jobs().await.is_empty(), "its driver has its lease");
    stack.r1.time.advance(Duration::from_secs(30));
    live.beat(1).await;
    stack.r1.time.advance(Duration::from_secs(16));
    assert_eq!(u1.sweep().await, 0, "the sweep leaves what can be taken up");
    let orders = given(&mut live).await;
    let order = &orders[0];
    let row = order.generation.as_ref().unwrap();
    assert_eq!((row.generation_id.as_str(), row.owner_epoch), (id.as_str(), 2));
    assert_eq!(row.attempts[0].resume_token.as_deref(), Some("token-r1"));
    assert_eq!(order.plan, "{\"persist\":true}");
    assert!((46..60).contains(&order.age.unwrap().seconds));
    hear(&mut live, order).await;
    live.round().await;
    live.resumes.clear();
    assert!(live.jobs().await.is_empty(), "it was heard");
    let close = v1::CloseGenerationRequest {
        driver: at(&u1_of_r2, 2),
        ..u1.to_complete(&id)
    };
    assert!(u1.close_generation(close).await.unwrap().changed);
    let row = u1.get(&id).await;
    assert_eq!((row.status(), row.asset_ids.len()), (Is::Completed, 1));
}

pub async fn g_094_the_old_driver_is_kept_out_and_the_row_closes_once(stack: Stack) {
    let (u1, other) = (stack.user("u1"), stack.user("u1").driven_by("i2"));
    let _old = u1.follow_able("k1").await;
    let id = pollable(&u1, "r1").await;
    let mut live = other.follow_able("k1").await;
    stack.r1.time.advance(Duration::from_secs(40));
    live.beat(1).await;
    stack.r1.time.advance(Duration::from_secs(6));
    assert_eq!(given(&mut live).await.len(), 1);
    refused(u1.bind(&id, "r1").await, Code::Aborted, reason::FENCED);
    refused(
        u1.observe(&id, v1::Facets::default()).await,
        Code::Aborted,
        reason::FENCED,
    );
    for evidence in [false, true] {
        let close = v1::CloseGenerationRequest {
            evidence,
            ..u1.to_complete(&id)
        };
        refused(u1.close_generation(close).await, Code::Aborted, reason::FENCED);
    }
    let close = v1::CloseGenerationRequest {
        driver: at(&other, 2),
        asset_ids: vec!["a2".into()],
        ..u1.to_complete(&id)
    };
    assert!(u1.close_generation(close).await.unwrap().changed);
    let late = v1::CloseGenerationRequest {
        evidence: true,
        asset_ids: vec!["a2".into()],
        ..u1.to_complete(&id)
    };
    assert!(!u1.close_generation(late).await.unwrap().changed);
    assert_eq!(u1.get(&id).await.asset_ids, ["a2"]);
}

pub async fn g_113_a_goodbye_gives_the_jobs_away_at_once(stack: Stack) {
    let (u1, other) = (stack.user("u1"), stack.user("u1").driven_by("i2"));
    let leaving = u1.follow_able("k1").await;
    for number in 0..10 {
        pollable(&u1, &format!("r{number}")).await;
    }
    let mut live = other.follow_able("k1").await;
    assert!(live.jobs().await.is_empty());
    leaving.goodbye().await;
    live.beat(3).await;
    live.beat(4).await;
    let ids: std::collections::BTreeSet<_> = live
        .resumes
        .iter()
        .map(|order| order.generation.as_ref().unwrap().generation_id.clone())
        .collect();
    assert_eq!(ids.len(), 10);
    assert_eq!(u1.sweep().await, 0);
    assert_eq!(u1.total().await.interrupted_count, 0);
}

pub async fn g_114_a_job_is_given_away_twenty_times_at_most(stack: Stack) {
    let u1 = stack.user("u1");
    let id = pollable(&u1.driven_by("d0"), "r1").await;
    for number in 1..=20 {
        let driver = u1.driven_by(&format!("d{number}"));
        let mut live = driver.follow_able("k1").await;
        let orders = given(&mut live).await;
        assert_eq!(orders[0].generation.as_ref().unwrap().owner_epoch, number + 1);
        live.goodbye().await;
    }
    let mut live = u1.driven_by("d21").follow_able("k1").await;
    assert!(given(&mut live).await.is_empty());
    assert_eq!(u1.sweep().await, 1);
    let row = u1.get(&id).await;
    assert_eq!(row.status(), Is::Interrupted);
    assert_eq!(
        text_fact(&row, "interrupted_reason").as_deref(),
        Some("recovery exhausted")
    );
    assert_eq!(row.reconciliation.unwrap().state, "queued");
}

pub async fn an_order_is_repeated_until_it_is_heard(stack: Stack) {
    let u1 = stack.user("u1");
    let id = pollable(&u1.driven_by("gone"), "r1").await;
    let mut live = u1.follow_able("k1").await;
    let orders = given(&mut live).await;
    live.hang_up().await;
    let mut live = u1.follow_able("k1").await;
    let again = given(&mut live).await;
    assert_eq!(again[0].generation, orders[0].generation, "the epoch stays");
    // An answer to another epoch is none.
    live.say(v1::follow_request::Message::Resumed(v1::Resumed {
        generation_id: id.clone(),
        epoch: 1,
    }))
    .await;
    live.resumes.clear();
    assert!(!live.jobs().await.is_empty());
    hear(&mut live, &again[0]).await;
    live.round().await;
    live.resumes.clear();
    assert!(live.jobs().await.is_empty());
}

pub async fn a_job_waits_for_a_driver_that_can_take_it_up(stack: Stack) {
    let u1 = stack.user("u1");
    let id = pollable(&u1.driven_by("gone"), "r1").await;
    let seat = |resumable, provider: &str| v1::ProviderSeat {
        provider: provider.into(),
        resumable,
        credential: String::new(),
    };
    let mut unable = u1
        .follow_with(false, vec![seat(false, "acme"), seat(true, "other")])
        .await;
    assert!(given(&mut unable).await.is_empty());
    assert_eq!(u1.sweep().await, 0);
    assert_eq!(u1.get(&id).await.status(), Is::Running);
    let mut able = u1.driven_by("i2").follow_able("k1").await;
    assert_eq!(given(&mut able).await.len(), 1);
}

pub async fn a_job_too_old_is_swept(stack: Stack) {
    let u1 = stack.user("u1");
    let id = pollable(&u1.driven_by("gone"), "r1").await;
    stack.r1.time.advance(Duration::from_hours(24) + LEASE);
    let mut live = u1.follow_able("k1").await;
    assert!(given(&mut live).await.is_empty());
    assert_eq!(u1.sweep().await, 1);
    assert_eq!(
        text_fact(&u1.get(&id).await, "interrupted_reason").as_deref(),
        Some("recovery exhausted")
    );
}

pub async fn two_replicas_give_a_job_to_one_driver(stack: Stack) {
    let r2 = stack.replica().await;
    let (one, two) = (stack.user("u1"), stack.user_of(&r2, "u1").driven_by("i2"));
    let gone = one.driven_by("gone");
    for number in 0..40 {
        pollable(&gone, &format!("r{number}")).await;
    }
    let (mut first, mut second) = tokio::join!(one.follow_able("k1"), two.follow_able("k1"));
    tokio::join!(first.round(), second.round());
    let ids = |driver: &Follower| -> std::collections::BTreeSet<String> {
        let rows = driver
            .resumes
            .iter()
            .map(|order| order.generation.as_ref().unwrap());
        rows.map(|row| row.generation_id.clone()).collect()
    };
    let (of_first, of_second) = (ids(&first), ids(&second));
    assert!(of_first.is_disjoint(&of_second));
    assert_eq!(of_first.len() + of_second.len(), 40);
    for row in one.all().await {
        assert_eq!((row.status(), row.owner_epoch), (Is::Running, 2));
    }
}

pub async fn a_cancelled_job_of_a_dead_driver_is_called_off(stack: Stack) {
    let u1 = stack.user("u1");
    let id = pollable(&u1.driven_by("gone"), "r1").await;
    assert!(u1.cancel(&id).await.cancelled);
    let mut live = u1.follow_able("k1").await;
    let orders = given(&mut live).await;
    let row = orders[0].generation.as_ref().unwrap();
    assert_eq!(
        (row.generation_id.as_str(), row.status()),
        (id.as_str(), Is::Cancelled)
    );
    u1.annotate_generation(v1::AnnotateGenerationRequest {
        generation_id: id.clone(),
        provider_cancel: Some("requested".into()),
        ..Default::default()
    })
    .await
    .unwrap();
    hear(&mut live, &orders[0]).await;
    live.round().await;
    live.resumes.clear();
    assert!(live.jobs().await.is_empty());
    let row = u1.get(&id).await;
    assert_eq!(row.status(), Is::Cancelled);
    assert!(crate::stack::fact(&row, "provider_cancel").is_some());
}

//! How many background calls go on at a time.

use atelier_proto::common::v1::Origin;
use atelier_proto::reason;
use atelier_proto::tracker::v1::{self, BudgetKind, BudgetPeriod};
use tonic::Code;
use tonic_types::StatusExt;

use crate::stack::{Stack, User, in_job, refused};

fn background(user: &User, origin: Option<Origin>) -> v1::OpenGenerationRequest {
    v1::OpenGenerationRequest {
        background: true,
        origin,
        ..user.to_open()
    }
}

pub async fn g_117_sixteen_background_calls_of_a_run_go_on_at_a_time(stack: Stack) {
    let r2 = stack.replica().await;
    let users = [stack.user("u1"), stack.user_of(&r2, "u1")];
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..17 {
        let user = users[n % 2].clone();
        tasks.spawn(async move { user.open_generation(background(&user, in_job("j1", "n1"))).await });
    }
    let mut opened = Vec::new();
    let mut refusals = Vec::new();
    for answer in tasks.join_all().await {
        match answer {
            Ok(answer) => opened.push(answer.generation.unwrap().generation_id),
            Err(status) => refusals.push(status),
        }
    }
    assert_eq!((opened.len(), refusals.len()), (16, 1));
    let status = refused::<()>(
        Err(refusals.remove(0)),
        Code::ResourceExhausted,
        reason::BACKGROUND_LIMIT,
    );
    let told = status.get_details_error_info().unwrap().metadata;
    assert_eq!(told["limit"], "16");
    assert!(
        told["generation_ids"]
            .split(' ')
            .all(|id| opened.iter().any(|open| open == id))
    );
    let u1 = &users[0];
    assert_eq!(u1.all().await.len(), 16);
    // One that ends makes room for one, and one that is known needs none.
    let known = v1::OpenGenerationRequest {
        generation_id: opened[1].clone(),
        ..background(u1, in_job("j1", "n1"))
    };
    assert!(!u1.open_generation(known).await.unwrap().created);
    u1.cancel(&opened[0]).await;
    u1.opened(background(u1, in_job("j1", "n1"))).await;
    let again = u1.open_generation(background(u1, in_job("j1", "n1"))).await;
    refused(again, Code::ResourceExhausted, reason::BACKGROUND_LIMIT);
    // Whoever waits is not bounded.
    let waits = v1::OpenGenerationRequest {
        origin: in_job("j1", "n1"),
        ..u1.to_open()
    };
    u1.opened(waits).await;
}

pub async fn background_calls_are_bounded_by_run_thread_and_user_apart(stack: Stack) {
    let (u1, u2) = (stack.user("u1"), stack.user("u2"));
    let thread = || {
        Some(Origin {
            thread_id: Some("t1".into()),
            ..Default::default()
        })
    };
    for origin in [in_job("j1", "n1"), in_job("j2", "n1"), thread(), None] {
        for _ in 0..16 {
            u1.opened(background(&u1, origin.clone())).await;
        }
        let one_more = u1.open_generation(background(&u1, origin)).await;
        refused(one_more, Code::ResourceExhausted, reason::BACKGROUND_LIMIT);
    }
    u2.opened(background(&u2, in_job("j1", "n1"))).await;
}

pub async fn a_background_call_needs_something_left_of_its_budgets(stack: Stack) {
    let u1 = stack.user("u1");
    let budget = v1::SetBudgetRequest {
        kind: BudgetKind::User.into(),
        period: BudgetPeriod::Total.into(),
        limit: crate::stack::charge("0.04").cost,
        ..Default::default()
    };
    u1.set_budget(budget).await.unwrap();
    u1.opened(background(&u1, None)).await;
    // One that is free would fit; nothing is left all the same.
    let free = |request| v1::OpenGenerationRequest {
        estimate: Some(crate::stack::charge("0")),
        ..request
    };
    let answer = u1.open_generation(free(background(&u1, None))).await;
    refused(answer, Code::ResourceExhausted, reason::BUDGET_EXCEEDED);
    u1.opened(free(u1.to_open())).await;
}

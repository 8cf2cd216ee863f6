//! Rows that wait for their bill: when they are due, who looks, and what a bill changes (generations specification 6).

use std::collections::HashSet;
use std::time::Duration;

use atelier_proto::reason;
use atelier_proto::tracker::v1::{self, GenerationStatus as Is, ReconcileOutcome as Found};
use atelier_proto::value::Value;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};
use tonic::Code;

use crate::stack::{Follower, Stack, User, amount, charge, copies, fact, receipt, refused, text_fact};

const MINUTE: Duration = Duration::from_mins(1);

/// A completed row that waits for the bill of `request_id`.
async fn waiting(user: &User, request_id: &str) -> String {
    let id = user.bound(request_id).await;
    user.complete(&id).await.unwrap();
    id
}

fn report(order: &v1::ReconcileOrder, outcome: Found) -> v1::ReportReconciliationRequest {
    v1::ReportReconciliationRequest {
        generation_id: order.generation.as_ref().unwrap().generation_id.clone(),
        claim: order.claim.clone(),
        manual: order.manual,
        outcome: outcome.into(),
        ..Default::default()
    }
}

fn billed(order: &v1::ReconcileOrder, bills: &[(i32, &str)]) -> v1::ReportReconciliationRequest {
    let bill = |(attempt_number, amount): &(i32, &str)| v1::AttemptBill {
        attempt_number: *attempt_number,
        charge: Some(charge(amount)),
    };
    v1::ReportReconciliationRequest {
        bills: bills.iter().map(bill).collect(),
        ..report(order, Found::Billed)
    }
}

async fn say(user: &User, report: v1::ReportReconciliationRequest) -> v1::Generation {
    let answer = user.report_reconciliation(report).await.unwrap();
    assert!(answer.accepted);
    answer.generation.unwrap()
}

async fn only(driver: &mut Follower) -> v1::ReconcileOrder {
    let due = driver.due().await;
    assert_eq!(due.len(), 1, "{due:?}");
    due.into_iter().next().unwrap()
}

async fn by_hand(user: &User, id: &str) -> v1::ReconcileOrder {
    let request = v1::ClaimReconciliationRequest {
        generation_id: id.into(),
    };
    let order = user.claim_reconciliation(request).await.unwrap().order.unwrap();
    assert!(order.manual);
    order
}

fn state(row: &v1::Generation) -> (&str, i32, Option<&str>) {
    let reconciliation = row.reconciliation.as_ref().unwrap();
    (
        reconciliation.state.as_str(),
        reconciliation.attempts,
        reconciliation.error.as_deref(),
    )
}

fn minutes_to_next(row: &v1::Generation, from: &prost_types::Timestamp) -> Option<i64> {
    let next = row.reconciliation.as_ref().unwrap().next_at.as_ref()?;
    Some((next.seconds - from.seconds + 30) / 60)
}

pub async fn g_065_a_minute_after_the_settling_and_not_before(stack: Stack) {
    let u1 = stack.user("u1");
    let mut driver = u1.follow_able("k1").await;
    let id = waiting(&u1, "r1").await;
    stack.r1.time.advance(Duration::from_secs(50));
    assert!(driver.due().await.is_empty());
    stack.r1.time.advance(Duration::from_secs(10));
    let order = only(&mut driver).await;
    let row = order.generation.as_ref().unwrap();
    assert_eq!((row.generation_id.as_str(), order.manual), (id.as_str(), false));
    assert_eq!(row.attempts[0].provider_request_id.as_deref(), Some("r1"));
    // Claimed: nobody else is told for as long as the claim holds.
    assert!(driver.due().await.is_empty());
}

pub async fn g_066_a_bill_replaces_the_cost_and_ends_the_queue(stack: Stack) {
    let u1 = stack.user("u1");
    let mut driver = u1.follow_able("k1").await;
    let id = waiting(&u1, "r1").await;
    stack.r1.time.advance(MINUTE);
    let before = u1.get(&id).await;
    let order = only(&mut driver).await;
    let row = say(&u1, billed(&order, &[(1, "1.25")])).await;
    assert_eq!(
        (amount(row.cost.as_ref()), row.price_source.as_deref()),
        (Some("1.250000000"), Some("provider-billing"))
    );
    assert_eq!(amount(row.estimated_cost.as_ref()), Some("0.040000000"));
    assert_eq!(state(&row), ("done", 1, None));
    assert_eq!((row.status(), row.version), (Is::Completed, before.version + 1));
    let reconciliation = row.reconciliation.clone().unwrap();
    assert!(reconciliation.reconciled_at.is_some() && reconciliation.next_at.is_none());
    let history = fact(&row, "reconcile_history").unwrap();
    let entry = history.as_list().unwrap()[0].as_map().unwrap().clone();
    assert_eq!(
        (&entry["before"], &entry["after"]),
        (&Value::from("0.040000000"), &Value::from("1.250000000"))
    );
    stack.r1.time.advance(Duration::from_hours(30));
    assert!(driver.due().await.is_empty());
    assert_eq!(u1.total().await.costs[0].amount, "1.250000000");
}

pub async fn g_067_five_looks_in_vain_exhaust_the_row(stack: Stack) {
    let u1 = stack.user("u1");
    let mut driver = u1.follow_able("k1").await;
    let id = waiting(&u1, "r1").await;
    let pauses = [1, 5, 30, 120, 720].into_iter().enumerate();
    for (number, minutes) in pauses {
        stack
            .r1
            .time
            .advance(Duration::from_mins(minutes) - Duration::from_secs(8));
        assert!(driver.due().await.is_empty(), "look {number} is not due yet");
        stack.r1.time.advance(Duration::from_secs(8));
        let order = only(&mut driver).await;
        let row = say(&u1, report(&order, Found::NotYet)).await;
        let attempts = i32::try_from(number).unwrap() + 1;
        let expected = if attempts < 5 { "queued" } else { "exhausted" };
        assert_eq!(state(&row), (expected, attempts, Some("billing not posted")));
    }
    stack.r1.time.advance(Duration::from_hours(1_000));
    assert!(driver.due().await.is_empty());
    let row = u1.get(&id).await;
    assert_eq!(text_fact(&row, "reconcile").as_deref(), Some("exhausted"));
    assert_eq!(
        (amount(row.cost.as_ref()), row.price_source.as_deref()),
        (Some("0.040000000"), Some("model-catalog"))
    );
}

pub async fn g_068_an_error_is_a_look_in_vain_and_changes_nothing_else(stack: Stack) {
    let u1 = stack.user("u1");
    let mut driver = u1.follow_able("k1").await;
    let id = waiting(&u1, "r1").await;
    stack.r1.time.advance(MINUTE);
    let before = u1.get(&id).await;
    let order = only(&mut driver).await;
    let row = say(
        &u1,
        v1::ReportReconciliationRequest {
            error: Some("boom".into()),
            ..report(&order, Found::Error)
        },
    )
    .await;
    assert_eq!(state(&row), ("queued", 1, Some("boom")));
    let settled = before.completed_at.unwrap();
    assert_eq!(minutes_to_next(&row, &settled), Some(6));
    assert_eq!(row.cost, before.cost);
    // A bill that is no amount is an answer that cannot be read.
    stack.r1.time.advance(Duration::from_mins(5));
    let order = only(&mut driver).await;
    let row = say(&u1, billed(&order, &[(1, "NaN")])).await;
    let (word, attempts, error) = state(&row);
    assert_eq!((word, attempts), ("queued", 2));
    assert!(error.unwrap().contains("not a finite amount"), "{error:?}");
    assert_eq!(row.cost, before.cost);
}

pub async fn g_070_a_provider_without_bills_leaves_the_queue_in_one_pass(stack: Stack) {
    let u1 = stack.user("u1");
    let mut driver = u1.follow_able("k1").await;
    waiting(&u1, "r1").await;
    stack.r1.time.advance(MINUTE);
    let order = only(&mut driver).await;
    let row = say(&u1, report(&order, Found::Unsupported)).await;
    assert_eq!(state(&row), ("unavailable", 0, None));
    assert!(row.reconciliation.as_ref().unwrap().reconciled_at.is_some());
    assert_eq!(text_fact(&row, "reconcile").as_deref(), Some("unavailable"));
    assert_eq!(amount(row.cost.as_ref()), Some("0.040000000"));
    stack.r1.time.advance(Duration::from_hours(30));
    assert!(driver.due().await.is_empty());
}

pub async fn g_071_a_denied_key_waits_for_another_one(stack: Stack) {
    let u1 = stack.user("u1");
    let mut driver = u1.follow_able("k1").await;
    let id = waiting(&u1, "r1").await;
    stack.r1.time.advance(MINUTE);
    let order = only(&mut driver).await;
    let denied = v1::ReportReconciliationRequest {
        error: Some("not an administrator's".into()),
        credential: Some("k1".into()),
        ..report(&order, Found::Denied)
    };
    let row = say(&u1, denied).await;
    assert_eq!(state(&row), ("denied", 0, Some("not an administrator's")));
    stack.r1.time.advance(Duration::from_hours(30));
    assert!(driver.due().await.is_empty());
    driver.hang_up().await;
    // The same key again changes nothing.
    let mut same = u1.follow_able("k1").await;
    assert!(same.due().await.is_empty());
    same.hang_up().await;
    let mut driver = u1.follow_able("k2").await;
    let mut due = std::mem::take(&mut driver.bills);
    due.extend(driver.due().await);
    assert_eq!(due.len(), 1);
    let row = say(&u1, billed(&due[0], &[(1, "0.05")])).await;
    assert_eq!(state(&row), ("done", 1, None));
    assert_eq!(text_fact(&row, "reconcile"), None);
    assert_eq!(u1.get(&id).await, row);
}

pub async fn g_072_what_is_due_is_not_starved_by_what_is_not(stack: Stack) {
    let u1 = stack.user("u1");
    let mut driver = u1.follow_able("k1").await;
    let first = waiting(&u1, "r1").await;
    copies(&stack, &first, 60, |n, row| {
        row.provider_request_id = Some(format!("later-{n}"));
        row.created_at -= 1_000_000;
        row.reconcile_next_at = row.reconcile_next_at.map(|at| at + 720 * 60_000_000);
    })
    .await;
    stack.r1.time.advance(MINUTE);
    let order = only(&mut driver).await;
    assert_eq!(order.generation.unwrap().generation_id, first);
}

pub async fn g_073_two_replicas_drain_the_queue_without_looking_twice(stack: Stack) {
    let r2 = stack.replica().await;
    let (one, two) = (stack.user("u1"), stack.user_of(&r2, "u1").driven_by("i2"));
    let id = waiting(&one, "r1").await;
    copies(&stack, &id, 199, |_, _| {}).await;
    for replica in [&stack.r1, &r2] {
        replica.time.advance(MINUTE);
    }
    let (mut first, mut second) = (one.follow_able("k1").await, two.follow_able("k1").await);
    let mut seen = HashSet::new();
    for _ in 0..20 {
        let (some, others) = tokio::join!(first.due(), second.due());
        for order in some.into_iter().chain(others) {
            let id = order.generation.unwrap().generation_id;
            assert!(seen.insert(id), "nobody looks twice");
        }
        if seen.len() == 200 {
            break;
        }
    }
    assert_eq!(seen.len(), 200);
    assert!(first.due().await.is_empty() && second.due().await.is_empty());
}

pub async fn g_074_a_claim_whose_owner_died_is_free_after_a_minute(stack: Stack) {
    let u1 = stack.user("u1");
    let mut dead = u1.follow_able("k1").await;
    waiting(&u1, "r1").await;
    stack.r1.time.advance(MINUTE);
    let lost = only(&mut dead).await;
    dead.hang_up().await;
    let mut driver = u1.driven_by("i2").follow_able("k1").await;
    stack.r1.time.advance(Duration::from_secs(50));
    assert!(driver.due().await.is_empty());
    stack.r1.time.advance(Duration::from_secs(11));
    let order = only(&mut driver).await;
    assert_eq!(state(order.generation.as_ref().unwrap()), ("queued", 0, None));
    assert_ne!(order.claim, lost.claim);
    // What the dead one still says is not heard.
    let late = u1
        .report_reconciliation(report(&lost, Found::NotYet))
        .await
        .unwrap();
    assert!(!late.accepted);
    assert_eq!(state(&late.generation.unwrap()), ("queued", 0, None));
    assert_eq!(
        say(&u1, billed(&order, &[(1, "0.1")]))
            .await
            .reconciliation
            .unwrap()
            .attempts,
        1
    );
}

pub async fn g_075_g_076_a_look_by_hand_spends_no_attempt(stack: Stack) {
    let u1 = stack.user("u1");
    let id = waiting(&u1, "r1").await;
    let before = u1.get(&id).await;
    let order = by_hand(&u1, &id).await;
    let row = say(&u1, report(&order, Found::NotYet)).await;
    assert_eq!(state(&row).0, "queued");
    let (old, new) = (
        before.reconciliation.unwrap(),
        row.reconciliation.clone().unwrap(),
    );
    assert_eq!((old.attempts, old.next_at), (new.attempts, new.next_at));
    assert_eq!(fact(&row, "manual_reconciles"), Some(Value::Int(1)));
    // On a row that is exhausted it may find the bill all the same.
    use atelier_tracker::entity::generations::{Column, Entity};
    use atelier_tracker::entity::words::ReconcileState;
    let tx = stack.db.begin().await.unwrap();
    Entity::update_many()
        .col_expr(
            Column::ReconcileState,
            sea_orm::sea_query::Expr::value(ReconcileState::Exhausted),
        )
        .filter(Column::Id.eq(id.as_str()))
        .exec(&*tx)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    for outcome in [Found::NotYet, Found::Denied, Found::Unsupported] {
        let order = by_hand(&u1, &id).await;
        assert_eq!(state(&say(&u1, report(&order, outcome)).await).0, "exhausted");
    }
    let order = by_hand(&u1, &id).await;
    let row = say(&u1, billed(&order, &[(1, "0.9")])).await;
    assert_eq!((state(&row).0, state(&row).1), ("done", 0));
    assert_eq!(amount(row.cost.as_ref()), Some("0.900000000"));
    assert_eq!(fact(&row, "manual_reconciles"), Some(Value::Int(5)));
}

pub async fn g_077_nobody_looks_for_bills_of_others(stack: Stack) {
    let (u1, u2) = (stack.user("u1"), stack.user("u2"));
    let id = waiting(&u1, "r1").await;
    let request = |id: &str| v1::ClaimReconciliationRequest {
        generation_id: id.into(),
    };
    let foreign = u2.claim_reconciliation(request(&id)).await;
    let missing = u2
        .claim_reconciliation(request(&uuid::Uuid::now_v7().to_string()))
        .await;
    let foreign = refused(foreign, Code::NotFound, reason::GENERATION_NOT_FOUND);
    let missing = refused(missing, Code::NotFound, reason::GENERATION_NOT_FOUND);
    assert_eq!(foreign.details(), missing.details());
    let order = by_hand(&u1, &id).await;
    refused(
        u2.report_reconciliation(billed(&order, &[(1, "0")])).await,
        Code::NotFound,
        reason::GENERATION_NOT_FOUND,
    );
    assert_eq!(amount(u1.get(&id).await.cost.as_ref()), Some("0.040000000"));
}

pub async fn g_078_a_look_by_hand_waits_for_nobody(stack: Stack) {
    let u1 = stack.user("u1");
    let mut driver = u1.follow_able("k1").await;
    let id = waiting(&u1, "r1").await;
    stack.r1.time.advance(MINUTE);
    let _claimed = only(&mut driver).await;
    let request = v1::ClaimReconciliationRequest {
        generation_id: id.clone(),
    };
    refused(
        u1.claim_reconciliation(request).await,
        Code::FailedPrecondition,
        reason::RECONCILE_IN_PROGRESS,
    );
    stack.r1.time.advance(Duration::from_secs(61));
    by_hand(&u1, &id).await;
    assert!(driver.due().await.is_empty(), "a look by hand is a look");
}

pub async fn g_079_g_080_g_081_every_way_to_settle_is_billed(stack: Stack) {
    let u1 = stack.user("u1");
    let orphan = u1.driven_by("gone").bound("r3").await;
    assert_eq!(u1.sweep().await, 1);
    let mut driver = u1.follow_able("k1").await;
    let failed = u1.bound("r1").await;
    u1.fail(&failed).await.unwrap();
    let cancelled = u1.bound("r2").await;
    u1.cancel(&cancelled).await;
    stack.r1.time.advance(MINUTE);
    let due = driver.due().await;
    assert_eq!(due.len(), 3);
    for order in &due {
        let id = order.generation.as_ref().unwrap().generation_id.clone();
        let bill = if id == failed { "0.02" } else { "0" };
        let before = u1.get(&id).await.status();
        let row = say(&u1, billed(order, &[(1, bill)])).await;
        assert_eq!((row.status(), state(&row).0), (before, "done"));
    }
    assert_eq!(amount(u1.get(&failed).await.cost.as_ref()), Some("0.020000000"));
    for free in [&cancelled, &orphan] {
        let row = u1.get(free).await;
        assert_eq!(amount(row.cost.as_ref()), Some("0.000000000"));
        assert_eq!(text_fact(&row, "unpriced_reason"), None);
    }
    let total = u1.total().await;
    assert_eq!(
        (total.costs[0].amount.as_str(), total.unpriced_count),
        ("0.020000000", 0)
    );
}

pub async fn g_088_g_089_due_times_are_the_databases(stack: Stack) {
    // The due time is a column that the database's clock wrote and is compared with: a look that was made is made,
    // whatever a clock says afterwards.
    let u1 = stack.user("u1");
    let mut driver = u1.follow_able("k1").await;
    waiting(&u1, "r1").await;
    stack.r1.time.advance(MINUTE);
    let order = only(&mut driver).await;
    say(&u1, report(&order, Found::NotYet)).await;
    let r2 = stack.replica().await;
    // This replica's clock is behind by all that the first one was moved on: for it nothing is due.
    let mut behind = stack.user_of(&r2, "u1").driven_by("i2").follow_able("k1").await;
    assert!(behind.due().await.is_empty());
    r2.time.advance(Duration::from_mins(6));
    let order = only(&mut behind).await;
    let row = say(&u1, report(&order, Found::NotYet)).await;
    assert_eq!(state(&row).1, 2);
    stack.r1.time.advance(Duration::from_mins(5));
    assert!(driver.due().await.is_empty(), "the look was made already");
}

pub async fn g_090_a_stale_report_is_ignored(stack: Stack) {
    let u1 = stack.user("u1");
    let mut driver = u1.follow_able("k1").await;
    let id = waiting(&u1, "r1").await;
    stack.r1.time.advance(MINUTE);
    let order = only(&mut driver).await;
    say(&u1, billed(&order, &[(1, "0.5")])).await;
    let row = u1.get(&id).await;
    for stale in [report(&order, Found::NotYet), billed(&order, &[(1, "9")])] {
        let answer = u1.report_reconciliation(stale).await.unwrap();
        assert!(!answer.accepted);
        assert_eq!(answer.generation.unwrap(), row);
    }
}

pub async fn g_031_a_row_is_done_when_every_submission_is_billed(stack: Stack) {
    let u1 = stack.user("u1");
    let mut driver = u1.follow_able("k1").await;
    let id = u1.bound("r1").await;
    u1.bind(&id, "r2").await.unwrap();
    u1.close_generation(v1::CloseGenerationRequest {
        receipt: receipt(Some("r2"), None),
        ..u1.to_complete(&id)
    })
    .await
    .unwrap();
    stack.r1.time.advance(MINUTE);
    let order = only(&mut driver).await;
    assert_eq!(order.generation.as_ref().unwrap().attempts.len(), 2);
    // One of them has its bill: it is kept, and the row waits for the other.
    let half = v1::ReportReconciliationRequest {
        outcome: Found::NotYet.into(),
        ..billed(&order, &[(2, "0.04")])
    };
    let row = say(&u1, half).await;
    assert_eq!(state(&row), ("queued", 1, Some("billing not posted")));
    assert_eq!(amount(row.attempts[1].cost.as_ref()), Some("0.040000000"));
    stack.r1.time.advance(Duration::from_mins(5));
    let order = only(&mut driver).await;
    let row = say(&u1, billed(&order, &[(1, "0.01"), (2, "0.04")])).await;
    assert_eq!(
        (amount(row.cost.as_ref()), state(&row).0),
        (Some("0.050000000"), "done")
    );
}

pub async fn what_is_running_or_has_no_id_has_no_bill(stack: Stack) {
    let u1 = stack.user("u1");
    let running = u1.bound("r1").await;
    let unsent = u1.open().await;
    u1.fail(&unsent).await.unwrap();
    for (id, why) in [(&running, "still running"), (&unsent, "no request id")] {
        let request = v1::ClaimReconciliationRequest {
            generation_id: id.clone(),
        };
        let answer = u1.claim_reconciliation(request).await.unwrap();
        assert!(answer.order.is_none());
        assert_eq!(answer.reason.as_deref(), Some(why));
        assert_eq!(answer.generation.unwrap().generation_id, *id);
    }
}

pub async fn bills_are_looked_for_by_drivers_that_know_of_them(stack: Stack) {
    let u1 = stack.user("u1");
    let mut old = u1.follow().await;
    waiting(&u1, "r1").await;
    stack.r1.time.advance(MINUTE);
    assert!(old.due().await.is_empty());
    let mut driver = u1.driven_by("i2").follow_able("k1").await;
    let mut due = std::mem::take(&mut driver.bills);
    due.extend(driver.due().await);
    assert_eq!(due.len(), 1);
}

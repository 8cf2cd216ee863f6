//! Budgets: what is admitted, held, settled and given back; and who may see and set them.

use std::collections::BTreeMap;
use std::time::Duration;

use atelier_proto::common::v1::{Money, Origin};
use atelier_proto::reason;
use atelier_proto::tracker::v1::{
    self, Budget, BudgetKind as Kind, BudgetPeriod as Period, GenerationStatus as Is, SetBudgetRequest,
    SubmissionStatus, UnpricedPolicy,
};
use atelier_tracker::entity::budget_words::Hold;
use atelier_tracker::entity::words::{PriceSource, ReconcileState};
use atelier_tracker::entity::{budget_holds, budget_windows, budgets, generations};
use sea_orm::{ActiveModelTrait, EntityTrait, IntoActiveModel, Set};
use tonic::Code;
use tonic_types::StatusExt;
use uuid::Uuid;

use crate::stack::{Stack, User, charge, charge_in, receipt, refused};

fn usd(amount: &str) -> Option<Money> {
    charge(amount).cost
}

/// A budget of all calls of whoever sets it, for ever.
fn total(limit: &str) -> SetBudgetRequest {
    SetBudgetRequest {
        kind: Kind::User.into(),
        period: Period::Total.into(),
        limit: usd(limit),
        ..Default::default()
    }
}

async fn set(user: &User, request: SetBudgetRequest) -> Budget {
    let answer = user.set_budget(request).await.unwrap();
    assert!(answer.created);
    answer.budget.unwrap()
}

async fn read(user: &User, budget: &Budget) -> Budget {
    let budget_id = budget.budget_id.clone();
    let answer = user.get_budget(v1::GetBudgetRequest { budget_id }).await.unwrap();
    answer.budget.unwrap()
}

/// Spent, held and counted.
async fn used(user: &User, budget: &Budget) -> (String, String, i64) {
    let budget = read(user, budget).await;
    let short = |money: Option<Money>| money.unwrap().amount.trim_end_matches('0').to_owned();
    (short(budget.spent), short(budget.held), budget.calls)
}

fn is(spent: &str, held: &str, calls: i64) -> (String, String, i64) {
    (spent.to_owned(), held.to_owned(), calls)
}

fn at(user: &User, estimate: &str) -> v1::OpenGenerationRequest {
    v1::OpenGenerationRequest {
        estimate: Some(charge(estimate)),
        ..user.to_open()
    }
}

/// Every number of every budget is the sum over its holds.
async fn audit(stack: &Stack) {
    let db = stack.db.read();
    let holds = budget_holds::Entity::find().all(db).await.unwrap();
    for budget in budgets::Entity::find().all(db).await.unwrap() {
        let own: Vec<_> = holds.iter().filter(|hold| hold.budget_id == budget.id).collect();
        let held: i64 = own
            .iter()
            .filter(|hold| hold.state == Hold::Held)
            .map(|hold| hold.estimate)
            .sum();
        assert_eq!(budget.held, held);
        let mut windows: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
        for hold in own {
            if hold.state != Hold::Released {
                windows.entry(hold.opened_in).or_default().1 += 1;
            }
            if let Some(amount) = hold.amount {
                windows.entry(hold.settled_in.unwrap()).or_default().0 += amount;
            }
        }
        for window in budget_windows::Entity::find().all(db).await.unwrap() {
            if window.budget_id == budget.id {
                let expected = windows.remove(&window.starts_at).unwrap_or_default();
                assert_eq!((window.spent, window.calls), expected);
            }
        }
        assert!(windows.is_empty(), "{windows:?}");
    }
}

/// What a reconciliation makes of a row: a bill, or the end of the hope for one.
async fn reconciled(stack: &Stack, user_id: &str, id: &str, state: ReconcileState, billed: Option<i64>) {
    let row = generations::Entity::find_by_id(id.to_owned())
        .one(stack.db.read())
        .await
        .unwrap()
        .unwrap();
    let mut row = row.into_active_model();
    row.reconcile_state = Set(state);
    if let Some(billed) = billed {
        row.cost = Set(Some(billed));
        row.currency = Set(Some("USD".into()));
        row.price_source = Set(Some(PriceSource::Billing));
    }
    let tx = stack.db.begin().await.unwrap();
    row.update(&*tx).await.unwrap();
    tx.commit().await.unwrap();
    stack.r1.ledger.recount(user_id, id).await.unwrap();
}

/// Opens, submits and fails a call that the provider knows of.
async fn failed(user: &User, estimate: &str) -> String {
    let id = user.opened(at(user, estimate)).await.generation_id;
    user.mark(&id).await.unwrap();
    user.bind(&id, &format!("r-{id}")).await.unwrap();
    user.fail(&id).await.unwrap();
    id
}

pub async fn a_budget_is_set_read_listed_and_removed(stack: Stack) {
    let u1 = stack.user("u1");
    let request = SetBudgetRequest {
        kind: Kind::Project.into(),
        key: "p1".into(),
        period: Period::Month.into(),
        time_zone: "europe/berlin".into(),
        limit: usd("50"),
        max_calls: Some(100),
        unpriced: UnpricedPolicy::Assume.into(),
        assumed_cost: usd("0.5"),
        ..Default::default()
    };
    let budget = set(&u1, request.clone()).await;
    assert_eq!(
        (budget.user_id.as_str(), budget.kind(), budget.key.as_str()),
        ("u1", Kind::Project, "p1")
    );
    assert_eq!(
        (budget.period(), budget.time_zone.as_str()),
        (Period::Month, "Europe/Berlin")
    );
    assert_eq!(
        (budget.unpriced(), budget.assumed_cost.clone()),
        (UnpricedPolicy::Assume, usd("0.500000000"))
    );
    assert_eq!(
        (budget.limit.clone(), budget.remaining.clone()),
        (usd("50.000000000"), usd("50.000000000"))
    );
    assert!(!budget.managed && budget.period_start.is_some() && budget.period_end.is_some());
    assert_eq!(read(&u1, &budget).await, budget);
    // Setting it again changes it and keeps its id; what is used stays.
    let changed = SetBudgetRequest {
        limit: usd("7"),
        max_calls: None,
        unpriced: UnpricedPolicy::Unspecified.into(),
        assumed_cost: None,
        ..request.clone()
    };
    let answer = u1.set_budget(changed).await.unwrap();
    let after = answer.budget.unwrap();
    assert!(!answer.created);
    assert_eq!(
        (&after.budget_id, after.limit.clone()),
        (&budget.budget_id, usd("7.000000000"))
    );
    assert_eq!((after.max_calls, after.unpriced()), (None, UnpricedPolicy::Allow));
    // Another period or currency is another budget.
    let mut ids = vec![budget.budget_id.clone()];
    for n in 0..4 {
        let other = SetBudgetRequest {
            key: format!("p{n}"),
            period: Period::Day.into(),
            ..request.clone()
        };
        ids.push(set(&u1, other).await.budget_id);
    }
    let mut listed = Vec::new();
    let mut page_token = String::new();
    loop {
        let page = v1::ListBudgetsRequest {
            page_size: 2,
            page_token,
            ..Default::default()
        };
        let page = u1.list_budgets(page).await.unwrap();
        listed.extend(page.budgets.into_iter().map(|budget| budget.budget_id));
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }
    assert_eq!(listed, ids);
    let budget_id = budget.budget_id.clone();
    u1.delete_budget(v1::DeleteBudgetRequest {
        budget_id: budget_id.clone(),
    })
    .await
    .unwrap();
    for _ in 0..2 {
        let gone = u1
            .delete_budget(v1::DeleteBudgetRequest {
                budget_id: budget_id.clone(),
            })
            .await;
        refused(gone, Code::NotFound, reason::BUDGET_NOT_FOUND);
    }
    let wrong = v1::ListBudgetsRequest {
        page_token: "nonsense".into(),
        ..Default::default()
    };
    refused(
        u1.list_budgets(wrong).await,
        Code::InvalidArgument,
        reason::INVALID_PAGE_TOKEN,
    );
}

pub async fn bad_fields_of_budgets_are_named(stack: Stack) {
    let u1 = stack.user("u1");
    let good = total("1");
    let bad = [
        (
            "kind",
            SetBudgetRequest {
                kind: 0,
                ..good.clone()
            },
        ),
        (
            "kind",
            SetBudgetRequest {
                kind: 77,
                ..good.clone()
            },
        ),
        (
            "key",
            SetBudgetRequest {
                key: "p1".into(),
                ..good.clone()
            },
        ),
        (
            "key",
            SetBudgetRequest {
                kind: Kind::Project.into(),
                ..good.clone()
            },
        ),
        (
            "key",
            SetBudgetRequest {
                kind: Kind::Run.into(),
                key: "x".repeat(1_000),
                ..good.clone()
            },
        ),
        (
            "period",
            SetBudgetRequest {
                period: 0,
                ..good.clone()
            },
        ),
        (
            "time_zone",
            SetBudgetRequest {
                time_zone: "Mars/Base".into(),
                ..good.clone()
            },
        ),
        (
            "limit",
            SetBudgetRequest {
                limit: None,
                ..good.clone()
            },
        ),
        (
            "limit",
            SetBudgetRequest {
                limit: usd("-1"),
                ..good.clone()
            },
        ),
        (
            "limit",
            SetBudgetRequest {
                limit: usd("NaN"),
                ..good.clone()
            },
        ),
        (
            "max_calls",
            SetBudgetRequest {
                max_calls: Some(-1),
                ..good.clone()
            },
        ),
        (
            "unpriced",
            SetBudgetRequest {
                unpriced: 9,
                ..good.clone()
            },
        ),
        (
            "assumed_cost",
            SetBudgetRequest {
                assumed_cost: usd("1"),
                ..good.clone()
            },
        ),
        (
            "assumed_cost",
            SetBudgetRequest {
                unpriced: UnpricedPolicy::Assume.into(),
                ..good.clone()
            },
        ),
        (
            "assumed_cost",
            SetBudgetRequest {
                unpriced: UnpricedPolicy::Assume.into(),
                assumed_cost: charge_in("1", "EUR").cost,
                ..good.clone()
            },
        ),
    ];
    for (field, request) in bad {
        let status = refused(
            u1.set_budget(request).await,
            Code::InvalidArgument,
            reason::INVALID_FIELD,
        );
        assert_eq!(
            status.get_details_bad_request().unwrap().field_violations[0].field,
            field
        );
    }
    set(&u1, good.clone()).await;
    let moved = SetBudgetRequest {
        time_zone: "Europe/Berlin".into(),
        ..good
    };
    let status = refused(
        u1.set_budget(moved).await,
        Code::InvalidArgument,
        reason::INVALID_FIELD,
    );
    assert_eq!(
        status.get_details_bad_request().unwrap().field_violations[0].field,
        "time_zone"
    );
}

pub async fn budgets_of_others_do_not_exist(stack: Stack) {
    let (u1, u2) = (stack.user("u1"), stack.user("u2"));
    let budget = set(&u1, total("0")).await;
    let told = |status: tonic::Status| (status.message().to_owned(), status.details().to_vec());
    let unknown = Uuid::now_v7().to_string();
    let mut answers = Vec::new();
    for budget_id in [budget.budget_id.as_str(), &unknown, "nothing", ""] {
        let budget_id = budget_id.to_owned();
        let get = u2
            .get_budget(v1::GetBudgetRequest {
                budget_id: budget_id.clone(),
            })
            .await;
        let delete = u2.delete_budget(v1::DeleteBudgetRequest { budget_id }).await;
        answers.push(told(refused(get, Code::NotFound, reason::BUDGET_NOT_FOUND)));
        answers.push(told(refused(delete, Code::NotFound, reason::BUDGET_NOT_FOUND)));
    }
    answers.dedup();
    assert_eq!(answers.len(), 1);
    assert!(
        u2.list_budgets(v1::ListBudgetsRequest::default())
            .await
            .unwrap()
            .budgets
            .is_empty()
    );
    for user_id in ["u1", "*"] {
        let foreign = SetBudgetRequest {
            user_id: user_id.into(),
            ..total("5")
        };
        refused(
            u2.set_budget(foreign).await,
            Code::PermissionDenied,
            reason::ADMIN_ONLY,
        );
        let list = v1::ListBudgetsRequest {
            user_id: user_id.into(),
            ..Default::default()
        };
        refused(
            u2.list_budgets(list).await,
            Code::PermissionDenied,
            reason::ADMIN_ONLY,
        );
    }
    // Nor does it bound them: not even the same project or run is the same.
    u2.open().await;
    refused(
        u1.open_generation(u1.to_open()).await,
        Code::ResourceExhausted,
        reason::BUDGET_EXCEEDED,
    );
}

pub async fn an_admins_budget_binds_and_cannot_be_changed_by_its_user(stack: Stack) {
    let (u1, u2, operator) = (stack.user("u1"), stack.user("u2"), stack.user("operator"));
    let budget = set(
        &operator,
        SetBudgetRequest {
            user_id: "u1".into(),
            ..total("0.05")
        },
    )
    .await;
    assert!(budget.managed);
    // The user's own is another one, and the narrower of the two decides.
    set(&u1, total("100")).await;
    u1.open().await;
    let status = refused(
        u1.open_generation(u1.to_open()).await,
        Code::ResourceExhausted,
        reason::BUDGET_EXCEEDED,
    );
    let told = status.get_details_error_info().unwrap().metadata;
    assert_eq!(told["budget_id"], budget.budget_id);
    let keys = ["limit", "spent", "reserved", "estimate"].map(|key| told[key].as_str());
    assert_eq!(keys, ["0.050000000", "0.000000000", "0.040000000", "0.040000000"]);
    let budget_id = budget.budget_id.clone();
    let delete = u1
        .delete_budget(v1::DeleteBudgetRequest {
            budget_id: budget_id.clone(),
        })
        .await;
    refused(delete, Code::PermissionDenied, reason::BUDGET_MANAGED);
    assert_eq!(
        u1.list_budgets(v1::ListBudgetsRequest::default())
            .await
            .unwrap()
            .budgets
            .len(),
        2
    );
    operator
        .delete_budget(v1::DeleteBudgetRequest { budget_id })
        .await
        .unwrap();
    u1.open().await;
    // One of everybody bounds all together, and tells nobody what others spend.
    set(
        &operator,
        SetBudgetRequest {
            user_id: "*".into(),
            ..total("0.04")
        },
    )
    .await;
    u1.open().await;
    let status = refused(
        u2.open_generation(u2.to_open()).await,
        Code::ResourceExhausted,
        reason::BUDGET_EXCEEDED,
    );
    let told = status.get_details_error_info().unwrap().metadata;
    assert!(!told.contains_key("spent") && !told.contains_key("reserved"));
    assert!(
        u2.list_budgets(v1::ListBudgetsRequest::default())
            .await
            .unwrap()
            .budgets
            .is_empty()
    );
    audit(&stack).await;
}

pub async fn a_budget_bounds_the_calls_of_its_scope(stack: Stack) {
    let origin = Origin {
        project_id: Some("p1".into()),
        workflow_id: Some("w1".into()),
        job_id: Some("j1".into()),
        ..Default::default()
    };
    let scopes = [
        (Kind::Project, "p1"),
        (Kind::Workflow, "w1"),
        (Kind::Run, "j1"),
        (Kind::Provider, "acme"),
    ];
    for (n, (kind, key)) in scopes.into_iter().enumerate() {
        let user = stack.user(&format!("u{n}"));
        let request = SetBudgetRequest {
            kind: kind.into(),
            key: key.into(),
            ..total("0.04")
        };
        set(&user, request).await;
        let inside = || v1::OpenGenerationRequest {
            origin: Some(origin.clone()),
            ..user.to_open()
        };
        let outside = v1::OpenGenerationRequest {
            provider: "other".into(),
            ..user.to_open()
        };
        user.opened(inside()).await;
        let status = refused(
            user.open_generation(inside()).await,
            Code::ResourceExhausted,
            reason::BUDGET_EXCEEDED,
        );
        let told = status.get_details_error_info().unwrap().metadata;
        assert!(told["scope"].ends_with(&format!(":{key}")), "{told:?}");
        for _ in 0..3 {
            user.opened(v1::OpenGenerationRequest {
                generation_id: Uuid::now_v7().to_string(),
                ..outside.clone()
            })
            .await;
        }
    }
    audit(&stack).await;
}

pub async fn g_119_of_two_calls_that_do_not_fit_together_one_is_refused(stack: Stack) {
    let r2 = stack.replica().await;
    for round in 0..10 {
        let name = format!("u{round}");
        let (one, two) = (stack.user(&name), stack.user_of(&r2, &name));
        let budget = set(&one, total("0.10")).await;
        let (first, second) = tokio::join!(
            one.open_generation(at(&one, "0.06")),
            two.open_generation(at(&two, "0.06"))
        );
        assert!(first.is_ok() ^ second.is_ok(), "{first:?} {second:?}");
        let refusal = if first.is_err() { first } else { second };
        refused(refusal, Code::ResourceExhausted, reason::BUDGET_EXCEEDED);
        // No row, so no call.
        assert_eq!(one.all().await.len(), 1);
        assert_eq!(used(&one, &budget).await, is("0.", "0.06", 1));
    }
    audit(&stack).await;
}

pub async fn g_120_a_call_that_uses_it_up_exactly_is_admitted(stack: Stack) {
    let u1 = stack.user("u1");
    let budget = set(&u1, total("0.12")).await;
    u1.opened(at(&u1, "0.06")).await;
    u1.opened(at(&u1, "0.06")).await;
    assert_eq!(used(&u1, &budget).await, is("0.", "0.12", 2));
    let more = u1.open_generation(at(&u1, "0.000000001")).await;
    refused(more, Code::ResourceExhausted, reason::BUDGET_EXCEEDED);
}

pub async fn g_121_what_may_be_billed_stays_held_until_the_bill(stack: Stack) {
    let u1 = stack.user("u1");
    let budget = set(&u1, total("1")).await;
    let id = failed(&u1, "0.06").await;
    assert_eq!(used(&u1, &budget).await, is("0.", "0.06", 1));
    u1.sweep().await;
    assert_eq!(used(&u1, &budget).await, is("0.", "0.06", 1));
    reconciled(&stack, "u1", &id, ReconcileState::Done, Some(0)).await;
    assert_eq!(used(&u1, &budget).await, is("0.", "0.", 1));
    audit(&stack).await;
}

pub async fn g_122_holds_outlive_the_process(stack: Stack) {
    let u1 = stack.user("u1");
    let budget = set(&u1, total("0.10")).await;
    u1.opened(at(&u1, "0.06")).await;
    let restarted = stack.user_of(&stack.replica().await, "u1");
    assert_eq!(used(&restarted, &budget).await, is("0.", "0.06", 1));
    let more = restarted.open_generation(at(&restarted, "0.06")).await;
    refused(more, Code::ResourceExhausted, reason::BUDGET_EXCEEDED);
}

pub async fn g_123_a_close_that_is_repeated_settles_once(stack: Stack) {
    let u1 = stack.user("u1");
    let budget = set(&u1, total("1")).await;
    let id = u1.opened(at(&u1, "0.06")).await.generation_id;
    u1.mark(&id).await.unwrap();
    for _ in 0..3 {
        u1.complete(&id).await.unwrap();
        // At the row's cost, not at the estimate.
        assert_eq!(used(&u1, &budget).await, is("0.04", "0.", 1));
    }
    audit(&stack).await;
}

pub async fn g_124_a_call_without_a_price_is_refused_where_it_must_have_one(stack: Stack) {
    let u1 = stack.user("u1");
    let deny = SetBudgetRequest {
        unpriced: UnpricedPolicy::Deny.into(),
        ..total("1")
    };
    set(&u1, deny).await;
    let unpriced = v1::OpenGenerationRequest {
        estimate: None,
        ..u1.to_open()
    };
    let euro = v1::OpenGenerationRequest {
        estimate: Some(charge_in("0.1", "EUR")),
        ..u1.to_open()
    };
    for request in [unpriced, euro] {
        let answer = u1.open_generation(request).await;
        refused(answer, Code::FailedPrecondition, reason::UNPRICED_DENIED);
    }
    assert!(u1.all().await.is_empty());
    u1.open().await;
}

pub async fn g_125_a_lower_bill_gives_back_in_the_period_of_the_settling(stack: Stack) {
    let u1 = stack.user("u1");
    let daily = SetBudgetRequest {
        period: Period::Day.into(),
        ..total("1")
    };
    let budget = set(&u1, daily).await;
    let settle = async |cost: &str| {
        let id = u1.opened(at(&u1, "0.10")).await.generation_id;
        u1.mark(&id).await.unwrap();
        let close = v1::CloseGenerationRequest {
            receipt: receipt(Some(&format!("r-{id}")), Some(cost)),
            ..u1.to_complete(&id)
        };
        u1.close_generation(close).await.unwrap();
        id
    };
    let id = settle("0.10").await;
    assert_eq!(used(&u1, &budget).await, is("0.1", "0.", 1));
    let first_day = read(&u1, &budget).await.period_start;
    stack.r1.time.advance(Duration::from_secs(2 * 86_400));
    assert_eq!(used(&u1, &budget).await, is("0.", "0.", 0));
    settle("0.5").await;
    reconciled(&stack, "u1", &id, ReconcileState::Done, Some(40_000_000)).await;
    assert_eq!(used(&u1, &budget).await, is("0.5", "0.", 1));
    let windows = budget_windows::Entity::find().all(stack.db.read()).await.unwrap();
    let first = windows
        .iter()
        .find(|window| Some(atelier_proto::time::proto_from_micros(window.starts_at)) == first_day)
        .unwrap();
    assert_eq!((first.spent, first.calls), (40_000_000, 1));
    audit(&stack).await;
}

pub async fn g_126_calls_whose_callers_went_away_leave_nothing_held(stack: Stack) {
    let r2 = stack.replica().await;
    let (u1, there) = (stack.user("u1"), stack.user_of(&r2, "u1"));
    let budget = set(&u1, total("100")).await;
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..100 {
        let user = if n % 2 == 0 { u1.clone() } else { there.clone() };
        tasks.spawn(async move {
            let id = user.opened(at(&user, "0.06")).await.generation_id;
            user.mark(&id).await.unwrap();
            user.bind(&id, &format!("r{n}")).await.unwrap();
            let close = user.to_close(&id, Is::Cancelled);
            user.close_generation(close).await.unwrap();
            id
        });
    }
    let ids = tasks.join_all().await;
    assert_eq!(used(&u1, &budget).await, is("0.", "6.", 100));
    for id in ids {
        reconciled(&stack, "u1", &id, ReconcileState::Done, Some(10_000_000)).await;
    }
    assert_eq!(used(&u1, &budget).await, is("1.", "0.", 100));
    audit(&stack).await;
}

pub async fn a_hundred_of_two_hundred_calls_pass_and_failures_give_back(stack: Stack) {
    let r2 = stack.replica().await;
    let users = [stack.user("u1"), stack.user_of(&r2, "u1")];
    let budget = set(&users[0], total("4")).await;
    let open_all = async |count: usize| {
        let mut tasks = tokio::task::JoinSet::new();
        for n in 0..count {
            let user = users[n % 2].clone();
            tasks.spawn(async move { user.open_generation(user.to_open()).await });
        }
        let mut passed = Vec::new();
        for answer in tasks.join_all().await {
            match answer {
                Ok(answer) => passed.push(answer.generation.unwrap().generation_id),
                Err(status) => {
                    _ = refused::<()>(Err(status), Code::ResourceExhausted, reason::BUDGET_EXCEEDED)
                }
            }
        }
        passed
    };
    let passed = open_all(200).await;
    assert_eq!(passed.len(), 100);
    assert_eq!(used(&users[0], &budget).await, is("0.", "4.", 100));
    // Half of them fail before anything is sent; as many pass again.
    let mut tasks = tokio::task::JoinSet::new();
    for (n, id) in passed.into_iter().take(50).enumerate() {
        let user = users[n % 2].clone();
        tasks.spawn(async move { user.fail(&id).await.unwrap() });
    }
    tasks.join_all().await;
    assert_eq!(used(&users[0], &budget).await, is("0.", "2.", 50));
    assert_eq!(open_all(200).await.len(), 50);
    assert_eq!(used(&users[0], &budget).await, is("0.", "4.", 100));
    audit(&stack).await;
}

pub async fn what_was_never_sent_gives_back(stack: Stack) {
    let u1 = stack.user("u1");
    let budget = set(&u1, total("1")).await;
    let cancelled = u1.open().await;
    u1.cancel(&cancelled).await;
    let failed = u1.open().await;
    u1.fail(&failed).await.unwrap();
    // Proved not to have left.
    let unreachable = u1.submitted().await;
    let facets = v1::Facets {
        submission: SubmissionStatus::Accepted.into(),
        ..Default::default()
    };
    u1.observe(&unreachable, facets).await.unwrap();
    u1.fail(&unreachable).await.unwrap();
    assert_eq!(used(&u1, &budget).await, is("0.", "0.", 0));
    // The sweep settles it without knowing of budgets, and then looks.
    u1.open().await;
    assert_eq!(used(&u1, &budget).await, is("0.", "0.04", 1));
    assert_eq!(u1.sweep().await, 1);
    assert_eq!(used(&u1, &budget).await, is("0.", "0.", 0));
    audit(&stack).await;
}

pub async fn what_was_sent_without_an_id_counts_as_spent_after_a_day(stack: Stack) {
    let u1 = stack.user("u1");
    let budget = set(&u1, total("1")).await;
    u1.submitted().await;
    assert_eq!(u1.sweep().await, 1);
    stack.r1.time.advance(Duration::from_secs(23 * 3_600));
    u1.sweep().await;
    assert_eq!(used(&u1, &budget).await, is("0.", "0.04", 1));
    stack.r1.time.advance(Duration::from_secs(2 * 3_600));
    u1.sweep().await;
    assert_eq!(used(&u1, &budget).await, is("0.04", "0.", 1));
    audit(&stack).await;
}

pub async fn a_bill_that_never_comes_is_settled_at_the_estimate(stack: Stack) {
    let u1 = stack.user("u1");
    let budget = set(&u1, total("1")).await;
    for (n, state) in [
        ReconcileState::Unavailable,
        ReconcileState::Denied,
        ReconcileState::Exhausted,
    ]
    .into_iter()
    .enumerate()
    {
        let id = failed(&u1, "0.06").await;
        reconciled(&stack, "u1", &id, state, None).await;
        let spent = ["0.06", "0.12", "0.18"][n];
        assert_eq!(
            used(&u1, &budget).await,
            is(spent, "0.", i64::try_from(n).unwrap() + 1)
        );
        // A bill that comes all the same corrects it.
        if state == ReconcileState::Exhausted {
            reconciled(&stack, "u1", &id, ReconcileState::Done, Some(50_000_000)).await;
            assert_eq!(used(&u1, &budget).await, is("0.17", "0.", 3));
        }
    }
    audit(&stack).await;
}

pub async fn a_period_ends_at_midnight_of_its_zone(stack: Stack) {
    let u1 = stack.user("u1");
    let zoned = |zone: &str| SetBudgetRequest {
        period: Period::Day.into(),
        time_zone: zone.into(),
        ..total("0.04")
    };
    let budget = set(&u1, zoned("Pacific/Kiritimati")).await;
    let ends = budget.period_end.unwrap().seconds - budget.period_start.unwrap().seconds;
    assert_eq!(ends, 86_400);
    // Fourteen hours ahead of UTC.
    assert_eq!((budget.period_start.unwrap().seconds + 14 * 3_600) % 86_400, 0);
    let id = u1.open().await;
    u1.mark(&id).await.unwrap();
    u1.complete(&id).await.unwrap();
    let left = budget.period_end.unwrap().seconds - u1.get(&id).await.completed_at.unwrap().seconds;
    let left = u64::try_from(left).unwrap();
    if left > 120 {
        stack.r1.time.advance(Duration::from_secs(left - 60));
        let early = u1.open_generation(u1.to_open()).await;
        refused(early, Code::ResourceExhausted, reason::BUDGET_EXCEEDED);
    }
    stack.r1.time.advance(Duration::from_secs(120));
    u1.open().await;
    // What is held counts in every period, until it is settled in one.
    stack.r1.time.advance(Duration::from_secs(86_400));
    let held = u1.open_generation(u1.to_open()).await;
    refused(held, Code::ResourceExhausted, reason::BUDGET_EXCEEDED);
    audit(&stack).await;
}

pub async fn a_repeated_open_is_not_refused(stack: Stack) {
    let u1 = stack.user("u1");
    let budget = set(&u1, total("0.04")).await;
    let request = v1::OpenGenerationRequest {
        idempotency_key: Some("k1".into()),
        ..u1.to_open()
    };
    let first = u1.opened(request.clone()).await;
    let again = v1::OpenGenerationRequest {
        generation_id: Uuid::now_v7().to_string(),
        ..request.clone()
    };
    let answer = u1.open_generation(again).await.unwrap();
    assert_eq!(
        (answer.created, answer.generation.as_ref()),
        (false, Some(&first))
    );
    let other = v1::OpenGenerationRequest {
        input_fingerprint: "cd".repeat(32),
        ..request
    };
    refused(
        u1.open_generation(other).await,
        Code::AlreadyExists,
        reason::IDEMPOTENCY_CONFLICT,
    );
    assert_eq!(used(&u1, &budget).await, is("0.", "0.04", 1));
}

pub async fn calls_without_a_price_hold_what_they_are_taken_to_cost(stack: Stack) {
    let (u1, u2) = (stack.user("u1"), stack.user("u2"));
    let assume = SetBudgetRequest {
        unpriced: UnpricedPolicy::Assume.into(),
        assumed_cost: usd("0.3"),
        ..total("0.5")
    };
    let budget = set(&u1, assume).await;
    let unpriced = |user: &User| v1::OpenGenerationRequest {
        estimate: None,
        ..user.to_open()
    };
    let id = u1.opened(unpriced(&u1)).await.generation_id;
    let more = u1.open_generation(unpriced(&u1)).await;
    refused(more, Code::ResourceExhausted, reason::BUDGET_EXCEEDED);
    // Completed without a price it stays what it was taken to be.
    u1.mark(&id).await.unwrap();
    u1.close_generation(u1.to_close(&id, Is::Completed))
        .await
        .unwrap();
    assert_eq!(used(&u1, &budget).await, is("0.3", "0.", 1));
    // Where they pass they hold nothing, and cost what they turn out to.
    let budget = set(&u2, total("0.5")).await;
    let id = u2.opened(unpriced(&u2)).await.generation_id;
    assert_eq!(used(&u2, &budget).await, is("0.", "0.", 1));
    u2.mark(&id).await.unwrap();
    let close = v1::CloseGenerationRequest {
        receipt: receipt(None, Some("0.7")),
        ..u2.to_complete(&id)
    };
    u2.close_generation(close).await.unwrap();
    assert_eq!(used(&u2, &budget).await, is("0.7", "0.", 1));
    assert_eq!(read(&u2, &budget).await.remaining, usd("0.000000000"));
    audit(&stack).await;
}

pub async fn calls_are_counted(stack: Stack) {
    let u1 = stack.user("u1");
    let request = SetBudgetRequest {
        limit: None,
        max_calls: Some(2),
        ..total("0")
    };
    let budget = set(&u1, request).await;
    let first = u1.open().await;
    u1.submitted().await;
    let status = refused(
        u1.open_generation(u1.to_open()).await,
        Code::ResourceExhausted,
        reason::BUDGET_EXCEEDED,
    );
    let told = status.get_details_error_info().unwrap().metadata;
    assert_eq!((told["max_calls"].as_str(), told["calls"].as_str()), ("2", "2"));
    // One of which nothing was sent is none.
    u1.cancel(&first).await;
    u1.open().await;
    assert_eq!(read(&u1, &budget).await.calls, 2);
    assert!(read(&u1, &budget).await.remaining.is_none());
    audit(&stack).await;
}

pub async fn a_batch_of_opens_and_closes_leaves_exact_sums(stack: Stack) {
    let r2 = stack.replica().await;
    let names = ["u1", "u2", "u3"];
    let operator = stack.user("operator");
    set(
        &operator,
        SetBudgetRequest {
            user_id: "*".into(),
            ..total("1000")
        },
    )
    .await;
    for name in names {
        set(&stack.user(name), total("1000")).await;
        let run = SetBudgetRequest {
            kind: Kind::Run.into(),
            key: "j1".into(),
            ..total("1000")
        };
        set(&stack.user(name), run).await;
    }
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..300_usize {
        let replica = if n % 2 == 0 { &stack.r1 } else { &r2 };
        let user = stack.user_of(replica, names[n % 3]);
        tasks.spawn(async move {
            let open = v1::OpenGenerationRequest {
                origin: crate::stack::in_job("j1", "n1"),
                ..user.to_open()
            };
            let id = user.opened(open).await.generation_id;
            match n % 4 {
                0 => _ = user.cancel(&id).await,
                1 => _ = user.fail(&id).await.unwrap(),
                2 => {
                    user.mark(&id).await.unwrap();
                    user.complete(&id).await.unwrap();
                }
                _ => {
                    user.mark(&id).await.unwrap();
                    let (close, cancel) = tokio::join!(user.complete(&id), user.cancel(&id));
                    close.unwrap();
                    let _ = cancel;
                }
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    audit(&stack).await;
}

//! What a budget refuses is never sent, and what it holds comes back (generations specification 9).

use std::sync::Arc;
use std::time::Duration;

use atelier_common::identity::Caller;
use atelier_common::testkit::until;
use atelier_proto::common::v1::{Money, Origin};
use atelier_proto::tracker::v1::budget_service_client::BudgetServiceClient;
use atelier_proto::tracker::v1::{
    Budget, BudgetKind, BudgetPeriod, GenerationStatus, GetBudgetRequest, SetBudgetRequest,
};
use atelier_provider::settings::{LedgerMode, Settings};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tonic::Code;

use crate::acme::Script;
use crate::stack::{Stack, Told, picture, read, status, u1};

async fn budget(stack: &Stack, limit: &str) -> Budget {
    let request = SetBudgetRequest {
        kind: BudgetKind::User.into(),
        period: BudgetPeriod::Total.into(),
        limit: Some(Money {
            amount: limit.into(),
            currency: "USD".into(),
        }),
        ..SetBudgetRequest::default()
    };
    let mut budgets = BudgetServiceClient::new(stack.tracker_transport());
    let answer = budgets.set_budget(stack.signed(request)).await.unwrap();
    answer.into_inner().budget.unwrap()
}

/// Spent and held.
async fn used(stack: &Stack, budget: &Budget) -> (String, String) {
    let budget_id = budget.budget_id.clone();
    let mut budgets = BudgetServiceClient::new(stack.tracker_transport());
    let answer = budgets
        .get_budget(stack.signed(GetBudgetRequest { budget_id }))
        .await;
    let budget = answer.unwrap().into_inner().budget.unwrap();
    (budget.spent.unwrap().amount, budget.held.unwrap().amount)
}

fn is(spent: &str, held: &str) -> (String, String) {
    (spent.to_owned(), held.to_owned())
}

async fn at_once(stack: &Arc<Stack>, calls: usize) -> Vec<Told> {
    let mut tasks = JoinSet::new();
    for _ in 0..calls {
        let stack = stack.clone();
        tasks.spawn(async move { stack.run(picture()).await });
    }
    tasks.join_all().await
}

#[tokio::test(flavor = "multi_thread")]
async fn g_119_what_a_budget_refuses_is_never_sent() {
    for ledger in [LedgerMode::Required, LedgerMode::BestEffort] {
        let settings = Settings {
            ledger,
            ..Settings::default()
        };
        let stack = Arc::new(Stack::with(settings).await);
        let budget = budget(&stack, "0.20").await;
        let told = at_once(&stack, 12).await;
        let (refused, passed): (Vec<_>, Vec<_>) = told.iter().partition(|told| told.error.is_some());
        // Each holds four cents, so five pass.
        assert_eq!((passed.len(), refused.len()), (5, 7));
        for told in refused {
            let code = told.error.as_ref().map(tonic::Status::code);
            assert_eq!(
                (code, told.reason().as_str()),
                (Some(Code::ResourceExhausted), "BUDGET_EXCEEDED")
            );
            assert!(told.predictions.is_empty());
        }
        assert_eq!(stack.acme.submits(), 5);
        assert_eq!(stack.rows().await.len(), 5);
        assert_eq!(used(&stack, &budget).await, is("0.200000000", "0.000000000"));
        // A refusal is no failure of the ledger: nothing is asked for again.
        assert_eq!(stack.ledger.count("OpenGeneration"), 12);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn g_126_calls_that_end_with_their_callers_hold_until_their_bill() {
    let stack = Stack::start().await;
    let budget = budget(&stack, "100").await;
    let gate = Arc::new(Semaphore::new(0));
    stack.acme.script(Script {
        gate: Some(gate.clone()),
        ..Script::default()
    });
    let mut streams = Vec::new();
    for _ in 0..10 {
        let mut request = picture();
        request.cancel_on_disconnect = true;
        let mut stream = stack.open(&u1(), request).await.unwrap();
        stream.message().await.unwrap().unwrap();
        streams.push(stream);
    }
    assert_eq!(used(&stack, &budget).await, is("0.000000000", "0.400000000"));
    until(async || (stack.acme.submits() == 10).then_some(()))
        .within(Duration::from_secs(10))
        .await;
    drop(streams);
    let settled = async || {
        let rows = stack.rows().await;
        rows.iter()
            .all(|row| status(row) == GenerationStatus::Cancelled)
            .then_some(())
    };
    until(settled).within(Duration::from_secs(20)).await;
    // They were sent and may be billed: nothing is given back on a guess, and nothing is counted twice.
    assert_eq!(used(&stack, &budget).await, is("0.000000000", "0.400000000"));
}

#[tokio::test(flavor = "multi_thread")]
async fn g_117_the_seventeenth_background_call_of_a_run_is_refused() {
    let stack = Stack::start().await;
    let gate = Arc::new(Semaphore::new(0));
    stack.acme.script(Script {
        gate: Some(gate.clone()),
        ..Script::default()
    });
    let background = || {
        let mut request = picture();
        request.background = true;
        request.origin = Some(Origin {
            job_id: Some("j1".into()),
            ..Origin::default()
        });
        request
    };
    for _ in 0..16 {
        let told = stack.run(background()).await;
        assert_eq!(told.error.as_ref().map(ToString::to_string), None);
        assert!(told.last().background);
    }
    let told = stack.run(background()).await;
    let code = told.error.as_ref().map(tonic::Status::code);
    assert_eq!(
        (code, told.reason().as_str()),
        (Some(Code::ResourceExhausted), "BACKGROUND_LIMIT")
    );
    gate.add_permits(1_000);
    let completed = async || {
        let rows = stack.rows().await;
        rows.iter()
            .all(|row| status(row) == GenerationStatus::Completed)
            .then_some(rows.len())
    };
    assert_eq!(until(completed).within(Duration::from_secs(20)).await, 16);
    assert_eq!(stack.acme.submits(), 16);
    assert_eq!(
        stack.run(background()).await.error.map(|error| error.to_string()),
        None
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_of_one_user_is_nobody_elses() {
    let stack = Stack::start().await;
    budget(&stack, "0").await;
    assert_eq!(stack.run(picture()).await.reason(), "BUDGET_EXCEEDED");
    let other = stack.open(&Caller::new("u2", ["*"]), picture()).await.unwrap();
    assert!(read(other).await.error.is_none());
}

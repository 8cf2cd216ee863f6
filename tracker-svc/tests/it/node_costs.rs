//! What nodes say that their invocations cost, beside what providers say.

use atelier_proto::common::v1::Origin;
use atelier_proto::reason;
use atelier_proto::tracker::v1::{self, GenerationStatus as Is};
use tonic::Code;

use crate::stack::{Stack, User, amount, charge, charge_in, conflicts, receipt, refused};

fn origin(invocation: &str) -> Option<Origin> {
    Some(Origin {
        job_id: Some("j1".into()),
        node_id: Some("n1".into()),
        invocation_id: Some(invocation.into()),
        ..Default::default()
    })
}

fn said(invocation: &str, amount: &str) -> v1::RecordNodeCostRequest {
    v1::RecordNodeCostRequest {
        origin: origin(invocation),
        provider: "acme".into(),
        charge: Some(charge(amount)),
        ..Default::default()
    }
}

async fn say(user: &User, request: v1::RecordNodeCostRequest) -> Vec<String> {
    user.record_node_cost(request).await.unwrap().generation_ids
}

/// A row of the invocation that is under way.
async fn opened(user: &User, invocation: &str, estimate: Option<&str>) -> String {
    let open = v1::OpenGenerationRequest {
        origin: origin(invocation),
        estimate: estimate.map(charge),
        ..user.to_open()
    };
    let id = user.opened(open).await.generation_id;
    user.mark(&id).await.unwrap();
    id
}

async fn closed(user: &User, id: &str, stated: Option<&str>) {
    let close = v1::CloseGenerationRequest {
        receipt: receipt(None, stated),
        ..user.to_close(id, Is::Completed)
    };
    user.close_generation(close).await.unwrap();
}

async fn costs(user: &User, ids: &[String]) -> Vec<Option<String>> {
    let mut costs = Vec::new();
    for id in ids {
        costs.push(amount(user.get(id).await.cost.as_ref()).map(ToOwned::to_owned));
    }
    costs
}

pub async fn g_140_what_a_provider_stated_is_not_counted_again(stack: Stack) {
    let u1 = stack.user("u1");
    let id = opened(&u1, "i1", None).await;
    closed(&u1, &id, Some("0.1")).await;
    let row = u1.get(&id).await;
    assert!(say(&u1, said("i1", "0.1")).await.is_empty());
    assert_eq!(u1.all().await, [row]);
}

pub async fn g_141_an_invocation_without_rows_gets_one(stack: Stack) {
    let (u1, u2) = (stack.user("u1"), stack.user("u2"));
    let request = v1::RecordNodeCostRequest {
        provider_request_id: Some("r1".into()),
        ..said("i1", "0.3")
    };
    let ids = say(&u1, request.clone()).await;
    let row = u1.get(&ids[0]).await;
    assert_eq!(
        (row.status(), amount(row.cost.as_ref())),
        (Is::Completed, Some("0.300000000"))
    );
    assert_eq!(row.price_source.as_deref(), Some("node"));
    assert_eq!(row.origin.as_ref().unwrap().job_id.as_deref(), Some("j1"));
    assert_eq!(
        (
            row.attempts.len(),
            row.reconciliation.as_ref().unwrap().state.as_str()
        ),
        (1, "queued")
    );
    // The message again, from whatever replica.
    let r2 = stack.replica().await;
    for user in [u1.clone(), stack.user_of(&r2, "u1")] {
        assert!(say(&user, request.clone()).await.is_empty());
    }
    assert_eq!(u1.all().await, [row]);
    // The same invocation of another user is another one.
    assert_eq!(say(&u2, said("i1", "0")).await.len(), 1);
    assert_eq!(u2.total().await.costs[0].amount, "0.000000000");
    assert_eq!(u1.total().await.costs[0].amount, "0.300000000");
}

pub async fn g_142_invocations_do_not_hide_each_other(stack: Stack) {
    let u1 = stack.user("u1");
    for n in 0..6 {
        if n == 1 {
            let id = opened(&u1, "i1", None).await;
            closed(&u1, &id, Some("0.1")).await;
        }
        say(&u1, said(&format!("i{n}"), "0.1")).await;
    }
    let total = u1.total().await;
    assert_eq!(
        (total.call_count, total.costs[0].amount.as_str()),
        (6, "0.600000000")
    );
}

pub async fn g_143_the_rest_is_spread_over_rows_without_a_statement(stack: Stack) {
    let u1 = stack.user("u1");
    let cases = [
        (
            "i1",
            [None, None, None],
            ["0.033333333", "0.033333333", "0.033333334"],
        ),
        (
            "i2",
            [Some("0.025"), Some("0.025"), Some("0.05")],
            ["0.025000000", "0.025000000", "0.050000000"],
        ),
    ];
    for (invocation, estimates, expected) in cases {
        let mut ids = Vec::new();
        for estimate in estimates {
            let id = opened(&u1, invocation, estimate).await;
            closed(&u1, &id, None).await;
            ids.push(id);
        }
        let mut changed = say(&u1, said(invocation, "0.10")).await;
        changed.sort_unstable();
        assert_eq!(changed, ids);
        let expected = expected.map(|cost| Some(cost.to_owned()));
        assert_eq!(costs(&u1, &ids).await, expected);
        assert!(say(&u1, said(invocation, "0.10")).await.is_empty());
    }
    // What is stated is part of the amount.
    let stated = opened(&u1, "i3", None).await;
    closed(&u1, &stated, Some("0.04")).await;
    let lacking = opened(&u1, "i3", None).await;
    closed(&u1, &lacking, None).await;
    assert_eq!(say(&u1, said("i3", "0.10")).await, std::slice::from_ref(&lacking));
    let expected = ["0.040000000", "0.060000000"].map(|cost| Some(cost.to_owned()));
    assert_eq!(costs(&u1, &[stated, lacking]).await, expected);
}

pub async fn g_144_what_is_no_amount_is_refused(stack: Stack) {
    let u1 = stack.user("u1");
    for wrong in ["NaN", "inf", "-1", ""] {
        let answer = u1.record_node_cost(said("i1", wrong)).await;
        refused(answer, Code::InvalidArgument, reason::INVALID_FIELD);
    }
    let nowhere = v1::RecordNodeCostRequest {
        origin: None,
        ..said("i1", "0.1")
    };
    refused(
        u1.record_node_cost(nowhere).await,
        Code::InvalidArgument,
        reason::INVALID_FIELD,
    );
    assert!(u1.all().await.is_empty());
}

pub async fn a_charge_waits_for_the_close_of_an_open_row(stack: Stack) {
    let u1 = stack.user("u1");
    let budget = v1::SetBudgetRequest {
        kind: v1::BudgetKind::User.into(),
        period: v1::BudgetPeriod::Total.into(),
        limit: charge("5").cost,
        ..Default::default()
    };
    let budget_id = u1.set_budget(budget).await.unwrap().budget.unwrap().budget_id;
    let (silent, telling) = (opened(&u1, "i1", None).await, opened(&u1, "i2", None).await);
    for invocation in ["i1", "i2"] {
        assert_eq!(say(&u1, said(invocation, "0.3")).await.len(), 1);
        assert!(say(&u1, said(invocation, "0.3")).await.is_empty());
    }
    assert_eq!(u1.get(&silent).await.cost, None);
    // Where the provider says nothing the node's word is better than the catalog's, and the provider's is the best.
    u1.complete(&silent).await.unwrap();
    closed(&u1, &telling, Some("0.2")).await;
    let expected = ["0.300000000", "0.200000000"].map(|cost| Some(cost.to_owned()));
    assert_eq!(costs(&u1, &[silent.clone(), telling]).await, expected);
    let row = u1.get(&silent).await;
    assert_eq!(row.price_source.as_deref(), Some("node"));
    assert!(crate::stack::fact(&row, "node_cost").is_none());
    let budget = u1
        .get_budget(v1::GetBudgetRequest {
            budget_id: budget_id.clone(),
        })
        .await
        .unwrap();
    assert_eq!(budget.budget.unwrap().spent.unwrap().amount, "0.500000000");
    // What is said after the close corrects what was booked.
    say(&u1, said("i1", "0.4")).await;
    let budget = u1.get_budget(v1::GetBudgetRequest { budget_id }).await.unwrap();
    assert_eq!(budget.budget.unwrap().spent.unwrap().amount, "0.600000000");
}

pub async fn a_charge_that_does_not_fit_is_kept_as_a_conflict(stack: Stack) {
    let u1 = stack.user("u1");
    let stated = opened(&u1, "i1", None).await;
    closed(&u1, &stated, Some("0.5")).await;
    let lacking = opened(&u1, "i1", None).await;
    closed(&u1, &lacking, None).await;
    let euro = v1::RecordNodeCostRequest {
        charge: Some(charge_in("1", "EUR")),
        ..said("i1", "1")
    };
    for request in [said("i1", "0.1"), euro] {
        assert_eq!(say(&u1, request.clone()).await, std::slice::from_ref(&lacking));
        assert!(say(&u1, request).await.is_empty());
    }
    let row = u1.get(&lacking).await;
    assert_eq!((conflicts(&row), row.cost), (2, None));
}

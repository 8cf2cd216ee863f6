//! Bills, from the order of the ledger to the row (generations specification 6).

use std::time::Duration;

use atelier_common::testkit::until;
use atelier_proto::money::Money;
use atelier_proto::value::Value;
use atelier_provider::provider::Bill;
use atelier_provider::seam::receipt::Stated;
use tonic::Code;

use crate::acme::{Billing, Script};
use crate::stack::{Stack, cost, picture, request, u1, u2};

const LIMIT: Duration = Duration::from_secs(10);

fn stated(amount: &str) -> Billing {
    Billing::Says(Bill::Stated(Stated::of(Money::usd(amount.parse().unwrap()))))
}
fn scripted(bill: Billing) -> Script {
    Script {
        bill,
        ..Script::default()
    }
}
async fn done(stack: &Stack) -> String {
    let told = stack.run(picture()).await;
    assert_eq!(told.error.as_ref().map(ToString::to_string), None);
    told.id()
}

#[tokio::test]
async fn g_066_the_bill_of_a_due_row_replaces_its_cost() {
    let stack = Stack::start().await;
    stack.acme.script(scripted(stated("1.25")));
    let id = done(&stack).await;
    assert!(stack.acme.looks().is_empty());
    stack.later(Duration::from_mins(1));
    let row = stack.bill_in(&id, "done").await;
    assert_eq!(
        (cost(&row), row.price_source.as_deref()),
        (Some("1.250000000"), Some("provider-billing"))
    );
    assert_eq!(stack.acme.looks(), [format!("req-{id}")]);
}

#[tokio::test]
async fn g_068_g_069_an_error_and_a_panic_are_looks_in_vain_and_others_go_on() {
    let stack = Stack::start().await;
    stack.acme.script(scripted(Billing::Fails));
    let id = done(&stack).await;
    stack.later(Duration::from_mins(1));
    let said = async |words: &str| {
        let look = async || {
            let bill = stack.row(&id).await.reconciliation.unwrap();
            bill.error
                .filter(|error| error.contains(words))
                .map(|_| bill.attempts)
        };
        until(look).within(LIMIT).await
    };
    assert_eq!(said("boom").await, 1);
    stack.acme.script(scripted(Billing::Panics));
    stack.later(Duration::from_mins(5));
    assert_eq!(said("broke off").await, 2);
    stack.acme.script(scripted(stated("0.02")));
    stack.later(Duration::from_mins(30));
    assert_eq!(cost(&stack.bill_in(&id, "done").await), Some("0.020000000"));
}

#[tokio::test]
async fn g_069_a_look_that_hangs_ends_and_keeps_nobody_waiting() {
    let stack = Stack::start().await;
    stack.acme.script(scripted(Billing::Hangs));
    let hung = done(&stack).await;
    stack.later(Duration::from_mins(1));
    until(async || stack.acme.looks().len() == 1).within(LIMIT).await;
    stack.acme.script(scripted(stated("0.02")));
    let other = done(&stack).await;
    stack.later(Duration::from_mins(1));
    stack.bill_in(&other, "done").await;
    // It ends after twenty seconds of the adapter's time, or is taken from it after a minute of the ledger's: by now the
    // claim has ended, and the row was looked at again.
    stack.later(Duration::from_secs(1));
    stack.bill_in(&hung, "done").await;
}

#[tokio::test]
async fn g_070_a_provider_without_bills_is_unavailable_in_one_pass() {
    let stack = Stack::start().await;
    let id = done(&stack).await;
    stack.later(Duration::from_mins(1));
    let row = stack.bill_in(&id, "unavailable").await;
    let bill = row.reconciliation.as_ref().unwrap();
    assert_eq!((bill.attempts, cost(&row)), (0, Some("0.040000000")));
    assert_eq!(stack.facts(&id).await["reconcile"], Value::from("unavailable"));
    // The offline provider states none either.
    let told = stack
        .run(request(
            "sketch",
            "text_to_image",
            serde_json::json!({"prompt": "a boat"}),
        ))
        .await;
    stack.later(Duration::from_mins(1));
    stack.bill_in(&told.id(), "unavailable").await;
}

#[tokio::test]
async fn g_075_g_077_a_look_by_hand() {
    let stack = Stack::start().await;
    stack
        .acme
        .script(scripted(Billing::Says(Bill::NotYet("no event"))));
    let id = done(&stack).await;
    let answer = stack.reconcile(&u1(), &id).await.unwrap();
    assert_eq!(
        (answer.reconciled, answer.reason.as_deref()),
        (false, Some("no event"))
    );
    assert_eq!(answer.before, answer.after);
    let bill = stack.row(&id).await.reconciliation.unwrap();
    assert_eq!((bill.state.as_str(), bill.attempts), ("queued", 0));
    let foreign = stack.reconcile(&u2(), &id).await.unwrap_err();
    assert_eq!(foreign.code(), Code::NotFound);
    stack.acme.script(scripted(stated("0.9")));
    let answer = stack.reconcile(&u1(), &id).await.unwrap();
    let amount = |money: Option<atelier_proto::common::v1::Money>| money.unwrap().amount;
    assert!(answer.reconciled && answer.reason.is_none());
    assert_eq!(
        (amount(answer.before), amount(answer.after)),
        ("0.040000000".to_owned(), "0.900000000".to_owned())
    );
}

//! Redaction, signatures and accounts by themselves.

use atelier_proto::{
    common::v1::Money,
    tracker::v1::{Generation, GenerationStatus},
    value::{Map, Value},
};
use proptest::prelude::*;

use super::{account::Account, redact::Redactor, signature::signature};

#[test]
fn failures_that_differ_in_numbers_are_of_one_kind() {
    let same = [
        "item 7 of job 0193-ab12 timed out after 3.5s",
        "item 9  of job 0993-cd77 timed out after 12.25s",
    ];
    let signatures = same.map(|text| signature(Some("timeout"), text));
    assert_eq!(signatures[0], signatures[1]);
    assert_ne!(signatures[0], signature(Some("timeout"), "item 7 was refused"));
    assert_eq!(signature(None, "  "), None);
    assert_eq!(signature(Some("x"), "").as_deref(), Some("x"));
    assert!(signature(None, &"word ".repeat(10_000)).unwrap().chars().count() <= 200);
}

fn row(id: &str, status: GenerationStatus, cost: Option<&str>) -> Generation {
    Generation {
        generation_id: id.to_owned(),
        status: status.into(),
        cost: cost.map(|amount| Money {
            amount: amount.to_owned(),
            currency: "USD".to_owned(),
        }),
        ..Generation::default()
    }
}

#[test]
fn only_what_is_known_to_be_free_counts_as_nothing() {
    let cases = [
        (vec![], vec![], Some("0")),
        (vec![], vec!["g"], None),
        (vec![row("g", GenerationStatus::Running, None)], vec!["g"], None),
        (vec![row("g", GenerationStatus::Failed, None)], vec!["g"], None),
        (
            vec![row("g", GenerationStatus::Failed, Some("0"))],
            vec!["g"],
            Some("0"),
        ),
        (
            vec![row("g", GenerationStatus::Cancelled, Some("0"))],
            vec!["g"],
            None,
        ),
        (
            vec![
                row("g", GenerationStatus::Completed, Some("0.02")),
                row("h", GenerationStatus::Failed, Some("0.01")),
            ],
            vec!["g", "h"],
            Some("0.03"),
        ),
    ];
    for (rows, opened, expected) in cases {
        let account = Account::default();
        rows.iter().for_each(|row| account.note(row));
        let opened: Vec<String> = opened.into_iter().map(ToOwned::to_owned).collect();
        let spent = account.spent(&opened);
        assert_eq!(
            spent.usd.map(|usd| usd.to_string()).as_deref(),
            expected,
            "{rows:?}"
        );
        assert_eq!(spent.is_nothing(), expected == Some("0"));
        account.begin();
        assert!(account.spent(&[]).is_nothing());
    }
}

#[test]
fn an_asset_is_something() {
    let account = Account::default();
    let mut made = row("g", GenerationStatus::Completed, Some("0"));
    made.asset_ids = vec!["a1".to_owned()];
    account.note(&made);
    assert!(!account.spent(&["g".to_owned()]).is_nothing());
}

proptest! {
    #[test]
    fn a_known_secret_never_comes_through(before in ".{0,40}", after in ".{0,40}", secret in "[a-zA-Z0-9$^*()-]{6,30}") {
        let redactor = Redactor::new(vec![secret.as_str().into()]);
        let text = format!("{before}{secret}{after}{secret}");
        prop_assert!(!redactor.text(&text).contains(&secret));
        let map: Map = [(text.clone(), Value::from(text.as_str()))].into_iter().collect();
        let shown = format!("{:?}", redactor.map(&map));
        prop_assert!(!shown.contains(&secret));
    }
}

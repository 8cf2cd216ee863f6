use rstest::rstest;
use serde_json::json;

use super::*;

fn row(name: &str) -> Value {
    let row = json!({"a": 5, "b": "Rome", "c": null, "odd name": 2.5, "d": "7", "e": true});
    atelier_proto::value::from_json(row[name].clone())
}

#[rstest]
#[case("a > 4", true)]
#[case("a > 4 and b == 'Oslo'", false)]
#[case("a > 4 && (b == \"Oslo\" || `odd name` <= 2.5)", true)]
#[case("not a == 5", false)]
#[case("!(a != 5)", true)]
#[case("b in ['Oslo', 'Rome']", true)]
#[case("b not in ['Oslo', 'Rome']", false)]
#[case("'om' in b", true)]
#[case("c == null", true)]
#[case("c is None", true)]
#[case("a is not None", true)]
#[case("c < 1 or c >= 1", false)]
#[case("c.isnull() and b.notnull()", true)]
#[case("b.str.lower().contains('ro')", true)]
#[case("b.startsWith('Ro') and b.endswith('me')", true)]
#[case("b.length == 4", true)]
#[case("d == 7 and d > 6", true)]
#[case("a + 2 * 3 == 11", true)]
#[case("a % 2 == 1 and -a < 0", true)]
#[case("row.a == 5 and row['odd name'] == 2.5", true)]
#[case("e", true)]
#[case("a = 5", true)]
#[case("a === 5", true)]
#[case("missing == 1", false)]
fn conditions_hold(#[case] text: &str, #[case] expected: bool) {
    let condition = Condition::read("condition", text).expect("a condition");
    assert_eq!(condition.holds(&row), expected, "{text}");
}

#[rstest]
#[case("", "ends too early")]
#[case("a >", "ends too early")]
#[case("a > 'x", "not closed")]
#[case("a ; b", "`;`")]
#[case("a b", "`b` is not expected")]
#[case("(a", "`)` is missing")]
#[case("a.exec('x')", "no method `exec`")]
#[case("1.2.3", "no number")]
fn faults_are_named(#[case] text: &str, #[case] part: &str) {
    let error = Condition::read("condition", text).expect_err("a fault");
    assert!(
        error.message.contains("`condition`") && error.message.contains(part),
        "{error}"
    );
}

#[test]
fn depth_is_bounded() {
    let deep = format!("{}a{}", "(".repeat(5_000), ")".repeat(4_000));
    assert!(Condition::read("condition", &deep).is_err());
    assert!(Condition::read("condition", &"-".repeat(5_000)).is_err());
    let long = format!("a{}", " or a".repeat(500));
    assert!(Condition::read("condition", &long).expect("flat").holds(&row));
}

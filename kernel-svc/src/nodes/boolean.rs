//! Comparisons and choices of older workflow files.

use std::cmp::Ordering;

use atelier_proto::value::Value;

use super::{
    args::{Args, text_of},
    code::{Compute, Plain, Types, factory},
};
use crate::node::NodeError;

/// All types of this family.
pub(super) fn types() -> Types {
    let plain: [(&'static str, Compute); 8] = [
        ("nodetool.boolean.All", |args| {
            Ok(args.list("values").iter().all(Value::truthy).into())
        }),
        ("nodetool.boolean.Compare", compare),
        ("nodetool.boolean.ConditionalSwitch", |args| {
            let taken = if args.flag("condition", false) {
                "if_true"
            } else {
                "if_false"
            };
            Ok(args.value(taken))
        }),
        ("nodetool.boolean.IsIn", |args| {
            let value = args.value("value");
            Ok(args.list("options").contains(&value).into())
        }),
        ("nodetool.boolean.IsNone", |args| {
            Ok(args.value("value").is_null().into())
        }),
        ("nodetool.boolean.LogicalOperator", logical),
        ("nodetool.boolean.Not", |args| {
            Ok((!args.flag("value", false)).into())
        }),
        ("nodetool.boolean.Some", |args| {
            Ok(args.list("values").iter().any(Value::truthy).into())
        }),
    ];
    plain
        .into_iter()
        .map(|(name, compute)| (name, factory(Plain(compute))))
        .collect()
}

/// A choice that is not one of a few.
pub(super) fn unknown(input: &str, given: &str, choices: &str) -> NodeError {
    let given: String = given.chars().take(40).collect();
    NodeError::new(format!(
        "the input `{input}` must be one of {choices}; got {given}"
    ))
    .code("input.value")
}
fn compare(args: Args<'_>) -> Result<Value, NodeError> {
    let (a, b) = (args.value("a"), args.value("b"));
    let comparison = args.text_or("comparison", "==");
    // A number and a text that is one are compared as numbers.
    let number = |value: &Value| {
        let written = || value.as_str().and_then(|text| text.trim().parse().ok());
        value.as_f64().or_else(written)
    };
    let both_text = a.as_str().is_some() && b.as_str().is_some();
    let numbers = if both_text {
        None
    } else {
        number(&a).zip(number(&b))
    };
    let order: Option<Ordering> = match numbers {
        Some((a, b)) => a.partial_cmp(&b),
        None if a == b => Some(Ordering::Equal),
        None if both_text => Some(text_of(&a).cmp(&text_of(&b))),
        None => None,
    };
    let ordered = |holds: fn(Ordering) -> bool| {
        order.map(holds).map(Value::from).ok_or_else(|| {
            let (a, b) = (super::args::type_of(&a), super::args::type_of(&b));
            NodeError::new(format!("the inputs `a` and `b` have no order: {a} and {b}")).code("input.type")
        })
    };
    match comparison.trim() {
        "==" | "=" => Ok((order == Some(Ordering::Equal)).into()),
        "!=" => Ok((order != Some(Ordering::Equal)).into()),
        ">" => ordered(Ordering::is_gt),
        "<" => ordered(Ordering::is_lt),
        ">=" => ordered(Ordering::is_ge),
        "<=" => ordered(Ordering::is_le),
        other => Err(unknown("comparison", other, "==, !=, >, <, >=, <=")),
    }
}
fn logical(args: Args<'_>) -> Result<Value, NodeError> {
    let (a, b) = (args.flag("a", false), args.flag("b", false));
    Ok(match args.text_or("operation", "and").to_lowercase().as_str() {
        "and" => a && b,
        "or" => a || b,
        "xor" => a != b,
        "nand" => !(a && b),
        "nor" => !(a || b),
        other => return Err(unknown("operation", other, "and, or, xor, nand, nor")),
    }
    .into())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value as Json, json};

    use crate::nodes::testing::process;

    #[rstest]
    #[case("Compare", json!({"a": 75, "b": 100, "comparison": ">"}), json!(false))]
    #[case("Compare", json!({"a": 75, "b": "100", "comparison": "<"}), json!(true))]
    #[case("Compare", json!({"a": "b", "b": "a", "comparison": ">="}), json!(true))]
    #[case("Compare", json!({"a": 1, "b": 1.0}), json!(true))]
    #[case("Compare", json!({"a": null, "b": 1, "comparison": "!="}), json!(true))]
    #[case("ConditionalSwitch", json!({"condition": true, "if_true": "y", "if_false": "n"}), json!("y"))]
    #[case("ConditionalSwitch", json!({"condition": false, "if_true": "y"}), json!(null))]
    #[case("LogicalOperator", json!({"a": false, "b": true, "operation": "or"}), json!(true))]
    #[case("LogicalOperator", json!({"a": true, "b": true, "operation": "xor"}), json!(false))]
    #[case("Not", json!({"value": false}), json!(true))]
    #[case("IsIn", json!({"value": 2, "options": [1, 2]}), json!(true))]
    #[case("IsNone", json!({"value": null}), json!(true))]
    #[case("All", json!({"values": [true, false]}), json!(false))]
    #[case("Some", json!({"values": [true, false]}), json!(true))]
    #[tokio::test]
    async fn questions_are_answered(#[case] name: &str, #[case] inputs: Json, #[case] expected: Json) {
        let out = process(&format!("nodetool.boolean.{name}"), inputs)
            .await
            .expect("an answer");
        assert_eq!(out, json!({"output": expected}));
    }

    #[rstest]
    #[case("Compare", json!({"a": 1, "b": "x", "comparison": "<"}), "`a` and `b` have no order: int and str")]
    #[case("Compare", json!({"a": 1, "b": 1, "comparison": "~"}), "`comparison` must be one of")]
    #[case("LogicalOperator", json!({"operation": "maybe"}), "`operation` must be one of")]
    #[tokio::test]
    async fn faults_name_the_input(#[case] name: &str, #[case] inputs: Json, #[case] part: &str) {
        let error = process(&format!("nodetool.boolean.{name}"), inputs)
            .await
            .expect_err("a fault");
        assert!(error.message.contains(part), "{}", error.message);
    }
}

//! Lists that are made of numbers or of repeated values.

use atelier_proto::value::Value;

use super::{
    args::{Args, size},
    code::{Compute, Plain, Types, factory},
};
use crate::node::NodeError;

/// Longest list that any node makes, whatever its own limit.
const MAX_LENGTH: i64 = 1_000_000;

/// All types of this family.
pub(super) fn types() -> Types {
    let plain: [(&'static str, Compute); 4] = [
        ("nodetool.list.Range", range),
        ("nodetool.list.RepeatEach", |args| {
            let (items, times) = (args.list("input_list"), times(args)?);
            bounded(args, items.len(), times)?;
            let each = |item: Value| std::iter::repeat_n(item, times);
            Ok(Value::list(items.into_iter().flat_map(each).collect()))
        }),
        ("nodetool.list.RepeatValue", |args| {
            let times = times(args)?;
            bounded(args, 1, times)?;
            Ok(Value::list(vec![args.value("value"); times]))
        }),
        ("nodetool.list.Tile", |args| {
            let (items, times) = (args.list("input_list"), times(args)?);
            bounded(args, items.len(), times)?;
            let whole = std::iter::repeat_n(items, times);
            Ok(Value::list(whole.flatten().collect()))
        }),
    ];
    plain
        .into_iter()
        .map(|(name, compute)| (name, factory(Plain(compute))))
        .collect()
}

fn times(args: Args<'_>) -> Result<usize, NodeError> {
    let times = args.int("times", 1)?;
    if times < 0 {
        return Err(NodeError::new("the input `times` must not be negative").code("input.value"));
    }
    Ok(size(times))
}
fn most(args: Args<'_>) -> Result<usize, NodeError> {
    Ok(size(args.int("max_output_length", 10_000)?.min(MAX_LENGTH)))
}
fn too_long(most: usize) -> NodeError {
    let text = format!("the list would be longer than {most}, which `max_output_length` allows");
    NodeError::new(text).code("input.size")
}
fn bounded(args: Args<'_>, items: usize, times: usize) -> Result<(), NodeError> {
    let most = most(args)?;
    match items.checked_mul(times) {
        Some(length) if length <= most => Ok(()),
        _ => Err(too_long(most)),
    }
}
/// From start up to stop, without it; where stop is -1, so many numbers as count says.
fn range(args: Args<'_>) -> Result<Value, NodeError> {
    let (start, stop, step) = (args.int("start", 0)?, args.int("stop", -1)?, args.int("step", 1)?);
    let count = args.int("count", 10)?;
    let most = most(args)?;
    if step == 0 && stop != -1 {
        return Err(NodeError::new("the input `step` must not be 0").code("input.value"));
    }
    let mut numbers = Vec::new();
    let mut next = Some(start);
    while let Some(number) = next {
        let over = match stop {
            -1 => numbers.len() >= size(count),
            stop if step > 0 => number >= stop,
            stop => number <= stop,
        };
        if over {
            break;
        }
        if numbers.len() >= most {
            return Err(too_long(most));
        }
        numbers.push(Value::Int(number));
        next = number.checked_add(step);
    }
    Ok(Value::list(numbers))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value as Json, json};

    use crate::nodes::testing::process;

    #[rstest]
    #[case("Range", json!({"count": 3}), json!([0, 1, 2]))]
    #[case("Range", json!({"start": 2, "stop": 7, "step": 2}), json!([2, 4, 6]))]
    #[case("Range", json!({"start": 3, "stop": 0, "step": -1}), json!([3, 2, 1]))]
    #[case("Range", json!({"start": 3, "stop": 1}), json!([]))]
    #[case("RepeatEach", json!({"input_list": ["a", "b"], "times": 2}), json!(["a", "a", "b", "b"]))]
    #[case("RepeatValue", json!({"value": 7, "times": 2}), json!([7, 7]))]
    #[case("Tile", json!({"input_list": ["a", "b"], "times": 2}), json!(["a", "b", "a", "b"]))]
    #[case("Tile", json!({"input_list": ["a"], "times": 0}), json!([]))]
    #[tokio::test]
    async fn lists_are_made(#[case] name: &str, #[case] inputs: Json, #[case] expected: Json) {
        let out = process(&format!("nodetool.list.{name}"), inputs)
            .await
            .expect("a list");
        assert_eq!(out, json!({"output": expected}));
    }

    #[rstest]
    #[case("Range", json!({"start": 0, "stop": 5, "step": 0}), "`step`")]
    #[case("Range", json!({"count": 11, "max_output_length": 10}), "longer than 10")]
    #[case("Range", json!({"stop": i64::MAX, "max_output_length": i64::MAX}), "longer than 1000000")]
    #[case("RepeatValue", json!({"value": 1, "times": -1}), "`times`")]
    #[case("Tile", json!({"input_list": [1, 2], "times": i64::MAX}), "longer than 10000")]
    #[tokio::test]
    async fn lists_are_bounded(#[case] name: &str, #[case] inputs: Json, #[case] part: &str) {
        let error = process(&format!("nodetool.list.{name}"), inputs)
            .await
            .expect_err("too long");
        assert!(error.message.contains(part), "{}", error.message);
    }
}

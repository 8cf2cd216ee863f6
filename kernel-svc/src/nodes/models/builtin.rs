//! Tools that are built in: simple, quick, and of no danger.

use atelier_proto::value::{Value, from_json};
use serde_json::json;

use super::sum;
use crate::{
    node::NodeError,
    nodes::args::{Args, count, map, missing, text_of, wrong},
};

/// A tool that is built in.
pub(super) struct Builtin {
    pub name: &'static str,
    pub description: &'static str,
    parameters: &'static str,
    pub run: fn(Args<'_>) -> Result<Value, NodeError>,
}
impl Builtin {
    /// The schema of its arguments.
    pub fn parameters(&self) -> Value {
        from_json(serde_json::from_str(self.parameters).unwrap_or_else(|_| json!({"type": "object"})))
    }
}

const ALL: &[Builtin] = &[
    Builtin {
        name: "calculator",
        description: "Calculates an arithmetic expression: + - * / % ^, parentheses, sqrt, abs, round, floor, ceil, ln, \
            log10, exp, sin, cos, tan, min, max, pi and e.",
        parameters: r#"{"type":"object","properties":{"expression":{"type":"string","description":"For instance 2 * (3 + 4)"}},"required":["expression"]}"#,
        run: calculate,
    },
    Builtin {
        name: "statistics",
        description: "Describes a list of numbers: count, sum, mean, median, smallest, largest, standard deviation.",
        parameters: r#"{"type":"object","properties":{"numbers":{"type":"array","items":{"type":"number"}}},"required":["numbers"]}"#,
        run: describe,
    },
    Builtin {
        name: "clock",
        description: "Tells the date and the time now, in UTC.",
        parameters: r#"{"type":"object","properties":{}}"#,
        run: now,
    },
    Builtin {
        name: "count_text",
        description: "Counts the characters, words and lines of a text.",
        parameters: r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}"#,
        run: measure,
    },
];

/// The tool of a name; names that other systems have for the same are known.
pub(super) fn find(name: &str) -> Option<&'static Builtin> {
    let name = match name {
        "calculate" | "math" => "calculator",
        "statistics_calculator" => "statistics",
        "current_time" | "get_current_time" | "datetime" => "clock",
        other => other,
    };
    ALL.iter().find(|tool| tool.name == name)
}

fn calculate(args: Args<'_>) -> Result<Value, NodeError> {
    let expression = args.text("expression");
    if expression.trim().is_empty() {
        return Err(missing("expression", "there is nothing to calculate"));
    }
    let result = sum::calculate(&expression).map_err(NodeError::new)?;
    Ok(Value::Float(result)
        .as_i64()
        .map_or(Value::Float(result), Value::Int))
}

fn describe(args: Args<'_>) -> Result<Value, NodeError> {
    let number = |value: Value| {
        let read = value.as_f64().or_else(|| text_of(&value).trim().parse().ok());
        read.filter(|number: &f64| number.is_finite())
            .ok_or_else(|| wrong("numbers", "list[float]", &value))
    };
    let mut numbers = args
        .list("numbers")
        .into_iter()
        .map(number)
        .collect::<Result<Vec<f64>, _>>()?;
    if numbers.is_empty() {
        return Err(missing("numbers", "there is nothing to describe"));
    }
    numbers.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts are far below the limit of exact numbers"
    )]
    let size = numbers.len() as f64;
    let sum: f64 = numbers.iter().sum();
    let mean = sum / size;
    let half = numbers.len() / 2;
    let at = |place: usize| numbers.get(place).copied().unwrap_or_default();
    let median = if numbers.len().is_multiple_of(2) {
        f64::midpoint(at(half.saturating_sub(1)), at(half))
    } else {
        at(half)
    };
    let spread = numbers.iter().map(|number| (number - mean).powi(2)).sum::<f64>() / size;
    Ok(map([
        ("count", count(numbers.len())),
        ("sum", Value::Float(sum)),
        ("mean", Value::Float(mean)),
        ("median", Value::Float(median)),
        ("min", Value::Float(at(0))),
        ("max", Value::Float(at(numbers.len() - 1))),
        ("standard_deviation", Value::Float(spread.sqrt())),
    ])
    .into())
}

#[expect(clippy::unnecessary_wraps, reason = "the form of a tool")]
fn now(_args: Args<'_>) -> Result<Value, NodeError> {
    Ok(chrono::Utc::now()
        .to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
        .into())
}

#[expect(clippy::unnecessary_wraps, reason = "the form of a tool")]
fn measure(args: Args<'_>) -> Result<Value, NodeError> {
    let text = args.text("text");
    Ok(map([
        ("characters", count(text.chars().count())),
        ("words", count(text.split_whitespace().count())),
        ("lines", count(text.lines().count())),
    ])
    .into())
}

#[cfg(test)]
mod tests {
    use atelier_proto::value::{BytesForm, map_from_json, to_json};
    use rstest::rstest;
    use serde_json::{Value as Json, json};

    use super::*;

    fn run(name: &str, arguments: Json) -> Result<Json, String> {
        let arguments = map_from_json(arguments).expect("a map");
        let tool = find(name).expect("a tool");
        let done = (tool.run)(Args(&arguments)).map_err(|error| error.message)?;
        Ok(to_json(&done, BytesForm::Tagged))
    }

    #[rstest]
    #[case("calculator", json!({"expression": "6 * 7"}), json!(42))]
    #[case("calculate", json!({"expression": "1 / 4"}), json!(0.25))]
    #[case("count_text", json!({"text": "a b\nc"}), json!({"characters": 5, "words": 3, "lines": 2}))]
    fn tools_answer(#[case] name: &str, #[case] arguments: Json, #[case] expected: Json) {
        assert_eq!(run(name, arguments), Ok(expected));
    }

    #[test]
    fn numbers_are_described() {
        let told = run("statistics", json!({"numbers": [3, 1, "2", 4]})).expect("told");
        assert_eq!(
            (&told["mean"], &told["median"], &told["max"]),
            (&json!(2.5), &json!(2.5), &json!(4.0))
        );
        assert!(run("statistics", json!({"numbers": []})).is_err());
        assert!(
            run("clock", json!({}))
                .expect("a time")
                .as_str()
                .expect("text")
                .ends_with('Z')
        );
    }

    #[test]
    fn schemas_can_be_read() {
        for tool in ALL {
            assert!(tool.parameters().get("properties").is_some(), "{}", tool.name);
        }
        assert!(find("google_search").is_none());
    }
}

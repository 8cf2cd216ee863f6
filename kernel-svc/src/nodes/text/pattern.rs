//! Types that work with regular expressions or paths into JSON. Patterns are matched in linear time.

use atelier_proto::value::{Map, Value, from_json};
use regex::{Regex, RegexBuilder};

use super::room;
use crate::{
    node::NodeError,
    nodes::{
        args::{Args, one, size},
        code::{Compute, Routed, Types, factory},
        work::Long,
    },
};

/// All types of this part.
pub(super) fn types() -> Types {
    let plain: [(&'static str, Compute); 8] = [
        ("nodetool.text.ExtractJSON", extract_json),
        ("nodetool.text.ExtractRegex", groups),
        ("nodetool.text.FindAllRegex", |args| {
            let pattern = pattern(args, "regex", &args.text("regex"))?;
            Ok(texts(
                pattern.find_iter(&args.text("text")).map(|found| found.as_str()),
            ))
        }),
        ("nodetool.text.ParseJSON", |args| {
            Ok(from_json(parse(&args.text("text"))?))
        }),
        ("nodetool.text.RegexMatch", matches),
        ("nodetool.text.RegexReplace", replace),
        ("nodetool.text.RegexSplit", split),
        ("nodetool.text.RegexValidate", |args| {
            let pattern = pattern(args, "pattern", &format!("^(?:{})", args.text("pattern")))?;
            Ok(pattern.is_match(&args.text("text")).into())
        }),
    ];
    let mut types: Types = plain
        .into_iter()
        .map(|(name, compute)| (name, factory(Long(compute))))
        .collect();
    types.push(("nodetool.text.FilterRegexString", factory(Routed(filter))));
    types
}

fn pattern(args: Args<'_>, name: &str, text: &str) -> Result<Regex, NodeError> {
    RegexBuilder::new(text)
        .dot_matches_new_line(args.flag("dotall", false))
        .case_insensitive(args.flag("ignorecase", false))
        .multi_line(args.flag("multiline", false))
        .build()
        .map_err(|error| {
            NodeError::new(format!("the input `{name}` is no pattern: {error}")).code("input.value")
        })
}
fn texts<'a>(texts: impl Iterator<Item = &'a str>) -> Value {
    Value::list(texts.map(Value::from).collect())
}
/// The groups of the first match; one that took no part is empty.
fn groups(args: Args<'_>) -> Result<Value, NodeError> {
    let pattern = pattern(args, "regex", &args.text("regex"))?;
    let text = args.text("text");
    let found = pattern.captures(&text);
    let groups = found.iter().flat_map(|found| found.iter().skip(1));
    Ok(texts(
        groups.map(|group| group.map_or("", |group| group.as_str())),
    ))
}
fn matches(args: Args<'_>) -> Result<Value, NodeError> {
    let pattern = pattern(args, "pattern", &args.text("pattern"))?;
    let (text, group) = (args.text("text"), size(args.int("group", 0)?));
    if group >= pattern.captures_len() {
        let text = format!(
            "the input `group` asks for group {group}, the pattern has {}",
            pattern.captures_len() - 1
        );
        return Err(NodeError::new(text).code("input.value"));
    }
    Ok(texts(
        pattern
            .captures_iter(&text)
            .filter_map(|found| found.get(group))
            .map(|group| group.as_str()),
    ))
}
/// `$1` and `$name` stand for groups; a count of 0 replaces all.
fn replace(args: Args<'_>) -> Result<Value, NodeError> {
    let pattern = pattern(args, "pattern", &args.text("pattern"))?;
    let (text, replacement) = (args.text("text"), args.text("replacement"));
    let most = size(args.int("count", 0)?);
    let found = pattern
        .find_iter(&text)
        .take(if most == 0 { usize::MAX } else { most });
    // A group that is named repeats what was found, at most all of the text.
    let named = text.len().saturating_mul(replacement.matches('$').count() + 1);
    room(named.saturating_add(found.count().saturating_mul(replacement.len())))?;
    Ok(pattern
        .replacen(&text, most, replacement.as_str())
        .into_owned()
        .into())
}
fn split(args: Args<'_>) -> Result<Value, NodeError> {
    let pattern = pattern(args, "pattern", &args.text("pattern"))?;
    let (text, most) = (args.text("text"), size(args.int("maxsplit", 0)?));
    Ok(if most == 0 {
        texts(pattern.split(&text))
    } else {
        texts(pattern.splitn(&text, most.saturating_add(1)))
    })
}
fn filter(args: Args<'_>) -> Result<Map, NodeError> {
    let given = args.text("pattern");
    let whole = if args.flag("full_match", false) {
        format!("^(?:{given})$")
    } else {
        given
    };
    let holds = pattern(args, "pattern", &whole)?.is_match(&args.text("value"));
    Ok(if holds {
        one("output", args.value("value"))
    } else {
        Map::new()
    })
}

fn parse(text: &str) -> Result<serde_json::Value, NodeError> {
    serde_json::from_str(text)
        .map_err(|error| NodeError::new(format!("the input `text` is no JSON: {error}")).code("input.value"))
}
/// Names and places joined by dots, `[2]` for a place, `*` for all.
fn extract_json(args: Args<'_>) -> Result<Value, NodeError> {
    let path = args.text_or("json_path", "$.*");
    let Some(steps) = path.strip_prefix('$') else {
        return Err(NodeError::new("the input `json_path` must begin with `$`").code("input.value"));
    };
    let steps = steps.replace('[', ".").replace([']', '"', '\''], "");
    let mut found = vec![from_json(parse(&args.text("text"))?)];
    for step in steps.split('.').filter(|step| !step.is_empty()) {
        found = found.iter().flat_map(|value| below(value, step)).collect();
    }
    if args.flag("find_all", false) {
        return Ok(Value::list(found));
    }
    let none =
        || NodeError::new(format!("the path `{path}` matches nothing in the JSON")).code("input.value");
    found.into_iter().next().ok_or_else(none)
}
fn below(value: &Value, step: &str) -> Vec<Value> {
    match value {
        Value::List(items) if step == "*" => items.as_ref().clone(),
        Value::List(items) => step
            .parse::<usize>()
            .ok()
            .and_then(|at| items.get(at))
            .cloned()
            .into_iter()
            .collect(),
        Value::Map(map) if step == "*" => map.values().cloned().collect(),
        other => other.get(step).into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use crate::nodes::testing::process;

    #[rstest]
    #[case("ExtractRegex", json!({"text": "2026-11-30", "regex": r"(\d+)-(\d+)(x)?"}), json!(["2026", "11", ""]))]
    #[case("ExtractRegex", json!({"text": "none", "regex": r"(\d+)"}), json!([]))]
    #[case("FindAllRegex", json!({"text": "a1 B2", "regex": "[ab]\\d", "ignorecase": true}), json!(["a1", "B2"]))]
    #[case("ParseJSON", json!({"text": "{\"a\": [1, 2.5, null]}"}), json!({"a": [1, 2.5, null]}))]
    #[case("RegexMatch", json!({"text": "k=v l=w", "pattern": r"(\w)=(\w)", "group": 2}), json!(["v", "w"]))]
    #[case("RegexReplace", json!({"text": "aaa", "pattern": "a", "replacement": "b", "count": 2}), json!("bba"))]
    #[case("RegexReplace", json!({"text": "k=v", "pattern": "(.)=(.)", "replacement": "$2=$1"}), json!("v=k"))]
    #[case("RegexSplit", json!({"text": "a1b2c", "pattern": r"\d"}), json!(["a", "b", "c"]))]
    #[case("RegexSplit", json!({"text": "a1b2c", "pattern": r"\d", "maxsplit": 1}), json!(["a", "b2c"]))]
    #[case("RegexValidate", json!({"text": "abc", "pattern": "b"}), json!(false))]
    #[case("RegexValidate", json!({"text": "abc", "pattern": "x|ab"}), json!(true))]
    #[case("ExtractJSON", json!({"text": "{\"a\": [{\"b\": 7}]}", "json_path": "$.a[0].b"}), json!(7))]
    #[case("ExtractJSON", json!({"text": "[1, 2]", "json_path": "$.*", "find_all": true}), json!([1, 2]))]
    #[tokio::test]
    async fn patterns_are_applied(
        #[case] name: &str,
        #[case] inputs: serde_json::Value,
        #[case] expected: serde_json::Value,
    ) {
        let out = process(&format!("nodetool.text.{name}"), inputs)
            .await
            .expect("a match");
        assert_eq!(out, json!({"output": expected}));
    }

    #[rstest]
    #[case("FindAllRegex", json!({"regex": "("}), "`regex`")]
    #[case("ParseJSON", json!({"text": "{"}), "`text` is no JSON")]
    #[case("RegexMatch", json!({"pattern": "a", "group": 1}), "`group`")]
    #[case("ExtractJSON", json!({"text": "{}", "json_path": "$.a"}), "matches nothing")]
    #[tokio::test]
    async fn faults_name_the_input(
        #[case] name: &str,
        #[case] inputs: serde_json::Value,
        #[case] part: &str,
    ) {
        let error = process(&format!("nodetool.text.{name}"), inputs)
            .await
            .expect_err("a fault");
        assert!(error.message.contains(part), "{}", error.message);
    }
}

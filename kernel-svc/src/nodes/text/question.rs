//! Types that say something about a text.

use std::cmp::Ordering;

use atelier_proto::value::{Map, Value};

use super::bounds;
use crate::{
    node::NodeError,
    nodes::{
        args::{Args, count, one, size, text_of},
        code::{Compute, Plain, Routed, Types, factory},
    },
};

/// All types of this part.
pub(super) fn types() -> Types {
    let plain: [(&'static str, Compute); 9] = [
        ("nodetool.text.Compare", |args| {
            Ok(match compare(args) {
                Ordering::Less => "less",
                Ordering::Equal => "equal",
                Ordering::Greater => "greater",
            }
            .into())
        }),
        ("nodetool.text.Contains", contains),
        ("nodetool.text.EndsWith", |args| {
            Ok(args.text("text").ends_with(&args.text("suffix")).into())
        }),
        ("nodetool.text.Equals", |args| Ok(compare(args).is_eq().into())),
        ("nodetool.text.HasLength", has_length),
        ("nodetool.text.IndexOf", index_of),
        ("nodetool.text.IsEmpty", |args| {
            let text = args.text("text");
            Ok(if args.flag("trim_whitespace", true) {
                text.trim().is_empty()
            } else {
                text.is_empty()
            }
            .into())
        }),
        ("nodetool.text.Length", length),
        ("nodetool.text.StartsWith", |args| {
            Ok(args.text("text").starts_with(&args.text("prefix")).into())
        }),
    ];
    let mut types: Types = plain
        .into_iter()
        .map(|(name, compute)| (name, factory(Plain(compute))))
        .collect();
    types.push(("nodetool.text.FilterString", factory(Routed(filter))));
    types
}

fn compare(args: Args<'_>) -> Ordering {
    let normal = |name: &str| {
        let text = args.text(name);
        let text = if args.flag("trim_whitespace", false) {
            text.trim().to_owned()
        } else {
            text
        };
        if args.flag("case_sensitive", true) {
            text
        } else {
            text.to_lowercase()
        }
    };
    normal("text_a").cmp(&normal("text_b"))
}
/// Several texts to look for stand in for the single one. Nothing to look for is not contained.
fn contains(args: Args<'_>) -> Result<Value, NodeError> {
    let mut wanted: Vec<String> = args.list("search_values").iter().map(text_of).collect();
    if wanted.is_empty() {
        wanted.push(args.text("substring"));
        wanted.retain(|text| !text.is_empty());
    }
    if wanted.is_empty() {
        return Ok(false.into());
    }
    let fold = |text: String| {
        if args.flag("case_sensitive", true) {
            text
        } else {
            text.to_lowercase()
        }
    };
    let text = fold(args.text("text"));
    let mut found = wanted.into_iter().map(|part| text.contains(&fold(part)));
    Ok(match args.text_or("match_mode", "any").as_str() {
        "all" => found.all(|found| found),
        "none" => found.all(|found| !found),
        _ => found.any(|found| found),
    }
    .into())
}
/// A limit of 0 is none.
fn has_length(args: Args<'_>) -> Result<Value, NodeError> {
    let length = args.text("text").chars().count();
    let limit = |name: &str| Ok::<_, NodeError>(Some(size(args.int(name, 0)?)).filter(|limit| *limit > 0));
    let (min, max, exact) = (limit("min_length")?, limit("max_length")?, limit("exact_length")?);
    let fits = exact.is_none_or(|exact| length == exact)
        && min.is_none_or(|min| length >= min)
        && max.is_none_or(|max| length <= max);
    Ok(fits.into())
}
/// Places count characters; an end of 0 means the end of the text.
fn index_of(args: Args<'_>) -> Result<Value, NodeError> {
    let fold = |text: String| {
        if args.flag("case_sensitive", true) {
            text
        } else {
            text.to_lowercase()
        }
    };
    let (text, part) = (fold(args.text("text")), fold(args.text("substring")));
    let end = args.int("end_index", 0)?;
    let stop = if end > 0 { end } else { i64::MAX };
    let (start, stop) = bounds(text.chars().count(), args.int("start_index", 0)?.max(0), stop);
    let region: String = text.chars().skip(start).take(stop - start).collect();
    let found = if args.flag("search_from_end", false) {
        region.rfind(&part)
    } else {
        region.find(&part)
    };
    let place = found
        .and_then(|at| region.get(..at))
        .map(|before| start + before.chars().count());
    Ok(place.map_or(Value::Int(-1), count))
}
fn length(args: Args<'_>) -> Result<Value, NodeError> {
    let text = args.text("text");
    let trimmed = args.flag("trim_whitespace", false);
    let text = if trimmed { text.trim() } else { &text };
    Ok(count(match args.text_or("measure", "characters").as_str() {
        "words" => text.split_whitespace().count(),
        "lines" => text.lines().filter(|line| !trimmed || !line.is_empty()).count(),
        _ => text.chars().count(),
    }))
}
/// Gives the text on when the condition holds, else nothing.
fn filter(args: Args<'_>) -> Result<Map, NodeError> {
    let (text, criteria) = (args.text("value"), args.text("criteria"));
    let length = text.chars().count();
    let wanted = || args.int("criteria", 0).map(size);
    let holds = match args.text_or("filter_type", "contains").as_str() {
        "starts_with" => text.starts_with(&criteria),
        "ends_with" => text.ends_with(&criteria),
        "length_greater" => length > wanted()?,
        "length_less" => length < wanted()?,
        "exact_length" => length == wanted()?,
        _ => text.contains(&criteria),
    };
    Ok(if holds {
        one("output", args.value("value"))
    } else {
        Map::new()
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use crate::nodes::testing::process;

    #[rstest]
    #[case("Compare", json!({"text_a": "a", "text_b": "b"}), json!("less"))]
    #[case("Compare", json!({"text_a": "B ", "text_b": "b", "case_sensitive": false, "trim_whitespace": true}),
        json!("equal"))]
    #[case("Equals", json!({"text_a": "a", "text_b": "A"}), json!(false))]
    #[case("Contains", json!({"text": "moorland", "substring": "land"}), json!(true))]
    #[case("Contains", json!({"text": "moorland"}), json!(false))]
    #[case("Contains", json!({"text": "ab", "search_values": ["a", "x"], "match_mode": "all"}), json!(false))]
    #[case("Contains", json!({"text": "ab", "search_values": ["y", "x"], "match_mode": "none"}), json!(true))]
    #[case("Contains", json!({"text": "AB", "substring": "b", "case_sensitive": false}), json!(true))]
    #[case("StartsWith", json!({"text": "abc", "prefix": "ab"}), json!(true))]
    #[case("EndsWith", json!({"text": "abc", "suffix": "ab"}), json!(false))]
    #[case("HasLength", json!({"text": "abc"}), json!(true))]
    #[case("HasLength", json!({"text": "abc", "min_length": 4}), json!(false))]
    #[case("HasLength", json!({"text": "äöü", "exact_length": 3}), json!(true))]
    #[case("IndexOf", json!({"text": "äbcbc", "substring": "bc"}), json!(1))]
    #[case("IndexOf", json!({"text": "äbcbc", "substring": "bc", "search_from_end": true}), json!(3))]
    #[case("IndexOf", json!({"text": "abc", "substring": "a", "start_index": 1}), json!(-1))]
    #[case("IsEmpty", json!({"text": " \n"}), json!(true))]
    #[case("IsEmpty", json!({"text": " ", "trim_whitespace": false}), json!(false))]
    #[case("Length", json!({"text": "äöü"}), json!(3))]
    #[case("Length", json!({"text": "a  b\nc", "measure": "words"}), json!(3))]
    #[case("Length", json!({"text": "a\nb\n", "measure": "lines"}), json!(2))]
    #[tokio::test]
    async fn texts_are_asked_about(
        #[case] name: &str,
        #[case] inputs: serde_json::Value,
        #[case] expected: serde_json::Value,
    ) {
        let out = process(&format!("nodetool.text.{name}"), inputs)
            .await
            .expect("an answer");
        assert_eq!(out, json!({"output": expected}));
    }

    #[rstest]
    #[case(json!({"value": "moor", "criteria": "oo"}), true)]
    #[case(json!({"value": "moor", "criteria": "x"}), false)]
    #[case(json!({"value": "moor", "filter_type": "length_greater", "criteria": "3"}), true)]
    #[tokio::test]
    async fn a_filtered_text_goes_nowhere(#[case] inputs: serde_json::Value, #[case] passes: bool) {
        let out = process("nodetool.text.FilterString", inputs)
            .await
            .expect("an answer");
        assert_eq!(
            out,
            if passes {
                json!({"output": "moor"})
            } else {
                json!({})
            }
        );
    }
}

//! Branches, loops over lists, and what is done with streams.
//!
//! What lives here: types that see one value at a time. What does not: those that read a stream to its end ([`gather`]),
//! let parts of it through ([`pass`]) or join two ([`join`]).

mod condition;
mod gather;
mod join;
mod looping;
mod pass;

use async_trait::async_trait;
use atelier_proto::value::{Map, Value};

use super::{
    args::{Args, count, map, one, size, text_of},
    code::{Generator, Routed, Sink, Streamed, Types, factory},
};
use crate::node::{Context, NodeError};

/// All types of this family.
pub(super) fn types() -> Types {
    let mut types: Types = vec![
        ("nodetool.control.ForEach", factory(Streamed(ForEach))),
        ("nodetool.control.If", factory(Routed(branch))),
        (
            "nodetool.control.RepeatCount",
            factory(Streamed(Repeat { counting: true })),
        ),
        (
            "nodetool.control.RepeatValue",
            factory(Streamed(Repeat { counting: false })),
        ),
        ("nodetool.control.Reroute", factory(Routed(reroute))),
        ("nodetool.control.Switch", factory(Routed(switch))),
        ("nodetool.control.TryCatch", factory(Routed(try_catch))),
    ];
    types.extend(condition::types());
    types.extend(gather::types());
    types.extend(pass::types());
    types.extend(join::types());
    types.extend(looping::types());
    types
}

/// The code of a type that yields frames, for tests.
#[cfg(test)]
pub(super) fn generator(node_type: &str) -> Option<Box<dyn Generator>> {
    match node_type {
        "nodetool.control.ForEach" => Some(Box::new(ForEach)),
        "nodetool.control.RepeatCount" => Some(Box::new(Repeat { counting: true })),
        "nodetool.control.RepeatValue" => Some(Box::new(Repeat { counting: false })),
        _ => None,
    }
}

/// Only the taken branch gets the value; the other one gets nothing, so that it is skipped.
fn branch(args: Args<'_>) -> Result<Map, NodeError> {
    let taken = if args.flag("condition", false) {
        "if_true"
    } else {
        "if_false"
    };
    Ok(one(taken, args.value("value")))
}
/// Absent in, absent out.
fn reroute(args: Args<'_>) -> Result<Map, NodeError> {
    Ok(args
        .0
        .get("input_value")
        .map(|value| one("output", value.clone()))
        .unwrap_or_default())
}
/// The first case whose text equals that of the value wins.
fn switch(args: Args<'_>) -> Result<Map, NodeError> {
    let value = args.text("value");
    let place = args.list("cases").iter().position(|case| text_of(case) == value);
    let input = args.value("input");
    Ok(match place {
        Some(place) => map([("matched", input), ("index", count(place))]),
        None => map([("default", input), ("index", Value::Int(-1))]),
    })
}
fn try_catch(args: Args<'_>) -> Result<Map, NodeError> {
    let value = args.value("value");
    Ok(if value.is_null() {
        let why = "the value is null or was not given";
        map([
            ("output", args.value("fallback")),
            ("error", why.into()),
            ("has_error", true.into()),
        ])
    } else {
        map([
            ("output", value),
            ("error", "".into()),
            ("has_error", false.into()),
        ])
    })
}

/// One frame for each item of a list. A value that is no list is one item; nothing is none.
#[derive(Clone, Copy)]
struct ForEach;
#[async_trait]
impl Generator for ForEach {
    fn remembered(&self) -> bool {
        false
    }
    async fn generate(&self, inputs: Map, frames: &mut dyn Sink, _ctx: &Context) -> Result<(), NodeError> {
        let args = Args(&inputs);
        let limit = args.int("limit", -1)?;
        let limit = if limit < 0 { usize::MAX } else { size(limit) };
        for (place, item) in args.list("input_list").into_iter().take(limit).enumerate() {
            frames
                .frame(map([("output", item), ("index", count(place))]))
                .await?;
        }
        Ok(())
    }
}

/// A value, or the numbers from zero, so many times.
#[derive(Clone, Copy)]
struct Repeat {
    counting: bool,
}
#[async_trait]
impl Generator for Repeat {
    fn remembered(&self) -> bool {
        false
    }
    async fn generate(&self, inputs: Map, frames: &mut dyn Sink, ctx: &Context) -> Result<(), NodeError> {
        let args = Args(&inputs);
        let value = args.value("value");
        for place in 0..args.int("count", 1)? {
            if ctx.cancel.is_cancelled() {
                return Err(NodeError::cancelled());
            }
            let output = if self.counting {
                Value::Int(place)
            } else {
                value.clone()
            };
            frames
                .frame(map([("output", output), ("index", Value::Int(place))]))
                .await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use crate::nodes::testing::{Node, process};

    #[rstest]
    #[case("If", json!({"condition": true, "value": 7}), json!({"if_true": 7}))]
    #[case("If", json!({"condition": 0, "value": 7}), json!({"if_false": 7}))]
    #[case("If", json!({"value": null}), json!({"if_false": null}))]
    #[case("Reroute", json!({"input_value": [1]}), json!({"output": [1]}))]
    #[case("Reroute", json!({"input_value": null}), json!({"output": null}))]
    #[case("Reroute", json!({}), json!({}))]
    #[case("Switch", json!({"value": 2, "cases": [1, "2", 2], "input": "x"}), json!({"matched": "x", "index": 1}))]
    #[case("Switch", json!({"value": 9, "cases": [1], "input": "x"}), json!({"default": "x", "index": -1}))]
    #[case("TryCatch", json!({"value": 0, "fallback": 1}), json!({"output": 0, "error": "", "has_error": false}))]
    #[case("TryCatch", json!({"fallback": 1}),
        json!({"output": 1, "error": "the value is null or was not given", "has_error": true}))]
    #[tokio::test]
    async fn values_are_routed(
        #[case] name: &str,
        #[case] inputs: serde_json::Value,
        #[case] expected: serde_json::Value,
    ) {
        let out = process(&format!("nodetool.control.{name}"), inputs)
            .await
            .expect("outputs");
        assert_eq!(out, expected);
    }

    #[rstest]
    #[case("ForEach", json!({"input_list": ["a", "b", "c"]}), &["a", "b", "c"])]
    #[case("ForEach", json!({"input_list": ["a", "b", "c"], "limit": 2}), &["a", "b"])]
    #[case("ForEach", json!({"input_list": ["a", "b", "c"], "limit": -1}), &["a", "b", "c"])]
    #[case("ForEach", json!({"input_list": ["a"], "limit": 0}), &[])]
    #[case("ForEach", json!({"input_list": "a"}), &["a"])]
    #[case("ForEach", json!({"input_list": []}), &[])]
    #[case("ForEach", json!({"input_list": null}), &[])]
    #[case("RepeatValue", json!({"value": "x", "count": 2}), &["x", "x"])]
    #[case("RepeatValue", json!({"value": "x", "count": -3}), &[])]
    #[tokio::test]
    async fn items_come_one_after_the_other(
        #[case] name: &str,
        #[case] inputs: serde_json::Value,
        #[case] expected: &[&str],
    ) {
        let frames = Node::new(&format!("nodetool.control.{name}"))
            .frames(inputs)
            .await
            .expect("frames");
        let expected: Vec<_> = expected
            .iter()
            .enumerate()
            .map(|(index, output)| json!({"output": output, "index": index}))
            .collect();
        assert_eq!(frames, expected);
    }

    #[tokio::test]
    async fn called_as_a_whole_a_loop_gives_its_last_item() {
        let out = process("nodetool.control.ForEach", json!({"input_list": [5, 6]}))
            .await
            .expect("outputs");
        assert_eq!(out, json!({"output": 6, "index": 1}));
    }
}

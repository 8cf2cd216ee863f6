//! Types that make a text out of others.

use async_trait::async_trait;
use atelier_proto::value::{Map, Value};

use super::{part, room};
use crate::{
    node::{Context, Executor, NodeError},
    nodes::{
        args::{Args, json_of, one, size, text_of},
        code::{Plain, Types, factory},
    },
};

/// Longest text that a node fills up to, in characters.
const MAX_PADDED: i64 = 10_000_000;

/// All types of this part.
pub(super) fn types() -> Types {
    let plain: [(&'static str, crate::nodes::code::Compute); 18] = [
        ("nodetool.text.CapitalizeText", |args| {
            Ok(capitalized(&args.text("text")).into())
        }),
        ("nodetool.text.Chunk", chunks),
        ("nodetool.text.CollapseWhitespace", collapse),
        ("nodetool.text.Concat", |args| {
            Ok(args
                .others(&[])
                .map(|(_, value)| text_of(value))
                .collect::<String>()
                .into())
        }),
        ("nodetool.text.Extract", |args| {
            Ok(part(&args.text("text"), args.int("start", 0)?, args.int("end", 0)?).into())
        }),
        ("nodetool.text.Join", |args| {
            let texts: Vec<_> = args.list("strings").iter().map(text_of).collect();
            let separator = args.text("separator");
            let own: usize = texts.iter().map(String::len).sum();
            room(own.saturating_add(texts.len().saturating_mul(separator.len())))?;
            Ok(texts.join(&separator).into())
        }),
        ("nodetool.text.PadText", pad),
        ("nodetool.text.RemovePunctuation", remove_punctuation),
        ("nodetool.text.Replace", replace),
        ("nodetool.text.Slice", slice),
        ("nodetool.text.Split", split),
        ("nodetool.text.SurroundWith", surround),
        ("nodetool.text.ToLowercase", |args| {
            Ok(args.text("text").to_lowercase().into())
        }),
        ("nodetool.text.ToString", to_string),
        ("nodetool.text.ToTitlecase", |args| {
            Ok(titled(&args.text("text")).into())
        }),
        ("nodetool.text.ToUppercase", |args| {
            Ok(args.text("text").to_uppercase().into())
        }),
        ("nodetool.text.TrimWhitespace", trim),
        ("nodetool.text.TruncateText", truncate),
    ];
    let mut types: Types = plain
        .into_iter()
        .map(|(name, compute)| (name, factory(Plain(compute))))
        .collect();
    types.push(("nodetool.text.Collect", factory(Collect::default())));
    types
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters
        .next()
        .map(|first| first.to_uppercase().to_string())
        .unwrap_or_default();
    first + &letters.as_str().to_lowercase()
}
/// Each word with a capital; white space as it is.
fn titled(text: &str) -> String {
    text.split_inclusive(char::is_whitespace)
        .map(capitalized)
        .collect()
}
fn chunks(args: Args<'_>) -> Result<Value, NodeError> {
    let length = args.int("length", 100)?;
    let step = length.saturating_sub(args.int("overlap", 0)?.max(0));
    if length < 1 || step < 1 {
        let text = "the input `length` must be at least 1 and larger than `overlap`";
        return Err(NodeError::new(text).code("input.value"));
    }
    let (text, separator) = (args.text("text"), args.text_or("separator", " "));
    let words: Vec<&str> = if separator.is_empty() {
        vec![&text]
    } else {
        text.split(separator.as_str()).collect()
    };
    // Each word stands in so many pieces.
    let times = size(length).min(words.len()).div_ceil(size(step));
    room(text.len().saturating_add(words.len()).saturating_mul(times))?;
    let pieces = (0..words.len()).step_by(size(step));
    let pieces = pieces.map(|at| {
        words
            .iter()
            .skip(at)
            .take(size(length))
            .copied()
            .collect::<Vec<_>>()
            .join(" ")
    });
    Ok(Value::list(pieces.map(Value::from).collect()))
}
fn collapse(args: Args<'_>) -> Result<Value, NodeError> {
    let text = args.text("text");
    let text = if args.flag("trim_edges", true) {
        text.trim()
    } else {
        &text
    };
    let keep_lines = args.flag("preserve_newlines", false);
    let replacement = args.text_or("replacement", " ");
    let runs = text.split_whitespace().count() + 1;
    room(text.len().saturating_add(runs.saturating_mul(replacement.len())))?;
    let mut out = String::with_capacity(text.len());
    let mut inside = false;
    for letter in text.chars() {
        let run = letter.is_whitespace() && !(keep_lines && matches!(letter, '\n' | '\r'));
        match (run, inside) {
            (true, false) => out.push_str(&replacement),
            (true, true) => {}
            (false, _) => out.push(letter),
        }
        inside = run;
    }
    Ok(out.into())
}
fn pad(args: Args<'_>) -> Result<Value, NodeError> {
    let (text, filler) = (args.text("text"), args.text_or("pad_character", " "));
    let wanted = args.int("length", 0)?;
    if filler.chars().count() != 1 {
        return Err(
            NodeError::new("the input `pad_character` must be a single character").code("input.value"),
        );
    }
    if wanted > MAX_PADDED {
        let text = format!("the input `length` must be at most {MAX_PADDED}");
        return Err(NodeError::new(text).code("input.value"));
    }
    let needed = size(wanted).saturating_sub(text.chars().count());
    let (left, right) = match args.text_or("direction", "right").as_str() {
        "left" => (needed, 0),
        "both" => (needed / 2, needed - needed / 2),
        _ => (0, needed),
    };
    Ok(format!("{}{text}{}", filler.repeat(left), filler.repeat(right)).into())
}
fn remove_punctuation(args: Args<'_>) -> Result<Value, NodeError> {
    let marks = args.text_or("punctuation", "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~");
    let (text, replacement) = (args.text("text"), args.text("replacement"));
    let found = text.chars().filter(|letter| marks.contains(*letter)).count();
    room(text.len().saturating_add(found.saturating_mul(replacement.len())))?;
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        if marks.contains(letter) {
            out.push_str(&replacement)
        } else {
            out.push(letter)
        }
    }
    Ok(out.into())
}
/// An empty text to look for changes nothing.
fn replace(args: Args<'_>) -> Result<Value, NodeError> {
    let (text, old, new) = (args.text("text"), args.text("old"), args.text("new_value"));
    if old.is_empty() {
        return Ok(text.into());
    }
    room(
        text.len()
            .saturating_add(text.matches(&old).count().saturating_mul(new.len())),
    )?;
    Ok(text.replace(&old, &new).into())
}
/// As slices of Python; a stop of 0 means the end.
fn slice(args: Args<'_>) -> Result<Value, NodeError> {
    let text = args.text("text");
    let (start, stop, step) = (args.int("start", 0)?, args.int("stop", 0)?, args.int("step", 1)?);
    if step == 0 {
        return Err(NodeError::new("the input `step` must not be 0").code("input.value"));
    }
    let stride = usize::try_from(step.unsigned_abs()).unwrap_or(usize::MAX);
    let picked: String = if step > 0 {
        let stop = if stop == 0 { i64::MAX } else { stop };
        part(&text, start, stop).chars().step_by(stride).collect()
    } else {
        let letters: Vec<char> = text.chars().collect();
        let length = i64::try_from(letters.len()).unwrap_or(i64::MAX);
        let from = if start == 0 {
            length - 1
        } else if start < 0 {
            start + length
        } else {
            start.min(length - 1)
        };
        let down_to = if stop == 0 {
            -1
        } else if stop < 0 {
            (stop + length).max(-1)
        } else {
            stop
        };
        let run = letters
            .iter()
            .take(size(from.saturating_add(1)))
            .skip(size(down_to.saturating_add(1)));
        run.rev().step_by(stride).collect()
    };
    Ok(picked.into())
}
/// An empty delimiter cuts between all characters.
fn split(args: Args<'_>) -> Result<Value, NodeError> {
    let (text, delimiter) = (args.text("text"), args.text_or("delimiter", ","));
    let parts: Vec<Value> = if delimiter.is_empty() {
        text.chars().map(|letter| letter.to_string().into()).collect()
    } else {
        text.split(delimiter.as_str()).map(Value::from).collect()
    };
    Ok(Value::list(parts))
}
fn surround(args: Args<'_>) -> Result<Value, NodeError> {
    let (text, prefix, suffix) = (args.text("text"), args.text("prefix"), args.text("suffix"));
    let wrapped = text.starts_with(&prefix) && text.ends_with(&suffix);
    Ok(if args.flag("skip_if_wrapped", true) && wrapped {
        text
    } else {
        format!("{prefix}{text}{suffix}")
    }
    .into())
}
fn to_string(args: Args<'_>) -> Result<Value, NodeError> {
    let value = args.value("value");
    Ok(if args.text("mode") == "repr" {
        json_of(&value).to_string()
    } else {
        text_of(&value)
    }
    .into())
}
fn trim(args: Args<'_>) -> Result<Value, NodeError> {
    let text = args.text("text");
    let mut rest = text.as_str();
    if args.flag("trim_start", true) {
        rest = rest.trim_start();
    }
    if args.flag("trim_end", true) {
        rest = rest.trim_end();
    }
    Ok(rest.into())
}
fn truncate(args: Args<'_>) -> Result<Value, NodeError> {
    let (text, ellipsis) = (args.text("text"), args.text("ellipsis"));
    let longest = args.int("max_length", 100)?;
    Ok(shortened(&text, size(longest), &ellipsis).into())
}
/// A text of at most so many characters, with an ending when it was cut and the ending has room.
fn shortened(text: &str, longest: usize, ellipsis: &str) -> String {
    if longest == 0 {
        return ellipsis.to_owned();
    }
    if text.chars().count() <= longest {
        return text.to_owned();
    }
    let ending = ellipsis.chars().count();
    if ending < longest {
        text.chars().take(longest - ending).collect::<String>() + ellipsis
    } else {
        text.chars().take(longest).collect()
    }
}

/// What has arrived so far, joined.
#[derive(Clone, Default)]
struct Collect {
    items: Vec<String>,
}
#[async_trait]
impl Executor for Collect {
    async fn process(&mut self, inputs: Map, _ctx: &Context) -> Result<Map, NodeError> {
        let args = Args(&inputs);
        self.items.push(args.text("input_item"));
        Ok(one("output", self.items.join(&args.text("separator"))))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use crate::nodes::testing::process;

    #[rstest]
    #[case("CapitalizeText", json!({"text": "hELLO wORLD"}), json!("Hello world"))]
    #[case("CapitalizeText", json!({"text": ""}), json!(""))]
    #[case("Chunk", json!({"text": "a b c d e", "length": 2}), json!(["a b", "c d", "e"]))]
    #[case("Chunk", json!({"text": "a b c", "length": 2, "overlap": 1}), json!(["a b", "b c", "c"]))]
    #[case("CollapseWhitespace", json!({"text": " a \n\t b "}), json!("a b"))]
    #[case("CollapseWhitespace", json!({"text": "a  \n  b", "preserve_newlines": true}), json!("a \n b"))]
    #[case("Concat", json!({"a": "x", "b": 2, "_control_context": "no", "c": null}), json!("x2"))]
    #[case("Concat", json!({}), json!(""))]
    #[case("Extract", json!({"text": "moorland", "start": 0, "end": 4}), json!("moor"))]
    #[case("Extract", json!({"text": "äöü", "start": -2, "end": 9}), json!("öü"))]
    #[case("Extract", json!({"text": "abc", "start": 2, "end": 1}), json!(""))]
    #[case("Join", json!({"strings": ["a", 2, true], "separator": ", "}), json!("a, 2, true"))]
    #[case("Join", json!({"strings": []}), json!(""))]
    #[case("PadText", json!({"text": "ab", "length": 5, "pad_character": "*", "direction": "both"}), json!("*ab**"))]
    #[case("PadText", json!({"text": "ab", "length": 1}), json!("ab"))]
    #[case("RemovePunctuation", json!({"text": "a, b!"}), json!("a b"))]
    #[case("Replace", json!({"text": "aaa", "old": "a", "new_value": "b"}), json!("bbb"))]
    #[case("Replace", json!({"text": "aaa", "old": "", "new_value": "b"}), json!("aaa"))]
    #[case("Slice", json!({"text": "abcdef", "start": 1, "stop": 4}), json!("bcd"))]
    #[case("Slice", json!({"text": "abcdef", "start": -2}), json!("ef"))]
    #[case("Slice", json!({"text": "abcdef", "step": 2}), json!("ace"))]
    #[case("Slice", json!({"text": "abcdef", "step": -1}), json!("fedcba"))]
    #[case("Slice", json!({"text": "abcdef", "start": 4, "stop": 1, "step": -2}), json!("ec"))]
    #[case("Slice", json!({"text": "", "step": -1}), json!(""))]
    #[case("Split", json!({"text": "a,b,,c"}), json!(["a", "b", "", "c"]))]
    #[case("Split", json!({"text": "a\nb", "delimiter": "\n"}), json!(["a", "b"]))]
    #[case("Split", json!({"text": "ab", "delimiter": ""}), json!(["a", "b"]))]
    #[case("SurroundWith", json!({"text": "x", "prefix": "<", "suffix": ">"}), json!("<x>"))]
    #[case("SurroundWith", json!({"text": "<x>", "prefix": "<", "suffix": ">"}), json!("<x>"))]
    #[case("ToLowercase", json!({"text": "ÄB"}), json!("äb"))]
    #[case("ToString", json!({"value": {"a": [1, null]}}), json!("{\"a\":[1,null]}"))]
    #[case("ToString", json!({"value": "x", "mode": "repr"}), json!("\"x\""))]
    #[case("ToString", json!({"value": 1.0}), json!("1"))]
    #[case("ToTitlecase", json!({"text": "the old  house"}), json!("The Old  House"))]
    #[case("ToUppercase", json!({"text": "straße"}), json!("STRASSE"))]
    #[case("TrimWhitespace", json!({"text": " a ", "trim_end": false}), json!("a "))]
    #[case("TruncateText", json!({"text": "abcdef", "max_length": 4, "ellipsis": "…"}), json!("abc…"))]
    #[case("TruncateText", json!({"text": "abc", "max_length": 4}), json!("abc"))]
    #[tokio::test]
    async fn texts_are_made(
        #[case] name: &str,
        #[case] inputs: serde_json::Value,
        #[case] expected: serde_json::Value,
    ) {
        let out = process(&format!("nodetool.text.{name}"), inputs)
            .await
            .expect("a text");
        assert_eq!(out, json!({"output": expected}));
    }

    #[rstest]
    #[case("Slice", json!({"text": "a", "step": 0}), "`step`")]
    #[case("Slice", json!({"text": "a", "start": "x"}), "`start` expects int, got str")]
    #[case("PadText", json!({"text": "a", "pad_character": "ab"}), "`pad_character`")]
    #[case("PadText", json!({"text": "a", "length": 4_000_000_000_i64}), "`length`")]
    #[case("Chunk", json!({"text": "a", "length": 2, "overlap": 2}), "`length`")]
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

    #[tokio::test]
    async fn collect_joins_what_has_arrived() {
        let mut node = crate::nodes::testing::Node::new("nodetool.text.Collect");
        for (item, expected) in [("a", "a"), ("b", "a-b"), ("c", "a-b-c")] {
            let out = node
                .process(json!({"input_item": item, "separator": "-"}))
                .await
                .expect("a text");
            assert_eq!(out, json!({"output": expected}));
        }
    }
}

//! Types that keep a text or a value as an asset, and spellings for names and addresses.

use atelier_proto::value::{Map, Value};
use chrono::Utc;
use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

use crate::{
    node::{Context, Kept, NodeError},
    nodes::{
        args::{Args, json_of, one, size},
        code::{Compute, Plain, Types, factory},
        files::named,
        work::{MAX_CONTENT, Reach, Reaching},
    },
};

/// Widest indent of JSON.
const MAX_INDENT: i64 = 16;

/// All types of this part.
pub(super) fn types() -> Types {
    let plain: [(&'static str, Compute); 3] = [
        ("lib.json.StringifyJSON", |args| {
            Ok(json_text(&args.value("data"), args.int("indent", 2)?)?.into())
        }),
        ("nodetool.text.Slugify", |args| Ok(slug(args).into())),
        ("nodetool.text.StripAccents", |args| {
            let plain = without_accents(&args.text("text"));
            let kept = args.flag("preserve_non_ascii", true);
            Ok(plain
                .chars()
                .filter(|letter| kept || letter.is_ascii())
                .collect::<String>()
                .into())
        }),
    ];
    let reaching: [(&'static str, Reach); 2] = [
        ("nodetool.dictionary.SaveJSON", |args, ctx| {
            Box::pin(save_json(args, ctx))
        }),
        ("nodetool.text.SaveText", |args, ctx| {
            Box::pin(save_text(args, ctx))
        }),
    ];
    let mut types: Types = plain
        .into_iter()
        .map(|(name, compute)| (name, factory(Plain(compute))))
        .collect();
    types.extend(
        reaching
            .into_iter()
            .map(|(name, reach)| (name, factory(Reaching(reach)))),
    );
    types
}

/// The JSON of a value; an indent of 0 gives one line.
fn json_text(value: &Value, indent: i64) -> Result<String, NodeError> {
    use serde::Serialize;

    let json = json_of(value);
    if indent <= 0 {
        return Ok(json.to_string());
    }
    let indent = " ".repeat(size(indent.min(MAX_INDENT)));
    let mut bytes = Vec::new();
    let format = serde_json::ser::PrettyFormatter::with_indent(indent.as_bytes());
    let bad = |_| NodeError::new("the input `data` cannot be written as JSON").code("input.value");
    json.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, format))
        .map_err(bad)?;
    String::from_utf8(bytes).map_err(|_| NodeError::new("the input `data` cannot be written as JSON"))
}
fn without_accents(text: &str) -> String {
    text.nfd()
        .filter(|letter| !is_combining_mark(*letter))
        .nfc()
        .collect()
}
/// Words joined by a separator, fit for addresses.
fn slug(args: Args<'_>) -> String {
    let (unicode, lower) = (args.flag("allow_unicode", false), args.flag("lowercase", true));
    let separator = args.text_or("separator", "-");
    let text = if unicode {
        args.text("text").nfkc().collect()
    } else {
        without_accents(&args.text("text").nfkd().collect::<String>())
    };
    let text = if lower { text.to_lowercase() } else { text };
    let kept = |letter: char| letter.is_alphanumeric() && (unicode || letter.is_ascii());
    let dropped = |letter: &char| *letter == '\'' || *letter == '’' || (!unicode && !letter.is_ascii());
    let text: String = text.chars().filter(|letter| !dropped(letter)).collect();
    let words = text.split(|letter: char| !kept(letter));
    words
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(&separator)
}
async fn save(
    args: Args<'_>,
    ctx: &Context,
    text: String,
    default: &str,
    mime_type: &str,
) -> Result<Map, NodeError> {
    if text.len() > MAX_CONTENT {
        return Err(
            NodeError::new(format!("the text is larger than {MAX_CONTENT} bytes")).code("input.size"),
        );
    }
    let kept = Kept {
        kind: "text".to_owned(),
        name: named(&args.text("name"), default, Utc::now()),
        mime_type: mime_type.to_owned(),
        bytes: text.into(),
    };
    Ok(one("output", ctx.services.keep(ctx, kept).await?))
}
async fn save_text(args: Args<'_>, ctx: &Context) -> Result<Map, NodeError> {
    save(args, ctx, args.text("text"), "text.txt", "text/plain").await
}
async fn save_json(args: Args<'_>, ctx: &Context) -> Result<Map, NodeError> {
    let text = json_text(&args.value("data"), 2)?;
    save(args, ctx, text, "data.json", "application/json").await
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value as Json, json};

    use crate::nodes::testing::process;

    #[rstest]
    #[case("lib.json.StringifyJSON", json!({"data": {"b": 1, "a": [true]}}), "{\n  \"b\": 1,\n  \"a\": [\n    true\n  ]\n}")]
    #[case("lib.json.StringifyJSON", json!({"data": [1, null], "indent": 0}), "[1,null]")]
    #[case("nodetool.text.Slugify", json!({"text": " Crème brûlée, it's 100% good! "}), "creme-brulee-its-100-good")]
    #[case("nodetool.text.Slugify", json!({"text": "Straße Ö", "allow_unicode": true, "separator": "_"}), "straße_ö")]
    #[case("nodetool.text.Slugify", json!({"text": "Big Cat", "lowercase": false}), "Big-Cat")]
    #[case("nodetool.text.StripAccents", json!({"text": "Ångström 東京"}), "Angstrom 東京")]
    #[case("nodetool.text.StripAccents", json!({"text": "é東", "preserve_non_ascii": false}), "e")]
    #[tokio::test]
    async fn texts_are_written(#[case] name: &str, #[case] inputs: Json, #[case] expected: &str) {
        let out = process(name, inputs).await.expect("a text");
        assert_eq!(out, json!({"output": expected}));
    }

    #[tokio::test]
    async fn texts_and_values_are_kept_as_assets() {
        let inputs = json!({"text": "hello", "name": "a-%Y.txt"});
        let out = process("nodetool.text.SaveText", inputs).await.expect("kept");
        assert_eq!(
            (&out["output"]["type"], &out["output"]["uri"]),
            (&json!("text"), &json!("asset://kept.txt"))
        );
        let inputs = json!({"data": {"a": 1}, "name": "agent-%Y%m%d.json"});
        let out = process("nodetool.dictionary.SaveJSON", inputs)
            .await
            .expect("kept");
        assert_eq!(out["output"]["mime_type"], "application/json");
    }
}

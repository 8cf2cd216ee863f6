//! Types that take something out of a text in Markdown.

use atelier_proto::value::{Map, Value};
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use crate::{
    node::NodeError,
    nodes::{
        args::{Args, map, one},
        code::{Route, Types, factory},
        table::Frame,
        work::{Heavy, MAX_CONTENT},
    },
};

/// All types of this part.
pub(super) fn types() -> Types {
    let heavy: [(&'static str, Route); 6] = [
        ("lib.markdown.ExtractBulletLists", |args| lists(args, false)),
        ("lib.markdown.ExtractCodeBlocks", code),
        ("lib.markdown.ExtractHeaders", headers),
        ("lib.markdown.ExtractLinks", links),
        ("lib.markdown.ExtractNumberedLists", |args| lists(args, true)),
        ("lib.markdown.ExtractTables", tables),
    ];
    heavy
        .into_iter()
        .map(|(name, route)| (name, factory(Heavy(route))))
        .collect()
}

fn source(args: Args<'_>) -> Result<String, NodeError> {
    let text = args.text("markdown");
    if text.len() > MAX_CONTENT {
        let text = format!("the input `markdown` is larger than {MAX_CONTENT} bytes");
        return Err(NodeError::new(text).code("input.size"));
    }
    Ok(text)
}
fn parsed(text: &str) -> Parser<'_> {
    Parser::new_ext(
        text,
        Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS | Options::ENABLE_STRIKETHROUGH,
    )
}
/// What an event says as text.
fn said<'a>(event: &'a Event<'_>) -> Option<&'a str> {
    match event {
        Event::Text(text) | Event::Code(text) => Some(text),
        Event::SoftBreak | Event::HardBreak => Some(" "),
        _ => None,
    }
}
fn output(items: Vec<Value>) -> Result<Map, NodeError> {
    Ok(one("output", Value::list(items)))
}

/// Links with their text, and addresses that stand alone.
fn links(args: Args<'_>) -> Result<Map, NodeError> {
    let (text, titles) = (source(args)?, args.flag("include_titles", true));
    let mut found = Vec::new();
    let mut open: Option<(String, String)> = None;
    let link = |url: &str, title: &str| {
        let mut link = map([("url", url.into())]);
        if titles {
            link.insert("title".to_owned(), title.into());
        }
        Value::from(link)
    };
    for event in parsed(&text) {
        match &event {
            Event::Start(Tag::Link { dest_url, .. }) => open = Some((dest_url.to_string(), String::new())),
            Event::End(TagEnd::Link) => {
                if let Some((url, title)) = open.take() {
                    found.push(link(&url, &title));
                }
            }
            event => match (&mut open, said(event)) {
                (Some((_, title)), Some(text)) => title.push_str(text),
                (None, Some(text)) => {
                    let words = text.split_whitespace();
                    let bare =
                        words.filter(|word| word.starts_with("http://") || word.starts_with("https://"));
                    found.extend(bare.map(|url| {
                        let url = url.trim_end_matches(['.', ',', ';', ')', '"', '\'']);
                        link(url, url)
                    }));
                }
                _ => {}
            },
        }
    }
    output(found)
}
fn headers(args: Args<'_>) -> Result<Map, NodeError> {
    let text = source(args)?;
    let most = args.int("max_level", 6)?;
    let mut found = Vec::new();
    let mut open: Option<(i64, String)> = None;
    for event in parsed(&text) {
        match &event {
            Event::Start(Tag::Heading { level, .. }) => open = Some((number(*level), String::new())),
            Event::End(TagEnd::Heading(_)) => {
                if let Some((level, text)) = open.take().filter(|(level, _)| *level <= most) {
                    let place = i64::try_from(found.len()).unwrap_or(i64::MAX);
                    found.push(
                        map([
                            ("level", level.into()),
                            ("text", text.into()),
                            ("index", place.into()),
                        ])
                        .into(),
                    );
                }
            }
            event => {
                if let (Some((_, text)), Some(more)) = (&mut open, said(event)) {
                    text.push_str(more);
                }
            }
        }
    }
    output(found)
}
fn number(level: HeadingLevel) -> i64 {
    match level {
        HeadingLevel::H1 => 1,
        HeadingLevel::H2 => 2,
        HeadingLevel::H3 => 3,
        HeadingLevel::H4 => 4,
        HeadingLevel::H5 => 5,
        HeadingLevel::H6 => 6,
    }
}
fn code(args: Args<'_>) -> Result<Map, NodeError> {
    let text = source(args)?;
    let mut found = Vec::new();
    let mut open: Option<(String, String)> = None;
    for event in parsed(&text) {
        match &event {
            Event::Start(Tag::CodeBlock(kind)) => {
                let language = match kind {
                    CodeBlockKind::Fenced(info) => info.split_whitespace().next().unwrap_or_default(),
                    CodeBlockKind::Indented => "",
                };
                open = Some((language.to_owned(), String::new()));
            }
            Event::End(TagEnd::CodeBlock) => {
                if let Some((language, code)) = open.take() {
                    let language = if language.is_empty() {
                        "text".to_owned()
                    } else {
                        language
                    };
                    let code = code.trim_end_matches('\n');
                    found.push(map([("language", language.into()), ("code", code.into())]).into());
                }
            }
            Event::Text(text) => {
                if let Some((_, code)) = &mut open {
                    code.push_str(text);
                }
            }
            _ => {}
        }
    }
    output(found)
}
/// Lists at any depth, each with the texts of its own items.
fn lists(args: Args<'_>, numbered: bool) -> Result<Map, NodeError> {
    let text = source(args)?;
    let mut found: Vec<Option<Vec<String>>> = Vec::new();
    // Lists that are open: their place in `found`, and whether an item is open.
    let mut open: Vec<(usize, bool)> = Vec::new();
    for event in parsed(&text) {
        match &event {
            Event::Start(Tag::List(start)) => {
                open.push((found.len(), false));
                found.push((start.is_some() == numbered).then(Vec::new));
            }
            Event::End(TagEnd::List(_)) => {
                open.pop();
            }
            Event::Start(Tag::Item) => {
                if let Some((place, inside)) = open.last_mut() {
                    *inside = true;
                    if let Some(Some(items)) = found.get_mut(*place) {
                        items.push(String::new());
                    }
                }
            }
            event => {
                let item = open
                    .last()
                    .filter(|(_, inside)| *inside)
                    .and_then(|(place, _)| found.get_mut(*place))
                    .and_then(Option::as_mut)
                    .and_then(|items| items.last_mut());
                if let (Some(item), Some(text)) = (item, said(event)) {
                    item.push_str(text);
                }
            }
        }
    }
    let item = |text: String| -> Value {
        let text = text.trim().to_owned();
        if numbered {
            text.into()
        } else {
            map([("text", text.into())]).into()
        }
    };
    let list = |items: Vec<String>| Value::list(items.into_iter().map(item).collect());
    output(found.into_iter().flatten().map(list).collect())
}
/// The first table.
fn tables(args: Args<'_>) -> Result<Map, NodeError> {
    let text = source(args)?;
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut inside = false;
    for event in parsed(&text) {
        match &event {
            Event::Start(Tag::Table(_)) => inside = true,
            Event::End(TagEnd::Table) => break,
            Event::Start(Tag::TableHead | Tag::TableRow) => rows.push(Vec::new()),
            Event::Start(Tag::TableCell) => {
                if let Some(row) = rows.last_mut() {
                    row.push(String::new());
                }
            }
            event if inside => {
                let cell = rows.last_mut().and_then(|row| row.last_mut());
                if let (Some(cell), Some(text)) = (cell, said(event)) {
                    cell.push_str(text);
                }
            }
            _ => {}
        }
    }
    let mut rows = rows.into_iter();
    let mut frame = Frame {
        columns: rows
            .next()
            .unwrap_or_default()
            .into_iter()
            .map(crate::nodes::table::Column::named)
            .collect(),
        rows: rows
            .map(|row| row.into_iter().map(Value::from).collect())
            .collect(),
    };
    let width = frame.columns.len();
    frame
        .rows
        .iter_mut()
        .for_each(|row| row.resize(width, Value::Null));
    frame.bounded("markdown")?;
    Ok(one("output", frame.value()))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value as Json, json};

    use crate::nodes::testing::process;

    #[rstest]
    #[case("ExtractLinks", "[A *b*](https://a.org) and https://c.org/d.", json!({}),
        json!([{"url": "https://a.org", "title": "A b"}, {"url": "https://c.org/d", "title": "https://c.org/d"}]))]
    #[case("ExtractLinks", "[A](x)", json!({"include_titles": false}), json!([{"url": "x"}]))]
    #[case("ExtractHeaders", "# One\n\n## Two `x`\n\n### Three", json!({"max_level": 2}),
        json!([{"level": 1, "text": "One", "index": 0}, {"level": 2, "text": "Two x", "index": 1}]))]
    #[case("ExtractCodeBlocks", "```rust\nfn a() {}\n```\n\n    plain\n", json!({}),
        json!([{"language": "rust", "code": "fn a() {}"}, {"language": "text", "code": "plain"}]))]
    #[case("ExtractBulletLists", "- a\n- b\n  1. c\n\ntext\n\n* d\n", json!({}),
        json!([[{"text": "a"}, {"text": "b"}], [{"text": "d"}]]))]
    #[case("ExtractNumberedLists", "1. a\n2. **b**\n\n- c\n", json!({}), json!([["a", "b"]]))]
    #[tokio::test]
    async fn parts_are_found(
        #[case] name: &str,
        #[case] text: &str,
        #[case] mut inputs: Json,
        #[case] expected: Json,
    ) {
        inputs["markdown"] = json!(text);
        let out = process(&format!("lib.markdown.{name}"), inputs)
            .await
            .expect("a list");
        assert_eq!(out["output"], expected);
    }

    #[tokio::test]
    async fn the_first_table_becomes_one() {
        let text = "| a | b |\n|---|---|\n| 1 | `x` |\n| 2 |\n\n| c |\n|---|\n| 3 |\n";
        let out = process("lib.markdown.ExtractTables", json!({"markdown": text}))
            .await
            .expect("a table");
        assert_eq!(out["output"]["data"], json!([["1", "x"], ["2", ""]]));
        assert_eq!(out["output"]["columns"][1]["name"], "b");
    }
}

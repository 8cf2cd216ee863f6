//! One call that writes a list, whose items go out as soon as each is complete.

use std::sync::OnceLock;

use async_trait::async_trait;
use atelier_proto::value::Map;
use regex::Regex;

use super::{call, conversation, message, warn};
use crate::{
    node::{Context, NodeError, Piece, Pieces},
    nodes::{
        args::{Args, count, map, one},
        code::{Generator, Sink, Streamed, Types, factory},
    },
};

const SYSTEM: &str = "You write lists. Answer with a numbered list: one item a line, each complete in itself. Write \
    nothing before or after the list, and no headings.";
const OPEN: &str = "<list_item>";
const CLOSE: &str = "</list_item>";

/// All types of this part.
pub(super) fn types() -> Types {
    vec![(
        "nodetool.generators.ListGenerator",
        factory(Streamed(ListGenerator)),
    )]
}

#[derive(Clone, Copy)]
pub(super) struct ListGenerator;
#[async_trait]
impl Generator for ListGenerator {
    async fn generate(&self, inputs: Map, frames: &mut dyn Sink, ctx: &Context) -> Result<(), NodeError> {
        let args = Args(&inputs);
        let asked: Vec<String> = [args.text("prompt"), args.text("input_text")]
            .into_iter()
            .filter(|text| !text.trim().is_empty())
            .collect();
        if asked.is_empty() {
            // A list of nothing has no items, and costs nothing.
            warn(
                ctx,
                "the input `prompt` is empty: there is nothing to make a list of",
            )
            .await;
            return Ok(());
        }
        let asked = message("user", &asked.join("\n\n"), &[]);
        let mut params = one("messages", conversation([message("system", SYSTEM, &[]), asked]));
        params.insert(
            "max_tokens".to_owned(),
            args.int("max_tokens", 4096)?.max(1).into(),
        );
        let mut lines = Lines {
            frames,
            items: Items::default(),
            made: 0,
            streamed: false,
        };
        let made = ctx
            .generate(call(ctx, args, "generate_message", params)?, &mut lines)
            .await?;
        if !lines.streamed {
            lines.items.push(made.output.as_str().unwrap_or_default());
        }
        lines.items.end();
        lines.send().await
    }
}

/// Sends each item as a frame of its own.
struct Lines<'a> {
    frames: &'a mut dyn Sink,
    items: Items,
    made: usize,
    streamed: bool,
}
impl Lines<'_> {
    async fn send(&mut self) -> Result<(), NodeError> {
        for item in std::mem::take(&mut self.items.ready) {
            self.frames
                .frame(map([("item", item.into()), ("index", count(self.made))]))
                .await?;
            self.made += 1;
        }
        Ok(())
    }
}
#[async_trait]
impl Pieces for Lines<'_> {
    async fn piece(&mut self, piece: Piece) -> Result<(), NodeError> {
        let Piece::Text {
            text,
            thinking: false,
            ..
        } = piece
        else {
            return Ok(());
        };
        self.streamed |= !text.is_empty();
        self.items.push(&text);
        self.send().await
    }
}

/// Cuts a text that arrives in pieces into items: one a line, or what stands between list item tags once there is one.
#[derive(Default)]
struct Items {
    rest: String,
    ready: Vec<String>,
    tagged: bool,
    inside: bool,
    begun: bool,
}
impl Items {
    fn push(&mut self, piece: &str) {
        self.rest.push_str(piece);
        loop {
            if self.inside {
                let Some(end) = find(&self.rest, CLOSE) else {
                    return;
                };
                let item = self.take(end, CLOSE.len());
                self.inside = false;
                self.give(item.trim());
                continue;
            }
            let open = find(&self.rest, OPEN);
            match (open, self.rest.find('\n')) {
                (Some(open), line) if line.is_none_or(|line| open < line) => {
                    self.take(open, OPEN.len());
                    (self.tagged, self.inside) = (true, true);
                }
                (_, Some(line)) => {
                    let line = self.take(line, 1);
                    self.line(&line);
                }
                (_, None) => return,
            }
        }
    }
    /// What stands before a place; the place and so many bytes after it are gone.
    fn take(&mut self, end: usize, skip: usize) -> String {
        let after = self.rest.split_off((end + skip).min(self.rest.len()));
        let mut before = std::mem::replace(&mut self.rest, after);
        before.truncate(end);
        before
    }
    /// Takes what was left without an end.
    fn end(&mut self) {
        let rest = std::mem::take(&mut self.rest);
        if self.inside {
            self.give(rest.trim())
        } else {
            self.line(&rest)
        }
    }
    fn line(&mut self, line: &str) {
        let line = line.trim();
        if self.tagged || line.is_empty() || line.starts_with("```") {
            return;
        }
        let item = unmarked(line);
        // A first line without a mark that ends in a colon announces the list.
        let announces = !self.begun && item.len() == line.len() && line.ends_with(':');
        self.begun = true;
        if !announces {
            self.give(unquoted(item));
        }
    }
    fn give(&mut self, item: &str) {
        if !item.is_empty() {
            self.ready.push(item.to_owned());
        }
    }
}
/// The place of a tag, in large or small letters.
fn find(text: &str, tag: &str) -> Option<usize> {
    let (text, tag) = (text.as_bytes(), tag.as_bytes());
    text.windows(tag.len())
        .position(|window| window.eq_ignore_ascii_case(tag))
}
/// A line without its number or bullet.
fn unmarked(line: &str) -> &str {
    static MARK: OnceLock<Option<Regex>> = OnceLock::new();
    let mark =
        MARK.get_or_init(|| Regex::new(r"^(?:[-*+•–—]|\(?\d{1,4}[.):]|\d{1,4}\s+[-–—])(?:\s+|$)").ok());
    let end = mark
        .as_ref()
        .and_then(|mark| mark.find(line))
        .map_or(0, |found| found.end());
    line.get(end..).unwrap_or(line).trim()
}
/// A text without the quotation marks around all of it.
fn unquoted(item: &str) -> &str {
    let inner = item.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inner.filter(|inner| !inner.contains('"')).map_or(item, str::trim)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::nodes::testing::{Node, Script};

    fn items(text: &str, step: usize) -> Vec<String> {
        let mut items = Items::default();
        let letters: Vec<char> = text.chars().collect();
        for piece in letters.chunks(step) {
            items.push(&piece.iter().collect::<String>());
        }
        items.end();
        items.ready
    }

    #[rstest]
    #[case("1. a\n2. b\n", &["a", "b"])]
    #[case("1) a\n(2) b\n10: c", &["a", "b", "c"])]
    #[case("- a\n* b\n• c\n\n\n", &["a", "b", "c"])]
    #[case("a\nb", &["a", "b"])]
    #[case("Here are two:\n1. a\n2. b:", &["a", "b:"])]
    #[case("3.5 mm lens\n35mm - wide", &["3.5 mm lens", "35mm - wide"])]
    #[case("```\n1. a\n```", &["a"])]
    #[case("1. \"a b\"\n2. say \"x\"", &["a b", "say \"x\""])]
    #[case("<LIST_ITEM>a\nb</LIST_ITEM>\nnoise\n<list_item> c </list_item>", &["a\nb", "c"])]
    #[case("intro <LIST_ITEM>a</LIST_ITEM><LIST_ITEM>b", &["a", "b"])]
    #[case("1.\n2. b", &["b"])]
    #[case("", &[])]
    #[case("1. süß\r\n2. 日本\r\n", &["süß", "日本"])]
    fn items_are_the_same_however_the_text_is_cut(#[case] text: &str, #[case] expected: &[&str]) {
        for step in [1, 2, 3, 7, 1000] {
            assert_eq!(items(text, step), expected, "in pieces of {step}");
        }
    }

    #[tokio::test]
    async fn an_item_goes_out_as_soon_as_its_line_is_complete() {
        let pieces = ["1. moor", " pony\n2. li", "ghthouse", "\n"];
        let mut node = Node::scripted("nodetool.generators.ListGenerator", Script::text(&pieces));
        let inputs = json!({"prompt": "two ideas", "input_text": "of Skye", "model": {}, "max_tokens": 100});
        let frames = node.frames(inputs).await.expect("frames");
        assert_eq!(
            frames,
            [
                json!({"item": "moor pony", "index": 0}),
                json!({"item": "lighthouse", "index": 1})
            ]
        );
        assert_eq!(node.call().capability, "generate_message");
        let params = node.params();
        assert_eq!(
            params["messages"][1],
            json!({"role": "user", "content": "two ideas\n\nof Skye"})
        );
        assert_eq!(params["max_tokens"], 100);
        assert!(!node.call().persist);
    }

    #[tokio::test]
    async fn an_answer_that_was_not_streamed_is_cut_all_the_same() {
        let mut node = Node::scripted("nodetool.generators.ListGenerator", Script::whole("a\nb"));
        let frames = node.frames(json!({"prompt": "two"})).await.expect("frames");
        assert_eq!(frames.len(), 2);
    }

    #[tokio::test]
    async fn nothing_is_paid_for_an_empty_prompt() {
        let mut node = Node::scripted("nodetool.generators.ListGenerator", Script::text(&["x"]));
        let frames = node
            .frames(json!({"prompt": "", "input_text": " "}))
            .await
            .expect("an empty list");
        assert!(frames.is_empty(), "{frames:?}");
        assert!(node.notes()[0].contains("`prompt` is empty"));
        assert_eq!(node.calls(), 0);
    }
}

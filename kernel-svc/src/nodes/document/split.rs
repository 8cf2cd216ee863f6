//! Documents in pieces: by size, by headings, by elements.

use async_trait::async_trait;
use atelier_proto::value::{Map, Value, from_json};

use super::{convert::markdown_of, unreadable};
use crate::{
    node::{Context, NodeError},
    nodes::{
        args::{Args, count, json_of, map, one, size, text_of},
        code::{Generator, Sink, Streamed, Types, factory},
        markup::{Style, text_of_html},
        work::{MAX_CONTENT, blocking, content, reference},
    },
};

/// Pieces of one document at most.
const MAX_PIECES: usize = 100_000;

const SPLITS: [(&str, Split); 4] = [
    ("nodetool.document.SplitHTML", Split::Html),
    ("nodetool.document.SplitJSON", Split::Json),
    ("nodetool.document.SplitMarkdown", Split::Markdown),
    ("nodetool.document.SplitRecursively", Split::Recursive),
];
/// All types of this part.
pub(super) fn types() -> Types {
    SPLITS
        .into_iter()
        .map(|(name, split)| (name, factory(Streamed(split))))
        .collect()
}
/// The code of a type that yields frames, for tests.
#[cfg(test)]
pub(super) fn generator(node_type: &str) -> Option<Box<dyn Generator>> {
    let found = SPLITS.into_iter().find(|(name, _)| *name == node_type);
    found.map(|(_, split)| Box::new(split) as Box<dyn Generator>)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Split {
    Html,
    Json,
    Markdown,
    Recursive,
}
/// Place in the text, in characters, and the text itself.
type Pieces = Vec<(usize, String)>;

#[async_trait]
impl Generator for Split {
    async fn generate(&self, inputs: Map, frames: &mut dyn Sink, ctx: &Context) -> Result<(), NodeError> {
        let args = Args(&inputs);
        let media = reference(args, "document", "document")?;
        let source = media.asset_id.clone().unwrap_or_else(|| media.uri.clone());
        let source = if source.is_empty() {
            "document".to_owned()
        } else {
            source
        };
        let bytes = content(args, "document", "document", ctx).await?;
        let (split, own) = (*self, inputs.clone());
        let pieces = blocking(ctx, move || split.pieces(Args(&own), &bytes)).await?;
        if pieces.len() > MAX_PIECES {
            let text = format!("the input `document` has more than {MAX_PIECES} pieces");
            return Err(NodeError::new(text).code("input.size"));
        }
        let mut all = Vec::new();
        for (place, (start, text)) in pieces.into_iter().enumerate() {
            let frame = map([
                ("text", text.into()),
                ("source_id", format!("{source}:{place}").into()),
                ("start_index", count(start)),
            ]);
            all.push(Value::from(frame.clone()));
            frames.frame(frame).await?;
        }
        frames.frame(one("chunks", Value::list(all))).await
    }
}
impl Split {
    fn pieces(self, args: Args<'_>, bytes: &bytes::Bytes) -> Result<Pieces, NodeError> {
        let text = || markdown_of(bytes, "document");
        match self {
            Self::Recursive => {
                let sizes = Sizes::read(args, 200)?;
                let given = args.list("separators").iter().map(text_of).collect::<Vec<_>>();
                let separators: Vec<&str> = given
                    .iter()
                    .map(String::as_str)
                    .filter(|it| !it.is_empty())
                    .collect();
                sizes.cut(&text()?, &separators)
            }
            Self::Markdown => markdown(args, &text()?),
            Self::Html => {
                let html = std::str::from_utf8(bytes).map_err(|_| unreadable("document", "a page"))?;
                let style = Style {
                    lines: true,
                    marks: true,
                    ..Style::default()
                };
                let text = text_of_html(html, style);
                Ok(sections(
                    &text,
                    &["#", "##", "###", "####", "#####", "######"],
                    false,
                ))
            }
            Self::Json => json(bytes),
        }
    }
}
/// Each element of a list, or each entry of an object, is a piece.
fn json(bytes: &[u8]) -> Result<Pieces, NodeError> {
    let json = serde_json::from_slice(bytes).map_err(|_| unreadable("document", "JSON"))?;
    let texts: Vec<String> = match from_json(json) {
        Value::List(items) => items.iter().map(text_of).collect(),
        Value::Map(map) => map
            .iter()
            .map(|(name, value)| format!("{name}: {}", json_of(value)))
            .collect(),
        other => vec![text_of(&other)],
    };
    let mut start = 0;
    let place = |text: String| {
        let own = start;
        start += text.chars().count();
        (own, text)
    };
    Ok(texts.into_iter().map(place).collect())
}
fn markdown(args: Args<'_>, text: &str) -> Result<Pieces, NodeError> {
    let mut marks: Vec<String> = args
        .list("headers_to_split_on")
        .iter()
        .map(|pair| {
            pair.as_list()
                .and_then(|pair| pair.first())
                .map_or_else(|| text_of(pair), text_of)
        })
        .filter(|mark| mark.starts_with('#'))
        .collect();
    if marks.is_empty() {
        marks = vec!["#".to_owned(), "##".to_owned(), "###".to_owned()];
    }
    let marks: Vec<&str> = marks.iter().map(String::as_str).collect();
    let found = sections(text, &marks, args.flag("strip_headers", true));
    if args.flag("return_each_line", false) {
        let lines = found.into_iter().flat_map(|(start, text)| {
            let lines: Vec<_> = text.lines().map(str::to_owned).collect();
            lines.into_iter().map(move |line| (start, line))
        });
        return Ok(lines.filter(|(_, line)| !line.trim().is_empty()).collect());
    }
    let sizes = Sizes::read(args, 30)?;
    let (mut cut, mut bytes) = (Pieces::new(), 0_usize);
    for (start, text) in found {
        let inner = sizes.cut(&text, &["\n\n", "\n", ". ", " "])?;
        bytes = bytes.saturating_add(inner.iter().map(|(_, text)| text.len()).sum());
        cut.extend(inner.into_iter().map(|(at, text)| (start + at, text)));
        enough(cut.len(), bytes)?;
    }
    Ok(cut)
}
/// Parts that begin at headings with one of the marks. Headings inside of code are none.
fn sections(text: &str, marks: &[&str], strip: bool) -> Pieces {
    let mut found: Pieces = Vec::new();
    let (mut own, mut start, mut at, mut code) = (String::new(), 0, 0, false);
    let mut push = |start: usize, own: &mut String| {
        let text = std::mem::take(own);
        if !text.trim().is_empty() {
            found.push((start, text.trim().to_owned()));
        }
    };
    for line in text.split_inclusive('\n') {
        code ^= line.trim_start().starts_with("```");
        let mark = line.split(' ').next().unwrap_or_default();
        if !code && line.contains(' ') && marks.contains(&mark) {
            push(start, &mut own);
            start = at;
            if !strip {
                own.push_str(line);
            }
        } else {
            own.push_str(line);
        }
        at += line.chars().count();
    }
    push(start, &mut own);
    found
}

/// Refuses more pieces than may be made.
fn enough(pieces: usize, bytes: usize) -> Result<(), NodeError> {
    if pieces <= MAX_PIECES && bytes <= 4 * MAX_CONTENT {
        return Ok(());
    }
    let text = format!("the input `document` has more than {MAX_PIECES} pieces, or too many bytes in them");
    Err(NodeError::new(text).code("input.size"))
}
/// Largest piece and how much neighbours share, in characters.
struct Sizes {
    most: usize,
    shared: usize,
}
impl Sizes {
    fn read(args: Args<'_>, overlap: i64) -> Result<Self, NodeError> {
        let (most, shared) = (
            args.int("chunk_size", 1_000)?,
            args.int("chunk_overlap", overlap)?,
        );
        if most < 1 {
            return Err(NodeError::new("the input `chunk_size` must be at least 1").code("input.value"));
        }
        if shared < 0 || shared >= most {
            let text = "the input `chunk_overlap` must be smaller than `chunk_size` and not negative";
            return Err(NodeError::new(text).code("input.value"));
        }
        Ok(Self {
            most: size(most),
            shared: size(shared),
        })
    }
    /// Pieces that end at the first separator that makes them small enough.
    fn cut(&self, text: &str, separators: &[&str]) -> Result<Pieces, NodeError> {
        let mut atoms = Vec::new();
        self.atoms(text, separators, &mut atoms);
        let mut found: Pieces = Vec::new();
        // Atoms of the piece that is open, with their lengths.
        let mut open: std::collections::VecDeque<(&str, usize)> = std::collections::VecDeque::new();
        let (mut length, mut start, mut bytes) = (0, 0, 0_usize);
        for atom in atoms {
            let own = atom.chars().count();
            if length + own > self.most && !open.is_empty() {
                // What neighbours share stands in each of them.
                bytes = bytes.saturating_add(open.iter().map(|(atom, _)| atom.len()).sum());
                enough(found.len(), bytes)?;
                close(&mut found, start, open.iter().map(|(atom, _)| *atom).collect());
                while length > self.shared || (length + own > self.most && length > 0) {
                    let Some((_, gone)) = open.pop_front() else { break };
                    length -= gone;
                    start += gone;
                }
            }
            open.push_back((atom, own));
            length += own;
        }
        close(&mut found, start, open.iter().map(|(atom, _)| *atom).collect());
        Ok(found)
    }
    /// Parts that fit, as large as the separators allow; together they are the text.
    fn atoms<'a>(&self, text: &'a str, separators: &[&str], out: &mut Vec<&'a str>) {
        if text.chars().count() <= self.most && separators.len() < 2 {
            out.push(text);
            return;
        }
        let Some((separator, rest)) = separators.split_first() else {
            // Nothing to cut at: pieces of the largest size.
            let mut left = text;
            while !left.is_empty() {
                let end = left
                    .char_indices()
                    .nth(self.most)
                    .map_or(left.len(), |(at, _)| at);
                let (own, after) = left.split_at(end);
                out.push(own);
                left = after;
            }
            return;
        };
        for part in text.split_inclusive(separator) {
            if part.chars().count() <= self.most {
                out.push(part);
            } else {
                self.atoms(part, rest, out);
            }
        }
    }
}
fn close(found: &mut Pieces, start: usize, text: String) {
    let lead = text.chars().take_while(|letter| letter.is_whitespace()).count();
    let trimmed = text.trim();
    if !trimmed.is_empty() {
        found.push((start + lead, trimmed.to_owned()));
    }
}

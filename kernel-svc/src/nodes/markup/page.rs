//! Reading HTML as a row of tags and texts, without building a tree: linear in time, and any page can be read.

use html5gum::{Token, Tokenizer};

/// One piece of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::nodes) enum Piece {
    /// A tag that opens, with its attributes.
    Open(String, Vec<(String, String)>),
    /// A tag that closes.
    Close(String),
    /// Text, with its entities resolved.
    Text(String),
}
impl Piece {
    /// An attribute of a tag that opens.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        let Self::Open(_, attributes) = self else {
            return None;
        };
        let mut found = attributes.iter().filter(|(own, _)| own == name);
        found.next().map(|(_, value)| value.as_str())
    }
}

/// Elements whose content is no text for people.
const SILENT: &[&str] = &[
    "script", "style", "noscript", "template", "svg", "head", "iframe", "object",
];
/// Elements that stand around the content of a page.
const AROUND: &[&str] = &[
    "nav", "header", "footer", "aside", "form", "button", "dialog", "select",
];
/// Elements that begin a line.
const BLOCKS: &[&str] = &[
    "address",
    "article",
    "aside",
    "blockquote",
    "dd",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "li",
    "main",
    "nav",
    "ol",
    "p",
    "pre",
    "section",
    "table",
    "tr",
    "ul",
];
/// Elements with a line of space around them.
const SPACED: &[&str] = &[
    "article",
    "blockquote",
    "dl",
    "figure",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "ol",
    "p",
    "pre",
    "section",
    "table",
    "ul",
];
/// Elements without an end.
const VOID: &[&str] = &[
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr",
];

/// The pieces of a page, in order. A tag that closes itself is one that opens and one that closes.
pub(in crate::nodes) fn pieces(html: &str) -> impl Iterator<Item = Piece> {
    let mut raw: Option<String> = None;
    Tokenizer::new(html).flat_map(move |token| {
        let Ok(token) = token;
        of_token(token, &mut raw).into_iter().flatten()
    })
}
/// `raw` is the element whose content is no tags; the tokenizer has no tree to tell it so.
fn of_token(token: Token, raw: &mut Option<String>) -> [Option<Piece>; 2] {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match token {
        Token::StartTag(_) if raw.is_some() => [None, None],
        Token::StartTag(tag) => {
            let name = text(&tag.name);
            if matches!(name.as_str(), "script" | "style") && !tag.self_closing {
                *raw = Some(name.clone());
            }
            let attributes = tag.attributes.iter();
            let attributes = attributes
                .map(|(name, value)| (text(name), text(value)))
                .collect();
            let close = tag.self_closing.then(|| Piece::Close(name.clone()));
            [Some(Piece::Open(name, attributes)), close]
        }
        Token::EndTag(tag) => {
            let name = text(&tag.name);
            if raw.as_ref().is_some_and(|open| *open != name) {
                return [None, None];
            }
            *raw = None;
            [Some(Piece::Close(name)), None]
        }
        Token::String(found) if raw.is_none() => [Some(Piece::Text(text(&found))), None],
        Token::String(_) | Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => [None, None],
    }
}

/// How a page becomes text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::nodes) struct Style {
    /// Lines stay lines; else all is one line.
    pub lines: bool,
    /// Headings, lists, emphasis and links are marked as in Markdown.
    pub marks: bool,
    /// Pictures are named too.
    pub images: bool,
    /// What stands around the content is left out.
    pub only_content: bool,
}

/// The text of a page for people.
pub(in crate::nodes) fn text_of_html(html: &str, style: Style) -> String {
    let mut writer = Writer::new(style);
    pieces(html).for_each(|piece| writer.take(&piece));
    writer.end()
}
/// The text of the article or the main part of a page, else of all of it without what stands around.
pub(in crate::nodes) fn main_content(html: &str) -> String {
    let style = Style {
        lines: true,
        only_content: true,
        ..Style::default()
    };
    for wanted in ["article", "main"] {
        let mut writer = Writer::new(style);
        let mut depth = 0_usize;
        for piece in pieces(html) {
            match &piece {
                Piece::Open(name, _) if name == wanted => depth += 1,
                Piece::Close(name) if name == wanted => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth > 0 {
                writer.take(&piece);
            }
        }
        let text = writer.end();
        if text.chars().count() >= 140 {
            return text;
        }
    }
    text_of_html(html, style)
}

struct Writer {
    style: Style,
    out: String,
    /// The element that is left out, and how deep in it we are.
    skipped: Option<(String, usize)>,
    /// Lines that must end before the next text.
    breaks: usize,
    space: bool,
    preformatted: usize,
    lists: Vec<Option<usize>>,
    links: Vec<String>,
}
impl Writer {
    fn new(style: Style) -> Self {
        Self {
            style,
            out: String::new(),
            skipped: None,
            breaks: 0,
            space: false,
            preformatted: 0,
            lists: Vec::new(),
            links: Vec::new(),
        }
    }
    fn take(&mut self, piece: &Piece) {
        if let Some((name, depth)) = &mut self.skipped {
            match piece {
                Piece::Open(own, _) if own == name => *depth += 1,
                Piece::Close(own) if own == name => *depth -= 1,
                // The end of the head may be left out.
                Piece::Open(own, _) if own == "body" && name == "head" => *depth = 0,
                _ => {}
            }
            if *depth == 0 {
                self.skipped = None;
            }
            return;
        }
        match piece {
            Piece::Text(text) => self.text(text),
            Piece::Open(name, _) => self.open(name, piece),
            Piece::Close(name) => self.close(name),
        }
    }
    fn open(&mut self, name: &str, piece: &Piece) {
        let around = self.style.only_content && AROUND.contains(&name);
        if (SILENT.contains(&name) || around) && !VOID.contains(&name) {
            self.skipped = Some((name.to_owned(), 1));
            return;
        }
        self.line(name);
        match name {
            "br" => self.breaks = self.breaks.max(1),
            "pre" => self.preformatted += 1,
            "td" | "th" => self.space = true,
            "ul" => self.lists.push(None),
            "ol" => self.lists.push(Some(0)),
            "li" if self.style.marks => {
                let indent = "  ".repeat(self.lists.len().saturating_sub(1).min(8));
                let mark = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{indent}{number}. ")
                    }
                    _ => format!("{indent}- "),
                };
                self.mark(&mark);
            }
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" if self.style.marks => {
                let level = name
                    .as_bytes()
                    .get(1)
                    .map_or(1, |digit| usize::from(digit - b'0'));
                self.mark(&format!("{} ", "#".repeat(level)));
            }
            "b" | "strong" if self.style.marks => self.mark("**"),
            "i" | "em" if self.style.marks => self.mark("*"),
            "code" if self.style.marks && self.preformatted == 0 => self.mark("`"),
            "a" if self.style.marks => {
                let href = piece.attribute("href").unwrap_or_default().to_owned();
                if !href.is_empty() {
                    self.mark("[");
                }
                self.links.push(href);
            }
            "img" if self.style.images => {
                let (alt, src) = (piece.attribute("alt"), piece.attribute("src"));
                self.mark(&format!(
                    "![{}]({})",
                    alt.unwrap_or_default(),
                    src.unwrap_or_default()
                ));
            }
            _ => {}
        }
    }
    fn close(&mut self, name: &str) {
        match name {
            "pre" => self.preformatted = self.preformatted.saturating_sub(1),
            "ul" | "ol" => {
                self.lists.pop();
            }
            "b" | "strong" if self.style.marks => self.out.push_str("**"),
            "i" | "em" if self.style.marks => self.out.push('*'),
            "code" if self.style.marks && self.preformatted == 0 => self.out.push('`'),
            "a" if self.style.marks => {
                if let Some(href) = self.links.pop().filter(|href| !href.is_empty()) {
                    self.out.push_str(&format!("]({href})"));
                }
            }
            "td" | "th" => self.space = true,
            _ => {}
        }
        self.line(name);
    }
    fn line(&mut self, name: &str) {
        if BLOCKS.contains(&name) {
            let wanted = if SPACED.contains(&name) && self.lists.len() < 2 {
                2
            } else {
                1
            };
            self.breaks = self.breaks.max(wanted);
        }
    }
    fn mark(&mut self, mark: &str) {
        self.before();
        self.out.push_str(mark);
        self.space = false;
    }
    /// Ends lines, or puts the one space, that the text before asked for.
    fn before(&mut self) {
        if self.out.is_empty() {
            self.breaks = 0;
        } else if self.breaks > 0 {
            let end = if self.style.lines {
                "\n".repeat(self.breaks)
            } else {
                " ".to_owned()
            };
            self.out.push_str(&end);
        } else if self.space && !self.out.ends_with([' ', '\n']) {
            self.out.push(' ');
        }
        self.breaks = 0;
        self.space = false;
    }
    fn text(&mut self, text: &str) {
        if self.preformatted > 0 && self.style.lines {
            if !text.is_empty() {
                self.before();
                self.out.push_str(text);
            }
            return;
        }
        self.space |= text.starts_with(char::is_whitespace);
        for (place, word) in text.split_whitespace().enumerate() {
            self.space |= place > 0;
            self.before();
            self.out.push_str(word);
        }
        if text.trim().is_empty() {
            return;
        }
        self.space = text.ends_with(char::is_whitespace);
    }
    fn end(self) -> String {
        self.out.trim().to_owned()
    }
}

//! Books in EPUB: a package with a list of its parts, the order in which they are read, and a table of contents.

use std::collections::HashMap;

use atelier_proto::value::{Map, Value};

use super::{package::Package, unreadable, with_content};
use crate::{
    node::{Context, NodeError},
    nodes::{
        args::{Args, count, map, one},
        code::{Types, factory},
        markup::{Piece, Style, pieces, text_of_html},
        work::Reaching,
    },
};

const INPUT: &str = "epub";
const KIND: &str = "a book in EPUB";
/// Chapters of a book at most.
const MAX_CHAPTERS: usize = 5_000;

/// All types of this part.
pub(super) fn types() -> Types {
    vec![
        (
            "lib.epub.ExtractChapters",
            factory(Reaching(|args, ctx| Box::pin(chapters(args, ctx)))),
        ),
        (
            "lib.epub.ExtractText",
            factory(Reaching(|args, ctx| Box::pin(text(args, ctx)))),
        ),
        (
            "lib.epub.Metadata",
            factory(Reaching(|args, ctx| Box::pin(metadata(args, ctx)))),
        ),
        (
            "lib.epub.TableOfContents",
            factory(Reaching(|args, ctx| Box::pin(contents(args, ctx)))),
        ),
    ]
}

/// A book that is open.
struct Book<'a> {
    package: Package<'a>,
    /// The folder of the list of parts.
    folder: String,
    /// What is known of the book, in order.
    about: Vec<(String, String)>,
    /// Path and properties of each part by its id.
    parts: HashMap<String, (String, String)>,
    /// Ids of the parts in order of reading.
    spine: Vec<String>,
}
impl<'a> Book<'a> {
    fn open(bytes: &'a [u8], input: &'static str) -> Result<Self, NodeError> {
        let mut package = Package::open(bytes, input, KIND)?;
        let container = package.text("META-INF/container.xml")?;
        let root = pieces(&container).find_map(|piece| piece.attribute("full-path").map(str::to_owned));
        let root = root.ok_or_else(|| unreadable(input, KIND))?;
        let list = package.text(&root)?;
        let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
        let mut book = Self {
            package,
            folder: folder.to_owned(),
            about: Vec::new(),
            parts: HashMap::new(),
            spine: Vec::new(),
        };
        let mut open: Option<(String, String)> = None;
        for piece in pieces(&list) {
            let attribute = |name: &str| piece.attribute(name).unwrap_or_default().to_owned();
            match &piece {
                Piece::Open(name, _) => {
                    if let Some(name) = name.strip_prefix("dc:") {
                        open = Some((name.to_owned(), String::new()));
                    } else if name.ends_with("item") {
                        let part = (attribute("href"), attribute("properties"));
                        book.parts.insert(attribute("id"), part);
                    } else if name.ends_with("itemref") && book.spine.len() < MAX_CHAPTERS {
                        book.spine.push(attribute("idref"));
                    }
                }
                Piece::Text(text) => {
                    if let Some((_, own)) = &mut open {
                        own.push_str(text);
                    }
                }
                Piece::Close(name) if name.starts_with("dc:") => book.about.extend(open.take()),
                Piece::Close(_) => {}
            }
        }
        Ok(book)
    }
    /// The path of a part inside of the package.
    fn path(&self, href: &str) -> String {
        let href = href.split('#').next().unwrap_or_default().replace("%20", " ");
        if self.folder.is_empty() {
            href
        } else {
            format!("{}/{href}", self.folder)
        }
    }
    /// Title and text of each part that says something.
    fn chapters(&mut self) -> Result<Vec<(String, String)>, NodeError> {
        let mut chapters = Vec::new();
        for id in self.spine.clone() {
            let Some((href, _)) = self.parts.get(&id) else {
                continue;
            };
            let path = self.path(href);
            if !self.package.has(&path) {
                continue;
            }
            let html = self.package.text(&path)?;
            let style = Style {
                lines: true,
                ..Style::default()
            };
            let text = text_of_html(&html, style);
            if !text.is_empty() {
                chapters.push((title(&html), text));
            }
        }
        Ok(chapters)
    }
    /// Title, place and depth of each entry of the table of contents.
    fn contents(&mut self) -> Result<Vec<(String, String, usize)>, NodeError> {
        let nav = self
            .parts
            .values()
            .find(|(_, properties)| properties.split(' ').any(|own| own == "nav"));
        let ncx = self.parts.values().find(|(href, _)| href.ends_with(".ncx"));
        let Some(path) = nav
            .or(ncx)
            .map(|(href, _)| self.path(href))
            .filter(|path| self.package.has(path))
        else {
            return Ok(Vec::new());
        };
        let page = self.package.text(&path)?;
        let mut found: Vec<(String, String, usize)> = Vec::new();
        let (mut depth, mut open) = (0_usize, false);
        for piece in pieces(&page) {
            match &piece {
                Piece::Open(name, _) if matches!(name.as_str(), "ol" | "navpoint") => {
                    depth += 1;
                    if name == "navpoint" {
                        found.push((String::new(), String::new(), depth));
                    }
                }
                Piece::Close(name) if matches!(name.as_str(), "ol" | "navpoint") => {
                    depth = depth.saturating_sub(1)
                }
                Piece::Open(name, _) if name == "a" && depth > 0 => {
                    open = true;
                    let href = piece.attribute("href").unwrap_or_default().to_owned();
                    found.push((String::new(), href, depth));
                }
                Piece::Open(name, _) if name == "navlabel" => open = depth > 0,
                Piece::Close(name) if matches!(name.as_str(), "a" | "navlabel") => open = false,
                Piece::Close(name) if name == "nav" => break,
                Piece::Open(name, _) if name == "content" => {
                    if let (Some(entry), Some(src)) = (found.last_mut(), piece.attribute("src")) {
                        src.clone_into(&mut entry.1);
                    }
                }
                Piece::Text(text) if open => {
                    if let Some(entry) = found.last_mut() {
                        entry.0.push_str(text);
                    }
                }
                _ => {}
            }
            if found.len() > MAX_CHAPTERS {
                break;
            }
        }
        Ok(found)
    }
}
/// The first heading of a page, else its title.
fn title(html: &str) -> String {
    for wanted in ["h1", "h2", "h3", "title"] {
        let mut open = false;
        let mut text = String::new();
        for piece in pieces(html) {
            match &piece {
                Piece::Open(name, _) if name == wanted => open = true,
                Piece::Close(name) if name == wanted && open => break,
                Piece::Text(own) if open => text.push_str(own),
                _ => {}
            }
        }
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if !text.is_empty() {
            return text;
        }
    }
    String::new()
}
/// The text of a whole book.
pub(super) fn read_book(bytes: &[u8], input: &'static str, separator: &str) -> Result<String, NodeError> {
    let chapters = Book::open(bytes, input)?.chapters()?;
    let texts: Vec<String> = chapters.into_iter().map(|(_, text)| text).collect();
    Ok(texts.join(separator))
}

async fn text(args: Args<'_>, ctx: &Context) -> Result<Map, NodeError> {
    let text = with_content(args, INPUT, ctx, |args, bytes| {
        read_book(bytes, INPUT, &args.text_or("chapter_separator", "\n\n"))
    });
    Ok(one("output", text.await?))
}
async fn chapters(args: Args<'_>, ctx: &Context) -> Result<Map, NodeError> {
    let chapters = with_content(args, INPUT, ctx, |_, bytes| Book::open(bytes, INPUT)?.chapters()).await?;
    let chapter = |(place, (title, text)): (usize, (String, String))| -> Value {
        map([
            ("index", count(place)),
            ("title", title.into()),
            ("text", text.into()),
        ])
        .into()
    };
    let chapters = chapters.into_iter().enumerate().map(chapter).collect();
    Ok(one("output", Value::list(chapters)))
}
async fn metadata(args: Args<'_>, ctx: &Context) -> Result<Map, NodeError> {
    let about = with_content(args, INPUT, ctx, |_, bytes| Ok(Book::open(bytes, INPUT)?.about)).await?;
    let mut found = Map::new();
    for (name, text) in about {
        let text = text.trim().to_owned();
        let joined = match found.get(&name).and_then(Value::as_str) {
            Some(before) => format!("{before}, {text}"),
            None => text,
        };
        found.insert(name, joined.into());
    }
    Ok(one("output", Value::from(found)))
}
async fn contents(args: Args<'_>, ctx: &Context) -> Result<Map, NodeError> {
    let found = with_content(args, INPUT, ctx, |_, bytes| Book::open(bytes, INPUT)?.contents()).await?;
    let entry = |(title, href, depth): (String, String, usize)| -> Value {
        let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
        map([
            ("title", title.into()),
            ("href", href.into()),
            ("level", count(depth)),
        ])
        .into()
    };
    Ok(one("output", Value::list(found.into_iter().map(entry).collect())))
}

//! Texts of PDF documents, page by page.

use std::collections::HashMap;

use atelier_proto::value::{Map, Value};
use pdf_extract::{Dictionary, Document, Object, PlainTextOutput, Stream, content::Content, output_doc_page};

use super::{
    unpack::{self, Fault, MAX_UNPACKED},
    unreadable, with_content,
};
use crate::{
    node::{Context, NodeError},
    nodes::{
        args::{Args, count, map, one, size},
        code::{Types, factory},
        work::{Reach, Reaching},
    },
};

const INPUT: &str = "pdf";
const KIND: &str = "a PDF";
/// Pages of a document that are read.
const MAX_PAGES: usize = 5_000;
/// Lines that a search finds at most.
const MAX_FOUND: usize = 10_000;
/// How deep forms may be drawn inside of each other, and nodes of the tree of pages lie below each other.
const MAX_DEPTH: usize = 32;
/// Forms that all pages draw together, each as often as it is drawn.
const MAX_FORMS: usize = 100_000;

/// All types of this part.
pub(super) fn types() -> Types {
    let reaching: [(&'static str, Reach); 5] = [
        ("lib.pdf.ExtractMarkdown", |args, ctx| {
            Box::pin(markdown(args, ctx))
        }),
        ("lib.pdf.ExtractText", |args, ctx| Box::pin(text(args, ctx))),
        ("lib.pdf.PageCount", |args, ctx| Box::pin(page_count(args, ctx))),
        ("lib.pdf.PageMetadata", |args, ctx| Box::pin(sizes(args, ctx))),
        ("lib.pdf.SearchText", |args, ctx| Box::pin(search(args, ctx))),
    ];
    reaching
        .into_iter()
        .map(|(name, reach)| (name, factory(Reaching(reach))))
        .collect()
}

fn open(bytes: &[u8], input: &str) -> Result<Document, NodeError> {
    let document = unpack::load(bytes).map_err(|fault| faulty(fault, input))?;
    if document.get_pages().len() > MAX_PAGES {
        let text = format!("the input `{input}` has more than {MAX_PAGES} pages");
        return Err(NodeError::new(text).code("input.size"));
    }
    Ok(document)
}
fn faulty(fault: Fault, input: &str) -> NodeError {
    match fault {
        Fault::Unreadable => unreadable(input, KIND),
        Fault::TooLarge => {
            let text = format!("the input `{input}` unpacks to more than {MAX_UNPACKED} bytes");
            NodeError::new(text).code("input.size")
        }
    }
}
/// The texts of all pages. A page that cannot be read has none.
pub(super) fn read_pages(bytes: &[u8], input: &str) -> Result<Vec<String>, NodeError> {
    let mut document = open(bytes, input)?;
    if document.is_encrypted() && document.decrypt("").is_err() {
        return Err(unreadable(input, KIND));
    }
    // What was encrypted can be measured only here.
    unpack::check(&document).map_err(|fault| faulty(fault, input))?;
    Forms::ends(&document).ok_or_else(|| unreadable(input, KIND))?;
    let pages = document.get_pages().into_keys();
    let text = |page| {
        let mut text = String::new();
        let read = output_doc_page(&document, &mut PlainTextOutput::new(&mut text), page);
        if read.is_err() {
            text.clear();
        }
        text.trim().to_owned()
    };
    Ok(pages.map(text).collect())
}
/// How many forms something draws, and how deep they lie inside of each other.
type Drawn = (usize, usize);
/// Looks whether drawing comes to an end, in the way of the reader, which follows forms as deep as they go: one that draws
/// itself would take the process down.
struct Forms<'a> {
    document: &'a Document,
    /// What each form draws, itself included; `None` while it is looked at.
    known: HashMap<(*const Stream, *const Dictionary), Option<Drawn>>,
}
impl<'a> Forms<'a> {
    fn ends(document: &'a Document) -> Option<()> {
        let mut forms = Self {
            document,
            known: HashMap::new(),
        };
        let nothing = Dictionary::new();
        let mut all = 0_usize;
        for page in document.get_pages().into_values() {
            let resources = forms.resources(page)?;
            let content = document.get_page_content(page).unwrap_or_default();
            all = all.saturating_add(match resources {
                Some(resources) => forms.drawn(&content, resources, 0)?.0,
                None => {
                    Forms {
                        document,
                        known: HashMap::new(),
                    }
                    .drawn(&content, &nothing, 0)?
                    .0
                }
            });
            if all > MAX_FORMS {
                return None;
            }
        }
        Some(())
    }
    /// The resources of a page, its own or those of a node above it; `None` when the tree is deeper than trees are, which is
    /// a circle.
    fn resources(&self, page: pdf_extract::ObjectId) -> Option<Option<&'a Dictionary>> {
        let (mut id, mut found) = (page, None);
        for _ in 0..MAX_DEPTH {
            let Ok(own) = self.document.get_dictionary(id) else {
                return Some(found);
            };
            found = found.or_else(|| self.below(own, b"Resources")?.as_dict().ok());
            match own.get(b"Parent").and_then(Object::as_reference) {
                Ok(above) => id = above,
                Err(_) => return Some(found),
            }
        }
        None
    }
    fn below(&self, dictionary: &'a Dictionary, key: &[u8]) -> Option<&'a Object> {
        let found = dictionary.get(key).ok()?;
        self.document.dereference(found).ok().map(|(_, object)| object)
    }
    fn drawn(&mut self, content: &[u8], resources: &'a Dictionary, depth: usize) -> Option<Drawn> {
        if depth > MAX_DEPTH {
            return None;
        }
        let (mut all, mut deepest) = (1_usize, 0_usize);
        // What cannot be read is not drawn.
        let operations = Content::decode(content)
            .map(|content| content.operations)
            .unwrap_or_default();
        for operation in operations.iter().filter(|operation| operation.operator == "Do") {
            let named = operation.operands.first().and_then(|name| name.as_name().ok());
            let form = named.and_then(|name| {
                let forms = self.below(resources, b"XObject")?.as_dict().ok()?;
                self.below(forms, name)?.as_stream().ok()
            });
            let Some(form) = form else { continue };
            let own = self
                .below(&form.dict, b"Resources")
                .and_then(|own| own.as_dict().ok());
            let own = own.unwrap_or(resources);
            let key = (std::ptr::from_ref(form), std::ptr::from_ref(own));
            let (count, height) = match self.known.get(&key) {
                Some(known) => (*known)?,
                None => {
                    self.known.insert(key, None);
                    let content = form.decompressed_content();
                    let content = content.unwrap_or_else(|_| form.content.clone());
                    let drawn = self.drawn(&content, own, depth + 1)?;
                    self.known.insert(key, Some(drawn));
                    drawn
                }
            };
            (all, deepest) = (all.saturating_add(count), deepest.max(height));
        }
        (all <= MAX_FORMS && deepest < MAX_DEPTH).then_some((all, deepest + 1))
    }
}
/// The pages that are asked for, from 0; a negative end counts from the last one, which is -1.
fn range(args: Args<'_>, pages: usize) -> Result<std::ops::Range<usize>, NodeError> {
    let (start, end) = (args.int("start_page", 0)?, args.int("end_page", -1)?);
    let length = i64::try_from(pages).unwrap_or(i64::MAX);
    if start < 0 || (start >= length && length > 0) {
        let text = format!(
            "the input `start_page` must be a page from 0 to {}, got {start}",
            length - 1
        );
        return Err(NodeError::new(text).code("input.value"));
    }
    let end = if end < 0 { end.saturating_add(length) } else { end }.clamp(-1, length - 1);
    Ok(size(start)..size(end + 1).max(size(start)))
}
/// Number from 0 and text of each page that is asked for.
async fn pages(args: Args<'_>, ctx: &Context) -> Result<Vec<(usize, String)>, NodeError> {
    with_content(args, INPUT, ctx, |args, bytes| {
        let texts = read_pages(bytes, INPUT)?;
        let range = range(args, texts.len())?;
        Ok(texts
            .into_iter()
            .enumerate()
            .filter(|(place, _)| range.contains(place))
            .collect())
    })
    .await
}
async fn text(args: Args<'_>, ctx: &Context) -> Result<Map, NodeError> {
    let texts: Vec<String> = pages(args, ctx)
        .await?
        .into_iter()
        .map(|(_, text)| text)
        .collect();
    Ok(one("output", texts.join("\n\n")))
}
async fn markdown(args: Args<'_>, ctx: &Context) -> Result<Map, NodeError> {
    let page = |(place, text): (usize, String)| format!("## Page {}\n\n{text}", place + 1);
    let texts: Vec<String> = pages(args, ctx).await?.into_iter().map(page).collect();
    Ok(one("output", texts.join("\n\n")))
}
async fn page_count(args: Args<'_>, ctx: &Context) -> Result<Map, NodeError> {
    let pages = with_content(args, INPUT, ctx, |_, bytes| {
        Ok(open(bytes, INPUT)?.get_pages().len())
    });
    Ok(one("output", count(pages.await?)))
}
async fn sizes(args: Args<'_>, ctx: &Context) -> Result<Map, NodeError> {
    let sizes = with_content(args, INPUT, ctx, |args, bytes| {
        let document = open(bytes, INPUT)?;
        let pages = document.get_pages();
        let range = range(args, pages.len())?;
        let page = |(place, id): (usize, &pdf_extract::ObjectId)| -> Value {
            let area = media_box(&document, *id).unwrap_or([0.0; 4]);
            let [left, bottom, right, top] = area;
            map([
                ("page", count(place)),
                ("width", Value::Float(right - left)),
                ("height", Value::Float(top - bottom)),
            ])
            .into()
        };
        let pages = pages.values().enumerate();
        Ok(pages
            .filter(|(place, _)| range.contains(place))
            .map(page)
            .collect())
    });
    Ok(one("output", Value::list(sizes.await?)))
}
/// The area of a page, its own or that of a node above it.
fn media_box(document: &Document, page: pdf_extract::ObjectId) -> Option<[f64; 4]> {
    let mut id = page;
    // A tree of pages that is deeper than this is a circle.
    for _ in 0..64 {
        let own = document.get_dictionary(id).ok()?;
        if let Ok(area) = own.get(b"MediaBox") {
            let (_, area) = document.dereference(area).ok()?;
            let sides: Vec<f64> = area
                .as_array()
                .ok()?
                .iter()
                .filter_map(|side| document.dereference(side).ok()?.1.as_float().ok().map(f64::from))
                .collect();
            return sides.try_into().ok();
        }
        id = own.get(b"Parent").ok()?.as_reference().ok()?;
    }
    None
}
async fn search(args: Args<'_>, ctx: &Context) -> Result<Map, NodeError> {
    let phrase = args.text("phrase");
    if phrase.trim().is_empty() {
        return Err(crate::nodes::args::missing(
            "phrase",
            "something to look for is needed",
        ));
    }
    let exact = args.flag("case_sensitive", false);
    let fold = |text: &str| {
        if exact {
            text.to_owned()
        } else {
            text.to_lowercase()
        }
    };
    let wanted = fold(&phrase);
    let mut found = Vec::new();
    for (page, text) in pages(args, ctx).await? {
        for (line, text) in text.lines().enumerate() {
            if found.len() < MAX_FOUND && fold(text).contains(&wanted) {
                let hit = map([
                    ("page", count(page)),
                    ("line", count(line)),
                    ("text", text.trim().into()),
                ]);
                found.push(hit.into());
            }
        }
    }
    Ok(one("output", Value::list(found)))
}

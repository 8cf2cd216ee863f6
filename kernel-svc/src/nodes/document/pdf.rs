//! Texts of PDF documents, page by page.

use atelier_proto::value::{Map, Value};
use pdf_extract::Document;

use super::{unreadable, with_content};
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
    let document = Document::load_mem(bytes).map_err(|_| unreadable(input, KIND))?;
    if document.get_pages().len() > MAX_PAGES {
        let text = format!("the input `{input}` has more than {MAX_PAGES} pages");
        return Err(NodeError::new(text).code("input.size"));
    }
    Ok(document)
}
/// The texts of all pages.
pub(super) fn read_pages(bytes: &[u8], input: &str) -> Result<Vec<String>, NodeError> {
    let pages = open(bytes, input)?.get_pages().len();
    let mut texts =
        pdf_extract::extract_text_from_mem_by_pages(bytes).map_err(|_| unreadable(input, KIND))?;
    // A page without text is a page.
    texts.resize(pages.max(texts.len()), String::new());
    Ok(texts.into_iter().map(|text| text.trim().to_owned()).collect())
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

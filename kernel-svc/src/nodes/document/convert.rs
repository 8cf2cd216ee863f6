//! Any document as Markdown, and documents that are written into the workspace.

use atelier_proto::value::Map;
use bytes::Bytes;
use chrono::Utc;

use super::{book::read_book, excel, office, pdf::read_pages, unreadable};
use crate::{
    node::{Context, NodeError},
    nodes::{
        args::{Args, missing, one},
        code::{Types, factory},
        files::{Workspace, named},
        markup::{Style, text_of_html},
        work::{Reaching, blocking, content},
    },
};

/// All types of this part.
pub(super) fn types() -> Types {
    vec![
        (
            "lib.convert.ConvertToMarkdown",
            factory(Reaching(|args, ctx| Box::pin(convert(args, ctx)))),
        ),
        (
            "nodetool.document.SaveDocumentFile",
            factory(Reaching(|args, ctx| Box::pin(save(args, ctx)))),
        ),
    ]
}
const MARKDOWN: Style = Style {
    lines: true,
    marks: true,
    images: true,
    only_content: false,
};
async fn convert(args: Args<'_>, ctx: &Context) -> Result<Map, NodeError> {
    let html = args.text("html");
    if !html.trim().is_empty() {
        let text = blocking(ctx, move || Ok(text_of_html(&html, MARKDOWN)));
        return Ok(one("output", text.await?));
    }
    let given = |name: &str| args.0.get(name).is_some_and(|value| !value.is_null());
    let input = if given("bytes") { "bytes" } else { "document" };
    if !given(input) {
        return Err(missing("document", "a document, bytes or a page is needed"));
    }
    let bytes = content(args, input, "document", ctx).await?;
    let text = blocking(ctx, move || markdown_of(&bytes, input)).await?;
    Ok(one("output", text))
}
/// The text of a document by what its bytes are.
pub(super) fn markdown_of(bytes: &Bytes, input: &'static str) -> Result<String, NodeError> {
    if bytes.starts_with(b"%PDF-") {
        return Ok(read_pages(bytes, input)?.join("\n\n"));
    }
    if bytes.starts_with(b"PK\x03\x04") {
        let package = super::package::Package::open(bytes, input, "a document")?;
        if package.has("word/document.xml") {
            return office::read_word(bytes, input);
        }
        if package.has("ppt/presentation.xml") {
            let slides = office::read_slides(bytes, input)?;
            let slide = |(place, lines): (usize, Vec<String>)| {
                format!("## Slide {}\n\n{}", place + 1, lines.join("\n"))
            };
            return Ok(slides
                .into_iter()
                .enumerate()
                .map(slide)
                .collect::<Vec<_>>()
                .join("\n\n"));
        }
        if package.has("META-INF/container.xml") {
            return read_book(bytes, input, "\n\n");
        }
        return excel::markdown(bytes, input);
    }
    let text =
        std::str::from_utf8(bytes).map_err(|_| unreadable(input, "a text, PDF, Word, EPUB or Excel file"))?;
    let start = text
        .trim_start()
        .get(..64.min(text.trim_start().len()))
        .unwrap_or_default()
        .to_lowercase();
    if start.starts_with("<!doctype html") || start.starts_with("<html") {
        return Ok(text_of_html(text, MARKDOWN));
    }
    Ok(text.to_owned())
}
async fn save(args: Args<'_>, ctx: &Context) -> Result<Map, NodeError> {
    let bytes = content(args, "document", "document", ctx).await?;
    let (folder, name) = (
        args.text("folder"),
        named(&args.text("filename"), "document", Utc::now()),
    );
    let workspace = Workspace::of(ctx.services.host());
    blocking(ctx, move || {
        let workspace = workspace?;
        let above = workspace.place("folder", &folder)?;
        let place = workspace.place("filename", &above.join(name).display().to_string())?;
        workspace.write("filename", &place, &bytes)
    })
    .await?;
    Ok(Map::new())
}

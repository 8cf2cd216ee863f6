//! Texts of Word and PowerPoint documents.

use atelier_proto::value::{Map, Value};

use super::{package::Package, with_content};
use crate::{
    node::{Context, NodeError},
    nodes::{
        args::{Args, map, one},
        code::{Types, factory},
        markup::{Piece, pieces},
        work::Reaching,
    },
};

/// All types of this part.
pub(super) fn types() -> Types {
    vec![
        (
            "lib.pptx.ExtractSlides",
            factory(Reaching(|args, ctx| Box::pin(slides(args, ctx)))),
        ),
        (
            "lib.pptx.ExtractText",
            factory(Reaching(|args, ctx| Box::pin(slide_text(args, ctx)))),
        ),
    ]
}
async fn slides(args: Args<'_>, ctx: &Context) -> Result<Map, NodeError> {
    let slides = with_content(args, "pptx", ctx, |_, bytes| read_slides(bytes, "pptx")).await?;
    let slide = |(place, lines): (usize, Vec<String>)| -> Value {
        let title = lines.first().cloned().unwrap_or_default();
        map([
            ("slide", crate::nodes::args::count(place + 1)),
            ("title", title.into()),
            ("text", lines.join("\n").into()),
        ])
        .into()
    };
    let slides = slides.into_iter().enumerate().map(slide).collect();
    Ok(one("output", Value::list(slides)))
}
async fn slide_text(args: Args<'_>, ctx: &Context) -> Result<Map, NodeError> {
    let slides = with_content(args, "pptx", ctx, |_, bytes| read_slides(bytes, "pptx")).await?;
    let texts: Vec<String> = slides.into_iter().map(|lines| lines.join("\n")).collect();
    Ok(one("output", texts.join("\n\n")))
}
/// The lines of each slide, in order of the slides' numbers.
pub(super) fn read_slides(bytes: &[u8], input: &'static str) -> Result<Vec<Vec<String>>, NodeError> {
    let mut package = Package::open(bytes, input, "a presentation")?;
    let number = |name: &String| -> Option<u32> {
        let number = name.strip_prefix("ppt/slides/slide")?.strip_suffix(".xml")?;
        number.parse().ok()
    };
    let mut names: Vec<_> = package
        .names()
        .into_iter()
        .filter_map(|name| number(&name).map(|number| (number, name)))
        .collect();
    if names.is_empty() {
        return Err(super::unreadable(input, "a presentation"));
    }
    names.sort();
    names
        .into_iter()
        .map(|(_, name)| Ok(paragraphs(&package.text(&name)?, "a:p", "a:t", &["a:br"])))
        .collect()
}
/// Paragraphs that say something.
fn paragraphs(xml: &str, paragraph: &str, run: &str, breaks: &[&str]) -> Vec<String> {
    let (mut found, mut own, mut inside) = (Vec::new(), String::new(), false);
    for piece in pieces(xml) {
        match &piece {
            Piece::Open(name, _) if name == run => inside = true,
            Piece::Close(name) if name == run => inside = false,
            Piece::Open(name, _) if breaks.contains(&name.as_str()) => own.push('\n'),
            Piece::Close(name) if name == paragraph => {
                let text = std::mem::take(&mut own);
                if !text.trim().is_empty() {
                    found.push(text.trim().to_owned());
                }
            }
            Piece::Text(text) if inside => own.push_str(text),
            _ => {}
        }
    }
    found
}

/// A Word document as Markdown: headings, lists and tables are marked.
pub(super) fn read_word(bytes: &[u8], input: &'static str) -> Result<String, NodeError> {
    let mut package = Package::open(bytes, input, "a Word document")?;
    let xml = package.text("word/document.xml")?;
    let mut out: Vec<String> = Vec::new();
    let mut own = String::new();
    let (mut style, mut list, mut inside) = (String::new(), false, false);
    // Rows of the table that is open; tables inside of tables are read as their cells.
    let mut table: Vec<Vec<String>> = Vec::new();
    let mut tables = 0_usize;
    for piece in pieces(&xml) {
        match &piece {
            Piece::Open(name, _) => match name.as_str() {
                "w:t" => inside = true,
                "w:tab" if !own.is_empty() => own.push('\t'),
                "w:br" | "w:cr" => own.push('\n'),
                "w:pstyle" => style = piece.attribute("w:val").unwrap_or_default().to_lowercase(),
                "w:numpr" => list = true,
                "w:tbl" => tables += 1,
                "w:tr" if tables == 1 => table.push(Vec::new()),
                "w:tc" if tables == 1 => {
                    if let Some(row) = table.last_mut() {
                        row.push(String::new());
                    }
                }
                _ => {}
            },
            Piece::Close(name) => match name.as_str() {
                "w:t" => inside = false,
                "w:p" => {
                    let text = std::mem::take(&mut own).trim().to_owned();
                    let (style, list) = (std::mem::take(&mut style), std::mem::take(&mut list));
                    if text.is_empty() {
                        continue;
                    }
                    if tables > 0 {
                        if let Some(cell) = table.last_mut().and_then(|row| row.last_mut()) {
                            if !cell.is_empty() {
                                cell.push(' ');
                            }
                            cell.push_str(&text.replace('\n', " "));
                        }
                        continue;
                    }
                    let level = style
                        .strip_prefix("heading")
                        .and_then(|level| level.trim().parse().ok());
                    out.push(match level {
                        Some(level) => format!("{} {text}", "#".repeat(usize::clamp(level, 1, 6))),
                        None if style == "title" => format!("# {text}"),
                        None if list || style.starts_with("list") => format!("- {text}"),
                        None => text,
                    });
                }
                "w:tbl" => {
                    tables = tables.saturating_sub(1);
                    if tables == 0 {
                        out.push(table_text(&std::mem::take(&mut table)));
                    }
                }
                _ => {}
            },
            Piece::Text(text) if inside => own.push_str(text),
            Piece::Text(_) => {}
        }
    }
    Ok(out.join("\n\n"))
}
/// Cells up to which all rows of a table are made equally long.
const MAX_FILLED: usize = 2_000_000;
/// Rows as a table in Markdown; the first row is its head.
pub(super) fn table_text(rows: &[Vec<String>]) -> String {
    let width = rows.iter().map(Vec::len).max().unwrap_or_default();
    // One long row among many would make far more of the document than it holds.
    let fill = rows.len().saturating_mul(width) <= MAX_FILLED;
    let line = |row: &Vec<String>| {
        let cell = |at: usize| {
            row.get(at)
                .map(|cell| cell.replace('|', "\\|").replace('\n', " "))
        };
        let own = if fill { width } else { row.len() };
        let cells: Vec<_> = (0..own).map(|at| cell(at).unwrap_or_default()).collect();
        format!("| {} |", cells.join(" | "))
    };
    let mut lines: Vec<String> = rows.iter().map(line).collect();
    if !lines.is_empty() {
        lines.insert(1, format!("|{}", " --- |".repeat(width)));
    }
    lines.join("\n")
}

//! Word documents that are made step by step: each node adds to the text of the package that it is given.

use std::io::{Cursor, Write};

use atelier_proto::value::{Map, MediaRef};
use bytes::Bytes;
use zip::{ZipWriter, write::SimpleFileOptions};

use super::{package::Package, unreadable};
use crate::{
    node::{Context, NodeError},
    nodes::{
        args::{Args, one, text_of},
        code::{Types, factory},
        files::{Workspace, named},
        table::Frame,
        work::{Reach, Reaching, blocking, content},
    },
};

const INPUT: &str = "document";
const KIND: &str = "a Word document";
const MIME: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
const BODY: &str = "word/document.xml";
const CORE: &str = "docProps/core.xml";
const XML: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>";
const PACKAGE: &str = "http://schemas.openxmlformats.org/package/2006";
const OFFICE: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";

/// All types of this part.
pub(super) fn types() -> Types {
    let reaching: [(&'static str, Reach); 7] = [
        ("lib.docx.AddHeading", |args, ctx| {
            Box::pin(async move {
                let level = args.int("level", 1)?.clamp(1, 9);
                let style = format!("<w:pStyle w:val=\"Heading{level}\"/>");
                let size = (36 - 2 * level).max(22);
                let run = format!("<w:rPr><w:b/><w:sz w:val=\"{size}\"/></w:rPr>");
                add(args, ctx, paragraph(&style, &run, &args.text("text"))).await
            })
        }),
        ("lib.docx.AddPageBreak", |args, ctx| {
            let page = "<w:p><w:r><w:br w:type=\"page\"/></w:r></w:p>".to_owned();
            Box::pin(add(args, ctx, page))
        }),
        ("lib.docx.AddParagraph", |args, ctx| {
            Box::pin(add_paragraph(args, ctx))
        }),
        ("lib.docx.AddTable", |args, ctx| {
            Box::pin(async move {
                let table = table(&Frame::read(args, "data")?);
                add(args, ctx, table).await
            })
        }),
        ("lib.docx.CreateDocument", |_, ctx| {
            Box::pin(async move { document(blocking(ctx, || packed(&empty())).await?) })
        }),
        ("lib.docx.SaveDocument", |args, ctx| Box::pin(save(args, ctx))),
        ("lib.docx.SetDocumentProperties", |args, ctx| {
            Box::pin(describe(args, ctx))
        }),
    ];
    reaching
        .into_iter()
        .map(|(name, reach)| (name, factory(Reaching(reach))))
        .collect()
}

/// Name and content of each file of a package.
type Files = Vec<(String, Vec<u8>)>;

fn empty() -> Files {
    let types = format!(
        "{XML}<Types xmlns=\"{PACKAGE}/content-types\"><Default Extension=\"rels\" \
         ContentType=\"application/vnd.openxmlformats-package.relationships+xml\"/><Default Extension=\"xml\" \
         ContentType=\"application/xml\"/><Override PartName=\"/{BODY}\" ContentType=\"{MIME}.main+xml\"/><Override \
         PartName=\"/{CORE}\" ContentType=\"application/vnd.openxmlformats-package.core-properties+xml\"/></Types>"
    );
    let links = format!(
        "{XML}<Relationships xmlns=\"{PACKAGE}/relationships\"><Relationship Id=\"rId1\" \
         Type=\"{OFFICE}/officeDocument\" Target=\"{BODY}\"/><Relationship Id=\"rId2\" \
         Type=\"{PACKAGE}/relationships/metadata/core-properties\" Target=\"{CORE}\"/></Relationships>"
    );
    let body = format!(
        "{XML}<w:document xmlns:w=\"http://schemas.openxmlformats.org/wordprocessingml/2006/main\"><w:body></w:body>\
         </w:document>"
    );
    let files = [
        ("[Content_Types].xml", types),
        ("_rels/.rels", links),
        (BODY, body),
        (CORE, core("", "", "", "")),
    ];
    files
        .into_iter()
        .map(|(name, text)| (name.to_owned(), text.into_bytes()))
        .collect()
}
fn core(title: &str, author: &str, subject: &str, keywords: &str) -> String {
    let element = |name: &str, text: &str| format!("<{name}>{}</{name}>", escaped(text));
    format!(
        "{XML}<cp:coreProperties xmlns:cp=\"{PACKAGE}/metadata/core-properties\" \
         xmlns:dc=\"http://purl.org/dc/elements/1.1/\">{}{}{}{}</cp:coreProperties>",
        element("dc:title", title),
        element("dc:creator", author),
        element("dc:subject", subject),
        element("cp:keywords", keywords)
    )
}
fn packed(files: &Files) -> Result<Bytes, NodeError> {
    let bad = || NodeError::new("the document cannot be written");
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        writer
            .start_file(name.as_str(), SimpleFileOptions::default())
            .map_err(|_| bad())?;
        writer.write_all(content).map_err(|_| bad())?;
    }
    Ok(writer.finish().map_err(|_| bad())?.into_inner().into())
}
fn unpacked(bytes: &[u8]) -> Result<Files, NodeError> {
    let mut package = Package::open(bytes, INPUT, KIND)?;
    if !package.has(BODY) {
        return Err(unreadable(INPUT, KIND));
    }
    let names = package.names().into_iter().filter(|name| !name.ends_with('/'));
    names
        .map(|name| {
            let bytes = package.bytes(&name)?;
            Ok((name, bytes))
        })
        .collect()
}
fn document(bytes: Bytes) -> Result<Map, NodeError> {
    let media = MediaRef {
        kind: "document".to_owned(),
        data: Some(bytes),
        mime_type: Some(MIME.to_owned()),
        ..MediaRef::default()
    };
    Ok(one("output", media))
}
/// The text fit for XML; what XML cannot hold is left out.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' => out.push(letter),
            letter if letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}') => {}
            other => out.push(other),
        }
    }
    out
}
fn paragraph(style: &str, run: &str, text: &str) -> String {
    let lines: Vec<String> = text
        .split('\n')
        .map(|line| format!("<w:t xml:space=\"preserve\">{}</w:t>", escaped(line)))
        .collect();
    format!(
        "<w:p><w:pPr>{style}</w:pPr><w:r>{run}{}</w:r></w:p>",
        lines.join("<w:br/>")
    )
}
fn table(frame: &Frame) -> String {
    let side = |name: &str| format!("<w:{name} w:val=\"single\" w:sz=\"4\" w:space=\"0\" w:color=\"auto\"/>");
    let sides: String = ["top", "left", "bottom", "right", "insideH", "insideV"]
        .map(side)
        .concat();
    let cell = |run: &str, text: &str| format!("<w:tc><w:tcPr/>{}</w:tc>", paragraph("", run, text));
    let head: String = frame
        .columns
        .iter()
        .map(|column| cell("<w:rPr><w:b/></w:rPr>", &column.name))
        .collect();
    let row = |row: &Vec<atelier_proto::value::Value>| {
        let cells: String = row.iter().map(|value| cell("", &text_of(value))).collect();
        format!("<w:tr>{cells}</w:tr>")
    };
    let rows: String = frame.rows.iter().map(row).collect();
    let grid = "<w:gridCol/>".repeat(frame.columns.len());
    format!(
        "<w:tbl><w:tblPr><w:tblBorders>{sides}</w:tblBorders></w:tblPr><w:tblGrid>{grid}</w:tblGrid>\
         <w:tr>{head}</w:tr>{rows}</w:tbl><w:p/>"
    )
}
async fn add_paragraph(args: Args<'_>, ctx: &Context) -> Result<Map, NodeError> {
    let side = match args.text_or("alignment", "LEFT").to_uppercase().as_str() {
        "LEFT" => "left",
        "CENTER" => "center",
        "RIGHT" => "right",
        "JUSTIFY" => "both",
        other => {
            return Err(crate::nodes::boolean::unknown(
                "alignment",
                other,
                "LEFT, CENTER, RIGHT, JUSTIFY",
            ));
        }
    };
    let size = args.int("font_size", 12)?.clamp(1, 400) * 2;
    let mark = |name: &str, tag: &str| {
        if args.flag(name, false) {
            tag.to_owned()
        } else {
            String::new()
        }
    };
    let run = format!(
        "<w:rPr>{}{}<w:sz w:val=\"{size}\"/></w:rPr>",
        mark("bold", "<w:b/>"),
        mark("italic", "<w:i/>")
    );
    let style = format!("<w:jc w:val=\"{side}\"/>");
    add(args, ctx, paragraph(&style, &run, &args.text("text"))).await
}
/// Puts a part at the end of the text, before what describes its pages.
async fn add(args: Args<'_>, ctx: &Context, part: String) -> Result<Map, NodeError> {
    changed(args, ctx, BODY, move |body| {
        let end = body.rfind("</w:body>")?;
        let page = body
            .rfind("<w:sectPr")
            .filter(|at| !body.get(*at..end).unwrap_or_default().contains("</w:p>"));
        let (before, after) = body.split_at_checked(page.unwrap_or(end))?;
        Some(format!("{before}{part}{after}"))
    })
    .await
}
/// The document after a change of one of its files.
async fn changed(
    args: Args<'_>,
    ctx: &Context,
    file: &'static str,
    change: impl FnOnce(&str) -> Option<String> + Send + 'static,
) -> Result<Map, NodeError> {
    let bytes = content(args, INPUT, "document", ctx).await?;
    let bytes = blocking(ctx, move || {
        let mut files = unpacked(&bytes)?;
        let own = files.iter_mut().find(|(name, _)| name == file);
        let (_, content) = own.ok_or_else(|| unreadable(INPUT, KIND))?;
        let text = change(&String::from_utf8_lossy(content)).ok_or_else(|| unreadable(INPUT, KIND))?;
        *content = text.into_bytes();
        packed(&files)
    });
    document(bytes.await?)
}
async fn describe(args: Args<'_>, ctx: &Context) -> Result<Map, NodeError> {
    let text = core(
        &args.text("title"),
        &args.text("author"),
        &args.text("subject"),
        &args.text("keywords"),
    );
    changed(args, ctx, CORE, move |_| Some(text)).await
}
async fn save(args: Args<'_>, ctx: &Context) -> Result<Map, NodeError> {
    let bytes = content(args, INPUT, "document", ctx).await?;
    let mut name = named(&args.text("filename"), "document.docx", chrono::Utc::now());
    if !name.to_lowercase().ends_with(".docx") {
        name.push_str(".docx");
    }
    let above = match args.value("path") {
        atelier_proto::value::Value::Map(map) => map.get("path").map(text_of).unwrap_or_default(),
        other => text_of(&other),
    };
    let workspace = Workspace::of(ctx.services.host());
    blocking(ctx, move || {
        let workspace = workspace?;
        // The path may name the file itself.
        let place = if above.to_lowercase().ends_with(".docx") {
            workspace.place("path", &above)?
        } else {
            let above = workspace.place("path", &above)?;
            workspace.place("filename", &above.join(name).display().to_string())?
        };
        workspace.write("path", &place, &bytes)
    })
    .await?;
    Ok(Map::new())
}

use std::io::Write;

use rstest::rstest;
use serde_json::{Value as Json, json};

use crate::nodes::testing::Node;

/// A package of files as a value of bytes.
fn package(files: &[(&str, &str)]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, text) in files {
        writer
            .start_file(*name, zip::write::SimpleFileOptions::default())
            .expect("a file");
        writer.write_all(text.as_bytes()).expect("written");
    }
    writer.finish().expect("a package").into_inner()
}
fn book() -> Vec<u8> {
    package(&[
        (
            "META-INF/container.xml",
            "<container><rootfiles><rootfile full-path=\"OEBPS/book.opf\"/></rootfiles></container>",
        ),
        (
            "OEBPS/book.opf",
            "<package><metadata><dc:title>The &amp; Book</dc:title><dc:creator>Ann</dc:creator>\
            <dc:creator>Bob</dc:creator></metadata><manifest><item id=\"a\" href=\"a.xhtml\"/><item id=\"b\" href=\"b.xhtml\"/>\
            <item id=\"n\" href=\"nav.xhtml\" properties=\"nav\"/></manifest><spine><itemref idref=\"a\"/><itemref idref=\"b\"/>\
            </spine></package>",
        ),
        (
            "OEBPS/a.xhtml",
            "<html><head><title>x</title></head><body><h1>One</h1><p>First.</p></body></html>",
        ),
        (
            "OEBPS/b.xhtml",
            "<html><body><h2>Two</h2><p>Second.</p></body></html>",
        ),
        (
            "OEBPS/nav.xhtml",
            "<html><body><nav><ol><li><a href=\"a.xhtml\">One</a><ol><li><a href=\"a.xhtml#s\">Sub</a></li></ol>\
            </li></ol></nav></body></html>",
        ),
    ])
}
fn slides() -> Vec<u8> {
    let slide = |title: &str, text: &str| {
        format!(
            "<p:sld><a:p><a:r><a:t>{title}</a:t></a:r></a:p><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:sld>"
        )
    };
    package(&[
        ("ppt/presentation.xml", "<p/>"),
        ("ppt/slides/slide10.xml", &slide("Last", "end")),
        ("ppt/slides/slide2.xml", &slide("First", "a &lt; b")),
    ])
}
/// Zeros, packed so many times.
fn packed(length: usize, times: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    for _ in 0..times {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&bytes).expect("packed");
        bytes = encoder.finish().expect("packed");
    }
    bytes
}
/// A document with one page that draws a stream so often, and one further stream.
fn pdf_of(content: pdf_extract::Stream, often: usize, further: pdf_extract::Stream) -> Vec<u8> {
    use pdf_extract::{Document, Object, dictionary};
    let mut document = Document::with_version("1.5");
    let (pages, content) = (document.new_object_id(), document.add_object(content));
    document.add_object(further);
    let contents: Vec<Object> = (0..often).map(|_| content.into()).collect();
    let page =
        document.add_object(dictionary! { "Type" => "Page", "Parent" => pages, "Contents" => contents });
    let kids: Vec<Object> = vec![page.into()];
    let whole = dictionary! { "Type" => "Pages", "Kids" => kids, "Count" => 1 };
    document.objects.insert(pages, Object::Dictionary(whole));
    let catalog = document.add_object(dictionary! { "Type" => "Catalog", "Pages" => pages });
    document.trailer.set("Root", catalog);
    let mut bytes = Vec::new();
    document.save_to(&mut bytes).expect("a file");
    bytes
}
fn replaced(mut bytes: Vec<u8>, from: &[u8], to: &[u8]) -> Vec<u8> {
    let at = bytes.windows(from.len()).position(|part| part == from);
    let at = at.expect("what is replaced");
    bytes.splice(at..at + from.len(), to.iter().copied());
    bytes
}
/// A document that is nothing but its table of objects.
fn pdf_of_table(dictionary: &str, content: &[u8]) -> Vec<u8> {
    let mut bytes = format!(
        "%PDF-1.5\n1 0 obj\n<< /Type /XRef /Size 1 {dictionary} /Length {} >>\nstream\n",
        content.len()
    )
    .into_bytes();
    bytes.extend_from_slice(content);
    bytes.extend_from_slice(b"\nendstream\nendobj\nstartxref\n9\n%%EOF\n");
    bytes
}

#[rstest]
#[case::drawn("FlateDecode", 1, 1, "unpacks to more")]
#[case::in_steps("FlateDecode", 2, 1, "unpacks to more")]
#[case::drawn_often("FlateDecode", 1, 100, "unpacks to more")]
#[case::holding_objects("ObjStm", 1, 1, "unpacks to more")]
#[case::table("Table", 1, 1, "unpacks to more")]
#[case::table_without_fields("Endless", 1, 1, "cannot be read")]
#[tokio::test]
async fn a_pdf_that_unpacks_without_end_is_refused(
    #[case] what: &str,
    #[case] times: usize,
    #[case] often: usize,
    #[case] part: &str,
) {
    use pdf_extract::{Object, Stream, dictionary};
    let length = if often > 1 { 4 << 20 } else { 300 << 20 };
    let content = packed(length, times);
    let filters: Vec<Object> = (0..times).map(|_| "FlateDecode".into()).collect();
    let plain = || Stream::new(dictionary! {}, b"BT ET".to_vec());
    let bytes = match what {
        "ObjStm" => {
            let holder =
                dictionary! { "Type" => "ObjStx", "N" => 1, "First" => 4, "Filter" => "FlateDecode" };
            replaced(
                pdf_of(plain(), 1, Stream::new(holder, content)),
                b"ObjStx",
                b"ObjStm",
            )
        }
        "Table" => pdf_of_table("/W [1 2 1] /Filter /FlateDecode", &content),
        "Endless" => pdf_of_table("/W [0 0 0] /Index [0 4000000000]", b"x"),
        _ => pdf_of(
            Stream::new(dictionary! { "Filter" => filters }, content),
            often,
            plain(),
        ),
    };
    for node in ["ExtractText", "PageCount"] {
        let error = run(&format!("lib.pdf.{node}"), json!({"pdf": document(&bytes)})).await;
        let error = error.expect_err("a fault").message;
        assert!(
            error.starts_with("the input `pdf` ") && error.contains(part),
            "{error}"
        );
    }
}

fn pdf() -> Vec<u8> {
    use pdf_extract::{Document, Object, Stream, dictionary};
    let mut document = Document::with_version("1.5");
    let pages = document.new_object_id();
    let font = document
        .add_object(dictionary! { "Type" => "Font", "Subtype" => "Type1", "BaseFont" => "Helvetica" });
    let resources = document.add_object(dictionary! { "Font" => dictionary! { "F1" => font } });
    let page = |document: &mut Document, text: &str| {
        let text = format!("BT /F1 24 Tf 100 600 Td ({text}) Tj ET");
        let content = document.add_object(Stream::new(dictionary! {}, text.into_bytes()));
        document.add_object(dictionary! { "Type" => "Page", "Parent" => pages, "Contents" => content })
    };
    let kids: Vec<Object> = ["Hello moor", "Second page"]
        .map(|text| page(&mut document, text).into())
        .to_vec();
    let whole = dictionary! {
        "Type" => "Pages", "Kids" => kids, "Count" => 2, "Resources" => resources,
        "MediaBox" => vec![0.into(), 0.into(), 595.into(), 842.into()],
    };
    document.objects.insert(pages, Object::Dictionary(whole));
    let catalog = document.add_object(dictionary! { "Type" => "Catalog", "Pages" => pages });
    document.trailer.set("Root", catalog);
    let mut bytes = Vec::new();
    document.save_to(&mut bytes).expect("a document");
    bytes
}
fn document(bytes: &[u8]) -> Json {
    use base64::{Engine, engine::general_purpose::STANDARD};
    json!({"type": "document", "uri": "", "data": {"$bytes": STANDARD.encode(bytes)}})
}
async fn run(node_type: &str, inputs: Json) -> Result<Json, crate::node::NodeError> {
    Node::new(node_type).process(inputs).await
}

#[rstest]
#[case("lib.epub.ExtractText", json!({"epub": document(&book()), "chapter_separator": "|"}), json!("One\n\nFirst.|Two\n\nSecond."))]
#[case("lib.epub.Metadata", json!({"epub": document(&book())}), json!({"title": "The & Book", "creator": "Ann, Bob"}))]
#[case("lib.epub.ExtractChapters", json!({"epub": document(&book())}), json!([
    {"index": 0, "title": "One", "text": "One\n\nFirst."}, {"index": 1, "title": "Two", "text": "Two\n\nSecond."}]))]
#[case("lib.epub.TableOfContents", json!({"epub": document(&book())}), json!([
    {"title": "One", "href": "a.xhtml", "level": 1}, {"title": "Sub", "href": "a.xhtml#s", "level": 2}]))]
#[case("lib.pptx.ExtractText", json!({"pptx": document(&slides())}), json!("First\na < b\n\nLast\nend"))]
#[case("lib.pptx.ExtractSlides", json!({"pptx": document(&slides())}), json!([
    {"slide": 1, "title": "First", "text": "First\na < b"}, {"slide": 2, "title": "Last", "text": "Last\nend"}]))]
#[case("lib.pdf.PageCount", json!({"pdf": document(&pdf())}), json!(2))]
#[case("lib.pdf.ExtractText", json!({"pdf": document(&pdf())}), json!("Hello moor\n\nSecond page"))]
#[case("lib.pdf.ExtractText", json!({"pdf": document(&pdf()), "start_page": 1}), json!("Second page"))]
#[case("lib.pdf.ExtractMarkdown", json!({"pdf": document(&pdf()), "end_page": 0}), json!("## Page 1\n\nHello moor"))]
#[case("lib.pdf.SearchText", json!({"pdf": document(&pdf()), "phrase": "PAGE"}),
    json!([{"page": 1, "line": 0, "text": "Second page"}]))]
#[case("lib.pdf.PageMetadata", json!({"pdf": document(&pdf()), "end_page": 0}),
    json!([{"page": 0, "width": 595.0, "height": 842.0}]))]
#[case("lib.convert.ConvertToMarkdown", json!({"html": "<h1>A</h1><p>b <i>c</i></p>"}), json!("# A\n\nb *c*"))]
#[case("lib.convert.ConvertToMarkdown", json!({"document": document(&pdf())}), json!("Hello moor\n\nSecond page"))]
#[case("lib.convert.ConvertToMarkdown", json!({"document": document(&slides())}), json!("## Slide 1\n\nFirst\na < b\n\n## Slide 2\n\nLast\nend"))]
#[case("lib.convert.ConvertToMarkdown", json!({"bytes": {"$bytes": "cGxhaW4="}}), json!("plain"))]
#[tokio::test]
async fn documents_are_read(#[case] name: &str, #[case] inputs: Json, #[case] expected: Json) {
    assert_eq!(run(name, inputs).await.expect("a text")["output"], expected);
}

#[rstest]
#[case("lib.pdf.ExtractText", json!({"pdf": document(b"%PDF-1.4 broken")}), "the input `pdf` cannot be read as a PDF")]
#[case("lib.pdf.ExtractText", json!({"pdf": document(&pdf()), "start_page": 2}), "the input `start_page` must be a page from 0 to 1")]
#[case("lib.pdf.ExtractText", json!({}), "the input `pdf` is empty")]
#[case("lib.pdf.SearchText", json!({"pdf": document(&pdf()), "phrase": ""}), "the input `phrase` is empty")]
#[case("lib.epub.Metadata", json!({"epub": document(b"no")}), "the input `epub` cannot be read as a book in EPUB")]
#[case("lib.pptx.ExtractText", json!({"pptx": document(&book())}), "the input `pptx` cannot be read as a presentation")]
#[case("lib.docx.AddHeading", json!({"document": document(&book()), "text": "x"}), "cannot be read as a Word document")]
#[case("lib.docx.AddParagraph", json!({"document": document(b""), "alignment": "UP"}), "the input `alignment` must be one of")]
#[case("lib.convert.ConvertToMarkdown", json!({}), "the input `document` is empty")]
#[case("lib.excel.FormatCells", json!({"workbook": {"sheets": {}}, "cell_range": "B2:A1"}), "the input `cell_range` must go")]
#[case("lib.excel.FormatCells", json!({"workbook": {"sheets": {}}, "text_color": "red"}), "the input `text_color`")]
#[case("lib.excel.CreateWorkbook", json!({"sheet_name": "a/b"}), "the input `sheet_name`")]
#[case("lib.excel.DataFrameToExcel", json!({"workbook": {"sheets": {}}, "start_cell": "7"}), "the input `start_cell`")]
#[case("lib.excel.AutoFitColumns", json!({}), "the input `workbook` is empty")]
#[tokio::test]
async fn faults_name_the_input(#[case] name: &str, #[case] inputs: Json, #[case] part: &str) {
    let error = run(name, inputs).await.expect_err("a fault");
    assert!(error.message.contains(part), "{}", error.message);
}

#[tokio::test]
async fn a_word_document_is_made_saved_and_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let table = json!({"columns": ["a", "b"], "data": [[1, "x|y"]]});
    let steps = [
        ("AddHeading", json!({"text": "Head & more", "level": 2})),
        (
            "AddParagraph",
            json!({"text": "One\n<two>", "bold": true, "alignment": "CENTER"}),
        ),
        ("AddTable", json!({"data": table})),
        ("AddPageBreak", json!({})),
        ("SetDocumentProperties", json!({"title": "T", "author": "A"})),
    ];
    let mut made = run("lib.docx.CreateDocument", json!({}))
        .await
        .expect("a document");
    for (name, mut inputs) in steps {
        inputs["document"] = made["output"].clone();
        made = run(&format!("lib.docx.{name}"), inputs).await.expect(name);
    }
    let inputs = json!({"document": made["output"], "path": {"path": "out"}, "filename": "a"});
    Node::in_folder("lib.docx.SaveDocument", folder.path())
        .process(inputs)
        .await
        .expect("saved");
    let mut load = Node::in_folder("lib.docx.LoadWordDocument", folder.path());
    let loaded = load
        .process(json!({"path": "out/a.docx"}))
        .await
        .expect("a document");
    let mut convert = Node::in_folder("lib.convert.ConvertToMarkdown", folder.path());
    let text = convert
        .process(json!({"document": loaded["output"]}))
        .await
        .expect("a text");
    assert_eq!(
        text["output"],
        "## Head & more\n\nOne\n<two>\n\n| a | b |\n| --- | --- |\n| 1 | x\\|y |"
    );
}

#[tokio::test]
async fn a_workbook_is_made_saved_and_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let table = json!({"columns": ["a", "b"], "data": [[1, "x"], [2.5, true]]});
    let mut made = run("lib.excel.CreateWorkbook", json!({}))
        .await
        .expect("a workbook");
    let steps = [
        ("DataFrameToExcel", json!({"dataframe": table})),
        (
            "FormatCells",
            json!({"cell_range": "A1:B1", "bold": true, "background_color": "FFFF00"}),
        ),
        ("AutoFitColumns", json!({})),
    ];
    for (name, mut inputs) in steps {
        inputs["workbook"] = made["output"].clone();
        made = run(&format!("lib.excel.{name}"), inputs).await.expect(name);
    }
    let read = run("lib.excel.ExcelToDataFrame", json!({"workbook": made["output"]}))
        .await
        .expect("a table");
    assert_eq!(read["output"]["data"], json!([[1, "x"], [2.5, true]]));
    let error = run(
        "lib.excel.ExcelToDataFrame",
        json!({"workbook": made["output"], "sheet_name": "Two"}),
    )
    .await;
    assert!(
        error
            .expect_err("no sheet")
            .message
            .contains("the workbook has: Sheet1")
    );
    let inputs = json!({"workbook": made["output"], "folder": "out", "filename": "w"});
    Node::in_folder("lib.excel.SaveWorkbook", folder.path())
        .process(inputs)
        .await
        .expect("saved");
    let bytes = std::fs::read(folder.path().join("out/w.xlsx")).expect("a file");
    let text = run(
        "lib.convert.ConvertToMarkdown",
        json!({"document": document(&bytes)}),
    )
    .await
    .expect("a text");
    assert_eq!(
        text["output"],
        "## Sheet1\n\n| a | b |\n| --- | --- |\n| 1 | x |\n| 2.5 | true |"
    );
}

#[rstest]
#[case("SplitRecursively", "aa bb.cc dd", json!({"chunk_size": 6, "chunk_overlap": 0, "separators": ["."]}),
    json!([["aa bb.", 0], ["cc dd", 6]]))]
#[case("SplitRecursively", "abcdefgh", json!({"chunk_size": 3, "chunk_overlap": 0}), json!([["abc", 0], ["def", 3], ["gh", 6]]))]
#[case("SplitRecursively", "a b c d", json!({"chunk_size": 4, "chunk_overlap": 2, "separators": [" "]}),
    json!([["a b", 0], ["b c", 2], ["c d", 4]]))]
#[case("SplitMarkdown", "# A\none\n## B\ntwo\n", json!({}), json!([["one", 0], ["two", 8]]))]
#[case("SplitMarkdown", "# A\none\n", json!({"strip_headers": false}), json!([["# A\none", 0]]))]
#[case("SplitHTML", "<h1>A</h1><p>one</p><h2>B</h2><p>two</p>", json!({}), json!([["# A\n\none", 0], ["## B\n\ntwo", 10]]))]
#[case("SplitJSON", "[{\"a\": 1}, 2]", json!({}), json!([["{\"a\":1}", 0], ["2", 7]]))]
#[tokio::test]
async fn documents_are_cut(
    #[case] name: &str,
    #[case] text: &str,
    #[case] mut inputs: Json,
    #[case] expected: Json,
) {
    inputs["document"] = document(text.as_bytes());
    let mut node = Node::new(&format!("nodetool.document.{name}"));
    let mut frames = node.frames(inputs).await.expect("pieces");
    let all = frames.pop().expect("all pieces");
    let pieces: Vec<_> = frames
        .iter()
        .map(|frame| json!([frame["text"], frame["start_index"]]))
        .collect();
    assert_eq!(json!(pieces), expected);
    assert_eq!(all["chunks"].as_array().map(Vec::len), Some(pieces.len()));
    assert_eq!(frames[0]["source_id"], "document:0");
}

#[rstest]
#[case(json!({"chunk_size": 0}), "the input `chunk_size`")]
#[case(json!({"chunk_size": 5, "chunk_overlap": 5}), "the input `chunk_overlap`")]
#[tokio::test]
async fn sizes_of_pieces_are_judged(#[case] mut inputs: Json, #[case] part: &str) {
    inputs["document"] = document(b"text");
    let error = Node::new("nodetool.document.SplitRecursively")
        .frames(inputs)
        .await
        .expect_err("a fault");
    assert!(error.message.contains(part), "{}", error.message);
}

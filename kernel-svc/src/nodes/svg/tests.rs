//! Elements as text, and documents as pixels.

use std::sync::Arc;

use atelier_proto::value::{Map, Value};
use rstest::rstest;
use serde_json::{Value as Json, json};

use super::element::write;
use crate::nodes::media_testing::{call, context, inputs, pixels};

async fn made(name: &str, params: Json, more: &[(&str, &Value)]) -> Result<Value, String> {
    let ctx = context(&format!("lib.svg.{name}"), Arc::default());
    let out: Result<Map, _> = call(&ctx, inputs(params, more)).await;
    out.map(|out| out["output"].clone())
        .map_err(|error| error.message)
}
fn text(element: &Value) -> String {
    let mut out = String::new();
    write(element, &mut out, 0).expect("an element");
    out
}
fn square() -> Json {
    json!({"x": 0, "y": 0, "width": 2, "height": 2, "fill": "#ff0000", "stroke": "none", "stroke_width": 0})
}

#[rstest]
#[case("Circle", json!({"cx": 1, "radius": 2, "fill": "#ff0000", "stroke": "#0000ff80"}),
    r##"<circle cx="1" cy="0" r="2" fill="#ff0000" stroke="rgba(0,0,255,0.502)" stroke-width="1"></circle>"##)]
#[case("Line", json!({"stroke": "#000"}), r##"<line x1="0" y1="0" x2="100" y2="100" stroke="#000000" stroke-width="1"></line>"##)]
#[case("Text", json!({"text": "a < b & \"c\"", "fill": "#000"}),
    r##"<text x="0" y="0" font-family="Arial" font-size="16" fill="#000000" text-anchor="start">a &lt; b &amp; &quot;c&quot;</text>"##)]
#[case("Path", json!({"path_data": "M0 0 L9 9\"><script>", "fill": "none", "stroke": "none"}),
    r##"<path d="M0 0 L9 9&quot;&gt;&lt;script&gt;" fill="none" stroke="none" stroke-width="1"></path>"##)]
#[tokio::test]
async fn elements_are_written(#[case] name: &str, #[case] params: Json, #[case] expected: &str) {
    assert_eq!(
        text(&made(name, params, &[]).await.expect("an element")),
        expected
    );
}

#[tokio::test]
async fn documents_have_pixels() {
    let square = made("Rect", square(), &[]).await.expect("an element");
    let moved = made("Transform", json!({"translate_x": 2}), &[("content", &square)])
        .await
        .expect("an element");
    let params = json!({"width": 4, "height": 2, "viewBox": "0 0 4 2"});
    let out = made(
        "SVGToImage",
        params.clone(),
        &[("elements", &Value::list(vec![moved.clone()]))],
    )
    .await
    .expect("a picture");
    let (clear, red) = ([0; 4], [255, 0, 0, 255]);
    assert_eq!(
        pixels(&out),
        (4, vec![clear, clear, red, red, clear, clear, red, red])
    );
    let hole = made("Rect", json!({"width": 3, "height": 1}), &[])
        .await
        .expect("an element");
    let clipped = made(
        "ClipPath",
        json!({}),
        &[("clip_content", &hole), ("content", &moved)],
    )
    .await
    .expect("an element");
    let out = made("SVGToImage", params, &[("elements", &Value::list(vec![clipped]))])
        .await
        .expect("a picture");
    assert_eq!(
        pixels(&out).1,
        [clear, clear, red, clear, clear, clear, clear, clear]
    );
}

#[tokio::test]
async fn documents_scale_and_have_letters() {
    let words = made(
        "Text",
        json!({"text": "Hi", "x": 2, "y": 18, "fill": "#000000"}),
        &[],
    )
    .await
    .expect("an element");
    let params = json!({"width": 40, "height": 24, "viewBox": "0 0 40 24", "scale": 2});
    let out = made(
        "SVGToImage",
        params,
        &[("elements", &Value::list(vec![words.clone()]))],
    )
    .await
    .expect("a picture");
    let (width, found) = pixels(&out);
    assert_eq!((width, found.len()), (80, 80 * 48));
    assert!(found.iter().filter(|pixel| pixel[3] > 128).count() > 50);
    let document = made(
        "Document",
        json!({"width": 40, "height": 24}),
        &[("elements", &words)],
    )
    .await
    .expect("a document");
    let media = document.as_media().expect("media");
    assert_eq!(
        (media.kind.as_str(), media.mime_type.as_deref()),
        ("svg", Some("image/svg+xml"))
    );
    let written = String::from_utf8(media.data.clone().expect("bytes").to_vec()).expect("text");
    assert!(
        written.starts_with("<svg xmlns=") && written.ends_with("Hi</text></svg>"),
        "{written}"
    );
}

#[rstest]
#[case("Rect", json!({"width": -1}), "the input `width` must be at least 0, got -1")]
#[case("Path", json!({}), "the input `path_data` is empty: there is nothing to draw")]
#[case("Transform", json!({}), "the input `content` is empty: there is no element")]
#[case("Document", json!({"viewBox": "0 0 5"}), "the input `viewBox` must be four numbers like 0 0 800 600, got \"0 0 5\"")]
#[case("Document", json!({"elements": [5]}), "the input `elements` expects svg_element, got int")]
#[case("Document", json!({"elements": [{"name": "script", "content": "x"}]}),
    "the input `elements` have an element \"script\", which is not drawn")]
#[tokio::test]
async fn what_cannot_be_drawn_is_told(#[case] name: &str, #[case] params: Json, #[case] expected: &str) {
    assert_eq!(made(name, params, &[]).await.expect_err("a fault"), expected);
}

//! Documents, and what they look like.

use async_trait::async_trait;
use atelier_proto::value::Map;
use image::{Rgba, RgbaImage};
use resvg::{
    tiny_skia::{Pixmap, Transform},
    usvg::{ImageHrefResolver, Options, Tree},
};

use super::element::{escaped, write};
use crate::{
    node::{Context, Executor, NodeError},
    nodes::{
        args::{Args, one, text_of},
        code::{Types, factory},
        image::{Style, color, encode, real, sized},
        media_io::{Params, Stop, made, value_fault, work},
    },
};

/// All types of this part.
pub(super) fn types() -> Types {
    vec![
        ("lib.svg.Document", factory(Document)),
        ("lib.svg.SVGToImage", factory(ToImage)),
    ]
}

/// The document of the elements.
fn document(params: &Params) -> Result<String, NodeError> {
    let (width, height) = (params.size("width")?, params.size("height")?);
    let view = params.text("viewBox");
    let numbers: Vec<f64> = view
        .split([' ', ','])
        .filter(|text| !text.is_empty())
        .map_while(|text| text.parse().ok().filter(|number: &f64| number.is_finite()))
        .collect();
    if numbers.len() != 4 || numbers.iter().skip(2).any(|side| *side <= 0.0) {
        let shown: String = view.chars().take(60).collect();
        return Err(value_fault(
            "viewBox",
            &format!("must be four numbers like 0 0 800 600, got {shown:?}"),
        ));
    }
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"{}\">",
        escaped(&view)
    );
    write(&params.value("elements"), &mut out, 0)?;
    out.push_str("</svg>");
    Ok(out)
}
#[derive(Clone, Copy)]
struct Document;
#[async_trait]
impl Executor for Document {
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let document = document(&Params::new(ctx, inputs))?;
        Ok(one(
            "output",
            made("svg", "image/svg+xml", document.into_bytes())?,
        ))
    }
}
#[derive(Clone, Copy)]
struct ToImage;
#[async_trait]
impl Executor for ToImage {
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let params = Params::new(ctx, inputs);
        let output = work(ctx, move |stop| encode(&drawn(&params, stop)?));
        Ok(one("output", output.await?))
    }
}
fn drawn(params: &Params, stop: &Stop) -> Result<RgbaImage, NodeError> {
    let scale = u32::try_from(params.int("scale")?.clamp(1, 10)).unwrap_or(1);
    let width = params.size("width")?.saturating_mul(scale);
    let height = params.size("height")?.saturating_mul(scale);
    let (width, height) = sized("width", width, height)?;
    let document = document(params)?;
    // Nothing is fetched: pictures and other documents that are named are left out.
    let nothing = ImageHrefResolver {
        resolve_data: Box::new(|_, _, _| None),
        resolve_string: Box::new(|_, _| None),
    };
    let options = Options {
        image_href_resolver: nothing,
        ..Options::default()
    };
    let tree = Tree::from_str(&document, &options)
        .map_err(|error| value_fault("elements", &format!("cannot be drawn: {error}")))?;
    stop.check()?;
    let mut map = Pixmap::new(width, height).ok_or_else(|| NodeError::new("the picture has no pixels"))?;
    let (across, down) = (
        real(width) / tree.size().width(),
        real(height) / tree.size().height(),
    );
    resvg::render(&tree, Transform::from_scale(across, down), &mut map.as_mut());
    let mut picture = RgbaImage::new(width, height);
    for (to, from) in picture.pixels_mut().zip(map.pixels()) {
        let color = from.demultiply();
        *to = Rgba([color.red(), color.green(), color.blue(), color.alpha()]);
    }
    letters(params, &mut picture, scale)?;
    Ok(picture)
}
/// Texts that are not within other elements, in the built-in font: the renderer has none.
fn letters(params: &Params, picture: &mut RgbaImage, scale: u32) -> Result<(), NodeError> {
    let elements = params.value("elements");
    let single = [elements.clone()];
    for element in elements.as_list().unwrap_or(&single) {
        let Some(map) = element.as_map().filter(|map| Args(map).text("name") == "text") else {
            continue;
        };
        let attributes = Args(map).value("attributes");
        let of = |name: &str| attributes.get(name).as_ref().map(text_of).unwrap_or_default();
        let number = |name: &str| of(name).parse::<f64>().unwrap_or_default() * f64::from(scale);
        let fill = of("fill");
        if fill == "none" {
            continue;
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
        let size = (number("font-size") * 1.2).clamp(1.0, 1_024.0) as u32;
        let style = Style {
            size,
            bold: false,
            color: color("fill", &fill.as_str().into()).unwrap_or([0.0, 0.0, 0.0, 1.0]),
        };
        let text: String = Args(map).text("content").chars().take(10_000).collect();
        let width = f64::from(style.width(&text));
        let start = match of("text-anchor").as_str() {
            "middle" => width / 2.0,
            "end" => width,
            _ => 0.0,
        };
        // The place is that of the line on which letters stand, at four fifths of their height.
        #[expect(clippy::cast_possible_truncation, reason = "what is far away is not drawn")]
        let (left, top) = (
            (number("x") - start) as i64,
            (number("y") - f64::from(size) * 0.78) as i64,
        );
        style.line(picture, &text, left, top);
    }
    Ok(())
}

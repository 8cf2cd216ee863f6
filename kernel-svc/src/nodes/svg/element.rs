//! Elements, and how they are written.

use async_trait::async_trait;
use atelier_proto::value::{Map, Value};

use crate::{
    node::{Context, Executor, NodeError},
    nodes::{
        args::{Args, map, missing, one, text_of},
        code::{Types, factory},
        image,
        media_io::{Params, value_fault},
    },
};

/// Deepest nesting, and longest document in bytes.
const MAX_DEPTH: usize = 64;
pub(super) const MAX_TEXT: usize = 8 * 1024 * 1024;

/// All types of this part.
pub(super) fn types() -> Types {
    vec![
        (
            "lib.svg.Circle",
            factory(Make(|p| {
                shape(p, "circle", &[("cx", "cx"), ("cy", "cy"), ("r", "radius")])
            })),
        ),
        ("lib.svg.ClipPath", factory(Make(clip_path))),
        ("lib.svg.DropShadow", factory(Make(drop_shadow))),
        (
            "lib.svg.Ellipse",
            factory(Make(|p| {
                shape(
                    p,
                    "ellipse",
                    &[("cx", "cx"), ("cy", "cy"), ("rx", "rx"), ("ry", "ry")],
                )
            })),
        ),
        ("lib.svg.GaussianBlur", factory(Make(gaussian_blur))),
        ("lib.svg.Gradient", factory(Make(gradient))),
        ("lib.svg.Line", factory(Make(line))),
        (
            "lib.svg.Path",
            factory(Make(|p| drawn(p, "path", "d", "path_data"))),
        ),
        (
            "lib.svg.Polygon",
            factory(Make(|p| drawn(p, "polygon", "points", "points"))),
        ),
        (
            "lib.svg.Rect",
            factory(Make(|p| {
                shape(
                    p,
                    "rect",
                    &[("x", "x"), ("y", "y"), ("width", "width"), ("height", "height")],
                )
            })),
        ),
        ("lib.svg.Text", factory(Make(text))),
        ("lib.svg.Transform", factory(Make(transform))),
    ]
}

/// Inputs in, an element out.
#[derive(Clone, Copy)]
struct Make(fn(&Params) -> Result<Value, NodeError>);
#[async_trait]
impl Executor for Make {
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        Ok(one("output", self.0(&Params::new(ctx, inputs))?))
    }
}

type Attributes = Vec<(&'static str, String)>;
fn element(name: &str, attributes: Attributes, content: Option<String>, children: Vec<Value>) -> Value {
    let attributes: Map = attributes
        .into_iter()
        .map(|(name, text)| (name.to_owned(), text.into()))
        .collect();
    map([
        ("type", "svg_element".into()),
        ("name", name.into()),
        ("attributes", attributes.into()),
        ("content", content.map_or(Value::Null, Into::into)),
        ("children", Value::list(children)),
    ])
    .into()
}
/// A colour as SVG has it; none when there is none.
fn color(params: &Params, name: &str) -> Result<String, NodeError> {
    let value = params.value(name);
    let stated = match &value {
        Value::Map(map) => !Args(map).value("value").is_null(),
        other => !other.is_null(),
    };
    if !stated {
        return Ok("none".to_owned());
    }
    let [red, green, blue, alpha] = image::color(name, &value)?;
    let [r, g, b] = [red, green, blue].map(image::byte);
    Ok(match image::byte(alpha) {
        0 => "none".to_owned(),
        255 => format!("#{r:02x}{g:02x}{b:02x}"),
        _ => format!("rgba({r},{g},{b},{alpha:.3})"),
    })
}
fn painted(params: &Params, mut attributes: Attributes) -> Result<Attributes, NodeError> {
    attributes.push(("fill", color(params, "fill")?));
    stroked(params, attributes)
}
fn stroked(params: &Params, mut attributes: Attributes) -> Result<Attributes, NodeError> {
    attributes.push(("stroke", color(params, "stroke")?));
    attributes.push(("stroke-width", positive(params, "stroke_width")?.to_string()));
    Ok(attributes)
}
fn positive(params: &Params, name: &str) -> Result<f64, NodeError> {
    let number = params.f64(name)?;
    if number < 0.0 {
        return Err(value_fault(name, &format!("must be at least 0, got {number}")));
    }
    Ok(number)
}
fn shape(params: &Params, name: &str, numbers: &[(&'static str, &str)]) -> Result<Value, NodeError> {
    let mut attributes = Attributes::new();
    for (attribute, input) in numbers {
        let size = !matches!(*attribute, "x" | "y" | "cx" | "cy");
        let number = if size {
            positive(params, input)?
        } else {
            params.f64(input)?
        };
        attributes.push((attribute, number.to_string()));
    }
    Ok(element(name, painted(params, attributes)?, None, Vec::new()))
}
fn drawn(params: &Params, name: &str, attribute: &'static str, input: &str) -> Result<Value, NodeError> {
    let text = params.text(input);
    if text.trim().is_empty() {
        return Err(missing(input, "there is nothing to draw"));
    }
    if text.len() > MAX_TEXT {
        return Err(value_fault(input, &format!("must have at most {MAX_TEXT} bytes")));
    }
    Ok(element(
        name,
        painted(params, vec![(attribute, text)])?,
        None,
        Vec::new(),
    ))
}
fn numbers(params: &Params, names: &[&'static str]) -> Result<Attributes, NodeError> {
    names
        .iter()
        .map(|name| Ok((*name, params.f64(name)?.to_string())))
        .collect()
}
fn line(params: &Params) -> Result<Value, NodeError> {
    let attributes = stroked(params, numbers(params, &["x1", "y1", "x2", "y2"])?)?;
    Ok(element("line", attributes, None, Vec::new()))
}
fn text(params: &Params) -> Result<Value, NodeError> {
    let mut attributes = numbers(params, &["x", "y"])?;
    attributes.push(("font-family", params.text("font_family")));
    attributes.push(("font-size", positive(params, "font_size")?.to_string()));
    attributes.push(("fill", color(params, "fill")?));
    attributes.push(("text-anchor", params.choice("text_anchor")?));
    Ok(element("text", attributes, Some(params.text("text")), Vec::new()))
}
/// A name that is the same for the same element.
fn named(kind: &str, of: &str) -> String {
    let digest = blake3::hash(of.as_bytes()).to_hex();
    format!("{kind}-{}", digest.get(..8).unwrap_or_default())
}
fn filter(kind: &str, parts: Vec<Value>) -> Result<Value, NodeError> {
    let mut written = String::new();
    for part in &parts {
        write(part, &mut written, 0)?;
    }
    let attributes = vec![
        ("id", named(kind, &written)),
        ("x", "-50%".to_owned()),
        ("y", "-50%".to_owned()),
        ("width", "200%".to_owned()),
        ("height", "200%".to_owned()),
    ];
    Ok(element("filter", attributes, None, parts))
}
fn gaussian_blur(params: &Params) -> Result<Value, NodeError> {
    let part = ("stdDeviation", positive(params, "std_deviation")?.to_string());
    filter(
        "blur",
        vec![element("feGaussianBlur", vec![part], None, Vec::new())],
    )
}
fn drop_shadow(params: &Params) -> Result<Value, NodeError> {
    let mut attributes = numbers(params, &["dx", "dy"])?;
    attributes.push(("stdDeviation", positive(params, "std_deviation")?.to_string()));
    attributes.push(("flood-color", color(params, "color")?));
    filter(
        "shadow",
        vec![element("feDropShadow", attributes, None, Vec::new())],
    )
}
/// Two colours along a line, or around a place; places are percents.
fn gradient(params: &Params) -> Result<Value, NodeError> {
    let kind = params.choice("gradient_type")?;
    let at = |name: &str| params.f64(name).map(|percent| format!("{percent}%"));
    let (x1, y1, x2, y2) = (at("x1")?, at("y1")?, at("x2")?, at("y2")?);
    let stop = |place: &str, name: &str| {
        let attributes = vec![("offset", place.to_owned()), ("stop-color", color(params, name)?)];
        Ok::<_, NodeError>(element("stop", attributes, None, Vec::new()))
    };
    let stops = vec![stop("0%", "color1")?, stop("100%", "color2")?];
    let mut attributes = if kind == "radialGradient" {
        vec![("cx", x1), ("cy", y1), ("r", x2)]
    } else {
        vec![("x1", x1), ("y1", y1), ("x2", x2), ("y2", y2)]
    };
    let mut written = format!("{kind}{attributes:?}");
    for stop in &stops {
        write(stop, &mut written, 0)?;
    }
    attributes.insert(0, ("id", named("gradient", &written)));
    Ok(element(&kind, attributes, None, stops))
}
fn given(params: &Params, name: &str) -> Result<Value, NodeError> {
    let value = params.value(name);
    let empty = value.as_map().is_none_or(|map| Args(map).text("name").is_empty());
    if empty && value.as_str().is_none_or(str::is_empty) {
        return Err(missing(name, "there is no element"));
    }
    Ok(value)
}
fn clip_path(params: &Params) -> Result<Value, NodeError> {
    let (clip, content) = (given(params, "clip_content")?, given(params, "content")?);
    let mut written = String::new();
    write(&clip, &mut written, 0)?;
    let id = named("clip", &written);
    let inside = ("clip-path", format!("url(#{id})"));
    let clip = element("clipPath", vec![("id", id)], None, vec![clip]);
    let content = element("g", vec![inside], None, vec![content]);
    Ok(element(
        "g",
        Vec::new(),
        None,
        vec![element("defs", Vec::new(), None, vec![clip]), content],
    ))
}
fn transform(params: &Params) -> Result<Value, NodeError> {
    let content = given(params, "content")?;
    let (x, y) = (params.f64("translate_x")?, params.f64("translate_y")?);
    let (turn, scale_x, scale_y) = (
        params.f64("rotate")?,
        params.f64("scale_x")?,
        params.f64("scale_y")?,
    );
    let orders = format!("translate({x} {y}) rotate({turn}) scale({scale_x} {scale_y})");
    Ok(element("g", vec![("transform", orders)], None, vec![content]))
}

/// Text within a document.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for sign in text.chars() {
        match sign {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // Other control characters are in no document.
            '\n' | '\t' => out.push(sign),
            sign if sign.is_control() => {}
            sign => out.push(sign),
        }
    }
    out
}
/// Names of elements and attributes: those that only look, not those that act or fetch.
pub(in crate::nodes) fn plain(name: &str) -> bool {
    let letters = name
        .chars()
        .all(|sign| sign.is_ascii_alphanumeric() || matches!(sign, '-' | '_' | ':'));
    let acts = [
        "script",
        "foreignobject",
        "image",
        "iframe",
        "href",
        "xlink:href",
        "style",
        // The renderer follows these as deep and as often as they name each other.
        "mask",
        "pattern",
        "marker",
        // These take as long as their numbers say.
        "feturbulence",
        "femorphology",
        "feconvolvematrix",
    ];
    !name.is_empty()
        && letters
        && !acts.contains(&name.to_ascii_lowercase().as_str())
        && !name.to_ascii_lowercase().starts_with("on")
}
/// Writes an element, or a list of them.
///
/// # Errors
/// It is no element, it is nested too deep, or there is too much of it.
pub(super) fn write(value: &Value, out: &mut String, depth: usize) -> Result<(), NodeError> {
    written(value, out, depth, false)
}
/// `clips` tells that this is within a clip path, which may not be cut by another one: three of them that cut each other
/// would take the renderer's stack.
fn written(value: &Value, out: &mut String, depth: usize, clips: bool) -> Result<(), NodeError> {
    if depth > MAX_DEPTH {
        return Err(value_fault(
            "elements",
            &format!("are nested more than {MAX_DEPTH} deep"),
        ));
    }
    if out.len() > MAX_TEXT {
        return Err(value_fault(
            "elements",
            &format!("make a document of more than {MAX_TEXT} bytes"),
        ));
    }
    match value {
        Value::Null => Ok(()),
        Value::List(items) => items
            .iter()
            .try_for_each(|item| written(item, out, depth + 1, clips)),
        Value::Map(map) => {
            let args = Args(map);
            let name = args.text("name");
            if name.is_empty() {
                return Ok(());
            }
            if !plain(&name) {
                let shown: String = name.chars().take(40).collect();
                return Err(value_fault(
                    "elements",
                    &format!("have an element {shown:?}, which is not drawn"),
                ));
            }
            let clips = clips || name == "clipPath";
            out.push('<');
            out.push_str(&name);
            let attributes = args.value("attributes");
            for (attribute, value) in attributes.as_map().into_iter().flat_map(|map| map.iter()) {
                if clips && attribute == "clip-path" {
                    return Err(value_fault("elements", "have a clip path within another one"));
                }
                if plain(attribute) {
                    out.push_str(&format!(" {attribute}=\"{}\"", escaped(&text_of(value))));
                }
            }
            out.push('>');
            out.push_str(&escaped(&args.text("content")));
            written(&args.value("children"), out, depth + 1, clips)?;
            out.push_str(&format!("</{name}>"));
            Ok(())
        }
        other => Err(crate::nodes::args::wrong("elements", "svg_element", other)),
    }
}

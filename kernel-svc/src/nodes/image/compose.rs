//! Several pictures in one, lists of them, and what a picture says of itself.

use async_trait::async_trait;
use atelier_proto::value::{Map, Value};
use image::{Rgba, RgbaImage, imageops};

use super::{
    Job,
    convolve::{blur, box_blur},
    decode, edit, encode,
    pixels::{curve, facts, from_fn, over, part, parts, pixel, sized},
    size::scaled,
};
use crate::{
    node::{Context, Executor, NodeError},
    nodes::{
        args::{Args, map},
        code::{Plain, Types, factory},
        media_io::{Params, need, read, work},
    },
};

/// All types of this part.
pub(super) fn types() -> Types {
    vec![
        ("nodetool.image.BatchToList", factory(Plain(batch_to_list))),
        ("nodetool.image.Blur", edit(blurred)),
        ("nodetool.image.Compositor", edit(compositor)),
        ("nodetool.image.GetMetadata", factory(Metadata)),
        ("nodetool.image.ImagesToList", factory(Plain(images_to_list))),
        ("nodetool.image.Levels", edit(levels)),
        ("nodetool.image.Painter", factory(Painter)),
        ("nodetool.image.Paste", edit(paste)),
    ]
}

/// A list stays one; a single picture is a list of one.
fn batch_to_list(args: Args<'_>) -> Result<Value, NodeError> {
    Ok(Value::list(args.list("batch")))
}
/// All pictures of all inputs, in the order in which they are connected.
fn images_to_list(args: Args<'_>) -> Result<Value, NodeError> {
    let mut images = Vec::new();
    for (name, _) in args.others(&[]) {
        images.extend(args.list(name).into_iter().filter(|value| !value.is_null()));
    }
    Ok(Value::list(images))
}

#[derive(Clone, Copy)]
struct Metadata;
#[async_trait]
impl Executor for Metadata {
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let bytes = need(ctx, &inputs, "image").await?;
        work(ctx, move |_| {
            let facts = facts("image", &bytes)?;
            Ok(map([
                ("format", facts.format.into()),
                ("mode", facts.mode.into()),
                ("width", i64::from(facts.width).into()),
                ("height", i64::from(facts.height).into()),
                ("channels", facts.channels.into()),
            ]))
        })
        .await
    }
}

/// Puts a picture on another one, at a place.
fn paste(job: &Job) -> Result<RgbaImage, NodeError> {
    let (left, top) = (job.params.int("left")?, job.params.int("top")?);
    let mut image = job.image()?.clone();
    put(&mut image, job.picture("paste")?, (left, top), 1.0, "normal", job)?;
    Ok(image)
}
fn put(
    below: &mut RgbaImage,
    above: &RgbaImage,
    (left, top): (i64, i64),
    opacity: f32,
    mode: &str,
    job: &Job,
) -> Result<(), NodeError> {
    for (y, row) in (0_i64..).zip(above.rows()) {
        job.stop.check()?;
        let Some(at_y) = u32::try_from(top.saturating_add(y))
            .ok()
            .filter(|y| *y < below.height())
        else {
            continue;
        };
        for (x, ink) in (0_i64..).zip(row) {
            let Some(at_x) = u32::try_from(left.saturating_add(x))
                .ok()
                .filter(|x| *x < below.width())
            else {
                continue;
            };
            let (under, [r, g, b, alpha]) = (parts(*below.get_pixel(at_x, at_y)), parts(*ink));
            let [ur, ug, ub, under_alpha] = under;
            // A mode is felt as far as there is something below.
            let mix = |under: f32, over: f32| over + (blended(mode, under, over) - over) * under_alpha;
            let ink = [mix(ur, r), mix(ug, g), mix(ub, b), alpha * opacity];
            below.put_pixel(at_x, at_y, pixel(over(under, ink)));
        }
    }
    Ok(())
}
fn blended(mode: &str, under: f32, over: f32) -> f32 {
    let screen = |a: f32, b: f32| 1.0 - (1.0 - a) * (1.0 - b);
    match mode {
        "multiply" => under * over,
        "screen" => screen(under, over),
        "overlay" if under < 0.5 => 2.0 * under * over,
        "overlay" => screen(2.0 * under - 1.0, over),
        "darken" => under.min(over),
        "lighten" => under.max(over),
        "add" | "lighter" => (under + over).min(1.0),
        "difference" => (under - over).abs(),
        _ => over,
    }
}
/// Pictures over each other, the first one at the bottom. `layers` may say more of each: `input` (or `id`, `name`) names the
/// picture's input; `x`, `y`, `scale`, `opacity`, `blend_mode` and `visible` place it.
fn compositor(job: &Job) -> Result<RgbaImage, NodeError> {
    let layers = job.params.args().list("layers");
    let plain = Map::new();
    let named = |layer: &Map| {
        ["input", "handle", "id", "name"].iter().find_map(|key| {
            job.pictures
                .get_full(Args(layer).text(key).as_str())
                .map(|(at, _, _)| at)
        })
    };
    let mut order: Vec<(&RgbaImage, &Map)> = Vec::new();
    let mut placed = Vec::new();
    for layer in layers.iter().filter_map(Value::as_map) {
        if let Some((_, picture)) = named(layer).and_then(|at| {
            placed.push(at);
            job.pictures.get_index(at)
        }) {
            order.push((picture, layer));
        }
    }
    let rest = job
        .pictures
        .values()
        .enumerate()
        .filter(|(at, _)| !placed.contains(at));
    let mut all: Vec<(&RgbaImage, &Map)> = rest.map(|(_, picture)| (picture, &plain)).collect();
    all.extend(order);
    let first = all
        .first()
        .map(|(picture, _)| picture.dimensions())
        .unwrap_or_default();
    let side = |name: &str, own: u32| {
        job.params
            .size(name)
            .map(|side| if side == 0 { own } else { side })
    };
    let (width, height) = sized(
        "canvas_width",
        side("canvas_width", first.0)?,
        side("canvas_height", first.1)?,
    )?;
    let mut canvas = RgbaImage::new(width, height);
    for (picture, layer) in all {
        let args = Args(layer);
        if !args.flag("visible", true) {
            continue;
        }
        #[expect(clippy::cast_possible_truncation, reason = "parts of 1 and sizes")]
        let (opacity, scale) = (
            args.number("opacity", 1.0)? as f32,
            args.number("scale", 1.0)? as f32,
        );
        #[expect(
            clippy::cast_possible_truncation,
            reason = "places far outside are outside either way"
        )]
        let at = (args.number("x", 0.0)? as i64, args.number("y", 0.0)? as i64);
        let mode = args.text("blend_mode");
        let opacity = opacity.clamp(0.0, 1.0);
        if (scale - 1.0).abs() > f32::EPSILON {
            let side = |own: u32| super::pixels::real(own) * scale.clamp(0.001, 100.0);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "clamped; too many are refused"
            )]
            let (width, height) = (
                side(picture.width()).max(1.0) as u32,
                side(picture.height()).max(1.0) as u32,
            );
            put(
                &mut canvas,
                &scaled("layers", picture, width, height)?,
                at,
                opacity,
                &mode,
                job,
            )?;
        } else {
            put(&mut canvas, picture, at, opacity, &mode, job)?;
        }
    }
    Ok(canvas)
}
/// Gaussian, even, or along a line from left to right; the size is a radius in pixels.
fn blurred(job: &Job) -> Result<RgbaImage, NodeError> {
    let size = job.params.size("size")?;
    let (image, stop) = (job.image()?, &job.stop);
    match job.params.choice("blur_type")?.as_str() {
        "box" => box_blur(image, stop, 2 * size + 1, 2 * size + 1),
        "motion" => box_blur(image, stop, 2 * size + 1, 1),
        _ => blur(image, stop, super::pixels::real(size) / 2.0),
    }
}
/// Black point, white point and gamma of each channel.
fn levels(job: &Job) -> Result<RgbaImage, NodeError> {
    let mut settings = [(0.0, 1.0, 1.0); 3];
    for (setting, channel) in settings.iter_mut().zip(["r", "g", "b"]) {
        let of = |what: &str| job.f(&format!("{channel}_{what}"));
        *setting = (of("black")? / 255.0, of("white")? / 255.0, of("gamma")?);
    }
    curve(job.image()?, &job.stop, |channel, value| {
        let (black, white, gamma) = settings.get(channel).copied().unwrap_or((0.0, 1.0, 1.0));
        let span = (white - black).max(1.0 / 255.0);
        ((value - black) / span).clamp(0.0, 1.0).powf(1.0 / gamma)
    })
}
/// A picture and the mask that somebody painted on it; without one, black.
#[derive(Clone, Copy)]
struct Painter;
#[async_trait]
impl Executor for Painter {
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let args = Args(&inputs);
        let below = read(ctx, "image", &args.value("image")).await?;
        let painted = args.text("mask_data");
        let painted = match painted.as_str() {
            "" => None,
            text if text.starts_with("data:") => read(ctx, "mask_data", &text.into()).await?,
            text => read(ctx, "mask_data", &format!("data:image/png;base64,{text}").into()).await?,
        };
        let params = Params::new(ctx, inputs);
        work(ctx, move |stop| {
            let below = below.map(|bytes| decode("image", &bytes)).transpose()?;
            let (width, height) = match &below {
                Some(below) => below.dimensions(),
                None => sized(
                    "canvas_width",
                    params.size("canvas_width")?,
                    params.size("canvas_height")?,
                )?,
            };
            let black = Rgba([0, 0, 0, u8::MAX]);
            let mask = match painted {
                Some(bytes) => {
                    let painted = decode("mask_data", &bytes)?;
                    sized("mask_data", painted.width(), height)?;
                    let painted = imageops::resize(&painted, width, height, imageops::FilterType::Triangle);
                    from_fn((width, height), stop, |x, y| {
                        let Rgba([red, green, blue, alpha]) = *painted.get_pixel(x, y);
                        let value = super::pixels::byte(part(red.max(green).max(blue)) * part(alpha));
                        Rgba([value, value, value, u8::MAX])
                    })?
                }
                None => RgbaImage::from_pixel(width, height, black),
            };
            let below = below.unwrap_or_else(|| RgbaImage::from_pixel(width, height, Rgba([u8::MAX; 4])));
            Ok(map([("mask", encode(&mask)?), ("image", encode(&below)?)]))
        })
        .await
    }
}

//! Light and shadow: overlays, glows, outlines.

use image::RgbaImage;

use super::{
    Job,
    convolve::blur,
    edit,
    matte::fitted,
    pixels::{from_fn, lerp, luma, over, parts, pixel, real, smooth},
    warp::{Edge, sample},
};
use crate::{node::NodeError, nodes::code::Types};

/// All types of this part.
pub(super) fn types() -> Types {
    vec![
        ("lib.image.effects.Add", edit(add)),
        ("lib.image.effects.ColorOverlay", edit(color_overlay)),
        ("lib.image.effects.DropShadow", edit(drop_shadow)),
        ("lib.image.effects.Glow", edit(glow)),
        ("lib.image.effects.Outline", edit(outline)),
    ]
}

/// Adds the light of another picture.
fn add(job: &Job) -> Result<RgbaImage, NodeError> {
    let gain = job.f("gain")?;
    let image = job.image()?;
    let light = fitted("over", job.picture("over")?, image.dimensions())?;
    from_fn(image.dimensions(), &job.stop, |x, y| {
        let ([r, g, b, alpha], [lr, lg, lb, la]) =
            (parts(*image.get_pixel(x, y)), parts(*light.get_pixel(x, y)));
        let gain = gain * la;
        pixel([
            r + lr * gain,
            g + lg * gain,
            b + lb * gain,
            alpha.max(la.min(gain)),
        ])
    })
}
fn color_overlay(job: &Job) -> Result<RgbaImage, NodeError> {
    let (color, amount) = (job.color("color")?, job.f("amount")?);
    let image = job.image()?;
    let amount = amount * color[3];
    from_fn(image.dimensions(), &job.stop, |x, y| {
        let [red, green, blue, alpha] = parts(*image.get_pixel(x, y));
        pixel([
            lerp(red, color[0], amount),
            lerp(green, color[1], amount),
            lerp(blue, color[2], amount),
            alpha,
        ])
    })
}
/// A picture of one colour in the shape of another's alpha.
fn shape(job: &Job, image: &RgbaImage, color: [f32; 4]) -> Result<RgbaImage, NodeError> {
    from_fn(image.dimensions(), &job.stop, |x, y| {
        let [_, _, _, alpha] = parts(*image.get_pixel(x, y));
        pixel([color[0], color[1], color[2], alpha * color[3]])
    })
}
/// A blurred copy of the shape below it; offsets are parts of the size.
fn drop_shadow(job: &Job) -> Result<RgbaImage, NodeError> {
    let (color, intensity, radius) = (job.color("color")?, job.f("intensity")?, job.f("radius")?);
    let image = job.image()?;
    let (width, height) = image.dimensions();
    let (dx, dy) = (
        job.f("offset_x")? * real(width),
        job.f("offset_y")? * real(height),
    );
    let shadow = blur(&shape(job, image, color)?, &job.stop, radius / 2.0)?;
    from_fn((width, height), &job.stop, |x, y| {
        let [red, green, blue, alpha] = sample(&shadow, real(x) - dx, real(y) - dy, Edge::Empty);
        let below = [red, green, blue, (alpha * intensity).min(1.0)];
        pixel(over(below, parts(*image.get_pixel(x, y))))
    })
}
/// Adds a blur of the bright places.
fn glow(job: &Job) -> Result<RgbaImage, NodeError> {
    let (threshold, softness) = (job.f("threshold")?, job.f("softness")?);
    let (radius, intensity) = (job.f("radius")?, job.f("intensity")?);
    let image = job.image()?;
    let bright = from_fn(image.dimensions(), &job.stop, |x, y| {
        let [red, green, blue, alpha] = parts(*image.get_pixel(x, y));
        let kept = smooth(
            threshold - softness,
            threshold + softness,
            luma([red, green, blue]),
        );
        pixel([red * kept, green * kept, blue * kept, alpha])
    })?;
    let bright = blur(&bright, &job.stop, radius / 2.0)?;
    from_fn(image.dimensions(), &job.stop, |x, y| {
        let ([r, g, b, alpha], [lr, lg, lb, la]) =
            (parts(*image.get_pixel(x, y)), parts(*bright.get_pixel(x, y)));
        let gain = intensity * la;
        pixel([r + lr * gain, g + lg * gain, b + lb * gain, alpha])
    })
}
/// A line around what is seen, outside of it.
fn outline(job: &Job) -> Result<RgbaImage, NodeError> {
    let (color, width, threshold) = (job.color("color")?, job.f("width")?, job.f("threshold")?);
    let image = job.image()?;
    let size = image.dimensions();
    let seen = |x: u32, y: u32| parts(*image.get_pixel(x, y))[3] > threshold;
    let near = distances(job, size, seen)?;
    from_fn(size, &job.stop, |x, y| {
        let here = parts(*image.get_pixel(x, y));
        let away = near.get((y * size.0 + x) as usize).copied().unwrap_or(f32::MAX);
        // Half a pixel of softness at the outer end.
        let line = (width + 0.5 - away).clamp(0.0, 1.0);
        let line = if width > 0.0 {
            [color[0], color[1], color[2], color[3] * line]
        } else {
            [0.0; 4]
        };
        pixel(over(line, here))
    })
}
/// How far each pixel is from the nearest one that counts, in pixels and about right: two passes of steps of 1 and √2.
fn distances(
    job: &Job,
    (width, height): (u32, u32),
    counts: impl Fn(u32, u32) -> bool,
) -> Result<Vec<f32>, NodeError> {
    const FAR: f32 = 1.0e9;
    let diagonal = std::f32::consts::SQRT_2;
    let mut away = Vec::with_capacity(width as usize * height as usize);
    for y in 0..height {
        for x in 0..width {
            away.push(if counts(x, y) { 0.0 } else { FAR });
        }
    }
    let at = |x: u32, y: u32| (y * width + x) as usize;
    for y in 0..height {
        job.stop.check()?;
        for x in 0..width {
            let mut least = away[at(x, y)];
            if x > 0 {
                least = least.min(away[at(x - 1, y)] + 1.0);
            }
            if y > 0 {
                least = least.min(away[at(x, y - 1)] + 1.0);
                if x > 0 {
                    least = least.min(away[at(x - 1, y - 1)] + diagonal);
                }
                if x + 1 < width {
                    least = least.min(away[at(x + 1, y - 1)] + diagonal);
                }
            }
            away[at(x, y)] = least;
        }
    }
    for y in (0..height).rev() {
        job.stop.check()?;
        for x in (0..width).rev() {
            let mut least = away[at(x, y)];
            if x + 1 < width {
                least = least.min(away[at(x + 1, y)] + 1.0);
            }
            if y + 1 < height {
                least = least.min(away[at(x, y + 1)] + 1.0);
                if x > 0 {
                    least = least.min(away[at(x - 1, y + 1)] + diagonal);
                }
                if x + 1 < width {
                    least = least.min(away[at(x + 1, y + 1)] + diagonal);
                }
            }
            away[at(x, y)] = least;
        }
    }
    Ok(away)
}

//! Whole looks: films and dark corners.

use image::RgbaImage;

use super::{
    Job,
    color::{balanced, saturated},
    edit,
    grading::{mixed, toned},
    masked,
    pixels::{each, from_fn, lerp, luma, parts, pixel, real, smooth},
};
use crate::{node::NodeError, nodes::code::Types};

/// All types of this part.
pub(super) fn types() -> Types {
    vec![
        ("lib.image.color_grading.FilmLook", edit(film_look)),
        ("lib.image.color_grading.Vignette", edit(grading_vignette)),
        ("lib.image.filter.Vignette", masked(filter_vignette)),
    ]
}

const TEAL: [f32; 3] = [0.0, 0.8, 0.8];
const ORANGE: [f32; 3] = [1.0, 0.6, 0.2];
const GREEN: [f32; 3] = [0.1, 1.0, 0.3];

fn film_look(job: &Job) -> Result<RgbaImage, NodeError> {
    let (preset, intensity) = (job.params.choice("preset")?, job.f("intensity")?);
    let look = look(&preset);
    each(job.image()?, &job.stop, |color| {
        // Beyond 1 the look is exaggerated.
        mixed(color, look(color).map(|value| value.clamp(0.0, 1.0)), intensity)
    })
}
fn contrast(color: [f32; 3], amount: f32) -> [f32; 3] {
    color.map(|value| (value - 0.5) * amount + 0.5)
}
/// Blacks that are not black and whites that are not white.
fn faded(color: [f32; 3], low: f32, high: f32) -> [f32; 3] {
    color.map(|value| lerp(low, high, value))
}
fn look(preset: &str) -> fn([f32; 3]) -> [f32; 3] {
    match preset {
        "blockbuster" => |color| {
            contrast(
                saturated(toned(color, (TEAL, 0.5), (ORANGE, 0.4), 0.0), 1.15),
                1.2,
            )
        },
        "noir" => |color| contrast(saturated(color, 0.0), 1.4),
        "vintage" => |color| faded(saturated(balanced(color, 0.35, 0.1), 0.7), 0.08, 0.94),
        "cold_blue" => |color| saturated(balanced(color, -0.5, 0.0), 0.85),
        "warm_sunset" => |color| saturated(balanced(color, 0.5, 0.15), 1.15),
        "matrix" => |color| {
            contrast(
                toned(saturated(color, 0.6), (GREEN, 0.6), (GREEN, 0.35), 0.0),
                1.1,
            )
        },
        "bleach_bypass" => |color| contrast(saturated(color, 0.4), 1.35),
        "cross_process" => {
            |[red, green, blue]| contrast([red * 1.1 - 0.02, green * 1.05, 0.15 + blue * 0.75], 1.15)
        }
        "faded_film" => |color| faded(saturated(color, 0.75), 0.12, 0.9),
        _ => |color| toned(color, (TEAL, 0.6), (ORANGE, 0.5), 0.0),
    }
}

/// How far a pixel is from the middle: 0 there, 1 in the middle of a side, more in the corners.
fn away((width, height): (u32, u32), x: u32, y: u32) -> f32 {
    let across = (real(x) + 0.5) / real(width) * 2.0 - 1.0;
    let down = (real(y) + 0.5) / real(height) * 2.0 - 1.0;
    across.hypot(down)
}
fn darkened(job: &Job, amount: f32, shade: impl Fn(f32) -> f32) -> Result<RgbaImage, NodeError> {
    let image = job.image()?;
    let size = image.dimensions();
    from_fn(size, &job.stop, |x, y| {
        let [red, green, blue, alpha] = parts(*image.get_pixel(x, y));
        let strength = amount * shade(away(size, x, y));
        // Negative amounts lighten the corners.
        let light = |value: f32| {
            if strength >= 0.0 {
                value * (1.0 - strength)
            } else {
                lerp(value, 1.0, -strength)
            }
        };
        pixel([light(red), light(green), light(blue), alpha])
    })
}
fn grading_vignette(job: &Job) -> Result<RgbaImage, NodeError> {
    let (amount, midpoint, feather) = (job.f("amount")?, job.f("midpoint")?, job.f("feather")?);
    let start = midpoint * std::f32::consts::SQRT_2;
    darkened(job, amount, |away| {
        smooth(start * (1.0 - feather), start * (1.0 + feather), away)
    })
}
fn filter_vignette(job: &Job) -> Result<RgbaImage, NodeError> {
    let (intensity, radius, softness) = (job.f("intensity")?, job.f("radius")?, job.f("softness")?);
    darkened(job, intensity, |away| {
        smooth(radius - softness / 2.0, radius + softness / 2.0, away)
    })
}
/// A grey picture's value, in parts.
pub(super) fn grey([red, green, blue, _]: [f32; 4]) -> f32 {
    luma([red, green, blue])
}

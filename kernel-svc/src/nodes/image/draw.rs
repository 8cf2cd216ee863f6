//! Pictures from nothing: colours, gradients, patterns and noise.

use image::{Rgba, RgbaImage};

use super::{
    Job, edit,
    pixels::{from_fn, lerp, pixel, real, sized},
};
use crate::{node::NodeError, nodes::code::Types};

/// All types of this part.
pub(super) fn types() -> Types {
    vec![
        ("lib.image.draw.AngularGradient", edit(angular_gradient)),
        ("lib.image.draw.Background", edit(background)),
        ("lib.image.draw.Checkerboard", edit(checkerboard)),
        ("lib.image.draw.DiamondGradient", edit(diamond_gradient)),
        ("lib.image.draw.GaussianNoise", edit(gaussian_noise)),
        ("lib.image.draw.LinearGradient", edit(linear_gradient)),
        ("lib.image.draw.RadialGradient", edit(radial_gradient)),
    ]
}

fn size(job: &Job) -> Result<(u32, u32), NodeError> {
    sized("width", job.params.size("width")?, job.params.size("height")?)
}
/// A colour between two.
fn mix(from: [f32; 4], to: [f32; 4], part: f32) -> Rgba<u8> {
    let part = part.clamp(0.0, 1.0);
    pixel([
        lerp(from[0], to[0], part),
        lerp(from[1], to[1], part),
        lerp(from[2], to[2], part),
        lerp(from[3], to[3], part),
    ])
}
fn background(job: &Job) -> Result<RgbaImage, NodeError> {
    let (width, height) = size(job)?;
    Ok(RgbaImage::from_pixel(width, height, pixel(job.color("color")?)))
}
fn checkerboard(job: &Job) -> Result<RgbaImage, NodeError> {
    let colors = (pixel(job.color("color_a")?), pixel(job.color("color_b")?));
    let cell = job.params.size("cell_size")?.max(1);
    from_fn(size(job)?, &job.stop, |x, y| {
        if (x / cell + y / cell) % 2 == 0 {
            colors.0
        } else {
            colors.1
        }
    })
}
/// A gradient by place: parts of the size, from -1 at the left and the top to 1.
fn gradient(job: &Job, colors: (&str, &str), f: impl Fn(f32, f32) -> f32) -> Result<RgbaImage, NodeError> {
    let (from, to) = (job.color(colors.0)?, job.color(colors.1)?);
    let (width, height) = size(job)?;
    from_fn((width, height), &job.stop, |x, y| {
        let (across, down) = ((real(x) + 0.5) / real(width), (real(y) + 0.5) / real(height));
        mix(from, to, f(across * 2.0 - 1.0, down * 2.0 - 1.0))
    })
}
/// From left to right, turned clockwise; at the midpoint both colours are equal.
fn linear_gradient(job: &Job) -> Result<RgbaImage, NodeError> {
    let (angle, midpoint) = (job.f("angle")?.to_radians(), job.f("midpoint")?);
    let (cos, sin) = (angle.cos(), angle.sin());
    let reach = cos.abs() + sin.abs();
    gradient(job, ("color_a", "color_b"), |x, y| {
        let part = ((x * cos + y * sin) / reach + 1.0) / 2.0;
        if midpoint <= 0.0 {
            1.0
        } else if midpoint >= 1.0 {
            0.0
        } else if part < midpoint {
            0.5 * part / midpoint
        } else {
            0.5 + 0.5 * (part - midpoint) / (1.0 - midpoint)
        }
    })
}
/// A radius is a part of the size: 0.5 reaches the sides.
fn within(away: f32, radius: f32) -> f32 {
    if radius <= 0.0 { 1.0 } else { away / 2.0 / radius }
}
fn radial_gradient(job: &Job) -> Result<RgbaImage, NodeError> {
    let radius = job.f("radius")?;
    gradient(job, ("color_inner", "color_outer"), |x, y| {
        within(x.hypot(y), radius)
    })
}
fn diamond_gradient(job: &Job) -> Result<RgbaImage, NodeError> {
    let radius = job.f("radius")?;
    gradient(job, ("color_inner", "color_outer"), |x, y| {
        within(x.abs() + y.abs(), radius)
    })
}
/// Around the middle, clockwise from the right.
fn angular_gradient(job: &Job) -> Result<RgbaImage, NodeError> {
    let rotation = job.f("rotation")? / 360.0;
    gradient(job, ("color_a", "color_b"), |x, y| {
        (y.atan2(x) / std::f32::consts::TAU - rotation).rem_euclid(1.0)
    })
}

/// Numbers that look random and are the same each time (SplitMix64).
pub(in crate::nodes) struct Noise(pub u64);
impl Noise {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }
    /// Above 0 and at most 1.
    #[expect(clippy::cast_precision_loss, reason = "24 bits fit")]
    pub fn part(&mut self) -> f32 {
        ((self.bits() >> 40) as f32 + 1.0) / 16_777_216.0
    }
    /// Of mean 0 and deviation 1.
    fn normal(&mut self) -> f32 {
        let (strength, turn) = (self.part(), self.part());
        (-2.0 * strength.ln()).sqrt() * (std::f32::consts::TAU * turn).cos()
    }
}
/// Noise around a mean, in parts of a channel.
fn gaussian_noise(job: &Job) -> Result<RgbaImage, NodeError> {
    let (mean, deviation) = (job.f("mean")?, job.f("stddev")?);
    from_fn(size(job)?, &job.stop, |x, y| {
        let mut noise = Noise((u64::from(y) << 32) | u64::from(x));
        let mut value = || mean + deviation * noise.normal();
        pixel([value(), value(), value(), 1.0])
    })
}

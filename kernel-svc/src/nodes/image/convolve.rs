//! Small kernels, blurs and searches around a pixel. The border is repeated outwards.

use image::{Rgba, RgbaImage};

use super::pixels::{from_fn, part, pixel, real};
use crate::{node::NodeError, nodes::media_io::Stop};

/// A place within the picture, for one that may be outside.
fn inside(place: i64, side: u32) -> u32 {
    u32::try_from(place.clamp(0, i64::from(side) - 1)).unwrap_or_default()
}
/// The pixel at a place, or the nearest one.
pub(super) fn near(image: &RgbaImage, x: i64, y: i64) -> &Rgba<u8> {
    image.get_pixel(inside(x, image.width()), inside(y, image.height()))
}
/// A kernel of 3 by 3 or 5 by 5 on the colours; alpha stays. What comes out is scaled and shifted (in parts of 1).
pub(super) fn kernel<const N: usize>(
    image: &RgbaImage,
    stop: &Stop,
    weights: [[f32; N]; N],
    scale: f32,
    offset: f32,
) -> Result<RgbaImage, NodeError> {
    let half = i64::try_from(N / 2).unwrap_or_default();
    from_fn(image.dimensions(), stop, |x, y| {
        let mut sums = [0.0_f32; 3];
        for (dy, row) in (-half..).zip(weights) {
            for (dx, weight) in (-half..).zip(row) {
                let Rgba([red, green, blue, _]) = *near(image, i64::from(x) + dx, i64::from(y) + dy);
                sums = [
                    sums[0] + weight * part(red),
                    sums[1] + weight * part(green),
                    sums[2] + weight * part(blue),
                ];
            }
        }
        let [red, green, blue] = sums.map(|sum| sum / scale + offset);
        pixel([red, green, blue, part(image.get_pixel(x, y).0[3])])
    })
}

/// A picture as numbers with colours that are multiplied by alpha, so that hidden colours do not bleed. Numbers of 16 bits:
/// finer than what goes in and out, and half of what single precision takes.
struct Plane {
    width: usize,
    height: usize,
    pixels: Vec<[u16; 4]>,
}
const FULL: f32 = 65_535.0;
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
fn fine(part: f32) -> u16 {
    (part.clamp(0.0, 1.0) * FULL).round() as u16
}
impl Plane {
    fn new(image: &RgbaImage) -> Self {
        let pixels = image.pixels().map(|pixel| {
            let [red, green, blue, alpha] = pixel.0.map(part);
            [red * alpha, green * alpha, blue * alpha, alpha].map(fine)
        });
        Self {
            width: image.width() as usize,
            height: image.height() as usize,
            pixels: pixels.collect(),
        }
    }
    fn image(&self, stop: &Stop, (width, height): (u32, u32)) -> Result<RgbaImage, NodeError> {
        from_fn((width, height), stop, |x, y| {
            let at = y as usize * self.width + x as usize;
            let found = self.pixels.get(at).copied().unwrap_or_default();
            let [red, green, blue, alpha] = found.map(|value| f32::from(value) / FULL);
            if alpha <= 0.0 {
                return Rgba([0; 4]);
            }
            pixel([red / alpha, green / alpha, blue / alpha, alpha])
        })
    }
    /// Weights along one direction.
    fn along(&self, stop: &Stop, weights: &[f32], (dx, dy): (usize, usize)) -> Result<Self, NodeError> {
        let half = weights.len() / 2;
        let mut pixels = Vec::with_capacity(self.pixels.len());
        for y in 0..self.height {
            stop.check()?;
            for x in 0..self.width {
                let mut sum = [0.0_f32; 4];
                for (step, weight) in weights.iter().enumerate() {
                    let column = (x + dx * step).saturating_sub(dx * half).min(self.width - 1);
                    let row = (y + dy * step).saturating_sub(dy * half).min(self.height - 1);
                    let at = self
                        .pixels
                        .get(row * self.width + column)
                        .copied()
                        .unwrap_or_default();
                    for (sum, value) in sum.iter_mut().zip(at) {
                        *sum += weight * f32::from(value);
                    }
                }
                pixels.push(sum.map(|sum| fine(sum / FULL)));
            }
        }
        Ok(Self { pixels, ..*self })
    }
}
/// Bell-shaped weights that add up to 1.
fn bell(sigma: f32) -> Vec<f32> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "bounded by the caller"
    )]
    let half = (sigma * 3.0).ceil().clamp(1.0, 400.0) as u32;
    let weight = |step: u32| {
        let away = (real(step) - real(half)) / sigma;
        (-0.5 * away * away).exp()
    };
    let weights: Vec<f32> = (0..=2 * half).map(weight).collect();
    let sum: f32 = weights.iter().sum();
    weights.iter().map(|weight| weight / sum).collect()
}
/// A Gaussian blur; nothing happens at a sigma of nothing.
pub(super) fn blur(image: &RgbaImage, stop: &Stop, sigma: f32) -> Result<RgbaImage, NodeError> {
    if sigma < 0.05 {
        return Ok(image.clone());
    }
    let weights = bell(sigma);
    both_ways(image, stop, &weights, &weights)
}
/// Equal weights; an empty one does nothing.
pub(super) fn box_blur(
    image: &RgbaImage,
    stop: &Stop,
    across: u32,
    down: u32,
) -> Result<RgbaImage, NodeError> {
    let flat = |size: u32| vec![1.0 / real(size.max(1)); size.max(1) as usize];
    both_ways(image, stop, &flat(across), &flat(down))
}
fn both_ways(image: &RgbaImage, stop: &Stop, across: &[f32], down: &[f32]) -> Result<RgbaImage, NodeError> {
    let plane = Plane::new(image);
    let plane = plane.along(stop, across, (1, 0))?;
    let plane = plane.along(stop, down, (0, 1))?;
    plane.image(stop, image.dimensions())
}
/// The value of a rank among the pixels around, channel by channel; alpha stays.
pub(super) fn rank(image: &RgbaImage, stop: &Stop, size: u32, rank: usize) -> Result<RgbaImage, NodeError> {
    let half = i64::from(size / 2);
    let (width, height) = image.dimensions();
    let mut out = image.clone();
    for y in 0..height {
        stop.check()?;
        for x in 0..width {
            // A count of each value: independent of how many pixels there are to sort.
            let mut counts = [[0_usize; 256]; 3];
            for dy in -half..=half {
                for dx in -half..=half {
                    let around = near(image, i64::from(x) + dx, i64::from(y) + dy);
                    for (counts, value) in counts.iter_mut().zip(around.0) {
                        counts[usize::from(value)] += 1;
                    }
                }
            }
            for (channel, counts) in counts.iter().enumerate() {
                let mut left = rank;
                let found = (0..=u8::MAX).zip(counts).find(|(_, count)| {
                    let here = left < **count;
                    left = left.saturating_sub(**count);
                    here
                });
                if let Some((value, _)) = found {
                    out.get_pixel_mut(x, y).0[channel] = value;
                }
            }
        }
    }
    Ok(out)
}

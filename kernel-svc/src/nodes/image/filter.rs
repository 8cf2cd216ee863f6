//! Filters: sharper, softer, fewer colours, edges.

use image::{Rgba, RgbaImage};

use super::{
    Job,
    convolve::{blur, kernel, near},
    edit, masked,
    pixels::{curve, from_fn, lerp, luma, part, parts, pixel, real, sized, smooth},
};
use crate::{
    node::NodeError,
    nodes::{
        code::Types,
        media_io::{Stop, value_fault},
    },
};

/// All types of this part.
pub(super) fn types() -> Types {
    vec![
        ("lib.image.filter.Canny", edit(canny)),
        ("lib.image.filter.Contour", edit(contour)),
        ("lib.image.filter.ConvertToGrayscale", edit(grayscale)),
        ("lib.image.filter.Emboss", edit(emboss)),
        ("lib.image.filter.Expand", edit(expand)),
        ("lib.image.filter.FindEdges", edit(find_edges)),
        ("lib.image.filter.GaussianBlur", edit(gaussian_blur)),
        ("lib.image.filter.Invert", edit(invert)),
        ("lib.image.filter.Pixelate", masked(pixelate)),
        ("lib.image.filter.Posterize", edit(posterize)),
        ("lib.image.filter.Smooth", edit(smoothed)),
        ("lib.image.filter.Solarize", edit(solarize)),
        ("lib.image.filter.Threshold", edit(threshold)),
        ("lib.image.filter.UnsharpMask", masked(unsharp_mask)),
    ]
}

const AROUND: [[f32; 3]; 3] = [[-1.0, -1.0, -1.0], [-1.0, 8.0, -1.0], [-1.0, -1.0, -1.0]];

fn contour(job: &Job) -> Result<RgbaImage, NodeError> {
    kernel(job.image()?, &job.stop, AROUND, 1.0, 1.0)
}
fn find_edges(job: &Job) -> Result<RgbaImage, NodeError> {
    kernel(job.image()?, &job.stop, AROUND, 1.0, 0.0)
}
fn emboss(job: &Job) -> Result<RgbaImage, NodeError> {
    let weights = [[-1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]];
    kernel(job.image()?, &job.stop, weights, 1.0, 128.0 / 255.0)
}
fn smoothed(job: &Job) -> Result<RgbaImage, NodeError> {
    let weights = [[1.0, 1.0, 1.0], [1.0, 5.0, 1.0], [1.0, 1.0, 1.0]];
    kernel(job.image()?, &job.stop, weights, 13.0, 0.0)
}
/// A grey picture, as bright as the eye sees it (Rec. 601, as is usual for photos).
pub(super) fn grey_of(image: &RgbaImage, stop: &Stop) -> Result<RgbaImage, NodeError> {
    from_fn(image.dimensions(), stop, |x, y| {
        let [red, green, blue, alpha] = parts(*image.get_pixel(x, y));
        let grey = 0.299 * red + 0.587 * green + 0.114 * blue;
        pixel([grey, grey, grey, alpha])
    })
}
fn grayscale(job: &Job) -> Result<RgbaImage, NodeError> {
    grey_of(job.image()?, &job.stop)
}
fn invert(job: &Job) -> Result<RgbaImage, NodeError> {
    curve(job.image()?, &job.stop, |_, value| 1.0 - value)
}
/// Keeps so many bits of each channel.
fn posterize(job: &Job) -> Result<RgbaImage, NodeError> {
    let bits = u32::try_from(job.params.int("bits")?).unwrap_or(8).min(8);
    let image = job.image()?;
    let mask = u8::try_from(0xff_u32 << (8 - bits) & 0xff).unwrap_or(u8::MAX);
    from_fn(image.dimensions(), &job.stop, |x, y| {
        let Rgba([red, green, blue, alpha]) = *image.get_pixel(x, y);
        Rgba([red & mask, green & mask, blue & mask, alpha])
    })
}
/// Inverts what is at least so bright.
fn solarize(job: &Job) -> Result<RgbaImage, NodeError> {
    let threshold = job.f("threshold")? / 255.0;
    curve(job.image()?, &job.stop, |_, value| {
        if value < threshold { value } else { 1.0 - value }
    })
}
/// Black below and white above, with a soft step between.
fn threshold(job: &Job) -> Result<RgbaImage, NodeError> {
    let (middle, softness) = (job.f("threshold")?, job.f("softness")?);
    let image = job.image()?;
    from_fn(image.dimensions(), &job.stop, |x, y| {
        let [red, green, blue, alpha] = parts(*image.get_pixel(x, y));
        let value = smooth(middle - softness, middle + softness, luma([red, green, blue]));
        pixel([value, value, value, alpha])
    })
}
/// The sigma that is stated, else half of the radius.
fn gaussian_blur(job: &Job) -> Result<RgbaImage, NodeError> {
    let (radius, sigma) = (job.f("radius")?, job.f("sigma")?);
    blur(
        job.image()?,
        &job.stop,
        if sigma > 0.0 { sigma } else { radius / 2.0 },
    )
}
/// Adds what a blurred copy lacks, where that is more than the threshold.
fn unsharp_mask(job: &Job) -> Result<RgbaImage, NodeError> {
    let (amount, threshold) = (job.f("amount")?, job.f("threshold")?);
    let image = job.image()?;
    let soft = blur(image, &job.stop, 1.0)?;
    from_fn(image.dimensions(), &job.stop, |x, y| {
        let (Rgba(sharp), Rgba(soft)) = (*image.get_pixel(x, y), *soft.get_pixel(x, y));
        let channel = |at: usize| {
            let (sharp, soft) = (part(sharp[at]), part(soft[at]));
            let lack = sharp - soft;
            if lack.abs() < threshold {
                sharp
            } else {
                sharp + amount * lack
            }
        };
        pixel([channel(0), channel(1), channel(2), part(sharp[3])])
    })
}
/// The mean colour of each cell.
fn pixelate(job: &Job) -> Result<RgbaImage, NodeError> {
    let cell = job.params.size("cell_size")?.max(1);
    let image = job.image()?;
    let (width, height) = image.dimensions();
    let mut out = image.clone();
    for top in (0..height).step_by(cell as usize) {
        job.stop.check()?;
        for left in (0..width).step_by(cell as usize) {
            let (right, bottom) = ((left + cell).min(width), (top + cell).min(height));
            let (mut sums, mut alphas) = ([0.0_f32; 3], 0.0_f32);
            let places = || (top..bottom).flat_map(|y| (left..right).map(move |x| (x, y)));
            for (x, y) in places() {
                let [red, green, blue, alpha] = parts(*image.get_pixel(x, y));
                sums = [
                    sums[0] + red * alpha,
                    sums[1] + green * alpha,
                    sums[2] + blue * alpha,
                ];
                alphas += alpha;
            }
            let [red, green, blue] = sums.map(|sum| if alphas > 0.0 { sum / alphas } else { 0.0 });
            let alpha = alphas / (real(right - left) * real(bottom - top));
            for (x, y) in places() {
                out.put_pixel(x, y, pixel([red, green, blue, alpha]));
            }
        }
    }
    Ok(out)
}
/// A border all around, in a grey.
fn expand(job: &Job) -> Result<RgbaImage, NodeError> {
    let (border, fill) = (job.params.size("border")?, job.f("fill")? / 255.0);
    let image = job.image()?;
    let twice = border.saturating_mul(2);
    let (width, height) = (
        image.width().saturating_add(twice),
        image.height().saturating_add(twice),
    );
    let mut out = RgbaImage::from_pixel(
        sized("border", width, height)?.0,
        height,
        pixel([fill, fill, fill, 1.0]),
    );
    image::imageops::replace(&mut out, image, i64::from(border), i64::from(border));
    Ok(out)
}

/// Edges of one pixel: a blur, gradients, only the strongest across, and weak ones only beside strong ones.
fn canny(job: &Job) -> Result<RgbaImage, NodeError> {
    let (low, high) = (job.f("low_threshold")?, job.f("high_threshold")?);
    if low > high {
        return Err(value_fault(
            "low_threshold",
            "must not be above the input `high_threshold`",
        ));
    }
    let stop = &job.stop;
    let soft = blur(&grey_of(job.image()?, stop)?, stop, 1.0)?;
    let (width, height) = soft.dimensions();
    let at = |x: i64, y: i64| f32::from(near(&soft, x, y).0[0]);
    let gradient = |x: u32, y: u32| {
        let (x, y) = (i64::from(x), i64::from(y));
        let column = |x: i64| at(x, y - 1) + 2.0 * at(x, y) + at(x, y + 1);
        let row = |y: i64| at(x - 1, y) + 2.0 * at(x, y) + at(x + 1, y);
        (column(x + 1) - column(x - 1), row(y + 1) - row(y - 1))
    };
    let mut strengths = vec![0.0_f32; width as usize * height as usize];
    for y in 0..height {
        stop.check()?;
        for x in 0..width {
            let (across, down) = gradient(x, y);
            strengths[(y * width + x) as usize] = across.hypot(down);
        }
    }
    let strength = |x: i64, y: i64| {
        let inside = (0..i64::from(width)).contains(&x) && (0..i64::from(height)).contains(&y);
        let place = usize::try_from(y * i64::from(width) + x).unwrap_or_default();
        if inside {
            strengths.get(place).copied().unwrap_or_default()
        } else {
            0.0
        }
    };
    let mut out = RgbaImage::from_pixel(width, height, Rgba([0, 0, 0, u8::MAX]));
    let (mut strong, white) = (Vec::new(), Rgba([u8::MAX; 4]));
    let ridge = |x: i64, y: i64| {
        let (across, down) = gradient(
            u32::try_from(x).unwrap_or_default(),
            u32::try_from(y).unwrap_or_default(),
        );
        let (dx, dy) = match down.atan2(across).to_degrees().rem_euclid(180.0) {
            angle if !(22.5..157.5).contains(&angle) => (1, 0),
            angle if angle < 67.5 => (1, 1),
            angle if angle < 112.5 => (0, 1),
            _ => (-1, 1),
        };
        let here = strength(x, y);
        // Of two equal ones side by side the first is kept.
        here > strength(x - dx, y - dy) && here >= strength(x + dx, y + dy)
    };
    for y in 0..height {
        stop.check()?;
        for x in 0..width {
            let (column, row) = (i64::from(x), i64::from(y));
            if strength(column, row) > high && ridge(column, row) {
                out.put_pixel(x, y, white);
                strong.push((column, row));
            }
        }
    }
    while let Some((x, y)) = strong.pop() {
        stop.check()?;
        for (dx, dy) in [
            (-1, -1),
            (0, -1),
            (1, -1),
            (-1, 0),
            (1, 0),
            (-1, 1),
            (0, 1),
            (1, 1),
        ] {
            let (x, y) = (x + dx, y + dy);
            if strength(x, y) > low
                && ridge(x, y)
                && let (Ok(column), Ok(row)) = (u32::try_from(x), u32::try_from(y))
                && out.get_pixel(column, row).0[0] == 0
            {
                out.put_pixel(column, row, white);
                strong.push((x, y));
            }
        }
    }
    Ok(out)
}
/// Between two pictures of a size, pixel by pixel.
pub(super) fn between(
    from: &RgbaImage,
    to: &RgbaImage,
    stop: &Stop,
    amount: impl Fn(u32, u32) -> f32,
) -> Result<RgbaImage, NodeError> {
    from_fn(from.dimensions(), stop, |x, y| {
        let (from, to, amount) = (
            parts(*from.get_pixel(x, y)),
            parts(*to.get_pixel(x, y)),
            amount(x, y),
        );
        let alpha = lerp(from[3], to[3], amount);
        if alpha <= 0.0 {
            return Rgba([0; 4]);
        }
        let channel = |at: usize| lerp(from[at] * from[3], to[at] * to[3], amount) / alpha;
        pixel([channel(0), channel(1), channel(2), alpha])
    })
}

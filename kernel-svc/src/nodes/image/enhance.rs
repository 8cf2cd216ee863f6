//! Enhancing: contrast by what is in the picture, and sharper details.

use image::{Rgba, RgbaImage};

use super::{
    Job,
    convolve::{kernel, rank},
    edit,
    pixels::{from_fn, lerp, luma, parts, pixel, real},
};
use crate::{
    node::NodeError,
    nodes::{code::Types, media_io::value_fault},
};

/// All types of this part.
pub(super) fn types() -> Types {
    vec![
        ("lib.image.enhance.AdaptiveContrast", edit(adaptive_contrast)),
        ("lib.image.enhance.AutoContrast", edit(auto_contrast)),
        ("lib.image.enhance.Detail", edit(detail)),
        ("lib.image.enhance.EdgeEnhance", edit(edge_enhance)),
        ("lib.image.enhance.Equalize", edit(equalize)),
        ("lib.image.enhance.RankFilter", edit(rank_filter)),
    ]
}

/// How often each value occurs, by channel; pixels that nobody sees do not count.
type Counts = [[u64; 256]; 3];
fn counts<'a>(pixels: impl Iterator<Item = &'a Rgba<u8>>) -> Counts {
    let mut counts = [[0; 256]; 3];
    for Rgba([red, green, blue, alpha]) in pixels {
        if *alpha > 0 {
            for (counts, value) in counts.iter_mut().zip([red, green, blue]) {
                counts[usize::from(*value)] += 1;
            }
        }
    }
    counts
}
/// A table by channel, applied.
fn mapped(job: &Job, image: &RgbaImage, tables: &[[u8; 256]; 3]) -> Result<RgbaImage, NodeError> {
    from_fn(image.dimensions(), &job.stop, |x, y| {
        let Rgba([red, green, blue, alpha]) = *image.get_pixel(x, y);
        Rgba([
            tables[0][usize::from(red)],
            tables[1][usize::from(green)],
            tables[2][usize::from(blue)],
            alpha,
        ])
    })
}
fn identity() -> [u8; 256] {
    let mut table = [0; 256];
    for (value, place) in (0..=u8::MAX).zip(&mut table) {
        *place = value;
    }
    table
}
fn as_byte(value: u64) -> u8 {
    u8::try_from(value).unwrap_or(u8::MAX)
}
/// The first value up to which more than so many were counted.
fn reached(mut values: impl Iterator<Item = (u8, u64)>, cut: u64) -> Option<u8> {
    let mut seen = 0;
    let found = values.find(|(_, count)| {
        seen += count;
        seen > cut
    });
    found.map(|(value, _)| value)
}
/// Each channel stretched to all values, without so many percent at both ends.
fn auto_contrast(job: &Job) -> Result<RgbaImage, NodeError> {
    let cutoff = u64::try_from(job.params.int("cutoff")?).unwrap_or_default();
    let image = job.image()?;
    let tables = counts(image.pixels()).map(|counts| {
        let total: u64 = counts.iter().sum();
        let cut = total * cutoff / 100;
        let low = reached((0..=u8::MAX).zip(counts), cut);
        let high = reached((0..=u8::MAX).zip(counts).rev(), cut);
        let mut table = identity();
        if let (Some(low), Some(high)) = (low, high)
            && high > low
        {
            let span = u64::from(high - low);
            for (value, place) in (0..=u8::MAX).zip(&mut table) {
                *place = as_byte((u64::from(value.saturating_sub(low)) * 255 + span / 2) / span);
            }
        }
        table
    });
    mapped(job, image, &tables)
}
/// Each channel so that all values are about as frequent.
fn equalize(job: &Job) -> Result<RgbaImage, NodeError> {
    let image = job.image()?;
    let tables = counts(image.pixels()).map(|counts| {
        let total: u64 = counts.iter().sum();
        let first = counts
            .iter()
            .copied()
            .find(|count| *count > 0)
            .unwrap_or_default();
        let span = total - first;
        let mut table = identity();
        let mut seen = 0;
        for (count, place) in counts.iter().zip(&mut table) {
            seen += count;
            // A picture of one value stays as it is.
            let value = (seen.saturating_sub(first) * 255 + span / 2).checked_div(span);
            *place = value.map_or(*place, as_byte);
        }
        table
    });
    mapped(job, image, &tables)
}
fn detail(job: &Job) -> Result<RgbaImage, NodeError> {
    let weights = [[0.0, -1.0, 0.0], [-1.0, 10.0, -1.0], [0.0, -1.0, 0.0]];
    kernel(job.image()?, &job.stop, weights, 6.0, 0.0)
}
fn edge_enhance(job: &Job) -> Result<RgbaImage, NodeError> {
    let weights = [[-1.0, -1.0, -1.0], [-1.0, 10.0, -1.0], [-1.0, -1.0, -1.0]];
    kernel(job.image()?, &job.stop, weights, 2.0, 0.0)
}
/// The pixel of a rank around each one: 0 is the darkest.
fn rank_filter(job: &Job) -> Result<RgbaImage, NodeError> {
    let size = job.params.size("size")?;
    if size % 2 == 0 {
        return Err(value_fault("size", &format!("must be odd, got {size}")));
    }
    let places = size.saturating_mul(size);
    let rank_of = job.params.size("rank")?;
    if rank_of >= places {
        return Err(value_fault(
            "rank",
            &format!("must be below {places}, the pixels around each one, got {rank_of}"),
        ));
    }
    rank(job.image()?, &job.stop, size, rank_of as usize)
}

/// Brightness equalised in tiles, limited, and blended between them (CLAHE).
fn adaptive_contrast(job: &Job) -> Result<RgbaImage, NodeError> {
    let (limit, grid) = (job.f("clip_limit")?, job.params.size("grid_size")?.max(1));
    let image = job.image()?;
    let (width, height) = image.dimensions();
    let (columns, rows) = (grid.min(width), grid.min(height));
    let edge = |tile: u32, tiles: u32, side: u32| {
        u32::try_from(u64::from(side) * u64::from(tile) / u64::from(tiles)).unwrap_or(side)
    };
    let mut tables = Vec::with_capacity(columns as usize * rows as usize);
    for row in 0..rows {
        job.stop.check()?;
        for column in 0..columns {
            let mut counts = [0.0_f32; 256];
            let mut total = 0.0_f32;
            for y in edge(row, rows, height)..edge(row + 1, rows, height) {
                for x in edge(column, columns, width)..edge(column + 1, columns, width) {
                    counts[usize::from(light(*image.get_pixel(x, y)))] += 1.0;
                    total += 1.0;
                }
            }
            tables.push(limited(counts, total, limit));
        }
    }
    let tile = |place: u32, tiles: u32, side: u32| {
        let at = (real(place) + 0.5) / real(side) * real(tiles) - 0.5;
        let at = at.clamp(0.0, real(tiles - 1));
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
        let first = at.floor() as u32;
        (first, (first + 1).min(tiles - 1), at - at.floor())
    };
    from_fn((width, height), &job.stop, |x, y| {
        let pixel_here = *image.get_pixel(x, y);
        let value = usize::from(light(pixel_here));
        let ((left, right, across), (top, bottom, down)) = (tile(x, columns, width), tile(y, rows, height));
        let look = |column: u32, row: u32| {
            tables
                .get((row * columns + column) as usize)
                .map_or(0.0, |table| table[value])
        };
        let wanted = lerp(
            lerp(look(left, top), look(right, top), across),
            lerp(look(left, bottom), look(right, bottom), across),
            down,
        );
        let [red, green, blue, alpha] = parts(pixel_here);
        let shift = wanted - luma([red, green, blue]);
        pixel([red + shift, green + shift, blue + shift, alpha])
    })
}
fn light(pixel: Rgba<u8>) -> u8 {
    let [red, green, blue, _] = parts(pixel);
    super::pixels::byte(luma([red, green, blue]))
}
/// A table from a histogram of which no value counts more than so many times the mean; 0 is no limit.
fn limited(mut counts: [f32; 256], total: f32, limit: f32) -> [f32; 256] {
    if limit > 0.0 {
        let most = (limit * total / 256.0).max(1.0);
        let over: f32 = counts.iter().map(|count| (count - most).max(0.0)).sum();
        for count in &mut counts {
            *count = count.min(most) + over / 256.0;
        }
    }
    let mut seen = 0.0;
    counts.map(|count| {
        seen += count;
        if total > 0.0 {
            (seen / total).clamp(0.0, 1.0)
        } else {
            0.0
        }
    })
}

//! Pictures out of pictures: what the offline provider does with an input instead of drawing.
//!
//! What lives here: reading an input, and a visible, cheap change of it for each capability. The same input, prompt and
//! seed give the same bytes. What does not: drawing from nothing (`draw`), films (`film`).

use std::io::Cursor;

use image::{DynamicImage, ImageFormat, Rgba, RgbaImage, imageops};

use crate::provider::Capability;

/// Longest side of a result, in pixels.
const MAX_SIDE: u32 = 2_048;
/// Most pixels of an input; a larger one is not read.
const MAX_PIXELS: u64 = 64 * 1024 * 1024;
/// Squares on the longer side of a vector picture.
const SQUARES: u32 = 40;

/// What is to be done with a picture.
#[derive(Debug, Clone, Copy)]
pub struct Wish<'a> {
    /// The kind of change.
    pub capability: Capability,
    /// What the result should show; it chooses the colours.
    pub prompt: &'a str,
    /// Another seed gives other colours.
    pub seed: u64,
    /// How much of the input is given up, from 0 to 1.
    pub strength: f32,
    /// The factor of an enlargement.
    pub scale: f32,
}

/// A picture as a file.
#[derive(Debug, Clone)]
pub struct Picture {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Their type.
    pub mime: &'static str,
    /// Width and height, in pixels.
    pub size: (u32, u32),
}

/// Reads a picture; `None` when the bytes are none that is known, or too large.
#[must_use]
pub fn read(bytes: &[u8]) -> Option<RgbaImage> {
    let reader = image::ImageReader::new(Cursor::new(bytes))
        .with_guessed_format()
        .ok()?;
    let (width, height) = reader.into_dimensions().ok()?;
    if u64::from(width) * u64::from(height) > MAX_PIXELS {
        return None;
    }
    let picture = image::load_from_memory(bytes).ok()?;
    Some(fitted(&picture, MAX_SIDE).to_rgba8())
}

/// A picture no longer than a side.
fn fitted(picture: &DynamicImage, side: u32) -> DynamicImage {
    if picture.width() <= side && picture.height() <= side {
        picture.clone()
    } else {
        picture.thumbnail(side, side)
    }
}

/// Changes a picture. `mask` says where, when something is to be filled in: white is changed.
///
/// # Errors
/// The result could not be written; a bug of ours.
pub fn derive(input: &RgbaImage, mask: Option<&RgbaImage>, wish: Wish<'_>) -> Result<Picture, String> {
    let tint = tint(wish.prompt, wish.seed);
    let out = match wish.capability {
        Capability::UpscaleImage => enlarged(input, wish.scale),
        Capability::RemoveBackground => cut_out(input),
        Capability::SegmentImage => flattened(input),
        Capability::OutpaintImage => surrounded(input, tint),
        Capability::RelightImage => lit(input, wish.seed),
        Capability::Inpainting => filled(input, mask, tint),
        Capability::VectorizeImage => return Ok(squares(input)),
        _ => coloured(input, tint, wish.strength),
    };
    let size = out.dimensions();
    let mut bytes = Vec::new();
    out.write_to(&mut Cursor::new(&mut bytes), ImageFormat::Png)
        .map_err(|error| format!("cannot encode the picture: {error}"))?;
    Ok(Picture {
        bytes,
        mime: "image/png",
        size,
    })
}

/// The colour that a prompt and a seed choose.
fn tint(prompt: &str, seed: u64) -> [f32; 3] {
    let digest = blake3::hash(format!("{seed}:{}", prompt.trim().to_lowercase()).as_bytes());
    let mut shares = digest.as_bytes().iter().map(|byte| f32::from(*byte) / 255.0);
    let mut next = || 0.25 + 0.75 * shares.next().unwrap_or(0.5);
    [next(), next(), next()]
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped before, and float casts saturate"
)]
fn byte(value: f32) -> u8 {
    value.clamp(0.0, 255.0).round() as u8
}

/// Each pixel by its place and its colour.
fn each(input: &RgbaImage, change: impl Fn(u32, u32, [f32; 4]) -> [f32; 4]) -> RgbaImage {
    RgbaImage::from_fn(input.width(), input.height(), |x, y| {
        let old = input.get_pixel(x, y).0.map(f32::from);
        Rgba(change(x, y, old).map(byte))
    })
}

#[expect(
    clippy::cast_precision_loss,
    reason = "sides are far below the limit of exact numbers"
)]
fn share(at: u32, of: u32) -> f32 {
    at as f32 / of.max(1) as f32
}

fn luma([r, g, b, _]: [f32; 4]) -> f32 {
    0.299 * r + 0.587 * g + 0.114 * b
}

/// The input in few steps of light and another colour, within a frame.
fn coloured(input: &RgbaImage, tint: [f32; 3], strength: f32) -> RgbaImage {
    let (width, height) = input.dimensions();
    let mix = strength.clamp(0.25, 0.9);
    let frame = (width.min(height) / 40).max(1);
    each(input, |x, y, old| {
        if x < frame || y < frame || x + frame >= width || y + frame >= height {
            let [r, g, b] = tint.map(|part| part * 255.0);
            return [r, g, b, 255.0];
        }
        let [r, g, b, a] = old;
        let light = (luma(old) / 32.0).round() * 32.0;
        let [tr, tg, tb] = tint.map(|part| (part * light * 1.3).min(255.0));
        let join = |old: f32, new: f32| old * (1.0 - mix) + new * mix;
        [join(r, tr), join(g, tg), join(b, tb), a]
    })
}

/// Only what the mask says is filled; without a mask the middle.
fn filled(input: &RgbaImage, mask: Option<&RgbaImage>, tint: [f32; 3]) -> RgbaImage {
    let (width, height) = input.dimensions();
    let mask = mask.map(|mask| imageops::resize(mask, width, height, imageops::FilterType::Nearest));
    each(input, |x, y, old| {
        let inside = mask.as_ref().map_or_else(
            || (width / 4..width * 3 / 4).contains(&x) && (height / 4..height * 3 / 4).contains(&y),
            |mask| {
                mask.get_pixel_checked(x, y)
                    .is_some_and(|pixel| luma(pixel.0.map(f32::from)) > 127.0)
            },
        );
        if !inside {
            return old;
        }
        let stripe = if (x + y) / 8 % 2 == 0 { 1.0 } else { 0.82 };
        let [r, g, b] = tint.map(|part| part * 255.0 * stripe);
        [r, g, b, 255.0]
    })
}

/// Without what has the colour of the corners.
fn cut_out(input: &RgbaImage) -> RgbaImage {
    let (width, height) = input.dimensions();
    let corner = |x: u32, y: u32| {
        input
            .get_pixel_checked(x, y)
            .map_or([0.0; 4], |pixel| pixel.0.map(f32::from))
    };
    let (right, low) = (width.saturating_sub(1), height.saturating_sub(1));
    let corners = [corner(0, 0), corner(right, 0), corner(0, low), corner(right, low)];
    each(input, |_, _, old| {
        let [r, g, b, a] = old;
        let apart = corners
            .iter()
            .map(|[cr, cg, cb, _]| (r - cr).abs() + (g - cg).abs() + (b - cb).abs());
        let nearest = apart.fold(f32::MAX, f32::min);
        [r, g, b, a * ((nearest - 30.0) / 60.0).clamp(0.0, 1.0)]
    })
}

/// Four flat areas.
fn flattened(input: &RgbaImage) -> RgbaImage {
    const AREAS: [[f32; 4]; 4] = [
        [68.0, 1.0, 84.0, 255.0],
        [49.0, 104.0, 142.0, 255.0],
        [53.0, 183.0, 121.0, 255.0],
        [253.0, 231.0, 37.0, 255.0],
    ];
    each(input, |_, _, old| {
        let area = usize::from(byte(luma(old)) / 64);
        AREAS.get(area).copied().unwrap_or(old)
    })
}

/// Light from one side.
fn lit(input: &RgbaImage, seed: u64) -> RgbaImage {
    let (width, height) = input.dimensions();
    each(input, |x, y, [r, g, b, a]| {
        let (x, y) = (share(x, width), share(y, height));
        let near = match seed % 4 {
            0 => 1.0 - x,
            1 => x,
            2 => 1.0 - y,
            _ => y,
        };
        let light = 0.35 + 1.1 * near;
        [r * light * 1.08, g * light, b * light * 0.9, a]
    })
}

/// Half as large again, the edges mirrored outwards in another colour.
fn surrounded(input: &RgbaImage, tint: [f32; 3]) -> RgbaImage {
    let (width, height) = input.dimensions();
    let (border_x, border_y) = (width / 4, height / 4);
    let wide = (width + 2 * border_x).min(MAX_SIDE);
    let high = (height + 2 * border_y).min(MAX_SIDE);
    let back = |at: u32, border: u32, side: u32| -> (u32, bool) {
        if at < border {
            (border - at - 1, true)
        } else if at - border < side {
            (at - border, false)
        } else {
            ((2 * side).saturating_sub(at - border + 1), true)
        }
    };
    RgbaImage::from_fn(wide, high, |x, y| {
        let ((x, out_x), (y, out_y)) = (back(x, border_x, width), back(y, border_y, height));
        let place = (x.min(width.saturating_sub(1)), y.min(height.saturating_sub(1)));
        let old = input
            .get_pixel_checked(place.0, place.1)
            .map_or([0.0; 4], |pixel| pixel.0.map(f32::from));
        if !out_x && !out_y {
            return Rgba(old.map(byte));
        }
        let [r, g, b, a] = old;
        let [tr, tg, tb] = tint;
        Rgba([r * tr, g * tg, b * tb, a].map(byte))
    })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "clamped to the longest side"
)]
fn enlarged(input: &RgbaImage, scale: f32) -> RgbaImage {
    let side = |pixels: u32| ((pixels as f32 * scale.clamp(1.0, 8.0)) as u32).clamp(1, 2 * MAX_SIDE);
    imageops::resize(
        input,
        side(input.width()),
        side(input.height()),
        imageops::FilterType::CatmullRom,
    )
}

/// A vector picture of squares.
fn squares(input: &RgbaImage) -> Picture {
    use std::fmt::Write as _;

    let (width, height) = input.dimensions();
    let cell = width.max(height).div_ceil(SQUARES).max(1);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">"
    );
    for y in (0..height).step_by(usize::try_from(cell).unwrap_or(1)) {
        for x in (0..width).step_by(usize::try_from(cell).unwrap_or(1)) {
            let middle = |at: u32, side: u32| (at + cell / 2).min(side.saturating_sub(1));
            let Some(Rgba([r, g, b, _])) = input.get_pixel_checked(middle(x, width), middle(y, height))
            else {
                continue;
            };
            let _ = write!(
                svg,
                "<rect x=\"{x}\" y=\"{y}\" width=\"{cell}\" height=\"{cell}\" fill=\"#{r:02x}{g:02x}{b:02x}\"/>"
            );
        }
    }
    svg.push_str("</svg>");
    Picture {
        bytes: svg.into_bytes(),
        mime: "image/svg+xml",
        size: (width, height),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn photo() -> RgbaImage {
        RgbaImage::from_fn(80, 60, |x, y| {
            let inside = (20..60).contains(&x) && (15..45).contains(&y);
            Rgba(if inside {
                [200, 40, 30, 255]
            } else {
                [240, 240, 240, 255]
            })
        })
    }
    fn wish(capability: Capability, seed: u64) -> Wish<'static> {
        Wish {
            capability,
            prompt: "at night",
            seed,
            strength: 0.6,
            scale: 2.0,
        }
    }

    #[test]
    fn every_change_is_visible_keeps_the_input_and_is_repeatable() {
        let input = photo();
        for capability in [
            Capability::ImageToImage,
            Capability::Inpainting,
            Capability::RelightImage,
            Capability::RemoveBackground,
            Capability::SegmentImage,
        ] {
            let made = derive(&input, None, wish(capability, 1)).unwrap();
            assert_eq!(
                made.bytes,
                derive(&input, None, wish(capability, 1)).unwrap().bytes
            );
            let out = read(&made.bytes).unwrap();
            assert_eq!(out.dimensions(), (80, 60));
            assert_ne!(out, input, "{}", capability.as_str());
            // The square of the input can still be told from its ground.
            assert_ne!(
                out.get_pixel(40, 30),
                out.get_pixel(12, 8),
                "{}",
                capability.as_str()
            );
        }
        let other = derive(&input, None, wish(Capability::ImageToImage, 2)).unwrap();
        assert_ne!(
            other.bytes,
            derive(&input, None, wish(Capability::ImageToImage, 1))
                .unwrap()
                .bytes
        );
    }

    #[test]
    fn sizes_follow_what_is_asked() {
        let size = |capability| derive(&photo(), None, wish(capability, 1)).unwrap().size;
        assert_eq!(size(Capability::UpscaleImage), (160, 120));
        assert_eq!(size(Capability::OutpaintImage), (120, 90));
    }

    #[test]
    fn a_mask_says_where() {
        let mask = RgbaImage::from_fn(8, 6, |x, _| Rgba(if x < 4 { [255; 4] } else { [0, 0, 0, 255] }));
        let made = derive(&photo(), Some(&mask), wish(Capability::Inpainting, 1)).unwrap();
        let out = read(&made.bytes).unwrap();
        assert_eq!(out.get_pixel(70, 30), photo().get_pixel(70, 30));
        assert_ne!(out.get_pixel(5, 30), photo().get_pixel(5, 30));
    }

    #[test]
    fn a_vector_picture_is_one() {
        let made = derive(&photo(), None, wish(Capability::VectorizeImage, 1)).unwrap();
        assert!(made.mime == "image/svg+xml" && made.bytes.starts_with(b"<svg xmlns"));
        assert!(String::from_utf8(made.bytes).unwrap().contains("#c8281e"));
    }

    #[test]
    fn what_is_no_picture_is_not_read() {
        assert!(read(b"no picture").is_none());
    }
}

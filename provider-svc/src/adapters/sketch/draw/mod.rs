//! Pictures of the offline provider: a prompt and a seed in, a PNG out.
//!
//! What lives here: choosing a scene, a light and a medium from the words of a prompt, painting it with plain vector
//! shapes, and lettering the prompt below it. The same prompt, seed and size give the same bytes on one machine.
//! What does not: clamping of sizes, pricing, waiting and anything async (that is the adapter beside this file),
//! sound (`speak`) and text (`write`).
//!
//! The order to read: [`draw`] → `brief` with `words` (what the prompt asks for) → `canvas` with `pigment`, `texture`,
//! `backdrop` and `finish` (how a medium puts a shape on paper) → `scenes` (what is painted, in the measure of `frame`
//! and the shapes of `paths`) → `caption` with `letters`.

mod backdrop;
mod brief;
mod canvas;
mod caption;
mod colour;
mod finish;
mod frame;
mod letters;
mod numbers;
mod paths;
mod pigment;
mod scenes;
#[cfg(test)]
mod tests;
mod texture;
mod words;

use brief::Brief;
use canvas::Canvas;
use caption::Caption;
use colour::Tone;
use numbers::{Dice, byte, float, u32_of, usize_of, whole};
use tiny_skia::{Paint, Pixmap, PixmapPaint, PremultipliedColorU8, Rect, Shader, Transform};
use words::Medium;

/// The longest side that [`draw`] accepts, in pixels.
pub const MAX_SIDE: u32 = 4096;

/// Why a picture could not be made.
#[derive(Debug, thiserror::Error)]
pub enum DrawError {
    /// A side is zero or longer than [`MAX_SIDE`]; the caller asks for another size.
    #[error("cannot draw a picture of {width}x{height} pixels, a side is between 1 and {MAX_SIDE}")]
    Size {
        /// The width asked for.
        width: u32,
        /// The height asked for.
        height: u32,
    },
    /// The finished picture could not be written as PNG; a bug of ours.
    #[error("cannot encode the picture")]
    Encode(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Draws a picture for a prompt and returns it as PNG.
///
/// Sizes are in pixels. Equal arguments give equal bytes; another seed gives another composition of the same subject
/// in the same family of colours.
///
/// # Errors
/// [`DrawError::Size`] when a side is 0 or above [`MAX_SIDE`], [`DrawError::Encode`] when PNG encoding fails.
pub fn draw(prompt: &str, seed: u64, width: u32, height: u32) -> Result<Vec<u8>, DrawError> {
    let mut map = sheet(width, height)?;
    let brief = Brief::read(prompt, seed);
    let caption = Caption::lay_out(prompt, seed, width, height);
    paint(&brief, &mut map, height.saturating_sub(caption.height));
    caption.write_on(&mut map, &brief);
    encode(&map)
}

/// Draws the unfinished picture that [`draw`] would give for the same arguments, an eighth of its size.
///
/// `fraction` is the progress between 0 and 1: the nearer to 1, the finer the blocks and the less noise. The result has
/// the proportions of the picture, at least 32 pixels on its longer side unless the picture is smaller.
///
/// # Errors
/// The same as [`draw`].
pub fn preview(
    prompt: &str,
    seed: u64,
    width: u32,
    height: u32,
    fraction: f32,
) -> Result<Vec<u8>, DrawError> {
    check(width, height)?;
    let longer = width.max(height);
    let wanted = (longer / 8).max(32).min(longer);
    let scaled = |side: u32| (side * wanted / longer).max(1);
    let (small_w, small_h) = (scaled(width), scaled(height));
    let brief = Brief::read(prompt, seed);
    let band = scaled(Caption::lay_out(prompt, seed, width, height).height).min(small_h / 2);

    // Painted at twice the size and averaged down, so that thin lines survive.
    let mut map = sheet(small_w * 2, small_h * 2)?;
    let band_top = (small_h - band) * 2;
    paint(&brief, &mut map, band_top);
    fill_rows(&mut map, band_top, float(band * 2).max(0.5), brief.band());

    let left = 1.0
        - if fraction.is_finite() {
            fraction.clamp(0.0, 1.0)
        } else {
            0.0
        };
    let block = 2 + whole(left * 14.0);
    let mut grain = Dice::new(brief.dice_seed ^ 0x6e6f_6973);
    let mut out = sheet(small_w, small_h)?;
    let noise = left * 0.55;
    let row = usize_of(small_w);
    for (at, pixel) in out.pixels_mut().iter_mut().enumerate() {
        let (x, y) = (u32_of(at % row) * 2, u32_of(at / row) * 2);
        let (bx, by) = (x / block * block, y / block * block);
        let mean = block_mean(&map, bx, by, block);
        let speck = grain.unit() * 255.0;
        let mix = |channel: f32| byte(channel * (1.0 - noise) + speck * noise);
        if let Some(colour) = PremultipliedColorU8::from_rgba(mix(mean.0), mix(mean.1), mix(mean.2), 255) {
            *pixel = colour;
        }
    }
    encode(&out)
}

fn check(width: u32, height: u32) -> Result<(), DrawError> {
    let fits = |side: u32| (1..=MAX_SIDE).contains(&side);
    if fits(width) && fits(height) {
        Ok(())
    } else {
        Err(DrawError::Size { width, height })
    }
}

fn sheet(width: u32, height: u32) -> Result<Pixmap, DrawError> {
    check(width, height)?;
    Pixmap::new(width, height).ok_or(DrawError::Size { width, height })
}

fn encode(map: &Pixmap) -> Result<Vec<u8>, DrawError> {
    map.encode_png()
        .map_err(|error| DrawError::Encode(Box::new(error)))
}

/// Paints the scene of a brief on the upper `view` rows of a sheet.
fn paint(brief: &Brief, map: &mut Pixmap, view: u32) {
    let (width, view) = (map.width(), view.max(1));
    let block = if brief.medium == Medium::Pixel {
        (width.min(view) / 80).max(1)
    } else {
        1
    };
    let Some(inner) = Pixmap::new(width.div_ceil(block), view.div_ceil(block)) else {
        return;
    };
    let mut canvas = Canvas::new(brief, inner);
    canvas.scene(brief);
    canvas.finish();
    let scale = float(block);
    let place = Transform::from_scale(scale, scale);
    map.draw_pixmap(0, 0, canvas.map.as_ref(), &PixmapPaint::default(), place, None);
}

/// Fills `height` rows from `top` down; what reaches below the sheet is cut off.
fn fill_rows(map: &mut Pixmap, top: u32, height: f32, t: Tone) {
    if let Some(band) = Rect::from_xywh(0.0, float(top), float(map.width()), height) {
        let paint = Paint {
            shader: Shader::SolidColor(t.colour()),
            anti_alias: false,
            ..Paint::default()
        };
        map.fill_rect(band, &paint, Transform::identity(), None);
    }
}

/// The mean colour of a square block, as red, green, blue from 0 to 255. At most 16 samples are read.
fn block_mean(map: &Pixmap, x: u32, y: u32, block: u32) -> (f32, f32, f32) {
    let step = (block / 4).max(1);
    let (mut sum, mut count) = ((0.0, 0.0, 0.0), 0.0f32);
    let mut dy = 0;
    while dy < block {
        let mut dx = 0;
        while dx < block {
            if let Some(pixel) = map.pixel(x + dx, y + dy) {
                sum.0 += f32::from(pixel.red());
                sum.1 += f32::from(pixel.green());
                sum.2 += f32::from(pixel.blue());
                count += 1.0;
            }
            dx += step;
        }
        dy += step;
    }
    let count = count.max(1.0);
    (sum.0 / count, sum.1 / count, sum.2 / count)
}

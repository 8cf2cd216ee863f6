//! Text on pictures, in the one font that is built in: monospaced, Latin letters. Another font that is asked for is
//! replaced by it.

use image::RgbaImage;
use noto_sans_mono_bitmap::{FontWeight, RasterHeight, get_raster, get_raster_width};

use super::{
    Job, edit,
    pixels::{over, part, parts, pixel, real},
};
use crate::{
    node::NodeError,
    nodes::{args::text_of, code::Types, media_io::value_fault},
};

/// Longest text, in characters.
const MAX_TEXT: usize = 10_000;
/// Of what the letters are scaled, in pixels.
const HEIGHT: RasterHeight = RasterHeight::Size32;

/// All types of this part.
pub(super) fn types() -> Types {
    vec![("lib.image.draw.RenderText", edit(render_text))]
}

fn render_text(job: &Job) -> Result<RgbaImage, NodeError> {
    let (text, size) = (job.params.text("text"), job.params.size("size")?);
    let bold = job
        .params
        .value("font")
        .get("weight")
        .is_some_and(|weight| text_of(&weight) == "bold");
    let (x, y) = (job.params.int("x")?, job.params.int("y")?);
    if text.chars().count() > MAX_TEXT {
        return Err(value_fault(
            "text",
            &format!("takes at most {MAX_TEXT} characters"),
        ));
    }
    let mut image = job.image()?.clone();
    let style = Style {
        size,
        bold,
        color: job.color("color")?,
    };
    let align = match job.params.choice("align")?.as_str() {
        "center" => 0.5,
        "right" => 1.0,
        _ => 0.0,
    };
    for (line, text) in (0_i64..).zip(text.lines()) {
        job.stop.check()?;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "at most 10 000 letters of 512 pixels"
        )]
        let start = x.saturating_sub((style.width(text) * align).round() as i64);
        style.line(
            &mut image,
            text,
            start,
            y.saturating_add(line * i64::from(size) * 6 / 5),
        );
    }
    Ok(image)
}
/// How letters look.
#[derive(Debug, Clone, Copy)]
pub(in crate::nodes) struct Style {
    /// Height of a line, in pixels.
    pub size: u32,
    pub bold: bool,
    pub color: [f32; 4],
}
impl Style {
    fn weight(self) -> FontWeight {
        if self.bold {
            FontWeight::Bold
        } else {
            FontWeight::Regular
        }
    }
    fn scale(self) -> f32 {
        real(self.size) / 32.0
    }
    #[expect(clippy::cast_precision_loss, reason = "a letter has a few pixels")]
    fn letter(self) -> f32 {
        get_raster_width(self.weight(), HEIGHT) as f32 * self.scale()
    }
    /// Width of a line, in pixels.
    #[expect(clippy::cast_precision_loss, reason = "bounded by the longest text")]
    pub fn width(self, text: &str) -> f32 {
        self.letter() * text.chars().count() as f32
    }
    /// A line from its upper left corner; what is outside of the picture is left out.
    pub fn line(self, image: &mut RgbaImage, text: &str, left: i64, top: i64) {
        let letter = self.letter();
        for (at, sign) in text.chars().enumerate() {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_precision_loss,
                reason = "bounded"
            )]
            let left = left.saturating_add((letter * at as f32).round() as i64);
            let drawn =
                get_raster(sign, self.weight(), HEIGHT).or_else(|| get_raster('?', self.weight(), HEIGHT));
            let Some(drawn) = drawn else { continue };
            let ink = drawn.raster();
            let scale = self.scale();
            let at = |row: i64, column: i64| -> f32 {
                let place = usize::try_from(row).ok().zip(usize::try_from(column).ok());
                place
                    .and_then(|(row, column)| ink.get(row)?.get(column))
                    .copied()
                    .map_or(0.0, part)
            };
            #[expect(clippy::cast_possible_truncation, reason = "at most 512 pixels")]
            let width = letter.ceil() as i64;
            for row in 0..i64::from(self.size) {
                for column in 0..width {
                    let (Ok(x), Ok(y)) = (
                        u32::try_from(left.saturating_add(column)),
                        u32::try_from(top.saturating_add(row)),
                    ) else {
                        continue;
                    };
                    if x >= image.width() || y >= image.height() {
                        continue;
                    }
                    let strength = covered(row, column, scale, at);
                    if strength > 0.0 {
                        let [red, green, blue, alpha] = self.color;
                        let below = parts(*image.get_pixel(x, y));
                        image.put_pixel(x, y, pixel(over(below, [red, green, blue, alpha * strength])));
                    }
                }
            }
        }
    }
}
/// The ink at a pixel of a scaled letter: blended when it grows, the mean when it shrinks.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "a letter has a few pixels"
)]
fn covered(row: i64, column: i64, scale: f32, ink: impl Fn(i64, i64) -> f32) -> f32 {
    if (scale - 1.0).abs() < f32::EPSILON {
        return ink(row, column);
    }
    if scale < 1.0 {
        let (top, bottom) = (
            (row as f32 / scale) as i64,
            ((row + 1) as f32 / scale).ceil() as i64,
        );
        let (left, right) = (
            (column as f32 / scale) as i64,
            ((column + 1) as f32 / scale).ceil() as i64,
        );
        let sum: f32 = (top..bottom)
            .flat_map(|row| (left..right).map(move |column| (row, column)))
            .map(|(row, column)| ink(row, column))
            .sum();
        return sum / ((bottom - top).max(1) * (right - left).max(1)) as f32;
    }
    let (y, x) = (
        (row as f32 + 0.5) / scale - 0.5,
        (column as f32 + 0.5) / scale - 0.5,
    );
    let (top, left) = (y.floor(), x.floor());
    let (down, across) = (y - top, x - left);
    let (top, left) = (top as i64, left as i64);
    let upper = ink(top, left) * (1.0 - across) + ink(top, left + 1) * across;
    let lower = ink(top + 1, left) * (1.0 - across) + ink(top + 1, left + 1) * across;
    upper * (1.0 - down) + lower * down
}

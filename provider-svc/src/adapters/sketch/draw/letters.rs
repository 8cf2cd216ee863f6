//! Letters on pixels, from a raster font that is part of the program.

use super::colour::Tone;
use super::numbers::{byte, float, lerp, u32_of, usize_of, whole};
use noto_sans_mono_bitmap::{FontWeight, RasterHeight, get_raster, get_raster_width};
use tiny_skia::{Pixmap, PremultipliedColorU8};

/// Letters of one size, enlarged or reduced from the nearest raster of the font.
#[derive(Debug, Clone, Copy)]
pub(super) struct Letters {
    raster: RasterHeight,
    weight: FontWeight,
    scale: f32,
}

impl Letters {
    /// The letters whose line height comes nearest to `wanted` pixels.
    pub(super) fn near(wanted: f32, weight: FontWeight) -> Self {
        let sizes = [
            (8.0, RasterHeight::Size16, 0.5),
            (10.0, RasterHeight::Size20, 0.5),
            (12.0, RasterHeight::Size24, 0.5),
            (16.0, RasterHeight::Size16, 1.0),
            (20.0, RasterHeight::Size20, 1.0),
            (24.0, RasterHeight::Size24, 1.0),
            (32.0, RasterHeight::Size32, 1.0),
            (48.0, RasterHeight::Size24, 2.0),
            (64.0, RasterHeight::Size32, 2.0),
            (96.0, RasterHeight::Size32, 3.0),
        ];
        let mut best = (f32::MAX, RasterHeight::Size16, 1.0);
        for (size, raster, scale) in sizes {
            let miss = f32::abs(size - wanted);
            if miss < best.0 {
                best = (miss, raster, scale);
            }
        }
        Self {
            raster: best.1,
            weight,
            scale: best.2,
        }
    }

    pub(super) fn advance(self) -> f32 {
        float(u32_of(get_raster_width(self.weight, self.raster))) * self.scale
    }

    pub(super) fn line(self) -> f32 {
        float(u32_of(self.raster.val())) * self.scale
    }

    pub(super) fn write(self, map: &mut Pixmap, x: f32, y: f32, text: &str, t: Tone) {
        let mut left = x;
        for letter in text.chars() {
            self.write_one(map, left, y, letter, t);
            left += self.advance();
        }
    }

    fn write_one(self, map: &mut Pixmap, x: f32, y: f32, letter: char, t: Tone) {
        let found = get_raster(letter, self.weight, self.raster);
        let Some(glyph) = found.or_else(|| get_raster('?', self.weight, self.raster)) else {
            return;
        };
        let rows = glyph.raster();
        let colour = t.colour();
        let ink = [
            colour.red() * 255.0,
            colour.green() * 255.0,
            colour.blue() * 255.0,
        ];
        let (wide, tall) = (whole(self.advance()), whole(self.line()));
        let (left, top, sheet_w) = (whole(x), whole(y), map.width());
        let pixels = map.pixels_mut();
        for dy in 0..tall {
            for dx in 0..wide {
                let cover = self.cover(rows, dx, dy);
                let (px, py) = (left + dx, top + dy);
                if cover <= 0.0 || px >= sheet_w {
                    continue;
                }
                let at = usize_of(py) * usize_of(sheet_w) + usize_of(px);
                if let Some(pixel) = pixels.get_mut(at) {
                    let mix = |under: u8, over: f32| byte(lerp(f32::from(under), over, cover));
                    let [r, g, b] = ink;
                    let mixed = PremultipliedColorU8::from_rgba(
                        mix(pixel.red(), r),
                        mix(pixel.green(), g),
                        mix(pixel.blue(), b),
                        255,
                    );
                    if let Some(mixed) = mixed {
                        *pixel = mixed;
                    }
                }
            }
        }
    }

    /// How much ink falls on a pixel of a letter, from 0 to 1.
    fn cover(self, rows: &[&[u8]], dx: u32, dy: u32) -> f32 {
        let at = |x: f32, y: f32| {
            if x < 0.0 || y < 0.0 {
                return 0.0;
            }
            let row = rows.get(usize_of(whole(y)));
            f32::from(
                row.and_then(|row| row.get(usize_of(whole(x))))
                    .copied()
                    .unwrap_or(0),
            ) / 255.0
        };
        let (x, y) = (float(dx), float(dy));
        if self.scale < 1.0 {
            let (x, y) = (x * 2.0, y * 2.0);
            let mean = (at(x, y) + at(x + 1.0, y) + at(x, y + 1.0) + at(x + 1.0, y + 1.0)) / 4.0;
            // Averaging pales thin strokes; this gives them their weight back.
            return (mean * 1.5).min(1.0);
        }
        if self.scale <= 1.0 {
            return at(x, y);
        }
        let (sx, sy) = ((x + 0.5) / self.scale - 0.5, (y + 0.5) / self.scale - 0.5);
        let (x0, y0) = (sx.floor(), sy.floor());
        let (fx, fy) = (sx - x0, sy - y0);
        let top = lerp(at(x0, y0), at(x0 + 1.0, y0), fx);
        let low = lerp(at(x0, y0 + 1.0), at(x0 + 1.0, y0 + 1.0), fx);
        // Steepening the slope keeps enlarged edges crisp.
        ((lerp(top, low, fy) - 0.5) * 1.6 + 0.5).clamp(0.0, 1.0)
    }
}

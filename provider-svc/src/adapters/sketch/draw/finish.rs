//! What a medium does to the whole picture at the end.

use super::canvas::Canvas;
use super::colour::{Tone, tone};
use super::numbers::{byte, float, lerp, steps};
use super::paths::{polygon, rect};
use super::pigment::{PRINT_PAPER, WET_PAPER};
use super::words::Medium;
use tiny_skia::{
    FillRule, FilterQuality, GradientStop, Paint, PathBuilder, Pattern, Pixmap, Point, PremultipliedColorU8,
    RadialGradient, Rect, Shader, SpreadMode, Transform,
};

impl Canvas {
    /// What a medium does to the whole picture at the end.
    pub(super) fn finish(&mut self) {
        match self.medium {
            Medium::Photo => {
                self.vignette(0.55);
                self.speckle(9.0);
            }
            Medium::Oil => self.vignette(0.25),
            Medium::Blueprint => self.grid(),
            Medium::Neon => self.scanlines(),
            Medium::Watercolour => self.margin(WET_PAPER, 0.030),
            Medium::Woodcut => self.margin(PRINT_PAPER, 0.024),
            Medium::Ink | Medium::Gouache | Medium::Pixel => {}
        }
    }

    /// A border of bare paper with an uneven edge.
    fn margin(&mut self, paper: Tone, share: f32) {
        let inset = self.unit * share;
        let mut edge: Vec<(f32, f32)> = Vec::new();
        let corners = [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0), (0.0, 0.0)];
        for pair in corners.windows(2) {
            if let [a, b] = pair {
                edge.extend(steps(28).map(|(_, t)| {
                    let mut wobble = || inset * self.dice.range(-0.16, 0.16);
                    let x = lerp(inset, self.w - inset, lerp(a.0, b.0, t)) + wobble();
                    let y = lerp(inset, self.h - inset, lerp(a.1, b.1, t)) + wobble();
                    (x, y)
                }));
            }
        }
        let (Some(hole), Some(all)) = (polygon(&edge), rect(-1.0, -1.0, self.w + 2.0, self.h + 2.0)) else {
            return;
        };
        let mut path = PathBuilder::new();
        path.push_path(&all);
        path.push_path(&hole);
        if let Some(path) = path.finish() {
            let paint = self.paint(Shader::SolidColor(paper.colour()));
            self.map
                .fill_path(&path, &paint, FillRule::EvenOdd, Transform::identity(), None);
        }
    }

    fn vignette(&mut self, strength: f32) {
        let centre = Point::from_xy(self.w / 2.0, self.h / 2.0);
        let dark = tone(0.08, 0.02, self.hue);
        let stops = vec![
            GradientStop::new(0.0, dark.faded(0.0).colour()),
            GradientStop::new(0.55, dark.faded(0.0).colour()),
            GradientStop::new(1.0, dark.faded(strength).colour()),
        ];
        let r = self.w.hypot(self.h) / 2.0;
        let shader = RadialGradient::new(centre, centre, r, stops, SpreadMode::Pad, Transform::identity());
        if let Some(shader) = shader {
            cover(&mut self.map, shader);
        }
    }

    /// Film grain: a tile of noise, so that a large picture costs no more dice than a small one.
    fn speckle(&mut self, strength: f32) {
        let Some(mut tile) = Pixmap::new(64, 64) else {
            return;
        };
        for pixel in tile.pixels_mut() {
            let speck = self.dice.range(-1.0, 1.0);
            let alpha = byte(speck.abs() * strength * 2.0);
            let white = if speck > 0.0 { alpha } else { 0 };
            if let Some(colour) = PremultipliedColorU8::from_rgba(white, white, white, alpha) {
                *pixel = colour;
            }
        }
        let scale = (self.unit / 512.0).max(1.0);
        let place = Transform::from_scale(scale, scale);
        let shader = Pattern::new(
            tile.as_ref(),
            SpreadMode::Repeat,
            FilterQuality::Nearest,
            1.0,
            place,
        );
        cover(&mut self.map, shader);
    }

    fn grid(&mut self) {
        let cell = (self.unit / 20.0).max(4.0);
        let line = tone(0.9, 0.04, 235.0);
        for axis in [true, false] {
            let reach = if axis { self.w } else { self.h };
            let mut at = cell;
            let mut count = 1u32;
            while at < reach {
                let strong = count.is_multiple_of(5);
                let path = if axis {
                    rect(at, 0.0, 0.6, self.h)
                } else {
                    rect(0.0, at, self.w, 0.6)
                };
                self.flat(path, line.faded(if strong { 0.30 } else { 0.13 }));
                at += cell;
                count += 1;
            }
        }
        let inset = self.unit * 0.035;
        if let Some(frame) = rect(inset, inset, self.w - inset * 2.0, self.h - inset * 2.0) {
            self.pen(&frame, line.faded(0.8), self.unit * 0.004);
        }
    }

    fn scanlines(&mut self) {
        let gap = (self.unit / 128.0).max(2.0);
        let mut y = 0.0;
        let t = tone(0.03, 0.0, 0.0).faded(0.16);
        while y < self.h {
            self.flat(rect(0.0, y, self.w, gap * 0.4), t);
            y += gap;
        }
    }
}

/// Lays a shader over the whole sheet.
fn cover(map: &mut Pixmap, shader: Shader<'_>) {
    if let Some(all) = Rect::from_xywh(0.0, 0.0, float(map.width()), float(map.height())) {
        let paint = Paint {
            shader,
            ..Paint::default()
        };
        map.fill_rect(all, &paint, Transform::identity(), None);
    }
}

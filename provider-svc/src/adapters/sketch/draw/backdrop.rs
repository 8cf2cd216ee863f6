//! The ground of a picture: what a medium lays on the bare sheet.

use super::canvas::Canvas;
use super::colour::{Tone, tone};
use super::paths::rect;
use super::pigment::{PRINT_PAPER, WET_PAPER};
use super::words::Medium;
use tiny_skia::{GradientStop, LinearGradient, Point, Shader, SpreadMode, Transform};

impl Canvas {
    /// Fills the sheet with a blend of three tones.
    pub(super) fn backdrop(&mut self, tones: [Tone; 3]) {
        let Some(path) = rect(0.0, 0.0, self.w, self.h) else {
            return;
        };
        let [a, b, c] = tones.map(|t| self.pigment(t));
        match self.medium {
            Medium::Woodcut => {
                let sky = if tones[0].l < 0.35 {
                    tone(0.23, 0.02, self.hue)
                } else {
                    PRINT_PAPER
                };
                self.flood(&path, sky, sky);
            }
            Medium::Ink => self.flood(&path, tone(0.965, 0.015, 90.0), tone(0.93, 0.02, 85.0)),
            Medium::Blueprint => self.flood(&path, tone(0.33, 0.11, 255.0), tone(0.30, 0.105, 257.0)),
            Medium::Watercolour => {
                self.flood(&path, WET_PAPER, WET_PAPER);
                self.flood(&path, a.faded(0.85), c.faded(0.55));
                self.blooms(a, b);
                self.grain(&path, 0.8, 0.0);
            }
            Medium::Gouache | Medium::Oil | Medium::Pixel | Medium::Neon | Medium::Photo => {
                let stops = [a, a.toward(b, 0.5), b, b.toward(c, 0.5), c];
                let stops = stops.iter().zip([0.0, 0.22, 0.45, 0.66, 0.86]);
                let stops = stops.map(|(t, at)| GradientStop::new(at, t.colour())).collect();
                let end = Point::from_xy(0.0, self.h * 0.75);
                let blend =
                    LinearGradient::new(Point::zero(), end, stops, SpreadMode::Pad, Transform::identity());
                self.put(&path, blend.unwrap_or(Shader::SolidColor(b.colour())));
                if self.medium == Medium::Oil {
                    self.grain(&path, 0.9, -14.0);
                }
            }
        }
    }

    /// Wet-in-wet clouds of pigment.
    fn blooms(&mut self, a: Tone, b: Tone) {
        for _ in 0..14 {
            let (x, y) = (self.dice.unit() * self.w, self.dice.unit() * self.h * 0.6);
            let r = self.dice.range(0.12, 0.4) * self.unit;
            let t = if self.dice.chance(0.4) {
                tone(0.98, 0.01, 85.0)
            } else {
                a.toward(b, self.dice.unit())
            };
            self.glow(x, y, r, t, 0.35);
        }
    }
}

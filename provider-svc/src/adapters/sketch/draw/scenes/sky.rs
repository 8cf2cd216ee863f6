//! Sky and weather: sun, moon, stars, clouds, birds, rain and snow.

use super::super::brief::Brief;
use super::super::canvas::Canvas;
use super::super::colour::{Tone, tone};
use super::super::frame::Frame;
use super::super::numbers::{lerp, steps};
use super::super::paths::{circle, polygon, polyline, rounded};
use super::super::pigment::PRINT_PAPER;
use super::super::words::{Light, Medium};
use std::f32::consts::PI;
use tiny_skia::{Path, PathBuilder};

impl Canvas {
    /// Sky with sun, or moon and stars, whose light sits above `horizon`.
    pub(super) fn sky(&mut self, brief: &Brief, horizon: f32) {
        self.backdrop(brief.sky());
        let x = self.w * (0.5 + self.dice.sign() * self.dice.range(0.10, 0.32));
        let r = self.length(0.07, 0.12);
        match brief.light {
            Light::Night => {
                self.stars(horizon, 110);
                let y = horizon * self.dice.range(0.25, 0.5);
                self.moon(x, y, r * 0.85);
            }
            Light::Dusk => {
                let y = horizon * self.dice.range(0.62, 0.9);
                self.glow(x, y, r * 5.5, tone(0.88, 0.13, 65.0), 0.75);
                self.area(circle(x, y, r * 1.25), tone(0.86, 0.17, 52.0));
                self.clouds(brief, horizon);
            }
            Light::Day => {
                let y = horizon * self.dice.range(0.25, 0.55);
                self.glow(x, y, r * 4.5, tone(0.98, 0.05, 95.0), 0.8);
                self.area(circle(x, y, r), tone(0.96, 0.10, 95.0));
                self.clouds(brief, horizon);
            }
            Light::Mist => {
                let y = horizon * self.dice.range(0.3, 0.6);
                self.glow(x, y, r * 5.0, tone(0.98, 0.02, 90.0), 0.8);
                self.area(circle(x, y, r), tone(0.97, 0.02, 90.0).faded(0.85));
            }
        }
    }

    pub(super) fn stars(&mut self, horizon: f32, count: u16) {
        for _ in 0..count {
            let (x, y) = self.anywhere(horizon);
            let r = self.length(0.0012, 0.0042);
            let t = tone(0.95, 0.04, self.dice.range(40.0, 280.0)).faded(self.dice.range(0.4, 1.0));
            if self.dice.chance(0.06) {
                self.glow(x, y, r * 7.0, t, 0.5);
                for (dx, dy) in [(r * 4.0, 0.0), (0.0, r * 4.0)] {
                    self.line(polyline(&[(x - dx, y - dy), (x + dx, y + dy)]), t, 0.0015);
                }
            }
            let t = match self.medium {
                Medium::Neon | Medium::Blueprint => tone(0.95, 0.03, 230.0),
                Medium::Woodcut => PRINT_PAPER,
                Medium::Ink => tone(0.2, 0.0, 0.0),
                Medium::Gouache | Medium::Watercolour | Medium::Oil | Medium::Pixel | Medium::Photo => t,
            };
            self.flat(circle(x, y, r), t);
        }
    }

    pub(super) fn moon(&mut self, x: f32, y: f32, r: f32) {
        self.glow(x, y, r * 5.0, tone(0.93, 0.05, 95.0), 0.5);
        let face = tone(0.95, 0.045, 95.0);
        if self.dice.chance(0.55) {
            let lean = self.dice.range(0.25, 0.6);
            self.area(crescent(x, y, r, lean), face);
        } else {
            self.area(circle(x, y, r), face);
            let disc = Frame::new(x, y, r);
            for (dx, dy, size) in [(-0.3, -0.2, 0.22), (0.25, 0.3, 0.28), (0.32, -0.35, 0.14)] {
                self.area(disc.circle(dx, dy, size), face.lit(-0.09));
            }
        }
    }

    fn clouds(&mut self, brief: &Brief, horizon: f32) {
        let count = self.dice.count(1, 4);
        for _ in 0..count {
            let (x, y) = (self.dice.unit() * self.w, horizon * self.dice.range(0.12, 0.6));
            let width = self.length(0.14, 0.36);
            let t = brief.haze().lit(0.05).faded(0.75);
            if self.dice.chance(0.5) {
                let thick = width * 0.11;
                for (dx, dy, w) in [(0.0, 0.0, 1.0), (0.22, -0.9, 0.55), (-0.2, 1.0, 0.5)] {
                    let left = x + width * dx - width * w / 2.0;
                    self.area(rounded(left, y + thick * dy, width * w, thick, thick / 2.0), t);
                }
            } else {
                self.cloud(billows(x, y, width), t);
            }
        }
    }

    /// Overlapping circles: outlines inside of a cloud would be wrong, so only the fill is laid.
    fn cloud(&mut self, path: Option<Path>, t: Tone) {
        let Some(path) = path else { return };
        let t = self.pigment(t);
        if self.medium.is_line_art() {
            self.pen(&path, self.outline(t), self.unit * 0.01);
        }
        self.flood(&path, t, t);
    }

    pub(super) fn birds(&mut self, horizon: f32, count: u16) {
        let (cx, cy) = (self.across(0.25, 0.75), horizon * self.dice.range(0.25, 0.6));
        let ink = if self.medium == Medium::Neon {
            tone(0.8, 0.2, self.hue)
        } else {
            tone(0.25, 0.03, self.hue)
        };
        for _ in 0..count {
            let (x, y) = (cx + self.length(-0.18, 0.18), cy + self.length(-0.09, 0.09));
            let bird = Frame::new(x, y, self.length(0.012, 0.028));
            let wings = bird.trace(-1.0, -0.35).quad((-0.4, -0.7), (0.0, 0.0));
            self.line(wings.quad((0.4, -0.7), (1.0, -0.35)).open(), ink, 0.0035);
        }
    }

    pub(super) fn rain(&mut self) {
        for _ in 0..170 {
            let (x, y) = (self.dice.unit() * self.w * 1.1, self.dice.unit() * self.h);
            let length = self.length(0.03, 0.08);
            let drop = tone(0.92, 0.02, 240.0).faded(self.dice.range(0.15, 0.5));
            self.line(polyline(&[(x, y), (x - length * 0.25, y + length)]), drop, 0.0025);
        }
    }

    pub(super) fn snow(&mut self) {
        for _ in 0..170 {
            let (x, y) = self.anywhere(self.h);
            let flake = tone(0.98, 0.01, 240.0).faded(self.dice.range(0.5, 0.95));
            let r = self.length(0.002, 0.0075);
            self.flat(circle(x, y, r), flake);
        }
    }
}

/// A disc, cut by an arc through its poles.
fn crescent(x: f32, y: f32, r: f32, lean: f32) -> Option<Path> {
    let disc = Frame::new(x, y, 1.0).turned(lean);
    let arc = |from: f32, to: f32, rx: f32| {
        steps(25).map(move |(_, t)| {
            let angle = lerp(from, to, t);
            disc.at(rx * angle.cos(), r * angle.sin())
        })
    };
    let outer = arc(PI / 2.0, PI * 1.5, r);
    let inner = arc(PI * 1.5, PI / 2.0, r * 0.45);
    polygon(&outer.chain(inner).collect::<Vec<_>>())
}

/// A round cloud: four circles on a bar.
fn billows(x: f32, y: f32, width: f32) -> Option<Path> {
    let mut path = PathBuilder::new();
    for (dx, r) in [(-0.34, 0.12), (-0.12, 0.20), (0.14, 0.16), (0.34, 0.10)] {
        path.push_circle(x + width * dx, y - width * r * 0.5, width * r);
    }
    let base = width * 0.16;
    if let Some(bar) = rounded(x - width * 0.46, y - base * 0.45, width * 0.92, base, base * 0.5) {
        path.push_path(&bar);
    }
    path.finish()
}

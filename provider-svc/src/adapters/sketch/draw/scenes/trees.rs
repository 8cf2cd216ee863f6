//! Trees and mushrooms, each drawn from its foot and a size.

use super::super::brief::Brief;
use super::super::canvas::Canvas;
use super::super::colour::{Tone, tone};
use super::super::frame::Frame;
use super::super::numbers::{lerp, steps};
use super::super::paths::{Spot, circle, polygon, polyline};
use super::super::words::Light;
use std::f32::consts::{PI, TAU};
use tiny_skia::Path;

impl Canvas {
    pub(super) fn conifer(&mut self, x: f32, y: f32, s: f32, t: Tone) {
        let tree = Frame::new(x, y, s);
        self.area(tree.rect(0.0, -0.2, 0.1, 0.22), t.lit(-0.04));
        for (i, k) in steps(3) {
            let (top, low) = (0.75 + 0.33 * f32::from(i), 0.12 + 0.28 * f32::from(i));
            let half = lerp(0.34, 0.18, k);
            let skirt = tree.polygon(&[(0.0, -top), (half, -low), (-half, -low)]);
            self.shaded(skirt, t.lit(0.03), t);
        }
    }

    pub(super) fn broadleaf(&mut self, brief: &Brief, x: f32, y: f32, s: f32, t: Tone) {
        let tree = Frame::new(x, y, s);
        let bark = tone(t.l * 0.75, 0.04, 55.0);
        self.area(trunk((x, y), s * 0.07, s * 0.03, s * 0.75), bark);
        let turn = if brief.light == Light::Dusk {
            self.dice.range(-110.0, -40.0)
        } else {
            self.dice.range(-22.0, 18.0)
        };
        let crown = [
            (-0.24, -0.72, 0.26),
            (0.24, -0.76, 0.26),
            (0.0, -1.0, 0.32),
            (-0.08, -0.78, 0.24),
        ];
        for (dx, dy, r) in crown {
            let lift = -dy * 0.09 - 0.06 + self.dice.range(-0.02, 0.02);
            let leaf = t.turned(turn).vivid(1.2).lit(lift);
            self.lit(tree.circle(dx, dy, r), leaf, 0.06, -0.03);
        }
    }

    /// A birch; `near` goes from far away (0) to near (1).
    pub(super) fn birch(&mut self, brief: &Brief, (x, y): Spot, s: f32, near: f32, here: Tone) {
        let white = brief.haze().toward(tone(0.9, 0.015, 80.0), near);
        let half = s * 0.028;
        let tall = s * 1.8;
        self.area(trunk((x, y), half, half * 0.6, tall), white.toward(here, 0.32));
        let count = self.dice.count(5, 9);
        for _ in 0..count {
            let at = y - tall * self.dice.unit();
            let left = x + half * self.dice.range(-0.9, 0.2);
            let scar = polyline(&[(left, at), (left + half * 0.8, at)]);
            let dark = tone(0.25, 0.02, 60.0).faded(0.8);
            self.line(scar, dark, half / self.unit * 0.35);
        }
        for _ in 0..4 {
            let at = y - tall * self.dice.range(0.35, 0.95);
            let tip = x + s * self.dice.range(-0.16, 0.16);
            let r = s * self.dice.range(0.05, 0.12);
            let twig = polyline(&[(x, at + r), (tip, at)]);
            self.line(twig, here.lit(-0.05), half / self.unit * 0.4);
            let turn = self.dice.range(-50.0, 10.0);
            let leaf = here.lit(0.12).vivid(1.3).turned(turn);
            self.area(circle(tip, at - r * 0.3, r), leaf);
        }
    }

    pub(super) fn mushroom(&mut self, brief: &Brief, x: f32, y: f32, s: f32) {
        let mushroom = Frame::new(x, y, s);
        let white = tone(0.92, 0.03, 85.0);
        self.area(mushroom.rounded(0.0, -0.7, 0.34, 0.75, 0.12), white);
        self.area(mushroom.wedge(0.0, -0.6, 0.62, PI, TAU), brief.accent(0.0));
        for (dx, dy) in [(-0.25, -0.8), (0.12, -0.98), (0.34, -0.75)] {
            self.flat(mushroom.circle(dx, dy, 0.075), tone(0.96, 0.02, 85.0));
        }
    }
}

/// A trunk that tapers from half a width at its foot to another at its top.
fn trunk((x, y): Spot, low: f32, high: f32, tall: f32) -> Option<Path> {
    polygon(&[
        (x - low, y),
        (x + low, y),
        (x + high, y - tall),
        (x - high, y - tall),
    ])
}

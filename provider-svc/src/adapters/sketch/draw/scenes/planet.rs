//! A planet with rings and moons, and a rocket on its way.

use super::super::brief::Brief;
use super::super::canvas::Canvas;
use super::super::colour::{Tone, tone};
use super::super::frame::Frame;
use super::super::numbers::{lerp, steps};
use super::super::paths::{Spot, circle, polygon};
use std::f32::consts::{PI, TAU};
use tiny_skia::Path;

impl Canvas {
    pub(super) fn scene_planet(&mut self, brief: &Brief) {
        self.backdrop([
            tone(0.13, 0.05, brief.hue),
            tone(0.18, 0.07, brief.hue),
            tone(0.26, 0.09, brief.far_hue),
        ]);
        for _ in 0..20 {
            let (x, y) = self.anywhere(self.h);
            let hue = brief.far_hue + self.dice.range(-50.0, 50.0);
            let r = self.length(0.1, 0.36);
            self.glow(x, y, r, tone(0.55, 0.15, hue), 0.20);
        }
        self.stars(self.h, 210);
        let (x, y) = (self.across(0.38, 0.62), self.down(0.42, 0.56));
        let r = self.length(0.21, 0.29);
        let skin = brief.accent(0.0);
        self.glow(x, y, r * 1.7, skin, 0.45);
        let axis = Frame::new(x, y, 1.0).turned(self.dice.range(-0.5, 0.5));
        let ringed = self.dice.chance(0.75);
        let ring = tone(0.86, 0.07, brief.accent_hue + 40.0).faded(0.85);
        if ringed {
            self.area(half_ring(axis, r, PI, TAU), ring.lit(-0.12));
        }
        self.lit(circle(x, y, r), skin, 0.12, -0.28);
        for _ in 0..6 {
            self.cloud_band(axis, r, skin);
        }
        if ringed {
            self.area(half_ring(axis, r, 0.0, PI), ring);
        }
        let moons = self.dice.count(1, 3);
        for _ in 0..moons {
            let a = self.dice.range(0.0, TAU);
            let far = r * self.dice.range(1.5, 2.2);
            let t = brief.accent(self.dice.range(60.0, 200.0));
            let size = r * self.dice.range(0.08, 0.2);
            let moon = circle(x + far * a.cos(), y + far * 0.7 * a.sin(), size);
            self.lit(moon, t, 0.1, -0.22);
        }
        let (x, y) = (self.across(0.14, 0.28), self.down(0.66, 0.8));
        self.rocket(brief, x, y);
    }

    /// A slice of the disc between two heights.
    fn cloud_band(&mut self, axis: Frame, r: f32, skin: Tone) {
        let (from, thick) = (self.dice.range(-0.85, 0.75), self.dice.range(0.06, 0.2));
        let to = (from + thick).min(0.98);
        let lift = self.dice.range(-0.14, 0.14);
        let edge = |height: f32, side: f32| {
            let half = side * (1.0 - height * height).max(0.0).sqrt() * r * 0.995;
            axis.at(half, height * r)
        };
        let right = steps(9).map(|(_, t)| edge(lerp(from, to, t), 1.0));
        let left = steps(9).map(|(_, t)| edge(lerp(to, from, t), -1.0));
        let points: Vec<Spot> = right.chain(left).collect();
        let band = skin.lit(lift).turned(lift * 160.0).faded(0.5);
        self.flat(polygon(&points), self.pigment(band));
    }

    fn rocket(&mut self, brief: &Brief, x: f32, y: f32) {
        let s = self.unit * 0.12;
        let rocket = Frame::new(x, y, s).turned(0.6);
        let (glow_x, glow_y) = rocket.at(0.0, 0.8);
        self.glow(glow_x, glow_y, s * 0.9, tone(0.8, 0.17, 60.0), 0.7);
        let flame = [(-0.14, 0.55), (0.0, 1.3), (0.14, 0.55)];
        self.area(rocket.polygon(&flame), tone(0.82, 0.17, 65.0));
        for side in [-1.0, 1.0] {
            let fin = [(0.2, 0.1), (0.48, 0.7), (0.15, 0.52)];
            self.area(rocket.facing(side).polygon(&fin), brief.accent(30.0));
        }
        let hull = rocket
            .trace(0.0, -1.0)
            .quad((0.42, -0.4), (0.2, 0.6))
            .line((-0.2, 0.6))
            .quad((-0.42, -0.4), (0.0, -1.0));
        self.area(hull.closed(), tone(0.93, 0.015, 240.0));
        self.area(rocket.circle(0.0, -0.2, 0.13), tone(0.62, 0.11, 230.0));
    }
}

/// The part of the ring between two angles.
fn half_ring(axis: Frame, r: f32, from: f32, to: f32) -> Option<Path> {
    let arc = |t: f32, k: f32| {
        let a = lerp(from, to, t);
        axis.at(r * k * a.cos(), r * k * 0.30 * a.sin())
    };
    let outer = steps(49).map(|(_, t)| arc(t, 1.85));
    let inner = steps(49).map(|(_, t)| arc(1.0 - t, 1.35));
    polygon(&outer.chain(inner).collect::<Vec<_>>())
}

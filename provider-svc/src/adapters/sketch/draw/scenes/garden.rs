//! A garden: three rows of flowers of one kind before two hills.

use super::super::brief::Brief;
use super::super::canvas::Canvas;
use super::super::colour::{Tone, tone};
use super::super::frame::Frame;
use super::super::numbers::{Dice, lerp, steps};
use super::super::paths::{Spot, circle, ground, petal};
use std::f32::consts::{PI, TAU};

/// How the petals of a flower are arranged.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Daisy,
    Tulip,
    Dahlia,
    Anemone,
}

impl Kind {
    pub(super) fn any(dice: &mut Dice) -> Self {
        match dice.count(0, 3) {
            0 => Self::Daisy,
            1 => Self::Tulip,
            2 => Self::Dahlia,
            _ => Self::Anemone,
        }
    }
}

/// What a flower looks like.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flower {
    pub(super) kind: Kind,
    pub(super) r: f32,
    pub(super) bloom: Tone,
    pub(super) green: Tone,
}

impl Canvas {
    pub(super) fn scene_garden(&mut self, brief: &Brief) {
        let horizon = self.down(0.55, 0.7);
        self.sky(brief, horizon * 0.7);
        let hue = self.dice.range(125.0, 165.0);
        let green = tone(if brief.is_dark() { 0.30 } else { 0.55 }, 0.10, hue);
        for _ in 0..16 {
            let (x, y) = (self.dice.unit() * self.w, self.down(0.05, 0.95));
            let r = self.length(0.02, 0.09);
            let t = brief.accent(self.dice.range(-60.0, 60.0)).lit(0.12);
            self.glow(x, y, r * 1.6, t, 0.35);
        }
        for (_, t) in steps(2) {
            let points = self.land_line(lerp(horizon, self.h * 0.86, t), self.unit * 0.09, 0.15);
            let hill = ground(&points, self.h * 1.05, true);
            self.lit(hill, green, 0.10 - 0.14 * t, -0.04 - 0.14 * t);
        }
        let kind = Kind::any(&mut self.dice);
        for (_, row) in steps(3) {
            let mut x = self.length(-0.05, 0.12);
            while x < self.w {
                let r = self.unit * lerp(0.055, 0.125, row) * self.dice.range(0.75, 1.2);
                let foot = self.h * lerp(0.84, 1.08, row);
                let tall = self.unit.min(self.h) * lerp(0.20, 0.50, row) * self.dice.range(0.7, 1.25);
                let turn = self.dice.range(-28.0, 28.0) + if self.dice.chance(0.25) { 90.0 } else { 0.0 };
                let bloom = brief.accent(turn).lit(self.dice.range(-0.05, 0.12));
                let bend = self.length(-0.06, 0.06);
                let flower = Flower {
                    kind,
                    r,
                    bloom,
                    green,
                };
                self.flower(flower, (x, foot), (x + bend, foot - tall));
                x += r * self.dice.range(1.5, 2.7);
            }
        }
    }

    pub(super) fn flower(&mut self, flower: Flower, foot: Spot, head: Spot) {
        let Flower {
            kind,
            r,
            bloom,
            green,
        } = flower;
        let bend = (foot.0, lerp(foot.1, head.1, 0.6));
        let stem = Frame::sheet().trace(foot.0, foot.1).quad(bend, head);
        self.line(stem.open(), green.lit(-0.12), r / self.unit * 0.10);
        for (angle, t) in [(-0.6, 0.35), (PI + 0.6, 0.55)] {
            let (x, y) = (lerp(foot.0, head.0, t * 0.6), lerp(foot.1, head.1, t));
            self.area(petal(x, y, r * 1.2, r * 0.26, angle), green.lit(0.02));
        }
        let (x, y) = head;
        let spin = self.dice.range(0.0, TAU);
        match kind {
            Kind::Daisy => {
                let count = self.dice.count(9, 13);
                self.petals(head, spin, count, (r, r * 0.24), bloom);
                self.area(circle(x, y, r * 0.30), tone(0.82, 0.15, 85.0));
            }
            Kind::Tulip => {
                for (angle, lift) in [(-2.15, -0.05), (-1.0, -0.05), (-1.57, 0.04)] {
                    let cup = petal(x, y + r * 0.45, r * 1.55, r * 0.50, angle);
                    self.lit(cup, bloom, lift + 0.07, lift - 0.06);
                }
            }
            Kind::Dahlia => {
                for (share, count, lift) in
                    [(1.0, 12, -0.08), (0.76, 10, 0.0), (0.52, 8, 0.07), (0.3, 6, 0.13)]
                {
                    let size = (r * share, r * share * 0.28);
                    self.petals(head, spin + share * 2.0, count, size, bloom.lit(lift));
                }
            }
            Kind::Anemone => {
                self.petals(head, spin, 5, (r * 1.05, r * 0.52), bloom);
                self.petals(head, spin, 5, (r * 0.6, r * 0.16), bloom.lit(-0.14));
                self.area(circle(x, y, r * 0.17), tone(0.90, 0.13, 95.0));
            }
        }
    }

    /// A ring of petals, each of a size (length, width).
    fn petals(&mut self, (x, y): Spot, spin: f32, count: u16, size: (f32, f32), t: Tone) {
        for i in 0..count {
            let angle = spin + TAU * f32::from(i) / f32::from(count);
            self.area(petal(x, y, size.0, size.1, angle), t);
        }
    }
}

//! Ridge behind ridge, from mountains to a moor.

use super::super::brief::Brief;
use super::super::canvas::Canvas;
use super::super::numbers::{lerp, steps};
use super::super::paths::ground;
use super::super::words::{Light, Prop};

impl Canvas {
    pub(super) fn scene_ridges(&mut self, brief: &Brief) {
        let horizon = self.down(0.42, 0.58);
        self.sky(brief, horizon);
        let layers = self.dice.count(5, 7);
        let rough = self.dice.range(0.15, 1.0);
        let house = brief.has(Prop::House) || self.dice.chance(0.25);
        if brief.has(Prop::Balloon) {
            let x = self.across(0.25, 0.75);
            self.balloon(brief, x, horizon * 0.40, self.unit * 0.12);
            self.balloon(brief, x + self.unit * 0.26, horizon * 0.62, self.unit * 0.05);
        }
        for (i, t) in steps(layers) {
            let nearest = t > 0.95;
            let base = lerp(horizon - self.unit * 0.02, self.h * 0.93, t.powf(1.2));
            let height = self.unit * lerp(0.26, 0.09, t) * self.dice.range(0.7, 1.2);
            let points = self.land_line(base, height, rough * lerp(1.0, 0.25, t));
            let here = brief.layer(t);
            // Mist gathers at the foot of every ridge.
            let foot = here.toward(brief.haze(), if nearest { 0.0 } else { 0.55 });
            let depth = base + self.unit * 0.28;
            let floor = depth.max(if nearest { self.h * 1.05 } else { 0.0 });
            self.shaded(ground(&points, floor, false), here, foot);
            if t < 0.95 {
                self.flat(self.strip(depth, self.h), self.pigment(foot));
            }
            if rough > 0.6 && i == 0 && brief.light != Light::Night {
                self.snow_caps(&points);
            }
            if t > 0.45 && t < 0.95 {
                let count = self.dice.count(6, 16);
                for _ in 0..count {
                    if let Some((x, y)) = self.dice.point(&points, 2, 126) {
                        let s = self.unit * lerp(0.02, 0.085, t) * self.dice.range(0.7, 1.2);
                        self.conifer(x, y + s * 0.15, s, here.lit(-0.07).vivid(1.1));
                    }
                }
            }
            if house
                && i + 2 == layers
                && let Some((x, y)) = self.dice.point(&points, 30, 98)
            {
                self.house(brief, x, y + self.unit * 0.02, self.unit * 0.11);
            }
            if nearest {
                self.grass(brief, &points);
            }
        }
        if brief.light != Light::Night && (brief.has(Prop::Birds) || self.dice.chance(0.55)) {
            let count = self.dice.count(3, 8);
            self.birds(horizon, count);
        }
    }
}

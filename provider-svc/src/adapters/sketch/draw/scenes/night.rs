//! A night sky over dark hills, perhaps with a lake.

use super::super::brief::Brief;
use super::super::canvas::Canvas;
use super::super::colour::tone;
use super::super::numbers::{lerp, steps};
use super::super::paths::{dash, ground, polyline};
use super::super::words::Prop;

impl Canvas {
    pub(super) fn scene_night(&mut self, brief: &Brief) {
        self.backdrop(brief.sky());
        let horizon = self.down(0.68, 0.78);
        let dir = self.galaxy(brief, horizon);
        self.stars(horizon, 260);
        let moon_x = self.w * (0.5 - dir * self.dice.range(0.12, 0.3));
        let moon_y = horizon * self.dice.range(0.22, 0.42);
        let r = self.length(0.07, 0.11);
        self.moon(moon_x, moon_y, r);
        if self.dice.chance(0.7) {
            self.shooting_star(horizon, dir);
        }
        let lake = self.dice.chance(0.5);
        self.dark_hills(brief, horizon, self.h * if lake { 0.83 } else { 0.96 });
        if lake {
            self.moonlit_lake(brief, moon_x);
        }
    }

    /// The band of the galaxy; gives the side to which it rises.
    fn galaxy(&mut self, brief: &Brief, horizon: f32) -> f32 {
        let (a, b) = (self.dice.range(-0.1, 0.3), self.dice.range(0.0, 0.35));
        let dir = self.dice.sign();
        let (from, to) = if dir > 0.0 { (a, 1.0 - b) } else { (1.0 - a, b) };
        for _ in 0..34 {
            let t = self.dice.unit();
            let x = self.w * lerp(from, to, t);
            let y = horizon * lerp(0.95, 0.0, t) + self.length(-0.05, 0.05);
            let r = self.length(0.08, 0.20);
            let hue = brief.far_hue + self.dice.range(-30.0, 50.0);
            self.glow(x, y, r, tone(0.70, 0.11, hue), 0.16);
        }
        dir
    }

    fn shooting_star(&mut self, horizon: f32, dir: f32) {
        let (x, y) = (self.across(0.2, 0.8), horizon * self.dice.range(0.1, 0.3));
        let length = self.unit * 0.2;
        let at = |t: f32| (x + dir * length * t, y + length * 0.4 * t);
        for (_, t) in steps(10) {
            let light = tone(0.97, 0.03, 90.0).faded(0.12 + 0.8 * t);
            let piece = polyline(&[at(t * 0.9), at(t * 0.9 + 0.1)]);
            self.line(piece, light, 0.001 + 0.003 * t);
        }
    }

    /// Three hills with trees, and a lighted house on the nearest or where the prompt names one.
    fn dark_hills(&mut self, brief: &Brief, horizon: f32, near: f32) {
        for (_, t) in steps(3) {
            let base = lerp(horizon, near, t);
            let rough = self.dice.range(0.3, 0.9) * (1.0 - t * 0.5);
            let points = self.land_line(base, self.unit * lerp(0.16, 0.08, t), rough);
            let here = brief.layer(0.3 + 0.65 * t);
            self.shaded(ground(&points, self.h * 1.05, false), here, here.lit(-0.03));
            if t < 0.4 {
                continue;
            }
            for _ in 0..9 {
                if let Some((x, y)) = self.dice.point(&points, 0, 128) {
                    let s = self.length(0.05, 0.13);
                    self.conifer(x, y + s * 0.2, s, here.lit(-0.02));
                }
            }
            if brief.has(Prop::House) || t > 0.9 {
                let at = self.dice.point(&points, 40, 88);
                let (x, y) = at.unwrap_or((self.w / 2.0, base));
                self.house(brief, x, y + self.unit * 0.015, self.unit * 0.085);
            }
        }
    }

    fn moonlit_lake(&mut self, brief: &Brief, moon_x: f32) {
        let shore = self.h * 0.86;
        let water = self.strip(shore, self.h - shore + 2.0);
        self.shaded(water, brief.layer(0.35), brief.layer(0.8));
        for _ in 0..26 {
            let y = lerp(shore, self.h, self.dice.unit());
            let half = self.length(0.01, 0.06);
            let x = moon_x + self.length(-0.06, 0.06);
            self.line(dash(x, y, half), tone(0.9, 0.05, 95.0).faded(0.5), 0.004);
        }
    }
}

//! A city: three rows of buildings at a quay or a street with lamps.

use super::super::brief::Brief;
use super::super::canvas::Canvas;
use super::super::colour::{Tone, tone};
use super::super::numbers::{lerp, steps};
use super::super::paths::{circle, dash, polygon, polyline, rect};
use super::super::words::Light;

impl Canvas {
    pub(super) fn scene_skyline(&mut self, brief: &Brief) {
        let horizon = self.down(0.72, 0.82);
        self.sky(brief, horizon * 0.8);
        // The share of windows with light.
        let shining = match brief.light {
            Light::Night => 0.55,
            Light::Dusk => 0.38,
            Light::Mist => 0.25,
            Light::Day => 0.10,
        };
        let quay = self.dice.chance(0.6);
        let floor = self.h * if quay { 0.86 } else { 0.97 };
        for (row, t) in steps(3) {
            let here = brief.layer(0.22 + 0.62 * t);
            let mut x = -self.unit * 0.05 * self.dice.unit();
            while x < self.w {
                let wide = self.length(0.07, 0.15);
                let share = self.dice.unit();
                let tall = (self.unit * lerp(0.50, 0.24, t)).min(self.h * 0.7) * (0.45 + share * share * 0.9);
                let top = floor - tall - self.unit * (1.0 - t) * 0.10;
                let wall = here
                    .lit(self.dice.range(-0.03, 0.03))
                    .turned(self.dice.range(-14.0, 14.0));
                self.roof(x, wide, top, wall);
                self.lit(rect(x, top, wide, self.h - top), wall, 0.05, -0.05);
                if row > 0 {
                    self.windows(brief, (x, wide), (top, floor), shining);
                }
                x += wide * self.dice.range(0.82, 1.12);
            }
        }
        if quay {
            self.reflections(brief, floor, shining);
        } else {
            self.street(brief, floor);
        }
    }

    /// One of five roofs or none, between `x` and `x + wide`.
    fn roof(&mut self, x: f32, wide: f32, top: f32, wall: Tone) {
        let (left, mid, right) = ((x, top + 1.0), x + wide / 2.0, (x + wide, top + 1.0));
        match self.dice.count(0, 5) {
            0 => self.area(polygon(&[left, (mid, top - wide * 0.6), right]), wall.lit(-0.05)),
            1 => {
                let tip = (mid, top - wide * 0.8);
                self.line(polyline(&[(mid, top), tip]), wall.lit(-0.06), 0.004);
                self.area(circle(tip.0, tip.1, self.unit * 0.007), tone(0.65, 0.2, 27.0));
            }
            2 => self.area(circle(mid, top, wide * 0.42), wall.lit(-0.04)),
            3 => {
                let attic = rect(x + wide * 0.18, top - wide * 0.25, wide * 0.64, wide * 0.3);
                self.area(attic, wall.lit(-0.02));
            }
            4 => self.area(polygon(&[left, (x, top - wide * 0.45), right]), wall.lit(0.02)),
            _ => {}
        }
    }

    /// Windows of a wall, given by (left edge, width) and (top, foot).
    fn windows(&mut self, brief: &Brief, (x, wide): (f32, f32), (top, foot): (f32, f32), shining: f32) {
        let columns = self.dice.count(2, 5);
        let cell = wide / (f32::from(columns) + 0.5);
        let tall = cell * self.dice.range(1.0, 1.6);
        let blind = brief.layer(if brief.is_dark() { 0.65 } else { 0.3 }).faded(0.55);
        let mut y = top + tall * 0.6;
        while y + tall * 0.6 < foot {
            for (i, _) in steps(columns) {
                let left = x + cell * (f32::from(i) + 0.45);
                let shines = self.dice.chance(shining);
                if !shines && self.dice.chance(0.25) {
                    continue;
                }
                let warm = brief.lamp().turned(self.dice.range(-25.0, 15.0));
                let pane = if shines {
                    self.pigment_lamp(warm)
                } else {
                    self.pigment(blind)
                };
                self.flat(rect(left, y, cell * 0.56, tall * 0.55), pane);
            }
            y += tall;
        }
    }

    fn reflections(&mut self, brief: &Brief, floor: f32, shining: f32) {
        let water = brief.layer(0.7).vivid(1.2);
        self.lit(self.strip(floor, self.h - floor + 2.0), water, 0.09, -0.08);
        for _ in 0..70 {
            let (x, y) = (self.dice.unit() * self.w, lerp(floor, self.h, self.dice.unit()));
            let half = self.length(0.008, 0.04);
            let warm = self.dice.chance(shining + 0.1);
            let t = if warm { brief.lamp() } else { brief.sky()[1] };
            self.line(dash(x, y, half), t.faded(0.5), 0.0035);
        }
    }

    fn street(&mut self, brief: &Brief, floor: f32) {
        let road = self.strip(floor - self.unit * 0.01, self.h);
        self.shaded(road, brief.layer(0.95), brief.layer(1.0));
        let mut x = self.unit * 0.04;
        while x < self.w {
            let post = polyline(&[(x, floor), (x, floor - self.unit * 0.09)]);
            self.line(post, tone(0.2, 0.02, self.hue), 0.005);
            let lamp = floor - self.unit * 0.095;
            self.area(circle(x, lamp, self.unit * 0.011), brief.lamp());
            self.glow(x, lamp, self.unit * 0.07, brief.lamp(), 0.5);
            x += self.unit * 0.22;
        }
    }
}

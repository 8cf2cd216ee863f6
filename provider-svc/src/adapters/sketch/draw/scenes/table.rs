//! A still life: a table before a window, with a vase, a cup and fruit.

use super::super::brief::Brief;
use super::super::canvas::Canvas;
use super::super::colour::tone;
use super::super::frame::Frame;
use super::super::numbers::{lerp, steps};
use super::super::paths::{dash, oval, polyline, rect};
use super::garden::{Flower, Kind};

impl Canvas {
    pub(super) fn scene_table(&mut self, brief: &Brief) {
        let edge = self.down(0.60, 0.68);
        let wall = if brief.is_dark() {
            tone(0.30, 0.06, brief.hue)
        } else {
            tone(0.86, 0.055, brief.hue)
        };
        self.backdrop([wall.lit(-0.04), wall, wall.lit(0.04)]);
        self.window(brief, edge);
        self.table_top(brief, edge);
        let (middle, floor) = (self.w / 2.0, lerp(edge, self.h, 0.42));
        let (side, unit) = (self.dice.sign(), self.unit);
        self.vase(
            brief,
            middle - side * unit * 0.27,
            floor - unit * 0.06,
            unit * 0.34,
        );
        self.cup(
            brief,
            middle + side * unit * 0.04,
            floor + unit * 0.02,
            unit * 0.25,
        );
        let count = self.dice.count(3, 5);
        for (i, t) in steps(count) {
            let x = middle + side * unit * lerp(0.24, 0.44, t);
            let y = floor + unit * (0.01 + 0.05 * f32::from(i % 2));
            let r = self.length(0.05, 0.068);
            self.fruit(brief, x, y, r);
        }
    }

    fn window(&mut self, brief: &Brief, edge: f32) {
        let (x, wide) = (self.across(0.08, 0.5), self.unit * 0.34);
        let y = self.h * 0.08;
        let tall = (edge - y) * 0.72;
        let white = tone(0.95, 0.015, 80.0);
        let frame = wide * 0.06;
        let outer = rect(x - frame, y - frame, wide * 1.12, tall + wide * 0.12);
        self.area(outer, white);
        let [zenith, _, haze] = brief.sky();
        self.shaded(rect(x, y, wide, tall), zenith, haze);
        let (cx, cy) = (x + wide / 2.0, y + tall / 2.0);
        self.line(polyline(&[(cx, y), (cx, y + tall)]), white, 0.014);
        self.line(polyline(&[(x, cy), (x + wide, cy)]), white, 0.014);
    }

    fn table_top(&mut self, brief: &Brief, edge: f32) {
        let dark = if brief.is_dark() { -0.2 } else { 0.0 };
        let wood = tone(0.60, 0.085, 58.0 + self.dice.range(-15.0, 15.0)).lit(dark);
        self.lit(self.strip(edge, self.h - edge + 2.0), wood, 0.05, -0.13);
        for _ in 0..7 {
            let y = lerp(edge, self.h, self.dice.unit());
            let x = self.w * self.dice.unit();
            let half = self.length(0.08, 0.3);
            self.line(dash(x, y, half), wood.lit(-0.08).faded(0.6), 0.003);
        }
    }

    fn shadow(&mut self, x: f32, y: f32, r: f32) {
        self.flat(oval(x, y, r, r * 0.16), tone(0.15, 0.03, self.hue).faded(0.28));
    }

    fn cup(&mut self, brief: &Brief, x: f32, y: f32, s: f32) {
        let cup = Frame::new(x, y, s);
        let glaze = brief.accent(0.0);
        self.shadow(x, y, s * 0.75);
        self.area(cup.oval(0.0, -0.03, 0.66, 0.10), tone(0.95, 0.02, 80.0));
        let handle = cup.circle(0.47, -0.38, 0.17);
        self.line(handle, glaze.lit(-0.05), s / self.unit * 0.085);
        let bowl = cup
            .trace(-0.45, -0.68)
            .line((0.45, -0.68))
            .quad((0.45, -0.05), (0.2, -0.03))
            .line((-0.2, -0.03))
            .quad((-0.45, -0.05), (-0.45, -0.68));
        self.lit(bowl.closed(), glaze, 0.06, -0.14);
        self.area(cup.oval(0.0, -0.68, 0.45, 0.11), glaze.lit(0.10));
        self.area(cup.oval(0.0, -0.67, 0.38, 0.08), tone(0.35, 0.06, 50.0));
        for dx in [-0.16, 0.04, 0.22] {
            let sway = s * self.dice.range(0.06, 0.12);
            let (left, top) = (x + s * dx, y - s * self.dice.range(1.25, 1.5));
            let steam = Frame::sheet().trace(left, y - s * 0.78).cubic(
                (left + sway, y - s * 0.95),
                (left - sway, y - s * 1.1),
                (left + sway * 0.4, top),
            );
            let white = tone(0.98, 0.005, 80.0).faded(0.6);
            self.line(steam.open(), white, s / self.unit * 0.04);
        }
    }

    fn vase(&mut self, brief: &Brief, x: f32, y: f32, s: f32) {
        self.shadow(x, y, s * 0.34);
        let kind = Kind::any(&mut self.dice);
        for dx in [-0.34, 0.30, 0.0] {
            let head = (x + s * dx, y - s * self.dice.range(1.10, 1.32));
            let flower = Flower {
                kind,
                r: s * 0.19,
                bloom: brief.accent(self.dice.range(90.0, 200.0)),
                green: tone(0.5, 0.10, 145.0),
            };
            self.flower(flower, (x + s * dx * 0.2, y - s * 0.62), head);
        }
        let clay = tone(0.62, 0.09, brief.hue + 20.0);
        let body = Frame::new(x, y, s)
            .trace(-0.13, -0.72)
            .cubic((-0.10, -0.52), (-0.36, -0.42), (-0.27, -0.15))
            .quad((-0.24, 0.0), (-0.14, 0.0))
            .line((0.14, 0.0))
            .quad((0.24, 0.0), (0.27, -0.15))
            .cubic((0.36, -0.42), (0.10, -0.52), (0.13, -0.72));
        self.lit(body.closed(), clay, 0.08, -0.14);
    }

    fn fruit(&mut self, brief: &Brief, x: f32, y: f32, r: f32) {
        let fruit = Frame::new(x, y, r);
        let hues = [28.0, 55.0, 95.0, 130.0, brief.accent_hue];
        let hue = hues.get(usize::from(self.dice.count(0, 4))).copied();
        let skin = tone(0.68, 0.165, hue.unwrap_or(28.0));
        self.shadow(x, y, r * 1.15);
        self.lit(fruit.circle(0.0, -0.92, 1.0), skin, 0.08, -0.14);
        let stalk = fruit.polyline(&[(0.0, -1.8), (0.15, -2.2)]);
        self.line(stalk, tone(0.35, 0.05, 60.0), 0.005);
        let leaf = fruit.petal(0.1, -2.0, 0.7, 0.18, -0.4);
        self.area(leaf, tone(0.52, 0.12, 145.0));
        if !self.medium.is_line_art() {
            let shine = fruit.oval(-0.38, -1.3, 0.2, 0.13);
            self.flat(shine, tone(0.98, 0.01, 90.0).faded(0.5));
        }
    }
}

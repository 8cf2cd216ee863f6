//! A desert: dunes with a light and a dark side, and cactuses.

use super::super::brief::Brief;
use super::super::canvas::Canvas;
use super::super::colour::{Tone, tone};
use super::super::frame::Frame;
use super::super::numbers::{lerp, steps};
use super::super::paths::{ground, oval, rounded};
use super::super::words::Prop;

impl Canvas {
    pub(super) fn scene_dunes(&mut self, brief: &Brief) {
        let horizon = self.down(0.42, 0.54);
        self.sky(brief, horizon);
        if self.dice.chance(0.5) {
            let mesa = self.land_line(horizon, self.unit * 0.10, 0.6);
            let mesa = ground(&mesa, horizon + self.unit * 0.1, false);
            self.shaded(mesa, brief.layer(0.15), brief.layer(0.05));
        }
        let lit_sand = if brief.is_dark() {
            tone(0.45, 0.07, brief.hue)
        } else {
            tone(0.85, 0.10, brief.hue + 12.0)
        };
        let layers = self.dice.count(4, 6);
        for (_, t) in steps(layers) {
            let base = lerp(horizon + self.unit * 0.02, self.h * 0.88, t);
            let tall = self.unit * lerp(0.07, 0.20, t);
            self.dune(base, tall, lit_sand.toward(brief.layer(0.7), t * 0.35));
            if t > 0.2 && self.dice.chance(0.75) {
                let x = self.across(0.08, 0.92);
                self.cactus(brief, x, base + tall * 0.55, self.unit * lerp(0.08, 0.24, t));
            }
        }
        if brief.has(Prop::Balloon) {
            self.balloon(brief, self.w * 0.3, horizon * 0.45, self.unit * 0.10);
        }
    }

    fn dune(&mut self, base: f32, tall: f32, sand: Tone) {
        let sheet = Frame::sheet();
        let peak = self.across(0.15, 0.85);
        let crest = base - tall;
        let left = -self.across(0.1, 0.4);
        let right = self.across(1.1, 1.4);
        let (foot, floor) = (base + tall * 0.3, self.h * 1.1);
        // The slope to the right, from the crest: two control points and its end.
        let upper = (lerp(peak, right, 0.25), crest + tall * 0.2);
        let lower = (lerp(peak, right, 0.5), base);
        let whole = sheet
            .trace(left, foot)
            .cubic(
                (lerp(left, peak, 0.6), base + tall * 0.25),
                (lerp(left, peak, 0.8), crest),
                (peak, crest),
            )
            .cubic(upper, lower, (right, foot))
            .line((right, floor))
            .line((left, floor));
        self.lit(whole.closed(), sand, 0.05, -0.10);
        // The lee side lies in shadow, its edge winding down from the crest.
        let sway = self.length(0.08, 0.2);
        let deep = base + tall * 1.7;
        let lee = sheet
            .trace(peak, crest)
            .cubic(
                (peak + sway, crest + tall * 0.6),
                (peak - sway, base + tall * 0.5),
                (peak + sway * 0.8, deep),
            )
            .line((right, deep))
            .line((right, foot))
            .cubic(lower, upper, (peak, crest));
        self.shaded(lee.closed(), sand.lit(-0.19).turned(-22.0), sand.lit(-0.10));
    }

    fn cactus(&mut self, brief: &Brief, x: f32, y: f32, s: f32) {
        let green = tone(if brief.is_dark() { 0.32 } else { 0.46 }, 0.085, 150.0);
        let thick = s * 0.17;
        let shade = self.pigment(tone(0.25, 0.04, brief.hue)).faded(0.35);
        self.flat(oval(x + s * 0.16, y, s * 0.4, s * 0.045), shade);
        let (arm, round) = (thick * 0.8, thick * 0.4);
        for (side, low, tall) in [(1.0, 0.48, 0.30), (-1.0, 0.36, 0.32)] {
            let far = x + side * s * 0.30;
            let (left, reach) = (x.min(far) - thick * 0.3, s * 0.30 + thick * 0.6);
            self.area(rounded(left, y - s * low, reach, arm, round), green);
            let (top, height) = (y - s * (low + tall) + thick * 0.5, s * tall + thick * 0.3);
            self.area(rounded(far - round, top, arm, height, round), green);
        }
        let body = rounded(x - thick / 2.0, y - s, thick, s * 1.02, thick / 2.0);
        self.lit(body, green, 0.05, -0.05);
        self.area(
            Frame::new(x, y - s, thick).circle(0.0, 0.0, 0.28),
            brief.accent(0.0),
        );
    }
}

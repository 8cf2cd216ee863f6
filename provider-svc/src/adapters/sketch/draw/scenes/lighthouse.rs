//! A headland with a lighthouse and the keeper's house.

use super::super::brief::Brief;
use super::super::canvas::Canvas;
use super::super::colour::{Tone, tone};
use super::super::frame::Frame;
use super::super::numbers::{lerp, steps};
use super::super::paths::{polygon, rect};
use super::super::words::{Light, Medium};

const RED: Tone = tone(0.58, 0.19, 27.0);
const WHITE: Tone = tone(0.95, 0.015, 80.0);

impl Canvas {
    /// A cliff that comes in from the right (`side` 1) or left (-1), with all that stands on it.
    pub(super) fn headland(&mut self, brief: &Brief, horizon: f32, side: f32) {
        let edge = if side > 0.0 {
            self.w + self.unit * 0.05
        } else {
            -self.unit * 0.05
        };
        let (top, foot) = (horizon - self.unit * 0.07, horizon + self.unit * 0.16);
        let cliff = Frame::new(edge, top, self.unit).facing(-side);
        let shape = [
            (edge, foot),
            cliff.at(0.0, -0.02),
            cliff.at(0.22, 0.0),
            cliff.at(0.40, 0.005),
            cliff.at(0.47, 0.05),
            cliff.at(0.54, 0.08),
            (cliff.at(0.58, 0.0).0, foot),
        ];
        self.lit(polygon(&shape), brief.layer(0.75), 0.06, -0.08);
        let (x, _) = cliff.at(0.32, 0.0);
        let tall = (self.unit * 0.36).min(top * 0.86);
        self.lighthouse(brief, x, top, tall, side);
        self.house(brief, x + side * tall * 0.34, top + tall * 0.02, tall * 0.26);
    }

    fn lighthouse(&mut self, brief: &Brief, x: f32, foot: f32, tall: f32, side: f32) {
        let lamp_y = foot - tall;
        self.beams(brief, x, lamp_y, side);
        // Half the width at the foot and below the lamp.
        let (base, cap) = (tall * 0.13, tall * 0.085);
        let at = |t: f32| (lerp(base, cap, t), lerp(foot, lamp_y + tall * 0.07, t));
        for (i, t) in steps(5).take(4) {
            let ((w0, y0), (w1, y1)) = (at(t), at(t + 0.25));
            let stripe = [(x - w0, y0 + 0.5), (x + w0, y0 + 0.5), (x + w1, y1), (x - w1, y1)];
            self.area(polygon(&stripe), if i % 2 == 0 { WHITE } else { RED });
        }
        let gallery = rect(x - cap * 1.45, lamp_y + tall * 0.055, cap * 2.9, tall * 0.025);
        self.area(gallery, tone(0.25, 0.03, self.hue));
        let eaves = lamp_y - tall * 0.025;
        self.area(rect(x - cap * 0.8, eaves, cap * 1.6, tall * 0.08), brief.lamp());
        let roof = [(x - cap, eaves), (x + cap, eaves), (x, lamp_y - tall * 0.10)];
        self.area(polygon(&roof), RED);
        self.glow(x, lamp_y + tall * 0.02, tall * 0.35, brief.lamp(), 0.8);
    }

    /// The two beams of the lamp, except by day.
    fn beams(&mut self, brief: &Brief, x: f32, y: f32, side: f32) {
        if brief.light == Light::Day || self.medium == Medium::Woodcut {
            return;
        }
        let beam = brief.lamp().faded(if brief.is_dark() { 0.34 } else { 0.2 });
        for (dir, spread) in [(-side, 0.10), (side, 0.07)] {
            let far = x + dir * self.w;
            let (up, down) = (y - self.w * spread, y + self.w * spread * 0.4);
            self.flat(polygon(&[(x, y), (far, up), (far, down)]), beam);
        }
    }
}

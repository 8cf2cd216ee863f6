//! The sea: layers of waves, with a boat, a lighthouse, a balloon or gulls.

use super::super::brief::Brief;
use super::super::canvas::Canvas;
use super::super::colour::Tone;
use super::super::numbers::{lerp, steps, whole_u16};
use super::super::paths::{Spot, circle, ground, polyline};
use super::super::words::{Light, Medium, Prop};
use std::f32::consts::TAU;

/// Points on the crest of one wave.
const POINTS: u16 = 140;

impl Canvas {
    pub(super) fn scene_waves(&mut self, brief: &Brief) {
        let horizon = self.down(0.36, 0.50);
        self.sky(brief, horizon);
        let lighthouse = brief.has(Prop::Lighthouse);
        if self.dice.chance(0.6) && !lighthouse {
            let far = self.land_line(horizon, self.unit * 0.07, 0.5);
            let shore = ground(&far, horizon + self.unit * 0.08, false);
            self.shaded(shore, brief.layer(0.05), brief.layer(0.0));
        }
        let floor = self.h + self.unit * 0.1;
        let water = self.strip(horizon, floor - horizon);
        self.shaded(water, sea(brief, 0.0).lit(0.08), sea(brief, 0.2));
        let layers = self.dice.count(6, 9);
        let named_boat = brief.has(Prop::Boat);
        let sails = named_boat || (self.dice.chance(0.5) && !lighthouse);
        let boat_x = self.across(0.25, 0.75);
        let cliff_side = self.dice.sign();
        for (i, t) in steps(layers) {
            if i == 2 && lighthouse {
                self.headland(brief, horizon, cliff_side);
            }
            if i == 2 && sails {
                let x = if lighthouse {
                    self.w * (0.5 - cliff_side * 0.2)
                } else {
                    boat_x
                };
                let size = self.unit * if named_boat { 0.17 } else { 0.10 };
                self.boat(brief, x, lerp(horizon, self.h, 0.15), size);
            }
            self.wave(brief, horizon, floor, t);
        }
        if brief.has(Prop::Balloon) {
            self.balloon(brief, self.w * 0.3, horizon * 0.45, self.unit * 0.10);
        }
        if brief.light != Light::Night && (brief.has(Prop::Birds) || self.dice.chance(0.6)) {
            let count = self.dice.count(3, 7);
            self.birds(horizon, count);
        }
    }

    /// A wave; `t` goes from the horizon (0) to the near edge (1).
    fn wave(&mut self, brief: &Brief, horizon: f32, floor: f32, t: f32) {
        let y = lerp(horizon, self.h, 0.05 + 0.95 * t.powf(1.35));
        let size = self.unit * lerp(0.012, 0.085, t);
        let length = self.unit * lerp(0.16, 0.62, t);
        let (phase, lean) = (self.dice.range(0.0, TAU), self.dice.range(0.3, 0.6));
        let dir = if self.dice.chance(0.8) { 1.0 } else { -1.0 };
        let crest: Vec<Spot> = steps(POINTS)
            .map(|(_, s)| {
                let x = lerp(-0.1, 1.1, s) * self.w;
                let a = x / length * TAU + phase;
                let swell = (a * 0.37 + phase).sin() * 0.5;
                // Crests are pointed and lean forward, troughs are wide.
                let crest = 1.0 - (a / 2.0).sin().abs().powf(0.8) * 2.0;
                (x + dir * lean * size * crest, y - size * (crest * 0.55 + swell))
            })
            .collect();
        self.lit(ground(&crest, floor, false), sea(brief, t), 0.07, -0.05);
        let edge = brief.haze().lit(0.06).faded(0.35 + 0.4 * t);
        self.line(polyline(&crest), edge, lerp(0.0018, 0.006, t));
        if t > 0.3 {
            self.foam(brief, &crest, size, t);
        }
    }

    fn foam(&mut self, brief: &Brief, crest: &[Spot], size: f32, t: f32) {
        let foam = self.pigment(brief.haze().lit(0.05).faded(0.6));
        for (_, s) in steps(26) {
            let at = usize::from(whole_u16(s * f32::from(POINTS - 1)));
            let (x, y) = crest.get(at).copied().unwrap_or_default();
            let r = self.length(0.001, 0.0055) * t;
            let dx = self.dice.range(-1.0, 1.0) * size;
            let dy = self.dice.range(0.1, 0.5) * size;
            if self.medium != Medium::Ink {
                self.flat(circle(x + dx, y + dy, r), foam);
            }
        }
    }
}

/// Water from far away (0) to near (1).
fn sea(brief: &Brief, t: f32) -> Tone {
    brief.layer(0.18 + t * 0.72).vivid(1.35)
}

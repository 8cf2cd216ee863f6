//! The line of the land, and what grows along it.

use super::super::brief::Brief;
use super::super::canvas::Canvas;
use super::super::colour::tone;
use super::super::frame::Frame;
use super::super::numbers::{lerp, steps, whole_u16};
use super::super::paths::{Spot, circle, polygon};
use super::super::words::Medium;
use std::f32::consts::TAU;

impl Canvas {
    /// A jagged or rolling line across the sheet, of 129 points; `rough` adds detail.
    pub(super) fn land_line(&mut self, base: f32, height: f32, rough: f32) -> Vec<Spot> {
        let waves: Vec<(f32, f32, f32)> = (0u8..6)
            .map(|octave| {
                let k = 2f32.powi(i32::from(octave));
                let strength = if octave < 2 { 1.0 / k } else { rough / k };
                (self.dice.range(0.7, 1.3) * k, self.dice.range(0.0, TAU), strength)
            })
            .collect();
        // A wide sheet shows more of the land, not a stretched one.
        let span = self.w / self.unit.max(1.0);
        steps(129)
            .map(|(_, t)| {
                let waves = waves.iter().map(|(k, phase, strength)| {
                    let wave = (t * span * k * 2.6 + phase).sin();
                    // Folding a sine gives peaks; leaving it gives hills.
                    lerp(wave, 1.0 - 2.0 * wave.abs(), rough.min(1.0)) * strength
                });
                let sum: f32 = waves.sum();
                (lerp(-0.02, 1.02, t) * self.w, base - height * sum * 0.5)
            })
            .collect()
    }

    /// Snow on the parts of a line that lie in its highest third, with a ragged lower edge.
    pub(super) fn snow_caps(&mut self, points: &[Spot]) {
        let top = points.iter().map(|p| p.1).fold(f32::MAX, f32::min);
        let low = points.iter().map(|p| p.1).fold(f32::MIN, f32::max);
        let line = lerp(top, low, 0.30);
        for run in points.split(|p| p.1 > line) {
            if let (Some(first), Some(last)) = (run.first(), run.last())
                && run.len() > 3
            {
                let mut cap = run.to_vec();
                let zig = f32::from(whole_u16((last.0 - first.0) / (self.unit * 0.03)).clamp(2, 40));
                let mut i = zig;
                while i > 0.0 {
                    let deep = !whole_u16(i).is_multiple_of(2);
                    let depth = if deep { 0.022 } else { -0.004 };
                    cap.push((lerp(first.0, last.0, (i - 0.5) / zig), line + self.unit * depth));
                    i -= 1.0;
                }
                self.flat(polygon(&cap), tone(0.97, 0.01, 240.0).faded(0.85));
            }
        }
    }

    /// Blades and heads of flowers in the foreground.
    pub(super) fn grass(&mut self, brief: &Brief, points: &[Spot]) {
        let near = brief.layer(1.0);
        for _ in 0..130 {
            let Some((x, top)) = self.dice.point(points, 0, 128) else {
                continue;
            };
            let x = x + self.length(-0.02, 0.02);
            let y = lerp(top, self.h, self.dice.unit());
            let blade = Frame::new(x, y, self.length(0.02, 0.06));
            let lean = self.dice.range(-0.4, 0.4);
            let lift = self.dice.range(0.0, 0.16);
            let path = blade.trace(0.0, 0.2).quad((0.0, -0.5), (lean, -1.0)).open();
            self.line(path, near.lit(lift).vivid(1.4), 0.003);
            if self.dice.chance(0.4) && self.medium != Medium::Woodcut {
                let (x, y) = blade.at(lean, -1.0);
                let r = self.length(0.003, 0.008);
                self.area(circle(x, y, r), brief.accent(lift * 200.0));
            }
        }
    }
}

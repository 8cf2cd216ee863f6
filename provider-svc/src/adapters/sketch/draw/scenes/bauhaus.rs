//! A poster of plain shapes: tiles, or one composition.

use super::super::brief::Brief;
use super::super::canvas::Canvas;
use super::super::colour::{Tone, tone};
use super::super::frame::Frame;
use super::super::numbers::{steps, whole_u16};
use super::super::paths::{Spot, rect, wedge};
use std::f32::consts::{PI, TAU};
use tiny_skia::Path;

impl Canvas {
    pub(super) fn scene_bauhaus(&mut self, brief: &Brief) {
        let paper = if brief.is_dark() {
            tone(0.22, 0.03, brief.hue)
        } else {
            tone(0.94, 0.025, 85.0)
        };
        self.backdrop([paper, paper, paper]);
        let inks = [
            tone(0.60, 0.18, brief.accent_hue),
            tone(0.45, 0.12, brief.hue),
            tone(0.82, 0.13, brief.accent_hue + 60.0),
            tone(0.26, 0.03, brief.hue),
            tone(0.72, 0.09, brief.far_hue),
        ];
        if self.dice.chance(0.5) {
            self.tiles(&inks, paper)
        } else {
            self.composition(inks, paper)
        }
    }

    fn tiles(&mut self, inks: &[Tone], paper: Tone) {
        let cell = self.unit / f32::from(self.dice.count(4, 5));
        let columns = whole_u16((self.w / cell).ceil());
        let rows = whole_u16((self.h / cell).ceil());
        for row in 0..rows {
            for column in 0..columns {
                let (x, y) = (f32::from(column) * cell, f32::from(row) * cell);
                let back = self.ink_of(inks, paper);
                let front = self.other_ink(inks, back);
                self.area(rect(x, y, cell + 0.5, cell + 0.5), back);
                self.tile((x, y), cell, inks, front);
            }
        }
    }

    /// One of six figures in a cell.
    fn tile(&mut self, (x, y): Spot, cell: f32, inks: &[Tone], front: Tone) {
        let tile = Frame::new(x, y, cell);
        let turn = f32::from(self.dice.count(0, 3)) * PI / 2.0;
        match self.dice.count(0, 6) {
            0 | 1 => {
                let (mx, my) = tile.at(0.5, 0.5);
                let (dx, dy) = ((turn + PI * 1.25).cos(), (turn + PI * 1.25).sin());
                let corner = (mx + dx * cell * 0.707, my + dy * cell * 0.707);
                let quarter = |r: f32| wedge(corner.0, corner.1, r, turn, turn + PI / 2.0);
                self.area(quarter(cell), front);
                let third = self.other_ink(inks, front);
                self.area(quarter(cell * 0.5), third);
            }
            2 => {
                self.area(tile.circle(0.5, 0.5, 0.40), front);
                let third = self.other_ink(inks, front);
                self.area(tile.circle(0.5, 0.5, 0.17), third);
            }
            3 => self.area(tile.wedge(0.5, 0.5, 0.5, turn, turn + PI), front),
            4 => {
                for i in 0u8..4 {
                    let top = y + cell * (f32::from(i) * 0.25 + 0.06);
                    self.area(rect(x, top, cell, cell * 0.12), front);
                }
            }
            5 => {
                let triangle = if turn < 2.0 {
                    [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0)]
                } else {
                    [(0.0, 0.0), (1.0, 1.0), (0.0, 1.0)]
                };
                self.area(tile.polygon(&triangle), front);
            }
            _ => {
                for i in 0u8..9 {
                    let (a, b) = (f32::from(i % 3), f32::from(i / 3));
                    let dot = tile.circle(0.2 + a * 0.3, 0.2 + b * 0.3, 0.08);
                    self.area(dot, front);
                }
            }
        }
    }

    fn ink_of(&mut self, inks: &[Tone], fallback: Tone) -> Tone {
        let last = u16::try_from(inks.len()).unwrap_or(u16::MAX);
        inks.get(usize::from(self.dice.count(0, last)))
            .copied()
            .unwrap_or(fallback)
    }

    fn other_ink(&mut self, inks: &[Tone], not: Tone) -> Tone {
        let fresh: Vec<Tone> = inks.iter().copied().filter(|ink| *ink != not).collect();
        let last = u16::try_from(fresh.len().saturating_sub(1)).unwrap_or(0);
        fresh
            .get(usize::from(self.dice.count(0, last)))
            .copied()
            .unwrap_or(not)
    }

    fn composition(&mut self, inks: [Tone; 5], paper: Tone) {
        let s = self.unit;
        let [signal, calm, bright, ink, soft] = inks;
        let (cx, cy) = (self.across(0.36, 0.64), self.down(0.36, 0.58));
        let middle = Frame::new(cx, cy, s);
        let lean = self.dice.range(0.25, 0.75) * self.dice.sign();
        self.area(bar((cx, cy + s * 0.22), s * 3.0, s * 0.26, lean), soft);
        let r = self.dice.range(0.22, 0.30);
        self.area(middle.circle(0.0, 0.0, r), signal);
        self.area(middle.wedge(0.0, 0.0, 0.34, lean, lean + PI), calm);
        self.area(middle.circle(0.0, 0.0, 0.11), paper);
        for i in (0u8..5).map(f32::from) {
            let shift = s * (0.05 + 0.045 * i);
            let at = (cx - shift * lean.sin(), cy - s * 0.38 + shift * lean.cos());
            self.area(bar(at, s * (1.1 - 0.15 * i), s * 0.016, lean), ink);
        }
        let half = middle.facing(self.dice.sign());
        let triangle = [(0.0, -0.16), (0.17, 0.14), (-0.17, 0.14)];
        self.area(half.beside(0.27, 0.20).polygon(&triangle), bright);
        let dots = half.beside(-0.36, 0.16);
        for i in 0u8..16 {
            let (a, b) = (f32::from(i % 4), f32::from(i / 4));
            self.area(dots.circle(a * 0.05 - 0.075, b * 0.05 - 0.075, 0.014), ink);
        }
        let rings = half.beside(0.30, -0.26);
        for ((i, _), t) in steps(3).zip([signal, calm, bright]) {
            let ring = rings.wedge(0.0, 0.0, 0.05 + 0.045 * f32::from(i), 0.0, TAU);
            self.line(ring, t, 0.014);
        }
        self.area(rings.circle(0.0, 0.0, 0.035), signal);
        let (bx, by) = half.at(-0.42, -0.36);
        let block = s * 0.07;
        for (i, t) in (0u8..4).zip([ink, bright, bright, ink]) {
            let (x, y) = (bx + block * f32::from(i % 2), by + block * f32::from(i / 2));
            self.area(rect(x, y, block, block), t);
        }
    }
}

/// A bar around a middle, turned by an angle.
fn bar((x, y): Spot, length: f32, thick: f32, angle: f32) -> Option<Path> {
    let (a, b) = (length / 2.0, thick / 2.0);
    Frame::new(x, y, 1.0)
        .turned(angle)
        .polygon(&[(-a, -b), (a, -b), (a, b), (-a, b)])
}

//! The head of a person: one of four kinds of hair or a hat, sometimes glasses.

use super::super::brief::Brief;
use super::super::canvas::Canvas;
use super::super::colour::{Tone, tone};
use super::super::frame::Frame;
use super::super::paths::Spot;
use std::f32::consts::{PI, TAU};
use tiny_skia::Path;

const SIDES: [f32; 2] = [-1.0, 1.0];

impl Canvas {
    pub(super) fn person(&mut self, brief: &Brief, (x, cy): Spot, cloth: Tone, look: f32) {
        let head = Frame::new(x, cy - self.unit * 0.01, self.unit);
        let skin = tone(self.dice.range(0.50, 0.86), 0.065, self.dice.range(45.0, 62.0));
        let hair = tone(
            self.dice.range(0.22, 0.55),
            self.dice.range(0.02, 0.11),
            self.dice.range(30.0, 75.0),
        );
        let style = self.dice.count(0, 3);
        match style {
            1 => self.area(head.rounded(0.0, -0.20, 0.40, 0.46, 0.18), hair.lit(-0.03)),
            2 => self.area(head.circle(0.0, -0.245, 0.075), hair),
            _ => {}
        }
        self.area(head.rounded(0.0, 0.10, 0.12, 0.16, 0.03), skin.lit(-0.07));
        let throat = head.polygon(&[(-0.09, 0.195), (0.09, 0.195), (0.0, 0.30)]);
        self.area(throat, skin.lit(-0.05));
        for side in SIDES {
            self.area(head.facing(side).circle(0.165, 0.01, 0.034), skin.lit(-0.05));
        }
        self.lit(head.rounded(0.0, -0.19, 0.33, 0.38, 0.16), skin, 0.03, -0.03);
        let side = self.dice.sign();
        self.area(fringe(head, side, self.unit * 0.05), hair);
        if style == 3 {
            self.area(head.rounded(0.0, -0.135, 0.41, 0.055, 0.025), cloth.lit(-0.08));
            self.area(head.wedge(0.0, -0.115, 0.185, PI, TAU), cloth.turned(20.0));
            self.area(head.circle(0.0, -0.31, 0.035), tone(0.94, 0.03, 80.0));
        }
        self.face(head, skin, hair, look);
        if self.dice.chance(0.3) {
            self.glasses(head, brief.accent(150.0).lit(-0.35));
        }
    }

    fn face(&mut self, head: Frame, skin: Tone, hair: Tone, look: f32) {
        let s = self.unit;
        self.eyes(head.at(0.0, 0.005), s * 0.068, s * 0.0185, look, None);
        for half in SIDES.map(|side| head.facing(side)) {
            let eye = half.beside(0.068, 0.0);
            let brow = eye.polyline(&[(-0.027, -0.042), (0.027, -0.046)]);
            self.line(brow, hair.lit(-0.05), 0.009);
            self.blush(half.circle(0.105, 0.062, 0.026), tone(0.70, 0.14, 20.0));
        }
        let nose = head.trace(0.0, 0.02).quad((0.022, 0.06), (-0.004, 0.062));
        self.line(nose.open(), skin.lit(-0.18), 0.007);
        let smile = head.trace(-0.045, 0.098).quad((0.0, 0.138), (0.045, 0.098));
        self.line(smile.open(), tone(0.42, 0.12, 22.0), 0.009);
    }

    fn glasses(&mut self, head: Frame, t: Tone) {
        for side in SIDES {
            self.line(head.facing(side).circle(0.068, 0.005, 0.048), t, 0.007);
        }
        self.line(head.polyline(&[(-0.02, 0.0), (0.02, 0.0)]), t, 0.007);
    }
}

/// Hair over the forehead, parted at one side; `shift` moves the parting to the right, in pixels.
fn fringe(head: Frame, side: f32, shift: f32) -> Option<Path> {
    let at = |dx, dy| head.at(dx, dy);
    let (x, y) = head.facing(side).at(0.05, -0.125);
    let (left, top) = at(-0.185, -0.01);
    Frame::sheet()
        .trace(left, top)
        .cubic(at(-0.22, -0.29), at(0.22, -0.29), at(0.185, -0.01))
        .quad(at(0.15, -0.08), (x + shift, y))
        .quad(at(-0.13, -0.10), (left, top))
        .closed()
}

//! A robot.

use super::super::brief::Brief;
use super::super::canvas::Canvas;
use super::super::colour::{Tone, tone};
use super::super::frame::Frame;
use super::super::paths::{Spot, rounded};

impl Canvas {
    pub(super) fn robot(&mut self, brief: &Brief, (x, cy): Spot, cloth: Tone, look: f32) {
        let s = self.unit;
        let steel = tone(0.78, 0.05, brief.accent_hue + 180.0);
        let head = Frame::new(x, cy - s * 0.03, s);
        self.area(head.rect(0.0, 0.15, 0.09, 0.12), steel.lit(-0.22));
        self.robot_body(Frame::new(x, cy + s * 0.21, s), steel, cloth);
        let antenna = head.polyline(&[(0.0, -0.18), (0.0, -0.28)]);
        self.line(antenna, steel.lit(-0.2), 0.012);
        let (lamp_x, lamp_y) = head.at(0.0, -0.29);
        self.glow(lamp_x, lamp_y, s * 0.10, tone(0.75, 0.18, 27.0), 0.6);
        self.area(head.circle(0.0, -0.29, 0.026), tone(0.65, 0.2, 27.0));
        for side in [-1.0, 1.0] {
            let ear = head.facing(side).rounded(0.235, -0.06, 0.06, 0.13, 0.02);
            self.area(ear, steel.lit(-0.15));
        }
        let round = self.dice.range(0.035, 0.13);
        self.lit(head.rounded(0.0, -0.19, 0.45, 0.37, round), steel, 0.08, -0.10);
        let visor = head.rounded(0.0, -0.115, 0.35, 0.215, 0.06);
        self.area(visor, tone(0.22, 0.04, 260.0));
        let light = tone(0.87, 0.15, brief.accent_hue + 120.0);
        for side in [-1.0, 1.0] {
            let (ex, y) = head.facing(side).at(0.085, 0.0);
            let eye = Frame::new(ex + look, y, s);
            self.glow(ex + look, y - s * 0.02, s * 0.08, light, 0.6);
            self.flat(eye.rounded(0.0, -0.06, 0.056, 0.08, 0.026), light);
        }
        let smile = head.trace(-0.05, 0.05).quad((0.0, 0.095), (0.05, 0.05)).open();
        if let Some(path) = smile {
            self.pen(&path, light, s * 0.011);
        }
    }

    /// Arms, trunk and panel, from the shoulders down to the edge of the sheet.
    fn robot_body(&mut self, shoulders: Frame, steel: Tone, cloth: Tone) {
        let s = self.unit;
        for side in [-1.0, 1.0] {
            let (x, top) = shoulders.facing(side).at(0.29, 0.05);
            let arm = rounded(x - s * 0.045, top, s * 0.09, self.h, s * 0.045);
            self.lit(arm, steel, 0.0, -0.16);
        }
        let (x, top) = shoulders.at(0.0, 0.0);
        let trunk = rounded(x - s * 0.24, top, s * 0.48, self.h - top + s * 0.2, s * 0.07);
        self.lit(trunk, cloth, 0.05, -0.12);
        let panel = shoulders.rounded(0.0, 0.07, 0.24, 0.13, 0.02);
        self.area(panel, tone(0.25, 0.03, 250.0));
        for (dx, hue) in [(-0.075, 27.0), (-0.025, 88.0), (0.025, 150.0), (0.075, 240.0)] {
            self.area(shoulders.circle(dx, 0.135, 0.017), tone(0.75, 0.16, hue));
        }
    }
}

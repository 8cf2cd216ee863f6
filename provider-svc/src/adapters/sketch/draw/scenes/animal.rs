//! The heads of cat, bear and owl.

use super::super::canvas::Canvas;
use super::super::colour::{Tone, tone};
use super::super::frame::Frame;
use super::super::paths::{Spot, polyline};
use super::super::words::Being;

const PALE: Tone = tone(0.94, 0.03, 80.0);

impl Canvas {
    pub(super) fn animal(&mut self, being: Being, (x, cy): Spot, fur: Tone, look: f32) {
        let s = self.unit;
        let y = cy - s * 0.02;
        let head = Frame::new(x, y, s);
        self.ears(being, head, fur);
        self.lit(head.oval(0.0, 0.0, 0.235, 0.205), fur, 0.05, -0.04);
        if being == Being::Owl {
            self.owl_face(head, look);
            return;
        }
        if being == Being::Cat {
            for (dx, low) in [(-0.045, 0.15), (0.0, 0.125), (0.045, 0.15)] {
                let stripe = polyline(&[head.at(dx, -0.195), (x + s * dx * 0.8, y - s * low)]);
                self.line(stripe, fur.lit(-0.18), 0.014);
            }
        }
        self.area(head.oval(0.0, 0.082, 0.10, 0.072), PALE);
        self.eyes(head.at(0.0, -0.025), s * 0.098, s * 0.029, look, None);
        for side in [-1.0, 1.0] {
            let cheek = head.facing(side).oval(0.155, 0.055, 0.036, 0.022);
            self.blush(cheek, tone(0.72, 0.14, 15.0));
        }
        let nose = head.oval(0.0, 0.048, 0.026, 0.018);
        self.mark(nose, tone(0.30, 0.05, 20.0));
        let mouth = head
            .trace(-0.045, 0.085)
            .quad((-0.022, 0.118), (0.0, 0.082))
            .quad((0.022, 0.118), (0.045, 0.085));
        self.line(mouth.open(), tone(0.28, 0.04, 20.0), 0.007);
        if being == Being::Cat {
            self.whiskers(head);
        }
    }

    /// Round ears for a bear, pointed ones for the others.
    fn ears(&mut self, being: Being, head: Frame, fur: Tone) {
        let inner = tone(0.80, 0.085, 15.0);
        let tall = if being == Being::Owl { 0.26 } else { 0.33 };
        for half in [-1.0, 1.0].map(|side| head.facing(side)) {
            if being == Being::Bear {
                self.area(half.circle(0.165, -0.17, 0.075), fur.lit(-0.05));
                self.area(half.circle(0.165, -0.165, 0.042), inner);
                continue;
            }
            let ear = half.polygon(&[(0.06, -0.17), (0.205, -tall), (0.225, -0.03)]);
            self.area(ear, fur.lit(-0.03));
            if being == Being::Cat {
                let ear = half.polygon(&[(0.11, -0.185), (0.188, -0.272), (0.20, -0.10)]);
                self.area(ear, inner);
            }
        }
    }

    fn owl_face(&mut self, head: Frame, look: f32) {
        for side in [-1.0, 1.0] {
            self.area(head.facing(side).circle(0.088, -0.01, 0.098), PALE);
        }
        let (s, yellow) = (self.unit, tone(0.86, 0.15, 88.0));
        self.eyes(head.at(0.0, -0.01), s * 0.088, s * 0.038, look, Some(yellow));
        let beak = head.polygon(&[(-0.03, 0.06), (0.03, 0.06), (0.0, 0.125)]);
        self.area(beak, tone(0.76, 0.16, 65.0));
    }

    fn whiskers(&mut self, head: Frame) {
        for half in [-1.0, 1.0].map(|side| head.facing(side)) {
            for dy in [0.055, 0.08, 0.105] {
                let hair = half.polyline(&[(0.12, dy), (0.29, dy * 1.6 - 0.05)]);
                self.line(hair, tone(0.97, 0.01, 80.0).faded(0.9), 0.004);
            }
        }
    }
}

//! A portrait: a wall with a disc or rays, and on it an animal, a robot or a person.

use super::super::brief::Brief;
use super::super::canvas::Canvas;
use super::super::colour::{Tone, tone};
use super::super::frame::Frame;
use super::super::paths::{Spot, circle, wedge};
use super::super::words::{Being, Light, Medium};
use std::f32::consts::{PI, TAU};
use tiny_skia::Path;

impl Canvas {
    pub(super) fn scene_character(&mut self, brief: &Brief, being: Being) {
        let wall = match brief.light {
            Light::Night => tone(0.28, 0.075, brief.hue),
            Light::Dusk => tone(0.74, 0.11, brief.hue),
            Light::Day => tone(0.84, 0.09, brief.hue),
            Light::Mist => tone(0.86, 0.035, brief.hue),
        };
        self.backdrop([wall.lit(-0.06), wall, wall.lit(0.05)]);
        let middle = Frame::new(self.w / 2.0, self.h * 0.47, self.unit);
        self.wall_paper(brief, middle, wall);
        let fur_hue = if self.dice.chance(0.6) {
            self.dice.range(35.0, 85.0)
        } else {
            brief.accent_hue + 60.0
        };
        let fur = tone(self.dice.range(0.55, 0.80), self.dice.range(0.05, 0.12), fur_hue);
        let cloth = brief.accent(self.dice.range(-30.0, 30.0)).lit(-0.10);
        // The head leans a little, and the eyes look a little aside.
        let (cx, cy) = middle.at(0.0, 0.0);
        let x = cx + self.dice.range(-0.03, 0.03) * self.unit;
        let look = self.dice.range(-0.012, 0.012) * self.unit;
        match being {
            Being::Robot => self.robot(brief, (x, cy), cloth, look),
            Being::Cat | Being::Bear | Being::Owl => {
                self.lit(self.body(middle, 0.27, 0.16), fur, -0.03, -0.14);
                self.animal(being, (x, cy), fur, look);
                self.area(middle.rounded(0.0, 0.205, 0.30, 0.065, 0.03), cloth);
                let scarf = [(0.05, 0.25), (0.12, 0.25), (0.13, 0.40), (0.05, 0.38)];
                self.area(middle.polygon(&scarf), cloth.lit(-0.05));
            }
            Being::Person => {
                self.lit(self.body(middle, 0.33, 0.20), cloth, 0.0, -0.14);
                self.person(brief, (x, cy), cloth, look);
            }
        }
    }

    /// Rays, rings or dots behind the head.
    fn wall_paper(&mut self, brief: &Brief, middle: Frame, wall: Tone) {
        match self.dice.count(0, 2) {
            0 => {
                let (x, y) = middle.at(0.0, 0.0);
                let ray = self.pigment(wall.lit(0.05)).faded(0.6);
                for i in 0u8..18 {
                    let a = TAU * f32::from(i) / 18.0;
                    if self.medium != Medium::Woodcut {
                        self.flat(wedge(x, y, self.w.hypot(self.h), a, a + PI / 18.0), ray);
                    }
                }
                let disc = brief.accent(0.0).lit(0.14).vivid(0.6);
                self.area(middle.circle(0.0, 0.0, 0.38), disc);
            }
            1 => {
                let inner = brief.accent(30.0).lit(0.12).vivid(0.7);
                self.area(middle.circle(0.0, 0.0, 0.43), wall.lit(0.07).turned(25.0));
                self.area(middle.circle(0.0, 0.0, 0.36), inner);
            }
            _ => {
                for _ in 0..22 {
                    let (x, y) = self.anywhere(self.h);
                    let dot = brief.accent(self.dice.range(-60.0, 60.0)).lit(0.1).faded(0.55);
                    let r = self.length(0.012, 0.045);
                    self.area(circle(x, y, r), dot);
                }
                self.area(middle.circle(0.0, 0.0, 0.40), wall.lit(-0.10));
            }
        }
    }

    /// Shoulders down to the edge of the sheet; half their width and their top in shares of the frame.
    fn body(&self, middle: Frame, half: f32, top: f32) -> Option<Path> {
        let (x, y) = middle.at(0.0, 0.0);
        let (wide, drop) = (self.unit * half, self.unit * top);
        let (neck, shoulder, floor) = (y + drop, y + drop * 0.9, self.h + self.unit * 0.05);
        Frame::sheet()
            .trace(x - wide, floor)
            .cubic((x - wide, shoulder), (x - wide * 0.6, neck), (x, neck))
            .cubic((x + wide * 0.6, neck), (x + wide, shoulder), (x + wide, floor))
            .closed()
    }

    /// A pair of eyes that look aside by `look`, with a white around them if one is given.
    pub(super) fn eyes(&mut self, (x, y): Spot, gap: f32, r: f32, look: f32, white: Option<Tone>) {
        for side in [-1.0, 1.0] {
            let ex = x + side * gap;
            if let Some(white) = white {
                self.area(circle(ex, y, r * 1.75), white);
            }
            self.mark(circle(ex + look, y, r), tone(0.20, 0.03, 270.0));
            let shine = circle(ex + look - r * 0.3, y - r * 0.35, r * 0.32);
            self.mark(shine, tone(0.98, 0.0, 0.0));
        }
    }

    /// A blush of the cheek; media of lines have none.
    pub(super) fn blush(&mut self, path: Option<Path>, t: Tone) {
        if !self.medium.is_line_art() {
            self.mark(path, t.faded(0.6));
        }
    }
}

//! A forest: rows of trees of one kind, mist between them and mushrooms in front.

use super::super::brief::Brief;
use super::super::canvas::Canvas;
use super::super::numbers::{lerp, steps};
use super::super::paths::{ground, polygon};
use super::super::words::{Light, Medium, Tree};

impl Canvas {
    pub(super) fn scene_forest(&mut self, brief: &Brief) {
        let horizon = self.down(0.55, 0.66);
        self.sky(brief, horizon * 0.8);
        let any = match self.dice.count(0, 2) {
            0 => Tree::Conifer,
            1 => Tree::Broadleaf,
            _ => Tree::Birch,
        };
        let kind = brief.trees.unwrap_or(any);
        let far = self.land_line(horizon, self.unit * 0.12, 0.3);
        let hills = ground(&far, self.h * 1.05, true);
        self.shaded(hills, brief.layer(0.12), brief.layer(0.05));
        for (_, t) in steps(4) {
            let base = lerp(horizon + self.unit * 0.05, self.h * 0.97, t);
            let floor = self.land_line(base, self.unit * 0.035, 0.2);
            let here = brief.layer(0.25 + 0.7 * t).vivid(1.15);
            let mut x = -self.length(0.0, 0.12);
            let step = self.unit * lerp(0.11, 0.34, t);
            while x < self.w + self.unit * 0.1 {
                let s = self.unit * lerp(0.26, 0.80, t) * self.dice.range(0.75, 1.15);
                let y = base + self.unit * 0.03;
                // Near trees stand at the sides and leave the view open.
                let middle = ((x / self.w) - 0.5).abs() < 0.26;
                if t < 0.9 || !middle {
                    match kind {
                        Tree::Conifer => {
                            let lift = self.dice.range(-0.03, 0.05);
                            self.conifer(x, y, s * 0.62, here.lit(lift));
                        }
                        Tree::Broadleaf => self.broadleaf(brief, x, y, s * 0.62, here),
                        Tree::Birch => self.birch(brief, (x, y), s, t, here),
                    }
                }
                x += step * self.dice.range(0.7, 1.3);
            }
            self.lit(ground(&floor, self.h * 1.05, true), here, 0.05, -0.04);
            if t < 0.9 && brief.light != Light::Night {
                self.ground_mist(brief, base);
            }
        }
        if brief.light != Light::Night {
            self.shafts(brief);
        }
        let count = self.dice.count(5, 12);
        for _ in 0..count {
            let (x, y) = (self.dice.unit() * self.w, self.down(0.86, 0.985));
            let s = self.length(0.02, 0.045);
            self.mushroom(brief, x, y, s);
        }
    }

    fn ground_mist(&mut self, brief: &Brief, base: f32) {
        if self.medium.is_line_art() || self.medium == Medium::Neon {
            return;
        }
        let mist = brief.haze().faded(0.20);
        if let Some(path) = self.strip(base - self.unit * 0.10, self.unit * 0.16) {
            self.flood(&path, mist.faded(0.0), mist);
        }
    }

    /// Slanting light between the trees.
    fn shafts(&mut self, brief: &Brief) {
        if !self.medium.has_soft_light() {
            return;
        }
        let side = self.dice.sign();
        let t = brief.haze().lit(0.04);
        let slide = side * self.h * 0.35;
        for _ in 0..4 {
            let x = self.across(0.1, 0.9);
            let wide = self.length(0.03, 0.09);
            let (near, far) = (x + wide * 2.2 + slide, x + slide);
            let shaft = polygon(&[(x, 0.0), (x + wide, 0.0), (near, self.h), (far, self.h)]);
            if let Some(path) = shaft {
                self.flood(&path, t.faded(0.22), t.faded(0.02));
            }
        }
    }
}

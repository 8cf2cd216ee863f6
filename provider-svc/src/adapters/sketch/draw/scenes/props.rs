//! Small things that a prompt names beside its subject, each drawn from a place and a size.

use super::super::brief::Brief;
use super::super::canvas::Canvas;
use super::super::colour::tone;
use super::super::frame::Frame;
use super::super::paths::rect;
use super::super::words::Light;

impl Canvas {
    /// A sailing boat on the water line `y`, its mast 1.35 `s` tall.
    pub(super) fn boat(&mut self, brief: &Brief, x: f32, y: f32, s: f32) {
        let boat = Frame::new(x, y, s);
        let sails = boat.facing(self.dice.sign());
        let mast = boat.polyline(&[(0.0, -0.1), (0.0, -1.35)]);
        self.line(mast, tone(0.3, 0.04, 50.0), s / self.unit * 0.045);
        let main = sails.polygon(&[(0.05, -1.3), (0.05, -0.26), (0.58, -0.26)]);
        self.area(main, tone(0.96, 0.02, 85.0));
        let fore = sails.polygon(&[(-0.05, -1.1), (-0.05, -0.26), (-0.42, -0.26)]);
        self.area(fore, brief.accent(0.0));
        let hull = boat
            .trace(-0.62, -0.16)
            .line((0.66, -0.18))
            .quad((0.42, 0.14), (0.3, 0.14))
            .line((-0.36, 0.14))
            .quad((-0.56, 0.10), (-0.62, -0.16));
        self.area(hull.closed(), tone(0.38, 0.09, brief.accent_hue + 20.0));
    }

    /// A house, `s` wide.
    pub(super) fn house(&mut self, brief: &Brief, x: f32, y: f32, s: f32) {
        let house = Frame::new(x, y, s);
        let wall = if brief.is_dark() {
            tone(0.42, 0.03, 70.0)
        } else {
            tone(0.94, 0.02, 80.0)
        };
        let chimney = rect(x + s * 0.22, y - s * 0.98, s * 0.12, s * 0.3);
        self.area(chimney, tone(0.45, 0.05, 40.0));
        self.area(house.rect(0.0, -0.55, 1.0, 0.6), wall);
        let roof = [(-0.6, -0.5), (0.6, -0.5), (0.42, -0.92), (-0.42, -0.92)];
        self.area(house.polygon(&roof), tone(0.50, 0.13, 35.0));
        self.area(house.rect(0.0, -0.32, 0.18, 0.37), tone(0.35, 0.06, 250.0));
        for dx in [-0.32, 0.32] {
            self.area(house.rect(dx, -0.38, 0.17, 0.17), brief.lamp());
        }
        if brief.light != Light::Day {
            self.glow(x, y - s * 0.3, s * 1.3, brief.lamp(), 0.4);
        }
    }

    /// A balloon with a striped envelope of radius `r` around a middle.
    pub(super) fn balloon(&mut self, brief: &Brief, x: f32, y: f32, r: f32) {
        let balloon = Frame::new(x, y, r);
        for dx in [-0.5, 0.5] {
            let rope = balloon.polyline(&[(dx, 0.85), (dx * 0.4, 1.5)]);
            self.line(rope, tone(0.3, 0.03, 60.0), 0.002);
        }
        let envelope = |half: f32| {
            let (wide, neck) = (half * 1.35, half * 0.25);
            let (top, waist, mouth) = (y - r, y + r * 0.35, y + r * 1.15);
            Frame::sheet()
                .trace(x, top)
                .cubic((x + wide, top), (x + wide, waist), (x + neck, mouth))
                .line((x - neck, mouth))
                .cubic((x - wide, waist), (x - wide, top), (x, top))
                .closed()
        };
        let (skin, stripe) = (brief.accent(0.0), tone(0.95, 0.04, 85.0));
        for (share, t) in [(1.0, skin), (0.66, stripe), (0.3, skin)] {
            self.area(envelope(r * share), t);
        }
        let basket = balloon.rounded(0.0, 1.45, 0.4, 0.28, 0.06);
        self.area(basket, tone(0.5, 0.08, 60.0));
    }
}

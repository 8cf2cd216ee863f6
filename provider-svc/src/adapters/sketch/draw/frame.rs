//! Frames: where a thing stands, how large it is and how it is turned.
//!
//! Scenes give the parts of a thing in shares of its size, from its foot or its middle; a frame makes them shapes.

use super::paths::{self, Spot};
use tiny_skia::{Path, PathBuilder};

/// A place on the sheet with a size. Distances are in shares of the size, down and to the right are positive.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    x: f32,
    y: f32,
    s: f32,
    side: f32,
    sin: f32,
    cos: f32,
}

impl Frame {
    pub(super) fn new(x: f32, y: f32, s: f32) -> Self {
        Self {
            x,
            y,
            s,
            side: 1.0,
            sin: 0.0,
            cos: 1.0,
        }
    }

    /// The sheet itself: distances are pixels.
    pub(super) fn sheet() -> Self {
        Self::new(0.0, 0.0, 1.0)
    }

    /// The same place with right and left exchanged when `side` is -1; for places, not for the shapes themselves.
    pub(super) fn facing(self, side: f32) -> Self {
        Self { side, ..self }
    }

    /// The same place, turned clockwise by an angle in radians.
    pub(super) fn turned(self, angle: f32) -> Self {
        Self {
            sin: angle.sin(),
            cos: angle.cos(),
            ..self
        }
    }

    /// An upright frame of the same size at another place.
    pub(super) fn beside(self, dx: f32, dy: f32) -> Self {
        let (x, y) = self.at(dx, dy);
        Self::new(x, y, self.s)
    }

    /// A place in pixels of the sheet.
    pub(super) fn at(self, dx: f32, dy: f32) -> Spot {
        let (px, py) = (self.side * self.s * dx, self.s * dy);
        (
            self.x + px * self.cos - py * self.sin,
            self.y + px * self.sin + py * self.cos,
        )
    }

    pub(super) fn points(self, points: &[Spot]) -> Vec<Spot> {
        points.iter().map(|(dx, dy)| self.at(*dx, *dy)).collect()
    }

    pub(super) fn polygon(self, points: &[Spot]) -> Option<Path> {
        paths::polygon(&self.points(points))
    }

    pub(super) fn polyline(self, points: &[Spot]) -> Option<Path> {
        paths::polyline(&self.points(points))
    }

    pub(super) fn circle(self, dx: f32, dy: f32, r: f32) -> Option<Path> {
        let (x, y) = self.at(dx, dy);
        paths::circle(x, y, self.s * r)
    }

    pub(super) fn oval(self, dx: f32, dy: f32, rx: f32, ry: f32) -> Option<Path> {
        let (x, y) = self.at(dx, dy);
        paths::oval(x, y, self.s * rx, self.s * ry)
    }

    /// An upright rectangle whose upper edge has its middle at a place.
    pub(super) fn rect(self, dx: f32, dy: f32, w: f32, h: f32) -> Option<Path> {
        let (x, y) = self.at(dx, dy);
        paths::rect(x - self.s * w / 2.0, y, self.s * w, self.s * h)
    }

    /// Like [`Frame::rect`], with round corners.
    pub(super) fn rounded(self, dx: f32, dy: f32, w: f32, h: f32, r: f32) -> Option<Path> {
        let (x, y) = self.at(dx, dy);
        paths::rounded(x - self.s * w / 2.0, y, self.s * w, self.s * h, self.s * r)
    }

    pub(super) fn wedge(self, dx: f32, dy: f32, r: f32, from: f32, to: f32) -> Option<Path> {
        let (x, y) = self.at(dx, dy);
        paths::wedge(x, y, self.s * r, from, to)
    }

    pub(super) fn petal(self, dx: f32, dy: f32, length: f32, width: f32, angle: f32) -> Option<Path> {
        let (x, y) = self.at(dx, dy);
        paths::petal(x, y, self.s * length, self.s * width, angle)
    }

    /// Begins an outline at a place.
    pub(super) fn trace(self, dx: f32, dy: f32) -> Trace {
        let (x, y) = self.at(dx, dy);
        let mut path = PathBuilder::new();
        path.move_to(x, y);
        Trace { path, frame: self }
    }
}

/// An outline in the making, in the measure of a frame.
pub(super) struct Trace {
    path: PathBuilder,
    frame: Frame,
}

impl Trace {
    pub(super) fn line(mut self, to: Spot) -> Self {
        let to = self.frame.at(to.0, to.1);
        self.path.line_to(to.0, to.1);
        self
    }

    /// A curve that leaves and arrives in the direction of one control point.
    pub(super) fn quad(mut self, control: Spot, to: Spot) -> Self {
        let (c, to) = (self.frame.at(control.0, control.1), self.frame.at(to.0, to.1));
        self.path.quad_to(c.0, c.1, to.0, to.1);
        self
    }

    /// A curve with a control point for each end.
    pub(super) fn cubic(mut self, first: Spot, second: Spot, to: Spot) -> Self {
        let (a, b) = (self.frame.at(first.0, first.1), self.frame.at(second.0, second.1));
        let to = self.frame.at(to.0, to.1);
        self.path.cubic_to(a.0, a.1, b.0, b.1, to.0, to.1);
        self
    }

    pub(super) fn open(self) -> Option<Path> {
        self.path.finish()
    }

    pub(super) fn closed(mut self) -> Option<Path> {
        self.path.close();
        self.path.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_become_pixels_on_the_side_and_in_the_turn_of_the_frame() {
        let frame = Frame::new(10.0, 20.0, 4.0);
        assert_eq!(frame.at(0.5, -1.0), (12.0, 16.0));
        assert_eq!(frame.facing(-1.0).at(0.5, -1.0), (8.0, 16.0));
        let (x, y) = frame.turned(std::f32::consts::FRAC_PI_2).at(1.0, 0.0);
        assert!((x - 10.0).abs() < 1e-3 && (y - 24.0).abs() < 1e-3, "{x} {y}");
        let bounds = frame.rect(0.0, 0.0, 2.0, 1.0).unwrap().bounds();
        assert_eq!((bounds.left(), bounds.right()), (6.0, 14.0));
    }
}

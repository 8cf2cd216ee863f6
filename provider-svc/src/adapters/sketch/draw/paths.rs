//! Shapes as paths; `None` where a shape has no extent.

use super::numbers::{lerp, steps};
use tiny_skia::{Path, PathBuilder, Rect};

/// A point of the sheet, in pixels from its upper left corner.
pub(super) type Spot = (f32, f32);

pub(super) fn circle(x: f32, y: f32, r: f32) -> Option<Path> {
    PathBuilder::from_circle(x, y, r.max(0.2))
}

pub(super) fn rect(x: f32, y: f32, w: f32, h: f32) -> Option<Path> {
    Rect::from_xywh(x, y, w.max(0.2), h.max(0.2)).map(PathBuilder::from_rect)
}

pub(super) fn oval(x: f32, y: f32, rx: f32, ry: f32) -> Option<Path> {
    Rect::from_xywh(x - rx, y - ry, (rx * 2.0).max(0.2), (ry * 2.0).max(0.2)).and_then(PathBuilder::from_oval)
}

pub(super) fn polygon(points: &[Spot]) -> Option<Path> {
    let mut path = PathBuilder::new();
    let mut rest = points.iter();
    let first = rest.next()?;
    path.move_to(first.0, first.1);
    for point in rest {
        path.line_to(point.0, point.1);
    }
    path.close();
    path.finish()
}

/// An open smooth curve along the points; of two points a straight line.
pub(super) fn polyline(points: &[Spot]) -> Option<Path> {
    let mut path = PathBuilder::new();
    run_through(&mut path, points, true)?;
    path.finish()
}

/// A smooth curve through the middles of the points.
fn run_through(path: &mut PathBuilder, points: &[Spot], start: bool) -> Option<()> {
    let first = points.first()?;
    if start {
        path.move_to(first.0, first.1);
    } else {
        path.line_to(first.0, first.1);
    }
    for pair in points.windows(2) {
        if let [a, b] = pair {
            path.quad_to(a.0, a.1, (a.0 + b.0) / 2.0, (a.1 + b.1) / 2.0);
        }
    }
    let last = points.last()?;
    path.line_to(last.0, last.1);
    Some(())
}

/// A level stroke around a middle.
pub(super) fn dash(x: f32, y: f32, half: f32) -> Option<Path> {
    polyline(&[(x - half, y), (x + half, y)])
}

/// Everything below a line of points, down to `floor`.
pub(super) fn ground(points: &[Spot], floor: f32, smooth: bool) -> Option<Path> {
    let (first, last) = (points.first()?, points.last()?);
    let mut path = PathBuilder::new();
    path.move_to(first.0, floor);
    if smooth {
        run_through(&mut path, points, false)?;
    } else {
        for point in points {
            path.line_to(point.0, point.1);
        }
    }
    path.line_to(last.0, floor);
    path.close();
    path.finish()
}

pub(super) fn rounded(x: f32, y: f32, w: f32, h: f32, r: f32) -> Option<Path> {
    let r = r.min(w / 2.0).min(h / 2.0);
    let mut path = PathBuilder::new();
    path.move_to(x + r, y);
    path.line_to(x + w - r, y);
    path.quad_to(x + w, y, x + w, y + r);
    path.line_to(x + w, y + h - r);
    path.quad_to(x + w, y + h, x + w - r, y + h);
    path.line_to(x + r, y + h);
    path.quad_to(x, y + h, x, y + h - r);
    path.line_to(x, y + r);
    path.quad_to(x, y, x + r, y);
    path.close();
    path.finish()
}

/// A slice of a disc from one angle to another, in radians.
pub(super) fn wedge(x: f32, y: f32, r: f32, from: f32, to: f32) -> Option<Path> {
    let mut points = vec![(x, y)];
    points.extend(steps(33).map(|(_, t)| {
        let angle = lerp(from, to, t);
        (x + r * angle.cos(), y + r * angle.sin())
    }));
    polygon(&points)
}

/// A petal or leaf from its root, `length` long, pointing to `angle`.
pub(super) fn petal(x: f32, y: f32, length: f32, width: f32, angle: f32) -> Option<Path> {
    let (dx, dy) = (angle.cos(), angle.sin());
    let at = |along: f32, across: f32| (x + dx * along - dy * across, y + dy * along + dx * across);
    let tip = at(length, 0.0);
    let (a, b) = (at(length * 0.25, width), at(length * 0.9, width * 0.9));
    let (c, d) = (at(length * 0.9, -width * 0.9), at(length * 0.25, -width));
    let mut path = PathBuilder::new();
    path.move_to(x, y);
    path.cubic_to(a.0, a.1, b.0, b.1, tip.0, tip.1);
    path.cubic_to(c.0, c.1, d.0, d.1, x, y);
    path.close();
    path.finish()
}

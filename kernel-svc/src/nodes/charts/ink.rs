//! Lines, areas, words and slices of a chart.

use image::RgbaImage;
use tiny_skia::{Color, FillRule, LineCap, LineJoin, Paint, PathBuilder, Pixmap, Rect, Stroke, Transform};

use super::{
    data::{Chart, Kind, Series, palette, real},
    draw::short,
};
use crate::nodes::image::Style;

pub(super) const INK: [f32; 4] = [0.2, 0.2, 0.2, 1.0];
pub(super) const GRID: [f32; 4] = [0.88, 0.88, 0.88, 1.0];
/// Height of letters, in pixels.
pub(super) const SMALL: u32 = 14;
pub(super) const LARGE: u32 = 20;
/// A part of a turn is drawn as so many straight lines at most.
const ARC: usize = 120;

/// Where the axes are, and what they show.
pub(super) struct Frame {
    pub left: f32,
    pub top: f32,
    pub right: f32,
    pub bottom: f32,
    pub x: (f64, f64),
    pub y: (f64, f64),
}
#[expect(clippy::cast_possible_truncation, reason = "pixels")]
impl Frame {
    pub fn x(&self, value: f64) -> f32 {
        self.left
            + (self.right - self.left)
                * (((value - self.x.0) / (self.x.1 - self.x.0)).clamp(-10.0, 10.0)) as f32
    }
    pub fn y(&self, value: f64) -> f32 {
        self.bottom
            - (self.bottom - self.top)
                * (((value - self.y.0) / (self.y.1 - self.y.0)).clamp(-10.0, 10.0)) as f32
    }
}
pub(super) fn paint([red, green, blue, alpha]: [f32; 4]) -> Paint<'static> {
    let mut paint = Paint::default();
    let unit = |value: f32| value.clamp(0.0, 1.0);
    if let Some(color) = Color::from_rgba(unit(red), unit(green), unit(blue), unit(alpha)) {
        paint.set_color(color);
    }
    paint
}
pub(super) fn line(map: &mut Pixmap, points: &[(f32, f32)], color: [f32; 4], width: f32) {
    let mut path = PathBuilder::new();
    for (at, (x, y)) in points.iter().enumerate() {
        if at == 0 {
            path.move_to(*x, *y)
        } else {
            path.line_to(*x, *y)
        }
    }
    if let Some(path) = path.finish() {
        let stroke = Stroke {
            width,
            line_cap: LineCap::Round,
            line_join: LineJoin::Round,
            ..Stroke::default()
        };
        map.stroke_path(&path, &paint(color), &stroke, Transform::identity(), None);
    }
}
pub(super) fn fill(map: &mut Pixmap, points: &[(f32, f32)], color: [f32; 4]) {
    let mut path = PathBuilder::new();
    for (at, (x, y)) in points.iter().enumerate() {
        if at == 0 {
            path.move_to(*x, *y)
        } else {
            path.line_to(*x, *y)
        }
    }
    path.close();
    if let Some(path) = path.finish() {
        map.fill_path(
            &path,
            &paint(color),
            FillRule::Winding,
            Transform::identity(),
            None,
        );
    }
}
/// Text that goes on the picture at the end.
pub(super) struct Words {
    pub text: String,
    pub at: (i64, i64),
    /// 0 begins at the place, 1 ends there.
    pub align: f32,
    pub size: u32,
    pub bold: bool,
}
impl Words {
    pub fn write(&self, picture: &mut RgbaImage, most: i64) {
        let style = Style {
            size: self.size,
            bold: self.bold,
            color: INK,
        };
        let letters: String = self.text.chars().take(200).collect();
        #[expect(clippy::cast_possible_truncation, reason = "at most 200 letters")]
        let left = self.at.0 - (style.width(&letters) * self.align).round() as i64;
        style.line(picture, &letters, left.clamp(0, most), self.at.1);
    }
}
pub(super) fn shown(map: &mut Pixmap, frame: &Frame, series: &Series, (bar, bars): (usize, usize)) {
    let spots: Vec<(f32, f32)> = series
        .points
        .iter()
        .map(|(x, y)| (frame.x(*x), frame.y(*y)))
        .collect();
    let ground = frame.y(0.0).clamp(frame.top, frame.bottom);
    match series.kind {
        Kind::Line => line(map, &spots, series.color, 2.0),
        Kind::Area => {
            let ends = spots
                .first()
                .zip(spots.last())
                .map(|(first, last)| [(last.0, ground), (first.0, ground)]);
            let around: Vec<_> = spots.iter().copied().chain(ends.into_iter().flatten()).collect();
            let [red, green, blue, alpha] = series.color;
            fill(map, &around, [red, green, blue, alpha * 0.4]);
            line(map, &spots, series.color, 2.0);
        }
        Kind::Points => {
            for (x, y) in spots {
                if let Some(circle) = PathBuilder::from_circle(x, y, 3.5) {
                    map.fill_path(
                        &circle,
                        &paint(series.color),
                        FillRule::Winding,
                        Transform::identity(),
                        None,
                    );
                }
            }
        }
        Kind::Bars => {
            let width = 0.8 / real(bars);
            for (place, value) in &series.points {
                let from = place - 0.4 + width * real(bar);
                let (left, right) = (frame.x(from), frame.x(from + width));
                let top = frame.y(*value).clamp(frame.top, frame.bottom);
                let (top, bottom) = (top.min(ground), top.max(ground));
                if let Some(rect) = Rect::from_ltrb(left, top, right.max(left + 1.0), bottom.max(top + 0.5)) {
                    map.fill_rect(rect, &paint(series.color), Transform::identity(), None);
                }
            }
        }
        Kind::Pie => {}
    }
}
/// Names with their colours, below each other at the right.
#[expect(clippy::cast_possible_truncation, reason = "pixels")]
pub(super) fn legend(
    map: &mut Pixmap,
    names: &[(String, [f32; 4])],
    (right, top): (f32, f32),
    words: &mut Vec<Words>,
) {
    let mut y = top;
    for (name, color) in names.iter().take(20) {
        if let Some(rect) = Rect::from_xywh(right - 14.0, y + 3.0, 10.0, 10.0) {
            map.fill_rect(rect, &paint(*color), Transform::identity(), None);
        }
        let text = name.chars().take(24).collect();
        words.push(Words {
            text,
            at: (right as i64 - 20, y as i64),
            align: 1.0,
            size: SMALL,
            bold: false,
        });
        y += 18.0;
    }
}
/// Parts of the first series, clockwise from above. What is below nothing has no part.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "pixels"
)]
pub(super) fn pie(map: &mut Pixmap, chart: &Chart, words: &mut Vec<Words>) {
    let Some(series) = chart.series.first() else {
        return;
    };
    let whole: f64 = series.points.iter().map(|point| point.1.max(0.0)).sum();
    if whole <= 0.0 {
        return;
    }
    let (width, height) = (chart.width as f32, chart.height as f32);
    let (middle_x, middle_y) = (
        width / 2.0,
        (height + if chart.title.is_empty() { 0.0 } else { 24.0 }) / 2.0,
    );
    let radius = (width.min(height) / 2.0 - 40.0).max(6.0);
    let mut from = 0.0_f64;
    let mut names = Vec::new();
    for (at, (place, value)) in series.points.iter().enumerate() {
        let part = value.max(0.0) / whole;
        let steps = ((part * real(ARC)).ceil() as usize).clamp(1, ARC);
        let rim = (0..=steps).map(|step| {
            let turn = (from + part * real(step) / real(steps)) * std::f64::consts::TAU;
            (
                middle_x + radius * turn.sin() as f32,
                middle_y - radius * turn.cos() as f32,
            )
        });
        let around: Vec<_> = std::iter::once((middle_x, middle_y)).chain(rim).collect();
        fill(map, &around, palette(at));
        let name = chart
            .categories
            .get(place.max(0.0) as usize)
            .cloned()
            .unwrap_or_default();
        names.push((
            format!("{name} {}%", short((part * 1_000.0).round() / 10.0)),
            palette(at),
        ));
        from += part;
    }
    if chart.legend {
        legend(map, &names, (width - 8.0, 8.0), words);
    }
}

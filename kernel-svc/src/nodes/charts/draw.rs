//! A chart as pixels.

use image::{Rgba, RgbaImage};
use tiny_skia::{Color, FillRule, LineCap, LineJoin, Paint, PathBuilder, Pixmap, Rect, Stroke, Transform};

use super::data::{Chart, Kind, Series, palette, real};
use crate::{
    node::NodeError,
    nodes::{image::Style, media_io::Stop},
};

const INK: [f32; 4] = [0.2, 0.2, 0.2, 1.0];
const GRID: [f32; 4] = [0.88, 0.88, 0.88, 1.0];
/// Height of letters, in pixels.
const SMALL: u32 = 14;
const LARGE: u32 = 20;
/// A part of a turn is drawn as so many straight lines at most.
const ARC: usize = 120;

/// Where the axes are, and what they show.
struct Frame {
    left: f32,
    top: f32,
    right: f32,
    bottom: f32,
    x: (f64, f64),
    y: (f64, f64),
}
#[expect(clippy::cast_possible_truncation, reason = "pixels")]
impl Frame {
    fn x(&self, value: f64) -> f32 {
        self.left + (self.right - self.left) * (((value - self.x.0) / (self.x.1 - self.x.0)).clamp(-10.0, 10.0)) as f32
    }
    fn y(&self, value: f64) -> f32 {
        self.bottom - (self.bottom - self.top) * (((value - self.y.0) / (self.y.1 - self.y.0)).clamp(-10.0, 10.0)) as f32
    }
}
fn paint([red, green, blue, alpha]: [f32; 4]) -> Paint<'static> {
    let mut paint = Paint::default();
    let unit = |value: f32| value.clamp(0.0, 1.0);
    if let Some(color) = Color::from_rgba(unit(red), unit(green), unit(blue), unit(alpha)) {
        paint.set_color(color);
    }
    paint
}
fn line(map: &mut Pixmap, points: &[(f32, f32)], color: [f32; 4], width: f32) {
    let mut path = PathBuilder::new();
    for (at, (x, y)) in points.iter().enumerate() {
        if at == 0 { path.move_to(*x, *y) } else { path.line_to(*x, *y) }
    }
    if let Some(path) = path.finish() {
        let stroke = Stroke { width, line_cap: LineCap::Round, line_join: LineJoin::Round, ..Stroke::default() };
        map.stroke_path(&path, &paint(color), &stroke, Transform::identity(), None);
    }
}
fn fill(map: &mut Pixmap, points: &[(f32, f32)], color: [f32; 4]) {
    let mut path = PathBuilder::new();
    for (at, (x, y)) in points.iter().enumerate() {
        if at == 0 { path.move_to(*x, *y) } else { path.line_to(*x, *y) }
    }
    path.close();
    if let Some(path) = path.finish() {
        map.fill_path(&path, &paint(color), FillRule::Winding, Transform::identity(), None);
    }
}
/// A number in few digits.
pub(super) fn short(number: f64) -> String {
    let text = if number != 0.0 && (number.abs() >= 1.0e6 || number.abs() < 1.0e-3) {
        format!("{number:.1e}")
    } else {
        format!("{number:.3}")
    };
    if text.contains('.') && !text.contains('e') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}
/// Round numbers between two, about so many.
fn ticks((low, high): (f64, f64), about: f64) -> Vec<f64> {
    let rough = (high - low) / about.max(1.0);
    let power = 10.0_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|times| times * power).into_iter().find(|step| *step >= rough).unwrap_or(rough);
    let first = (low / step).ceil();
    let marks = (0..50).map(|at| (first + real(at)) * step);
    marks.take_while(|mark| *mark <= high + step * 1.0e-9).map(|mark| if mark.abs() < step * 1.0e-9 { 0.0 } else { mark }).collect()
}
/// From the least to the most; bars and areas start at nothing, and there is some room.
fn range(values: impl Iterator<Item = f64>, from_zero: bool, room: f64) -> (f64, f64) {
    let start = if from_zero { (0.0, 0.0) } else { (f64::MAX, f64::MIN) };
    let (low, high) = values.fold(start, |(low, high), value| (low.min(value), high.max(value)));
    if low > high {
        return (0.0, 1.0);
    }
    let span = high - low;
    if span <= f64::EPSILON * high.abs() {
        return (low - 0.5, high + 0.5);
    }
    (if from_zero && low >= 0.0 { low } else { low - span * room }, if from_zero && high <= 0.0 { high } else { high + span * room })
}

pub(super) fn draw(chart: &Chart, stop: &Stop) -> Result<RgbaImage, NodeError> {
    let mut map = Pixmap::new(chart.width, chart.height).ok_or_else(|| NodeError::new("the chart has no pixels"))?;
    let [red, green, blue, alpha] = chart.background;
    map.fill(Color::from_rgba(red, green, blue, alpha).unwrap_or(Color::WHITE));
    let mut words = Vec::new();
    if chart.series.iter().all(|series| series.kind == Kind::Pie) {
        pie(&mut map, chart, &mut words);
    } else {
        axes(&mut map, chart, &mut words, stop)?;
    }
    let (width, middle) = (i64::from(chart.width), i64::from(chart.width) / 2);
    if !chart.title.is_empty() {
        words.push(Words { text: chart.title.clone(), at: (middle, 8), align: 0.5, size: LARGE, bold: true });
    }
    if !chart.x_label.is_empty() {
        words.push(Words { text: chart.x_label.clone(), at: (middle, i64::from(chart.height) - 20), align: 0.5, size: SMALL, bold: false });
    }
    let mut picture = picture(&map);
    for word in words {
        word.write(&mut picture, width);
    }
    if !chart.y_label.is_empty() {
        upright(&mut picture, chart);
    }
    Ok(picture)
}
/// Text that goes on the picture at the end.
struct Words {
    text: String,
    at: (i64, i64),
    /// 0 begins at the place, 1 ends there.
    align: f32,
    size: u32,
    bold: bool,
}
impl Words {
    fn write(&self, picture: &mut RgbaImage, most: i64) {
        let style = Style { size: self.size, bold: self.bold, color: INK };
        let letters: String = self.text.chars().take(200).collect();
        #[expect(clippy::cast_possible_truncation, reason = "at most 200 letters")]
        let left = self.at.0 - (style.width(&letters) * self.align).round() as i64;
        style.line(picture, &letters, left.clamp(0, most), self.at.1);
    }
}
/// The label of the axis at the left, from below upwards.
fn upright(picture: &mut RgbaImage, chart: &Chart) {
    let style = Style { size: SMALL, bold: false, color: INK };
    let letters: String = chart.y_label.chars().take(200).collect();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 200 letters")]
    let width = (style.width(&letters).ceil() as u32).max(1);
    let mut flat = RgbaImage::from_pixel(width, SMALL + 2, Rgba([51, 51, 51, 0]));
    style.line(&mut flat, &letters, 0, 0);
    let turned = image::imageops::rotate270(&flat);
    let top = (i64::from(chart.height) - i64::from(turned.height())) / 2;
    image::imageops::overlay(picture, &turned, 4, top);
}
fn picture(map: &Pixmap) -> RgbaImage {
    let mut picture = RgbaImage::new(map.width(), map.height());
    for (to, from) in picture.pixels_mut().zip(map.pixels()) {
        let color = from.demultiply();
        *to = Rgba([color.red(), color.green(), color.blue(), color.alpha()]);
    }
    picture
}

#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "pixels")]
fn axes(map: &mut Pixmap, chart: &Chart, words: &mut Vec<Words>, stop: &Stop) -> Result<(), NodeError> {
    let points = || chart.series.iter().filter(|series| series.kind != Kind::Pie).flat_map(|series| &series.points);
    let bars = chart.series.iter().any(|series| series.kind == Kind::Bars);
    let from_zero = bars || chart.series.iter().any(|series| series.kind == Kind::Area);
    let named = !chart.categories.is_empty();
    let (x, y) = (range(points().map(|point| point.0), false, 0.03), range(points().map(|point| point.1), from_zero, 0.05));
    let x = if named { (-0.6, real(chart.categories.len()) - 0.4) } else { x };
    let (width, height) = (chart.width as f32, chart.height as f32);
    let left = 58.0 + if chart.y_label.is_empty() { 0.0 } else { 18.0 };
    let frame = Frame {
        left: left.min(width * 0.4),
        top: if chart.title.is_empty() { 14.0_f32 } else { 38.0 }.min(height * 0.3),
        right: width - 14.0,
        bottom: (height - if chart.x_label.is_empty() { 28.0 } else { 46.0 }).max(height * 0.5),
        x: chart.x_limits.unwrap_or(x),
        y: chart.y_limits.unwrap_or(y),
    };
    for mark in ticks(frame.y, f64::from(height / 60.0)) {
        let at = frame.y(mark);
        line(map, &[(frame.left, at), (frame.right, at)], GRID, 1.0);
        words.push(Words { text: short(mark), at: (frame.left as i64 - 6, at as i64 - 8), align: 1.0, size: SMALL, bold: false });
    }
    if named {
        // As many names as fit beside each other.
        let longest = chart.categories.iter().map(|name| name.chars().count()).max().unwrap_or(1).clamp(1, 12);
        let fit = ((frame.right - frame.left) / (longest as f32 * 8.0 + 8.0)).max(1.0) as usize;
        let every = chart.categories.len().div_ceil(fit.max(1)).max(1);
        for (at, name) in chart.categories.iter().enumerate().step_by(every) {
            let text = name.chars().take(12).collect();
            words.push(Words { text, at: (frame.x(real(at)) as i64, frame.bottom as i64 + 6), align: 0.5, size: SMALL, bold: false });
        }
    } else {
        for mark in ticks(frame.x, f64::from(width / 90.0)) {
            let at = frame.x(mark);
            line(map, &[(at, frame.bottom), (at, frame.bottom + 4.0)], INK, 1.0);
            words.push(Words { text: short(mark), at: (at as i64, frame.bottom as i64 + 6), align: 0.5, size: SMALL, bold: false });
        }
    }
    let many = chart.series.iter().filter(|series| series.kind == Kind::Bars).count().max(1);
    let mut bar = 0;
    for series in &chart.series {
        stop.check()?;
        shown(map, &frame, series, (bar, many));
        bar += usize::from(series.kind == Kind::Bars);
    }
    line(map, &[(frame.left, frame.top), (frame.left, frame.bottom), (frame.right, frame.bottom)], INK, 1.0);
    if !chart.despine {
        line(map, &[(frame.left, frame.top), (frame.right, frame.top), (frame.right, frame.bottom)], INK, 1.0);
    }
    if chart.legend && chart.series.len() > 1 {
        let names: Vec<_> = chart.series.iter().map(|series| (series.name.clone(), series.color)).collect();
        legend(map, &names, (frame.right, frame.top + 4.0), words);
    }
    Ok(())
}
#[expect(clippy::cast_possible_truncation, reason = "pixels")]
fn shown(map: &mut Pixmap, frame: &Frame, series: &Series, (bar, bars): (usize, usize)) {
    let spots: Vec<(f32, f32)> = series.points.iter().map(|(x, y)| (frame.x(*x), frame.y(*y))).collect();
    let ground = frame.y(0.0).clamp(frame.top, frame.bottom);
    match series.kind {
        Kind::Line => line(map, &spots, series.color, 2.0),
        Kind::Area => {
            let ends = spots.first().zip(spots.last()).map(|(first, last)| [(last.0, ground), (first.0, ground)]);
            let around: Vec<_> = spots.iter().copied().chain(ends.into_iter().flatten()).collect();
            let [red, green, blue, alpha] = series.color;
            fill(map, &around, [red, green, blue, alpha * 0.4]);
            line(map, &spots, series.color, 2.0);
        }
        Kind::Points => {
            for (x, y) in spots {
                if let Some(circle) = PathBuilder::from_circle(x, y, 3.5) {
                    map.fill_path(&circle, &paint(series.color), FillRule::Winding, Transform::identity(), None);
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
fn legend(map: &mut Pixmap, names: &[(String, [f32; 4])], (right, top): (f32, f32), words: &mut Vec<Words>) {
    let mut y = top;
    for (name, color) in names.iter().take(20) {
        if let Some(rect) = Rect::from_xywh(right - 14.0, y + 3.0, 10.0, 10.0) {
            map.fill_rect(rect, &paint(*color), Transform::identity(), None);
        }
        let text = name.chars().take(24).collect();
        words.push(Words { text, at: (right as i64 - 20, y as i64), align: 1.0, size: SMALL, bold: false });
        y += 18.0;
    }
}
/// Parts of the first series, clockwise from above. What is below nothing has no part.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "pixels")]
fn pie(map: &mut Pixmap, chart: &Chart, words: &mut Vec<Words>) {
    let Some(series) = chart.series.first() else { return };
    let whole: f64 = series.points.iter().map(|point| point.1.max(0.0)).sum();
    if whole <= 0.0 {
        return;
    }
    let (width, height) = (chart.width as f32, chart.height as f32);
    let (middle_x, middle_y) = (width / 2.0, (height + if chart.title.is_empty() { 0.0 } else { 24.0 }) / 2.0);
    let radius = (width.min(height) / 2.0 - 40.0).max(6.0);
    let mut from = 0.0_f64;
    let mut names = Vec::new();
    for (at, (place, value)) in series.points.iter().enumerate() {
        let part = value.max(0.0) / whole;
        let steps = ((part * real(ARC)).ceil() as usize).clamp(1, ARC);
        let rim = (0..=steps).map(|step| {
            let turn = (from + part * real(step) / real(steps)) * std::f64::consts::TAU;
            (middle_x + radius * turn.sin() as f32, middle_y - radius * turn.cos() as f32)
        });
        let around: Vec<_> = std::iter::once((middle_x, middle_y)).chain(rim).collect();
        fill(map, &around, palette(at));
        let name = chart.categories.get(place.max(0.0) as usize).cloned().unwrap_or_default();
        names.push((format!("{name} {}%", short((part * 1_000.0).round() / 10.0)), palette(at)));
        from += part;
    }
    if chart.legend {
        legend(map, &names, (width - 8.0, 8.0), words);
    }
}

//! A chart as pixels.

use image::{Rgba, RgbaImage};
use tiny_skia::{Color, Pixmap};

use super::{
    data::{Chart, Kind, real},
    ink::{Frame, GRID, INK, LARGE, SMALL, Words, legend, line, pie, shown},
};
use crate::{
    node::NodeError,
    nodes::{image::Style, media_io::Stop},
};

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
    let step = [1.0, 2.0, 5.0, 10.0]
        .map(|times| times * power)
        .into_iter()
        .find(|step| *step >= rough)
        .unwrap_or(rough);
    let first = (low / step).ceil();
    let marks = (0..50).map(|at| (first + real(at)) * step);
    marks
        .take_while(|mark| *mark <= high + step * 1.0e-9)
        .map(|mark| if mark.abs() < step * 1.0e-9 { 0.0 } else { mark })
        .collect()
}
/// From the least to the most; bars and areas start at nothing, and there is some room.
fn range(values: impl Iterator<Item = f64>, from_zero: bool, room: f64) -> (f64, f64) {
    let start = if from_zero {
        (0.0, 0.0)
    } else {
        (f64::MAX, f64::MIN)
    };
    let (low, high) = values.fold(start, |(low, high), value| (low.min(value), high.max(value)));
    if low > high {
        return (0.0, 1.0);
    }
    let span = high - low;
    if span <= f64::EPSILON * high.abs() {
        return (low - 0.5, high + 0.5);
    }
    (
        if from_zero && low >= 0.0 {
            low
        } else {
            low - span * room
        },
        if from_zero && high <= 0.0 {
            high
        } else {
            high + span * room
        },
    )
}

pub(super) fn draw(chart: &Chart, stop: &Stop) -> Result<RgbaImage, NodeError> {
    let mut map =
        Pixmap::new(chart.width, chart.height).ok_or_else(|| NodeError::new("the chart has no pixels"))?;
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
        words.push(Words {
            text: chart.title.clone(),
            at: (middle, 8),
            align: 0.5,
            size: LARGE,
            bold: true,
        });
    }
    if !chart.x_label.is_empty() {
        words.push(Words {
            text: chart.x_label.clone(),
            at: (middle, i64::from(chart.height) - 20),
            align: 0.5,
            size: SMALL,
            bold: false,
        });
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
/// The label of the axis at the left, from below upwards.
fn upright(picture: &mut RgbaImage, chart: &Chart) {
    let style = Style {
        size: SMALL,
        bold: false,
        color: INK,
    };
    let letters: String = chart.y_label.chars().take(200).collect();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at most 200 letters"
    )]
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

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "pixels"
)]
fn axes(map: &mut Pixmap, chart: &Chart, words: &mut Vec<Words>, stop: &Stop) -> Result<(), NodeError> {
    let points = || {
        chart
            .series
            .iter()
            .filter(|series| series.kind != Kind::Pie)
            .flat_map(|series| &series.points)
    };
    let bars = chart.series.iter().any(|series| series.kind == Kind::Bars);
    let from_zero = bars || chart.series.iter().any(|series| series.kind == Kind::Area);
    let named = !chart.categories.is_empty();
    let (x, y) = (
        range(points().map(|point| point.0), false, 0.03),
        range(points().map(|point| point.1), from_zero, 0.05),
    );
    let x = if named {
        (-0.6, real(chart.categories.len()) - 0.4)
    } else {
        x
    };
    let (width, height) = (chart.width as f32, chart.height as f32);
    let left: f32 = 58.0 + if chart.y_label.is_empty() { 0.0 } else { 18.0 };
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
        words.push(Words {
            text: short(mark),
            at: (frame.left as i64 - 6, at as i64 - 8),
            align: 1.0,
            size: SMALL,
            bold: false,
        });
    }
    if named {
        // As many names as fit beside each other.
        let longest = chart
            .categories
            .iter()
            .map(|name| name.chars().count())
            .max()
            .unwrap_or(1)
            .clamp(1, 12);
        let fit = ((frame.right - frame.left) / (longest as f32 * 8.0 + 8.0)).max(1.0) as usize;
        let every = chart.categories.len().div_ceil(fit.max(1)).max(1);
        for (at, name) in chart.categories.iter().enumerate().step_by(every) {
            let text = name.chars().take(12).collect();
            words.push(Words {
                text,
                at: (frame.x(real(at)) as i64, frame.bottom as i64 + 6),
                align: 0.5,
                size: SMALL,
                bold: false,
            });
        }
    } else {
        for mark in ticks(frame.x, f64::from(width / 90.0)) {
            let at = frame.x(mark);
            line(map, &[(at, frame.bottom), (at, frame.bottom + 4.0)], INK, 1.0);
            words.push(Words {
                text: short(mark),
                at: (at as i64, frame.bottom as i64 + 6),
                align: 0.5,
                size: SMALL,
                bold: false,
            });
        }
    }
    let many = chart
        .series
        .iter()
        .filter(|series| series.kind == Kind::Bars)
        .count()
        .max(1);
    let mut bar = 0;
    for series in &chart.series {
        stop.check()?;
        shown(map, &frame, series, (bar, many));
        bar += usize::from(series.kind == Kind::Bars);
    }
    line(
        map,
        &[
            (frame.left, frame.top),
            (frame.left, frame.bottom),
            (frame.right, frame.bottom),
        ],
        INK,
        1.0,
    );
    if !chart.despine {
        line(
            map,
            &[
                (frame.left, frame.top),
                (frame.right, frame.top),
                (frame.right, frame.bottom),
            ],
            INK,
            1.0,
        );
    }
    if chart.legend && chart.series.len() > 1 {
        let names: Vec<_> = chart
            .series
            .iter()
            .map(|series| (series.name.clone(), series.color))
            .collect();
        legend(map, &names, (frame.right, frame.top + 4.0), words);
    }
    Ok(())
}

//! What a chart shows: its settings, and the columns of a table.

use atelier_proto::value::{Map, Value};

use crate::{
    node::NodeError,
    nodes::{
        args::{Args, missing, text_of},
        image,
        media_io::{Params, value_fault},
    },
};

/// Most points of a chart, and most series.
const MAX_POINTS: usize = 1_000_000;
const MAX_SERIES: usize = 64;
/// Longest side, in pixels; less than the type allows, since a chart is drawn as a whole.
const MAX_SIDE: u32 = 8_192;
/// Bars of a histogram that does not say.
const BINS: usize = 10;

/// Colours of series that have none.
const PALETTE: [&str; 8] = [
    "#4c72b0", "#dd8452", "#55a868", "#c44e52", "#8172b3", "#937860", "#da8bc3", "#8c8c8c",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Line,
    Area,
    Points,
    Bars,
    Pie,
}
/// One series of points. Bars and pies count places; their names are the chart's categories.
#[derive(Debug, Clone)]
pub(super) struct Series {
    pub kind: Kind,
    pub name: String,
    pub color: [f32; 4],
    pub points: Vec<(f64, f64)>,
}
#[derive(Debug, Clone)]
pub(super) struct Chart {
    pub title: String,
    pub x_label: String,
    pub y_label: String,
    pub legend: bool,
    pub despine: bool,
    pub background: [f32; 4],
    pub width: u32,
    pub height: u32,
    /// Names along the axis; empty when it has numbers.
    pub categories: Vec<String>,
    pub series: Vec<Series>,
    /// Limits that are stated.
    pub x_limits: Option<(f64, f64)>,
    pub y_limits: Option<(f64, f64)>,
}

/// The color of a place in the palette.
pub(super) fn palette(place: usize) -> [f32; 4] {
    let text = PALETTE.get(place % PALETTE.len()).copied().unwrap_or_default();
    image::color("color", &text.into()).unwrap_or([0.0, 0.0, 0.0, 1.0])
}
fn limits(config: &Map, name: &str) -> Option<(f64, f64)> {
    match Args(config).list(name).as_slice() {
        [low, high] => low.as_f64().zip(high.as_f64()).filter(|(low, high)| low < high),
        _ => None,
    }
}
pub(super) fn chart(params: &Params) -> Result<Chart, NodeError> {
    let config = params.value("chart_config");
    let config = config
        .as_map()
        .ok_or_else(|| missing("chart_config", "there is nothing to draw"))?;
    let args = Args(config);
    let side = |name: &str| {
        let pixels = params.size(name)?;
        if !(16..=MAX_SIDE).contains(&pixels) {
            return Err(value_fault(
                name,
                &format!("must be between 16 and {MAX_SIDE}, got {pixels}"),
            ));
        }
        Ok(pixels)
    };
    let mut chart = Chart {
        title: args.text("title"),
        x_label: args.text("x_label"),
        y_label: args.text("y_label"),
        legend: args.flag("legend", true),
        despine: params.flag("despine"),
        background: image::color("background_color", &params.value("background_color"))?,
        width: side("width")?,
        height: side("height")?,
        categories: Vec::new(),
        series: Vec::new(),
        x_limits: limits(config, "x_lim"),
        y_limits: limits(config, "y_lim"),
    };
    let table = Table::new(&params.value("data"))?;
    let listed = args
        .value("data")
        .as_map()
        .map(|data| Args(data).list("series"))
        .unwrap_or_default();
    if listed.len() > MAX_SERIES {
        return Err(value_fault(
            "chart_config",
            &format!("has more than {MAX_SERIES} series"),
        ));
    }
    for (place, series) in listed.iter().enumerate() {
        let Some(series) = series.as_map() else { continue };
        add(&mut chart, &table, Args(series), place)?;
    }
    if chart.series.iter().all(|series| series.points.is_empty()) {
        return Err(value_fault(
            "chart_config",
            "has no series with points in the table",
        ));
    }
    Ok(chart)
}
fn add(chart: &mut Chart, table: &Table, series: Args<'_>, place: usize) -> Result<(), NodeError> {
    let (x, y) = (series.text("x"), series.text("y"));
    let word = series.text_or("plot_type", &series.text_or("type", "line"));
    let kind = match word.as_str() {
        "scatter" | "strip" | "swarm" => Kind::Points,
        "bar" | "count" | "hist" | "histogram" | "box" | "violin" | "column" => Kind::Bars,
        "area" | "kde" => Kind::Area,
        "pie" => Kind::Pie,
        _ => Kind::Line,
    };
    let color = match series.value("color") {
        Value::Null => palette(place),
        color => image::color("color", &color)?,
    };
    let name = series.text_or("label", if y.is_empty() { &x } else { &y });
    let points = if matches!(word.as_str(), "hist" | "histogram") {
        let wanted = usize::try_from(series.int("bins", 0).unwrap_or_default()).unwrap_or_default();
        bins(chart, &table.numbers(if x.is_empty() { &y } else { &x })?, wanted)
    } else if kind == Kind::Bars || kind == Kind::Pie {
        counted(chart, table, &x, &y)?
    } else {
        let values = table.numbers(&y)?;
        let places = if x.is_empty() {
            None
        } else {
            Some(table.column(&x)?)
        };
        values
            .into_iter()
            .enumerate()
            .filter_map(|(at, value)| {
                Some((
                    spot(chart, places.as_ref().and_then(|all| all.get(at)), at),
                    value?,
                ))
            })
            .collect()
    };
    chart.series.push(Series {
        kind,
        name,
        color,
        points,
    });
    Ok(())
}
/// The place of a value: the number, or that of its name among the categories.
fn spot(chart: &mut Chart, value: Option<&Value>, at: usize) -> f64 {
    match value.map(|value| (number(value), value)) {
        Some((Some(number), _)) if chart.categories.is_empty() => number,
        Some((_, value)) => category(chart, &text_of(value)),
        None => real(at),
    }
}
fn category(chart: &mut Chart, name: &str) -> f64 {
    let found = chart.categories.iter().position(|known| known == name);
    real(found.unwrap_or_else(|| {
        chart.categories.push(name.to_owned());
        chart.categories.len() - 1
    }))
}
/// The mean of each category, or how often it occurs when there is nothing to take the mean of.
fn counted(chart: &mut Chart, table: &Table, x: &str, y: &str) -> Result<Vec<(f64, f64)>, NodeError> {
    let values = if y.is_empty() {
        None
    } else {
        Some(table.numbers(y)?)
    };
    let names: Vec<String> = if x.is_empty() {
        (1..=values.as_ref().map_or(0, Vec::len))
            .map(|at| at.to_string())
            .collect()
    } else {
        table.column(x)?.iter().map(text_of).collect()
    };
    let mut sums: Vec<(f64, f64, f64)> = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let value = match &values {
            Some(values) => match values.get(at).copied().flatten() {
                Some(value) => value,
                None => continue,
            },
            None => 1.0,
        };
        let place = category(chart, name);
        if chart.categories.len() > 1_000 {
            return Err(value_fault("data", "has more than 1000 categories"));
        }
        match sums.iter_mut().find(|(known, _, _)| (*known - place).abs() < 0.5) {
            Some((_, sum, count)) => {
                *sum += value;
                *count += 1.0;
            }
            None => sums.push((place, value, 1.0)),
        }
    }
    let mean =
        |(place, sum, count): (f64, f64, f64)| (place, if values.is_some() { sum / count } else { sum });
    Ok(sums.into_iter().map(mean).collect())
}
/// How many numbers are in each of so many equal ranges.
fn bins(chart: &mut Chart, numbers: &[Option<f64>], wanted: usize) -> Vec<(f64, f64)> {
    let numbers: Vec<f64> = numbers.iter().copied().flatten().collect();
    let (low, high) = numbers.iter().fold((f64::MAX, f64::MIN), |(low, high), number| {
        (low.min(*number), high.max(*number))
    });
    if numbers.is_empty() {
        return Vec::new();
    }
    let many = if wanted == 0 { BINS } else { wanted.min(200) };
    let step = if high > low {
        (high - low) / real(many)
    } else {
        1.0
    };
    let mut counts = vec![0.0; many];
    for number in numbers {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "at most the number of ranges"
        )]
        let at = (((number - low) / step) as usize).min(many - 1);
        if let Some(count) = counts.get_mut(at) {
            *count += 1.0;
        }
    }
    let middles: Vec<f64> = (0..many).map(|at| low + (real(at) + 0.5) * step).collect();
    middles
        .into_iter()
        .map(|middle| category(chart, &super::draw::short(middle)))
        .zip(counts)
        .collect()
}
#[expect(clippy::cast_precision_loss, reason = "small counts")]
pub(super) fn real(number: usize) -> f64 {
    number as f64
}
/// A number, also written as text.
fn number(value: &Value) -> Option<f64> {
    let written = || value.as_str().and_then(|text| text.trim().parse().ok());
    value
        .as_f64()
        .or_else(written)
        .filter(|number| number.is_finite())
}

/// Columns of a table: of a dataframe, of a list of records, or of a record of lists.
struct Table(Vec<(String, Vec<Value>)>);
impl Table {
    fn new(value: &Value) -> Result<Self, NodeError> {
        let records = |rows: &[Value]| {
            let mut table: Vec<(String, Vec<Value>)> = Vec::new();
            for (at, row) in rows.iter().enumerate() {
                for (name, value) in row.as_map().into_iter().flat_map(|row| row.iter()) {
                    let place = table
                        .iter()
                        .position(|(known, _)| known == name)
                        .unwrap_or_else(|| {
                            table.push((name.clone(), Vec::new()));
                            table.len() - 1
                        });
                    if let Some((_, column)) = table.get_mut(place) {
                        column.resize(at, Value::Null);
                        column.push(value.clone());
                    }
                }
            }
            table
        };
        let table = match value {
            Value::List(rows) => records(rows),
            Value::Map(map) => {
                let columns = Args(map).list("columns");
                let names = columns.iter().map(|column| {
                    column
                        .get("name")
                        .as_ref()
                        .map_or_else(|| text_of(column), text_of)
                });
                let rows = Args(map).list("data");
                if rows.first().is_some_and(|row| row.as_map().is_some()) {
                    records(&rows)
                } else if columns.is_empty() {
                    map.iter()
                        .filter_map(|(name, column)| Some((name.clone(), column.as_list()?.to_vec())))
                        .collect()
                } else {
                    let cell = |row: &Value, at: usize| {
                        row.as_list()
                            .and_then(|row| row.get(at))
                            .cloned()
                            .unwrap_or_default()
                    };
                    names
                        .enumerate()
                        .map(|(at, name)| (name, rows.iter().map(|row| cell(row, at)).collect()))
                        .collect()
                }
            }
            _ => Vec::new(),
        };
        let points: usize = table
            .iter()
            .map(|(_, column): &(String, Vec<Value>)| column.len())
            .sum();
        if points > MAX_POINTS {
            return Err(value_fault("data", &format!("has more than {MAX_POINTS} values")));
        }
        if table.is_empty() {
            return Err(missing("data", "there is no table to draw"));
        }
        Ok(Self(table))
    }
    fn column(&self, name: &str) -> Result<&Vec<Value>, NodeError> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, column)| column).ok_or_else(|| {
            let known: Vec<&str> = self.0.iter().map(|(name, _)| name.as_str()).take(20).collect();
            let name: String = name.chars().take(60).collect();
            value_fault(
                "data",
                &format!("has no column {name:?}; it has: {}", known.join(", ")),
            )
        })
    }
    fn numbers(&self, name: &str) -> Result<Vec<Option<f64>>, NodeError> {
        Ok(self.column(name)?.iter().map(number).collect())
    }
}

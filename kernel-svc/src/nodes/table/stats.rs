//! Types that sum tables up: groups, cross tables, descriptions.

use atelier_proto::value::{Map, Value};
use indexmap::IndexMap;

use super::{
    change::title,
    frame::{Column, Frame, key, number, order},
};
use crate::{
    node::NodeError,
    nodes::{
        args::{Args, count, one},
        code::{Route, Types, factory},
        work::Heavy,
    },
};

/// All types of this part.
pub(super) fn types() -> Types {
    let heavy: [(&'static str, Route); 3] = [
        ("nodetool.data.Aggregate", aggregate),
        ("nodetool.data.Describe", describe),
        ("nodetool.data.Pivot", pivot),
    ];
    heavy
        .into_iter()
        .map(|(name, route)| (name, factory(Heavy(route))))
        .collect()
}

/// How many cells become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fold {
    Sum,
    Mean,
    Median,
    Min,
    Max,
    Count,
    Std,
    Var,
    First,
    Last,
    Unique,
}
impl Fold {
    fn of(args: Args<'_>, input: &str) -> Result<Self, NodeError> {
        Ok(match args.text_or(input, "sum").trim().to_lowercase().as_str() {
            "sum" | "" => Self::Sum,
            "mean" | "avg" | "average" => Self::Mean,
            "median" => Self::Median,
            "min" => Self::Min,
            "max" => Self::Max,
            "count" | "size" => Self::Count,
            "std" => Self::Std,
            "var" => Self::Var,
            "first" => Self::First,
            "last" => Self::Last,
            "nunique" => Self::Unique,
            other => {
                let other: String = other.chars().take(40).collect();
                let text = format!(
                    "the input `{input}` must be sum, mean, median, min, max, count, std, var, first, last or \
                     nunique, got {other}"
                );
                return Err(NodeError::new(text).code("input.value"));
            }
        })
    }
    /// Whether only numbers can be folded so.
    fn numeric(self) -> bool {
        matches!(
            self,
            Self::Sum | Self::Mean | Self::Median | Self::Std | Self::Var
        )
    }
    fn apply(self, cells: &[&Value]) -> Value {
        let there: Vec<&Value> = cells.iter().copied().filter(|cell| !cell.is_null()).collect();
        let mut numbers: Vec<f64> = there.iter().filter_map(|cell| number(cell)).collect();
        let float = |number: Option<f64>| number.map_or(Value::Null, Value::Float);
        match self {
            Self::Sum => sum(&there, &numbers),
            Self::Mean => float(mean(&numbers)),
            Self::Median => float(quantile(&mut numbers, 0.5)),
            Self::Std => float(variance(&numbers).map(f64::sqrt)),
            Self::Var => float(variance(&numbers)),
            Self::Count => count(there.len()),
            Self::Unique => {
                let keys: std::collections::HashSet<_> = there.iter().map(|cell| key(cell)).collect();
                count(keys.len())
            }
            Self::Min => there
                .into_iter()
                .min_by(|a, b| order(a, b))
                .cloned()
                .unwrap_or_default(),
            Self::Max => there
                .into_iter()
                .max_by(|a, b| order(a, b))
                .cloned()
                .unwrap_or_default(),
            Self::First => there.first().map(|cell| (*cell).clone()).unwrap_or_default(),
            Self::Last => there.last().map(|cell| (*cell).clone()).unwrap_or_default(),
        }
    }
}
/// Whole numbers give a whole sum while it fits.
fn sum(cells: &[&Value], numbers: &[f64]) -> Value {
    let whole = cells.iter().try_fold(0_i64, |sum, cell| match cell {
        Value::Int(number) => sum.checked_add(*number),
        _ => None,
    });
    whole.map_or_else(|| Value::Float(numbers.iter().sum()), Value::Int)
}
#[expect(clippy::cast_precision_loss, reason = "a number of cells, far below 2^52")]
fn length(numbers: &[f64]) -> f64 {
    numbers.len() as f64
}
/// The mean; `None` of nothing.
pub(super) fn mean(numbers: &[f64]) -> Option<f64> {
    (!numbers.is_empty()).then(|| numbers.iter().sum::<f64>() / length(numbers))
}
/// Of a sample; `None` of fewer than two.
fn variance(numbers: &[f64]) -> Option<f64> {
    let mean = mean(numbers).filter(|_| numbers.len() > 1)?;
    let squares: f64 = numbers.iter().map(|number| (number - mean).powi(2)).sum();
    Some(squares / (length(numbers) - 1.0))
}
/// The value below which a share lies, between neighbours in proportion.
pub(super) fn quantile(numbers: &mut [f64], share: f64) -> Option<f64> {
    numbers.sort_by(f64::total_cmp);
    let place = share * (length(numbers) - 1.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a place in the list"
    )]
    let below = numbers.get(place.floor().max(0.0) as usize)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a place in the list"
    )]
    let above = numbers.get(place.ceil().max(0.0) as usize)?;
    Some(below + (above - below) * place.fract())
}

fn is_numeric(frame: &Frame, at: usize) -> bool {
    let mut cells = frame.rows.iter().filter_map(|row| row.get(at)).peekable();
    cells.peek().is_some() && cells.all(|cell| cell.is_null() || number(cell).is_some())
}
/// Groups of rows with equal cells in the named columns, in order of those cells; all other columns are folded. A fold that
/// needs numbers leaves the columns out that hold anything else.
fn aggregate(args: Args<'_>) -> Result<Map, NodeError> {
    let frame = Frame::read(args, "dataframe")?;
    let by = frame.places(args, "columns")?;
    let fold = Fold::of(args, "aggregation")?;
    let folded: Vec<usize> = (0..frame.columns.len())
        .filter(|at| !by.contains(at) && (!fold.numeric() || is_numeric(&frame, *at)))
        .collect();
    let mut groups: IndexMap<Vec<String>, Vec<&Vec<Value>>> = IndexMap::new();
    for row in &frame.rows {
        let keys = by.iter().filter_map(|at| row.get(*at)).map(key).collect();
        groups.entry(keys).or_default().push(row);
    }
    let columns = by.iter().chain(&folded).filter_map(|at| frame.columns.get(*at));
    let columns = columns.map(|column| Column::named(&column.name)).collect();
    let mut rows: Vec<Vec<Value>> = groups
        .values()
        .map(|group| {
            let first = group.first();
            let own = by
                .iter()
                .filter_map(|at| first.and_then(|row| row.get(*at)).cloned());
            let cells = folded.iter().map(|at| {
                let cells: Vec<&Value> = group.iter().filter_map(|row| row.get(*at)).collect();
                fold.apply(&cells)
            });
            own.chain(cells).collect()
        })
        .collect();
    rows.sort_by(|one, other| {
        let pairs = one.iter().zip(other).take(by.len());
        let mut orders = pairs.map(|(one, other)| order(one, other));
        orders
            .find(|order| order.is_ne())
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    Ok(one("output", Frame { columns, rows }.value()))
}
/// A row for each value of one column, a column for each value of another.
fn pivot(args: Args<'_>) -> Result<Map, NodeError> {
    let frame = Frame::read(args, "dataframe")?;
    let place = |input: &str| frame.place(input, args.text(input).trim());
    let (index, columns, values) = (place("index")?, place("columns")?, place("values")?);
    let fold = Fold::of(args, "aggfunc")?;
    let mut heads: Vec<Value> = Vec::new();
    let mut sides: Vec<Value> = Vec::new();
    let mut cells: IndexMap<(String, String), Vec<&Value>> = IndexMap::new();
    let (mut known_heads, mut known_sides) =
        (std::collections::HashSet::new(), std::collections::HashSet::new());
    for row in &frame.rows {
        let (Some(side), Some(head), Some(value)) = (row.get(index), row.get(columns), row.get(values))
        else {
            continue;
        };
        if known_sides.insert(key(side)) {
            sides.push(side.clone());
        }
        if known_heads.insert(key(head)) {
            heads.push(head.clone());
        }
        cells.entry((key(side), key(head))).or_default().push(value);
    }
    heads.sort_by(order);
    sides.sort_by(order);
    let name = frame.columns.get(index).map(|column| column.name.clone());
    let mut table = Frame {
        columns: std::iter::once(name.unwrap_or_default())
            .chain(heads.iter().map(title))
            .map(Column::named)
            .collect(),
        rows: Vec::new(),
    };
    for side in sides {
        let own = heads.iter().map(|head| {
            let found = cells.get(&(key(&side), key(head)));
            found.map_or(Value::Null, |cells| fold.apply(cells))
        });
        let row = std::iter::once(side.clone()).chain(own).collect();
        table.rows.push(row);
        table.bounded("dataframe")?;
    }
    Ok(one("output", table.value()))
}
/// Count, mean, spread and quartiles of each column of numbers.
fn describe(args: Args<'_>) -> Result<Map, NodeError> {
    let frame = Frame::read(args, "dataframe")?;
    let places: Vec<usize> = (0..frame.columns.len())
        .filter(|at| is_numeric(&frame, *at))
        .collect();
    let names = places.iter().filter_map(|at| frame.columns.get(*at));
    let columns = std::iter::once("statistic".to_owned())
        .chain(names.map(|column| column.name.clone()))
        .map(Column::named)
        .collect();
    let mut lines: Vec<Vec<Value>> = ["count", "mean", "std", "min", "25%", "50%", "75%", "max"]
        .into_iter()
        .map(|name| vec![name.into()])
        .collect();
    for at in places {
        let cells = frame.rows.iter().filter_map(|row| row.get(at));
        let mut numbers: Vec<f64> = cells.filter_map(number).collect();
        let spread = variance(&numbers).map(f64::sqrt);
        let all = [
            Some(length(&numbers)),
            mean(&numbers),
            spread,
            quantile(&mut numbers, 0.0),
            quantile(&mut numbers, 0.25),
            quantile(&mut numbers, 0.5),
            quantile(&mut numbers, 0.75),
            quantile(&mut numbers, 1.0),
        ];
        for (line, number) in lines.iter_mut().zip(all) {
            line.push(number.map_or(Value::Null, Value::Float));
        }
    }
    Ok(one("output", Frame { columns, rows: lines }.value()))
}

#[cfg(test)]
mod tests;

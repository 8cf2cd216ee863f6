//! Types that work with columns.

use atelier_proto::value::{Map, Value};

use super::{
    frame::{Column, Frame, names, number},
    rows::is_empty,
};
use crate::{
    node::NodeError,
    nodes::{
        args::{Args, one, text_of, wrong},
        code::{Route, Types, factory},
        work::Heavy,
    },
};

/// All types of this part.
pub(super) fn types() -> Types {
    let heavy: [(&'static str, Route); 6] = [
        ("nodetool.data.AddColumn", add),
        ("nodetool.data.ExtractColumn", |args| {
            let frame = Frame::read(args, "dataframe")?;
            let at = frame.place("column_name", &args.text("column_name"))?;
            let cells = (0..frame.rows.len()).map(|row| frame.cell(row, at));
            Ok(one("output", Value::list(cells.collect())))
        }),
        ("nodetool.data.FillNA", fill),
        ("nodetool.data.Rename", rename),
        ("nodetool.data.Schema", |args| {
            Ok(one("output", args.value("columns")))
        }),
        ("nodetool.data.SelectColumn", |args| {
            let frame = Frame::read(args, "dataframe")?;
            let places = frame.places(args, "columns")?;
            if places.is_empty() {
                return Ok(one("output", frame.value()));
            }
            let columns = places.iter().filter_map(|at| frame.columns.get(*at)).cloned();
            let cells = |row: usize| places.iter().map(|at| frame.cell(row, *at)).collect();
            let chosen = Frame {
                columns: columns.collect(),
                rows: (0..frame.rows.len()).map(cells).collect(),
            };
            Ok(one("output", chosen.value()))
        }),
    ];
    heavy
        .into_iter()
        .map(|(name, route)| (name, factory(Heavy(route))))
        .collect()
}

/// A value for each row; a column of that name is replaced.
fn add(args: Args<'_>) -> Result<Map, NodeError> {
    let mut frame = Frame::read(args, "dataframe")?;
    let name = args.text("column_name");
    if name.is_empty() {
        return Err(crate::nodes::args::missing(
            "column_name",
            "the new column needs a name",
        ));
    }
    let values = match args.value("values") {
        Value::List(values) => values,
        other => return Err(wrong("values", "list", &other)),
    };
    if frame.columns.is_empty() {
        frame.rows = vec![Vec::new(); values.len()];
    }
    if values.len() != frame.rows.len() {
        let (has, rows) = (values.len(), frame.rows.len());
        let text = format!("the input `values` has {has} values for {rows} rows");
        return Err(NodeError::new(text).code("input.value"));
    }
    let old = frame.columns.iter().position(|column| column.name == name);
    match old.and_then(|at| frame.columns.get_mut(at)) {
        Some(column) => column.data_type.clear(),
        None => frame.columns.push(Column::named(name)),
    }
    for (row, value) in frame.rows.iter_mut().zip(values.iter()) {
        match old.and_then(|at| row.get_mut(at)) {
            Some(cell) => *cell = value.clone(),
            None => row.push(value.clone()),
        }
    }
    frame.bounded("values")?;
    Ok(one("output", frame.value()))
}
/// Old names and new ones: an object, a JSON text, or `old:new` with commas between.
fn rename(args: Args<'_>) -> Result<Map, NodeError> {
    let mut frame = Frame::read(args, "dataframe")?;
    let bad = || {
        let text = "the input `rename_map` must be an object or pairs `old:new` with commas between";
        NodeError::new(text).code("input.value")
    };
    let text = args.text("rename_map");
    let pairs: Vec<(String, String)> = if text.trim_start().starts_with('{') {
        let read: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(&text).map_err(|_| bad())?;
        read.into_iter()
            .map(|(old, new)| (old, new.as_str().map_or_else(|| new.to_string(), str::to_owned)))
            .collect()
    } else {
        names(args, "rename_map")
            .iter()
            .map(|pair| {
                let pair = pair.split_once(':').ok_or_else(bad)?;
                Ok((pair.0.trim().to_owned(), pair.1.trim().to_owned()))
            })
            .collect::<Result<_, NodeError>>()?
    };
    let places: Vec<_> = pairs
        .iter()
        .map(|(old, _)| frame.place("rename_map", old))
        .collect::<Result<_, _>>()?;
    for (at, (_, new)) in places.into_iter().zip(pairs) {
        if let Some(column) = frame.columns.get_mut(at) {
            column.name = new;
        }
    }
    Ok(one("output", frame.value()))
}
/// Fills empty cells with a value, the cell before or after, or the mean or median of the column.
fn fill(args: Args<'_>) -> Result<Map, NodeError> {
    let mut frame = Frame::read(args, "dataframe")?;
    let mut places = frame.places(args, "columns")?;
    if places.is_empty() {
        places = (0..frame.columns.len()).collect();
    }
    let method = args.text_or("method", "value").to_lowercase();
    for at in places {
        let cells: Vec<Value> = (0..frame.rows.len()).map(|row| frame.cell(row, at)).collect();
        let filled = match method.as_str() {
            "value" | "" => constant(cells, &args.value("value")),
            "forward" | "ffill" | "pad" => carried(cells.into_iter()),
            "backward" | "bfill" | "backfill" => {
                let mut filled = carried(cells.into_iter().rev());
                filled.reverse();
                filled
            }
            "mean" | "median" => {
                let mut numbers: Vec<f64> = cells.iter().filter_map(number).collect();
                let value = if method == "mean" {
                    super::stats::mean(&numbers)
                } else {
                    super::stats::quantile(&mut numbers, 0.5)
                };
                constant(cells, &value.map_or(Value::Null, Value::Float))
            }
            other => {
                let other: String = other.chars().take(40).collect();
                let text = format!(
                    "the input `method` must be value, forward, backward, mean or median, got {other}"
                );
                return Err(NodeError::new(text).code("input.value"));
            }
        };
        for (row, cell) in frame.rows.iter_mut().zip(filled) {
            if let Some(place) = row.get_mut(at) {
                *place = cell;
            }
        }
        if let Some(column) = frame.columns.get_mut(at) {
            column.data_type.clear();
        }
    }
    Ok(one("output", frame.value()))
}
fn constant(cells: Vec<Value>, value: &Value) -> Vec<Value> {
    let filled = |cell: Value| if is_empty(&cell) { value.clone() } else { cell };
    cells.into_iter().map(filled).collect()
}
/// Each empty cell gets the last one that was not.
fn carried(cells: impl Iterator<Item = Value>) -> Vec<Value> {
    let mut last = Value::Null;
    cells
        .map(|cell| {
            if !is_empty(&cell) {
                last = cell;
            }
            last.clone()
        })
        .collect()
}
/// Any cell as text, for names of columns.
pub(super) fn title(cell: &Value) -> String {
    if cell.is_null() {
        "null".to_owned()
    } else {
        text_of(cell)
    }
}

//! Types that put two tables together.

use std::collections::HashMap;

use atelier_proto::value::{Map, Value};

use super::frame::{Column, Frame, key};
use crate::{
    node::NodeError,
    nodes::{
        args::{Args, missing, one},
        code::{Route, Types, factory},
        work::Heavy,
    },
};

/// All types of this part.
pub(super) fn types() -> Types {
    let heavy: [(&'static str, Route); 3] = [
        ("nodetool.data.Append", append),
        ("nodetool.data.Join", join),
        ("nodetool.data.Merge", merge),
    ];
    heavy
        .into_iter()
        .map(|(name, route)| (name, factory(Heavy(route))))
        .collect()
}

fn both(args: Args<'_>) -> Result<(Frame, Frame), NodeError> {
    Ok((
        Frame::read(args, "dataframe_a")?,
        Frame::read(args, "dataframe_b")?,
    ))
}
/// The rows of one below those of the other. The columns must have the same names; an empty table has any.
fn append(args: Args<'_>) -> Result<Map, NodeError> {
    let (mut a, b) = both(args)?;
    if a.columns.is_empty() {
        return Ok(one("output", b.value()));
    }
    if b.columns.is_empty() {
        return Ok(one("output", a.value()));
    }
    let places: Vec<usize> = a
        .columns
        .iter()
        .map(|column| b.place("dataframe_b", &column.name))
        .collect::<Result<_, _>>()?;
    if b.columns.len() != a.columns.len() {
        let (has, wanted) = (b.columns.len(), a.columns.len());
        let text = format!("the input `dataframe_b` has {has} columns, `dataframe_a` has {wanted}");
        return Err(NodeError::new(text).code("input.value"));
    }
    for row in 0..b.rows.len() {
        a.rows.push(places.iter().map(|at| b.cell(row, *at)).collect());
    }
    a.columns.iter_mut().for_each(|column| column.data_type.clear());
    a.bounded("dataframe_b")?;
    Ok(one("output", a.value()))
}
/// Columns side by side, row by row; the shorter table is filled with nothing.
fn merge(args: Args<'_>) -> Result<Map, NodeError> {
    let (a, b) = both(args)?;
    let rows = a.rows.len().max(b.rows.len());
    let mut frame = Frame {
        columns: beside(&a.columns, b.columns.iter()),
        rows: Vec::new(),
    };
    for row in 0..rows {
        let left = (0..a.columns.len()).map(|at| a.cell(row, at));
        let right = (0..b.columns.len()).map(|at| b.cell(row, at));
        frame.rows.push(left.chain(right).collect());
        frame.bounded("dataframe_b")?;
    }
    Ok(one("output", frame.value()))
}
/// Columns with names that the left ones do not have.
fn beside<'a>(left: &[Column], right: impl Iterator<Item = &'a Column>) -> Vec<Column> {
    let mut columns = left.to_vec();
    for column in right {
        let mut column = column.clone();
        while columns.iter().any(|other| other.name == column.name) {
            column.name.push_str("_b");
        }
        columns.push(column);
    }
    columns
}
/// Pairs of rows whose cells in the named columns are equal; nothing equals nothing.
fn join(args: Args<'_>) -> Result<Map, NodeError> {
    let (a, b) = both(args)?;
    let on = super::frame::names(args, "join_on");
    if on.is_empty() {
        return Err(missing("join_on", "a column that both tables have is needed"));
    }
    let places = |frame: &Frame| -> Result<Vec<usize>, NodeError> {
        on.iter().map(|name| frame.place("join_on", name)).collect()
    };
    let (left, right) = (places(&a)?, places(&b)?);
    let keys = |row: &[Value], places: &[usize]| -> Option<Vec<String>> {
        let cells = places
            .iter()
            .map(|at| row.get(*at).filter(|cell| !cell.is_null()));
        cells.map(|cell| cell.map(key)).collect()
    };
    let mut by_key: HashMap<Vec<String>, Vec<usize>> = HashMap::new();
    for (place, row) in b.rows.iter().enumerate() {
        if let Some(keys) = keys(row, &right) {
            by_key.entry(keys).or_default().push(place);
        }
    }
    let others: Vec<usize> = (0..b.columns.len()).filter(|at| !right.contains(at)).collect();
    let named = others.iter().filter_map(|at| b.columns.get(*at));
    let mut frame = Frame {
        columns: beside(&a.columns, named),
        rows: Vec::new(),
    };
    for row in &a.rows {
        let partners = keys(row, &left).and_then(|keys| by_key.get(&keys));
        for partner in partners.into_iter().flatten() {
            let right = others.iter().map(|at| b.cell(*partner, *at));
            frame.rows.push(row.iter().cloned().chain(right).collect());
            frame.bounded("dataframe_b")?;
        }
    }
    Ok(one("output", frame.value()))
}

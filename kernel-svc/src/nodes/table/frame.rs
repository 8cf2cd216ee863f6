//! A table as a value: columns with names and types, rows of cells.

use atelier_proto::value::{Map, Value};
use indexmap::IndexMap;

use crate::{
    node::NodeError,
    nodes::args::{Args, map, text_of, wrong},
};

/// Columns that a table has at most.
pub(super) const MAX_COLUMNS: usize = 4_096;
/// Cells that a table has at most.
pub(super) const MAX_CELLS: usize = 5_000_000;

/// One column.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::nodes) struct Column {
    /// Its name.
    pub name: String,
    /// `int`, `float`, `string`, `datetime` or `object`.
    pub data_type: String,
    /// What it means.
    pub description: String,
}
impl Column {
    /// A column whose type is not known yet.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            data_type: String::new(),
            description: String::new(),
        }
    }
}

/// A table. Every row has a cell for every column.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::nodes) struct Frame {
    /// The columns, in order.
    pub columns: Vec<Column>,
    /// The rows, in order.
    pub rows: Vec<Vec<Value>>,
}
impl Frame {
    /// The table that an input holds: with columns and data, with rows as objects, or a list of objects. Nothing is an
    /// empty table.
    pub fn read(args: Args<'_>, input: &str) -> Result<Self, NodeError> {
        match args.0.get(input) {
            None | Some(Value::Null) => Ok(Self::default()),
            Some(Value::List(items)) => Self::of_items(input, items),
            Some(Value::Map(map)) => Self::of_map(input, map),
            Some(other) => Err(wrong(input, "dataframe", other)),
        }
    }
    fn of_map(input: &str, map: &Map) -> Result<Self, NodeError> {
        if let Some(Value::List(rows)) = map.get("rows") {
            return Self::of_items(input, rows);
        }
        let Some(Value::List(data)) = map.get("data") else {
            let columns = columns_of(input, map.get("columns"))?;
            return Ok(Self {
                columns,
                rows: Vec::new(),
            });
        };
        let mut frame = Self {
            columns: columns_of(input, map.get("columns"))?,
            rows: Vec::new(),
        };
        if data.first().is_some_and(|row| matches!(row, Value::Map(_))) {
            return Self::of_items(input, data);
        }
        for (place, row) in data.iter().enumerate() {
            let Value::List(cells) = row else {
                return Err(shape(input, &format!("row {place} is no list")));
            };
            if frame.columns.is_empty() {
                frame.columns = (0..cells.len()).map(|at| Column::named(at.to_string())).collect();
            }
            if cells.len() != frame.columns.len() {
                let (has, wanted) = (cells.len(), frame.columns.len());
                return Err(shape(
                    input,
                    &format!("row {place} has {has} cells for {wanted} columns"),
                ));
            }
            frame.rows.push(cells.as_ref().clone());
            frame.bounded(input)?;
        }
        frame.type_columns();
        Ok(frame)
    }
    /// A table of objects: a column for every key, in order of appearance. Items that are no objects go to the column
    /// `value`.
    pub fn of_items(input: &str, items: &[Value]) -> Result<Self, NodeError> {
        let mut places: IndexMap<String, usize> = IndexMap::new();
        for item in items {
            let mut place = |name: &str| {
                let next = places.len();
                places.entry(name.to_owned()).or_insert(next);
            };
            match item {
                Value::Map(map) => map.keys().for_each(|name| place(name)),
                _ => place("value"),
            }
            if places.len() > MAX_COLUMNS {
                return Err(shape(input, &format!("it has more than {MAX_COLUMNS} columns")));
            }
        }
        let mut frame = Self {
            columns: places.keys().map(Column::named).collect(),
            rows: Vec::new(),
        };
        for item in items {
            let cell = |name: &String| match item {
                Value::Map(map) => map.get(name).cloned().unwrap_or_default(),
                other if name == "value" => other.clone(),
                _ => Value::Null,
            };
            frame.rows.push(places.keys().map(cell).collect());
            frame.bounded(input)?;
        }
        frame.type_columns();
        Ok(frame)
    }
    /// Refuses a table that has become too large.
    pub fn bounded(&self, input: &str) -> Result<(), NodeError> {
        let cells = self.rows.len().saturating_mul(self.columns.len().max(1));
        if self.columns.len() > MAX_COLUMNS || cells > MAX_CELLS {
            let text = format!("it has more than {MAX_COLUMNS} columns or {MAX_CELLS} cells");
            return Err(shape(input, &text).code("input.size"));
        }
        Ok(())
    }
    /// Gives every column without a type the one of its cells.
    pub fn type_columns(&mut self) {
        for (at, column) in self.columns.iter_mut().enumerate() {
            if column.data_type.is_empty() {
                column.data_type = type_of_cells(self.rows.iter().filter_map(|row| row.get(at))).to_owned();
            }
        }
    }
    /// The table as a value.
    pub fn value(mut self) -> Value {
        self.type_columns();
        let columns = self.columns.into_iter().map(|column| {
            map([
                ("name", column.name.into()),
                ("data_type", column.data_type.into()),
                ("description", column.description.into()),
            ])
            .into()
        });
        let columns = columns.collect();
        map([
            ("type", "dataframe".into()),
            ("columns", Value::list(columns)),
            (
                "data",
                Value::list(self.rows.into_iter().map(Value::list).collect()),
            ),
        ])
        .into()
    }
    /// The place of a column that an input names.
    pub fn place(&self, input: &str, name: &str) -> Result<usize, NodeError> {
        let found = self.columns.iter().position(|column| column.name == name);
        found.ok_or_else(|| {
            let names: Vec<_> = self
                .columns
                .iter()
                .take(20)
                .map(|column| column.name.as_str())
                .collect();
            let text = format!(
                "the input `{input}` names the column `{name}`, the table has: {}",
                names.join(", ")
            );
            NodeError::new(text).code("input.value")
        })
    }
    /// The places of columns that an input names, separated by commas.
    pub fn places(&self, args: Args<'_>, input: &str) -> Result<Vec<usize>, NodeError> {
        names(args, input)
            .iter()
            .map(|name| self.place(input, name))
            .collect()
    }
    /// One cell.
    pub fn cell(&self, row: usize, column: usize) -> Value {
        let row = self.rows.get(row);
        row.and_then(|row| row.get(column)).cloned().unwrap_or_default()
    }
    /// A row as an object.
    pub fn object(&self, row: &[Value]) -> Map {
        self.columns
            .iter()
            .zip(row)
            .map(|(column, cell)| (column.name.clone(), cell.clone()))
            .collect()
    }
    /// The same columns with other rows.
    pub fn with(&self, rows: Vec<Vec<Value>>) -> Self {
        Self {
            columns: self.columns.clone(),
            rows,
        }
    }
}

/// Names out of a list, or out of a text with commas between them.
pub(super) fn names(args: Args<'_>, input: &str) -> Vec<String> {
    let texts: Vec<String> = match args.0.get(input) {
        Some(Value::List(items)) => items.iter().map(text_of).collect(),
        _ => args.text(input).split(',').map(str::to_owned).collect(),
    };
    let texts = texts.iter().map(|name| name.trim().to_owned());
    texts.filter(|name| !name.is_empty()).collect()
}
fn columns_of(input: &str, value: Option<&Value>) -> Result<Vec<Column>, NodeError> {
    let Some(Value::List(columns)) = value else {
        return Ok(Vec::new());
    };
    if columns.len() > MAX_COLUMNS {
        return Err(shape(input, &format!("it has more than {MAX_COLUMNS} columns")));
    }
    let column = |value: &Value| match value {
        Value::Str(name) => Ok(Column::named(&**name)),
        Value::Map(map) => {
            let text = |key: &str| map.get(key).map(text_of).unwrap_or_default();
            Ok(Column {
                name: text("name"),
                data_type: text("data_type"),
                description: text("description"),
            })
        }
        _ => Err(shape(input, "a column is neither a name nor an object")),
    };
    columns.iter().map(column).collect()
}
pub(super) fn shape(input: &str, why: &str) -> NodeError {
    NodeError::new(format!("the input `{input}` is no table: {why}")).code("input.value")
}
/// The type of cells; what is null says nothing.
fn type_of_cells<'a>(cells: impl Iterator<Item = &'a Value>) -> &'static str {
    let mut ty = None;
    for cell in cells {
        let own = match cell {
            Value::Null => continue,
            Value::Int(_) => "int",
            Value::Float(_) => "float",
            Value::Str(_) => "string",
            Value::Map(map) if map.get("type").and_then(Value::as_str) == Some("datetime") => "datetime",
            Value::Bool(_) | Value::Bytes(_) | Value::List(_) | Value::Map(_) | Value::Media(_) => "object",
        };
        ty = match (ty, own) {
            (None, own) => Some(own),
            (Some(ty), own) if ty == own => Some(ty),
            (Some("int"), "float") | (Some("float"), "int") => Some("float"),
            _ => return "object",
        };
    }
    ty.unwrap_or("object")
}

/// The order of two cells: nothing comes last, numbers by value, all else by text.
pub(super) fn order(one: &Value, other: &Value) -> std::cmp::Ordering {
    match (one.is_null(), other.is_null()) {
        (true, true) => return std::cmp::Ordering::Equal,
        (true, false) => return std::cmp::Ordering::Greater,
        (false, true) => return std::cmp::Ordering::Less,
        (false, false) => {}
    }
    match (number(one), number(other)) {
        (Some(one), Some(other)) => one.total_cmp(&other),
        (Some(_), None) => std::cmp::Ordering::Less,
        (None, Some(_)) => std::cmp::Ordering::Greater,
        (None, None) => text_of(one).cmp(&text_of(other)),
    }
}
/// A cell that is a number; a truth value counts as one or nothing.
pub(super) fn number(cell: &Value) -> Option<f64> {
    let as_number = match cell {
        Value::Bool(value) => Some(f64::from(u8::from(*value))),
        other => other.as_f64(),
    };
    as_number.filter(|number| !number.is_nan())
}
/// What tells equal cells from others: an int and a float of one value are equal.
pub(super) fn key(cell: &Value) -> String {
    match (cell, cell.as_f64()) {
        (Value::Int(_) | Value::Float(_), Some(number)) => format!("n{number}"),
        (Value::Str(text), _) => format!("s{text}"),
        (other, _) => format!("o{}", crate::nodes::args::json_of(other)),
    }
}

//! Types that choose, order or hand out rows.

use std::collections::HashSet;

use async_trait::async_trait;
use atelier_proto::value::{Map, Value};

use super::{
    condition::Condition,
    frame::{Frame, key, order},
};
use crate::{
    node::{Context, Executor, NodeError, Offers},
    nodes::{
        args::{Args, count, map, one, size},
        code::{Generator, Route, Sink, Streamed, Types, factory},
        work::Heavy,
    },
    run::{Inputs, Outputs},
};

/// All types of this part.
pub(super) fn types() -> Types {
    let heavy: [(&'static str, Route); 6] = [
        ("nodetool.data.DropDuplicates", |args| {
            let frame = Frame::read(args, "df")?;
            let mut seen = HashSet::new();
            kept(&frame, |row| seen.insert(row.iter().map(key).collect::<Vec<_>>()))
        }),
        ("nodetool.data.DropNA", |args| {
            let frame = Frame::read(args, "df")?;
            kept(&frame, |row| row.iter().all(|cell| !is_empty(cell)))
        }),
        ("nodetool.data.Filter", |args| {
            let (frame, condition) = conditioned(args)?;
            kept(&frame, |row| {
                condition.as_ref().is_none_or(|it| holds(it, &frame, row))
            })
        }),
        ("nodetool.data.FindRow", |args| {
            let (frame, condition) = conditioned(args)?;
            let mut rows = frame.rows.iter();
            let found = rows.find(|row| condition.as_ref().is_none_or(|it| holds(it, &frame, row)));
            Ok(one(
                "output",
                frame.with(found.into_iter().cloned().collect()).value(),
            ))
        }),
        ("nodetool.data.Slice", slice),
        ("nodetool.data.SortByColumn", |args| {
            let mut frame = Frame::read(args, "df")?;
            let places = frame.places(args, "column")?;
            frame.rows.sort_by(|one, other| {
                let by = |at: &usize| match (one.get(*at), other.get(*at)) {
                    (Some(one), Some(other)) => order(one, other),
                    _ => std::cmp::Ordering::Equal,
                };
                let first = places.iter().map(by).find(|order| order.is_ne());
                first.unwrap_or(std::cmp::Ordering::Equal)
            });
            Ok(one("output", frame.value()))
        }),
    ];
    let mut types: Types = heavy
        .into_iter()
        .map(|(name, route)| (name, factory(Heavy(route))))
        .collect();
    types.push(("nodetool.data.ForEachRow", factory(Streamed(ForEachRow))));
    types.push(("nodetool.data.FilterNone", factory(NotNull)));
    types
}
/// The code of a type that yields frames, for tests.
#[cfg(test)]
pub(super) fn generator(node_type: &str) -> Option<Box<dyn Generator>> {
    (node_type == "nodetool.data.ForEachRow").then(|| Box::new(ForEachRow) as Box<dyn Generator>)
}

/// Whether a cell says nothing.
pub(super) fn is_empty(cell: &Value) -> bool {
    match cell {
        Value::Null => true,
        Value::Float(number) => number.is_nan(),
        Value::Str(text) => text.is_empty(),
        Value::Bool(_)
        | Value::Int(_)
        | Value::Bytes(_)
        | Value::List(_)
        | Value::Map(_)
        | Value::Media(_) => false,
    }
}
fn kept(frame: &Frame, mut keep: impl FnMut(&[Value]) -> bool) -> Result<Map, NodeError> {
    let rows = frame.rows.iter().filter(|row| keep(row)).cloned().collect();
    Ok(one("output", frame.with(rows).value()))
}
/// A table and the condition on its rows; none: all rows.
fn conditioned(args: Args<'_>) -> Result<(Frame, Option<Condition>), NodeError> {
    let frame = Frame::read(args, "df")?;
    let text = args.text("condition");
    if text.trim().is_empty() {
        return Ok((frame, None));
    }
    let condition = Condition::read("condition", &text)?;
    if !frame.columns.is_empty() {
        for name in condition.names() {
            frame.place("condition", name)?;
        }
    }
    Ok((frame, Some(condition)))
}
fn holds(condition: &Condition, frame: &Frame, row: &[Value]) -> bool {
    condition.holds(&|name: &str| {
        let place = frame.columns.iter().position(|column| column.name == name);
        place.and_then(|at| row.get(at)).cloned().unwrap_or_default()
    })
}
/// Negative places count from the end; the end -1 means up to the last row.
fn slice(args: Args<'_>) -> Result<Map, NodeError> {
    let frame = Frame::read(args, "dataframe")?;
    let (start, end) = (args.int("start_index", 0)?, args.int("end_index", -1)?);
    let length = i64::try_from(frame.rows.len()).unwrap_or(i64::MAX);
    let place = |at: i64| size(if at < 0 { at.saturating_add(length) } else { at }.clamp(0, length));
    let end = if end == -1 { size(length) } else { place(end) };
    let rows = frame.rows.get(place(start)..end.max(place(start)));
    Ok(one(
        "output",
        frame.with(rows.unwrap_or_default().to_vec()).value(),
    ))
}

/// One frame for each row.
#[derive(Clone, Copy)]
struct ForEachRow;
#[async_trait]
impl Generator for ForEachRow {
    async fn generate(&self, inputs: Map, frames: &mut dyn Sink, ctx: &Context) -> Result<(), NodeError> {
        let frame = Frame::read(Args(&inputs), "dataframe")?;
        for (place, row) in frame.rows.iter().enumerate() {
            if ctx.cancel.is_cancelled() {
                return Err(NodeError::cancelled());
            }
            let row = frame.object(row).into();
            frames.frame(map([("row", row), ("index", count(place))])).await?;
        }
        Ok(())
    }
}

/// Lets everything through that is not null.
#[derive(Clone, Copy)]
struct NotNull;
#[async_trait]
impl Executor for NotNull {
    fn offers(&self) -> Offers {
        Offers {
            stream: false,
            run: true,
        }
    }
    async fn process(&mut self, inputs: Map, _ctx: &Context) -> Result<Map, NodeError> {
        let value = Args(&inputs).value("value");
        Ok(if value.is_null() {
            Map::new()
        } else {
            one("output", value)
        })
    }
    async fn run(
        &mut self,
        inputs: &mut Inputs<'_>,
        outputs: &mut Outputs<'_>,
        _ctx: &Context,
    ) -> Result<(), NodeError> {
        while let Some(item) = inputs.next("value").await {
            if item.value.is_null() {
                outputs.drop("output", &item);
            } else {
                outputs.forward("output", &item).await?;
            }
        }
        Ok(())
    }
}

//! Databases in files of the workspace.
//!
//! A statement reaches its own database and nothing else, sees no file beside it, ends when it takes too long or the run is
//! cancelled, and gives a bounded number of rows.

mod guard;
mod open;

use atelier_proto::value::{Map, Value};

use self::{
    guard::{checked, name},
    open::{Database, Done},
};
use super::{
    args::{Args, count, map, missing, one, size, text_of, wrong},
    code::{Types, factory},
    work::{Reach, Reaching},
};
use crate::node::{Context, NodeError};

/// All types of this family.
pub(super) fn types() -> Types {
    let reaching: [(&'static str, Reach); 6] = [
        ("lib.sqlite.CreateTable", |args, ctx| Box::pin(create(args, ctx))),
        ("lib.sqlite.Delete", |args, ctx| Box::pin(delete(args, ctx))),
        ("lib.sqlite.ExecuteSQL", |args, ctx| Box::pin(execute(args, ctx))),
        ("lib.sqlite.Insert", |args, ctx| Box::pin(insert(args, ctx))),
        ("lib.sqlite.Query", |args, ctx| Box::pin(query(args, ctx))),
        ("lib.sqlite.Update", |args, ctx| Box::pin(update(args, ctx))),
    ];
    reaching
        .into_iter()
        .map(|(name, reach)| (name, factory(Reaching(reach))))
        .collect()
}

/// Names and types of the columns that a record type has.
fn columns(args: Args<'_>) -> Result<Vec<(String, String)>, NodeError> {
    let given = match args.value("columns") {
        Value::Map(map) => map.get("columns").cloned().unwrap_or_default(),
        other => other,
    };
    let items = match given {
        Value::Null => return Ok(Vec::new()),
        Value::List(items) => items,
        other => return Err(wrong("columns", "record_type", &other)),
    };
    let column = |item: &Value| {
        let (own, ty) = match item {
            Value::Map(map) => (
                map.get("name").map(text_of).unwrap_or_default(),
                map.get("data_type").map(text_of).unwrap_or_default(),
            ),
            other => (text_of(other), String::new()),
        };
        Ok((name("columns", &own)?, ty))
    };
    items.iter().map(column).collect()
}
async fn create(args: Args<'_>, ctx: &Context) -> Result<Map, NodeError> {
    let table = name("table_name", &args.text("table_name"))?;
    let columns = columns(args)?;
    let mut parts = Vec::new();
    if args.flag("add_primary_key", true) && !columns.iter().any(|(name, _)| name == "\"id\"") {
        parts.push("\"id\" INTEGER PRIMARY KEY AUTOINCREMENT".to_owned());
    }
    for (name, ty) in &columns {
        let ty = match ty.as_str() {
            "int" | "bool" => "INTEGER",
            "float" => "REAL",
            _ => "TEXT",
        };
        parts.push(format!("{name} {ty}"));
    }
    if parts.is_empty() {
        return Err(missing("columns", "a table needs a column"));
    }
    let there = if args.flag("if_not_exists", true) {
        "IF NOT EXISTS "
    } else {
        ""
    };
    let sql = format!("CREATE TABLE {there}{table} ({})", parts.join(", "));
    Database::open(args, ctx)
        .await?
        .run("table_name", sql, Vec::new())
        .await?;
    Ok(map([
        ("database_name", args.value("database_name")),
        ("table_name", args.value("table_name")),
        ("columns", args.value("columns")),
    ]))
}
/// Names and values of what is written; lists and objects are written as JSON.
fn data(args: Args<'_>) -> Result<(Vec<String>, Vec<Value>), NodeError> {
    let given = match args.value("data") {
        Value::Map(map) => map,
        other => return Err(wrong("data", "dict", &other)),
    };
    if given.is_empty() {
        return Err(missing("data", "at least one column is needed"));
    }
    let names = given
        .keys()
        .map(|own| name("data", own))
        .collect::<Result<_, _>>()?;
    Ok((names, given.values().cloned().collect()))
}
async fn insert(args: Args<'_>, ctx: &Context) -> Result<Map, NodeError> {
    let table = name("table_name", &args.text("table_name"))?;
    let (names, values) = data(args)?;
    let marks = vec!["?"; values.len()].join(", ");
    let sql = format!("INSERT INTO {table} ({}) VALUES ({marks})", names.join(", "));
    let done = Database::open(args, ctx).await?.run("data", sql, values).await?;
    Ok(map([
        ("row_id", done.last_row.into()),
        ("rows_affected", done.affected()),
        ("message", format!("added row {}", done.last_row).into()),
    ]))
}
async fn update(args: Args<'_>, ctx: &Context) -> Result<Map, NodeError> {
    let table = name("table_name", &args.text("table_name"))?;
    let (names, values) = data(args)?;
    let set: Vec<_> = names.iter().map(|name| format!("{name} = ?")).collect();
    let mut sql = format!("UPDATE {table} SET {}", set.join(", "));
    let condition = checked("where", &args.text("where"))?;
    if !condition.is_empty() {
        sql.push_str(&format!(" WHERE ({condition}\n)"));
    }
    let done = Database::open(args, ctx).await?.run("where", sql, values).await?;
    Ok(changed(&done, "changed"))
}
/// Deleting needs a condition; `1 = 1` deletes all.
async fn delete(args: Args<'_>, ctx: &Context) -> Result<Map, NodeError> {
    let table = name("table_name", &args.text("table_name"))?;
    let condition = checked("where", &args.text("where"))?;
    if condition.is_empty() {
        return Err(missing(
            "where",
            "deleting needs a condition; `1 = 1` deletes all rows",
        ));
    }
    let sql = format!("DELETE FROM {table} WHERE ({condition}\n)");
    let done = Database::open(args, ctx)
        .await?
        .run("where", sql, Vec::new())
        .await?;
    Ok(changed(&done, "deleted"))
}
fn changed(done: &Done, what: &str) -> Map {
    map([
        ("rows_affected", done.affected()),
        ("message", format!("{what} {} rows", done.affected).into()),
    ])
}
async fn query(args: Args<'_>, ctx: &Context) -> Result<Map, NodeError> {
    let table = name("table_name", &args.text("table_name"))?;
    let names: Vec<String> = columns(args)?.into_iter().map(|(name, _)| name).collect();
    let names = if names.is_empty() {
        "*".to_owned()
    } else {
        names.join(", ")
    };
    let mut sql = format!("SELECT {names} FROM {table}");
    let condition = checked("where", &args.text("where"))?;
    if !condition.is_empty() {
        sql.push_str(&format!(" WHERE ({condition}\n)"));
    }
    let order = checked("order_by", &args.text("order_by"))?;
    if !order.is_empty() {
        sql.push_str(&format!(" ORDER BY {order}\n"));
    }
    let limit = size(args.int("limit", 0)?);
    if limit > 0 {
        sql.push_str(&format!(" LIMIT {limit}"));
    }
    let done = Database::open(args, ctx)
        .await?
        .run("where", sql, Vec::new())
        .await?;
    Ok(one("output", Value::list(done.rows)))
}
async fn execute(args: Args<'_>, ctx: &Context) -> Result<Map, NodeError> {
    let sql = checked("sql", &args.text("sql"))?;
    if sql.is_empty() {
        return Err(missing("sql", "a statement is needed"));
    }
    let done = Database::open(args, ctx)
        .await?
        .run("sql", sql, args.list("parameters"))
        .await?;
    Ok(map([
        ("rows_affected", done.affected()),
        ("last_row_id", done.last_row.into()),
        (
            "message",
            format!("{} rows read, {} changed", done.rows.len(), done.affected).into(),
        ),
        ("count", count(done.rows.len())),
        ("rows", Value::list(done.rows)),
    ]))
}

#[cfg(test)]
mod tests;

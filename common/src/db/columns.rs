//! Columns that mean the same on both engines, for the services' migrations.

use chrono::{DateTime, Utc};
use sea_orm::DbBackend;
use sea_orm_migration::prelude::{ColumnDef, IntoIden};

/// An instant: whole microseconds since 1970 in UTC, INTEGER or BIGINT. In entities an `i64`.
pub fn timestamp(name: impl IntoIden) -> ColumnDef {
    let mut column = ColumnDef::new(name);
    column.big_integer();
    column
}

/// An exact amount: TEXT on SQLite, NUMERIC(20,9) on PostgreSQL. In entities an [`Exact`](super::Exact). SQLite cannot
/// add such a column up exactly; sum in Rust there.
pub fn money(name: impl IntoIden, backend: DbBackend) -> ColumnDef {
    let mut column = ColumnDef::new(name);
    if backend == DbBackend::Postgres {
        column.decimal_len(20, 9);
    } else {
        column.text();
    }
    column
}

/// JSON: TEXT on SQLite, JSONB on PostgreSQL. In entities a `Json`. For what is never filtered.
pub fn json(name: impl IntoIden, backend: DbBackend) -> ColumnDef {
    let mut column = ColumnDef::new(name);
    if backend == DbBackend::Postgres {
        column.json_binary();
    } else {
        column.text();
    }
    column
}

/// The instant as [`timestamp`] columns hold it.
pub fn micros(instant: DateTime<Utc>) -> i64 {
    instant.timestamp_micros()
}

/// The instant that a [`timestamp`] column holds; the nearest one that can be told for numbers out of range.
pub fn instant(micros: i64) -> DateTime<Utc> {
    let limit = if micros < 0 {
        DateTime::<Utc>::MIN_UTC
    } else {
        DateTime::<Utc>::MAX_UTC
    };
    DateTime::from_timestamp_micros(micros).unwrap_or(limit)
}

/// SQL for the database's own clock in the unit of [`timestamp`] columns, for ledgers that trust no process's clock.
/// On PostgreSQL the instant of the statement, not of the transaction.
pub fn now_sql(backend: DbBackend) -> &'static str {
    if backend == DbBackend::Postgres {
        "(extract(epoch from clock_timestamp()) * 1000000)::bigint"
    } else {
        // SQLite's clock has milliseconds.
        "CAST(unixepoch('subsec') * 1000000 AS INTEGER)"
    }
}

//! One statement on one database.

use std::time::{Duration, Instant};

use atelier_proto::value::{Map, Value};
use futures_util::TryStreamExt;
use sea_orm::sqlx::{
    AssertSqlSafe, Column, ConnectOptions, Connection, Decode, Either, Error, Row, Sqlite, SqliteConnection,
    TypeInfo, ValueRef,
    sqlite::{SqliteConnectOptions, SqliteRow},
};

use crate::{
    node::{Context, NodeError},
    nodes::{
        args::{Args, json_of, text_of},
        files::Workspace,
        work::{MAX_CONTENT, blocking},
    },
};

/// Longest time of a statement.
const LONGEST: Duration = Duration::from_secs(30);
/// How long a statement waits for others on the same file.
const BUSY: Duration = Duration::from_secs(10);
/// Rows that a statement gives.
const MAX_ROWS: usize = 100_000;
/// Values of a statement.
const MAX_VALUES: usize = 1_000;
/// Steps between looks at the time.
const STEPS: i32 = 10_000;

/// A database that is open for one statement.
pub(super) struct Database {
    connection: SqliteConnection,
}
/// What a statement came to.
#[derive(Debug, Default)]
pub(super) struct Done {
    /// Rows that were read.
    pub rows: Vec<Value>,
    /// Rows that were changed.
    pub affected: u64,
    /// The row that was added last.
    pub last_row: i64,
}
impl Done {
    /// Rows that were changed, as a value.
    pub fn affected(&self) -> Value {
        Value::Int(i64::try_from(self.affected).unwrap_or(i64::MAX))
    }
}
impl Database {
    /// Opens the file that the input `database_name` names; it is made when it is not there.
    pub async fn open(args: Args<'_>, ctx: &Context) -> Result<Self, NodeError> {
        let text = args.text_or("database_name", "memory.db");
        let workspace = Workspace::of(ctx.services.host())?;
        let path = blocking(ctx, move || {
            let place = workspace.place("database_name", &text)?;
            if let Some(above) = place.parent() {
                std::fs::create_dir_all(above)
                    .map_err(|error| workspace.lost("database_name", &place, &error))?;
            }
            Ok(place)
        })
        .await?;
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .busy_timeout(BUSY)
            // Rows that are read ahead count in no bound of ours, and each may be large.
            .row_buffer_size(1)
            .disable_statement_logging();
        let bad = |error: Error| fault("database_name", &error);
        let mut connection = SqliteConnection::connect_with(&options).await.map_err(bad)?;
        let (deadline, cancel) = (Instant::now() + LONGEST, ctx.cancel.clone());
        connection
            .lock_handle()
            .await
            .map_err(bad)?
            .set_progress_handler(STEPS, move || Instant::now() < deadline && !cancel.is_cancelled());
        Ok(Self { connection })
    }
    /// Runs a statement and closes the database. `input` is named in errors.
    pub async fn run(mut self, input: &str, sql: String, values: Vec<Value>) -> Result<Done, NodeError> {
        if values.len() > MAX_VALUES {
            let text = format!("the statement has more than {MAX_VALUES} values");
            return Err(NodeError::new(text).code("input.size"));
        }
        let mut query = sea_orm::sqlx::query::<Sqlite>(AssertSqlSafe(sql));
        for value in values {
            query = match value {
                Value::Null => query.bind(None::<String>),
                Value::Bool(value) => query.bind(value),
                Value::Int(value) => query.bind(value),
                Value::Float(value) => query.bind(value),
                Value::Bytes(bytes) => query.bind(bytes.to_vec()),
                Value::Str(_) | Value::Media(_) => query.bind(text_of(&value)),
                Value::List(_) | Value::Map(_) => query.bind(json_of(&value).to_string()),
            };
        }
        let (mut done, mut bytes) = (Done::default(), 0_usize);
        {
            #[expect(deprecated, reason = "the only way that tells of every statement of a text")]
            let mut answers = query.fetch_many(&mut self.connection);
            while let Some(answer) = answers.try_next().await.map_err(|error| fault(input, &error))? {
                match answer {
                    Either::Left(end) => {
                        done.affected += end.rows_affected();
                        done.last_row = end.last_insert_rowid();
                    }
                    Either::Right(row) => {
                        let row = object(&row)?;
                        bytes = bytes.saturating_add(row.values().map(weight).sum());
                        if bytes > MAX_CONTENT {
                            let text = format!("the statement gives rows of more than {MAX_CONTENT} bytes");
                            return Err(NodeError::new(text).code("input.size"));
                        }
                        done.rows.push(row.into());
                        if done.rows.len() > MAX_ROWS {
                            let text = format!("the statement gives more than {MAX_ROWS} rows");
                            return Err(NodeError::new(text).code("input.size"));
                        }
                    }
                }
            }
        }
        // The statement is through; a fault of closing changes nothing.
        let _ = self.connection.close().await;
        Ok(done)
    }
}
/// The bytes of a cell.
fn weight(cell: &Value) -> usize {
    match cell {
        Value::Str(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => size_of::<Value>(),
    }
}
fn object(row: &SqliteRow) -> Result<Map, NodeError> {
    let lost = || NodeError::new("a cell of the database cannot be read");
    let mut object = Map::new();
    for column in row.columns() {
        let raw = row.try_get_raw(column.ordinal()).map_err(|_| lost())?;
        let kind = raw.type_info().name().to_owned();
        let value = if raw.is_null() {
            Value::Null
        } else {
            match kind.as_str() {
                "INTEGER" => Value::Int(<i64 as Decode<Sqlite>>::decode(raw).map_err(|_| lost())?),
                "REAL" => Value::Float(<f64 as Decode<Sqlite>>::decode(raw).map_err(|_| lost())?),
                "BLOB" => Value::Bytes(
                    <Vec<u8> as Decode<Sqlite>>::decode(raw)
                        .map_err(|_| lost())?
                        .into(),
                ),
                _ => <String as Decode<Sqlite>>::decode(raw)
                    .map_err(|_| lost())?
                    .into(),
            }
        };
        object.insert(column.name().to_owned(), value);
    }
    Ok(object)
}
/// What the database said, cut short.
fn fault(input: &str, error: &Error) -> NodeError {
    let why = match error {
        Error::Database(error) if error.message().contains("interrupted") => {
            format!(
                "it took longer than {} seconds, or the run was cancelled",
                LONGEST.as_secs()
            )
        }
        Error::Database(error) => error.message().chars().take(300).collect(),
        _ => "the database cannot be opened or read".to_owned(),
    };
    NodeError::new(format!("the input `{input}` cannot be carried out: {why}")).code("sqlite.failed")
}

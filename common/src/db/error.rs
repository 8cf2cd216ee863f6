//! What can go wrong with a database, and whether it passes.

use std::sync::Arc;

use sea_orm::{DbErr, RuntimeErr};

/// Why the database did not do what it should. Cheap to clone, as one commit can fail many callers.
#[derive(Debug, Clone, thiserror::Error)]
pub enum DbError {
    /// The address is not one of a database that we know. Says nothing of the address, which may hold a password.
    #[error("database address is not valid: {0}")]
    Address(&'static str),
    /// The folder of the file cannot be made.
    #[error("cannot make the folder of the database file")]
    Folder(#[source] Arc<std::io::Error>),
    /// It cannot be connected to.
    #[error("cannot connect to the database")]
    Connect(#[source] DbErr),
    /// A statement or transaction failed.
    #[error("the database refused or lost an operation")]
    Operation(#[source] DbErr),
    /// The tables could not be brought up to date.
    #[error("cannot migrate the database")]
    Migrate(#[source] DbErr),
    /// The writer of a group commit is gone.
    #[error("the writer has stopped")]
    Stopped,
    /// The code of a group commit panicked; a bug, logged with its text.
    #[error("the writer broke")]
    Broken,
    /// A group commit answered for another number of operations than it was given; a bug of ours.
    #[error("a batch of {given} was answered with {answered}")]
    Answers {
        /// Operations in the batch.
        given: usize,
        /// Answers that came back.
        answered: usize,
    },
}

impl From<DbErr> for DbError {
    fn from(error: DbErr) -> Self {
        Self::Operation(error)
    }
}

impl DbError {
    /// Whether the database itself answered with an error (so the transaction is certainly not committed), and not the
    /// network or the pool.
    pub fn answered(&self) -> bool {
        match self {
            Self::Operation(error) | Self::Connect(error) | Self::Migrate(error) => answered(error),
            Self::Address(_) | Self::Folder(_) | Self::Stopped | Self::Broken | Self::Answers { .. } => false,
        }
    }

    /// Whether the same may succeed later: the database is away, busy, or chose this transaction to give way.
    pub fn transient(&self) -> bool {
        match self {
            Self::Operation(error) | Self::Connect(error) | Self::Migrate(error) => transient(error),
            Self::Address(_) | Self::Folder(_) | Self::Stopped | Self::Broken | Self::Answers { .. } => false,
        }
    }
}

fn runtime(error: &DbErr) -> Option<&sea_orm::sqlx::Error> {
    if let DbErr::Conn(cause) | DbErr::Exec(cause) | DbErr::Query(cause) = error
        && let RuntimeErr::SqlxError(cause) = cause
    {
        return Some(cause);
    }
    None
}

fn answered(error: &DbErr) -> bool {
    runtime(error).is_some_and(|error| error.as_database_error().is_some())
}

/// Whether an error of sea-orm is of the kind that passes: connection, pool, lock, serialization.
pub fn transient(error: &DbErr) -> bool {
    if matches!(error, DbErr::ConnectionAcquire(_)) {
        return true;
    }
    let Some(error) = runtime(error) else { return false };
    match error.as_database_error() {
        // PostgreSQL: serialization failure, deadlock, shutting down, starting up, too many connections.
        // SQLite: busy and locked, with their extended codes.
        Some(answer) => answer.code().is_some_and(|code| {
            matches!(
                code.as_ref(),
                "40001" | "40P01" | "57P01" | "57P02" | "57P03" | "53300"
            ) || (answer.downcast_ref_is_sqlite()
                && code.parse::<u32>().is_ok_and(|code| matches!(code & 0xff, 5 | 6)))
        }),
        None => matches!(
            error,
            sea_orm::sqlx::Error::Io(_)
                | sea_orm::sqlx::Error::PoolTimedOut
                | sea_orm::sqlx::Error::PoolClosed
                | sea_orm::sqlx::Error::WorkerCrashed
        ),
    }
}

trait IsSqlite {
    fn downcast_ref_is_sqlite(&self) -> bool;
}

impl IsSqlite for dyn sea_orm::sqlx::error::DatabaseError {
    fn downcast_ref_is_sqlite(&self) -> bool {
        self.try_downcast_ref::<sea_orm::sqlx::sqlite::SqliteError>()
            .is_some()
    }
}

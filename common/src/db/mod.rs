//! The database connection: SQLite (one file) or PostgreSQL behind one type.
//!
//! SQLite lets one connection write at a time and answers the others with an error, so all writes of a process to one
//! file go through one connection behind one fair lock, whichever component makes them. Reads have connections of
//! their own, which refuse to write. Tables and entities are the services' business.

pub mod columns;
mod connect;
mod error;
mod exact;
mod group;

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use sea_orm::{
    ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbBackend, SqliteTransactionMode,
    TransactionOptions, TransactionTrait,
};
use sea_orm_migration::MigratorTrait;
use serde::{Deserialize, Serialize};
use tokio::sync::{Mutex, OwnedMutexGuard};

pub use error::{DbError, transient};
pub use exact::Exact;
pub use group::{Apply, GroupCommit};

/// How to connect; part of a service's settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DbSettings {
    /// Connections at most: for reads on SQLite (one more writes), for everything on PostgreSQL. Default 16.
    pub max_connections: u32,
    /// How long to wait for a free connection. Default 10 s.
    #[serde(with = "humantime_serde")]
    pub acquire_timeout: Duration,
    /// SQLite: how long to wait for another process that writes. Default 10 s.
    #[serde(with = "humantime_serde")]
    pub busy_timeout: Duration,
    /// SQLite: what a commit waits for. Default `full`: it survives a power cut.
    pub synchronous: Synchronous,
}

/// What a commit on SQLite waits for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Synchronous {
    /// The disk. Survives a power cut.
    #[default]
    Full,
    /// The operating system. Survives a crash of the process, not of the machine.
    Normal,
    /// Nothing. For tests.
    Off,
}

impl Default for DbSettings {
    fn default() -> Self {
        Self {
            max_connections: 16,
            acquire_timeout: Duration::from_secs(10),
            busy_timeout: Duration::from_secs(10),
            synchronous: Synchronous::Full,
        }
    }
}

/// A connected database. Clones, and every [`connect`](Db::connect) of this process to the same address, share it.
#[derive(Clone)]
pub struct Db {
    shared: Arc<Shared>,
}

struct Shared {
    read: DatabaseConnection,
    write: DatabaseConnection,
    backend: DbBackend,
    writer: Arc<Mutex<()>>,
}

/// A transaction that may write. On SQLite it is the only one in the process while it lives, so it must not be held
/// across anything slow. Dropped without commit it is rolled back.
///
/// Dereferences to `DatabaseTransaction`, so `&*tx` is a connection for queries.
#[must_use = "dropping it rolls back"]
pub struct WriteTx {
    // Before the guard: dropped first, so the rollback is queued before the next writer gets the connection.
    tx: DatabaseTransaction,
    _writer: Option<OwnedMutexGuard<()>>,
}

impl Deref for WriteTx {
    type Target = DatabaseTransaction;

    fn deref(&self) -> &DatabaseTransaction {
        &self.tx
    }
}

impl WriteTx {
    /// Commits. Not cancel safe: dropped while waiting, it may or may not have committed.
    ///
    /// # Errors
    /// [`DbError::Operation`]. If [`DbError::answered`] is false, the commit may have happened.
    pub async fn commit(self) -> Result<(), DbError> {
        Ok(self.tx.commit().await?)
    }

    /// Rolls back and waits for it; dropping does the same without waiting.
    ///
    /// # Errors
    /// [`DbError::Operation`].
    pub async fn rollback(self) -> Result<(), DbError> {
        Ok(self.tx.rollback().await?)
    }
}

impl Db {
    /// Connects to `sqlite:///path/file.db` (made if it is not there, with its folder), `sqlite::memory:` (private to
    /// the result and its clones, one connection: a read waits while a [`WriteTx`] lives) or `postgres://…`.
    /// The settings of whoever connects first hold for a shared address.
    ///
    /// # Errors
    /// [`DbError::Address`], [`DbError::Folder`] and [`DbError::Connect`].
    pub async fn connect(url: &str, settings: &DbSettings) -> Result<Db, DbError> {
        connect::connect(url, settings).await
    }

    /// A connection for queries. On SQLite it refuses to write; on PostgreSQL single statements that need no
    /// transaction may write through it.
    pub fn read(&self) -> &DatabaseConnection {
        &self.shared.read
    }

    /// Begins a transaction that may write. On SQLite it first waits, in order of arrival, for the writer before it, and
    /// then takes the database's write lock at once. Cancel safe.
    ///
    /// # Errors
    /// [`DbError::Operation`].
    pub async fn begin(&self) -> Result<WriteTx, DbError> {
        let (guard, mode) = if self.is_sqlite() {
            (Some(self.lock().await), Some(SqliteTransactionMode::Immediate))
        } else {
            (None, None)
        };
        let options = TransactionOptions {
            sqlite_transaction_mode: mode,
            ..TransactionOptions::default()
        };
        let tx = self.shared.write.begin_with_options(options).await?;
        Ok(WriteTx { tx, _writer: guard })
    }

    async fn lock(&self) -> OwnedMutexGuard<()> {
        self.shared.writer.clone().lock_owned().await
    }

    /// Which engine it is.
    pub fn backend(&self) -> DbBackend {
        self.shared.backend
    }

    /// Whether it is SQLite (else PostgreSQL).
    pub fn is_sqlite(&self) -> bool {
        self.shared.backend == DbBackend::Sqlite
    }

    /// Brings tables up to date, all steps in one transaction, so that it happens wholly or not at all. Other processes
    /// that do the same wait and then find nothing to do. Each service's migrator names a migration table of its own.
    ///
    /// # Errors
    /// [`DbError::Migrate`].
    pub async fn migrate<M: MigratorTrait>(&self) -> Result<(), DbError> {
        let tx = self.begin().await?;
        if self.shared.backend == DbBackend::Postgres {
            // Any number will do, as long as it is the same everywhere. Released with the transaction.
            tx.execute_unprepared("SELECT pg_advisory_xact_lock(7020961364212)")
                .await
                .map_err(DbError::Migrate)?;
        }
        M::up(&*tx, None).await.map_err(DbError::Migrate)?;
        tx.tx.commit().await.map_err(DbError::Migrate)
    }

    /// Asks the database for a sign of life, for a health gate.
    ///
    /// # Errors
    /// [`DbError::Operation`].
    pub async fn ping(&self) -> Result<(), DbError> {
        Ok(self.shared.read.ping().await?)
    }

    /// Closes the connections, also those of the clones. For the end of a process or test; not closing is fine too.
    ///
    /// # Errors
    /// [`DbError::Operation`].
    pub async fn close(&self) -> Result<(), DbError> {
        self.shared.write.close_by_ref().await?;
        Ok(self.shared.read.close_by_ref().await?)
    }
}

#[cfg(all(test, feature = "testkit"))]
mod tests;

//! Opening pools, and the registry that lets components of one process share them.

use std::collections::HashMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use sea_orm::{ConnectOptions, Database, DatabaseConnection, DbBackend};
use tokio::sync::Mutex;

use super::{Db, DbError, DbSettings, Shared, Synchronous};

/// Statements slower than this are logged.
const SLOW: Duration = Duration::from_secs(1);

type Registry = Mutex<HashMap<String, Weak<Shared>>>;

fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(Registry::default)
}

pub(super) async fn connect(url: &str, settings: &DbSettings) -> Result<Db, DbError> {
    if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        return shared(url.to_owned(), postgres(url, settings)).await;
    }
    let Some(place) = url.strip_prefix("sqlite:") else {
        return Err(DbError::Address(
            "it begins with none of sqlite:, postgres:// and postgresql://",
        ));
    };
    let place = place.split('?').next().unwrap_or(place);
    if place == ":memory:" || place == "//:memory:" {
        return Ok(Db {
            shared: Arc::new(memory(settings).await?),
        });
    }
    let path = place.strip_prefix("//").unwrap_or(place);
    if path.is_empty() {
        return Err(DbError::Address("the path of the file is missing"));
    }
    let path = prepare(Path::new(path))
        .await
        .map_err(|error| DbError::Folder(Arc::new(error)))?;
    shared(format!("sqlite:{}", path.display()), file(&path, settings)).await
}

/// Makes the folder and resolves the path, so that two spellings of one file meet in the registry.
async fn prepare(path: &Path) -> std::io::Result<PathBuf> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        Some(_) | None => Path::new("."),
    };
    tokio::fs::create_dir_all(folder).await?;
    let folder = tokio::fs::canonicalize(folder).await?;
    let name = path
        .file_name()
        .ok_or_else(|| std::io::Error::from(std::io::ErrorKind::InvalidInput))?;
    Ok(folder.join(name))
}

async fn shared(key: String, open: impl Future<Output = Result<Shared, DbError>>) -> Result<Db, DbError> {
    // Held while opening: two components that start together shall get one pool.
    let mut registry = registry().lock().await;
    registry.retain(|_, shared| shared.strong_count() > 0);
    if let Some(shared) = registry.get(&key).and_then(Weak::upgrade)
        && !closed(&shared)
    {
        return Ok(Db { shared });
    }
    let shared = Arc::new(open.await?);
    registry.insert(key, Arc::downgrade(&shared));
    Ok(Db { shared })
}

fn closed(shared: &Shared) -> bool {
    if shared.backend == DbBackend::Sqlite {
        shared.read.get_sqlite_connection_pool().is_closed()
    } else {
        shared.read.get_postgres_connection_pool().is_closed()
    }
}

fn options(url: &str, settings: &DbSettings, connections: u32) -> ConnectOptions {
    let mut options = ConnectOptions::new(url);
    options
        .max_connections(connections)
        .acquire_timeout(settings.acquire_timeout);
    // Parsed, because the type is of a crate that is not needed otherwise.
    if let (Ok(trace), Ok(warn)) = ("trace".parse(), "warn".parse()) {
        options
            .sqlx_logging_level(trace)
            .sqlx_slow_statements_logging_settings(warn, SLOW);
    }
    options
}

async fn open(options: ConnectOptions) -> Result<DatabaseConnection, DbError> {
    Database::connect(options).await.map_err(DbError::Connect)
}

async fn postgres(url: &str, settings: &DbSettings) -> Result<Shared, DbError> {
    let connection = open(options(url, settings, settings.max_connections.max(1))).await?;
    Ok(Shared {
        read: connection.clone(),
        write: connection,
        backend: DbBackend::Postgres,
        writer: Arc::default(),
    })
}

/// Who a connection to SQLite is for.
#[derive(Clone, Copy, PartialEq)]
enum For {
    Reading,
    Writing,
}

fn sqlite(path: Option<&Path>, settings: &DbSettings, connections: u32, user: For) -> ConnectOptions {
    let mut options = options("sqlite::memory:", settings, connections);
    // A connection to a file costs nothing to keep and a lot to warm up; one to memory must not end at all.
    options
        .test_before_acquire(false)
        .idle_timeout(None)
        .max_lifetime(None)
        .min_connections(1);
    let path = path.map(Path::to_owned);
    let busy_timeout = settings.busy_timeout;
    let synchronous = match settings.synchronous {
        Synchronous::Full => "FULL",
        Synchronous::Normal => "NORMAL",
        Synchronous::Off => "OFF",
    };
    options.map_sqlx_sqlite_opts(move |options| {
        let mut options = options
            .busy_timeout(busy_timeout)
            .foreign_keys(true)
            .pragma("synchronous", synchronous)
            .pragma("temp_store", "MEMORY");
        if let Some(path) = &path {
            // Set here and not through the address, where `?` and `%` would mean something.
            options = options
                .in_memory(false)
                .shared_cache(false)
                .filename(path)
                .create_if_missing(true)
                .pragma("journal_mode", "WAL");
        }
        if user == For::Reading {
            options = options.pragma("query_only", "ON");
        }
        options
    });
    options
}

async fn memory(settings: &DbSettings) -> Result<Shared, DbError> {
    let connection = open(sqlite(None, settings, 1, For::Writing)).await?;
    Ok(Shared {
        read: connection.clone(),
        write: connection,
        backend: DbBackend::Sqlite,
        writer: Arc::default(),
    })
}

async fn file(path: &Path, settings: &DbSettings) -> Result<Shared, DbError> {
    // The writer first: it makes the file and switches it to WAL.
    let write = open(sqlite(Some(path), settings, 1, For::Writing)).await?;
    let read = open(sqlite(
        Some(path),
        settings,
        settings.max_connections.max(1),
        For::Reading,
    ))
    .await?;
    Ok(Shared {
        read,
        write,
        backend: DbBackend::Sqlite,
        writer: Arc::default(),
    })
}

//! A database of its own for a test, on each engine.

use std::time::Duration;

use sea_orm::{ConnectOptions, ConnectionTrait, Database, DatabaseConnection};
use tempfile::TempDir;
use uuid::Uuid;

use crate::db::{Db, DbSettings, Synchronous};
use crate::settings;

const LOCAL: &str = "postgres://postgres@127.0.0.1:5432/postgres";

/// A fresh database; gone when dropped. Dereferences to [`Db`].
pub struct TestDb {
    db: Db,
    url: String,
    engine: &'static str,
    place: Place,
}

enum Place {
    /// Deleted with its folder.
    Folder(#[expect(dead_code, reason = "held for its drop")] TempDir),
    /// Dropped on the server at this address.
    Server { admin: String, name: String },
}

impl std::ops::Deref for TestDb {
    type Target = Db;

    fn deref(&self) -> &Db {
        &self.db
    }
}

impl TestDb {
    /// An SQLite file in a folder of its own.
    ///
    /// # Panics
    /// When it cannot be made.
    pub async fn sqlite() -> TestDb {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let url = format!("sqlite://{}", folder.path().join("test.db").display());
        let db = Db::connect(&url, &settings_for_tests())
            .await
            .expect("an SQLite file");
        TestDb {
            db,
            url,
            engine: "sqlite",
            place: Place::Folder(folder),
        }
    }

    /// A database on the PostgreSQL server at `TEST_POSTGRES_URL`, else on the local one. `None`, with a note on
    /// standard error, when there is no server.
    ///
    /// # Panics
    /// When the variable `CI` is set and there is no server; when the server refuses.
    pub async fn postgres() -> Option<TestDb> {
        let named = settings::variable("TEST_POSTGRES_URL");
        let admin = named.clone().unwrap_or_else(|| LOCAL.to_owned());
        let server = match connect(&admin).await {
            Ok(server) => server,
            Err(error) if named.is_some() || settings::variable("CI").is_some() => {
                panic!("PostgreSQL cannot be reached: {error}")
            }
            Err(_) => {
                eprintln!("skipped on PostgreSQL: no server at TEST_POSTGRES_URL or 127.0.0.1:5432");
                return None;
            }
        };
        let name = format!("t_{}", Uuid::now_v7().simple());
        server
            .execute_unprepared(&format!("CREATE DATABASE {name}"))
            .await
            .expect("a database on the server");
        server.close().await.expect("closing");
        let mut url = url::Url::parse(&admin).expect("an address");
        url.set_path(&name);
        let url = url.to_string();
        let db = Db::connect(&url, &settings_for_tests())
            .await
            .expect("the database just made");
        Some(TestDb {
            db,
            url,
            engine: "postgres",
            place: Place::Server { admin, name },
        })
    }

    /// The database.
    pub fn db(&self) -> &Db {
        &self.db
    }

    /// Its address, for settings of components and for child processes.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// `sqlite` or `postgres`, for messages of tests.
    pub fn engine(&self) -> &'static str {
        self.engine
    }
}

impl Drop for TestDb {
    fn drop(&mut self) {
        let Place::Server { admin, name } = &self.place else {
            return;
        };
        let (admin, name) = (admin.clone(), name.clone());
        // A drop cannot await, and the test's runtime may be ending: a thread with a runtime of its own.
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .ok()?;
            runtime.block_on(async {
                let server = connect(&admin).await.ok()?;
                server
                    .execute_unprepared(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"))
                    .await
                    .ok()
            })
        });
        // What cannot be dropped is left to whoever owns the server.
        let _ = dropped.join();
    }
}

/// A database per engine that can be had, for suites that run on all of them. Never empty.
///
/// # Panics
/// As [`TestDb::sqlite`] and [`TestDb::postgres`].
pub async fn engines() -> Vec<TestDb> {
    let mut engines = vec![TestDb::sqlite().await];
    engines.extend(TestDb::postgres().await);
    engines
}

fn settings_for_tests() -> DbSettings {
    DbSettings {
        synchronous: Synchronous::Off,
        max_connections: 8,
        ..DbSettings::default()
    }
}

async fn connect(url: &str) -> Result<DatabaseConnection, sea_orm::DbErr> {
    let mut options = ConnectOptions::new(url);
    options
        .max_connections(1)
        .sqlx_logging(false)
        .acquire_timeout(Duration::from_secs(3));
    Database::connect(options).await
}

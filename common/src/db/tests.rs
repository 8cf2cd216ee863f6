//! Suites over both engines.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::str::FromStr;
use std::time::Duration;

use sea_orm::entity::prelude::*;
use sea_orm::{ActiveValue::Set, Statement};
use sea_orm_migration::prelude::{ColumnDef, *};

use super::*;
use crate::tasks::Tasks;
use crate::testkit::{TestDb, engines};

mod item {
    use sea_orm::entity::prelude::*;

    use crate::db::Exact;

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "item")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: String,
        pub at: i64,
        pub price: Option<Exact>,
        pub note: Option<Json>,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

struct Migrator;

impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![Box::new(First)]
    }

    fn migration_table_name() -> DynIden {
        "item_migration".into_iden()
    }
}

struct First;

impl MigrationName for First {
    fn name(&self) -> &str {
        "m20261130_000001_items"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for First {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let backend = manager.get_database_backend();
        let table = Table::create()
            .table("item")
            .col(ColumnDef::new("id").text().not_null().primary_key())
            .col(columns::timestamp("at").not_null())
            .col(columns::money("price", backend))
            .col(columns::json("note", backend))
            .to_owned();
        manager.create_table(table).await
    }
}

async fn ready() -> Vec<TestDb> {
    let engines = engines().await;
    for db in &engines {
        db.migrate::<Migrator>().await.unwrap();
    }
    engines
}

fn item(id: &str) -> item::ActiveModel {
    item::ActiveModel {
        id: Set(id.to_owned()),
        at: Set(1),
        price: Set(None),
        note: Set(None),
    }
}

async fn count(db: &Db) -> u64 {
    item::Entity::find().count(db.read()).await.unwrap()
}

#[tokio::test]
async fn migrating_at_once_and_again_is_harmless() {
    for db in engines().await {
        let (one, two) = tokio::join!(db.migrate::<Migrator>(), db.migrate::<Migrator>());
        one.unwrap();
        two.unwrap();
        db.migrate::<Migrator>().await.unwrap();
        assert_eq!(count(&db).await, 0, "{}", db.engine());
        db.ping().await.unwrap();
    }
}

#[tokio::test]
async fn a_transaction_is_rolled_back_when_dropped() {
    for db in ready().await {
        let tx = db.begin().await.unwrap();
        item("dropped").insert(&*tx).await.unwrap();
        drop(tx);
        let tx = db.begin().await.unwrap();
        item("kept").insert(&*tx).await.unwrap();
        tx.commit().await.unwrap();
        let found = item::Entity::find().all(db.read()).await.unwrap();
        assert_eq!(
            found.iter().map(|item| item.id.as_str()).collect::<Vec<_>>(),
            ["kept"],
            "{}",
            db.engine()
        );
    }
}

#[tokio::test]
async fn values_come_back_as_they_went() {
    for db in ready().await {
        let price = Decimal::from_str("0.100000001").unwrap();
        let at = chrono::Utc::now();
        let mut sent = item("a");
        sent.at = Set(columns::micros(at));
        sent.price = Set(Some(Exact(price)));
        sent.note = Set(Some(serde_json::json!({"k": [1, "two"]})));
        let tx = db.begin().await.unwrap();
        sent.insert(&*tx).await.unwrap();
        item("b").insert(&*tx).await.unwrap();
        tx.commit().await.unwrap();
        let found = item::Entity::find_by_id("a")
            .one(db.read())
            .await
            .unwrap()
            .unwrap();
        assert_eq!(found.price, Some(Exact(price)), "{}", db.engine());
        assert_eq!(
            columns::instant(found.at).timestamp_micros(),
            at.timestamp_micros()
        );
        assert_eq!(found.note, Some(serde_json::json!({"k": [1, "two"]})));
        assert_eq!(
            item::Entity::find_by_id("b")
                .one(db.read())
                .await
                .unwrap()
                .unwrap()
                .price,
            None
        );

        let sql = format!("SELECT {} AS now", columns::now_sql(db.backend()));
        let row = db
            .read()
            .query_one_raw(Statement::from_string(db.backend(), sql))
            .await
            .unwrap()
            .unwrap();
        let off = columns::instant(row.try_get("", "now").unwrap()) - chrono::Utc::now();
        assert!(off.num_seconds().abs() < 5, "{off}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_writers_of_one_file_do_not_fight() {
    let db = TestDb::sqlite().await;
    db.migrate::<Migrator>().await.unwrap();
    // A second component connects by another spelling of the same place.
    let folder = db
        .url()
        .strip_prefix("sqlite://")
        .unwrap()
        .strip_suffix("/test.db")
        .unwrap()
        .to_owned();
    let other = Db::connect(
        &format!("sqlite:{folder}/./test.db?mode=rwc"),
        &DbSettings::default(),
    )
    .await
    .unwrap();
    assert!(Arc::ptr_eq(&db.shared, &other.shared));
    let tasks = Tasks::new();
    let writers: Vec<_> = (0..50)
        .map(|number| {
            let db = if number % 2 == 0 {
                db.db().clone()
            } else {
                other.clone()
            };
            tasks.spawn("writer", async move {
                let tx = db.begin().await.unwrap();
                item(&number.to_string()).insert(&*tx).await.unwrap();
                tx.commit().await.unwrap();
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    assert_eq!(count(&db).await, 50);
}

#[tokio::test]
async fn reading_connections_of_a_file_refuse_to_write_and_read_beside_a_writer() {
    let db = TestDb::sqlite().await;
    db.migrate::<Migrator>().await.unwrap();
    assert!(item("a").insert(db.read()).await.is_err());
    let tx = db.begin().await.unwrap();
    item("a").insert(&*tx).await.unwrap();
    assert_eq!(count(&db).await, 0);
    tx.commit().await.unwrap();
    assert_eq!(count(&db).await, 1);
    let pragma = |name: &str| {
        let (db, sql) = (db.db().clone(), format!("PRAGMA {name}"));
        async move {
            let row = db
                .read()
                .query_one_raw(Statement::from_string(DbBackend::Sqlite, sql))
                .await
                .unwrap()
                .unwrap();
            row.try_get_by_index::<String>(0)
                .or_else(|_| row.try_get_by_index::<i64>(0).map(|n| n.to_string()))
                .unwrap()
        }
    };
    assert_eq!(pragma("journal_mode").await, "wal");
    assert_eq!(pragma("foreign_keys").await, "1");
}

#[tokio::test]
async fn memory_is_one_connection_and_private() {
    let settings = DbSettings {
        acquire_timeout: Duration::from_millis(200),
        ..DbSettings::default()
    };
    let db = Db::connect("sqlite::memory:", &settings).await.unwrap();
    db.migrate::<Migrator>().await.unwrap();
    let tx = db.begin().await.unwrap();
    item("a").insert(&*tx).await.unwrap();
    assert!(item::Entity::find().count(db.read()).await.is_err());
    tx.commit().await.unwrap();
    assert_eq!(count(&db).await, 1);
    let other = Db::connect("sqlite::memory:", &settings).await.unwrap();
    assert!(item::Entity::find().count(other.read()).await.is_err());
}

#[tokio::test]
async fn addresses_that_are_none_are_refused_without_repeating_them() {
    for url in ["mysql://user:secret@host/db", "sqlite:", "nonsense"] {
        let error = Db::connect(url, &DbSettings::default()).await.err().unwrap();
        assert!(
            matches!(error, DbError::Address(_)) && !error.to_string().contains("secret"),
            "{error}"
        );
    }
}

/// An operation of the group commit: an id to insert, or a failure after an insert.
#[derive(Clone, Debug)]
struct Op(&'static str, Does);

#[derive(Clone, Copy, Debug)]
enum Does {
    Well,
    Fail,
    Panic,
}

#[derive(Debug, thiserror::Error)]
enum OpError {
    #[error("bad operation")]
    Bad,
    #[error(transparent)]
    Db(#[from] DbError),
    #[error(transparent)]
    Sql(#[from] DbErr),
}

fn group(db: &TestDb, tasks: &Tasks) -> GroupCommit<Op, String, OpError> {
    GroupCommit::new(db.db().clone(), tasks, "test", 16, |tx, ops: Vec<Op>| {
        Box::pin(async move {
            let mut answers = Vec::new();
            for Op(id, does) in ops {
                item(id).insert(tx).await?;
                match does {
                    Does::Well => {}
                    Does::Fail => return Err(OpError::Bad),
                    Does::Panic => panic!("a bug"),
                }
                answers.push(id.to_uppercase());
            }
            Ok(answers)
        })
    })
}

#[tokio::test]
async fn a_bad_operation_does_not_fail_its_neighbours() {
    for db in ready().await {
        let tasks = Tasks::new();
        let group = group(&db, &tasks);
        let (a, bad, panics, b, twice, c) = tokio::join!(
            group.submit(Op("a", Does::Well)),
            group.submit(Op("bad", Does::Fail)),
            group.submit(Op("panics", Does::Panic)),
            group.submit(Op("b", Does::Well)),
            group.submit(Op("a", Does::Well)),
            group.submit(Op("c", Does::Well)),
        );
        assert_eq!(
            (a.unwrap(), b.unwrap(), c.unwrap()),
            ("A".into(), "B".into(), "C".into()),
            "{}",
            db.engine()
        );
        assert!(matches!(bad, Err(OpError::Bad)));
        assert!(matches!(panics, Err(OpError::Db(DbError::Broken))));
        // A key that is taken: on PostgreSQL that breaks the whole transaction.
        assert!(matches!(twice, Err(OpError::Sql(_))), "{twice:?}");
        assert_eq!(count(&db).await, 3);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_share_a_transaction_and_drain_waits_for_them() {
    let db = TestDb::sqlite().await;
    db.migrate::<Migrator>().await.unwrap();
    let tasks = Tasks::new();
    let sizes = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = Arc::clone(&sizes);
    let group: GroupCommit<i64, i64, DbError> =
        GroupCommit::new(db.db().clone(), &tasks, "sizes", 64, move |_, ops: Vec<i64>| {
            seen.lock().unwrap().push(ops.len());
            Box::pin(async move {
                tokio::time::sleep(Duration::from_millis(20)).await;
                Ok(ops)
            })
        });
    let other = Tasks::new();
    let callers: Vec<_> = (0..40)
        .map(|number| {
            let group = group.clone();
            other.spawn("caller", async move { group.submit(number).await.unwrap() })
        })
        .collect();
    tokio::task::yield_now().await;
    for (number, caller) in (0..40).zip(callers) {
        assert_eq!(caller.await.unwrap(), number);
    }
    assert!(tasks.drain(Duration::from_secs(5)).await);
    let sizes = sizes.lock().unwrap().clone();
    assert!(sizes.len() < 10 && sizes.iter().sum::<usize>() == 40, "{sizes:?}");
}

use atelier_common::testkit::{TestDb, engines};
use atelier_proto::kernel::v1::GenerationComplete;
use sea_orm::ActiveValue::Set;

use super::*;
use crate::{entity::segments, log::Past, log::encode, migration::Migrator};

/// Items of a log, `per_segment` of them in each segment, for each of two nodes.
struct Log {
    items: usize,
    per_segment: usize,
    /// Bytes of a result.
    bytes: usize,
}
fn name(item: usize) -> String {
    format!("each={item}#0")
}
impl Log {
    fn outputs(&self, node: &str, item: usize) -> Map {
        let text = format!("{node} {item} {}", "x".repeat(self.bytes));
        [("output".to_owned(), Value::from(text.as_str()))]
            .into_iter()
            .collect()
    }
    async fn write(&self, db: &TestDb) -> Recall {
        db.migrate::<Migrator>().await.unwrap();
        let all: Vec<usize> = (0..self.items).collect();
        let mut seq = 0;
        for items in all.chunks(self.per_segment) {
            let first = seq + 1;
            let (mut rows, mut events) = (Vec::new(), Vec::new());
            for (node, item) in items.iter().flat_map(|item| [("a", *item), ("b", *item)]) {
                seq += 1;
                let idx = i64::try_from(item).unwrap();
                let artifact = GenerationComplete {
                    node_id: node.to_owned(),
                    index: idx,
                    outputs: Some((&self.outputs(node, item)).into()),
                    ..GenerationComplete::default()
                };
                events.push(JobEvent {
                    seq,
                    event: Some(Frame::GenerationComplete(artifact)),
                    ..JobEvent::default()
                });
                rows.push(row(node, idx, &name(item), None, Some(first)));
            }
            let tx = db.begin().await.unwrap();
            let segment = segments::ActiveModel {
                job_key: Set("j".to_owned()),
                first_seq: Set(first),
                last_seq: Set(seq),
                event_count: Set(seq - first + 1),
                payload: Set(encode(&events)),
            };
            segments::Entity::insert(segment)
                .exec_without_returning(&*tx)
                .await
                .unwrap();
            for rows in rows.chunks(500) {
                artifacts::Entity::insert_many(rows.to_vec())
                    .exec_without_returning(&*tx)
                    .await
                    .unwrap();
            }
            tx.commit().await.unwrap();
        }
        recall(db).await
    }
}
fn row(
    node: &str,
    idx: i64,
    invocation: &str,
    event: Option<Vec<u8>>,
    segment: Option<i64>,
) -> artifacts::ActiveModel {
    artifacts::ActiveModel {
        job_key: Set("j".to_owned()),
        node_id: Set(node.to_owned()),
        idx: Set(idx),
        invocation: Set(invocation.to_owned()),
        published: Set(event.is_none()),
        event: Set(event),
        segment: Set(segment),
    }
}
async fn recall(db: &TestDb) -> Recall {
    let past = Past::read(db, "j").await.unwrap();
    Recall::new(
        db.db().clone(),
        "j".to_owned(),
        past.known,
        CancellationToken::new(),
    )
}

#[tokio::test]
async fn results_are_found_by_their_key_and_few_of_them_are_held() {
    for db in engines().await {
        let log = Log {
            items: 6_000,
            per_segment: 100,
            bytes: 3_000,
        };
        let recall = log.write(&db).await;
        let mut most = Load::default();
        for item in 0..log.items {
            for node in ["a", "b"] {
                let found = recall.committed(node, &name(item)).await;
                assert_eq!(found, Some(log.outputs(node, item)), "{node} {item}");
            }
            let load = recall.load().await;
            most = Load {
                places: most.places.max(load.places),
                results: most.results.max(load.results),
                bytes: most.bytes.max(load.bytes),
                queries: load.queries,
            };
        }
        // 36 MB of results are there.
        let about = format!("{} {most:?}", db.engine());
        assert!(
            most.bytes <= BYTES && most.results <= BYTES / log.bytes,
            "{about}"
        );
        assert!(most.places <= 2 * 257, "{about}");
        assert!(most.queries < log.items / 20, "{about}");
        // In another order they are the same, and as few are held.
        for step in 0..300 {
            let item = step * 3_571 % log.items;
            let found = recall.committed("b", &name(item)).await;
            assert_eq!(found, Some(log.outputs("b", item)), "{item}");
            let load = recall.load().await;
            assert!(load.bytes <= BYTES && load.places <= 2 * 257, "{load:?}");
        }
        // What was never committed asks nothing.
        let before = recall.load().await;
        for item in 0..1_000 {
            let key = name(log.items + item);
            assert_eq!(recall.committed("a", &key).await, None);
            assert_eq!(recall.frames("a", &key).await, None);
            assert_eq!(recall.frames("a", &name(item)).await, None);
        }
        assert_eq!(recall.load().await, before, "{}", db.engine());
    }
}
#[tokio::test]
async fn results_that_are_heavier_than_all_that_may_be_held_are_found_one_by_one() {
    for db in engines().await {
        let log = Log {
            items: 3,
            per_segment: 1,
            bytes: BYTES / 2 + 1,
        };
        let recall = log.write(&db).await;
        for item in [0, 2, 1] {
            let found = recall.committed("b", &name(item)).await;
            assert!(found == Some(log.outputs("b", item)), "{item}");
            assert_eq!(recall.load().await.results, 2, "those of one segment");
        }
    }
}
#[tokio::test]
async fn results_that_were_not_shown_or_are_hidden_are_found_where_they_are() {
    for db in engines().await {
        let log = Log {
            items: 2,
            per_segment: 2,
            bytes: 1,
        };
        log.write(&db).await;
        let event = |item: usize| {
            let artifact = GenerationComplete {
                outputs: Some((&log.outputs("a", item)).into()),
                ..GenerationComplete::default()
            };
            let event = JobEvent {
                event: Some(Frame::GenerationComplete(artifact)),
                ..JobEvent::default()
            };
            event.encode_to_vec()
        };
        let list = |maps: &[Map]| {
            let values = maps.iter().map(|map| (&Value::map(map.clone())).into());
            ListValue {
                values: values.collect(),
            }
            .encode_to_vec()
        };
        let kept = |key: String, frames: &[Map]| frames::ActiveModel {
            job_key: Set("j".to_owned()),
            node_id: Set("a".to_owned()),
            invocation: Set(key),
            frames: Set(list(frames)),
        };
        let tx = db.begin().await.unwrap();
        let rows = [
            row("a", 2, &name(2), Some(event(2)), None),
            row("a", 3, &name(3), None, None),
            // Shown to nobody, in an append that showed something else.
            row("a", 4, &name(4), None, Some(1)),
            row("a", 5, &name(5), Some(event(5)), None),
        ];
        artifacts::Entity::insert_many(rows)
            .exec_without_returning(&*tx)
            .await
            .unwrap();
        let both = [log.outputs("a", 6), log.outputs("a", 7)];
        let rows = [
            kept(result_key(&name(3)), &[log.outputs("a", 3)]),
            kept(result_key(&name(4)), &[log.outputs("a", 4)]),
            kept(name(6), &both),
        ];
        frames::Entity::insert_many(rows)
            .exec_without_returning(&*tx)
            .await
            .unwrap();
        tx.commit().await.unwrap();
        let recall = recall(&db).await;
        for item in 0..5 {
            let found = recall.committed("a", &name(item)).await;
            assert_eq!(found, Some(log.outputs("a", item)), "{item}");
            assert_eq!(
                recall.frames("a", &name(item)).await,
                None,
                "a result is no frame"
            );
        }
        assert_eq!(recall.frames("a", &name(6)).await, Some(both.to_vec()));
        assert_eq!(recall.committed("a", &name(6)).await, None);
        // Hidden since this process began: its key was not known then.
        let tx = db.begin().await.unwrap();
        let shown = row("a", 5, &name(5), None, None);
        artifacts::Entity::update(shown).exec(&*tx).await.unwrap();
        let rows = kept(result_key(&name(5)), &[log.outputs("a", 5)]);
        frames::Entity::insert(rows)
            .exec_without_returning(&*tx)
            .await
            .unwrap();
        tx.commit().await.unwrap();
        assert_eq!(recall.committed("a", &name(5)).await, Some(log.outputs("a", 5)));
    }
}
#[tokio::test]
async fn a_database_that_cannot_tell_ends_the_run_and_answers_nothing() {
    for db in engines().await {
        let log = Log {
            items: 1,
            per_segment: 1,
            bytes: 1,
        };
        let recall = log.write(&db).await;
        let tx = db.begin().await.unwrap();
        segments::Entity::update_many()
            .col_expr(
                segments::Column::Payload,
                sea_orm::sea_query::Expr::value(vec![0xff_u8]),
            )
            .exec(&*tx)
            .await
            .unwrap();
        tx.commit().await.unwrap();
        let name = name(0);
        tokio::select! {
            found = recall.committed("a", &name) => panic!("{found:?}"),
            () = recall.lost.cancelled() => {}
        }
    }
}

//! Long runs whose process died: what was done is looked up when it is asked for, and nothing is said twice.

use std::{collections::BTreeMap, time::Duration};

use atelier_common::{
    clock::Clock,
    component::Deps,
    identity::{Caller, Signer},
    testkit::{TestDb, engines, until},
};
use atelier_kernel::{
    entity::{artifacts, checkpoints, jobs, segments},
    jobs::Store,
    log::{decode, encode},
    migration::Migrator,
    settings::Settings,
};
use atelier_proto::{
    kernel::v1::{Job, JobEvent, JobStatus, NodeStatus, job_event::Event as Frame},
    value::{Map, Value},
};
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder, sea_query::Expr};
use serde_json::Value as Json;

use super::{
    fakes::Provider,
    kernel::{Up, each, paint, shout},
    scene::{image, record_driven, seqs},
};

/// Items of a long run: more events than one checkpoint covers.
const ITEMS: usize = 3_000;
const SOON: Duration = Duration::from_secs(60);

fn provider(open: bool) -> Provider {
    Provider::new((&image(b"sea")).into(), open)
}
/// Items through two nodes, and a picture that the run waits for.
fn long() -> Json {
    let (mut graph, waits) = (each(ITEMS), paint());
    for part in ["nodes", "edges"] {
        let more = waits[part].as_array().unwrap().clone();
        let all = graph[part].as_array_mut().unwrap();
        for mut one in more {
            if one["id"] == "out" {
                one["id"] = "picture".into();
            }
            if one["target"] == "out" {
                one["target"] = "picture".into();
            }
            all.push(one);
        }
    }
    graph
}
/// A long run that some items of are done; a checkpoint is among what was written of it.
async fn begun(db: &TestDb) -> Up {
    let up = Up::new(db, Settings::default(), provider(false)).await;
    up.run("j", &long()).await.unwrap();
    let covered = async || {
        let rows = checkpoints::Entity::find().all(db.read()).await.unwrap();
        !rows.is_empty()
    };
    until(covered).within(SOON).await;
    up
}
fn loud(job: &Job) -> Vec<String> {
    let outputs = Map::try_from(job.outputs.clone().unwrap()).unwrap();
    let values = outputs["loud"].as_list().unwrap();
    values
        .iter()
        .map(|value| value.as_str().unwrap().to_owned())
        .collect()
}
fn items() -> Vec<String> {
    (0..ITEMS).map(|item| format!("ITEM {item}")).collect()
}
/// What is to be said once: how often it was.
fn once(events: &[JobEvent]) -> BTreeMap<String, usize> {
    let mut said = BTreeMap::new();
    for event in events {
        let what = match event.event.as_ref().unwrap() {
            Frame::JobUpdate(update) => format!("job {:?}", update.status()),
            Frame::NodeUpdate(update) => format!("node {} {:?}", update.node_id, update.status()),
            Frame::GenerationComplete(artifact) => {
                format!("artifact {} {}", artifact.node_id, artifact.index)
            }
            Frame::EdgeUpdate(update) => {
                format!("edge {} {:?} {:?}", update.edge_id, update.status, update.counter)
            }
            _ => continue,
        };
        *said.entry(what).or_default() += 1;
    }
    said
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_lost_run_goes_on_and_says_nothing_twice() {
    for db in engines().await {
        let before = begun(&db).await;
        let after = before.successor(&db, provider(true)).await;
        let (_, events) = after.watch("j", 0, false).await;
        let about = db.engine();
        let last = i64::try_from(events.len()).unwrap();
        assert_eq!(seqs(&events), (1..=last).collect::<Vec<_>>(), "{about}");
        let said = once(&events);
        let twice: Vec<_> = said.iter().filter(|(_, times)| **times > 1).collect();
        assert!(twice.is_empty(), "{about}: {twice:?}");
        for item in 0..ITEMS {
            for node in ["up", "out"] {
                assert!(said.contains_key(&format!("artifact {node} {item}")), "{about}");
            }
        }
        for what in [
            "job Running",
            "job Completed",
            "node up Running",
            "node up Completed",
        ] {
            assert!(said.contains_key(what), "{about}: {what}");
        }
        let job = after.get("j").await;
        assert_eq!(job.status(), JobStatus::Completed, "{about}");
        assert_eq!(loud(&job), items(), "{about}");
    }
}
/// Writes the log anew, up to the last checkpoint: what is no artifact is gone, and results are others. Gives how many items
/// of a run that goes on come to that result: those whose end is in there, and those that come to it from there.
async fn rewrite(db: &TestDb) -> usize {
    let covered = checkpoints::Entity::find()
        .order_by_desc(checkpoints::Column::Seq)
        .one(db.read())
        .await
        .unwrap()
        .unwrap();
    let rows = segments::Entity::find()
        .filter(segments::Column::LastSeq.lte(covered.seq))
        .all(db.read())
        .await
        .unwrap();
    let tx = db.begin().await.unwrap();
    for row in rows {
        let events = decode(row.payload).unwrap().into_iter();
        let artifacts = events.filter_map(|mut event| match &mut event.event {
            Some(Frame::GenerationComplete(artifact)) => {
                let text = Value::from("as the log has it");
                let outputs: Map = [("output".to_owned(), text)].into_iter().collect();
                artifact.outputs = Some((&outputs).into());
                Some(event)
            }
            _ => None,
        });
        let artifacts: Vec<_> = artifacts.collect();
        segments::Entity::update_many()
            .col_expr(segments::Column::Payload, Expr::value(encode(&artifacts)))
            .filter(segments::Column::FirstSeq.eq(row.first_seq))
            .exec(&*tx)
            .await
            .unwrap();
    }
    tx.commit().await.unwrap();
    let rows = artifacts::Entity::find().all(db.read()).await.unwrap();
    let count = |node: &str, until: i64| {
        let is = |row: &&artifacts::Model| row.node_id == node && row.segment.is_some_and(|at| at <= until);
        rows.iter().filter(is).count()
    };
    let (up, out) = (count("up", covered.seq), count("out", covered.seq));
    out + up.saturating_sub(count("out", i64::MAX))
}
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_come_from_the_log_and_what_was_said_comes_from_checkpoints() {
    for db in engines().await {
        let before = begun(&db).await;
        before.stop().await;
        let kept = before.get("j").await.last_seq;
        let rewritten = rewrite(&db).await;
        let after = before.successor(&db, provider(true)).await;
        let (_, events) = after.watch("j", kept, false).await;
        let about = db.engine();
        let last = kept + i64::try_from(events.len()).unwrap();
        assert_eq!(seqs(&events), (kept + 1..=last).collect::<Vec<_>>(), "{about}");
        // What the log does not say any more, the checkpoint does.
        let again = events.iter().filter(|event| match event.event.as_ref().unwrap() {
            Frame::JobUpdate(update) => update.status() == JobStatus::Running,
            Frame::NodeUpdate(update) => {
                update.status() == NodeStatus::Running && update.node_id != "picture"
            }
            _ => false,
        });
        assert_eq!(again.count(), 0, "{about}");
        let job = after.get("j").await;
        assert_eq!(job.status(), JobStatus::Completed, "{about}: {job:?}");
        let loud = loud(&job);
        assert_eq!(loud.len(), ITEMS, "{about}");
        let from_log = loud.iter().filter(|text| *text == "as the log has it").count();
        assert_eq!(from_log, rewritten, "{about}");
        assert!(rewritten > 0, "{about}: {rewritten}");
    }
}
#[tokio::test]
async fn lost_runs_are_taken_up_a_few_at_a_time() {
    for db in engines().await {
        // Only there a table can be kept from being read.
        if db.engine() == "sqlite" {
            continue;
        }
        db.migrate::<Migrator>().await.unwrap();
        let store = Store::new(db.db().clone(), Clock::system());
        let graph = shout("hello").to_string();
        for number in 0..12 {
            let job = format!("j{number}");
            record_driven(&store, &Caller::local(), &job, &graph, "dead", 0)
                .await
                .unwrap();
        }
        let tx = db.begin().await.unwrap();
        tx.execute_unprepared("LOCK TABLE job_artifacts IN ACCESS EXCLUSIVE MODE")
            .await
            .unwrap();
        let settings = Settings {
            lease: Duration::from_secs(2),
            max_concurrent_jobs: 12,
            ..Settings::default()
        };
        let deps = Deps::new(std::env::temp_dir(), Signer::random());
        let _up = Up::with(&db, settings, provider(true), deps).await;
        let taken = async || {
            let rows = jobs::Entity::find()
                .filter(jobs::Column::Owner.ne("dead"))
                .order_by_asc(jobs::Column::JobKey)
                .all(db.read())
                .await
                .unwrap();
            rows.into_iter().map(|row| row.lease_until).collect::<Vec<_>>()
        };
        until(async || taken().await.len() >= 4).within(SOON).await;
        // Their leases are renewed while their pasts are read: until then the others had time enough.
        let first = taken().await;
        until(async || taken().await.iter().zip(&first).all(|(now, then)| now > then))
            .within(SOON)
            .await;
        assert_eq!(taken().await.len(), 4);
        tx.commit().await.unwrap();
        let done = async || {
            let rows = jobs::Entity::find().all(db.read()).await.unwrap();
            rows.iter().all(|row| row.status == "completed")
        };
        until(done).within(SOON).await;
    }
}

//! Runs that sleep until their time: who wakes them, and that it happens once.

use std::time::Duration;

use atelier_common::{
    clock::Clock,
    component::Deps,
    identity::Signer,
    testkit::{TestDb, engines, until},
};
use atelier_kernel::{entity::jobs, settings::Settings};
use atelier_proto::{
    kernel::v1::{
        CancelJobRequest, JobEvent, JobStatus, PushInputRequest, ResumeJobRequest, job_event::Event as Frame,
    },
    value::{Map, Value},
};
use chrono::{DateTime, TimeDelta, Utc};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};
use serde_json::{Value as Json, json};
use tonic::Code;

use super::{
    fakes::Provider,
    kernel::{Up, edge, node},
    scene::image,
};

const SOON: Duration = Duration::from_secs(30);

/// Looks often, and lets no wait of more than a minute stay in memory.
fn settings() -> Settings {
    Settings {
        lease: Duration::from_millis(600),
        longest_wait: Duration::from_secs(60),
        ..Settings::default()
    }
}
/// A kernel whose time a test moves.
async fn up(db: &TestDb) -> (Up, Clock) {
    let clock = Clock::manual(Utc::now());
    let deps = Deps {
        clock: clock.clone(),
        ..Deps::new(std::env::temp_dir(), Signer::random())
    };
    let provider = Provider::new((&image(b"sea")).into(), true);
    (Up::with(db, settings(), provider, deps).await, clock)
}
fn wait(id: &str, seconds: i64, input: &str) -> Json {
    let properties = json!({"timeout_seconds": seconds, "input": input});
    node(id, "nodetool.triggers.Wait", properties)
}
fn out(id: &str) -> Json {
    node(id, "nodetool.output.Output", json!({"name": id}))
}
/// Two waits side by side, of 1,000 and 2,000 seconds.
fn two() -> Json {
    json!({
        "nodes": [wait("one", 1_000, "tea"), wait("two", 2_000, "cake"), out("first"), out("second"), out("took")],
        "edges": [
            edge("one.data", "first.value"),
            edge("two.data", "second.value"),
            edge("two.waited_seconds", "took.value"),
        ],
    })
}
async fn row(db: &TestDb, job_id: &str) -> jobs::Model {
    let row = jobs::Entity::find().filter(jobs::Column::JobId.eq(job_id));
    row.one(db.read()).await.unwrap().unwrap()
}
async fn asleep_until(db: &TestDb, job_id: &str, at: DateTime<Utc>) {
    let asleep = async || {
        let row = row(db, job_id).await;
        row.status == "suspended" && row.resume_at == Some(at.timestamp_micros())
    };
    until(asleep).within(SOON).await;
}
fn later(start: DateTime<Utc>, seconds: i64) -> DateTime<Utc> {
    start + TimeDelta::seconds(seconds)
}
fn said(events: &[JobEvent], status: JobStatus) -> usize {
    let is = |event: &&JobEvent| matches!(&event.event, Some(Frame::JobUpdate(update)) if update.status() == status);
    events.iter().filter(is).count()
}
async fn outputs(up: &Up, job_id: &str) -> Map {
    let job = up.get(job_id).await;
    assert_eq!(job.status(), JobStatus::Completed, "{job:?}");
    Map::try_from(job.outputs.unwrap()).unwrap()
}
fn texts(texts: &[&str]) -> Value {
    Value::list(texts.iter().map(|text| Value::from(*text)).collect())
}

#[tokio::test]
async fn k_223_two_nodes_that_wait_side_by_side_both_go_on_at_their_time() {
    for db in engines().await {
        let (up, clock) = up(&db).await;
        let start = clock.now();
        up.run("j", &two()).await.unwrap();
        let moved = async {
            asleep_until(&db, "j", later(start, 1_000)).await;
            clock.advance(Duration::from_secs(1_000));
            // What the second one has waited is kept.
            asleep_until(&db, "j", later(start, 2_000)).await;
            clock.advance(Duration::from_secs(1_000));
        };
        let ((_, events), ()) = tokio::join!(up.watch("j", 0, false), moved);
        let outputs = outputs(&up, "j").await;
        assert_eq!(outputs["first"], texts(&["tea"]), "{}", db.engine());
        assert_eq!(outputs["second"], texts(&["cake"]));
        assert_eq!(outputs["took"], Value::list(vec![Value::from(2_000.0)]));
        // Whoever watches sees every leg of it, and the end.
        assert_eq!(
            [JobStatus::Running, JobStatus::Suspended, JobStatus::Completed]
                .map(|status| said(&events, status)),
            [3, 2, 1]
        );
        let suspended = events.iter().find_map(|event| match &event.event {
            Some(Frame::JobUpdate(update)) if update.status() == JobStatus::Suspended => {
                update.result.clone()
            }
            _ => None,
        });
        let suspended = Map::try_from(suspended.unwrap()).unwrap();
        let Value::List(all) = &suspended["suspensions"] else {
            panic!("{suspended:?}")
        };
        assert_eq!((all.len(), &suspended["suspend"]), (2, &all[0]));
    }
}
#[tokio::test]
async fn a_wait_for_each_item_lasts_as_long_for_every_one_of_them() {
    for db in engines().await {
        let (up, clock) = up(&db).await;
        let start = clock.now();
        let graph = json!({
            "nodes": [
                node("list", "nodetool.constant.List", json!({"value": ["a", "b"]})),
                node("each", "nodetool.control.ForEach", json!({})),
                wait("wait", 1_000, ""),
                out("out"),
            ],
            "edges": [
                edge("list.output", "each.input_list"),
                edge("each.output", "wait.input"),
                edge("wait.data", "out.value"),
            ],
        });
        up.run("j", &graph).await.unwrap();
        for item in 1..=2 {
            asleep_until(&db, "j", later(start, item * 1_000)).await;
            clock.advance(Duration::from_secs(1_000));
        }
        up.end("j").await;
        assert_eq!(
            outputs(&up, "j").await["out"],
            texts(&["a", "b"]),
            "{}",
            db.engine()
        );
    }
}
#[tokio::test]
async fn a_run_that_sleeps_is_woken_after_a_restart_of_all() {
    for db in engines().await {
        let (before, clock) = up(&db).await;
        let start = clock.now();
        before.run("j", &two()).await.unwrap();
        asleep_until(&db, "j", later(start, 1_000)).await;
        before.stop().await;
        clock.advance(Duration::from_secs(5_000));
        let after = before.beside(&db, settings()).await;
        after.end("j").await;
        assert_eq!(
            outputs(&after, "j").await["second"],
            texts(&["cake"]),
            "{}",
            db.engine()
        );
    }
}
#[tokio::test]
async fn of_two_replicas_one_wakes_a_run() {
    for db in engines().await {
        let (one, clock) = up(&db).await;
        let two = one.beside(&db, settings()).await;
        let start = clock.now();
        let jobs: Vec<String> = (0..12).map(|job| format!("j{job}")).collect();
        let graph = json!({
            "nodes": [wait("wait", 1_000, "tea"), out("out")],
            "edges": [edge("wait.data", "out.value")],
        });
        for job in &jobs {
            one.run(job, &graph).await.unwrap();
        }
        for job in &jobs {
            asleep_until(&db, job, later(start, 1_000)).await;
        }
        clock.advance(Duration::from_secs(1_000));
        for job in &jobs {
            let (_, events) = two.watch(job, 0, false).await;
            let statuses = [JobStatus::Running, JobStatus::Suspended, JobStatus::Completed];
            assert_eq!(
                statuses.map(|status| said(&events, status)),
                [2, 1, 1],
                "{} {job}",
                db.engine()
            );
            assert_eq!(two.get(job).await.artifact_count, 2);
        }
    }
}
#[tokio::test]
async fn of_several_nodes_that_wait_each_can_be_answered() {
    for db in engines().await {
        let (up, clock) = up(&db).await;
        let start = clock.now();
        up.run("j", &two()).await.unwrap();
        asleep_until(&db, "j", later(start, 1_000)).await;
        let answer = |node: Option<&str>| {
            let state: Map = [("data".to_owned(), Value::from("answer"))].into_iter().collect();
            up.signed(ResumeJobRequest {
                job_id: "j".to_owned(),
                state: Some((&state).into()),
                node_id: node.map(ToOwned::to_owned),
            })
        };
        let wrong = up.client().resume_job(answer(Some("first"))).await.unwrap_err();
        assert_eq!(wrong.code(), Code::InvalidArgument, "{wrong}");
        // Nothing listens, so nothing is taken.
        let push = PushInputRequest {
            job_id: "j".to_owned(),
            name: "one".to_owned(),
            finish: true,
            ..PushInputRequest::default()
        };
        let refused = up.client().push_input(up.signed(push)).await.unwrap_err();
        assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
        up.client().resume_job(answer(Some("two"))).await.unwrap();
        // The other one sleeps on until the same time.
        until(async || up.get("j").await.artifact_count == 3)
            .within(SOON)
            .await;
        asleep_until(&db, "j", later(start, 1_000)).await;
        up.client().resume_job(answer(None)).await.unwrap();
        up.end("j").await;
        let outputs = outputs(&up, "j").await;
        assert_eq!(
            (&outputs["first"], &outputs["second"]),
            (&texts(&["answer"]), &texts(&["answer"])),
            "{}",
            db.engine()
        );
    }
}
#[tokio::test]
async fn a_run_that_is_cancelled_while_it_sleeps_sleeps_for_good() {
    for db in engines().await {
        let (up, clock) = up(&db).await;
        let start = clock.now();
        up.run("j", &two()).await.unwrap();
        asleep_until(&db, "j", later(start, 1_000)).await;
        let cancel = up.signed(CancelJobRequest {
            job_id: "j".to_owned(),
        });
        assert!(
            up.client()
                .cancel_job(cancel)
                .await
                .unwrap()
                .into_inner()
                .cancelled
        );
        clock.advance(Duration::from_secs(5_000));
        let job = up.end("j").await;
        assert_eq!(job.status(), JobStatus::Cancelled, "{}", db.engine());
        assert_eq!(row(&db, "j").await.resume_at, None);
    }
}

//! Runs whose process died.

use std::time::Duration;

use atelier_common::{
    clock::Clock,
    component::Deps,
    identity::{Caller, Signer},
    testkit::{TestDb, engines, until},
};
use atelier_kernel::{
    entity::{artifacts, jobs},
    jobs::Store,
    log::unpublished,
    migration::Migrator,
    settings::Settings,
};
use atelier_proto::{
    kernel::v1::{
        CancelJobRequest, EventDetail, JobEvent, JobStatus, RunJobRequest, RunOptions,
        job_event::Event as Frame,
    },
    value::{Map, Value},
};
use sea_orm::EntityTrait;
use serde_json::json;

use super::{
    fakes::Provider,
    kernel::{Up, edge, node, paint, shout},
    scene::{encoded, image, record_driven, seqs},
};

const SOON: Duration = Duration::from_secs(20);

fn provider(open: bool) -> Provider {
    Provider::new((&image(b"sea")).into(), open)
}
async fn key(db: &TestDb) -> String {
    jobs::Entity::find()
        .one(db.read())
        .await
        .unwrap()
        .unwrap()
        .job_key
}
fn end(events: &[JobEvent]) -> (JobStatus, Option<String>) {
    match &events.last().unwrap().event {
        Some(Frame::JobUpdate(update)) => (update.status(), update.error_code.clone()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_lost_run_goes_on_with_its_committed_artifacts() {
    for db in engines().await {
        let before = Up::new(&db, Settings::default(), provider(true)).await;
        before.assets.open(false);
        before.run("j", &paint()).await.unwrap();
        until(async || before.assets.calls() == 1).within(SOON).await;
        let key = key(&db).await;
        assert_eq!(unpublished(&db, &key).await.unwrap().len(), 1);

        let watch = before.watch("j", 0, false);
        let successor = async {
            let after = before.successor(&db, provider(true)).await;
            let (_, events) = after.watch("j", 0, false).await;
            (after, events)
        };
        // The watcher of the instance that lost the run sees its end, too: once it finds out.
        let release = async {
            until(async || before.get("j").await.status() == JobStatus::Completed)
                .within(SOON)
                .await;
            before.assets.open(true);
        };
        let ((_, watched), (after, events), ()) = tokio::join!(watch, successor, release);
        assert_eq!(end(&events), (JobStatus::Completed, None), "{}", db.engine());
        assert_eq!(
            seqs(&events),
            (1..=i64::try_from(events.len()).unwrap()).collect::<Vec<_>>()
        );
        let artifacts: Vec<_> = events
            .iter()
            .filter_map(|event| match &event.event {
                Some(Frame::GenerationComplete(artifact)) => {
                    Some((artifact.node_id.as_str(), artifact.index))
                }
                _ => None,
            })
            .collect();
        assert_eq!(artifacts, [("paint", 0), ("out", 0)], "{events:?}");
        let first = |wanted: &dyn Fn(&Frame) -> bool| {
            events
                .iter()
                .position(|event| event.event.as_ref().is_some_and(wanted))
        };
        let runs = first(&|frame| matches!(frame, Frame::NodeUpdate(update) if update.node_id == "paint"));
        let made = first(
            &|frame| matches!(frame, Frame::GenerationComplete(artifact) if artifact.node_id == "paint"),
        );
        assert!(runs < made, "a node runs before it has made anything");
        assert_eq!(
            after.provider.calls(),
            0,
            "what is committed is not asked for again"
        );
        let said = |status: JobStatus| {
            let is = |event: &&JobEvent| matches!(&event.event, Some(Frame::JobUpdate(update)) if update.status() == status);
            events.iter().filter(is).count()
        };
        assert_eq!((said(JobStatus::Running), said(JobStatus::Completed)), (1, 1));
        assert_eq!(after.assets.saved(), [("paint".to_owned(), 0)]);
        assert!(unpublished(&db, &key).await.unwrap().is_empty());
        let job = after.get("j").await;
        assert_eq!(
            (job.artifact_count, job.status(), job.last_seq),
            (2, JobStatus::Completed, events.last().unwrap().seq)
        );
        assert!(job.finished_at.is_some());
        assert_eq!(encoded(&watched), encoded(&events));
        // The first instance was fenced off: it adds nothing.
        assert_eq!(encoded(&after.watch("j", 0, true).await.1), encoded(&events));
    }
}
#[tokio::test]
async fn a_lost_run_that_was_to_be_cancelled_is_cancelled_and_an_ended_one_is_left_alone() {
    for db in engines().await {
        let before = Up::new(&db, Settings::default(), provider(true)).await;
        before.run("done", &shout("hello")).await.unwrap();
        let done = before.end("done").await;
        before.assets.open(false);
        before.run("j", &paint()).await.unwrap();
        until(async || before.assets.calls() == 1).within(SOON).await;
        let request = CancelJobRequest {
            job_id: "j".to_owned(),
        };
        assert!(
            before
                .client()
                .cancel_job(before.signed(request))
                .await
                .unwrap()
                .into_inner()
                .cancelled
        );
        let after = before.successor(&db, provider(true)).await;
        let (_, events) = after.watch("j", 0, false).await;
        assert_eq!(end(&events), (JobStatus::Cancelled, None), "{}", db.engine());
        assert_eq!(after.get("done").await, done);
        // What the process before had asked for is cancelled with it, and nothing is asked for again.
        assert_eq!(after.provider.cancelled_jobs(), ["j"]);
        assert_eq!(after.provider.calls(), 0);
    }
}
#[tokio::test]
async fn a_lost_run_whose_subscribers_wanted_the_end_only_loses_no_item_of_its_list() {
    for db in engines().await {
        let before = Up::new(&db, Settings::default(), provider(false)).await;
        let mut graph = paint();
        let list = [
            node(
                "list",
                "nodetool.constant.List",
                json!({"value": ["a", "b", "c"]}),
            ),
            node("each", "nodetool.control.ForEach", json!({})),
            node("all", "nodetool.control.Collect", json!({})),
            node("letters", "nodetool.output.Output", json!({"name": "letters"})),
        ];
        graph["nodes"].as_array_mut().unwrap().extend(list);
        let edges = [
            edge("list.output", "each.input_list"),
            edge("each.output", "all.input_item"),
            edge("all.output", "letters.value"),
        ];
        graph["edges"].as_array_mut().unwrap().extend(edges);
        let request = RunJobRequest {
            job_id: "j".to_owned(),
            graph_json: Some(graph.to_string()),
            options: Some(RunOptions {
                event_detail: EventDetail::Terminal.into(),
                ..RunOptions::default()
            }),
            ..RunJobRequest::default()
        };
        before.client().run_job(before.signed(request)).await.unwrap();
        let committed = async || {
            let rows = artifacts::Entity::find().all(db.read()).await.unwrap();
            rows.iter().any(|row| row.node_id == "letters")
        };
        until(committed).within(SOON).await;
        let after = before.successor(&db, provider(true)).await;
        let job = after.end("j").await;
        assert_eq!(job.status(), JobStatus::Completed, "{job:?}");
        let outputs = Map::try_from(job.outputs.unwrap()).unwrap();
        let letters = ["a", "b", "c"].map(Value::from).to_vec();
        assert_eq!(
            outputs["letters"],
            Value::list(vec![Value::list(letters)]),
            "{}",
            db.engine()
        );
    }
}
#[tokio::test]
async fn a_row_that_cannot_be_read_does_not_keep_the_kernel_from_the_others() {
    for db in engines().await {
        let before = Up::new(
            &db,
            Settings {
                max_concurrent_jobs: 8,
                ..Settings::default()
            },
            provider(false),
        )
        .await;
        for job in ["damaged", "sound"] {
            before.run(job, &paint()).await.unwrap();
        }
        until(async || before.provider.calls() == 2).within(SOON).await;
        let tx = db.begin().await.unwrap();
        let damage = match db.engine() {
            "sqlite" => "UPDATE jobs SET options = x'ff' WHERE job_id = 'damaged'",
            _ => "UPDATE jobs SET options = '\\xff' WHERE job_id = 'damaged'",
        };
        sea_orm::ConnectionTrait::execute_unprepared(&*tx, damage)
            .await
            .unwrap();
        tx.commit().await.unwrap();
        let after = before.successor(&db, provider(true)).await;
        assert_eq!(
            end(&after.watch("sound", 0, false).await.1).0,
            JobStatus::Completed,
            "{}",
            db.engine()
        );
        after.run("fresh", &shout("hello")).await.unwrap();
        assert_eq!(after.end("fresh").await.status(), JobStatus::Completed);
    }
}
async fn empty() -> Vec<(TestDb, Store, Deps)> {
    let mut empty = Vec::new();
    for db in engines().await {
        db.migrate::<Migrator>().await.unwrap();
        let store = Store::new(db.db().clone(), Clock::system());
        empty.push((db, store, Deps::new(std::env::temp_dir(), Signer::random())));
    }
    empty
}
#[tokio::test]
async fn only_runs_whose_lease_has_ended_are_taken_beside_other_processes() {
    for (db, store, deps) in empty().await {
        let own = deps.instance.to_string();
        for (job, owner, lease) in [
            ("own", own.as_str(), 0),
            ("dead", "other", 0),
            ("alive", "another", i64::MAX),
        ] {
            record_driven(&store, &Caller::local(), job, "{}", owner, lease)
                .await
                .unwrap();
        }
        let up = Up::with(&db, Settings::default(), provider(true), deps).await;
        for job in ["own", "dead"] {
            assert_eq!(
                end(&up.watch(job, 0, false).await.1).1.as_deref(),
                Some("INTERRUPTED"),
                "{}",
                db.engine()
            );
        }
        let alive = up.get("alive").await;
        assert_eq!((alive.status(), alive.last_seq), (JobStatus::Queued, 0));
    }
}
#[tokio::test]
async fn all_lost_runs_end_at_the_start_of_the_only_process() {
    for (db, store, deps) in empty().await {
        for number in 0..230 {
            let job = format!("j{number}");
            record_driven(&store, &Caller::local(), &job, "{}", "dead", i64::MAX)
                .await
                .unwrap();
        }
        let _up = Up::with(
            &db,
            Settings::default(),
            provider(true),
            Deps {
                sole_process: true,
                ..deps
            },
        )
        .await;
        let open = async || {
            let rows = jobs::Entity::find().all(db.read()).await.unwrap();
            rows.iter().filter(|row| row.status != "failed").count()
        };
        // Some hundreds of commits, each of them flushed.
        until(async || open().await == 0)
            .within(Duration::from_secs(120))
            .await;
    }
}

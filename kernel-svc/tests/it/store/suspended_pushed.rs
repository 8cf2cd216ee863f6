//! Runs whose triggers got no event for a while: what is pushed wakes them, and nothing is lost between waking and sleeping.

use std::time::Duration;

use atelier_common::testkit::{TestDb, engines, until};
use atelier_kernel::{
    entity::{inputs, jobs},
    log::{AT_ONCE, Append, JobPatch},
    settings::Settings,
};
use atelier_proto::{
    kernel::v1::{JobStatus, PushInputRequest},
    value::{Map, Value},
};
use sea_orm::{ActiveValue::Set, ColumnTrait, EntityTrait, QueryFilter};
use serde_json::{Value as Json, json};
use tonic::Status;

use super::{
    fakes::Provider,
    kernel::{Up, edge, node},
    scene::{image, scenes},
};

const SOON: Duration = Duration::from_secs(30);

fn listening() -> Json {
    json!({
        "nodes": [
            node("bell", "nodetool.triggers.ManualTrigger", json!({"name": "bell", "timeout_seconds": 1})),
            node("out", "nodetool.output.Output", json!({"name": "rang"})),
        ],
        "edges": [edge("bell.data", "out.value")],
    })
}
async fn push(up: &Up, id: &str, value: Option<&str>) -> Result<bool, Status> {
    let request = PushInputRequest {
        job_id: "j".to_owned(),
        name: "bell".to_owned(),
        value: value.map(|text| (&Value::from(text)).into()),
        finish: value.is_none(),
        input_id: id.to_owned(),
        ..PushInputRequest::default()
    };
    let answer = up.client().push_input(up.signed(request)).await?;
    Ok(answer.into_inner().created)
}
async fn asleep(db: &TestDb) {
    let asleep = async || {
        let row = jobs::Entity::find().filter(jobs::Column::JobId.eq("j"));
        let row = row.one(db.read()).await.unwrap().unwrap();
        row.status == "suspended" && row.resume_at.is_none()
    };
    until(asleep).within(SOON).await;
}

#[tokio::test]
async fn a_push_at_any_replica_wakes_a_run_whose_trigger_waited_for_long() {
    for db in engines().await {
        let settings = || Settings {
            lease: Duration::from_millis(600),
            ..Settings::default()
        };
        let provider = Provider::new((&image(b"sea")).into(), true);
        let one = Up::new(&db, settings(), provider).await;
        let two = one.beside(&db, settings()).await;
        one.run("j", &listening()).await.unwrap();
        asleep(&db).await;
        for (up, id, value) in [(&two, "1", "a"), (&one, "2", "b")] {
            assert!(push(up, id, Some(value)).await.unwrap(), "{}", db.engine());
            // The same again is no news, whether the run sleeps or not.
            assert!(!push(up, id, Some(value)).await.unwrap());
            asleep(&db).await;
            assert!(!push(up, id, Some(value)).await.unwrap());
            asleep(&db).await;
        }
        push(&two, "3", None).await.unwrap();
        until(async || two.get("j").await.status() == JobStatus::Completed)
            .within(SOON)
            .await;
        let job = two.get("j").await;
        let rang = Map::try_from(job.outputs.unwrap()).unwrap()["rang"].clone();
        assert_eq!(rang, Value::list(vec!["a".into(), "b".into()]), "{}", db.engine());
    }
}
/// What came in and was asked for while the run was about to fall asleep.
#[tokio::test]
async fn a_run_that_falls_asleep_over_an_input_or_a_cancel_is_woken_at_once() {
    for (kind, done, listens, cancelled, at) in [
        ("push", false, true, false, Some(AT_ONCE)),
        ("push", true, true, false, Some(7)),
        ("push", false, false, false, Some(7)),
        ("control", false, true, false, Some(7)),
        ("push", true, false, true, Some(AT_ONCE)),
    ] {
        for scene in scenes().await {
            let tx = scene.db.begin().await.unwrap();
            let input = inputs::ActiveModel {
                job_key: Set(scene.key().to_owned()),
                n: Set(1),
                input_id: Set("1".to_owned()),
                kind: Set(kind.to_owned()),
                name: Set("bell".to_owned()),
                handle: Set(None),
                payload: Set(None),
                finish: Set(false),
                done: Set(done),
                error: Set(None),
                outcome: Set(None),
            };
            inputs::Entity::insert(input)
                .exec_without_returning(&*tx)
                .await
                .unwrap();
            tx.commit().await.unwrap();
            if cancelled {
                assert!(scene.store.note_cancel(scene.key()).await.unwrap());
            }
            let patch = JobPatch {
                status: Some("suspended"),
                suspension: Some(Vec::new()),
                resume_at: Some(7),
                awaits_events: listens,
                ..JobPatch::default()
            };
            scene
                .append(Append {
                    patch,
                    ..scene.nothing()
                })
                .await
                .unwrap();
            assert_eq!(
                scene.row().await.resume_at,
                at,
                "{kind} {done} {listens} {cancelled} {}",
                scene.db.engine()
            );
        }
    }
}

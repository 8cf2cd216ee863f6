//! The relay and the store of assets: committed, then saved, then shown.

use std::time::Duration;

use atelier_common::testkit::until;
use atelier_proto::{
    kernel::v1::{AssetPersistence, JobEvent, RunOptions, job_event::Event as Frame},
    value::{Map, MediaRef, Value},
};
use prost::Message;

use super::scene::{artifact, completed, image, label, one, output, running, scenes, scenes_with};

const SOON: Duration = Duration::from_secs(10);

/// All media of an event, at any depth.
fn media(event: &JobEvent) -> Vec<MediaRef> {
    let map = |map: &Option<atelier_proto::common::v1::MapValue>| match map {
        Some(map) => Value::map(Map::try_from(map.clone()).unwrap()),
        None => Value::Null,
    };
    let value = match event.event.as_ref().unwrap() {
        Frame::GenerationComplete(artifact) => map(&artifact.outputs),
        Frame::JobUpdate(update) => map(&update.result),
        Frame::OutputUpdate(update) => Value::try_from(update.value.clone().unwrap()).unwrap(),
        _ => Value::Null,
    };
    let mut found = Vec::new();
    walk(&value, &mut found);
    found
}
fn walk(value: &Value, found: &mut Vec<MediaRef>) {
    match value {
        Value::Media(media) => found.push(MediaRef::clone(media)),
        Value::List(values) => values.iter().for_each(|value| walk(value, found)),
        Value::Map(map) => map.values().for_each(|value| walk(value, found)),
        _ => {}
    }
}
fn ids(event: &JobEvent) -> Vec<Option<String>> {
    media(event)
        .into_iter()
        .map(|media| media.asset_id.filter(|_| media.data.is_none()))
        .collect()
}
fn some(ids: &[&str]) -> Vec<Option<String>> {
    ids.iter().map(|id| Some((*id).to_owned())).collect()
}

#[tokio::test]
async fn an_artifact_is_committed_then_saved_then_shown() {
    for scene in scenes().await {
        scene.assets.open(false);
        let maker = label("m", "test.Maker");
        let play = scene.play(vec![
            running(),
            artifact(&maker, "a", image(b"one")),
            completed(Vec::new()),
        ]);
        let look = async {
            until(async || scene.assets.calls() == 1).within(SOON).await;
            let rows = scene.artifacts().await;
            assert_eq!((rows.len(), rows[0].idx, rows[0].published), (1, 0, false));
            let waiting = JobEvent::decode(rows[0].event.as_deref().unwrap()).unwrap();
            assert_eq!(media(&waiting)[0].data.as_deref(), Some(&b"one"[..]));
            let log = scene.log().await;
            assert!(
                !log.iter()
                    .any(|event| matches!(event.event, Some(Frame::GenerationComplete(_))))
            );
            assert_eq!(scene.row().await.artifact_count, 0);
            scene.assets.open(true);
        };
        tokio::join!(play, look);
        assert_eq!(
            scene.assets.rows_at_save(),
            [Some(false)],
            "{}",
            scene.db.engine()
        );
        let rows = scene.artifacts().await;
        assert!(rows.len() == 1 && rows[0].published && rows[0].event.is_none());
        assert_eq!(ids(&scene.log().await[1]), some(&["asset-m-0-0"]));
    }
}
#[tokio::test]
async fn w_073_artifacts_are_shown_in_order_though_they_are_saved_side_by_side() {
    for scene in scenes().await {
        scene.assets.open(false);
        let maker = label("g", "test.Maker");
        let events = (0..6u8)
            .map(|number| artifact(&maker, format!("i{number}"), image(&[number])))
            .collect();
        let play = scene.play(events);
        let look = async {
            until(async || scene.assets.calls() > 1).within(SOON).await;
            assert!(scene.shown().is_empty());
            scene.assets.open(true);
        };
        tokio::join!(play, look);
        let saved: Vec<_> = scene.log().await.iter().flat_map(ids).collect();
        let expected: Vec<_> = (0..6).map(|index| Some(format!("asset-g-{index}-0"))).collect();
        assert_eq!(saved, expected, "{}", scene.db.engine());
    }
}
#[tokio::test]
async fn a_store_that_is_away_for_a_moment_is_asked_again() {
    for scene in scenes().await {
        scene.assets.fail(2);
        let maker = label("m", "test.Maker");
        scene
            .play(vec![
                running(),
                artifact(&maker, "a", image(b"one")),
                completed(Vec::new()),
            ])
            .await;
        assert_eq!(scene.assets.calls(), 3, "{}", scene.db.engine());
        assert_eq!(ids(&scene.log().await[1]), some(&["asset-m-0-0"]));
        assert_eq!(scene.assets.saved().len(), 1);
    }
}
#[tokio::test]
async fn a_store_that_stays_away_loses_nothing_and_stops_nobody() {
    for scene in scenes().await {
        scene.assets.fail(6);
        let maker = label("m", "test.Maker");
        scene
            .play(vec![
                running(),
                artifact(&maker, "a", image(b"one")),
                completed(Vec::new()),
            ])
            .await;
        let log = scene.log().await;
        assert_eq!(
            media(&log[1])[0].data.as_deref(),
            Some(&b"one"[..]),
            "{}",
            scene.db.engine()
        );
        assert!(scene.artifacts().await[0].published);
        assert_eq!(scene.row().await.status, "completed");
    }
}
#[tokio::test]
async fn w_086_w_087_bytes_that_were_saved_are_named_by_their_asset_wherever_they_show_up() {
    for scene in scenes().await {
        let (maker, out) = (label("m", "test.Maker"), label("o", "nodetool.output.Output"));
        let deep = Value::map(one(
            "pictures",
            Value::list(vec![image(b"one"), image(b"unknown"), image(b"two")]),
        ));
        scene
            .play(vec![
                running(),
                artifact(&maker, "a", Value::list(vec![image(b"one"), image(b"two")])),
                artifact(&label("p", "test.Plain"), "a", image(b"two")),
                output(&out, image(b"one")),
                output(&out, deep.clone()),
                completed(vec![deep]),
            ])
            .await;
        let log = scene.log().await;
        assert_eq!(
            ids(&log[1]),
            some(&["asset-m-0-0", "asset-m-0-1"]),
            "{}",
            scene.db.engine()
        );
        assert_eq!(ids(&log[2]), some(&["asset-m-0-1"]));
        assert_eq!(ids(&log[3]), some(&["asset-m-0-0"]));
        let (one, two) = (Some("asset-m-0-0".to_owned()), Some("asset-m-0-1".to_owned()));
        assert_eq!(ids(&log[4]), [one.clone(), None, two.clone()]);
        assert_eq!(ids(&log[5]), [one, None, two]);
        assert_eq!(media(&log[5])[1].data.as_deref(), Some(&b"unknown"[..]));
        // The row's results are what was shown.
        let Some(Frame::JobUpdate(end)) = &log[5].event else {
            panic!("no end")
        };
        assert_eq!(
            scene.row().await.outputs,
            Some(end.result.as_ref().unwrap().encode_to_vec())
        );
    }
}
#[tokio::test]
async fn nothing_is_saved_of_a_run_that_asked_for_that_or_of_nodes_that_do_not_save() {
    let options = RunOptions {
        asset_persistence: AssetPersistence::Temporary.into(),
        ..RunOptions::default()
    };
    for scene in scenes_with(options).await {
        scene
            .play(vec![artifact(&label("m", "test.Maker"), "a", image(b"one"))])
            .await;
        assert_eq!(scene.assets.calls(), 0, "{}", scene.db.engine());
    }
    for scene in scenes().await {
        let maker = label("m", "test.Maker");
        let plain = artifact(&label("p", "test.Plain"), "a", image(b"one"));
        scene
            .play(vec![plain, artifact(&maker, "a", Value::Int(3))])
            .await;
        assert_eq!(scene.assets.calls(), 0, "{}", scene.db.engine());
    }
}
#[tokio::test]
async fn the_text_of_a_node_that_saves_is_saved() {
    for scene in scenes().await {
        let writer = label("w", "test.Writer");
        scene
            .play(vec![
                artifact(&writer, "a", "".into()),
                artifact(&writer, "b", "a story".into()),
            ])
            .await;
        assert_eq!(
            scene.assets.saved(),
            [("w".to_owned(), 1)],
            "{}",
            scene.db.engine()
        );
    }
}

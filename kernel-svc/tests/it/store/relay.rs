//! The relay: stamps, indexes, what is kept and what is shown.

use std::{collections::BTreeSet, sync::Arc};

use atelier_kernel::{
    event::{Event, Note},
    log::Reader,
};
use atelier_proto::{
    kernel::v1::{
        EventDetail, GenerationComplete, JobEvent, JobStatus, NodeStatus, RunOptions, Severity,
        job_event::Event as Frame,
    },
    value::{Map, Value},
};

use super::scene::{
    artifact, completed, drain, encoded, image, label, one, output, running, scenes, scenes_with, seqs,
};

fn artifacts(events: &[JobEvent]) -> Vec<&GenerationComplete> {
    let artifact = |event: &'_ JobEvent| matches!(event.event, Some(Frame::GenerationComplete(_)));
    let events = events.iter().filter(|event| artifact(event));
    events
        .filter_map(|event| match &event.event {
            Some(Frame::GenerationComplete(artifact)) => Some(artifact),
            _ => None,
        })
        .collect()
}
fn indexes(events: &[JobEvent]) -> Vec<i64> {
    artifacts(events).iter().map(|artifact| artifact.index).collect()
}
fn kinds(events: &[JobEvent]) -> Vec<&'static str> {
    let kind = |event: &JobEvent| match event.event.as_ref().unwrap() {
        Frame::JobUpdate(_) => "job",
        Frame::NodeUpdate(_) => "node",
        Frame::GenerationComplete(_) => "artifact",
        Frame::OutputUpdate(_) => "output",
        Frame::EdgeUpdate(_) => "edge",
        Frame::NodeProgress(_) => "progress",
        Frame::LogUpdate(_) => "log",
        Frame::Prediction(_) => "prediction",
        Frame::Chunk(_) => "chunk",
        Frame::SupervisorEscalation(_) => "escalation",
        Frame::SupervisorDecision(_) => "decision",
        Frame::Gap(_) => "gap",
    };
    events.iter().map(kind).collect()
}
fn node(id: &str, node_type: &str, status: NodeStatus) -> Event {
    Event::Node {
        node: label(id, node_type),
        status,
        result: None,
        error: (status == NodeStatus::Error).then(|| "it broke".to_owned()),
        detail: None,
        properties: Arc::new(Map::new()),
    }
}

#[tokio::test]
async fn k_251_w_082_every_message_is_stamped_and_numbered_from_one_without_a_hole() {
    for scene in scenes().await {
        let (constant, input) = (
            label("c", "nodetool.constant.String"),
            label("i", "nodetool.input.StringInput"),
        );
        let plain = label("p", "test.Plain");
        let mut events = vec![running()];
        for number in 0..700 {
            // What comes from constants and inputs is left out and must leave no hole.
            events.push(artifact(&constant, format!("c{number}"), Value::Int(number)));
            events.push(output(&input, Value::Int(number)));
            events.push(artifact(&plain, format!("p{number}"), Value::Int(number)));
        }
        events.push(completed(Vec::new()));
        scene.play(events).await;
        let shown = scene.shown();
        assert_eq!(
            seqs(&shown),
            (1..=702).collect::<Vec<_>>(),
            "{}",
            scene.db.engine()
        );
        assert!(
            shown
                .iter()
                .all(|event| event.job_id == "job-1" && event.workflow_id.is_none())
        );
        assert!(shown.iter().all(|event| event.published_at.is_some()));
        assert_eq!(encoded(&scene.log().await), encoded(&shown));
        assert_eq!(scene.row().await.last_seq, 702);
    }
}
#[tokio::test]
async fn w_074_each_of_2000_commits_is_in_the_log_with_its_index() {
    for scene in scenes().await {
        let maker = label("g", "test.Plain");
        let mut events = vec![running()];
        events.extend((0..2_000).map(|number| artifact(&maker, format!("i{number}"), Value::Int(number))));
        events.push(completed(Vec::new()));
        scene.play(events).await;
        let log = scene.log().await;
        assert_eq!(
            indexes(&log),
            (0..2_000).collect::<Vec<_>>(),
            "{}",
            scene.db.engine()
        );
        let row = scene.row().await;
        assert_eq!(
            (row.artifact_count, row.status.as_str(), row.last_seq),
            (2_000, "completed", 2_002)
        );
        let rows = scene.artifacts().await;
        assert!(rows.len() == 2_000 && rows.iter().all(|row| row.published && row.event.is_none()));
    }
}
#[tokio::test]
async fn k_245_whoever_comes_back_gets_each_artifact_once_with_its_first_index() {
    for scene in scenes().await {
        let (a, b) = (label("a", "test.Plain"), label("b", "test.Plain"));
        let mut events = vec![running()];
        for number in 0..700 {
            let node = if number % 7 == 0 { &b } else { &a };
            events.push(artifact(node, format!("i{number}"), Value::Int(number)));
        }
        scene.play(events).await;
        let (first, all) = (scene.shown(), scene.log().await);
        assert_eq!(encoded(&first), encoded(&all));
        for cursor in [0, 1, 350, 700] {
            let key = scene.key().to_owned();
            let rest = drain(Reader::new(scene.db.db().clone(), key, None, cursor, true)).await;
            let after: Vec<_> = all.iter().filter(|event| event.seq > cursor).cloned().collect();
            assert_eq!(
                encoded(&rest),
                encoded(&after),
                "after {cursor}, {}",
                scene.db.engine()
            );
        }
        let of = |id: &str| {
            artifacts(&all)
                .iter()
                .filter(|gc| gc.node_id == id)
                .map(|gc| gc.index)
                .collect::<Vec<_>>()
        };
        assert_eq!(of("a"), (0..600).collect::<Vec<_>>());
        assert_eq!(of("b"), (0..100).collect::<Vec<_>>());
    }
}
#[tokio::test]
async fn an_invocation_that_is_repeated_changes_nothing() {
    for scene in scenes().await {
        for node in [label("p", "test.Plain"), label("m", "test.Maker")] {
            let events = vec![
                artifact(&node, "i0", image(b"one")),
                artifact(&node, "i0", image(b"other")),
                artifact(&node, "i1", image(b"two")),
                artifact(&node, "i0", image(b"one")),
            ];
            let before = scene.log().await.len();
            let mut relay = scene.relay(i64::try_from(before).unwrap());
            relay.commit(&mut events.clone()).await.unwrap();
            relay.commit(&mut events.clone()).await.unwrap();
            assert_eq!(
                indexes(&scene.log().await[before..]),
                [0, 1],
                "{}",
                scene.db.engine()
            );
        }
        assert_eq!(scene.row().await.artifact_count, 4);
        assert_eq!(scene.assets.saved(), [("m".to_owned(), 0), ("m".to_owned(), 1)]);
    }
}
#[tokio::test]
async fn k_243_w_079_audio_chunks_are_live_and_not_kept() {
    for scene in scenes().await {
        let speaker = label("o", "nodetool.output.Output");
        let chunk = |content_type: &str| {
            let words = [
                ("type", "chunk"),
                ("content_type", content_type),
                ("content", "AAAA"),
            ];
            Value::map(
                words
                    .into_iter()
                    .map(|(key, value)| (key.to_owned(), value.into()))
                    .collect(),
            )
        };
        let mut events = vec![running()];
        events.extend((0..500).map(|_| output(&speaker, chunk("audio"))));
        events.push(output(&speaker, chunk("text")));
        events.push(completed(Vec::new()));
        scene.play(events).await;
        let (shown, log) = (scene.shown(), scene.log().await);
        assert_eq!(
            seqs(&shown),
            (1..=503).collect::<Vec<_>>(),
            "{}",
            scene.db.engine()
        );
        assert_eq!(kinds(&log), ["job", "output", "job"]);
        assert_eq!(seqs(&log), [1, 502, 503]);
        assert_eq!(scene.row().await.last_seq, 503);
    }
}
#[tokio::test]
async fn w_059_less_detail_is_shown_and_nothing_less_is_committed_or_saved() {
    let some = ["job", "log", "prediction", "output", "node", "job"];
    for (detail, expected) in [
        (EventDetail::Outputs, &some[..]),
        (EventDetail::Terminal, &["job", "node", "job"]),
    ] {
        for scene in scenes_with(RunOptions {
            event_detail: detail.into(),
            ..RunOptions::default()
        })
        .await
        {
            let (maker, plain) = (label("m", "test.Maker"), label("p", "test.Plain"));
            let note = |note| Event::Note {
                node: Arc::clone(&plain),
                note,
            };
            let line = Note::Log {
                content: "hello".to_owned(),
                severity: Severity::Info,
            };
            scene
                .play(vec![
                    running(),
                    node("m", "test.Maker", NodeStatus::Running),
                    note(line),
                    note(Note::Prediction(Box::default())),
                    artifact(&maker, "a", image(b"one")),
                    artifact(&plain, "a", Value::Int(1)),
                    output(&label("o", "nodetool.output.Output"), Value::Int(1)),
                    node("p", "test.Plain", NodeStatus::Error),
                    node("m", "test.Maker", NodeStatus::Completed),
                    completed(vec![image(b"one")]),
                ])
                .await;
            let log = scene.log().await;
            assert_eq!(kinds(&log), expected, "{detail:?} on {}", scene.db.engine());
            assert_eq!(
                seqs(&log),
                (1..=i64::try_from(expected.len()).unwrap()).collect::<Vec<_>>()
            );
            assert_eq!(scene.assets.saved(), [("m".to_owned(), 0)]);
            let rows: Vec<_> = scene
                .artifacts()
                .await
                .into_iter()
                .map(|row| (row.node_id, row.published))
                .collect();
            assert_eq!(rows, [("m".to_owned(), true), ("p".to_owned(), true)]);
            assert_eq!(scene.row().await.artifact_count, 2);
        }
    }
}
#[tokio::test]
async fn w_080_w_081_a_run_that_showed_nothing_shows_its_results_before_its_end() {
    for scene in scenes().await {
        scene
            .play(vec![
                running(),
                completed(vec![Value::Int(7)]),
                running(),
                completed(Vec::new()),
            ])
            .await;
        let log = scene.log().await;
        assert_eq!(kinds(&log), ["job", "output", "job"], "nothing follows the end");
        let Some(Frame::OutputUpdate(guessed)) = &log[1].event else {
            panic!("no display value")
        };
        let what = (
            guessed.node_id.as_str(),
            guessed.output_name.as_str(),
            guessed.output_type.as_str(),
        );
        assert_eq!(what, ("out", "output", "int"));
        assert_eq!(guessed.value, Some((&Value::Int(7)).into()));
        let Some(Frame::JobUpdate(end)) = &log[2].event else {
            panic!("no end")
        };
        let result = Map::try_from(end.result.clone().unwrap()).unwrap();
        assert_eq!(
            result["outputs"],
            Value::map(one("out", Value::list(vec![Value::Int(7)])))
        );
    }
}
#[tokio::test]
async fn a_run_that_showed_something_guesses_nothing() {
    for scene in scenes().await {
        let shown = output(&label("o", "nodetool.output.Output"), Value::Int(1));
        scene
            .play(vec![running(), shown, completed(vec![Value::Int(7)])])
            .await;
        assert_eq!(kinds(&scene.log().await), ["job", "output", "job"]);
    }
}
#[tokio::test]
async fn each_end_ends_the_watch_and_the_row() {
    let ends = [
        JobStatus::Completed,
        JobStatus::Failed,
        JobStatus::Cancelled,
        JobStatus::Suspended,
    ];
    for status in ends {
        for scene in scenes().await {
            let (error, error_code) = (Some("why".to_owned()), None);
            scene
                .play(vec![
                    running(),
                    Event::Job {
                        status,
                        error,
                        error_code,
                        outputs: None,
                        issues: Vec::new(),
                        suspensions: Vec::new(),
                    },
                ])
                .await;
            assert!(scene.live.watch().borrow().ended, "{status:?}");
            let live = Some(Arc::clone(&scene.live));
            let watched = drain(Reader::new(
                scene.db.db().clone(),
                scene.key().to_owned(),
                live,
                0,
                false,
            ))
            .await;
            assert_eq!(watched.len(), 2);
            let row = scene.row().await;
            assert_eq!(row.status, atelier_kernel::jobs::status_name(status));
            assert_eq!(row.finished_at.is_some(), status != JobStatus::Suspended);
        }
    }
}
#[tokio::test]
async fn a_relay_whose_run_another_instance_took_over_shows_nothing() {
    for scene in scenes().await {
        scene.play(vec![running()]).await;
        let taken = "UPDATE jobs SET owner = 'instance-b'";
        let tx = scene.db.begin().await.unwrap();
        sea_orm::ConnectionTrait::execute_unprepared(&*tx, taken)
            .await
            .unwrap();
        tx.commit().await.unwrap();
        let maker = label("m", "test.Maker");
        let lost = scene
            .relay(1)
            .commit(&mut vec![artifact(&maker, "a", image(b"x"))])
            .await;
        assert!(
            matches!(lost, Err(atelier_kernel::error::Error::Fenced(_))),
            "{lost:?}"
        );
        assert_eq!(
            (scene.shown().len(), scene.assets.calls()),
            (1, 0),
            "nothing is saved for a run of others"
        );
        assert!(scene.artifacts().await.is_empty());
    }
}
#[tokio::test]
async fn progress_is_kept_without_its_picture() {
    for scene in scenes().await {
        let Value::Media(picture) = image(b"half done") else {
            unreachable!()
        };
        let note = Note::Progress {
            progress: 1,
            total: 2,
            preview: Some((*picture).clone()),
        };
        scene
            .play(vec![Event::Note {
                node: label("m", "test.Maker"),
                note,
            }])
            .await;
        let pictures = |events: &[JobEvent]| -> BTreeSet<bool> {
            let pictured = |event: &JobEvent| match &event.event {
                Some(Frame::NodeProgress(progress)) => progress.preview.is_some(),
                other => panic!("{other:?}"),
            };
            events.iter().map(pictured).collect()
        };
        assert_eq!(pictures(&scene.shown()), BTreeSet::from([true]));
        assert_eq!(pictures(&scene.log().await), BTreeSet::from([false]));
    }
}

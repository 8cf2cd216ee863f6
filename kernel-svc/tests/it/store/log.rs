//! Appending to a run's log.

use std::sync::Arc;

use atelier_kernel::{
    error::Error,
    log::{Append, ArtifactRow, JobPatch, count_after, unpublished},
};
use atelier_proto::kernel::v1::JobEvent;
use prost::Message;

use super::scene::{line, scenes, segment, seqs};

fn artifact(node: &str, idx: i64, invocation: &str, event: Option<&JobEvent>) -> ArtifactRow {
    ArtifactRow {
        node_id: node.to_owned(),
        idx,
        invocation: invocation.to_owned(),
        event: event.map(Message::encode_to_vec),
    }
}

#[tokio::test]
async fn an_append_changes_log_artifacts_and_row_together() {
    for scene in scenes().await {
        let events = vec![Arc::new(line(1)), Arc::new(line(2))];
        let append = Append {
            segment: Some(segment(&events, 1, 2)),
            artifacts: vec![artifact("n", 0, "a", None), artifact("n", 1, "b", Some(&line(0)))],
            patch: JobPatch {
                status: Some("running"),
                started_at: Some(7),
                ..JobPatch::default()
            },
            ..scene.nothing()
        };
        scene.append(append).await.unwrap();
        let row = scene.row().await;
        assert_eq!(
            (row.status.as_str(), row.started_at, row.finished_at),
            ("running", Some(7), None)
        );
        assert_eq!(
            (row.last_seq, row.artifact_count),
            (2, 1),
            "{}",
            scene.db.engine()
        );
        assert_eq!(seqs(&scene.log().await), [1, 2]);

        let waiting = unpublished(&scene.db, scene.key()).await.unwrap();
        assert_eq!(waiting.len(), 1);
        assert_eq!((waiting[0].0.idx, waiting[0].1.clone()), (1, line(0)));
        let published = vec![("n".to_owned(), 1)];
        scene
            .append(Append {
                published,
                ..scene.nothing()
            })
            .await
            .unwrap();
        assert!(unpublished(&scene.db, scene.key()).await.unwrap().is_empty());
        assert_eq!(scene.row().await.artifact_count, 2);
        assert!(
            scene
                .artifacts()
                .await
                .iter()
                .all(|row| row.published && row.event.is_none())
        );
    }
}
#[tokio::test]
async fn whoever_does_not_drive_the_run_any_more_changes_nothing() {
    for scene in scenes().await {
        let append = |owner: &str| Append {
            owner: owner.to_owned(),
            segment: Some(segment(&[Arc::new(line(1))], 1, 1)),
            artifacts: vec![artifact("n", 0, "a", None)],
            patch: JobPatch {
                status: Some("failed"),
                error: Some("lost".to_owned()),
                ..JobPatch::default()
            },
            ..scene.nothing()
        };
        // Beside one that is let through: a batch must not fail, or pass, as a whole.
        let good = Append {
            patch: JobPatch {
                started_at: Some(1),
                ..JobPatch::default()
            },
            ..scene.nothing()
        };
        let (bad, good) = tokio::join!(scene.append(append("instance-b")), scene.append(good));
        assert!(
            matches!(bad, Err(Error::Fenced(_))),
            "{}: {bad:?}",
            scene.db.engine()
        );
        good.unwrap();
        let row = scene.row().await;
        assert_eq!(
            (row.status.as_str(), row.error, row.last_seq),
            ("queued", None, 0)
        );
        assert_eq!(row.started_at, Some(1));
        assert!(scene.log().await.is_empty() && scene.artifacts().await.is_empty());
    }
}
#[tokio::test]
async fn an_invocation_and_an_index_are_committed_once() {
    for scene in scenes().await {
        let commit = |idx, invocation| Append {
            artifacts: vec![artifact("n", idx, invocation, None)],
            ..scene.nothing()
        };
        scene.append(commit(0, "a")).await.unwrap();
        assert!(scene.append(commit(1, "a")).await.is_err(), "the same invocation");
        assert!(scene.append(commit(0, "b")).await.is_err(), "the same index");
        let other = Append {
            artifacts: vec![artifact("m", 0, "a", None)],
            ..scene.nothing()
        };
        scene.append(other).await.unwrap();
        assert_eq!(scene.artifacts().await.len(), 2, "{}", scene.db.engine());
        assert_eq!(scene.row().await.artifact_count, 2);
    }
}
#[tokio::test]
async fn a_patch_leaves_alone_what_it_does_not_name() {
    for scene in scenes().await {
        let first = JobPatch {
            status: Some("failed"),
            error: Some("why".to_owned()),
            error_code: Some("CODE".to_owned()),
            issues: Some("[]".to_owned()),
            outputs: Some(vec![1, 0, 255]),
            suspension: Some(vec![2]),
            resume_at: None,
            awaits_events: false,
            started_at: Some(1),
            finished_at: Some(2),
        };
        scene
            .append(Append {
                patch: first,
                ..scene.nothing()
            })
            .await
            .unwrap();
        scene.append(scene.nothing()).await.unwrap();
        let row = scene.row().await;
        assert_eq!(
            (row.error.as_deref(), row.error_code.as_deref()),
            (Some("why"), Some("CODE"))
        );
        assert_eq!(
            (row.issues.as_deref(), row.outputs),
            (Some("[]"), Some(vec![1, 0, 255]))
        );
        assert_eq!(
            (row.status.as_str(), row.started_at, row.finished_at),
            ("failed", Some(1), Some(2))
        );
    }
}
#[tokio::test]
async fn what_follows_a_cursor_is_counted_without_what_is_not_kept() {
    for scene in scenes().await {
        scene.lines(1, 10).await;
        // Of 11 to 20 only the even ones are kept, of 21 to 30 none.
        let even: Vec<_> = (11..=20)
            .filter(|seq| seq % 2 == 0)
            .map(|seq| Arc::new(line(seq)))
            .collect();
        for segment in [segment(&even, 11, 20), segment(&[], 21, 30)] {
            scene
                .append(Append {
                    segment: Some(segment),
                    ..scene.nothing()
                })
                .await
                .unwrap();
        }
        assert_eq!(scene.row().await.last_seq, 30);
        for (cursor, expected) in [(0, 15), (4, 11), (10, 5), (14, 3), (15, 3), (20, 0), (99, 0)] {
            let count = count_after(&scene.db, scene.key(), cursor).await.unwrap();
            assert_eq!(count, expected, "after {cursor} on {}", scene.db.engine());
        }
    }
}

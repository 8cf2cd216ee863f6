//! Reading a run's log by cursor.

use std::{sync::Arc, time::Duration};

use atelier_common::testkit::until;
use atelier_kernel::log::{Append, JobPatch, Live, Reader};
use tokio::time::timeout;

use super::scene::{Scene, drain, line, scenes, segment, seqs};

/// More than the tail of a running log holds.
const MORE_THAN_TAIL: i64 = 5_000;

fn reader(scene: &Scene, live: Option<Arc<Live>>, after: i64, replay_only: bool) -> Reader {
    Reader::new(
        scene.db.db().clone(),
        scene.key().to_owned(),
        live,
        after,
        replay_only,
    )
}
fn range(first: i64, last: i64) -> Vec<i64> {
    (first..=last).collect()
}
async fn write(scene: &Scene, last: i64, ends: bool) {
    for first in (1..=last).step_by(100) {
        let end = (first + 99).min(last);
        let events = scene.lines(first, end).await;
        scene.live.publish(&events, ends && end == last);
    }
}

#[tokio::test]
async fn k_244_a_log_longer_than_the_tail_is_read_from_any_cursor() {
    for scene in scenes().await {
        write(&scene, MORE_THAN_TAIL, true).await;
        assert!(
            scene.live.after(0, 1).is_none(),
            "the tail holds everything: nothing is tested"
        );
        for live in [None, Some(Arc::clone(&scene.live))] {
            for after in [0, 1, 99, 100, 905, 4_999] {
                let events = drain(reader(&scene, live.clone(), after, true)).await;
                assert_eq!(
                    seqs(&events),
                    range(after + 1, MORE_THAN_TAIL),
                    "after {after}, {}",
                    scene.db.engine()
                );
            }
            assert!(drain(reader(&scene, live, MORE_THAN_TAIL, true)).await.is_empty());
        }
    }
}
#[tokio::test]
async fn k_246_a_slow_reader_gets_everything_in_order_and_holds_up_nobody() {
    for scene in scenes().await {
        let mut slow = reader(&scene, Some(Arc::clone(&scene.live)), 0, false);
        write(&scene, 10, false).await;
        let mut seen = Vec::new();
        for _ in 0..3 {
            seen.push(slow.next().await.unwrap().unwrap().seq);
        }
        // The writer does not look at the reader, which is not read from meanwhile.
        for first in (11..=MORE_THAN_TAIL).step_by(500) {
            let last = (first + 499).min(MORE_THAN_TAIL);
            let events = scene.lines(first, last).await;
            scene.live.publish(&events, last == MORE_THAN_TAIL);
        }
        while let Some(event) = slow.next().await.unwrap() {
            seen.push(event.seq);
        }
        assert_eq!(seen, range(1, MORE_THAN_TAIL), "{}", scene.db.engine());
    }
}
#[tokio::test]
async fn a_reader_beside_the_writer_sees_each_event_once() {
    for scene in scenes().await {
        let follow = drain(reader(&scene, Some(Arc::clone(&scene.live)), 0, false));
        let (events, ()) = tokio::join!(follow, write(&scene, 3_000, true));
        assert_eq!(seqs(&events), range(1, 3_000), "{}", scene.db.engine());
    }
}
#[tokio::test]
async fn a_reader_that_is_behind_a_tail_of_what_is_not_kept_goes_on_from_the_tail() {
    for scene in scenes().await {
        let mut slow = reader(&scene, Some(Arc::clone(&scene.live)), 0, false);
        let events = scene.lines(1, 1).await;
        scene.live.publish(&events, false);
        assert_eq!(slow.next().await.unwrap().unwrap().seq, 1);
        let unkept: Vec<_> = (2..=MORE_THAN_TAIL).map(|seq| Arc::new(line(seq))).collect();
        let segment = Some(segment(&[], 2, MORE_THAN_TAIL));
        scene
            .append(Append {
                segment,
                ..scene.nothing()
            })
            .await
            .unwrap();
        scene.live.publish(&unkept, false);
        let next = timeout(Duration::from_secs(5), slow.next())
            .await
            .expect("an event");
        assert_eq!(
            next.unwrap().unwrap().seq,
            MORE_THAN_TAIL - 4_095,
            "{}",
            scene.db.engine()
        );
    }
}
#[tokio::test]
async fn a_replay_ends_where_the_log_does_and_a_watch_waits() {
    for scene in scenes().await {
        let events = scene.lines(1, 3).await;
        scene.live.publish(&events, false);
        for live in [None, Some(Arc::clone(&scene.live))] {
            assert_eq!(seqs(&drain(reader(&scene, live.clone(), 1, true)).await), [2, 3]);
            let mut watch = reader(&scene, live, 3, false);
            assert!(
                timeout(Duration::from_millis(50), watch.next()).await.is_err(),
                "nothing is there to be seen"
            );
        }
    }
}
#[tokio::test]
async fn a_run_of_another_process_is_followed_to_its_end() {
    for scene in scenes().await {
        let mut far = reader(&scene, None, 0, false);
        scene.lines(1, 2).await;
        assert_eq!(far.next().await.unwrap().unwrap().seq, 1);
        assert_eq!(far.next().await.unwrap().unwrap().seq, 2);
        let write = async {
            scene.lines(3, 3).await;
            let patch = JobPatch {
                status: Some("completed"),
                ..JobPatch::default()
            };
            let segment = Some(segment(&[Arc::new(line(4))], 4, 4));
            scene
                .append(Append {
                    segment,
                    patch,
                    ..scene.nothing()
                })
                .await
                .unwrap();
        };
        let (rest, ()) = tokio::join!(drain(far), write);
        assert_eq!(seqs(&rest), [3, 4], "{}", scene.db.engine());
    }
}
#[tokio::test]
async fn a_reader_of_a_run_that_this_process_lost_follows_it_in_the_database() {
    for scene in scenes().await {
        let events = scene.lines(1, 1).await;
        scene.live.publish(&events, false);
        let follow = drain(reader(&scene, Some(Arc::clone(&scene.live)), 0, false));
        let lose = async {
            until(async || scene.live.watch().borrow().seq == 1)
                .within(Duration::from_secs(5))
                .await;
            scene.live.leave();
            let patch = JobPatch {
                status: Some("failed"),
                ..JobPatch::default()
            };
            let segment = Some(segment(&[Arc::new(line(2))], 2, 2));
            scene
                .append(Append {
                    segment,
                    patch,
                    ..scene.nothing()
                })
                .await
                .unwrap();
        };
        let both = async { tokio::join!(follow, lose) };
        let (events, ()) = timeout(Duration::from_secs(10), both).await.expect("an end");
        assert_eq!(seqs(&events), [1, 2], "{}", scene.db.engine());
    }
}
#[tokio::test]
async fn a_replay_holds_what_is_durable_and_not_shown_yet() {
    for scene in scenes().await {
        let events = scene.lines(1, 2).await;
        scene.live.publish(&events[..1], false);
        let replay = drain(reader(&scene, Some(Arc::clone(&scene.live)), 0, true)).await;
        assert_eq!(seqs(&replay), [1, 2], "{}", scene.db.engine());
    }
}

use std::time::Duration;

use tokio::time::timeout;

use super::*;

fn made(open: &[usize], activity: Arc<Activity>) -> Inbox {
    let budget = Arc::new(Budget::new(1 << 30, 1, Arc::clone(&activity)));
    Inbox::new(open.iter().copied(), activity, budget)
}
fn inbox(open: &[usize], limit: Option<usize>) -> Arc<Inbox> {
    let inbox = made(open, Arc::default());
    inbox.set_limit(limit);
    Arc::new(inbox)
}
fn envelope(value: i64) -> Envelope {
    Envelope::new(value.into(), Lineage::default())
}
fn value(taken: Taken) -> Option<i64> {
    if let Taken::Item(_, Item::Value(envelope)) = taken {
        envelope.value.as_i64()
    } else {
        None
    }
}

#[tokio::test]
async fn k_131_a_blocked_producer_is_freed_by_closing_and_its_value_is_gone() {
    let inbox = inbox(&[1], Some(1));
    assert!(inbox.put(0, envelope(1)).await);
    let second = inbox.put(0, envelope(2));
    tokio::pin!(second);
    assert!(timeout(Duration::from_millis(10), &mut second).await.is_err());
    inbox.close();
    assert!(!second.await);
    assert_eq!(inbox.view(|view| view.buffered(0)), 1);
}
#[tokio::test]
async fn k_132_waiting_on_a_closed_inbox_returns_at_once() {
    let inbox = inbox(&[1], None);
    inbox.close();
    timeout(Duration::from_secs(5), inbox.wait(0)).await.unwrap();
}
#[tokio::test]
async fn k_133_what_is_buffered_is_read_after_closing() {
    let inbox = inbox(&[1], None);
    inbox.put(0, envelope(1)).await;
    inbox.put(0, envelope(2)).await;
    inbox.close();
    assert_eq!((value(inbox.take(0)), value(inbox.take(0))), (Some(1), Some(2)));
    assert!(matches!(inbox.take(0), Taken::End));
}
#[tokio::test]
async fn arrival_order_holds_across_inputs() {
    let inbox = inbox(&[1, 1], None);
    for (handle, number) in [(1, 1), (0, 2), (1, 3)] {
        inbox.put(handle, envelope(number)).await;
    }
    let order: Vec<_> = (0..3).filter_map(|_| value(inbox.take_any(2))).collect();
    assert_eq!(order, [1, 2, 3]);
}
#[tokio::test]
async fn shares_of_waiters_add_up() {
    let activity = Arc::new(Activity::default());
    let inbox = made(&[2], Arc::clone(&activity));
    inbox.set_limit(Some(1));
    activity.begin();
    inbox.put(0, envelope(1)).await;
    {
        let second = inbox.put(0, envelope(2));
        tokio::pin!(second);
        assert!(timeout(Duration::from_millis(5), &mut second).await.is_err());
        assert!(activity.is_stuck());
    }
    assert!(!activity.is_stuck(), "a producer that gave up is busy again");
    {
        let wait = inbox.wait(inbox.view(|view| view.version()));
        tokio::pin!(wait);
        assert!(timeout(Duration::from_millis(5), &mut wait).await.is_err());
        assert!(activity.is_stuck());
    }
    assert!(!activity.is_stuck(), "a consumer that gave up is busy again");
}

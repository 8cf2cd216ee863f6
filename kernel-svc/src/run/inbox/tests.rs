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

/// A producer under the test's own hands: polled when it was woken, and dropped at will.
struct Producer<'a> {
    number: i64,
    put: Option<std::pin::Pin<Box<dyn Future<Output = bool> + 'a>>>,
    waker: Arc<Wakes>,
}
#[derive(Default)]
struct Wakes(std::sync::atomic::AtomicUsize);
impl std::task::Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}
impl Producer<'_> {
    /// Whether it is through.
    fn poll(&mut self) -> bool {
        let waker = std::task::Waker::from(Arc::clone(&self.waker));
        let mut cx = std::task::Context::from_waker(&waker);
        let put = self.put.as_mut().expect("a put");
        put.as_mut().poll(&mut cx).is_ready()
    }
    fn take_wakes(&self) -> usize {
        self.waker.0.swap(0, Ordering::SeqCst)
    }
}
#[derive(Debug, Clone)]
enum Act {
    Put,
    /// The consumer takes a value.
    Take,
    /// A woken producer runs, or one of those that wait gives up.
    Run(proptest::sample::Index),
    GiveUp(proptest::sample::Index),
    MakeRoom,
}
fn acts() -> impl proptest::strategy::Strategy<Value = Vec<Act>> {
    use proptest::prelude::*;
    let act = prop_oneof![
        4 => Just(Act::Put),
        3 => Just(Act::Take),
        3 => any::<proptest::sample::Index>().prop_map(Act::Run),
        1 => any::<proptest::sample::Index>().prop_map(Act::GiveUp),
        1 => Just(Act::MakeRoom),
    ];
    proptest::collection::vec(act, 0..120)
}
proptest::proptest! {
    /// For every value that is taken one producer is woken, in the order in which they came, whoever gives up in between; no
    /// place stays empty while somebody waits.
    #[test]
    fn producers_get_places_in_the_order_in_which_they_came(acts in acts(), limit in 1_usize..4) {
        let activity = Arc::new(Activity::default());
        let inbox = made(&[1], Arc::clone(&activity));
        inbox.set_limit(Some(limit));
        let (mut waiting, mut woken): (Vec<Producer<'_>>, Vec<Producer<'_>>) = Default::default();
        let (mut sent, mut stored) = (0, Vec::new());
        for act in acts {
            let mut most = 0;
            match act {
                Act::Put => {
                    activity.begin();
                    let put = Box::pin(inbox.put(0, envelope(sent)));
                    let mut producer = Producer { number: sent, put: Some(put), waker: Arc::default() };
                    sent += 1;
                    if producer.poll() {
                        stored.push(producer.number);
                        activity.end();
                    } else {
                        waiting.push(producer);
                    }
                }
                Act::Take => {
                    inbox.take(0);
                    most = 1;
                }
                Act::Run(_) if woken.is_empty() => {}
                Act::Run(at) => {
                    let mut producer = woken.remove(at.index(woken.len()));
                    proptest::prop_assert!(producer.poll(), "a woken producer has its place");
                    stored.push(producer.number);
                    activity.end();
                }
                Act::GiveUp(_) if waiting.is_empty() && woken.is_empty() => {}
                Act::GiveUp(at) => {
                    let at = at.index(waiting.len() + woken.len());
                    let mut given_up = if at < waiting.len() { waiting.remove(at) } else { woken.remove(at - waiting.len()) };
                    given_up.put = None;
                    activity.end();
                    most = 1;
                }
                Act::MakeRoom => {
                    inbox.make_room();
                    most = usize::MAX;
                }
            }
            // Those who were woken are those who waited longest.
            let count = waiting.iter().filter(|producer| producer.take_wakes() > 0).count();
            proptest::prop_assert!(count <= most);
            let (first, rest): (Vec<_>, Vec<_>) = waiting.drain(..).enumerate().partition(|(at, _)| *at < count);
            woken.extend(first.into_iter().map(|(_, producer)| producer));
            waiting = rest.into_iter().map(|(_, producer)| producer).collect();
            let state = inbox.lock();
            let handle = &state.handles[0];
            proptest::prop_assert_eq!(handle.granted, woken.len());
            proptest::prop_assert_eq!(handle.waiting.len(), waiting.len());
            proptest::prop_assert!(waiting.is_empty() || handle.is_full(), "a place is free and somebody waits");
            drop(state);
            // Whoever waits counts for nobody; whoever was woken is busy.
            proptest::prop_assert_eq!(activity.is_idle(), woken.is_empty());
        }
        // All get through once everything is taken.
        while !(waiting.is_empty() && woken.is_empty()) {
            inbox.take(0);
            woken.append(&mut waiting);
            let mut left = Vec::new();
            for mut producer in woken.drain(..) {
                if producer.poll() {
                    stored.push(producer.number);
                } else {
                    left.push(producer);
                }
            }
            waiting = left;
        }
    }
}

use atelier_proto::value::Map;

use super::*;

fn budget(most: usize) -> (Arc<Budget>, Arc<Account>, Arc<Activity>) {
    let activity = Arc::new(Activity::default());
    let budget = Arc::new(Budget::new(most, 1, Arc::clone(&activity)));
    budget.enforce();
    let account = Arc::new(Account::new(Arc::clone(&budget)));
    (budget, account, activity)
}

#[test]
fn sizes_are_estimated_in_constant_time() {
    assert!(weigh(&Value::from("x".repeat(1_000))) >= 1_000);
    let numbers = Value::list((0..1_000_i64).map(Value::from).collect());
    assert!((10_000..40_000).contains(&weigh(&numbers)), "{}", weigh(&numbers));
    let deep = (0..10_000).fold(Value::Null, |inner, _| Value::list(vec![inner]));
    assert!(weigh(&deep) > 0);
    // Dropped level by level: nested lists are dropped recursively.
    let mut left = Some(deep);
    while let Some(Value::List(inner)) = left {
        left = Arc::try_unwrap(inner).ok().and_then(|mut inner| inner.pop());
    }
    let mut wide = Map::new();
    for at in 0..5_000 {
        wide.insert(format!("key{at:05}"), Value::list(vec![at.into(); 10]));
    }
    let estimated = weigh(&Value::map(wide));
    assert!((500_000..2_500_000).contains(&estimated), "{estimated}");
}
#[tokio::test]
async fn producers_wait_until_something_is_dropped() {
    let (budget, account, activity) = budget(10_000);
    activity.begin();
    let first = account.hold(8_000).await;
    let copy = first.clone();
    {
        let second = account.hold(8_000);
        tokio::pin!(second);
        assert!(futures_util::poll!(&mut second).is_pending());
        assert!(activity.is_stuck() && budget.is_short());
        drop(copy);
        assert!(
            futures_util::poll!(&mut second).is_pending(),
            "a copy holds nothing"
        );
        drop(first);
        assert!(!activity.is_stuck());
        drop(second.await);
    }
    assert!(!budget.is_short());
    let _first = account.hold(9_000).await;
    {
        let given_up = account.hold(8_000);
        tokio::pin!(given_up);
        assert!(futures_util::poll!(&mut given_up).is_pending());
    }
    assert!(!activity.is_stuck() && !budget.is_short());
}
#[tokio::test]
async fn a_budget_stretches_so_far_and_no_farther() {
    let (budget, account, _) = budget(10_000);
    let mut held = Vec::new();
    loop {
        let next = account.hold(1_000);
        tokio::pin!(next);
        match futures_util::poll!(&mut next) {
            std::task::Poll::Ready(hold) => held.push(hold),
            std::task::Poll::Pending if budget.stretch() => held.push(next.await),
            std::task::Poll::Pending => break,
        }
    }
    assert!((30..=40).contains(&held.len()), "{}", held.len());
    assert!(!budget.stretch(), "nobody waits any more");
    account.free();
    drop(account.hold(1_000).await);
}

/// Who waits longest gets room first; a large value lets smaller ones pass, but not for ever; whoever gives up leaves its
/// room to the next.
#[tokio::test]
async fn room_goes_to_whoever_waits_longest() {
    use futures_util::poll;
    let (budget, account, activity) = budget(10_000);
    let first = account.hold(9_500).await;
    let (mut large, mut small, mut third) = (
        Box::pin(account.hold(9_000)),
        Box::pin(account.hold(800)),
        Box::pin(account.hold(800)),
    );
    for waiting in [&mut large, &mut small, &mut third] {
        activity.begin();
        assert!(poll!(waiting).is_pending());
    }
    assert_eq!(budget.blocked.load(Ordering::SeqCst), 3);
    drop(first);
    // All that was held is free: the first in line takes nearly all of it, and what is left is for the next.
    assert!(!budget.is_short() || budget.blocked.load(Ordering::SeqCst) < 3);
    let std::task::Poll::Ready(large) = poll!(&mut large) else {
        panic!("the first in line has no room")
    };
    drop(large);
    drop(small);
    let std::task::Poll::Ready(third) = poll!(&mut third) else {
        panic!("what was left by one that gave up is nobody's")
    };
    drop(third);
    assert!(!budget.is_short());
}
#[tokio::test]
async fn a_large_value_is_passed_so_often_and_no_more() {
    use futures_util::poll;
    let (budget, account, _) = budget(10_000_000);
    let held = account.hold(6_000_000).await;
    let mut large = Box::pin(account.hold(8_000_000));
    assert!(poll!(&mut large).is_pending());
    let other = Arc::new(Account::new(Arc::clone(&budget)));
    let mut passed = Vec::new();
    // More than an inbox reserves at a time.
    while let std::task::Poll::Ready(small) = poll!(Box::pin(other.hold(20_000))) {
        passed.push(small);
        assert!(passed.len() <= MAX_PASSED, "it is passed for ever");
    }
    assert!(passed.len() > 1, "what fits is held up at once");
    drop((held, passed));
    assert!(poll!(&mut large).is_ready());
}

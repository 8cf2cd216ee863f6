//! The floor: bare tokio actors joined by bounded channels, on the same graphs, and nothing else.

use std::time::{Duration, Instant};

use tokio::{sync::mpsc, task::JoinSet};

/// Values that wait for an actor.
const ROOM: usize = 64;

/// One value through a chain of actors.
pub async fn chain(length: usize) -> Duration {
    let mut actors = JoinSet::new();
    let start = Instant::now();
    let (first, mut before) = mpsc::channel(ROOM);
    for _ in 1..length {
        let (next, after) = mpsc::channel(ROOM);
        let mut inbox = std::mem::replace(&mut before, after);
        actors.spawn(async move {
            while let Some(value) = inbox.recv().await {
                if next.send(value).await.is_err() {
                    return;
                }
            }
        });
    }
    actors.spawn(async move { while before.recv().await.is_some() {} });
    let _ = first.send(1_u64).await;
    drop(first);
    actors.join_all().await;
    start.elapsed()
}
/// One value to many actors.
pub async fn side_by_side(width: usize) -> Duration {
    let mut actors = JoinSet::new();
    let start = Instant::now();
    let mut inboxes = Vec::with_capacity(width);
    for _ in 0..width {
        let (sender, mut inbox) = mpsc::channel::<u64>(ROOM);
        inboxes.push(sender);
        actors.spawn(async move { while inbox.recv().await.is_some() {} });
    }
    actors.spawn(async move {
        for inbox in inboxes {
            let _ = inbox.send(1).await;
        }
    });
    actors.join_all().await;
    start.elapsed()
}
/// Many values through one actor into a list.
pub async fn list(items: usize) -> Duration {
    let mut actors = JoinSet::new();
    let start = Instant::now();
    let (source, mut inbox) = mpsc::channel::<u64>(ROOM);
    let (passed, mut last) = mpsc::channel(ROOM);
    actors.spawn(async move {
        for value in 0.. {
            if value >= u64::try_from(items).unwrap_or(u64::MAX) || source.send(value).await.is_err() {
                return;
            }
        }
    });
    actors.spawn(async move {
        while let Some(value) = inbox.recv().await {
            if passed.send(value).await.is_err() {
                return;
            }
        }
    });
    actors.spawn(async move {
        let mut list = Vec::new();
        while let Some(value) = last.recv().await {
            list.push(value);
        }
        assert_eq!(list.len(), items);
    });
    actors.join_all().await;
    start.elapsed()
}

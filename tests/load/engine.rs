//! The engine in process, all events emitted, beside bare actors.

use std::{sync::Arc, time::Duration};

use crate::{
    floor,
    graphs::{chain, list, ready, registry, side_by_side, timed},
    memory::{Case, peak_of},
    rate, rounds,
};

/// The best of several runs of a case: how long bare actors took, how long the engine took, and its events.
async fn measure(case: Case) -> (Duration, Duration, usize) {
    let registry = registry();
    let graph = ready(&case.graph(), &registry);
    let (mut bare, mut ours, mut events) = (Duration::MAX, Duration::MAX, 0);
    for _ in 0..rounds() {
        bare = bare.min(case.floor().await);
        let ran = timed(graph.clone(), Arc::clone(&registry)).await;
        (ours, events) = (ours.min(ran.took), ran.events);
    }
    (bare, ours, events)
}
impl Case {
    /// Its graph.
    pub fn graph(self) -> serde_json::Value {
        match self {
            Self::Chain(nodes) => chain(nodes),
            Self::SideBySide(nodes) => side_by_side(nodes),
            Self::List(items) => list(items),
        }
    }
    /// How long bare actors take for it.
    pub async fn floor(self) -> Duration {
        match self {
            Self::Chain(nodes) => floor::chain(nodes).await,
            Self::SideBySide(nodes) => floor::side_by_side(nodes).await,
            Self::List(items) => floor::list(items).await,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bench_executions_beside_bare_actors() -> anyhow::Result<()> {
    println!(
        "| graph | bare actors, executions/s | the engine, executions/s | share | events | resident, bare | resident, \
         the engine |\n|---|---|---|---|---|---|---|"
    );
    for case in [Case::Chain(1_000), Case::SideBySide(1_000), Case::List(10_000)] {
        let (bare, ours, events) = measure(case).await;
        let (bare, ours) = (rate(case.size(), bare), rate(case.size(), ours));
        let (bare_mib, ours_mib) = (peak_of(case, true).await?, peak_of(case, false).await?);
        println!(
            "| {case} | {bare:.0} | {ours:.0} | {:.2} | {events} | {bare_mib} MiB | {ours_mib} MiB |",
            ours / bare
        );
    }
    Ok(())
}

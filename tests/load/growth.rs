//! How the cost of the engine grows with the work: nothing may grow faster.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use atelier_kernel::graph::check;
use atelier_proto::value::Map;
use tokio::task::JoinSet;

use crate::{
    full,
    graphs::{chain, ready, registry, timed},
    memory::Case,
    per, rounds,
};

/// Sizes up to `most`, or up to a tenth of it when only a short look is wanted.
fn sizes(most: usize) -> impl Iterator<Item = usize> {
    let most = if full() { most } else { most / 10 };
    (0..)
        .map(|power| 10_usize.pow(power))
        .take_while(move |size| *size <= most)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bench_growth_with_nodes_items_and_jobs() {
    let registry = registry();
    println!("| what | size | took | for one |\n|---|---|---|---|");
    let cases = [Case::Chain as fn(usize) -> Case, Case::SideBySide];
    for case in cases.into_iter().flat_map(|case| sizes(10_000).skip(1).map(case)) {
        let json = case.graph();
        let start = Instant::now();
        assert_eq!(check::check(&json, &registry, &Map::new()), []);
        let took = start.elapsed();
        println!(
            "| check, {case} | {} | {took:.1?} | {:.2} µs |",
            case.size(),
            per(took, case.size())
        );
    }
    let nodes = cases.into_iter().flat_map(|case| sizes(10_000).skip(1).map(case));
    let items = sizes(1_000_000).map(Case::List);
    for case in nodes.chain(items) {
        let graph = ready(&case.graph(), &registry);
        let mut took = Duration::MAX;
        let rounds = if case.size() > 10_000 { 1 } else { rounds() };
        for _ in 0..rounds {
            took = took.min(timed(graph.clone(), Arc::clone(&registry)).await.took);
        }
        println!(
            "| run, {case} | {} | {took:.1?} | {:.2} µs |",
            case.size(),
            per(took, case.size())
        );
    }
    let graph = ready(&chain(10), &registry);
    for jobs in sizes(1_000) {
        let mut running = JoinSet::new();
        let start = Instant::now();
        for _ in 0..jobs {
            running.spawn(timed(graph.clone(), Arc::clone(&registry)));
        }
        running.join_all().await;
        let took = start.elapsed();
        println!(
            "| jobs of 10 nodes at once | {jobs} | {took:.1?} | {:.2} µs |",
            per(took, jobs)
        );
    }
}

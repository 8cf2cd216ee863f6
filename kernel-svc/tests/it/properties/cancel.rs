//! A cancel at any moment ends a run within its grace and leaves nothing behind.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use atelier_proto::kernel::v1::JobStatus;
use proptest::prelude::*;
use serde_json::json;

use super::graphs::{graph, on_threads, plans, setup};

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn a_cancel_at_any_moment_ends_the_run(
        plans in plans(), seed in any::<u32>(), limit in prop::option::of(1..4_usize), after in 0..400_u32,
        stubborn in any::<bool>(),
    ) {
        let mut graph = graph(&plans);
        if stubborn {
            let nodes = graph["nodes"].as_array_mut().unwrap();
            nodes.push(json!({"id": "mule", "type": "test.Stubborn", "properties": {}}));
            nodes.push(json!({"id": "well", "type": "test.Endless", "properties": {}}));
        }
        on_threads(async {
            let running = setup(&graph, u64::from(seed), |options| {
                options.buffer_limit = limit;
                options.cancel_grace = Duration::from_millis(20);
            })
            .start();
            for _ in 0..after {
                tokio::task::yield_now().await;
            }
            let start = Instant::now();
            running.cancel.cancel();
            let done = running.done().await;
            // A slow machine is no reason to fail; a run that hangs is cut off by the harness.
            assert!(start.elapsed() < Duration::from_secs(30), "{graph}");
            let ended = [JobStatus::Cancelled, JobStatus::Completed, JobStatus::Failed].contains(&done.status());
            assert!(ended && (!stubborn || done.status() != JobStatus::Completed), "{graph}");
            let trace = done.trace();
            assert!(trace.last().unwrap().starts_with("job:"), "{trace:?}");
            assert_eq!(done.count("job:"), 2);
            let (mut opened, mut closed) = (
                done.log.initialized.lock().unwrap().clone(),
                done.log.finalized.lock().unwrap().clone(),
            );
            opened.sort_unstable();
            closed.sort_unstable();
            assert_eq!(opened, closed, "{graph}");
            // Whoever still runs would hold the log.
            let crate::harness::Done { log, .. } = done;
            assert_eq!(Arc::strong_count(&log), 1, "{graph}");
        });
    }
}

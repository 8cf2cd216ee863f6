//! Results do not depend on timing or on the size of buffers, and a run of bounded nodes ends.

use atelier_proto::kernel::v1::JobStatus;
use proptest::prelude::*;

use super::graphs::{essence, graph, is_sound, on_threads, plans, run, takes_the_newest};

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn timing_and_buffers_do_not_change_a_run(plans in plans(), seed in any::<u32>(), limit in 1..4_usize) {
        let graph = graph(&plans);
        on_threads(async {
            let first = run(&graph, u64::from(seed), None).await;
            if !is_sound(&first) {
                return;
            }
            let mut values = vec![first];
            values.push(run(&graph, u64::from(seed) + 1, None).await);
            values.push(run(&graph, u64::from(seed) + 2, Some(limit)).await);
            for done in &values {
                // In strict mode a run with values that nobody took, or with open edges, does not complete.
                assert_eq!(done.status(), JobStatus::Completed, "{:?}\n{graph}", done.result.error);
            }
            if takes_the_newest(&graph) {
                return;
            }
            for pair in values.windows(2) {
                assert_eq!(essence(&pair[0]), essence(&pair[1]), "{graph}");
            }
        });
    }
}

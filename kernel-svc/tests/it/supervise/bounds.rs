//! How often and how long is asked, and what sticks.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use async_trait::async_trait;
use atelier_kernel::run::supervise::{Action, Escalation, Scope, Supervisor, SupervisorError, Verdict};
use atelier_proto::kernel::v1::JobStatus;
use serde_json::json;

use super::scene::{always, decisions, run, setup, told};
use crate::harness::{Graph, graph};

fn failing(count: usize) -> Graph {
    (0..count).fold(graph(), |graph, at| {
        graph.node(&format!("n{at}"), "test.FailOn", json!({"value": at}))
    })
}

/// Answers nothing, each in its own way.
enum Silent {
    Hangs,
    Throws,
    Panics,
    Unattached,
}
#[async_trait]
impl Supervisor for Silent {
    async fn attach(&self) -> Result<(), SupervisorError> {
        match self {
            Self::Unattached => Err(SupervisorError("no line".to_owned())),
            Self::Hangs | Self::Throws | Self::Panics => Ok(()),
        }
    }
    async fn decide(&self, _: Arc<Escalation>) -> Result<Verdict, SupervisorError> {
        match self {
            Self::Hangs => std::future::pending().await,
            Self::Throws => Err(SupervisorError("no idea".to_owned())),
            Self::Panics => panic!("on purpose"),
            Self::Unattached => Ok(Verdict::new(Action::Skip)),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn k_270_without_an_answer_the_failure_stands() {
    for (silent, seconds) in [(Silent::Hangs, 60), (Silent::Throws, 30), (Silent::Panics, 30)] {
        let start = tokio::time::Instant::now();
        let running = setup(&failing(1), Some(Arc::new(silent))).start();
        // The patience of the harness ends later than that of the run.
        tokio::time::sleep(Duration::from_secs(30)).await;
        let done = running.done().await;
        assert_eq!((done.status(), done.calls("n0")), (JobStatus::Failed, 1));
        assert_eq!(decisions(&done), ["n0 fail default"]);
        assert_eq!(start.elapsed().as_secs(), seconds);
        assert!(done.result.error.unwrap().contains("n0: fail:0"));
    }
}

#[tokio::test]
async fn b_67_a_supervisor_that_cannot_be_reached_is_as_good_as_none() {
    let graph = failing(2).named("good", "test.Const", "good", json!({"value": 1}));
    let done = setup(&graph, Some(Arc::new(Silent::Unattached))).run().await;
    assert_eq!(done.status(), JobStatus::Failed);
    assert_eq!(done.outputs()["good"], json!([1]));
    let mut all = decisions(&done);
    all.sort_unstable();
    assert_eq!(all, ["n0 fail default", "n1 fail default"]);
}

#[tokio::test]
async fn ten_questions_a_run_one_at_a_time() {
    let agent = always(Action::Skip);
    let done = run(&failing(12), &agent).await;
    assert_eq!((done.status(), agent.asked().len()), (JobStatus::Failed, 10));
    assert_eq!(agent.most.load(Ordering::SeqCst), 1);
    let bounds = decisions(&done)
        .iter()
        .filter(|decision| decision.ends_with("fail bounds"))
        .count();
    assert_eq!(
        (
            bounds,
            done.result.interventions.len(),
            done.result.node_errors.len()
        ),
        (2, 10, 2)
    );
    // The question comes first, and nothing of another between it and its answer.
    let said: Vec<String> = done
        .trace()
        .into_iter()
        .filter(|line| line.starts_with("escalation:") || line.starts_with("decision:"))
        .collect();
    for pair in said.chunks(2) {
        let node = pair[0].strip_prefix("escalation:").unwrap();
        assert!(pair[1].starts_with(&format!("decision:{node}:")), "{pair:?}");
    }
}

#[tokio::test]
async fn two_retries_and_no_more() {
    let agent = always(Action::Retry);
    let graph = graph().named("n", "test.Flaky", "n", json!({"fails": 9}));
    let done = run(&graph, &agent).await;
    assert_eq!((done.status(), done.calls("n")), (JobStatus::Failed, 3));
    assert_eq!(
        decisions(&done),
        ["n retry agent", "n retry agent", "n fail bounds"]
    );
    let attempts: Vec<u32> = agent.asked().iter().map(|asked| asked.attempt).collect();
    assert_eq!(attempts, [1, 2, 3]);
    assert!(!agent.asked()[2].allowed.contains(&Action::Retry));
}

#[tokio::test]
async fn an_answer_for_a_signature_holds_for_all_failures_of_its_kind() {
    let graph = graph()
        .node(
            "f",
            "test.ForEach",
            json!({"input_list": (0..30).collect::<Vec<_>>()}),
        )
        .named("w", "test.FailOn", "w", json!({}))
        .named("v", "test.FailOn", "v", json!({}))
        .edges(["f.output > w.value", "f.output > v.value"]);
    let agent = told(|_| Verdict {
        scope: Scope::Signature,
        ..Verdict::new(Action::Skip)
    });
    let done = run(&graph, &agent).await;
    assert_eq!(done.status(), JobStatus::Completed);
    // One question a node: what sticks is the node's.
    assert_eq!(agent.asked().len(), 2);
    let all = decisions(&done);
    assert_eq!(
        all.iter()
            .filter(|decision| decision.ends_with("skip sticky"))
            .count(),
        58
    );
    assert_eq!(agent.asked()[0].failure_signature.as_deref(), Some("fail:#"));
}

#[tokio::test]
async fn a_cancel_does_not_wait_for_an_answer() {
    let running = setup(&failing(1), Some(Arc::new(Silent::Hangs))).start();
    while running.log.calls("n0").is_empty() {
        tokio::task::yield_now().await;
    }
    running.cancel.cancel();
    let done = tokio::time::timeout(Duration::from_secs(10), running.done())
        .await
        .unwrap();
    assert_eq!(done.status(), JobStatus::Cancelled);
}

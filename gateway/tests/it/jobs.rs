//! Runs over REST.

use atelier_proto::common::v1::Money;
use atelier_proto::kernel::v1::{Issue, JobStatus};
use atelier_proto::tracker::v1::CostSummary;
use serde_json::json;

use crate::fakes::job_update;
use crate::stack::{Stack, graph};

#[tokio::test]
async fn a_run_is_created_and_the_same_again_is_the_same_run() {
    let stack = Stack::start().await;
    let body = json!({"graph": graph(), "job_id": "J", "name": "mine", "params": {"a": 1}});
    let (status, job) = stack.post("/api/v1/jobs", body.clone()).await;
    assert_eq!(status, 201, "{job}");
    assert_eq!(
        (&job["id"], &job["name"], &job["status"]),
        (&json!("J"), &json!("mine"), &json!("running"))
    );
    assert_eq!(job["params"], json!({"a": 1}));
    assert_eq!(job["created_at"], "2026-09-03T12:00:00.000Z");
    assert_eq!(
        job["cost"],
        json!({"amount": "0.00", "currency": "USD", "unpriced": 0, "running": 0})
    );
    assert!(job.get("graph").is_none());
    assert_eq!(stack.post("/api/v1/jobs", body).await.0, 200);
    let (status, error) = stack
        .post("/api/v1/jobs", json!({"graph": {"nodes": []}, "job_id": "J"}))
        .await;
    assert_eq!((status, &error["error"]["reason"]), (409, &json!("JOB_ID_USED")));
}

#[tokio::test]
async fn a_caller_can_wait_for_the_end() {
    let stack = Stack::start().await;
    let (status, job) = stack
        .post("/api/v1/jobs?wait=0", json!({"graph": graph(), "job_id": "slow"}))
        .await;
    assert_eq!((status, &job["status"]), (202, &json!("running")));
    *stack.fakes.script.lock().expect("lock") =
        vec![job_update(JobStatus::Running), job_update(JobStatus::Completed)];
    let (status, job) = stack
        .post("/api/v1/jobs?wait", json!({"graph": graph(), "job_id": "J"}))
        .await;
    assert_eq!((status, &job["status"]), (201, &json!("completed")));
    for wait in ["x", "301", "-1"] {
        let (status, error) = stack
            .post(&format!("/api/v1/jobs?wait={wait}"), json!({"graph": graph()}))
            .await;
        assert_eq!(
            (status, &error["error"]["details"]["fields"][0]["field"]),
            (400, &json!("wait"))
        );
    }
}

#[tokio::test]
async fn waiting_ends_with_the_run() {
    let stack = Stack::start().await;
    let waiting = stack.post("/api/v1/jobs?wait=60", json!({"graph": graph(), "job_id": "J"}));
    let ending = async {
        atelier_common::testkit::until(|| async { stack.fakes.count_of_runs() == 1 })
            .within(std::time::Duration::from_secs(5))
            .await;
        stack.fakes.emit("J", job_update(JobStatus::Failed));
    };
    let ((status, job), ()) = tokio::join!(waiting, ending);
    assert_eq!((status, &job["status"]), (201, &json!("failed")));
}

#[tokio::test]
async fn runs_are_listed_with_what_they_cost() {
    let stack = Stack::start().await;
    stack.fakes.add_run("1", "A", JobStatus::Running);
    stack.fakes.add_run("2", "B", JobStatus::Running);
    let cost = Money {
        amount: "0.240000000".to_owned(),
        currency: "USD".to_owned(),
    };
    *stack.fakes.costs.lock().expect("lock") = CostSummary {
        costs: vec![cost],
        call_count: 6,
        running_count: 1,
        ..CostSummary::default()
    };
    let (status, page) = stack.get("/api/v1/jobs?status=running&limit=10").await;
    assert_eq!(status, 200);
    let jobs = page["jobs"].as_array().expect("list");
    assert_eq!(
        (jobs.len(), &jobs[0]["id"], &page["next"]),
        (1, &json!("A"), &json!(null))
    );
    assert_eq!(
        jobs[0]["cost"],
        json!({"amount": "0.24", "currency": "USD", "unpriced": 0, "running": 1})
    );
    let asked = stack.fakes.cost_requests.lock().expect("lock").clone();
    assert_eq!(
        asked[0].filter.as_ref().expect("filter").job_id.as_deref(),
        Some("A")
    );
}

#[tokio::test]
async fn a_run_can_be_seen_while_the_ledger_is_away() {
    let stack = Stack::start().await;
    stack.fakes.add_run("1", "A", JobStatus::Running);
    *stack.fakes.ledger_down.lock().expect("lock") = true;
    let (status, job) = stack.get("/api/v1/jobs/A").await;
    assert_eq!((status, &job["cost"]["amount"]), (200, &json!(null)));
}

#[tokio::test]
async fn one_run_has_its_graph_and_foreign_ones_are_missing() {
    let stack = Stack::start().await;
    stack
        .post("/api/v1/jobs", json!({"graph": graph(), "job_id": "J"}))
        .await;
    stack.fakes.add_run("2", "F", JobStatus::Running);
    assert_eq!(stack.get("/api/v1/jobs/J").await.1["graph"], graph());
    let (missing, mut one) = stack.get("/api/v1/jobs/missing").await;
    let (foreign, mut other) = stack.get("/api/v1/jobs/F").await;
    for body in [&mut one, &mut other] {
        body["error"].as_object_mut().expect("error").remove("request_id");
    }
    assert_eq!((missing, one), (foreign, other));
}

#[tokio::test]
async fn a_run_is_cancelled_once() {
    let stack = Stack::start().await;
    stack.fakes.add_run("1", "A", JobStatus::Running);
    let cancelled = json!({"job_id": "A", "cancelled": true, "status": "cancelled"});
    assert_eq!(
        stack.post("/api/v1/jobs/A/cancel", json!({})).await,
        (200, cancelled)
    );
    let over = json!({"job_id": "A", "cancelled": false, "status": "cancelled"});
    assert_eq!(stack.post("/api/v1/jobs/A/cancel", json!({})).await, (200, over));
    assert_eq!(stack.post("/api/v1/jobs/x/cancel", json!({})).await.0, 404);
}

#[tokio::test]
async fn a_graph_can_be_checked() {
    let stack = Stack::start().await;
    assert_eq!(
        stack.post("/api/v1/check", json!({"graph": graph()})).await,
        (200, json!({"ok": true, "issues": []}))
    );
    let issue = Issue {
        code: "graph.cycle".to_owned(),
        message: "a cycle".to_owned(),
        ..Issue::default()
    };
    *stack.fakes.issues.lock().expect("lock") = vec![issue];
    let (_, checked) = stack.post("/api/v1/check", json!({"workflow": graph()})).await;
    assert_eq!(
        (&checked["ok"], &checked["issues"][0]["code"]),
        (&json!(false), &json!("graph.cycle"))
    );
    assert_eq!(
        stack.post("/api/v1/check", json!({"workflow_id": "W"})).await.0,
        404
    );
}

#[tokio::test]
async fn w_020_a_slash_at_the_end_changes_nothing() {
    let stack = Stack::start().await;
    assert_eq!(stack.get("/api/v1/jobs").await, stack.get("/api/v1/jobs/").await);
    assert_eq!(stack.get("/api/v1/jobs/?limit=1").await.0, 200);
}

#[tokio::test]
async fn params_as_deep_as_allowed_arrive() {
    let stack = Stack::start().await;
    let deep = |levels| (0..levels).fold(json!(1), |inner, _| json!({"a": inner}));
    let fits = json!({"graph": graph(), "job_id": "J", "params": {"deep": deep(25)}});
    assert_eq!(stack.post("/api/v1/jobs", fits).await.0, 201);
    let (status, error) = stack
        .post(
            "/api/v1/jobs",
            json!({"graph": graph(), "params": {"deep": deep(40)}}),
        )
        .await;
    assert_eq!(
        (status, &error["error"]["details"]["fields"][0]["field"]),
        (400, &json!("params"))
    );
}

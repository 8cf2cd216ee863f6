//! Supervised runs: questions as frames, answers over REST.

use atelier_proto::common::v1::Money;
use atelier_proto::kernel::v1::job_event::Event;
use atelier_proto::kernel::v1::{
    DecidedBy, Escalation, Intervention, IterationItem, JobStatus, JobUpdate, SupervisorAction,
    SupervisorDecision, SupervisorEscalation, Verdict, VerdictScope,
};
use atelier_proto::value::{Map, Value};
use serde_json::json;

use crate::fakes::job_update;
use crate::stack::{Stack, graph};

fn question() -> Escalation {
    Escalation {
        escalation_id: "E".to_owned(),
        node_type: "test.Work".to_owned(),
        lineage: vec![IterationItem {
            iteration: "each:items".to_owned(),
            index: 1,
        }],
        invocation_key: "each:items=1".to_owned(),
        allowed_actions: vec![SupervisorAction::Skip.into(), SupervisorAction::Fail.into()],
        detail: "it broke".to_owned(),
        failure_signature: Some("it broke".to_owned()),
        inputs: Some((&Map::from_iter([("value".to_owned(), Value::from("bad"))])).into()),
        attempt: 1,
        spent: Some(Money {
            amount: "0.020000000".to_owned(),
            currency: "USD".to_owned(),
        }),
        ..Escalation::default()
    }
}

#[tokio::test]
async fn a_question_and_its_answer_are_frames_of_the_run() {
    let stack = Stack::start().await;
    let verdict = Verdict {
        action: SupervisorAction::Skip.into(),
        scope: VerdictScope::Invocation.into(),
        ..Verdict::default()
    };
    let intervention = Intervention {
        escalation_id: "E".to_owned(),
        node_id: "w".to_owned(),
        invocation_key: "each:items=1".to_owned(),
        action: SupervisorAction::Skip.into(),
        decided_by: DecidedBy::Agent.into(),
    };
    *stack.fakes.script.lock().expect("lock") = vec![
        job_update(JobStatus::Running),
        Event::SupervisorEscalation(SupervisorEscalation {
            node_id: "w".to_owned(),
            node_name: "Work".to_owned(),
            escalation: Some(question()),
        }),
        Event::SupervisorDecision(SupervisorDecision {
            node_id: "w".to_owned(),
            node_name: "Work".to_owned(),
            escalation: Some(question()),
            verdict: Some(verdict),
            decided_by: DecidedBy::Agent.into(),
            cost: None,
        }),
        Event::JobUpdate(JobUpdate {
            status: JobStatus::Completed.into(),
            interventions: vec![intervention],
            ..JobUpdate::default()
        }),
    ];
    let mut socket = stack.socket().await;
    socket
        .command(
            "run_job",
            json!({"job_id": "J", "graph": graph(), "supervise": true}),
        )
        .await;
    let frames = socket.until_the_end().await;
    let of = |kind: &str| {
        frames
            .iter()
            .find(|frame| frame["type"] == kind)
            .cloned()
            .expect(kind)
    };
    let escalation = json!({
        "id": "E", "nodeId": "w", "nodeType": "test.Work", "correlationLineage": {"each:items": {"index": 1}},
        "invocationKey": "each:items=1", "allowedActions": ["skip", "fail"], "detail": "it broke",
        "failureSignature": "it broke", "inputs": {"value": "bad"}, "attempt": 1, "spentCostUsd": 0.02,
        "createdAssets": [], "retrySafe": false, "emitted": false
    });
    let asked = of("supervisor_escalation");
    assert_eq!(
        (&asked["node_id"], &asked["node_name"], &asked["escalation"]),
        (&json!("w"), &json!("Work"), &escalation)
    );
    let decided = of("supervisor_decision");
    assert_eq!(decided["escalation"], escalation);
    assert_eq!(
        decided["verdict"],
        json!({"action": "skip", "scope": "invocation"})
    );
    assert_eq!(
        (&decided["decided_by"], &decided["cost"]),
        (&json!("agent"), &json!(null))
    );
    let end = frames
        .iter()
        .rfind(|frame| frame["type"] == "job_update")
        .expect("an end");
    assert_eq!(end["interventions"][0]["action"], "skip");
}

#[tokio::test]
async fn a_question_is_answered_by_its_id_and_bad_answers_are_named() {
    let stack = Stack::start().await;
    stack.fakes.add_run("1", "A", JobStatus::Running);
    stack.fakes.add_run("2", "F", JobStatus::Running);
    let path = "/api/v1/jobs/A/escalations/E";
    for (body, field) in [
        (json!([1]), "body"),
        (json!({}), "action"),
        (json!({"action": "panic"}), "action"),
        (json!({"action": 7}), "action"),
        (json!({"action": "skip", "scope": "all"}), "scope"),
        (json!({"action": "substitute", "outputs": [1]}), "outputs"),
        (json!({"action": "skip", "why": "so"}), "why"),
    ] {
        let (status, answer) = stack.post(path, body).await;
        assert_eq!(status, 400, "{answer}");
        assert!(answer.to_string().contains(field), "{answer}");
    }
    assert!(stack.fakes.verdicts.lock().expect("lock").is_empty());
    let body = json!({"action": "substitute", "outputs": {"output": 9}, "reason": "near enough"});
    assert_eq!(
        stack.post(path, body).await,
        (
            200,
            json!({"job_id": "A", "escalation_id": "E", "action": "substitute"})
        )
    );
    let taken = stack.fakes.verdicts.lock().expect("lock").clone();
    assert_eq!(
        (taken.len(), taken[0].action()),
        (1, SupervisorAction::Substitute)
    );
    assert_eq!(taken[0].scope(), VerdictScope::Invocation);
    for path in [
        "/api/v1/jobs/A/escalations/other",
        "/api/v1/jobs/F/escalations/E",
        "/api/v1/jobs/x/escalations/E",
    ] {
        assert_eq!(stack.post(path, json!({"action": "fail"})).await.0, 404, "{path}");
    }
}

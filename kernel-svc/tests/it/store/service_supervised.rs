//! A run whose failures somebody decides over the service.

use std::{collections::HashSet, time::Duration};

use atelier_common::testkit::engines;
use atelier_kernel::settings::Settings;
use atelier_proto::{
    kernel::v1::{
        DecideEscalationRequest, DecidedBy, Escalation, JobEvent, JobStatus, RunJobRequest, RunOptions,
        SupervisorAction, Verdict, VerdictScope, WatchJobRequest, job_event::Event as Frame,
        watch_job_response::Message,
    },
    value::{Map, Value},
};
use serde_json::{Value as Json, json};
use tonic::{Code, Status};
use tonic_types::StatusExt;

use super::{
    fakes::Provider,
    kernel::{Up, edge, node},
    scene::image,
};

/// Texts, each read as JSON; the second is none.
fn readers() -> Json {
    readers_of(&["1", "no json", "3"])
}
fn readers_of(texts: &[&str]) -> Json {
    json!({
        "nodes": [
            node("list", "nodetool.constant.List", json!({"value": texts})),
            node("each", "nodetool.control.ForEach", json!({})),
            node("read", "nodetool.text.ParseJSON", json!({})),
            node("out", "nodetool.output.Output", json!({"name": "read"})),
        ],
        "edges": [
            edge("list.output", "each.input_list"),
            edge("each.output", "read.text"),
            edge("read.output", "out.value"),
        ],
    })
}
async fn start(up: &Up, job_id: &str, graph: &Json) {
    let request = RunJobRequest {
        job_id: job_id.to_owned(),
        graph_json: Some(graph.to_string()),
        options: Some(RunOptions {
            supervised: true,
            ..RunOptions::default()
        }),
        ..RunJobRequest::default()
    };
    up.client().run_job(up.signed(request)).await.unwrap();
}
/// Reads the run's events up to its first question.
async fn question(up: &Up, job_id: &str) -> Escalation {
    question_of(up, job_id, "each:items=1").await
}
/// Reads the run's events up to the question about an invocation.
async fn question_of(up: &Up, job_id: &str, invocation_key: &str) -> Escalation {
    let request = WatchJobRequest {
        job_id: job_id.to_owned(),
        ..WatchJobRequest::default()
    };
    let mut stream = up
        .client()
        .watch_job(up.signed(request))
        .await
        .unwrap()
        .into_inner();
    while let Some(message) = stream.message().await.unwrap() {
        if let Some(Message::Event(JobEvent {
            event: Some(Frame::SupervisorEscalation(asked)),
            ..
        })) = message.message
            && let Some(escalation) = asked.escalation
            && escalation.invocation_key == invocation_key
        {
            return escalation;
        }
    }
    panic!("nobody was asked")
}
async fn decide(
    up: &Up,
    user: &str,
    job_id: &str,
    escalation_id: &str,
    action: SupervisorAction,
    scope: VerdictScope,
) -> Result<(), Status> {
    let verdict = Verdict {
        action: action.into(),
        scope: scope.into(),
        ..Verdict::default()
    };
    let request = DecideEscalationRequest {
        job_id: job_id.to_owned(),
        escalation_id: escalation_id.to_owned(),
        verdict: Some(verdict),
    };
    up.client()
        .decide_escalation(up.by(user, request))
        .await
        .map(drop)
}
fn reason(status: &Status) -> String {
    let info = status.get_details_error_info();
    info.map(|info| info.reason).unwrap_or_default()
}

#[tokio::test]
async fn a_failed_item_waits_for_the_answer_of_its_owner() {
    for db in engines().await {
        let provider = Provider::new((&image(b"sea")).into(), true);
        let up = Up::new(&db, Settings::default(), provider).await;
        start(&up, "j", &readers()).await;
        let asked = question(&up, "j").await;
        assert_eq!(asked.invocation_key, "each:items=1", "{asked:?}");
        let allowed: Vec<_> = asked.allowed_actions().collect();
        assert_eq!(allowed, [SupervisorAction::Skip, SupervisorAction::Fail]);
        let (id, one) = (asked.escalation_id.as_str(), VerdictScope::Invocation);
        let (skip, retry) = (SupervisorAction::Skip, SupervisorAction::Retry);
        for (user, job, escalation, action, scope, code, why) in [
            ("2", "j", id, skip, one, Code::NotFound, "JOB_NOT_FOUND"),
            ("1", "k", id, skip, one, Code::NotFound, "JOB_NOT_FOUND"),
            (
                "1",
                "j",
                "other",
                skip,
                one,
                Code::NotFound,
                "ESCALATION_NOT_FOUND",
            ),
            ("1", "j", id, retry, one, Code::InvalidArgument, "INVALID_FIELD"),
        ] {
            let refused = decide(&up, user, job, escalation, action, scope)
                .await
                .unwrap_err();
            assert_eq!((refused.code(), reason(&refused).as_str()), (code, why));
        }
        // A refused answer leaves the question open.
        decide(&up, "1", "j", id, skip, one).await.unwrap();
        let job = up.end("j").await;
        assert_eq!(job.status(), JobStatus::Completed, "{job:?}");
        let outputs = Map::try_from(job.outputs.unwrap()).unwrap();
        assert_eq!(outputs["read"], Value::list(vec![1.into(), 3.into()]));
        let again = decide(&up, "1", "j", id, skip, one).await.unwrap_err();
        assert!(["JOB_NOT_RUNNING", "ESCALATION_NOT_FOUND"].contains(&reason(&again).as_str()));
        let (_, events) = up.watch("j", 0, true).await;
        let decided = events.iter().find_map(|event| match &event.event {
            Some(Frame::SupervisorDecision(decided)) => Some(decided.clone()),
            _ => None,
        });
        assert_eq!(decided.unwrap().decided_by(), DecidedBy::Agent);
        let Some(Frame::JobUpdate(end)) = &events.last().unwrap().event else {
            panic!("no end")
        };
        assert_eq!(
            (end.interventions.len(), end.interventions[0].action()),
            (1, skip)
        );
    }
}

#[tokio::test]
async fn an_answer_at_another_replica_reaches_the_run_and_holds_for_whoever_takes_it_up() {
    for db in engines().await {
        let settings = || Settings {
            lease: Duration::from_millis(600),
            ..Settings::default()
        };
        let provider = Provider::new((&image(b"sea")).into(), true);
        let one = Up::new(&db, settings(), provider).await;
        let two = one.beside(&db, settings()).await;
        start(&one, "j", &readers_of(&["1", "no json", "{", "4"])).await;
        let first = question_of(&two, "j", "each:items=1").await;
        let (skip, retry, once) = (
            SupervisorAction::Skip,
            SupervisorAction::Retry,
            VerdictScope::Invocation,
        );
        for (id, action, why) in [
            ("other", skip, "ESCALATION_NOT_FOUND"),
            (first.escalation_id.as_str(), retry, "INVALID_FIELD"),
        ] {
            let refused = decide(&two, "1", "j", id, action, once).await.unwrap_err();
            assert_eq!(reason(&refused), why, "{}", db.engine());
        }
        decide(&two, "1", "j", &first.escalation_id, skip, once)
            .await
            .unwrap();
        let second = question_of(&two, "j", "each:items=2").await;
        let late = decide(&two, "1", "j", &first.escalation_id, skip, once).await;
        assert_eq!(reason(&late.unwrap_err()), "ESCALATION_NOT_FOUND");
        // The one that drives it goes; the other takes it up, knows the first answer, and asks the second question again.
        one.stop().await;
        decide(&two, "1", "j", &second.escalation_id, skip, once)
            .await
            .unwrap();
        let job = two.end("j").await;
        assert_eq!(job.status(), JobStatus::Completed, "{job:?}");
        let outputs = Map::try_from(job.outputs.unwrap()).unwrap();
        assert_eq!(outputs["read"], Value::list(vec![1.into(), 4.into()]));
        let (_, events) = two.watch("j", 0, true).await;
        let asked: HashSet<String> = events
            .iter()
            .filter_map(|event| match &event.event {
                Some(Frame::SupervisorEscalation(asked)) => asked.escalation.clone(),
                _ => None,
            })
            .map(|escalation| escalation.escalation_id)
            .collect();
        assert_eq!(
            asked,
            HashSet::from([first.escalation_id, second.escalation_id]),
            "no question is another one to the second process"
        );
    }
}

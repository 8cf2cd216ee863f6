//! Runs of saved workflows, through the whole component.

use std::time::Duration;

use atelier_common::testkit::{engines, until};
use atelier_kernel::settings::Settings;
use atelier_proto::{
    kernel::v1::{
        CancelJobRequest, CreateWorkflowRequest, DeleteWorkflowRequest, Job, JobStatus, ListJobsRequest,
        RunJobRequest, UpdateWorkflowRequest, Workflow,
    },
    reason::reason_of,
    value::{Map, Value},
};
use serde_json::{Value as Json, json};
use tonic::Status;

use super::{
    fakes::Provider,
    kernel::{Up, edge, node, paint, shout},
    scene::image,
};

async fn kernels() -> Vec<(Up, atelier_common::testkit::TestDb)> {
    let mut kernels = Vec::new();
    for db in engines().await {
        let provider = Provider::new((&image(b"sea")).into(), true);
        kernels.push((Up::new(&db, Settings::default(), provider).await, db));
    }
    kernels
}
async fn save(up: &Up, id: &str, graph: &Json, params: Map) -> Workflow {
    let request = CreateWorkflowRequest {
        workflow_id: id.to_owned(),
        name: id.to_owned(),
        graph_json: graph.to_string(),
        params: Some((&params).into()),
        ..CreateWorkflowRequest::default()
    };
    let answer = up.workflows().create_workflow(up.signed(request)).await.unwrap();
    answer.into_inner().workflow.unwrap()
}
async fn edit(up: &Up, id: &str, graph: &Json) {
    let request = UpdateWorkflowRequest {
        workflow_id: id.to_owned(),
        graph_json: Some(graph.to_string()),
        ..UpdateWorkflowRequest::default()
    };
    up.workflows().update_workflow(up.signed(request)).await.unwrap();
}
fn of(id: &str, job_id: &str, version: Option<i64>) -> RunJobRequest {
    RunJobRequest {
        job_id: job_id.to_owned(),
        workflow_id: Some(id.to_owned()),
        workflow_version: version,
        ..RunJobRequest::default()
    }
}
async fn run(up: &Up, request: RunJobRequest) -> Result<(Job, bool), Status> {
    let answer = up.client().run_job(up.signed(request)).await?.into_inner();
    Ok((answer.job.unwrap(), answer.created))
}
fn outputs(job: &Job) -> Map {
    Map::try_from(job.outputs.clone().unwrap_or_default()).unwrap()
}
fn loud(text: &str) -> Value {
    Value::list(vec![text.into()])
}

#[tokio::test]
async fn w_030_a_saved_workflow_runs_as_it_is_and_as_it_was() {
    for (up, db) in kernels().await {
        save(&up, "w", &shout("one"), Map::new()).await;
        run(&up, of("w", "a", None)).await.unwrap();
        edit(&up, "w", &shout("two")).await;
        run(&up, of("w", "b", None)).await.unwrap();
        run(&up, of("w", "c", Some(1))).await.unwrap();
        for (job_id, text, version) in [("a", "ONE", 1), ("b", "TWO", 2), ("c", "ONE", 1)] {
            let job = up.end(job_id).await;
            assert_eq!(outputs(&job)["loud"], loud(text), "{} {job_id}", db.engine());
            assert_eq!(
                (job.workflow_id.as_deref(), job.workflow_version),
                (Some("w"), Some(version))
            );
        }
        let request = ListJobsRequest {
            workflow_id: Some("w".to_owned()),
            ..ListJobsRequest::default()
        };
        let listed = up
            .client()
            .list_jobs(up.signed(request))
            .await
            .unwrap()
            .into_inner()
            .jobs;
        assert_eq!(listed.len(), 3);
    }
}
#[tokio::test]
async fn w_060_a_repeated_start_is_the_same_run_whatever_became_of_its_workflow() {
    for (up, db) in kernels().await {
        save(&up, "w", &shout("one"), Map::new()).await;
        assert!(run(&up, of("w", "a", None)).await.unwrap().1, "{}", db.engine());
        edit(&up, "w", &shout("two")).await;
        assert!(!run(&up, of("w", "a", None)).await.unwrap().1);
        let other = run(&up, of("w", "a", Some(2))).await.unwrap_err();
        assert_eq!(reason_of(&other), "JOB_ID_USED");
        let request = DeleteWorkflowRequest {
            workflow_id: "w".to_owned(),
            expected_etag: None,
        };
        up.workflows().delete_workflow(up.signed(request)).await.unwrap();
        assert!(!run(&up, of("w", "a", None)).await.unwrap().1);
        assert_eq!(outputs(&up.end("a").await)["loud"], loud("ONE"));
        let gone = run(&up, of("w", "b", None)).await.unwrap_err();
        assert_eq!(reason_of(&gone), "WORKFLOW_NOT_FOUND");
    }
}
#[tokio::test]
async fn a_workflow_that_is_not_there_is_not_run() {
    for (up, db) in kernels().await {
        save(&up, "w", &shout("one"), Map::new()).await;
        let missing = run(&up, of("nothing", "a", None)).await.unwrap_err();
        let request = up.by("2", of("w", "a", None));
        let foreign = up.client().run_job(request).await.unwrap_err();
        for status in [&missing, &foreign] {
            assert_eq!(reason_of(status), "WORKFLOW_NOT_FOUND", "{}", db.engine());
        }
        assert_eq!(missing.message().replace("nothing", "w"), foreign.message());
        let version = run(&up, of("w", "a", Some(7))).await.unwrap_err();
        assert_eq!(reason_of(&version), "VERSION_NOT_FOUND");
        let neither = run(&up, RunJobRequest::default()).await.unwrap_err();
        assert_eq!(reason_of(&neither), "INVALID_FIELD");
        // W-033: a graph wins, and the id is only where its events are sent to.
        let graph = RunJobRequest {
            graph_json: Some(shout("mine").to_string()),
            ..of("nothing", "a", None)
        };
        run(&up, graph).await.unwrap();
        let job = up.end("a").await;
        assert_eq!(
            (job.workflow_id.as_deref(), job.workflow_version),
            (Some("nothing"), None)
        );
    }
}
#[tokio::test]
async fn parameters_of_a_workflow_stand_in_for_those_of_the_request() {
    for (up, db) in kernels().await {
        let graph = json!({
            "nodes": [
                node("in", "nodetool.input.StringInput", json!({"name": "text"})),
                node("up", "nodetool.text.ToUppercase", json!({})),
                node("out", "nodetool.output.Output", json!({"name": "loud"})),
            ],
            "edges": [edge("in.output", "up.text"), edge("up.output", "out.value")],
        });
        let stated: Map = [("text".to_owned(), Value::from("stated"))].into_iter().collect();
        save(&up, "w", &graph, stated).await;
        run(&up, of("w", "a", None)).await.unwrap();
        let given: Map = [("text".to_owned(), Value::from("given"))].into_iter().collect();
        let request = RunJobRequest {
            params: Some((&given).into()),
            ..of("w", "b", None)
        };
        run(&up, request.clone()).await.unwrap();
        for (job_id, text) in [("a", "STATED"), ("b", "GIVEN")] {
            let job = up.end(job_id).await;
            assert_eq!(job.status(), JobStatus::Completed, "{job:?}");
            assert_eq!(outputs(&job)["loud"], loud(text), "{}", db.engine());
        }
        assert!(!run(&up, request).await.unwrap().1);
    }
}

/// A workflow that makes a text loud.
fn louder() -> Json {
    json!({
        "nodes": [
            node("in", "nodetool.input.StringInput", json!({"name": "text", "value": "quiet"})),
            node("up", "nodetool.text.ToUppercase", json!({})),
            node("out", "nodetool.output.Output", json!({"name": "loud"})),
        ],
        "edges": [edge("in.output", "up.text"), edge("up.output", "out.value")],
    })
}
/// A graph whose node runs a workflow for a text.
fn outer(inside: Json, node_type: &str) -> Json {
    let mut inner = node("sub", node_type, inside);
    inner["dynamic_inputs"] = json!({"text": {"type": "str"}});
    inner["dynamic_outputs"] = json!({"loud": "str"});
    json!({
        "nodes": [
            node("word", "nodetool.constant.String", json!({"value": "hello"})),
            inner,
            node("out", "nodetool.output.Output", json!({"name": "result"})),
        ],
        "edges": [edge("word.output", "sub.text"), edge("sub.loud", "out.value")],
    })
}
const WORKFLOW: &str = "nodetool.workflows.workflow_node.Workflow";

#[tokio::test]
async fn a_node_runs_a_saved_workflow_and_its_outputs_are_the_nodes() {
    for (up, db) in kernels().await {
        save(&up, "inner", &louder(), Map::new()).await;
        let copy = json!({"graph": louder()});
        for (job_id, inside, node_type) in [
            ("saved", json!({"workflow_id": "inner"}), WORKFLOW),
            (
                "copy",
                json!({"workflow_id": "elsewhere", "workflow_json": copy}),
                WORKFLOW,
            ),
            (
                "own",
                json!({"graph": louder()}),
                "nodetool.workflows.subgraph.Subgraph",
            ),
        ] {
            up.run(job_id, &outer(inside, node_type)).await.unwrap();
            let job = up.end(job_id).await;
            assert_eq!(job.status(), JobStatus::Completed, "{} {job:?}", db.engine());
            assert_eq!(outputs(&job)["result"], loud("HELLO"), "{job_id}");
        }
        let request = ListJobsRequest {
            workflow_id: Some("inner".to_owned()),
            ..ListJobsRequest::default()
        };
        let inner = up
            .client()
            .list_jobs(up.signed(request))
            .await
            .unwrap()
            .into_inner()
            .jobs;
        assert_eq!(inner.len(), 1);
        let parent = (
            inner[0].parent_job_id.as_deref(),
            inner[0].parent_node_id.as_deref(),
        );
        assert_eq!(
            (parent, inner[0].workflow_version),
            ((Some("saved"), Some("sub")), Some(1))
        );
        let events = up.watch(&inner[0].job_id, 0, true).await.1;
        assert!(!events.is_empty(), "it has a log of its own");
    }
}
#[tokio::test]
async fn what_goes_wrong_inside_is_told_by_the_node() {
    for (up, db) in kernels().await {
        let broken = json!({"nodes": [node("x", "no.such.Type", json!({}))], "edges": []});
        save(&up, "broken", &broken, Map::new()).await;
        for (job_id, inside, told) in [
            (
                "missing",
                json!({"workflow_id": "nothing"}),
                "workflow nothing not found",
            ),
            ("none", json!({}), "names no workflow"),
            ("broken", json!({"workflow_id": "broken"}), "no.such.Type"),
        ] {
            up.run(job_id, &outer(inside, WORKFLOW)).await.unwrap();
            let job = up.end(job_id).await;
            let error = job.error.clone().unwrap_or_default();
            assert_eq!(job.status(), JobStatus::Failed, "{} {job_id}", db.engine());
            assert!(error.contains(told) && error.contains("sub"), "{error}");
        }
    }
}
#[tokio::test]
async fn a_workflow_that_runs_itself_ends() {
    for (up, db) in kernels().await {
        save(
            &up,
            "self",
            &outer(json!({"workflow_id": "self"}), WORKFLOW),
            Map::new(),
        )
        .await;
        run(&up, of("self", "a", None)).await.unwrap();
        let job = up.end("a").await;
        let error = job.error.unwrap_or_default();
        assert!(error.contains("deep"), "{}: {error}", db.engine());
        let request = ListJobsRequest {
            workflow_id: Some("self".to_owned()),
            ..ListJobsRequest::default()
        };
        let runs = up
            .client()
            .list_jobs(up.signed(request))
            .await
            .unwrap()
            .into_inner()
            .jobs;
        assert_eq!(runs.len(), 9, "the first, and eight inside of each other");
        assert!(runs.iter().all(|job| job.status() == JobStatus::Failed));
    }
}
#[tokio::test]
async fn a_cancel_of_the_outer_run_cancels_the_inner_one() {
    for db in engines().await {
        // A provider that does not answer.
        let provider = Provider::new((&image(b"sea")).into(), false);
        // One slot: the inner run must not wait for it.
        let settings = Settings {
            max_concurrent_jobs: 1,
            ..Settings::default()
        };
        let up = Up::new(&db, settings, provider.clone()).await;
        save(&up, "inner", &paint(), Map::new()).await;
        up.run("a", &outer(json!({"workflow_id": "inner"}), WORKFLOW))
            .await
            .unwrap();
        until(|| async { provider.calls() == 1 })
            .within(Duration::from_secs(30))
            .await;
        let request = CancelJobRequest {
            job_id: "a".to_owned(),
        };
        up.client().cancel_job(up.signed(request)).await.unwrap();
        assert_eq!(
            up.end("a").await.status(),
            JobStatus::Cancelled,
            "{}",
            db.engine()
        );
        let request = ListJobsRequest {
            workflow_id: Some("inner".to_owned()),
            ..ListJobsRequest::default()
        };
        let inner = up
            .client()
            .list_jobs(up.signed(request))
            .await
            .unwrap()
            .into_inner()
            .jobs;
        let inner = up.end(&inner[0].job_id).await;
        assert_eq!(inner.status(), JobStatus::Cancelled);
    }
}

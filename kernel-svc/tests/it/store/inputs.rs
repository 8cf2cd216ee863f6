//! What is pushed into a run while it goes on, also over the death of its process.

use std::time::Duration;

use atelier_common::testkit::{engines, until};
use atelier_kernel::{entity::jobs, settings::Settings};
use atelier_proto::{
    common::v1::MapValue,
    kernel::v1::{JobStatus, PushInputRequest, ResumeJobRequest, SendControlRequest},
    value::{Map, Value},
};
use prost::Message;
use sea_orm::{EntityTrait, sea_query::Expr};
use serde_json::{Value as Json, json};
use tonic::{Code, Status};

use super::{
    fakes::Provider,
    kernel::{Up, edge, node, shout},
    scene::image,
};

/// Gathers what is pushed into `mic`; `up` is controlled from outside as long as that lasts.
fn listening() -> Json {
    let mut control = edge("all.output", "up.__control__");
    control["edge_type"] = json!("control");
    json!({
        "nodes": [
            node("m", "nodetool.input.RealtimeAudioInput", json!({"name": "mic"})),
            node("all", "nodetool.control.Collect", json!({})),
            node("up", "nodetool.text.ToUppercase", json!({})),
            node("out", "nodetool.output.Output", json!({"name": "heard"})),
        ],
        "edges": [edge("m.chunk", "all.input_item"), edge("all.output", "out.value"), control],
    })
}
fn provider() -> Provider {
    Provider::new((&image(b"sea")).into(), true)
}
fn chunk(text: &str) -> Value {
    let fields = [("type", "chunk"), ("content", text)];
    let map: Map = fields
        .map(|(key, value)| (key.to_owned(), Value::from(value)))
        .into_iter()
        .collect();
    Value::map(map)
}
async fn push(up: &Up, name: &str, id: &str, value: Option<&str>) -> Result<bool, Status> {
    let request = PushInputRequest {
        job_id: "j".to_owned(),
        name: name.to_owned(),
        value: value.map(|text| (&chunk(text)).into()),
        finish: value.is_none(),
        input_id: id.to_owned(),
        ..PushInputRequest::default()
    };
    let answer = up.client().push_input(up.signed(request)).await?;
    Ok(answer.into_inner().created)
}
async fn control(up: &Up, node: &str, text: &str) -> Result<Map, Status> {
    let properties: Map = [("text".to_owned(), Value::from(text))].into_iter().collect();
    let request = SendControlRequest {
        job_id: "j".to_owned(),
        node_id: node.to_owned(),
        properties: Some((&properties).into()),
        wait: true,
    };
    let answer = up.client().send_control(up.signed(request)).await?.into_inner();
    Ok(Map::try_from(answer.outputs.unwrap()).unwrap())
}
async fn heard(up: &Up) -> Value {
    let job = up.end("j").await;
    assert_eq!(job.status(), JobStatus::Completed, "{job:?}");
    Map::try_from(job.outputs.unwrap()).unwrap()["heard"].clone()
}

#[tokio::test]
async fn k_134_values_are_pushed_once_each_until_the_input_is_finished() {
    for db in engines().await {
        let up = Up::new(&db, Settings::default(), provider()).await;
        up.run("j", &listening()).await.unwrap();
        for (id, value, created) in [("1", "a", true), ("1", "a", false), ("2", "b", true)] {
            let pushed = push(&up, "mic", id, Some(value)).await.unwrap();
            assert_eq!(pushed, created, "{} {id}", db.engine());
        }
        assert_eq!(
            up.get("j").await.status(),
            JobStatus::Running,
            "until it is finished"
        );
        push(&up, "mic", "3", None).await.unwrap();
        assert_eq!(
            heard(&up).await,
            Value::list(vec![Value::list(vec![chunk("a"), chunk("b")])])
        );
        let late = push(&up, "mic", "4", Some("c")).await.unwrap_err();
        assert_eq!(late.code(), Code::FailedPrecondition, "{late}");
    }
}
#[tokio::test]
async fn k_139_a_push_into_nothing_is_refused_and_changes_nothing() {
    for db in engines().await {
        let up = Up::new(&db, Settings::default(), provider()).await;
        up.run("done", &shout("x")).await.unwrap();
        assert_eq!(
            push(&up, "mic", "0", Some("a")).await.unwrap_err().code(),
            Code::NotFound,
            "no such run"
        );
        up.run("j", &listening()).await.unwrap();
        let unknown = push(&up, "ear", "1", Some("a")).await.unwrap_err();
        assert_eq!(unknown.code(), Code::InvalidArgument, "{unknown}");
        let nothing = PushInputRequest {
            job_id: "j".to_owned(),
            name: "mic".to_owned(),
            ..PushInputRequest::default()
        };
        let refused = up.client().push_input(up.signed(nothing)).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
        let foreign = PushInputRequest {
            job_id: "j".to_owned(),
            name: "mic".to_owned(),
            finish: true,
            ..PushInputRequest::default()
        };
        let refused = up.client().push_input(up.by("2", foreign)).await.unwrap_err();
        assert_eq!(
            refused.code(),
            Code::NotFound,
            "somebody else's run does not exist"
        );
        let unknown = control(&up, "out", "x").await.unwrap_err();
        assert_eq!(unknown.code(), Code::InvalidArgument, "{unknown}");
        push(&up, "mic", "2", None).await.unwrap();
        assert_eq!(heard(&up).await, Value::list(vec![Value::list(Vec::new())]));
    }
}
#[tokio::test]
async fn k_165_each_caller_of_a_controlled_node_gets_the_outputs_of_its_own_event() {
    for db in engines().await {
        let up = Up::new(&db, Settings::default(), provider()).await;
        up.run("j", &listening()).await.unwrap();
        let (one, two) = tokio::join!(control(&up, "up", "one"), control(&up, "up", "two"));
        assert_eq!(one.unwrap()["output"], Value::from("ONE"), "{}", db.engine());
        assert_eq!(two.unwrap()["output"], Value::from("TWO"));
        push(&up, "mic", "1", None).await.unwrap();
        heard(&up).await;
    }
}
#[tokio::test]
async fn g_4_what_was_pushed_and_sent_is_there_after_the_process_died() {
    for db in engines().await {
        let before = Up::new(&db, Settings::default(), provider()).await;
        before.run("j", &listening()).await.unwrap();
        push(&before, "mic", "1", Some("a")).await.unwrap();
        control(&before, "up", "one").await.unwrap();
        until(async || before.get("j").await.artifact_count == 1)
            .within(Duration::from_secs(20))
            .await;
        let after = before.successor(&db, provider()).await;
        assert!(
            !push(&after, "mic", "1", Some("a")).await.unwrap(),
            "{}",
            db.engine()
        );
        assert!(push(&after, "mic", "2", Some("b")).await.unwrap());
        push(&after, "mic", "3", None).await.unwrap();
        assert_eq!(
            heard(&after).await,
            Value::list(vec![Value::list(vec![chunk("a"), chunk("b")])])
        );
        // The event of the first process is no second artifact: `up`, `all` and `out` made one each.
        assert_eq!(after.get("j").await.artifact_count, 3);
    }
}

async fn resume(up: &Up, user: &str) -> Result<JobStatus, Status> {
    let request = ResumeJobRequest {
        job_id: "j".to_owned(),
        state: None,
        node_id: None,
    };
    let answer = up.client().resume_job(up.by(user, request)).await?.into_inner();
    Ok(answer.job.unwrap().status())
}
#[tokio::test]
async fn k_224_a_suspended_run_goes_on_when_it_is_resumed_and_only_then() {
    for db in engines().await {
        let before = Up::new(&db, Settings::default(), provider()).await;
        before.run("j", &listening()).await.unwrap();
        push(&before, "mic", "1", Some("a")).await.unwrap();
        let running = resume(&before, "1").await.unwrap_err();
        assert_eq!(running.code(), Code::FailedPrecondition, "{running}");
        // What a node that waits for something outside leaves behind.
        let state: Map = [("step".to_owned(), Value::Int(2))].into_iter().collect();
        let waits: Map = [
            ("node_id".to_owned(), Value::from("up")),
            ("state".to_owned(), Value::map(state)),
        ]
        .into_iter()
        .collect();
        before.stop().await;
        let tx = db.begin().await.unwrap();
        jobs::Entity::update_many()
            .col_expr(jobs::Column::Status, Expr::value("suspended"))
            .col_expr(
                jobs::Column::Suspension,
                Expr::value(Some(MapValue::from(&waits).encode_to_vec())),
            )
            .exec(&*tx)
            .await
            .unwrap();
        tx.commit().await.unwrap();
        let after = before.successor(&db, provider()).await;
        assert_eq!(
            after.get("j").await.status(),
            JobStatus::Suspended,
            "nobody takes it up"
        );
        assert_eq!(resume(&after, "2").await.unwrap_err().code(), Code::NotFound);
        assert_eq!(
            resume(&after, "1").await.unwrap(),
            JobStatus::Running,
            "{}",
            db.engine()
        );
        push(&after, "mic", "2", Some("b")).await.unwrap();
        push(&after, "mic", "3", None).await.unwrap();
        assert_eq!(
            heard(&after).await,
            Value::list(vec![Value::list(vec![chunk("a"), chunk("b")])])
        );
    }
}

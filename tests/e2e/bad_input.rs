//! Bad input gets one clear error that names node, handle and reason, and leaves nothing behind.

use atelier_cli::client::Refused;
use atelier_tests::{
    TestStack,
    stack::text,
    workflows::{edge, graph, node},
};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

fn text_node(id: &str) -> Value {
    node(id, "nodetool.text.Concat", json!({}))
}

#[tokio::test(flavor = "multi_thread")]
async fn graphs_that_cannot_run_say_which_node_and_why() -> anyhow::Result<()> {
    let stack = TestStack::start().await?;
    let cases = [
        (
            "a cycle",
            graph(
                vec![text_node("a"), text_node("b")],
                vec![edge("1", "a.output", "b.a"), edge("2", "b.output", "a.a")],
            ),
            json!({}),
            "graph.cycle",
            "a",
        ),
        (
            "an unknown type",
            graph(vec![node("x", "no.such.Type", json!({}))], vec![]),
            json!({}),
            "graph.unknown_type",
            "x",
        ),
        (
            "a dangling edge",
            graph(vec![text_node("a")], vec![edge("1", "ghost.output", "a.a")]),
            json!({}),
            "graph.unknown_endpoint",
            "ghost",
        ),
        (
            "a missing input",
            graph(
                vec![
                    node("i", "nodetool.input.StringInput", json!({"name": "idea"})),
                    node("o", "nodetool.output.Output", json!({"name": "o"})),
                ],
                vec![edge("1", "i.output", "o.value")],
            ),
            json!({}),
            "",
            "i",
        ),
        (
            "a param of the wrong type",
            graph(
                vec![
                    node(
                        "i",
                        "nodetool.input.IntegerInput",
                        json!({"name": "count", "value": 1}),
                    ),
                    node("o", "nodetool.output.Output", json!({"name": "o"})),
                ],
                vec![edge("1", "i.output", "o.value")],
            ),
            json!({"count": "many"}),
            "",
            "count",
        ),
    ];
    for (what, graph, params, code, names) in cases {
        let job = stack
            .client()
            .post("/api/v1/jobs?wait=30", &json!({"graph": graph, "params": params}))
            .await?;
        assert_eq!(text(&job, "status"), "failed", "{what}: {job}");
        let issues = job["issues"].to_string();
        let all = format!("{} {issues}", text(&job, "error"));
        assert!(all.contains(names), "{what} does not name {names}: {job}");
        assert!(
            code.is_empty() || issues.contains(code),
            "{what} is not {code}: {job}"
        );
        let checked = stack
            .client()
            .post("/api/v1/check", &json!({"graph": graph, "params": params}))
            .await?;
        assert_eq!(checked["ok"], json!(false), "{what} passes the check: {checked}");
        assert!(
            stack.of_job("generations", text(&job, "id")).await?.is_empty(),
            "{what} left a row"
        );
        assert!(
            stack.of_job("assets", text(&job, "id")).await?.is_empty(),
            "{what} left an asset"
        );
    }
    stack.stop().await;
    Ok(())
}
#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_graph_is_refused_and_leaves_no_job() -> anyhow::Result<()> {
    let stack = TestStack::start().await?;
    for body in [
        json!({}),
        json!({"graph": 5}),
        json!({"graph": {"nodes": {}}}),
        json!([1]),
        json!({"workflow": {"name": "x"}}),
    ] {
        let refused = stack
            .client()
            .post("/api/v1/jobs", &body)
            .await
            .expect_err("refused");
        let refused = refused.downcast_ref::<Refused>().expect("an answer");
        assert_eq!(refused.status, 400, "{body}: {refused:?}");
        assert!(
            !refused.message.is_empty() && !refused.reason.is_empty(),
            "{body}: {refused:?}"
        );
    }
    assert!(
        stack
            .client()
            .list("/api/v1/jobs", "jobs", &[], 10)
            .await?
            .is_empty()
    );
    stack.stop().await;
    Ok(())
}
#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_megabytes_of_json_are_refused_early() -> anyhow::Result<()> {
    let stack = TestStack::start().await?;
    let body = format!("{{\"graph\": \"{}\"}}", "x".repeat(200 * 1024 * 1024));
    let url = stack.client().base().join("/api/v1/jobs")?;
    let answer = reqwest::Client::builder()
        .build()?
        .post(url)
        .header("content-type", "application/json")
        .body(body)
        .send()
        .await;
    // The server may answer, or hang up on a body that it does not want to read.
    if let Ok(answer) = answer {
        assert_eq!(answer.status(), 413);
    }
    assert!(stack.client().alive().await);
    assert!(
        stack
            .client()
            .list("/api/v1/jobs", "jobs", &[], 10)
            .await?
            .is_empty()
    );
    stack.stop().await;
    Ok(())
}
#[tokio::test(flavor = "multi_thread")]
async fn w_005_w_006_garbage_frames_are_answered_and_the_socket_goes_on() -> anyhow::Result<()> {
    let stack = TestStack::start().await?;
    let mut socket = stack.socket().await?;
    for garbage in [
        Message::Binary(vec![0xc1].into()),
        Message::Text("{not json".into()),
    ] {
        socket.send_raw(garbage).await?;
        let answer = socket.wait(|frame| frame.get("error").is_some()).await?;
        assert_eq!(text(&answer, "error"), "invalid_frame");
        assert!(!text(&answer, "message").is_empty());
    }
    socket.send(&json!({"command": "get_status", "data": {}})).await?;
    let status = socket.wait(|frame| frame.get("active_jobs").is_some()).await?;
    assert_eq!(status["active_jobs"], json!([]));
    stack.stop().await;
    Ok(())
}

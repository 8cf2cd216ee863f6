//! Rows, costs, assets, node types, models, probes.

use atelier_proto::common::v1::{Money, Origin, Surface};
use atelier_proto::tracker::v1::{
    Attempt, CostGroup, CostSummary, Generation, GenerationStatus, SubmissionStatus,
};
use serde_json::json;

use crate::stack::Stack;

fn row() -> Generation {
    let origin = Origin {
        surface: Surface::Workflow.into(),
        job_id: Some("J".to_owned()),
        node_id: Some("g".to_owned()),
        ..Origin::default()
    };
    let attempt = Attempt {
        attempt_number: 1,
        kind: "main".to_owned(),
        submission: SubmissionStatus::Submitted.into(),
        resume_token: Some("secret".to_owned()),
        ..Attempt::default()
    };
    Generation {
        generation_id: "019a0000-0000".to_owned(),
        user_id: "1".to_owned(),
        status: GenerationStatus::Completed.into(),
        provider: "sketch".to_owned(),
        cost: Some(Money {
            amount: "0.040000000".to_owned(),
            currency: "USD".to_owned(),
        }),
        origin: Some(origin),
        attempts: vec![attempt],
        ..Generation::default()
    }
}

#[tokio::test]
async fn rows_are_listed_and_looked_at() {
    let stack = Stack::start().await;
    *stack.fakes.rows.lock().expect("lock") = vec![
        row(),
        Generation {
            user_id: "2".to_owned(),
            ..row()
        },
    ];
    let (status, page) = stack
        .get("/api/v1/generations?status=completed&since=2026-11-30&job_id=J&limit=5")
        .await;
    assert_eq!(
        (status, page["generations"].as_array().expect("list").len()),
        (200, 1)
    );
    let request = stack.fakes.list_requests.lock().expect("lock").remove(0);
    let filter = request.filter.expect("filter");
    assert_eq!(
        (filter.status(), request.page_size),
        (GenerationStatus::Completed, 5)
    );
    assert_eq!(filter.since.expect("since").seconds, 1_795_996_800);
    let (_, one) = stack.get("/api/v1/generations/019a0000").await;
    assert_eq!(
        (&one["cost"], &one["currency"], &one["job_id"]),
        (&json!("0.04"), &json!("USD"), &json!("J"))
    );
    assert_eq!(
        (&one["origin"]["surface"], &one["duration_ms"]),
        (&json!("workflow"), &json!(null))
    );
    assert_eq!(one["attempts"][0]["submission_status"], "submitted");
    assert!(!one.to_string().contains("secret"));
    assert_eq!(stack.get("/api/v1/generations/missing").await.0, 404);
}

#[tokio::test]
async fn a_wait_is_handed_to_the_ledger() {
    let stack = Stack::start().await;
    let row = Generation {
        generation_id: "019a0000".to_owned(),
        user_id: "1".to_owned(),
        status: GenerationStatus::Completed.into(),
        ..Generation::default()
    };
    stack.fakes.rows.lock().expect("lock").push(row);
    let (status, waited) = stack.get("/api/v1/generations/019a0000/await?timeout=7").await;
    assert_eq!(
        (status, &waited["generation"]["status"]),
        (200, &json!("completed"))
    );
    assert_eq!(waited["waited_seconds"], json!(7.0));
    assert_eq!(stack.get("/api/v1/generations/missing/await").await.0, 404);
    for wrong in ["0", "-1", "1801", "soon"] {
        let (status, _) = stack
            .get(&format!("/api/v1/generations/019a0000/await?timeout={wrong}"))
            .await;
        assert_eq!(status, 400, "{wrong}");
    }
}

#[tokio::test]
async fn a_cancel_says_what_became_of_it() {
    let stack = Stack::start().await;
    let done = json!({"generation_id": "running", "cancelled": true, "status": "cancelled"});
    assert_eq!(
        stack.post("/api/v1/generations/running/cancel", json!({})).await,
        (200, done)
    );
    let nothing = json!({"generation_id": "x", "cancelled": false, "error": "not running"});
    assert_eq!(
        stack.post("/api/v1/generations/x/cancel", json!({})).await,
        (200, nothing)
    );
}

#[tokio::test]
async fn costs_are_summed_up() {
    let stack = Stack::start().await;
    let cost = |amount: &str, currency: &str| Money {
        amount: amount.to_owned(),
        currency: currency.to_owned(),
    };
    *stack.fakes.costs.lock().expect("lock") = CostSummary {
        costs: vec![cost("0.240000000", "USD"), cost("3.000000000", "CREDITS:x")],
        call_count: 7,
        ..CostSummary::default()
    };
    let (status, costs) = stack.get("/api/v1/costs?group=provider").await;
    assert_eq!((status, &costs["total"]["amount"]), (200, &json!("0.24")));
    assert_eq!(
        costs["total"]["costs"][1],
        json!({"amount": "3.00", "currency": "CREDITS:x"})
    );
    assert_eq!(costs["groups"][0]["key"], "sketch");
    assert_eq!(
        stack.fakes.cost_requests.lock().expect("lock").remove(0).group(),
        CostGroup::Provider
    );
    let (status, error) = stack.get("/api/v1/costs?group=moon").await;
    assert_eq!(
        (status, &error["error"]["details"]["fields"][0]["field"]),
        (400, &json!("group"))
    );
}

#[tokio::test]
async fn assets_nodes_and_models_are_listed() {
    let stack = Stack::start().await;
    stack.fakes.add_asset("1", "A1", "image/png", b"x");
    stack.fakes.add_asset("2", "F1", "image/png", b"x");
    let (_, page) = stack.get("/api/v1/assets?content_type=image").await;
    assert_eq!(
        (page["assets"].as_array().expect("list").len(), &page["next"]),
        (1, &json!("more"))
    );
    assert_eq!(page["assets"][0]["url"], "/api/v1/assets/A1/content");
    assert_eq!(
        stack.get("/api/v1/assets/F1").await.1["error"]["reason"],
        "ASSET_NOT_FOUND"
    );
    let (_, nodes) = stack.get("/api/v1/nodes").await;
    assert_eq!(nodes["nodes"][0]["properties"][0]["type"], "str");
    assert_eq!(
        stack.get("/api/v1/nodes/nodetool.image.TextToImage").await.1["primary_output"],
        "output"
    );
    assert_eq!(stack.get("/api/v1/nodes/no.Such").await.0, 404);
    let (_, models) = stack.get("/api/v1/models?capability=text_to_image").await;
    assert_eq!(models["models"][0]["price"], "0.04 USD / image");
    assert_eq!(models["models"][0]["unavailable_reason"], json!(null));
}

#[tokio::test]
async fn probes_tell_what_is_not_ready() {
    let stack = Stack::start().await;
    assert_eq!(stack.get("/readyz").await, (200, json!({"status": "ready"})));
    assert_eq!(stack.get("/ready").await.0, 200);
    assert_eq!(stack.get("/health").await.0, 200);
    let gate = atelier_common::health::Gate::NotReady("connecting".to_owned());
    stack.deps.health.set("database", gate);
    let expected = json!({"status": "not_ready", "gates": [{"gate": "database", "reason": "connecting"}]});
    assert_eq!(stack.get("/readyz").await, (503, expected));
    assert_eq!(stack.get("/livez").await.0, 200);
    let page = stack
        .http
        .get(stack.url("/metrics"))
        .send()
        .await
        .expect("page")
        .text()
        .await
        .expect("text");
    assert!(
        page.contains("atelier_gateway_requests_total{method=\"GET\",route=\"/readyz\",status=\"503\"} "),
        "{page}"
    );
}

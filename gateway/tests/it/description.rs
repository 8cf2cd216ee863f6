//! The description of the interface in the repository is the one that is served.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::stack::Stack;

#[test]
fn openapi_json_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi.json");
    let made = atelier_gateway::openapi_json();
    if std::env::var_os("UPDATE_OPENAPI").is_some() {
        std::fs::write(&path, &made).expect("written");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == made,
        "openapi.json is stale; run this test with UPDATE_OPENAPI=1"
    );
}

#[tokio::test]
async fn the_description_is_served_and_complete() {
    let stack = Stack::start().await;
    let (status, served) = stack.get("/openapi.json").await;
    assert_eq!(status, 200);
    assert_eq!(
        served,
        serde_json::from_str::<Value>(&atelier_gateway::openapi_json()).expect("json")
    );
    assert!(served["openapi"].as_str().expect("version").starts_with("3.1"));
    let paths: BTreeSet<_> = served["paths"]
        .as_object()
        .expect("paths")
        .keys()
        .cloned()
        .collect();
    for path in [
        "/api/v1/jobs",
        "/api/v1/jobs/{id}",
        "/api/v1/jobs/{id}/events",
        "/api/v1/jobs/{id}/cancel",
        "/api/v1/jobs/{id}/escalations/{escalation_id}",
        "/api/v1/generations",
        "/api/v1/generations/{id}",
        "/api/v1/generations/{id}/cancel",
        "/api/v1/costs",
        "/api/v1/assets",
        "/api/v1/assets/{id}",
        "/api/v1/assets/{id}/content",
        "/api/v1/nodes",
        "/api/v1/nodes/{type}",
        "/api/v1/models",
        "/api/v1/check",
        "/api/storage/{key}",
        "/livez",
        "/readyz",
        "/metrics",
    ] {
        assert!(paths.contains(path), "{path} is not described");
    }
    let mut operations = BTreeSet::new();
    for methods in served["paths"].as_object().expect("paths").values() {
        for operation in methods.as_object().expect("methods").values() {
            let id = operation["operationId"].as_str().expect("id");
            assert!(operations.insert(id.to_owned()), "{id} is there twice");
        }
    }
    for schema in [
        "Job",
        "Generation",
        "Asset",
        "NodeType",
        "Model",
        "CostSummary",
        "EventFrame",
        "ErrorBody",
    ] {
        assert!(
            served["components"]["schemas"][schema].is_object(),
            "{schema} is not described"
        );
    }
}

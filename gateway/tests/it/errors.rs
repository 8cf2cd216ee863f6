//! Every error has one shape, whoever finds it.

use serde_json::{Value, json};

use crate::stack::{Stack, graph};

/// Checks the shape, and gives code, reason and the first bad field.
fn told(body: &Value) -> (&str, &str, &str) {
    let error = body["error"].as_object().unwrap_or_else(|| panic!("{body}"));
    let mut keys: Vec<_> = error.keys().map(String::as_str).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["code", "details", "message", "reason", "request_id"]);
    assert!(!error["request_id"].as_str().expect("id").is_empty());
    let field = body["error"]["details"]["fields"][0]["field"]
        .as_str()
        .unwrap_or_default();
    (
        error["code"].as_str().expect("code"),
        error["reason"].as_str().expect("reason"),
        field,
    )
}

#[tokio::test]
async fn bodies_that_are_wrong() {
    let stack = Stack::start().await;
    let send = |content_type: &'static str, body: &'static str| {
        let request = stack
            .http
            .post(stack.url("/api/v1/jobs"))
            .header("content-type", content_type)
            .body(body);
        async move {
            let response = request.send().await.expect("answer");
            (
                response.status().as_u16(),
                response.json::<Value>().await.expect("json"),
            )
        }
    };
    let (status, body) = send("application/json", "{not json").await;
    assert_eq!(
        (status, told(&body)),
        (400, ("invalid_argument", "MALFORMED_JSON", ""))
    );
    let (status, body) = send("application/json", "").await;
    assert_eq!(
        (status, told(&body)),
        (400, ("invalid_argument", "MALFORMED_JSON", ""))
    );
    let (status, body) = send("text/plain", "{}").await;
    assert_eq!(
        (status, told(&body)),
        (415, ("unsupported_media_type", "UNSUPPORTED_MEDIA_TYPE", ""))
    );
    let (status, body) = send("application/json; charset=utf-8", r#"{"graph": 7}"#).await;
    assert_eq!(
        (status, told(&body)),
        (400, ("invalid_argument", "INVALID_FIELD", "graph"))
    );
    let (status, body) = stack
        .post("/api/v1/jobs", json!({"graph": graph(), "parms": {}}))
        .await;
    assert_eq!(
        (status, told(&body)),
        (400, ("invalid_argument", "INVALID_FIELD", "parms"))
    );
    assert_eq!(stack.fakes.count_of_runs(), 0);
}

#[tokio::test]
async fn queries_that_are_wrong() {
    let stack = Stack::start().await;
    for (query, field) in [
        ("jobs?limit=0", "limit"),
        ("jobs?limit=501", "limit"),
        ("jobs?limit=x", "limit"),
        ("jobs?status=moon", "status"),
        ("jobs?statsu=running", "statsu"),
        ("generations?since=yesterday", "since"),
        ("generations?status=moon", "status"),
        ("assets?jobid=x", "jobid"),
    ] {
        let (status, body) = stack.get(&format!("/api/v1/{query}")).await;
        assert_eq!(
            (status, told(&body)),
            (400, ("invalid_argument", "INVALID_FIELD", field)),
            "{query}"
        );
    }
}

#[tokio::test]
async fn routes_that_are_wrong() {
    let stack = Stack::start().await;
    for path in [
        "/api/v1/moon",
        "/api/v1",
        "/api",
        "/v1/chat/completions",
        "/api/v1/jobs/J/moon",
    ] {
        let (status, body) = stack.get(path).await;
        assert_eq!(
            (status, told(&body)),
            (404, ("not_found", "ROUTE_NOT_FOUND", "")),
            "{path}"
        );
    }
    for (method, path) in [
        ("DELETE", "/api/v1/jobs"),
        ("PUT", "/api/v1/costs"),
        ("POST", "/livez"),
    ] {
        let method = reqwest::Method::from_bytes(method.as_bytes()).expect("method");
        let response = stack
            .http
            .request(method, stack.url(path))
            .send()
            .await
            .expect("answer");
        assert_eq!(response.status().as_u16(), 405, "{path}");
        assert!(response.headers().contains_key("allow"));
        assert_eq!(
            told(&response.json().await.expect("json")).1,
            "METHOD_NOT_ALLOWED"
        );
    }
    let (status, body) = stack.get("/ws").await;
    assert_eq!((status, told(&body).1), (426, "UPGRADE_REQUIRED"));
}

#[tokio::test]
async fn a_request_keeps_its_id() {
    let stack = Stack::start().await;
    let request = stack
        .http
        .get(stack.url("/api/v1/jobs/x"))
        .header("x-request-id", "mine");
    let response = request.send().await.expect("answer");
    assert_eq!(response.headers()["x-request-id"], "mine");
    let body: Value = response.json().await.expect("json");
    assert_eq!(body["error"]["request_id"], "mine");
    let response = stack.http.get(stack.url("/livez")).send().await.expect("answer");
    assert_eq!(response.headers()["x-request-id"].len(), 36);
}

#[tokio::test]
async fn a_service_that_is_away_is_told_without_its_address() {
    let stack = Stack::start().await;
    *stack.fakes.ledger_down.lock().expect("lock") = true;
    let (status, body) = stack.get("/api/v1/costs").await;
    assert_eq!((status, told(&body)), (503, ("unavailable", "UNAVAILABLE", "")));
    assert!(!body.to_string().contains("tcp"));
}

#[tokio::test]
async fn foreign_pages_and_rebound_names_are_refused() {
    let stack = Stack::start().await;
    for (header, value) in [("origin", "http://evil.example"), ("host", "evil.example:7777")] {
        let request = stack.http.get(stack.url("/api/v1/jobs")).header(header, value);
        let response = request.send().await.expect("answer");
        assert_eq!(response.status().as_u16(), 403);
        assert!(!response.headers().contains_key("access-control-allow-origin"));
        assert_eq!(told(&response.json().await.expect("json")).1, "ORIGIN_REFUSED");
    }
    let request = stack
        .http
        .get(stack.url("/api/v1/jobs"))
        .header("origin", "http://localhost:5173");
    let response = request.send().await.expect("answer");
    assert_eq!(response.status().as_u16(), 200);
    assert_eq!(
        response.headers()["access-control-allow-origin"],
        "http://localhost:5173"
    );
}

//! Saved workflows over REST and the socket.

use atelier_proto::kernel::v1::JobStatus;
use serde_json::{Value, json};

use crate::fakes::job_update;
use crate::stack::{Stack, graph};

fn other() -> Value {
    json!({"nodes": [{"id": "n2", "type": "nodetool.constant.String"}], "edges": []})
}

async fn saved(stack: &Stack) -> Value {
    let (status, workflow) = stack
        .post(
            "/api/v1/workflows",
            json!({"name": "Postcards", "graph": graph()}),
        )
        .await;
    assert_eq!(status, 201, "{workflow}");
    workflow
}

#[tokio::test]
async fn a_workflow_is_saved_shown_changed_and_deleted() {
    let stack = Stack::start().await;
    let body = json!({"name": "Postcards", "description": "d", "tags": ["a"], "settings": {"grid": 8},
        "params": {"topics": ["sea"]}, "run_mode": "app", "extra": {"x": 1}, "graph": graph(), "note": "first"});
    let key = [("idempotency-key", "k")];
    let (status, etag, made) = stack
        .send("POST", "/api/v1/workflows", &key, Some(body.clone()))
        .await;
    assert_eq!((status, etag.as_str()), (201, "\"r1\""), "{made}");
    for field in [
        "name",
        "description",
        "tags",
        "settings",
        "params",
        "run_mode",
        "extra",
        "graph",
    ] {
        assert_eq!(made[field], body[field], "{field}");
    }
    assert_eq!(made["created_at"], "2026-09-03T12:00:00.000Z");
    let (status, _, again) = stack.send("POST", "/api/v1/workflows", &key, Some(body)).await;
    assert_eq!((status, &again["id"]), (200, &made["id"]));
    let path = format!("/api/v1/workflows/{}", made["id"].as_str().expect("id"));
    assert_eq!(stack.get(&path).await, (200, made.clone()));
    let (_, page) = stack.get("/api/v1/workflows?query=Post&limit=10").await;
    assert_eq!(
        (page["workflows"].as_array().expect("list").len(), &page["next"]),
        (1, &json!(null))
    );
    assert!(page["workflows"][0].get("graph").is_none());
    let change = json!({"name": "Cards", "graph": other()});
    let (status, etag, changed) = stack
        .send("PATCH", &path, &[("if-match", "\"r1\"")], Some(change.clone()))
        .await;
    assert_eq!((status, etag.as_str()), (200, "\"r2\""));
    assert_eq!(
        (&changed["name"], &changed["version"], &changed["graph"]),
        (&json!("Cards"), &json!(2), &other())
    );
    for (method, body) in [("PATCH", Some(change)), ("DELETE", None)] {
        let (status, _, refused) = stack.send(method, &path, &[("if-match", "\"r1\"")], body).await;
        assert_eq!(
            (status, &refused["error"]["reason"]),
            (409, &json!("WORKFLOW_CHANGED"))
        );
        assert_eq!(refused["error"]["details"]["etag"], "r2");
    }
    assert_eq!(stack.send("DELETE", &path, &[], None).await.0, 204);
    assert_eq!(stack.send("DELETE", &path, &[], None).await.0, 404);
}

#[tokio::test]
async fn wrong_fields_are_named() {
    let stack = Stack::start().await;
    let with = |key: &str, value: Value| {
        let mut body = json!({"name": "n", "graph": graph()});
        body[key] = value;
        body
    };
    for (field, body) in [
        ("body", json!([])),
        ("name", json!({"graph": graph()})),
        ("graph", json!({"name": "n"})),
        ("graph.nodes", with("graph", json!({"edges": []}))),
        ("tags", with("tags", json!("a"))),
        ("tags", with("tags", json!([1]))),
        ("settings", with("settings", json!([]))),
        ("params", with("params", json!(7))),
        ("nmae", with("nmae", json!("n"))),
        ("expected_version", with("expected_version", json!(1))),
    ] {
        let (status, error) = stack.post("/api/v1/workflows", body).await;
        let told = &error["error"]["details"]["fields"][0]["field"];
        assert_eq!((status, told), (400, &json!(field)), "{error}");
    }
    let (_, page) = stack.get("/api/v1/workflows").await;
    assert_eq!(page["workflows"], json!([]));
    let (status, error) = stack.get("/api/v1/workflows?limit=0").await;
    assert_eq!(
        (status, &error["error"]["details"]["fields"][0]["field"]),
        (400, &json!("limit"))
    );
}

#[tokio::test]
async fn versions_are_listed_read_and_brought_back() {
    let stack = Stack::start().await;
    let id = saved(&stack).await["id"].as_str().expect("id").to_owned();
    let path = format!("/api/v1/workflows/{id}");
    stack
        .send("PATCH", &path, &[], Some(json!({"graph": other()})))
        .await;
    let (_, page) = stack.get(&format!("{path}/versions")).await;
    let numbers: Vec<_> = page["versions"]
        .as_array()
        .expect("list")
        .iter()
        .map(|row| &row["version"])
        .collect();
    assert_eq!(
        (numbers, &page["next"]),
        (vec![&json!(2), &json!(1)], &json!("more"))
    );
    let (_, first) = stack.get(&format!("{path}/versions/1")).await;
    assert_eq!(first["graph"], graph());
    assert_eq!(stack.get(&format!("{path}/versions/9")).await.0, 404);
    assert_eq!(stack.get(&format!("{path}/versions/x")).await.0, 400);
    let (status, _, restored) = stack
        .send("POST", &format!("{path}/versions/1/restore"), &[], None)
        .await;
    assert_eq!(
        (status, &restored["version"], &restored["graph"]),
        (200, &json!(3), &graph())
    );
}

#[tokio::test]
async fn files_go_in_and_out() {
    let stack = Stack::start().await;
    let file = json!({"id": "theirs", "graph": graph(), "name": "Theirs", "invented": 7});
    let (status, made) = stack
        .post("/api/v1/workflows/import?name=Mine", file.clone())
        .await;
    assert_eq!(
        (status, &made["name"], &made["extra"]["invented"]),
        (201, &json!("Mine"), &json!(7))
    );
    let path = format!("/api/v1/workflows/{}/export", made["id"].as_str().expect("id"));
    let (_, out) = stack.get(&path).await;
    assert_eq!((&out["graph"], &out["asked"]), (&graph(), &json!([0, 0, 0])));
    let (_, out) = stack
        .get(&format!(
            "{path}?spelling=camel&values=properties&flat=true&version=1"
        ))
        .await;
    assert_eq!(out["asked"], json!([2, 2, 1]));
    for (query, field) in [
        ("spelling=kebab", "spelling"),
        ("values=x", "values"),
        ("flat=x", "flat"),
    ] {
        let (status, error) = stack.get(&format!("{path}?{query}")).await;
        assert_eq!(
            (status, &error["error"]["details"]["fields"][0]["field"]),
            (400, &json!(field))
        );
    }
}

#[tokio::test]
async fn w_030_a_saved_workflow_runs_by_its_id_everywhere() {
    let stack = Stack::start().await;
    let id = saved(&stack).await["id"].as_str().expect("id").to_owned();
    stack
        .send(
            "PATCH",
            &format!("/api/v1/workflows/{id}"),
            &[],
            Some(json!({"graph": other()})),
        )
        .await;
    let run = json!({"job_id": "A", "params": {"a": 1}});
    let (status, job) = stack.post(&format!("/api/v1/workflows/{id}/run"), run).await;
    assert_eq!(
        (status, &job["workflow_id"], &job["workflow_version"]),
        (201, &json!(id), &json!(2))
    );
    let run = json!({"workflow_id": id, "workflow_version": 1, "job_id": "B"});
    let (status, job) = stack.post("/api/v1/jobs", run).await;
    assert_eq!((status, &job["workflow_version"]), (201, &json!(1)));
    assert_eq!(stack.fakes.request_of("B").graph_json, Some(graph().to_string()));
    let (status, error) = stack.post("/api/v1/jobs", json!({"workflow_id": "none"})).await;
    assert_eq!(
        (status, &error["error"]["reason"]),
        (404, &json!("WORKFLOW_NOT_FOUND"))
    );
    let wrong = json!({"workflow_id": id, "workflow_version": "x"});
    assert_eq!(stack.post("/api/v1/jobs", wrong).await.0, 400);
    let mut socket = stack.text_socket().await;
    socket
        .command("run_job", json!({"workflow_id": id, "job_id": "C", "params": {}}))
        .await;
    let ack = socket.next().await;
    assert_eq!(ack, json!({"message": "Job started", "workflow_id": id}));
    stack.fakes.emit("C", job_update(JobStatus::Running));
    let frame = socket.next().await;
    assert_eq!(
        (&frame["type"], &frame["job_id"]),
        (&json!("job_update"), &json!("C"))
    );
    socket
        .command("run_job", json!({"workflow_id": "none", "job_id": "D"}))
        .await;
    let frames = socket.until_the_end_of("D").await;
    let last = frames.last().expect("frame");
    assert_eq!(
        (&last["status"], &last["error_code"]),
        (&json!("failed"), &json!("NOT_FOUND"))
    );
}

#[tokio::test]
async fn workflows_of_others_are_missing() {
    let stack = Stack::start().await;
    stack.fakes.add_workflow("2", "theirs");
    let mut answers = Vec::new();
    for id in ["theirs", "missing"] {
        let path = format!("/api/v1/workflows/{id}");
        for (method, path, body) in [
            ("GET", path.clone(), None),
            ("PATCH", path.clone(), Some(json!({"name": "x"}))),
            ("DELETE", path.clone(), None),
            ("GET", format!("{path}/versions"), None),
            ("GET", format!("{path}/versions/1"), None),
            ("POST", format!("{path}/versions/1/restore"), None),
            ("GET", format!("{path}/export"), None),
            ("POST", format!("{path}/run"), Some(json!({}))),
            ("GET", format!("/api/workflows/{id}"), None),
            (
                "POST",
                "/api/v1/check".to_owned(),
                Some(json!({"workflow_id": id})),
            ),
        ] {
            let (status, _, mut error) = stack.send(method, &path, &[], body).await;
            assert_eq!(status, 404, "{method} {path}");
            error["error"]
                .as_object_mut()
                .expect("error")
                .remove("request_id");
            answers.push(error);
        }
    }
    let (theirs, missing) = answers.split_at(answers.len() / 2);
    assert_eq!(theirs, missing);
}

#[tokio::test]
async fn w_305_w_146_clients_of_the_field_list_and_save_workflows() {
    let stack = Stack::start().await;
    let body = json!({"name": "Theirs", "access": "private", "graph": graph(), "thumbnail": "t"});
    let (status, made) = stack.post("/api/workflows", body).await;
    assert_eq!(
        (status, &made["name"], &made["thumbnail"]),
        (200, &json!("Theirs"), &json!("t"))
    );
    for key in ["tool_name", "workspace_id", "html_app", "input_schema"] {
        assert!(made.get(key).is_some_and(Value::is_null), "{key}");
    }
    let id = made["id"].as_str().expect("id");
    let path = format!("/api/workflows/{id}");
    // W-020
    assert_eq!(
        stack.get("/api/workflows/").await,
        stack.get("/api/workflows").await
    );
    assert_eq!(stack.get("/api/workflows/").await.1["workflows"][0]["id"], id);
    assert_eq!(stack.get("/api/workflows/names").await.1, json!({id: "Theirs"}));
    let put =
        |at: &str| json!({"name": "New", "graph": other(), "thumbnail": "u", "expected_updated_at": at});
    let (status, _, error) = stack
        .send("PUT", &path, &[], Some(put("2020-01-01T00:00:00.000Z")))
        .await;
    assert_eq!(
        (status, &error["error"]["reason"]),
        (409, &json!("WORKFLOW_CHANGED"))
    );
    assert_eq!(stack.get(&path).await.1, made);
    let at = made["updated_at"].as_str().expect("time");
    let (status, _, saved) = stack.send("PUT", &path, &[], Some(put(at))).await;
    assert_eq!(
        (status, &saved["name"], &saved["graph"]),
        (200, &json!("New"), &other())
    );
    assert_eq!(
        (&saved["thumbnail"], &saved["access"]),
        (&json!("u"), &json!("private"))
    );
    // A PUT to an id that is not there saves it.
    let (status, _, made) = stack
        .send("PUT", "/api/workflows/chosen", &[], Some(json!({"name": "C"})))
        .await;
    assert_eq!((status, &made["id"]), (200, &json!("chosen")));
    assert_eq!(
        stack.post("/api/workflows", json!({"graph": graph()})).await.0,
        400
    );
    assert_eq!(stack.send("DELETE", &path, &[], None).await.0, 204);
}

#[tokio::test]
async fn w_149_a_workflow_runs_in_the_background_or_to_its_end() {
    let stack = Stack::start().await;
    let id = saved(&stack).await["id"].as_str().expect("id").to_owned();
    let path = format!("/api/workflows/{id}/run");
    let (status, run) = stack.post(&path, json!({"params": {}, "background": true})).await;
    assert_eq!(
        (status, &run["status"], &run["workflow_id"]),
        (200, &json!("running"), &json!(id))
    );
    let mut socket = stack.text_socket().await;
    socket
        .command("reconnect_job", json!({"job_id": run["job_id"]}))
        .await;
    assert_eq!(socket.next().await["type"], "job_resumed");
    *stack.fakes.script.lock().expect("lock") =
        vec![job_update(JobStatus::Running), job_update(JobStatus::Completed)];
    let (_, run) = stack.post(&path, json!({"params": {}})).await;
    assert_eq!(
        (&run["status"], &run["message_count"]),
        (&json!("completed"), &json!(2))
    );
}

#[tokio::test]
async fn workflows_are_asked_for_over_the_socket() {
    let stack = Stack::start().await;
    let id = saved(&stack).await["id"].as_str().expect("id").to_owned();
    let mut socket = stack.text_socket().await;
    let mut ask = async |command: &str, data: Value| {
        socket
            .send(json!({"command": command, "request_id": "r", "data": data}))
            .await;
        socket.next().await
    };
    let listed = ask("list_workflows", json!({"limit": 10})).await;
    assert_eq!(listed["result"]["workflows"][0]["id"], id, "{listed}");
    assert_eq!(
        ask("get_workflow", json!({"id": id})).await["result"]["graph"],
        graph()
    );
    let missing = ask("get_workflow", json!({"id": "x"})).await;
    assert_eq!(
        (&missing["error"]["code"], &missing["error"]["apiCode"]),
        (&json!("NOT_FOUND"), &json!("WORKFLOW_NOT_FOUND"))
    );
    assert_eq!(
        ask("get_workflow", json!({})).await["error"]["code"],
        "INVALID_INPUT"
    );
}

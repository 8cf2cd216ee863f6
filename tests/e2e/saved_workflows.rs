//! A workflow is imported, run by its id, edited, run again, exported; it outlives a restart, and nobody else sees it.

use atelier_cli::client::{Client, Refused};
use atelier_common::identity::Caller;
use atelier_proto::{
    kernel::v1::{
        ExportWorkflowRequest, GetWorkflowRequest, ListWorkflowsRequest, RunJobRequest,
        UpdateWorkflowRequest, job_service_client::JobServiceClient,
        workflow_service_client::WorkflowServiceClient,
    },
    reason::reason_of,
};
use atelier_tests::{
    TestStack, atelier,
    process::outcome,
    stack::text,
    workflows::{edge, graph, node},
};
use serde_json::{Value, json};

/// A greeting in capitals.
fn greeting(word: &str) -> Value {
    graph(
        vec![
            node(
                "in",
                "nodetool.input.StringInput",
                json!({"name": "who", "value": "you"}),
            ),
            node(
                "say",
                "nodetool.text.FormatText",
                json!({"template": format!("{word} {{{{ who }}}}")}),
            ),
            node("out", "nodetool.output.Output", json!({"name": "said"})),
        ],
        vec![
            edge("1", "in.output", "say.who"),
            edge("2", "say.output", "out.value"),
        ],
    )
}
fn file() -> Value {
    json!({"id": "theirs", "name": "Greeting", "description": "Says it", "tags": ["start"], "access": "private",
        "thumbnail_url": null, "settings": {"grid": 8}, "params": {"who": "world"}, "invented": {"deep": [1, null]},
        "graph": greeting("hello")})
}
async fn run(client: &Client, id: &str, body: Value) -> anyhow::Result<Value> {
    client
        .post(&format!("/api/v1/workflows/{id}/run?wait=60"), &body)
        .await
}
fn said(job: &Value) -> &Value {
    &job["outputs"]["said"][0]
}
fn refused<T>(answer: anyhow::Result<T>) -> (u16, String) {
    let error = answer.err().expect("a refusal");
    let refused = error.downcast_ref::<Refused>().expect("a refusal of the server");
    (refused.status, refused.reason.clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn w_030_a_workflow_is_imported_run_edited_and_exported_across_a_restart() -> anyhow::Result<()> {
    let stack = TestStack::start().await?;
    let client = stack.client().clone();
    let made = client.post("/api/v1/workflows/import", &file()).await?;
    let id = text(&made, "id").to_owned();
    assert_ne!(id, "theirs");
    let path = format!("/api/v1/workflows/{id}");

    let first = run(&client, &id, json!({"job_id": "first"})).await?;
    assert_eq!(
        (text(&first, "status"), said(&first)),
        ("completed", &json!("hello world")),
        "{first}"
    );
    assert_eq!(
        (text(&first, "workflow_id"), &first["workflow_version"]),
        (id.as_str(), &json!(1))
    );

    let edited = client
        .patch(
            &path,
            &json!({"graph": greeting("goodbye"), "note": "sad", "expected_version": 1}),
        )
        .await?;
    assert_eq!(edited["version"], 2);
    let late = client
        .patch(&path, &json!({"graph": greeting("late"), "expected_version": 1}))
        .await;
    assert_eq!(refused(late), (409, "WORKFLOW_CHANGED".to_owned()));
    let second = run(&client, &id, json!({"params": {"who": "all"}})).await?;
    assert_eq!(
        (said(&second), &second["workflow_version"]),
        (&json!("goodbye all"), &json!(2))
    );
    let old = run(&client, &id, json!({"version": 1})).await?;
    assert_eq!(said(&old), "hello world");

    let stack = stack.restart().await?;
    let client = stack.client().clone();
    assert_eq!(client.get(&path, &[]).await?, edited);
    let versions = client
        .list(&format!("{path}/versions"), "versions", &[], 10)
        .await?;
    let told: Vec<_> = versions
        .iter()
        .map(|row| (&row["version"], text(row, "note")))
        .collect();
    assert_eq!(told, [(&json!(2), "sad"), (&json!(1), "")]);
    let third = run(&client, &id, json!({})).await?;
    assert_eq!(said(&third), "goodbye world");
    // The run that was asked for before the restart, and before the edit, is still that run.
    let again = run(&client, &id, json!({"job_id": "first"})).await?;
    assert_eq!(
        (said(&again), &again["workflow_version"]),
        (&json!("hello world"), &json!(1))
    );

    client
        .post(&format!("{path}/versions/1/restore"), &json!({}))
        .await?;
    let out = client.get(&format!("{path}/export"), &[]).await?;
    for key in [
        "name",
        "description",
        "tags",
        "settings",
        "params",
        "invented",
        "access",
        "graph",
    ] {
        assert_eq!(out[key], file()[key], "{key}");
    }
    for (spelling, values) in [("snake", "data"), ("camel", "properties")] {
        let query = [
            ("spelling", spelling.to_owned()),
            ("values", values.to_owned()),
            ("flat", "true".to_owned()),
        ];
        let out = client.get(&format!("{path}/export"), &query).await?;
        let copy = client.post("/api/v1/workflows/import", &out).await?;
        let copied = run(&client, text(&copy, "id"), json!({})).await?;
        assert_eq!(said(&copied), "hello world", "{spelling} {values}");
    }

    client.delete(&path).await?;
    assert_eq!(
        refused(client.get(&path, &[]).await),
        (404, "WORKFLOW_NOT_FOUND".to_owned())
    );
    let gone = run(&client, &id, json!({})).await;
    assert_eq!(refused(gone), (404, "WORKFLOW_NOT_FOUND".to_owned()));
    assert_eq!(
        text(&client.get("/api/v1/jobs/first", &[]).await?, "status"),
        "completed"
    );
    stack.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_files_are_refused_and_leave_nothing() -> anyhow::Result<()> {
    let stack = TestStack::start().await?;
    let client = stack.client();
    for bad in [
        json!([]),
        json!({"name": "x"}),
        json!({"graph": {"nodes": 7, "edges": []}}),
        json!({"graph": {"nodes": [{"id": "a"}], "edges": []}}),
        json!({"nodes": [], "tags": [7]}),
        json!({"nodes": [], "name": "n".repeat(201)}),
        json!({"nodes": [], "extra": "y".repeat(2 * 1024 * 1024)}),
    ] {
        let (status, _) = refused(client.post("/api/v1/workflows/import", &bad).await);
        assert_eq!(status, 400, "{:.80}", bad.to_string());
    }
    let large = json!({"nodes": [], "edges": [], "name": "n", "x": 1, "graph": {"nodes": [], "edges": [],
        "x": "y".repeat(9 * 1024 * 1024)}});
    assert_eq!(
        refused(client.post("/api/v1/workflows/import", &large).await).0,
        400
    );
    assert!(
        client
            .list("/api/v1/workflows", "workflows", &[], 10)
            .await?
            .is_empty()
    );
    // What cannot run may be saved, and a run of it says why.
    let broken = json!({"name": "b", "nodes": [node("x", "no.such.Type", json!({}))], "edges": []});
    let saved = client.post("/api/v1/workflows/import", &broken).await?;
    let job = run(client, text(&saved, "id"), json!({})).await?;
    assert_eq!(
        (text(&job, "status"), text(&job["issues"][0], "node_id")),
        ("failed", "x")
    );
    let checked = client
        .post("/api/v1/check", &json!({"workflow_id": saved["id"]}))
        .await?;
    assert_eq!(
        (&checked["ok"], text(&checked["issues"][0], "code")),
        (&json!(false), "graph.unknown_type")
    );
    stack.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_sees_runs_or_changes_the_workflow_of_another_user() -> anyhow::Result<()> {
    let stack = TestStack::start().await?;
    let made = stack.client().post("/api/v1/workflows/import", &file()).await?;
    let id = text(&made, "id").to_owned();
    let kernel = stack.stack()?.peers().get("kernel")?;
    let (mut workflows, mut jobs) = (
        WorkflowServiceClient::new(kernel.clone()),
        JobServiceClient::new(kernel),
    );
    let other = Caller::new("2", ["*"]);
    let signer = stack.stack()?.signer().clone();
    let mut told = Vec::new();
    for workflow_id in [id.clone(), "missing".to_owned()] {
        let get = GetWorkflowRequest {
            workflow_id: workflow_id.clone(),
        };
        let update = UpdateWorkflowRequest {
            workflow_id: workflow_id.clone(),
            name: Some("Mine".to_owned()),
            ..UpdateWorkflowRequest::default()
        };
        let export = ExportWorkflowRequest {
            workflow_id: workflow_id.clone(),
            ..ExportWorkflowRequest::default()
        };
        let start = RunJobRequest {
            workflow_id: Some(workflow_id.clone()),
            ..RunJobRequest::default()
        };
        for status in [
            workflows.get_workflow(signer.request(get, &other)).await.err(),
            workflows
                .update_workflow(signer.request(update, &other))
                .await
                .err(),
            workflows
                .export_workflow(signer.request(export, &other))
                .await
                .err(),
            jobs.run_job(signer.request(start, &other)).await.err(),
        ] {
            let status = status.expect("a refusal");
            assert_eq!(reason_of(&status), "WORKFLOW_NOT_FOUND");
            told.push(status.message().replace(&workflow_id, "ID"));
        }
    }
    assert_eq!(told[..4], told[4..]);
    let listed = workflows
        .list_workflows(signer.request(ListWorkflowsRequest::default(), &other))
        .await?;
    assert!(listed.into_inner().workflows.is_empty());
    let after = stack
        .client()
        .get(&format!("/api/v1/workflows/{id}"), &[])
        .await?;
    assert_eq!(after, made);
    stack.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_saves_runs_and_checks_workflows() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let files = tempfile::tempdir()?;
    let write = |name: &str, content: &str| -> anyhow::Result<String> {
        let path = files.path().join(name);
        std::fs::write(&path, content)?;
        Ok(path.display().to_string())
    };
    let hello = write("hello.json", &file().to_string())?;
    let goodbye = write("goodbye.json", &json!({"graph": greeting("goodbye")}).to_string())?;
    let broken = graph(
        vec![
            node("a", "no.such.Type", json!({})),
            node("b", "nodetool.text.Concat", json!({})),
        ],
        vec![edge("1", "ghost.output", "b.a")],
    );
    let broken = write("broken.json", &broken.to_string())?;
    let nonsense = write("nonsense.json", "nonsense")?;
    let command = async |arguments: &[&str]| -> anyhow::Result<(Option<i32>, String, String)> {
        let done = outcome(atelier(data.path(), arguments)?).await?;
        Ok((done.status.code(), done.stdout, done.stderr))
    };

    let (code, out, talk) = command(&["workflows", "import", &hello, "--json"]).await?;
    assert_eq!(code, Some(0), "{talk}");
    let made: Value = serde_json::from_str(&out)?;
    let id = text(&made, "id");
    let (code, out, talk) = command(&["run", "Greeting", "--json", "-p", "who=you"]).await?;
    assert_eq!(code, Some(0), "{talk}");
    let summary: Value = serde_json::from_str(out.lines().last().unwrap_or_default())?;
    assert_eq!(
        (text(&summary, "workflow_id"), text(&summary, "status")),
        (id, "completed")
    );
    assert!(out.contains("hello you"), "{out}");
    let (_, out, _) = command(&["workflows", "save", id, &goodbye, "--note", "sad"]).await?;
    assert_eq!(out, "Greeting is saved as version 2.\n");
    let (code, _, talk) = command(&["workflows", "save", id, &hello, "--expect", "1"]).await?;
    assert!(code == Some(1) && talk.contains("version 2"), "{talk}");
    let (_, out, _) = command(&["workflows", "run", id, "--json"]).await?;
    assert!(out.contains("goodbye world"), "{out}");
    let (_, out, _) = command(&["run", id, "--at", "1", "--json"]).await?;
    assert!(out.contains("hello world"), "{out}");
    let (_, out, _) = command(&["workflows", "versions", id]).await?;
    assert!(out.contains("sad") && out.lines().count() == 3, "{out}");
    let (_, out, _) = command(&["workflows", "list", "-q", "greet"]).await?;
    assert!(out.contains(id), "{out}");
    let (_, out, _) = command(&["workflows", "export", id, "--at", "1"]).await?;
    let exported: Value = serde_json::from_str(&out)?;
    assert_eq!(exported["graph"], file()["graph"]);
    let (code, _, talk) = command(&["run", "Nothing"]).await?;
    assert!(code == Some(1) && talk.contains("no saved workflow"), "{talk}");

    let (code, out, _) = command(&["check", &hello, &goodbye]).await?;
    assert_eq!((code, out.lines().count()), (Some(0), 2));
    let (code, out, _) = command(&["check", &hello, &broken, "--json"]).await?;
    assert_eq!(code, Some(1));
    let lines: Vec<Value> = out.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let wrong: Vec<_> = lines[1]["issues"].as_array().into_iter().flatten().collect();
    assert_eq!((&lines[0]["ok"], &lines[1]["ok"]), (&json!(true), &json!(false)));
    for (code, node_id) in [("graph.unknown_type", "a"), ("graph.unknown_endpoint", "ghost")] {
        assert!(
            wrong
                .iter()
                .any(|issue| text(issue, "code") == code && text(issue, "node_id") == node_id),
            "{out}"
        );
    }
    let (code, out, talk) = command(&["check", &nonsense, &broken, "missing.json"]).await?;
    assert_eq!(code, Some(2), "{talk}");
    assert!(out.contains("graph.unknown_type") && talk.contains("not JSON") && talk.contains("missing.json"));

    let (code, out, _) = command(&["nodes", "get", "nodetool.text.ToUppercase"]).await?;
    assert!(
        code == Some(0) && out.contains("INPUT") && out.contains("OUTPUT"),
        "{out}"
    );
    let (_, out, _) = command(&["nodes", "list", "--namespace", "nodetool.text", "--json"]).await?;
    assert!(out.lines().any(|line| line.contains("nodetool.text.Concat")));
    let (code, _, talk) = command(&["nodes", "get", "no.such.Type"]).await?;
    assert!(code == Some(1) && talk.contains("was not found"), "{talk}");
    let (code, _, talk) = command(&["jobs", "push", "none", "in", "1"]).await?;
    assert_eq!(code, Some(1), "{talk}");
    let (code, _, _) = command(&["workflows", "delete", id]).await?;
    assert_eq!(code, Some(0));
    let (code, _, talk) = command(&["workflows", "get", id]).await?;
    assert!(code == Some(1) && talk.contains("was not found"), "{talk}");
    Ok(())
}

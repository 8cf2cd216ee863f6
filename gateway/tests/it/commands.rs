//! Commands of the socket, by the ids of the wire specification 2.8.

use atelier_proto::kernel::v1::{EventDetail, JobStatus};
use atelier_proto::reason::{self, Problem};
use atelier_proto::value::{Map, Value as Wire};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;
use tonic::Code;

use crate::fakes::job_update;
use crate::stack::{Stack, graph};

pub fn simple_script(stack: &Stack) {
    *stack.fakes.script.lock().expect("lock") =
        vec![job_update(JobStatus::Running), job_update(JobStatus::Completed)];
}

/// A run that goes on, with so many events.
pub fn running(stack: &Stack, job_id: &str, events: usize) {
    stack.fakes.add_run("1", job_id, JobStatus::Running);
    for _ in 0..events {
        stack.fakes.emit(job_id, job_update(JobStatus::Running));
    }
}

pub fn seqs(frames: &[Value]) -> Vec<i64> {
    frames
        .iter()
        .filter_map(|frame| frame["job_seq"].as_i64())
        .collect()
}

#[tokio::test]
async fn w_030_a_run_is_acknowledged_and_ends_with_one_terminal_frame() {
    let stack = Stack::start().await;
    stack.fakes.add_workflow("1", "W");
    simple_script(&stack);
    let mut socket = stack.socket().await;
    socket
        .command(
            "run_job",
            json!({"workflow_id": "W", "job_id": "J", "params": {}}),
        )
        .await;
    let frames = socket.until_the_end().await;
    assert!(frames.contains(&json!({"message": "Job started", "workflow_id": "W"})));
    let running =
        json!({"type": "job_update", "job_id": "J", "workflow_id": "W", "job_seq": 1, "status": "running"});
    assert!(frames.contains(&running));
    socket.is_quiet().await;
}

#[tokio::test]
async fn w_031_the_mobile_frame_is_taken() {
    let stack = Stack::start().await;
    simple_script(&stack);
    let mut socket = stack.socket().await;
    let data = json!({"type": "run_job_request", "workflow_id": "W", "job_id": "J", "params": {},
        "resource_limits": {}, "auth_token": "local_token", "explicit_types": false});
    socket
        .send(json!({"type": "run_job", "command": "run_job", "data": data, "extra": 1}))
        .await;
    let frames = socket.until_the_end().await;
    assert!(frames.contains(&json!({"message": "Job started", "workflow_id": "W"})));
}

#[tokio::test]
async fn w_032_neither_graph_nor_workflow() {
    let stack = Stack::start().await;
    let mut socket = stack.socket().await;
    socket.command("run_job", json!({"params": {}})).await;
    let reply = socket.next().await;
    assert_eq!(reply["error"], "invalid_command");
    assert!(reply["details"].is_string());
    assert_eq!(stack.fakes.count_of_runs(), 0);
}

#[tokio::test]
async fn w_033_a_graph_wins_and_the_workflow_is_the_routing_key() {
    let stack = Stack::start().await;
    simple_script(&stack);
    let mut socket = stack.socket().await;
    socket
        .command(
            "run_job",
            json!({"workflow_id": "W", "graph": graph(), "job_id": "J"}),
        )
        .await;
    for frame in socket
        .until_the_end()
        .await
        .iter()
        .filter(|frame| frame.get("type").is_some())
    {
        assert_eq!(frame["workflow_id"], "W");
    }
    let request = stack.fakes.request_of("J");
    let given: Value = serde_json::from_str(&request.graph_json.expect("graph")).expect("json");
    assert_eq!(given, graph());
}

#[tokio::test]
async fn a_run_without_an_id_gets_one_and_params_arrive_without_loss() {
    let stack = Stack::start().await;
    stack.fakes.add_workflow("1", "W");
    simple_script(&stack);
    let mut socket = stack.socket().await;
    let params = rmpv::Value::Map(vec![
        ("raw".into(), rmpv::Value::Binary(vec![0, 255])),
        ("big".into(), rmpv::Value::from(i64::MAX)),
        ("half".into(), rmpv::Value::F64(0.5)),
    ]);
    let data = rmpv::Value::Map(vec![
        ("workflow_id".into(), "W".into()),
        ("params".into(), params),
    ]);
    let command = rmpv::Value::Map(vec![("command".into(), "run_job".into()), ("data".into(), data)]);
    let mut pack = Vec::new();
    rmpv::encode::write_value(&mut pack, &command).expect("packed");
    socket.send_raw(Message::binary(pack)).await;
    let frames = socket.until_the_end().await;
    let job_id = frames.last().expect("last")["job_id"]
        .as_str()
        .expect("id")
        .to_owned();
    assert_eq!(job_id.len(), 36);
    let params = Map::try_from(stack.fakes.request_of(&job_id).params.expect("params")).expect("map");
    assert_eq!(params["raw"], Wire::Bytes(vec![0, 255].into()));
    assert_eq!(params["big"], Wire::Int(i64::MAX));
    assert_eq!(params["half"], Wire::Float(0.5));
}

#[tokio::test]
async fn w_036_a_queued_run_is_told_as_cancelled_before_the_reply() {
    let stack = Stack::start().await;
    *stack.fakes.queues.lock().expect("lock") = true;
    let mut socket = stack.socket().await;
    // Seen by the one that started it, and by one that did not.
    for (job_id, watched) in [("J", true), ("K", false)] {
        let mut starter = stack.socket().await;
        let one = if watched { &mut socket } else { &mut starter };
        one.command("run_job", json!({"graph": graph(), "job_id": job_id}))
            .await;
        one.until(|frame| frame["message"] == "Job started").await;
        socket.command("cancel_job", json!({"job_id": job_id})).await;
        let frames = socket
            .until(|frame| frame["message"] == "Queued job cancelled")
            .await;
        assert_eq!(frames.len(), 2, "{frames:?}");
        assert_eq!(
            (&frames[0]["type"], &frames[0]["status"]),
            (&json!("job_update"), &json!("cancelled"))
        );
        let ack = json!({"message": "Queued job cancelled", "job_id": job_id, "workflow_id": ""});
        assert_eq!(frames[1], ack);
        socket.is_quiet().await;
    }
}

#[tokio::test]
async fn w_037_a_running_run_is_cancelled_and_nothing_follows() {
    let stack = Stack::start().await;
    let mut socket = stack.socket().await;
    socket
        .command("run_job", json!({"graph": graph(), "job_id": "J"}))
        .await;
    socket.until(|frame| frame["message"] == "Job started").await;
    stack.fakes.emit("J", job_update(JobStatus::Running));
    socket.until(|frame| frame["status"] == "running").await;
    socket
        .command("cancel_job", json!({"job_id": "J", "workflow_id": "W"}))
        .await;
    let mut frames = [socket.next().await, socket.next().await];
    frames.sort_by_key(|frame| frame["job_seq"].as_i64());
    let ack = json!({"message": "Job cancellation requested", "job_id": "J", "workflow_id": "W"});
    assert_eq!(frames[0], ack);
    assert_eq!(frames[1]["status"], "cancelled");
    socket.is_quiet().await;
}

#[tokio::test]
async fn w_038_and_039_a_cancel_needs_a_run_of_ones_own_that_goes_on() {
    let stack = Stack::start().await;
    stack.fakes.add_run("1", "ended", JobStatus::Completed);
    stack.fakes.add_run("2", "foreign", JobStatus::Running);
    let mut socket = stack.socket().await;
    socket.command("cancel_job", json!({})).await;
    assert_eq!(socket.next().await, json!({"error": "job_id is required"}));
    for job_id in ["ended", "foreign", "missing"] {
        socket.command("cancel_job", json!({"job_id": job_id})).await;
        let refused =
            json!({"error": "Job not found or already completed", "job_id": job_id, "workflow_id": ""});
        assert_eq!(socket.next().await, refused);
    }
    assert_eq!(stack.fakes.status_of("foreign"), JobStatus::Running);
}

#[tokio::test]
async fn w_040_to_043_what_is_no_command_is_told_in_the_known_words() {
    let stack = Stack::start().await;
    let mut socket = stack.socket().await;
    socket.send(json!({"command": "frobnicate"})).await;
    assert_eq!(socket.next().await, json!({"error": "Unknown command"}));
    let text = "All messages must include a 'command' field. Use 'chat_message' command for chat.";
    for frame in [
        json!({"hello": 1}),
        json!({"command": 7}),
        json!([1]),
        json!({"type": "image", "uri": "x"}),
    ] {
        socket.send(frame).await;
        assert_eq!(
            socket.next().await,
            json!({"error": "invalid_message", "message": text})
        );
    }
    socket.send(json!({"command": "run_job", "data": []})).await;
    let malformed = json!({"error": "invalid_command",
        "details": "Malformed command envelope: data must be an object"});
    assert_eq!(socket.next().await, malformed);
    socket
        .command("run_job", json!({"graph": graph(), "params": 7}))
        .await;
    let malformed =
        json!({"error": "invalid_command", "details": "Malformed 'run_job' data: params must be an object"});
    assert_eq!(socket.next().await, malformed);
    socket.send(json!({"type": "tool_approval_response"})).await;
    let reply = socket.next().await;
    assert_eq!(reply["error"], "invalid_message");
    assert!(
        reply["message"]
            .as_str()
            .expect("text")
            .starts_with("Malformed 'tool_approval_response' frame")
    );
    socket
        .send(json!({"type": "client_tools_manifest", "tools": []}))
        .await;
    socket.is_quiet().await;
}

#[tokio::test]
async fn r_015_the_id_of_a_request_comes_back() {
    let stack = Stack::start().await;
    let mut socket = stack.socket().await;
    socket
        .send(json!({"command": "get_status", "request_id": "r1"}))
        .await;
    assert_eq!(
        socket.next().await,
        json!({"active_jobs": [], "request_id": "r1"})
    );
    socket
        .send(json!({"command": "frobnicate", "request_id": "r2"}))
        .await;
    assert_eq!(
        socket.next().await,
        json!({"error": "Unknown command", "request_id": "r2"})
    );
}

#[tokio::test]
async fn w_051_the_status_of_runs() {
    let stack = Stack::start().await;
    stack.fakes.add_run("1", "A", JobStatus::Running);
    stack.fakes.add_run("1", "B", JobStatus::Queued);
    stack.fakes.add_run("1", "C", JobStatus::Completed);
    stack.fakes.add_run("2", "D", JobStatus::Running);
    let mut socket = stack.socket().await;
    socket.command("get_status", json!({})).await;
    let expected = json!({"active_jobs": [
        {"status": "running", "job_id": "A", "workflow_id": null},
        {"status": "queued", "job_id": "B", "workflow_id": null},
    ]});
    assert_eq!(socket.next().await, expected);
    socket.command("get_status", json!({"job_id": "C"})).await;
    assert_eq!(
        socket.next().await,
        json!({"status": "completed", "job_id": "C", "workflow_id": null})
    );
    for job_id in ["x", "D"] {
        socket.command("get_status", json!({"job_id": job_id})).await;
        assert_eq!(
            socket.next().await,
            json!({"status": "not_found", "job_id": job_id})
        );
    }
}

#[tokio::test]
async fn w_053_and_054_commands_into_a_run_are_answered() {
    let stack = Stack::start().await;
    stack.fakes.add_run("1", "ended", JobStatus::Completed);
    let mut socket = stack.socket().await;
    socket
        .command(
            "stream_input",
            json!({"job_id": "ended", "input": "a", "value": 1}),
        )
        .await;
    assert_eq!(socket.next().await, json!({"error": "No active job/context"}));
    socket
        .command(
            "update_node_properties",
            json!({"job_id": "ended", "node_id": "n", "properties": {}}),
        )
        .await;
    assert_eq!(socket.next().await, json!({"applied": false}));
    socket
        .command("update_node_properties", json!({"job_id": "ended"}))
        .await;
    assert_eq!(socket.next().await, json!({"error": "node_id is required"}));
    socket
        .command("update_node_properties", json!({"node_id": "n", "properties": 1}))
        .await;
    assert_eq!(
        socket.next().await,
        json!({"error": "properties must be an object"})
    );
}

#[tokio::test]
async fn w_055_a_question_needs_an_id() {
    let stack = Stack::start().await;
    let mut socket = stack.socket().await;
    socket.command("list_workflows", json!({})).await;
    assert_eq!(
        socket.next().await,
        json!({"error": "request_id is required for RPC commands"})
    );
    socket
        .send(json!({"command": "get_node", "request_id": "r",
        "data": {"node_type": "nodetool.image.TextToImage"}}))
        .await;
    let answer = socket.next().await;
    assert_eq!(
        (&answer["type"], &answer["request_id"]),
        (&json!("rpc_response"), &json!("r"))
    );
    assert_eq!(answer["result"]["title"], "Text To Image");
    socket
        .send(json!({"command": "get_asset", "request_id": "r", "data": {"id": "x"}}))
        .await;
    let answer = socket.next().await;
    assert_eq!(answer["error"]["code"], "NOT_FOUND");
    assert_eq!(answer["error"]["apiCode"], "ASSET_NOT_FOUND");
    assert_eq!(answer["error"]["retryable"], false);
}

#[tokio::test]
async fn w_058_pausing_is_refused_and_a_run_that_goes_on_can_be_resumed() {
    let stack = Stack::start().await;
    running(&stack, "J", 1);
    let mut socket = stack.socket().await;
    socket.command("pause_job", json!({"job_id": "J"})).await;
    assert_eq!(
        socket.next().await,
        json!({"error": "Pausing is not supported", "job_id": "J"})
    );
    assert_eq!(stack.fakes.status_of("J"), JobStatus::Running);
    socket.command("resume_job", json!({"job_id": "J"})).await;
    assert_eq!(socket.next().await["type"], "job_resumed");
    socket.until(|frame| frame["job_seq"] == 1).await;
    socket.command("resume_job", json!({"job_id": "x"})).await;
    assert_eq!(
        socket.next().await,
        json!({"error": "Job cannot be resumed", "job_id": "x"})
    );
}

#[tokio::test]
async fn w_059_options_reach_the_kernel() {
    let stack = Stack::start().await;
    let mut socket = stack.socket().await;
    let options =
        json!({"event_detail": "terminal", "asset_persistence": "temporary", "persistence": "session"});
    let data = json!({"graph": graph(), "job_id": "J", "job_name": "mine", "execution_options": options});
    socket.command("run_job", data).await;
    socket.until(|frame| frame["message"] == "Job started").await;
    let request = stack.fakes.request_of("J");
    assert_eq!(request.name, "mine");
    assert_eq!(
        request.options.expect("options").event_detail(),
        EventDetail::Terminal
    );
    socket
        .command(
            "run_job",
            json!({"graph": graph(), "execution_options": {"event_detail": "some"}}),
        )
        .await;
    assert_eq!(socket.next().await["error"], "invalid_command");
}

#[tokio::test]
async fn r_020_a_refusal_of_the_kernel_ends_the_run_that_is_waited_for() {
    let stack = Stack::start().await;
    let refuse = |code, reason| {
        let problem = Problem::new(code, reason, "fake.atelier", "not to be had");
        *stack.fakes.refusal.lock().expect("lock") = Some(problem.into());
    };
    let mut socket = stack.socket().await;
    refuse(Code::NotFound, reason::WORKFLOW_NOT_FOUND);
    socket
        .command("run_job", json!({"workflow_id": "W", "job_id": "J"}))
        .await;
    assert_eq!(
        socket.next().await,
        json!({"message": "Job started", "workflow_id": "W"})
    );
    let failed = json!({"type": "job_update", "job_id": "J", "workflow_id": "W", "status": "failed",
        "error": "not to be had", "error_code": "NOT_FOUND"});
    assert_eq!(socket.next().await, failed);
    refuse(Code::InvalidArgument, reason::MALFORMED_GRAPH);
    socket
        .command("run_job", json!({"graph": graph(), "job_id": "J"}))
        .await;
    assert_eq!(
        socket.next().await,
        json!({"error": "invalid_command", "details": "not to be had"})
    );
}

#[tokio::test]
async fn stop_and_chat_are_answered() {
    let stack = Stack::start().await;
    running(&stack, "J", 0);
    let mut socket = stack.socket().await;
    socket.command("stop", json!({"job_id": "J"})).await;
    let stopped = json!({"type": "generation_stopped", "message": "Generation stopped by user", "job_id": "J",
        "thread_id": null});
    assert_eq!(socket.next().await, stopped);
    assert_eq!(
        socket.next().await,
        json!({"message": "Stop command processed", "job_id": "J", "thread_id": null})
    );
    assert_eq!(stack.fakes.status_of("J"), JobStatus::Cancelled);
    socket.command("chat_message", json!({})).await;
    assert_eq!(
        socket.next().await,
        json!({"error": "thread_id is required for chat_message command"})
    );
    socket.command("chat_message", json!({"thread_id": "t"})).await;
    let refused = socket.next().await;
    assert_eq!(
        (&refused["type"], &refused["thread_id"]),
        (&json!("error"), &json!("t"))
    );
    assert_eq!(refused["message"], refused["error"]);
    socket.command("resume_chat", json!({"thread_id": "t"})).await;
    assert_eq!(socket.next().await["status"], "unknown");
}

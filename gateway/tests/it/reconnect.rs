//! Watching a run again (wire specification 2.5).

use atelier_proto::kernel::v1::JobStatus;
use serde_json::json;

use crate::commands::{running, seqs, simple_script};
use crate::fakes::job_update;
use crate::stack::{Stack, graph};

#[tokio::test]
async fn w_044_to_046_a_reader_that_comes_back_gets_what_it_missed_and_then_the_rest() {
    let stack = Stack::start().await;
    running(&stack, "J", 40);
    for (last_seq, count) in [(None, 40), (Some(0), 40), (Some(38), 2)] {
        let mut socket = stack.socket().await;
        let mut data = json!({"job_id": "J", "workflow_id": "W"});
        if let Some(last_seq) = last_seq {
            data["last_seq"] = json!(last_seq);
        }
        socket.command("reconnect_job", data).await;
        let resumed = json!({"type": "job_resumed", "job_id": "J", "workflow_id": null, "status": "running",
            "last_seq": 40, "replay_count": count, "replay_incomplete": false});
        assert_eq!(socket.next().await, resumed);
        let frames = socket.until(|frame| frame["job_seq"] == 40).await;
        let ack = json!({"message": "Reconnecting to job J", "job_id": "J", "workflow_id": "W"});
        assert!(frames.contains(&ack));
        assert_eq!(seqs(&frames), (41 - count..=40).collect::<Vec<i64>>());
    }
    let mut socket = stack.socket().await;
    socket
        .command("reconnect_job", json!({"job_id": "J", "last_seq": 40}))
        .await;
    socket
        .until(|frame| frame["message"] == "Reconnecting to job J")
        .await;
    stack.fakes.emit("J", job_update(JobStatus::Completed));
    assert_eq!(seqs(&socket.until_the_end().await), [41]);
}

#[tokio::test]
async fn w_047_a_run_that_ended_is_replayed_with_its_last_frame() {
    let stack = Stack::start().await;
    running(&stack, "J", 2);
    stack.fakes.emit("J", job_update(JobStatus::Completed));
    let mut socket = stack.socket().await;
    socket.command("reconnect_job", json!({"job_id": "J"})).await;
    let frames = socket.until_the_end().await;
    assert_eq!(frames[0]["status"], "finished");
    assert_eq!(seqs(&frames), [1, 2, 3]);
    socket.is_quiet().await;
}

#[tokio::test]
async fn w_048_a_missing_and_a_foreign_run_look_the_same() {
    let stack = Stack::start().await;
    stack.fakes.add_run("2", "foreign", JobStatus::Running);
    let mut socket = stack.socket().await;
    for job_id in ["missing", "foreign"] {
        socket.command("reconnect_job", json!({"job_id": job_id})).await;
        let expected = json!({"type": "job_update", "job_id": job_id, "workflow_id": null, "status": "failed",
            "error": format!("Job {job_id} not found"), "error_code": "NOT_FOUND"});
        assert_eq!(socket.next().await, expected);
    }
    socket.command("reconnect_job", json!({})).await;
    assert_eq!(socket.next().await, json!({"error": "job_id is required"}));
    socket
        .command("reconnect_job", json!({"job_id": "x", "last_seq": -1}))
        .await;
    assert_eq!(socket.next().await["error"], "invalid_command");
}

#[tokio::test]
async fn w_049_a_client_that_polls_gets_nothing_twice_and_others_everything_again() {
    let stack = Stack::start().await;
    *stack.fakes.script.lock().expect("lock") = vec![job_update(JobStatus::Running)];
    let mut socket = stack.socket().await;
    let data = json!({"graph": graph(), "job_id": "J", "require_terminal_result": true});
    socket.command("run_job", data).await;
    socket.until(|frame| frame["job_seq"] == 1).await;
    for _ in 0..2 {
        socket.command("reconnect_job", json!({"job_id": "J"})).await;
        let frames = socket
            .until(|frame| frame["message"] == "Reconnecting to job J")
            .await;
        assert_eq!(frames[0]["replay_count"], 0);
        assert!(seqs(&frames).is_empty());
    }
    stack.fakes.emit("J", job_update(JobStatus::Completed));
    assert_eq!(seqs(&socket.until_the_end().await), [2]);

    socket
        .command("run_job", json!({"graph": graph(), "job_id": "K"}))
        .await;
    socket.until(|frame| frame["job_seq"] == 1).await;
    socket.command("reconnect_job", json!({"job_id": "K"})).await;
    assert_eq!(seqs(&socket.until(|frame| frame["job_seq"] == 1).await), [1]);
    stack.fakes.emit("K", job_update(JobStatus::Completed));
    let rest = socket.until_the_end().await;
    assert_eq!(seqs(&rest), [2], "one reading at a time: {rest:?}");
    socket.is_quiet().await;
}

#[tokio::test]
async fn w_050_a_second_viewer_takes_nothing_away_and_a_run_outlives_its_socket() {
    let stack = Stack::start().await;
    *stack.fakes.script.lock().expect("lock") = vec![job_update(JobStatus::Running)];
    let mut first = stack.socket().await;
    first
        .command("run_job", json!({"graph": graph(), "job_id": "J"}))
        .await;
    first.until(|frame| frame["job_seq"] == 1).await;
    let mut second = stack.socket().await;
    second.command("reconnect_job", json!({"job_id": "J"})).await;
    second.until(|frame| frame["job_seq"] == 1).await;
    stack.fakes.emit("J", job_update(JobStatus::Running));
    assert_eq!(first.next().await["job_seq"], 2);
    assert_eq!(second.until(|frame| frame["job_seq"] == 2).await.len(), 1);
    drop(first);
    stack.fakes.emit("J", job_update(JobStatus::Completed));
    assert_eq!(seqs(&second.until_the_end().await), [3]);
    assert_eq!(stack.fakes.status_of("J"), JobStatus::Completed);
}

#[tokio::test]
async fn a_connection_to_the_kernel_that_breaks_is_made_again_without_a_gap() {
    let stack = Stack::start().await;
    running(&stack, "J", 5);
    *stack.fakes.breaks_after.lock().expect("lock") = Some(2);
    let mut socket = stack.socket().await;
    socket.command("reconnect_job", json!({"job_id": "J"})).await;
    let frames = socket.until(|frame| frame["job_seq"] == 5).await;
    assert_eq!(seqs(&frames), [1, 2, 3, 4, 5]);
    assert_eq!(
        frames
            .iter()
            .filter(|frame| frame["type"] == "job_resumed")
            .count(),
        1
    );
}

#[tokio::test]
async fn w_060_the_same_run_again_is_a_replay_and_another_one_is_refused() {
    let stack = Stack::start().await;
    simple_script(&stack);
    let mut socket = stack.socket().await;
    let data = json!({"graph": graph(), "job_id": "J"});
    socket.command("run_job", data.clone()).await;
    socket.until_the_end().await;
    socket.command("run_job", data).await;
    let frames = socket.until_the_end().await;
    assert_eq!(frames[0]["type"], "job_resumed");
    assert_eq!(seqs(&frames), [1, 2]);
    assert_eq!(*stack.fakes.started.lock().expect("lock"), 1);
    socket
        .command(
            "run_job",
            json!({"graph": {"nodes": [], "edges": []}, "job_id": "J"}),
        )
        .await;
    assert_eq!(
        socket.next().await,
        json!({"error": "invalid_command", "details": "Job id already used"})
    );
}

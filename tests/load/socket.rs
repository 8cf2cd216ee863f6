//! The whole server, as a client at its socket sees it.

use std::time::{Duration, Instant};

use atelier_tests::{
    Server, Socket,
    stack::text,
    workflows::{edge, graph, node},
};
use serde_json::{Value, json};

use crate::{rate, seconds, status_mib};

fn two_nodes() -> Value {
    graph(
        vec![
            node("c", "nodetool.constant.String", json!({"value": "hello"})),
            node("o", "nodetool.output.Output", json!({"name": "out"})),
        ],
        vec![edge("e", "c.output", "o.value")],
    )
}
fn chain(length: usize) -> Value {
    let mut nodes = vec![node("n0", "nodetool.constant.String", json!({"value": "x"}))];
    let mut edges = Vec::new();
    for at in 1..length {
        nodes.push(node(&format!("n{at}"), "nodetool.control.Reroute", json!({})));
        edges.push(edge(
            &format!("e{at}"),
            &format!("n{}.output", at - 1),
            &format!("n{at}.input_value"),
        ));
    }
    graph(nodes, edges)
}
/// Items one by one through a node that passes them on, into a list.
pub fn fan_out(items: usize) -> Value {
    let list: Vec<Value> = (0..items).map(|item| json!(item.to_string())).collect();
    graph(
        vec![
            node("l", "nodetool.constant.List", json!({"value": list})),
            node("each", "nodetool.control.ForEach", json!({})),
            node("r", "nodetool.control.Reroute", json!({})),
            node("c", "nodetool.control.Collect", json!({})),
        ],
        vec![
            edge("1", "l.output", "each.input_list"),
            edge("2", "each.output", "r.input_value"),
            edge("3", "r.output", "c.input_item"),
        ],
    )
}
fn resident_mib(pid: u32) -> Option<u64> {
    status_mib(&pid.to_string(), "VmRSS:")
}
async fn run_once(socket: &mut Socket, job_id: &str, graph: &Value) -> anyhow::Result<usize> {
    socket
        .send(&json!({"command": "run_job", "data": {"job_id": job_id, "graph": graph}}))
        .await?;
    let frames = socket.frames_of(job_id).await?;
    let last = frames
        .last()
        .map(|frame| text(frame, "status").to_owned())
        .unwrap_or_default();
    anyhow::ensure!(last == "completed", "{job_id} is {last}");
    Ok(frames.len())
}

#[tokio::test(flavor = "multi_thread")]
async fn bench_runs_and_executions_over_the_socket() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let start = Instant::now();
    // One connection alone makes more runs a second than the limit of its messages allows.
    let server = Server::start(data.path(), &[("ATELIER_GATEWAY__WS__RATE", "1000000")]).await?;
    println!("| what | measured |\n|---|---|");
    println!("| start to ready | {} ms |", start.elapsed().as_millis());
    if let Some(memory) = server.pid().and_then(resident_mib) {
        println!("| resident memory, idle | {memory} MiB |");
    }
    for connections in [1_usize, 4, 16] {
        let mut workers = tokio::task::JoinSet::new();
        let start = Instant::now();
        for worker in 0..connections {
            let base = server.client().base().clone();
            workers.spawn(async move {
                let mut socket = Socket::binary(&base).await?;
                let (graph, mut runs, mut slowest) = (two_nodes(), 0_usize, Duration::ZERO);
                while start.elapsed() < seconds() {
                    let begin = Instant::now();
                    run_once(&mut socket, &format!("r{connections}-{worker}-{runs}"), &graph).await?;
                    slowest = slowest.max(begin.elapsed());
                    runs += 1;
                }
                anyhow::Ok((runs, slowest))
            });
        }
        let (mut runs, mut slowest) = (0, Duration::ZERO);
        while let Some(done) = workers.join_next().await {
            let (count, slow) = done??;
            runs += count;
            slowest = slowest.max(slow);
        }
        println!(
            "| two-node runs a second, {connections} connections | {:.0} (slowest {} ms) |",
            rate(runs, start.elapsed()),
            slowest.as_millis()
        );
    }
    for (name, graph, executions) in [
        ("chain of 1,000 nodes", chain(1_000), 1_000),
        ("fan-out of 10,000", fan_out(10_000), 10_000),
    ] {
        let mut socket = Socket::binary(server.client().base()).await?;
        let start = Instant::now();
        let frames = run_once(&mut socket, name, &graph).await?;
        println!(
            "| {name}, executions a second over the socket | {:.0} ({frames} frames) |",
            rate(executions, start.elapsed())
        );
    }
    if let Some(memory) = server.pid().and_then(resident_mib) {
        println!("| resident memory, afterwards | {memory} MiB |");
    }
    server.kill().await
}

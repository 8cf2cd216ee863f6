//! The socket, end to end: sequences, reconnects, both encodings.

use atelier_tests::{
    Socket, TestStack,
    stack::{of_type, text},
    workflows::{edge, fan_out, graph, node},
};
use serde_json::{Value, json};

const SIX: [&str; 6] = ["one", "two", "three", "four", "five", "six"];

fn simple() -> Value {
    let model = json!({"type": "image_model", "provider": "sketch", "id": "sketch-image"});
    graph(
        vec![
            node("c", "nodetool.constant.String", json!({"value": "a lantern"})),
            node(
                "g",
                "nodetool.image.TextToImage",
                json!({"model": model, "width": 64, "height": 64}),
            ),
            node("o", "nodetool.output.Output", json!({"name": "picture"})),
        ],
        vec![
            edge("e1", "c.output", "g.prompt"),
            edge("e2", "g.output", "o.value"),
        ],
    )
}
fn run(job_id: &str, graph: &Value) -> Value {
    json!({"command": "run_job", "data": {"job_id": job_id, "workflow_id": "W", "graph": graph, "params": {}}})
}

#[tokio::test(flavor = "multi_thread")]
async fn w_070_w_086_w_091_a_simple_run_has_exactly_these_frames() -> anyhow::Result<()> {
    let stack = TestStack::start().await?;
    let mut socket = stack.socket().await?;
    socket.send(&run("J", &simple())).await?;
    let frames = socket.frames_of("J").await?;
    let kinds: Vec<String> = frames
        .iter()
        .filter(|frame| text(frame, "type") != "node_progress")
        .map(|frame| {
            let what = if text(frame, "status").is_empty() {
                ""
            } else {
                text(frame, "status")
            };
            let node = if text(frame, "node_id").is_empty() {
                text(frame, "edge_id")
            } else {
                text(frame, "node_id")
            };
            format!("{} {node} {what}", text(frame, "type"))
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect();
    assert!(
        kinds.iter().all(|kind| !kind.contains(" c ")),
        "nothing of the constant is seen: {kinds:?}"
    );
    assert_eq!(kinds.first().map(String::as_str), Some("job_update running"));
    assert_eq!(kinds.last().map(String::as_str), Some("job_update completed"));
    let place = |kind: &str| {
        kinds
            .iter()
            .position(|other| other == kind)
            .unwrap_or_else(|| panic!("{kind}: {kinds:?}"))
    };
    for order in [
        ["node_update g running", "prediction g running"],
        ["prediction g running", "prediction g completed"],
        ["prediction g completed", "generation_complete g"],
        ["generation_complete g", "node_update g completed"],
        ["node_update g completed", "edge_update e2 completed"],
        ["edge_update e2 active", "generation_complete g"],
        ["edge_update e2 completed", "output_update o"],
        ["node_update o running", "output_update o"],
        ["output_update o", "generation_complete o"],
        ["generation_complete o", "node_update o completed"],
    ] {
        assert!(place(order[0]) < place(order[1]), "{order:?} in {kinds:?}");
    }
    let seqs: Vec<_> = frames
        .iter()
        .filter_map(|frame| frame["job_seq"].as_i64())
        .collect();
    assert_eq!(seqs, (1..=i64::try_from(frames.len())?).collect::<Vec<_>>());
    let made = of_type(&frames, "generation_complete");
    let asset = text(&made[0]["outputs"]["output"], "asset_id").to_owned();
    assert!(!asset.is_empty());
    assert_eq!(made[0]["index"], json!(0));
    assert_eq!(
        text(&of_type(&frames, "output_update")[0]["value"], "asset_id"),
        asset
    );
    let uri = text(&made[0]["outputs"]["output"], "uri").to_owned();
    let bytes = reqwest::get(stack.client().base().join(&uri)?)
        .await?
        .bytes()
        .await?;
    assert!(bytes.starts_with(b"\x89PNG"), "{uri} is the picture");
    for frame in &frames {
        for key in ["seq", "event_id", "invocation_id", "value_key"] {
            assert!(frame.get(key).is_none(), "{key} in {frame}");
        }
        assert_eq!((text(frame, "job_id"), text(frame, "workflow_id")), ("J", "W"));
    }
    stack.stop().await;
    Ok(())
}
#[tokio::test(flavor = "multi_thread")]
async fn w_072_a_connected_handle_shows_nothing_and_loses_nothing() -> anyhow::Result<()> {
    let stack = TestStack::start().await?;
    let mut socket = stack.socket().await?;
    socket.send(&run("six", &fan_out(&SIX, json!({})))).await?;
    let frames = socket.frames_of("six").await?;
    assert_eq!(text(&frames[frames.len() - 1], "status"), "completed");
    assert!(
        of_type(&frames, "output_update")
            .iter()
            .all(|frame| text(frame, "node_id") != "g")
    );
    let made: Vec<_> = of_type(&frames, "generation_complete")
        .into_iter()
        .filter(|frame| text(frame, "node_id") == "g")
        .collect();
    assert_eq!(
        made.iter()
            .filter_map(|frame| frame["index"].as_i64())
            .collect::<Vec<_>>(),
        [0, 1, 2, 3, 4, 5]
    );
    let shown: Vec<_> = of_type(&frames, "output_update")
        .into_iter()
        .filter(|frame| text(frame, "node_id") == "p")
        .collect();
    assert_eq!(shown.len(), 6);
    stack.stop().await;
    Ok(())
}
#[tokio::test(flavor = "multi_thread")]
async fn w_044_w_045_w_047_w_050_a_reconnect_misses_nothing_and_gets_nothing_twice() -> anyhow::Result<()> {
    let stack = TestStack::start().await?;
    let mut first = stack.socket().await?;
    first
        .send(&run("long", &fan_out(&SIX, json!({"delay_ms": 60}))))
        .await?;
    let mut seen = Vec::new();
    while seen.len() < 8 {
        let frame = first.next().await?;
        if frame.get("job_seq").is_some() {
            seen.push(frame);
        }
    }
    let last = seen
        .last()
        .and_then(|frame| frame["job_seq"].as_i64())
        .unwrap_or(0);
    let mut second = stack.socket().await?;
    second
        .send(&json!({"command": "reconnect_job", "data": {"job_id": "long", "last_seq": last}}))
        .await?;
    let resumed = second.wait(|frame| text(frame, "type") == "job_resumed").await?;
    assert_eq!(text(&resumed, "status"), "running");
    let rest = second.frames_of("long").await?;
    seen.extend(rest);
    let seqs: Vec<_> = seen
        .iter()
        .filter_map(|frame| frame["job_seq"].as_i64())
        .collect();
    assert_eq!(seqs, (1..=i64::try_from(seen.len())?).collect::<Vec<_>>());
    // The first viewer kept receiving.
    let of_first = first.frames_of("long").await?;
    assert_eq!(of_first.last(), seen.last());
    // After the end, all of it again, to whoever asks.
    let mut third = Socket::binary(stack.client().base()).await?;
    third
        .send(&json!({"command": "reconnect_job", "data": {"job_id": "long"}}))
        .await?;
    let resumed = third.wait(|frame| text(frame, "type") == "job_resumed").await?;
    assert_eq!(
        (text(&resumed, "status"), resumed["replay_incomplete"].as_bool()),
        ("finished", Some(false))
    );
    let replayed = third.frames_of("long").await?;
    assert_eq!(replayed.len(), seen.len());
    assert!(
        replayed
            .iter()
            .zip(&seen)
            .all(|(new, old)| new["job_seq"] == old["job_seq"] && new["type"] == old["type"])
    );
    stack.stop().await;
    Ok(())
}
#[tokio::test(flavor = "multi_thread")]
async fn w_077_streamed_text_is_shown_in_pieces_and_kept_whole() -> anyhow::Result<()> {
    let stack = TestStack::start().await?;
    let model = json!({"type": "language_model", "provider": "sketch", "id": "sketch-text"});
    let graph = graph(
        vec![
            node(
                "a",
                "nodetool.agents.Agent",
                json!({"model": model, "prompt": "Tell me about tides"}),
            ),
            node("chunks", "nodetool.output.Output", json!({"name": "live"})),
            node("whole", "nodetool.output.Output", json!({"name": "text"})),
        ],
        vec![
            edge("e1", "a.chunk", "chunks.value"),
            edge("e2", "a.text", "whole.value"),
        ],
    );
    let mut socket = stack.socket().await?;
    socket.send(&run("text", &graph)).await?;
    let frames = socket.frames_of("text").await?;
    assert_eq!(
        text(&frames[frames.len() - 1], "status"),
        "completed",
        "{frames:?}"
    );
    let pieces: Vec<_> = of_type(&frames, "output_update")
        .into_iter()
        .filter(|frame| text(frame, "node_id") == "chunks")
        .collect();
    assert!(pieces.len() > 3, "{} pieces", pieces.len());
    assert!(pieces.iter().all(|frame| text(frame, "disposition") == "append"));
    let joined: String = pieces
        .iter()
        .map(|frame| text(&frame["value"], "content"))
        .collect();
    let made: Vec<_> = of_type(&frames, "generation_complete")
        .into_iter()
        .filter(|frame| text(frame, "node_id") == "a")
        .collect();
    assert_eq!(made.len(), 1);
    assert_eq!(text(&made[0]["outputs"], "text"), joined);
    stack.stop().await;
    Ok(())
}
#[tokio::test(flavor = "multi_thread")]
async fn w_078_k_023_k_059_a_text_into_an_output_is_shown_once_and_whole() -> anyhow::Result<()> {
    let stack = TestStack::start().await?;
    let mut shown = Vec::new();
    for (job_id, mode) in [
        ("zip", json!("zip_all")),
        ("any", json!("on_any")),
        ("none", Value::Null),
    ] {
        let mut join = node(
            "c",
            "nodetool.text.Concat",
            json!({"a": "a lantern ", "b": "at dusk"}),
        );
        if let Some(join) = join.as_object_mut().filter(|_| !mode.is_null()) {
            join.insert("sync_mode".to_owned(), mode);
        }
        let graph = graph(
            vec![join, node("o", "nodetool.output.Output", json!({"name": "text"}))],
            vec![edge("e1", "c.output", "o.value")],
        );
        let mut socket = stack.socket().await?;
        socket.send(&run(job_id, &graph)).await?;
        let mut frames = socket.frames_of(job_id).await?;
        let updates = of_type(&frames, "output_update");
        assert_eq!(updates.len(), 1);
        assert_eq!(
            (text(updates[0], "value"), text(updates[0], "disposition")),
            ("a lantern at dusk", "replace")
        );
        let named: Vec<_> = of_type(&frames, "node_update")
            .iter()
            .map(|frame| text(frame, "node_name"))
            .collect();
        assert!(
            named.contains(&"nodetool.text.Concat"),
            "a node without a name is called by its type: {named:?}"
        );
        for frame in frames.iter_mut().filter_map(Value::as_object_mut) {
            frame.remove("job_id");
            frame.remove("duration");
            frame.remove("job_seq");
        }
        // Frames of different nodes come in any order.
        let mut texts: Vec<String> = frames.iter().map(Value::to_string).collect();
        texts.sort_unstable();
        shown.push(texts);
    }
    for pair in shown.windows(2) {
        assert_eq!(pair[0], pair[1], "the old field has no effect");
    }
    stack.stop().await;
    Ok(())
}

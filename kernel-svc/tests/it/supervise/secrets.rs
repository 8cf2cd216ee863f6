//! What a supervisor gets to see.

use atelier_kernel::{
    event::Event,
    run::supervise::{Action, Scope, Verdict},
};
use atelier_proto::value::{Map, Value, map_from_json};
use serde_json::{Value as Json, json};

use super::scene::{always, run, setup, told};
use crate::harness::{graph, json as to_json};

#[tokio::test]
async fn b_66_no_secret_reaches_the_supervisor_or_the_events() {
    let secret = "hunter2-of-the-moor";
    let text = format!(
        "401 for {secret}: Authorization: Bearer abcdefgh12345678, sk-abcdefghijkl, \
         https://h.example/x.png?X-Amz-Signature=5f5f5f and api_key=zzz999"
    );
    let graph = graph()
        .node(
            "n",
            "test.Flaky",
            json!({
                "fails": 1, "text": text, "api_key": secret, "note": format!("the key is {secret}"),
                "nested": {"PASSWORD": "pw-of-somebody"}
            }),
        )
        .node("up", "test.Const", json!({"value": {"seen": secret}}));
    let agent = told(move |_| Verdict {
        scope: Scope::Invocation,
        reason: Some(format!("because of {secret}")),
        ..Verdict::new(Action::Skip)
    });
    let done = run(&graph, &agent).await;
    let mut seen = format!("{:?}", agent.asked()[0]);
    seen.push_str(&format!("{:?}", agent.asked()[0].view.outputs()));
    for event in &done.events {
        if let Event::Supervision { .. } = event {
            seen.push_str(&format!("{event:?}"));
        }
    }
    for hidden in [
        secret,
        "pw-of-somebody",
        "abcdefgh12345678",
        "sk-abcdefghijkl",
        "5f5f5f",
        "zzz999",
    ] {
        assert!(!seen.contains(hidden), "{hidden} in {seen}");
    }
    assert!(seen.contains("https://h.example/x.png?redacted"));
    assert!(seen.contains("the key is [redacted]"));
}

#[tokio::test]
async fn long_values_are_cut() {
    let deep = (0..10).fold(json!("end"), |inner, _| json!({"in": inner}));
    let mut value = map_from_json(json!({
        "text": "x".repeat(5_000), "list": (0..500).collect::<Vec<_>>(), "deep": deep
    }))
    .unwrap();
    value.insert("bytes".to_owned(), Value::Bytes(vec![7_u8; 1_000].into()));
    let graph = graph()
        .input("x")
        .node("n", "test.Flaky", json!({"fails": 1}))
        .edges(["x.output > n.value"]);
    let agent = always(Action::Fail);
    let mut setup = setup(
        &graph,
        Some(std::sync::Arc::clone(&agent) as std::sync::Arc<dyn atelier_kernel::run::supervise::Supervisor>),
    );
    setup.params = Map::from_iter([("x".to_owned(), value.into())]);
    setup.run().await;
    let asked = agent.asked();
    let seen = to_json(&asked[0].inputs["value"]);
    assert_eq!(seen["text"].as_str().unwrap().len(), 2_000);
    assert_eq!(seen["list"].as_array().unwrap().len(), 100);
    assert_eq!(seen["bytes"], json!({"type": "bytes", "length": 1_000}));
    let mut level = &seen["deep"];
    let mut depth = 2;
    while let Json::Object(inner) = level {
        level = &inner["in"];
        depth += 1;
    }
    assert_eq!((level, depth), (&json!("…"), 6));
}

#[tokio::test]
async fn the_view_shows_related_items_only_and_few_of_them() {
    let graph = graph()
        .node(
            "f",
            "test.ForEach",
            json!({"input_list": (0..200).collect::<Vec<_>>()}),
        )
        .node("p", "test.Pass", json!({}))
        .node("w", "test.FailOn", json!({"on": 150}))
        .node("late", "test.Hold", json!({}))
        .edges([
            "f.output > p.value",
            "p.output > w.value",
            "w.output > late.value",
        ]);
    let agent = told(|escalation| {
        let views = escalation.view.outputs();
        let text = format!("{views:?}");
        Verdict {
            reason: Some(text),
            ..Verdict::new(Action::Skip)
        }
    });
    run(&graph, &agent).await;
    let asked = agent.asked();
    assert_eq!(asked[0].invocation_key, "f:items=150");
    for node in asked[0].view.outputs() {
        assert!(node.outputs.len() <= 1, "{node:?}");
        for outputs in node.outputs {
            assert!(
                outputs
                    .get("output")
                    .is_none_or(|value| *value == Value::Int(150)),
                "{outputs:?}"
            );
        }
    }
}

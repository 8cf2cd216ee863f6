//! What each answer does.

use std::sync::Arc;

use atelier_kernel::run::supervise::{Action, Supervisor, Verdict};
use atelier_proto::{
    kernel::v1::JobStatus,
    value::{Map, Value, map_from_json},
};
use serde_json::{Value as Json, json};

use super::scene::{always, decisions, run, setup, told};
use crate::harness::{Graph, graph};

fn map(json: Json) -> Map {
    map_from_json(json).unwrap()
}
fn flaky(ty: &str, fails: i64) -> Graph {
    graph().named("n", ty, "n", json!({"fails": fails, "value": 5}))
}

#[tokio::test]
async fn k_260_a_node_that_may_be_tried_again_is() {
    let agent = always(Action::Retry);
    let done = run(&flaky("test.Flaky", 1), &agent).await;
    assert_eq!(
        (done.status(), done.outputs()),
        (JobStatus::Completed, json!({"n": [5]}))
    );
    assert_eq!((done.calls("n"), done.artifacts("n").len()), (2, 1));
    let inputs = done.inputs("n");
    assert_eq!(inputs[0], inputs[1]);
    let interventions = done.result.interventions.clone();
    assert_eq!((interventions.len(), interventions[0].action), (1, Action::Retry));
    assert_eq!(decisions(&done), ["n retry agent"]);
    let asked = agent.asked();
    assert_eq!(
        (asked[0].attempt, asked[0].retry_safe, asked[0].emitted),
        (1, true, false)
    );
    assert_eq!(done.count("node:n:error"), 0);
}

#[tokio::test]
async fn k_261_and_k_262_a_retry_that_could_do_harm_is_not_offered() {
    for ty in ["test.FlakyUnsafe", "test.FlakyPaid"] {
        let agent = always(Action::Retry);
        let done = run(&flaky(ty, 1), &agent).await;
        assert_eq!((done.status(), done.calls("n")), (JobStatus::Failed, 1), "{ty}");
        assert_eq!(decisions(&done), ["n fail kernel"], "{ty}");
        assert_eq!(agent.asked()[0].allowed, [Action::Skip, Action::Fail], "{ty}");
        assert!(done.result.interventions.is_empty());
        assert!(done.result.error.unwrap().contains("n: failed 1"));
    }
}

#[tokio::test]
async fn k_263_a_skipped_item_is_lost_alone() {
    let graph = graph()
        .node(
            "foreach",
            "test.ForEach",
            json!({"input_list": ["a", "bad", "c"]}),
        )
        .node("work", "test.FailOn", json!({"on": "bad"}))
        .named("all", "test.Collect", "all", json!({}))
        .edges(["foreach.output > work.value", "work.output > all.input_item"]);
    let agent = always(Action::Skip);
    let done = run(&graph, &agent).await;
    assert_eq!(
        (done.status(), done.outputs()),
        (JobStatus::Completed, json!({"all": [["a", "c"]]}))
    );
    let asked = agent.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].invocation_key, "foreach:items=1");
    assert_eq!(asked[0].lineage, [("foreach:items".into(), 1)]);
    assert_eq!(&asked[0].inputs["value"], &Value::from("bad"));
    assert_eq!(
        done.artifacts("work"),
        [json!({"output": "a"}), json!({"output": "c"})]
    );
    assert_eq!(done.count("node:work:completed"), 1);
}

#[tokio::test]
async fn k_264_an_iterator_that_is_skipped_brings_an_empty_list() {
    let graph = graph()
        .node("f", "test.Frames", json!({"frames": ["bad"]}))
        .named("all", "test.Collect", "all", json!({}))
        .edges(["f.a > all.input_item"]);
    let done = run(&graph, &always(Action::Skip)).await;
    assert_eq!(
        (done.status(), done.outputs(), done.artifacts("f").len()),
        (JobStatus::Completed, json!({"all": [[]]}), 0)
    );
}

#[tokio::test]
async fn k_265_a_join_runs_without_the_side_that_was_skipped() {
    let graph = graph()
        .node("l", "test.Const", json!({"value": 1}))
        .node("r", "test.FailOn", json!({}))
        .named("j", "test.Echo", "j", json!({}))
        .edges(["l.output > j.left", "r.output > j.right"]);
    let done = run(&graph, &always(Action::Skip)).await;
    assert_eq!(
        (done.status(), done.calls("j")),
        (JobStatus::Completed, 1),
        "{:?}",
        done.result.error
    );
    assert_eq!(done.inputs("j"), [json!({"left": 1})]);
}

#[tokio::test]
async fn k_266_a_substitute_must_be_whole_and_of_the_right_type() {
    let offers: [(Option<Json>, Option<Json>); 5] = [
        (Some(json!({"output": 9})), Some(json!(9))),
        (None, Some(json!(7))),
        (Some(json!({"output": "nine"})), None),
        (Some(json!({})), None),
        (Some(json!({"output": 9, "more": 1})), None),
    ];
    for (offer, expected) in offers {
        let outputs = offer.clone().map(map);
        let agent = told(move |_| Verdict {
            outputs: outputs.clone(),
            ..Verdict::new(Action::Substitute)
        });
        let done = run(&flaky("test.Typed", 1), &agent).await;
        assert!(agent.asked()[0].allowed.contains(&Action::Substitute));
        match expected {
            Some(value) => {
                assert_eq!(
                    (done.status(), done.artifacts("n")),
                    (JobStatus::Completed, vec![json!({"output": value})]),
                    "{offer:?}"
                );
                assert_eq!(decisions(&done), ["n substitute agent"]);
            }
            None => {
                assert_eq!(
                    (done.status(), done.artifacts("n").len()),
                    (JobStatus::Failed, 0),
                    "{offer:?}"
                );
                assert_eq!(decisions(&done), ["n fail kernel"]);
            }
        }
    }
    // What cannot be checked cannot be replaced.
    let agent = always(Action::Substitute);
    let done = run(&flaky("test.TypedPicture", 1), &agent).await;
    assert_eq!(agent.asked()[0].allowed, [Action::Skip, Action::Fail]);
    assert_eq!(done.status(), JobStatus::Failed);
}

#[tokio::test]
async fn k_267_a_stream_that_is_cut_off_keeps_what_went_out() {
    let graph = graph()
        .node(
            "f",
            "test.PlainFrames",
            json!({"frames": [{"a": 1}, {"a": 2}, "bad"]}),
        )
        .node("cap", "test.Cap", json!({}))
        .edges(["f.a > cap.value"]);
    let agent = always(Action::EndStream);
    let done = run(&graph, &agent).await;
    assert_eq!(agent.asked()[0].allowed, [Action::EndStream, Action::Fail]);
    assert!(agent.asked()[0].emitted);
    assert_eq!(
        (done.status(), done.delivered("e1").len()),
        (JobStatus::Completed, 2)
    );
    assert_eq!(
        (done.artifacts("f").len(), done.count("node:f:completed")),
        (0, 1)
    );
}

#[tokio::test]
async fn a_stream_in_a_fan_out_is_cut_off_for_its_item_alone() {
    let graph = graph()
        .node(
            "o",
            "test.ForEach",
            json!({"input_list": [[{"a": 1}], [{"a": 2}, "bad"], [{"a": 3}, {"a": 4}]]}),
        )
        .node("f", "test.Frames", json!({}))
        .named("all", "test.Collect", "all", json!({}))
        .edges(["o.output > f.frames", "f.a > all.input_item"]);
    let done = run(&graph, &always(Action::EndStream)).await;
    assert_eq!(
        (done.status(), done.outputs()),
        (JobStatus::Completed, json!({"all": [[1], [2], [3, 4]]}))
    );
    assert_eq!(done.artifacts("f").len(), 2);
}

#[tokio::test]
async fn k_268_a_node_that_read_its_stream_commits_what_it_had() {
    let graph = graph()
        .node("f", "test.ForEach", json!({"input_list": [1, 2]}))
        .named("s", "test.StreamFail", "s", json!({"on": 2}))
        .edges(["f.output > s.value"]);
    let done = run(&graph, &always(Action::EndStream)).await;
    assert_eq!(
        (done.status(), done.artifacts("s"), done.count("node:s:completed")),
        (JobStatus::Completed, vec![json!({"output": 1})], 1)
    );
    let done = run(&graph, &always(Action::Skip)).await;
    assert_eq!(decisions(&done), ["s fail kernel"]);
    assert_eq!(done.status(), JobStatus::Failed);
}

#[tokio::test]
async fn k_269_a_clean_run_is_the_same_with_a_supervisor() {
    let graph = graph()
        .node("f", "test.ForEach", json!({"input_list": [1, 2, 3]}))
        .node("p", "test.Pass", json!({}))
        .node("c", "test.Chunks", json!({"n": 3}))
        .named("all", "test.Collect", "all", json!({}))
        .edges(["f.output > p.value", "p.output > all.input_item"]);
    let plain = setup(&graph, None).run().await;
    let agent = always(Action::Fail);
    let watched = run(&graph, &agent).await;
    let sorted = |done: &crate::harness::Done| {
        let mut trace = done.trace();
        trace.sort_unstable();
        trace
    };
    assert_eq!(sorted(&plain), sorted(&watched));
    assert_eq!(plain.outputs(), watched.outputs());
    assert!(agent.asked().is_empty() && watched.result.interventions.is_empty());
}

#[tokio::test]
async fn k_169_whoever_waits_for_a_skipped_event_gets_an_empty_answer() {
    let graph = graph()
        .node("c", "test.Endless", json!({}))
        .node("k", "test.FailOn", json!({"on": "bad"}))
        .control("c.__control__ > k");
    let running = setup(&graph, Some(always(Action::Skip) as Arc<dyn Supervisor>))
        .lenient()
        .start();
    running.started().await;
    let bad = running
        .handle
        .request_control("k", map(json!({"value": "bad"})))
        .await;
    assert_eq!(bad, Ok(Map::new()));
    let good = running
        .handle
        .request_control("k", map(json!({"value": "good"})))
        .await;
    assert_eq!(good.unwrap()["output"], Value::from("good"));
    running.cancel.cancel();
    let done = running.done().await;
    assert_eq!((done.calls("k"), done.artifacts("k").len()), (2, 1));
}

#[tokio::test]
async fn b_50_a_join_does_not_wait_for_an_item_that_was_skipped() {
    let graph = graph()
        .node("f", "test.ForEach", json!({"input_list": [1, 2, 3]}))
        .node("a", "test.FailOn", json!({"on": 2}))
        .node("b", "test.Pass", json!({}))
        .named("sum", "test.Add", "sum", json!({}))
        .edges([
            "f.output > a.value",
            "f.output > b.value",
            "a.output > sum.a",
            "b.output > sum.b",
        ]);
    let done = run(&graph, &always(Action::Skip)).await;
    assert_eq!((done.status(), done.calls("sum")), (JobStatus::Completed, 2));
    let told = done.traffic.done.lock().unwrap();
    assert_eq!(told["e3"], ["f:items=1"]);
}

#[tokio::test]
async fn b_51_an_aggregate_does_not_wait_for_an_iterator_that_was_skipped() {
    let graph = graph()
        .node(
            "o",
            "test.ForEach",
            json!({"input_list": [[{"a": 1}], ["bad"], [{"a": 3}]]}),
        )
        .node("f", "test.Frames", json!({}))
        .node("p", "test.Pass", json!({}))
        .named("all", "test.Collect", "all", json!({}))
        .edges([
            "o.output > f.frames",
            "f.a > p.value",
            "p.output > all.input_item",
        ]);
    let done = run(&graph, &always(Action::Skip)).await;
    assert_eq!(
        (done.status(), done.outputs()),
        (JobStatus::Completed, json!({"all": [[1], [], [3]]}))
    );
}

#[tokio::test]
async fn errors_with_rules_of_their_own_are_nobodys_question() {
    let refused = graph()
        .node("f", "test.ForEach", json!({"input_list": [1, 2, 3]}))
        .named("w", "test.Refuse", "w", json!({"on": 2}))
        .edges(["f.output > w.value"]);
    let suspended = graph().node("u", "test.Suspend", json!({}));
    let routed = graph()
        .node("f", "test.ForEach", json!({"input_list": [1]}))
        .named("w", "test.LateEmit", "w", json!({}))
        .edges(["f.output > w.value"]);
    for (graph, status) in [
        (refused, JobStatus::Completed),
        (suspended, JobStatus::Suspended),
        (routed, JobStatus::Failed),
    ] {
        let agent = always(Action::Skip);
        let done = run(&graph, &agent).await;
        assert_eq!((done.status(), agent.asked().len()), (status, 0));
    }
    // Outside of a fan-out a refusal is a failure like any other.
    let agent = always(Action::Skip);
    let graph = graph().named("w", "test.Refuse", "w", json!({"on": 2, "value": 2}));
    assert_eq!(run(&graph, &agent).await.status(), JobStatus::Completed);
    assert_eq!(agent.asked().len(), 1);
}

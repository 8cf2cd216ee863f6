use atelier_proto::common::v1::Money;
use atelier_proto::kernel::v1::{
    Chunk, EdgeStatus, EdgeUpdate, Gap, GenerationComplete, JobStatus, JobUpdate, NodeProgress, NodeStatus,
    NodeUpdate, OutputUpdate, Prediction,
};
use atelier_proto::tracker::v1::{Generation, GenerationStatus};
use serde_json::json;

use super::*;

fn event(event: Event) -> JobEvent {
    JobEvent {
        seq: 3,
        job_id: "J".to_owned(),
        workflow_id: None,
        event: Some(event),
        ..JobEvent::default()
    }
}

fn shown(inner: Event) -> serde_json::Value {
    frame(event(inner), "1").unwrap().json()
}

fn row(row: Generation) -> serde_json::Value {
    shown(Event::Prediction(Prediction {
        generation: Some(row),
        ..Prediction::default()
    }))
}

#[test]
fn w_082_an_unsaved_graph_has_null_and_the_empty_text_on_edges() {
    let update = EdgeUpdate {
        edge_id: "e".to_owned(),
        status: EdgeStatus::Active.into(),
        counter: Some(0),
    };
    let edge = shown(Event::EdgeUpdate(update));
    let expected = json!({"type": "edge_update", "job_id": "J", "workflow_id": "", "job_seq": 3, "edge_id": "e",
        "status": "active", "counter": 0});
    assert_eq!(edge, expected);
    let progress = NodeProgress {
        node_id: "n".to_owned(),
        progress: 250,
        total: 1000,
        preview: None,
    };
    let progress = shown(Event::NodeProgress(progress));
    assert_eq!(progress["workflow_id"], json!(null));
    assert_eq!(
        (&progress["progress"], &progress["total"]),
        (&json!(250), &json!(1000))
    );
}

#[test]
fn w_081_a_completed_run_always_has_outputs() {
    let update = JobUpdate {
        status: JobStatus::Completed.into(),
        ..JobUpdate::default()
    };
    let frame = frame(event(Event::JobUpdate(update)), "1").unwrap();
    assert!(frame.terminal);
    assert_eq!(frame.json()["result"], json!({"outputs": {}}));
    assert_eq!(frame.json()["error"], json!(null));
    let bare = Map::from_iter([("picture".to_owned(), Value::list(vec![1.into()]))]);
    let update = JobUpdate {
        status: JobStatus::Completed.into(),
        result: Some((&bare).into()),
        ..JobUpdate::default()
    };
    assert_eq!(
        shown(Event::JobUpdate(update))["result"],
        json!({"outputs": {"picture": [1]}})
    );
}

#[test]
fn w_084_and_085_costs_are_numbers_with_exact_text_and_unknown_is_null() {
    let cost = Money {
        amount: "0.7".to_owned(),
        currency: "USD".to_owned(),
    };
    let priced = row(Generation {
        cost: Some(cost),
        quantity: Some("1".to_owned()),
        ..Generation::default()
    });
    assert_eq!(priced["cost"], json!(0.7));
    assert_eq!(priced["cost_exact"], "0.700000000");
    assert_eq!(priced["receipt"]["cost"]["quantity_exact"], "1.000000000");
    let unpriced = row(Generation::default());
    assert_eq!(unpriced["cost"], json!(null));
    assert!(unpriced.get("cost_exact").is_none());
    let dead = row(Generation {
        status: GenerationStatus::Interrupted.into(),
        ..Generation::default()
    });
    assert_eq!(
        (&dead["status"], &dead["detail_status"]),
        (&json!("failed"), &json!("interrupted"))
    );
}

#[test]
fn w_090_a_warning_is_no_error() {
    let update = NodeUpdate {
        node_id: "g".to_owned(),
        status: NodeStatus::Warning.into(),
        error: Some("slow model".to_owned()),
        ..NodeUpdate::default()
    };
    let frame = frame(event(Event::NodeUpdate(update)), "1").unwrap();
    assert_eq!(frame.json()["status"], "warning");
    assert_eq!(frame.json()["error"], json!(null));
    assert_eq!(frame.seq, Some(3));
}

#[test]
fn w_091_zeros_and_nulls_that_belong_there_are_written_out() {
    let complete = shown(Event::GenerationComplete(GenerationComplete::default()));
    assert_eq!(complete["index"], 0);
    assert_eq!(complete["outputs"], json!({}));
    let running = NodeUpdate {
        status: NodeStatus::Running.into(),
        error: Some(String::new()),
        ..NodeUpdate::default()
    };
    let node = shown(Event::NodeUpdate(running));
    assert_eq!(node["error"], json!(null));
    assert_eq!(node["result"], json!(null));
    let chunk = shown(Event::Chunk(Chunk {
        content_type: "text".to_owned(),
        ..Chunk::default()
    }));
    assert_eq!(chunk["done"], json!(false));
    let output = shown(Event::OutputUpdate(OutputUpdate::default()));
    assert_eq!(output["metadata"], json!({}));
    for frame in [complete, node, chunk, output] {
        for internal in ["seq", "event_id", "invocation_id", "value_key"] {
            assert!(frame.get(internal).is_none());
        }
    }
}

#[test]
fn only_audio_progress_and_edges_may_be_given_up() {
    let piece = Map::from_iter([
        ("type".to_owned(), "chunk".into()),
        ("content_type".to_owned(), "audio".into()),
    ]);
    let value = Value::map(piece);
    let audio = OutputUpdate {
        value: Some((&value).into()),
        ..OutputUpdate::default()
    };
    assert_eq!(
        frame(event(Event::OutputUpdate(audio)), "1").unwrap().class,
        Class::Audio
    );
    let text = OutputUpdate {
        value: Some((&Value::from("x")).into()),
        ..OutputUpdate::default()
    };
    assert_eq!(
        frame(event(Event::OutputUpdate(text)), "1").unwrap().class,
        Class::Keep
    );
    assert!(frame(event(Event::Gap(Gap::default())), "1").is_none());
}

//! The golden frames of the wire specification 3.6: events of the contracts in, exactly these frames out.

use atelier_proto::common::v1::{MapValue, Money, Origin, Surface};
use atelier_proto::kernel::v1::job_event::Event;
use atelier_proto::kernel::v1::{
    Disposition, EdgeStatus, EdgeUpdate, GenerationComplete, JobStatus, JobUpdate, NodeStatus, NodeUpdate,
    OutputUpdate, Prediction,
};
use atelier_proto::tracker::v1::{Generation, GenerationStatus};
use atelier_proto::value::{Map, MediaRef, Value};
use prost_types::{Duration, Timestamp};
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

use crate::fakes::job_update;
use crate::stack::{Stack, graph};

const GOLDEN: &str = r#"
{"job_seq":1,"type":"job_update","status":"running"}
{"job_seq":2,"type":"edge_update","edge_id":"e1","status":"active","counter":1}
{"job_seq":3,"type":"node_update","node_id":"g","node_name":"Draw","node_type":"nodetool.image.TextToImage","status":"running","result":null,"error":null,"properties":{"width":512}}
{"job_seq":4,"type":"prediction","id":"P1","user_id":"1","node_id":"g","provider":"fake","model":"fake-image","capability":"text_to_image","status":"running","origin":{"surface":"workflow","job_id":"J","node_id":"g"},"asset_ids":[],"receipt":null,"params":{"prompt":"a lantern"},"data":null,"cost":null,"error":null,"started_at":"2026-09-03T12:00:00.000Z"}
{"job_seq":5,"type":"prediction","id":"P1","user_id":"1","node_id":"g","provider":"fake","model":"fake-image","capability":"text_to_image","status":"completed","origin":{"surface":"workflow","job_id":"J","node_id":"g"},"asset_ids":[],"receipt":{"provider_request_id":"r-1","cost":{"amount":0.02,"amount_exact":"0.020000000","currency":"USD"}},"params":{"prompt":"a lantern"},"data":null,"cost":0.02,"cost_exact":"0.020000000","error":null,"duration":1.5}
{"job_seq":6,"type":"edge_update","edge_id":"e2","status":"active","counter":1}
{"job_seq":7,"type":"generation_complete","node_id":"g","node_name":"Draw","node_type":"nodetool.image.TextToImage","index":0,"outputs":{"output":{"type":"image","uri":"/api/storage/1/A1.png","asset_uri":"asset://A1.png","asset_id":"A1","data":null}},"properties":{"prompt":"a lantern","width":512},"generation_ids":["P1"]}
{"job_seq":8,"type":"node_update","node_id":"g","node_name":"Draw","node_type":"nodetool.image.TextToImage","status":"completed","result":{"output":{"type":"image","uri":"/api/storage/1/A1.png","asset_uri":"asset://A1.png","asset_id":"A1","data":null}},"error":null,"properties":{"width":512},"provider_cost":null}
{"job_seq":9,"type":"edge_update","edge_id":"e2","status":"completed","counter":1}
{"job_seq":10,"type":"node_update","node_id":"o","node_name":"picture","node_type":"nodetool.output.ImageOutput","status":"running","result":null,"error":null,"properties":{"name":"picture"}}
{"job_seq":11,"type":"output_update","node_id":"o","node_name":"picture","output_name":"picture","value":{"type":"image","uri":"/api/storage/1/A1.png","asset_uri":"asset://A1.png","asset_id":"A1","data":null},"output_type":"image","metadata":{},"disposition":"replace"}
{"job_seq":12,"type":"generation_complete","node_id":"o","node_name":"picture","node_type":"nodetool.output.ImageOutput","index":0,"outputs":{"output":{"type":"image","uri":"/api/storage/1/A1.png","asset_uri":"asset://A1.png","asset_id":"A1","data":null}},"properties":{"name":"picture"}}
{"job_seq":13,"type":"node_update","node_id":"o","node_name":"picture","node_type":"nodetool.output.ImageOutput","status":"completed","result":{"output":{"type":"image","uri":"/api/storage/1/A1.png","asset_uri":"asset://A1.png","asset_id":"A1","data":null}},"error":null,"properties":{"name":"picture"},"provider_cost":null}
{"job_seq":14,"type":"job_update","status":"completed","error":null,"duration":2.1,"result":{"outputs":{"picture":[{"type":"image","uri":"/api/storage/1/A1.png","asset_uri":"asset://A1.png","asset_id":"A1","data":null}]}}}
"#;

fn map<const N: usize>(entries: [(&str, Value); N]) -> MapValue {
    (&Map::from_iter(entries.map(|(key, value)| (key.to_owned(), value)))).into()
}

fn image() -> Value {
    let media = MediaRef {
        kind: "image".to_owned(),
        uri: "asset://A1.png".to_owned(),
        asset_id: Some("A1".to_owned()),
        ..MediaRef::default()
    };
    media.into()
}

fn edge(edge_id: &str, status: EdgeStatus) -> Event {
    Event::EdgeUpdate(EdgeUpdate {
        edge_id: edge_id.to_owned(),
        status: status.into(),
        counter: Some(1),
    })
}

struct Node(&'static str, &'static str, &'static str);

const DRAW: Node = Node("g", "Draw", "nodetool.image.TextToImage");
const PICTURE: Node = Node("o", "picture", "nodetool.output.ImageOutput");

impl Node {
    fn update(&self, status: NodeStatus, properties: MapValue, result: Option<MapValue>) -> Event {
        Event::NodeUpdate(NodeUpdate {
            node_id: self.0.to_owned(),
            node_name: self.1.to_owned(),
            node_type: self.2.to_owned(),
            status: status.into(),
            result,
            properties: Some(properties),
            ..NodeUpdate::default()
        })
    }

    fn complete(&self, properties: MapValue, generation_ids: &[&str]) -> Event {
        Event::GenerationComplete(GenerationComplete {
            node_id: self.0.to_owned(),
            node_name: self.1.to_owned(),
            node_type: self.2.to_owned(),
            index: 0,
            outputs: Some(map([("output", image())])),
            properties: Some(properties),
            generation_ids: generation_ids.iter().map(|id| (*id).to_owned()).collect(),
        })
    }
}

fn prediction(row: Generation) -> Event {
    let origin = Origin {
        surface: Surface::Workflow.into(),
        job_id: Some("J".to_owned()),
        node_id: Some("g".to_owned()),
        invocation_id: Some("g/0".to_owned()),
        ..Origin::default()
    };
    let generation = Generation {
        generation_id: "P1".to_owned(),
        user_id: "1".to_owned(),
        provider: "fake".to_owned(),
        model: "fake-image".to_owned(),
        capability: "text_to_image".to_owned(),
        origin: Some(origin),
        parameters: Some(map([("prompt", "a lantern".into())])),
        ..row
    };
    Event::Prediction(Prediction {
        node_id: "g".to_owned(),
        node_type: String::new(),
        generation: Some(generation),
    })
}

fn simple_run() -> Vec<Event> {
    let result = || Some(map([("output", image())]));
    let width = || map([("width", 512.into())]);
    let name = || map([("name", "picture".into())]);
    let opened = Generation {
        status: GenerationStatus::Running.into(),
        started_at: Some(Timestamp {
            seconds: 1_788_436_800,
            nanos: 0,
        }),
        ..Generation::default()
    };
    let closed = Generation {
        status: GenerationStatus::Completed.into(),
        provider_request_id: Some("r-1".to_owned()),
        cost: Some(Money {
            amount: "0.020000000".to_owned(),
            currency: "USD".to_owned(),
        }),
        duration: Some(Duration {
            seconds: 1,
            nanos: 500_000_000,
        }),
        ..Generation::default()
    };
    let shown = OutputUpdate {
        node_id: "o".to_owned(),
        node_name: "picture".to_owned(),
        output_name: "picture".to_owned(),
        value: Some((&image()).into()),
        output_type: "image".to_owned(),
        disposition: Disposition::Replace.into(),
        done: false,
    };
    let outputs = Map::from_iter([("picture".to_owned(), Value::list(vec![image()]))]);
    let completed = JobUpdate {
        status: JobStatus::Completed.into(),
        result: Some(map([("outputs", outputs.into())])),
        duration: Some(Duration {
            seconds: 2,
            nanos: 100_000_000,
        }),
        ..JobUpdate::default()
    };
    vec![
        job_update(JobStatus::Running),
        edge("e1", EdgeStatus::Active),
        DRAW.update(NodeStatus::Running, width(), None),
        prediction(opened),
        prediction(closed),
        edge("e2", EdgeStatus::Active),
        DRAW.complete(
            map([("prompt", "a lantern".into()), ("width", 512.into())]),
            &["P1"],
        ),
        DRAW.update(NodeStatus::Completed, width(), result()),
        edge("e2", EdgeStatus::Completed),
        PICTURE.update(NodeStatus::Running, name(), None),
        Event::OutputUpdate(shown),
        PICTURE.complete(name(), &[]),
        PICTURE.update(NodeStatus::Completed, name(), result()),
        Event::JobUpdate(completed),
    ]
}

fn golden() -> Vec<serde_json::Value> {
    let stamped = |line: &str| {
        let mut frame: serde_json::Value = serde_json::from_str(line).expect("golden");
        frame["job_id"] = json!("J");
        frame["workflow_id"] = json!("W");
        frame
    };
    GOLDEN
        .lines()
        .filter(|line| !line.is_empty())
        .map(stamped)
        .collect()
}

#[tokio::test]
async fn w_070_the_simple_run_is_told_in_exactly_these_frames_in_both_modes() {
    let stack = Stack::start().await;
    *stack.fakes.script.lock().expect("lock") = simple_run();
    let mut text = stack.text_socket().await;
    text.command(
        "run_job",
        json!({"workflow_id": "W", "graph": graph(), "job_id": "J"}),
    )
    .await;
    let mut binary = stack.socket().await;
    let mut frames = text.until_the_end().await;
    frames.retain(|frame| frame.get("type").is_some());
    let golden = golden();
    for (frame, expected) in frames.iter().zip(&golden) {
        assert_eq!(frame, expected);
    }
    assert_eq!(frames.len(), golden.len());
    binary.command("reconnect_job", json!({"job_id": "J"})).await;
    let mut frames = binary.until_the_end().await;
    frames.retain(|frame| frame.get("job_seq").is_some());
    assert_eq!(frames, golden);
}

/// Keys that may be null, and are always there.
const NULLABLE: &[&str] = &[
    "workflow_id",
    "result",
    "error",
    "receipt",
    "data",
    "cost",
    "provider_cost",
];
/// Keys whose numbers are integers.
const INTEGERS: &[&str] = &[
    "job_seq",
    "index",
    "counter",
    "progress",
    "total",
    "last_seq",
    "replay_count",
];

#[tokio::test]
async fn w_013_no_extension_no_stray_nil_and_no_float_for_an_integer() {
    let stack = Stack::start().await;
    *stack.fakes.script.lock().expect("lock") = simple_run();
    let mut socket = stack.socket().await;
    socket
        .command(
            "run_job",
            json!({"workflow_id": "W", "graph": graph(), "job_id": "J"}),
        )
        .await;
    let mut seen = 0;
    while seen < 14 {
        let Some(Ok(Message::Binary(bytes))) = socket.next_message().await else {
            panic!("not binary")
        };
        let mut rest = bytes.as_ref();
        let frame = rmpv::decode::read_value(&mut rest).expect("msgpack");
        assert!(rest.is_empty());
        no_extension(&frame);
        for (key, value) in frame.as_map().expect("map") {
            let key = key.as_str().expect("text");
            assert!(
                !value.is_nil() || NULLABLE.contains(&key),
                "{key} is nil in {frame}"
            );
            assert!(
                !INTEGERS.contains(&key) || value.is_i64() || value.is_u64(),
                "{key} in {frame}"
            );
            seen += usize::from(key == "job_seq");
        }
    }
}

fn no_extension(value: &rmpv::Value) {
    match value {
        rmpv::Value::Ext(..) => panic!("an extension"),
        rmpv::Value::Array(values) => values.iter().for_each(no_extension),
        rmpv::Value::Map(entries) => entries.iter().for_each(|(key, value)| {
            assert!(key.is_str());
            no_extension(value);
        }),
        _ => {}
    }
}

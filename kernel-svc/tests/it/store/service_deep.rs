//! Values that are nested more deeply than a message can be: the run says so, and its log stays readable.

use atelier_common::testkit::engines;
use atelier_kernel::settings::Settings;
use atelier_proto::kernel::v1::JobStatus;
use serde_json::{Value as Json, json};

use super::{
    fakes::Provider,
    kernel::{Up, edge, node},
    scene::image,
};

fn nested(levels: usize, list: bool) -> Json {
    (0..levels).fold(json!(1), |inner, _| {
        if list {
            json!([inner])
        } else {
            json!({"in": inner})
        }
    })
}
fn read(text: &str) -> Json {
    json!({
        "nodes": [
            node("read", "nodetool.text.ParseJSON", json!({"text": text})),
            node("out", "nodetool.output.Output", json!({"name": "read"})),
        ],
        "edges": [edge("read.output", "out.value")],
    })
}
fn keep(value: &Json) -> Json {
    json!({
        "nodes": [
            node("keep", "nodetool.constant.Dict", json!({"value": {"in": value}})),
            node("out", "nodetool.output.Output", json!({"name": "read"})),
        ],
        "edges": [edge("keep.output", "out.value")],
    })
}

#[tokio::test]
async fn a_value_that_is_nested_too_deeply_fails_its_node_and_damages_nothing() {
    for db in engines().await {
        let provider = Provider::new((&image(b"sea")).into(), true);
        let up = Up::new(&db, Settings::default(), provider).await;
        for (at, (levels, list, expected)) in [
            (10, false, JobStatus::Completed),
            (20, true, JobStatus::Completed),
            (40, false, JobStatus::Failed),
            (60, true, JobStatus::Failed),
            (110, false, JobStatus::Failed),
            (110, true, JobStatus::Failed),
        ]
        .into_iter()
        .enumerate()
        {
            let value = nested(levels, list);
            for (kind, graph) in [("read", read(&value.to_string())), ("keep", keep(&value))] {
                let job_id = format!("{kind}{at}");
                let Ok((_, created)) = up.run(&job_id, &graph).await else {
                    assert_eq!(expected, JobStatus::Failed, "{levels} {list}");
                    continue;
                };
                assert!(created);
                let job = up.end(&job_id).await;
                assert_eq!(job.status(), expected, "{kind} {levels} {list} {:?}", job.error);
                let (_, events) = up.watch(&job_id, 0, true).await;
                assert_eq!(
                    i64::try_from(events.len()).unwrap(),
                    job.last_seq,
                    "{kind} {levels}"
                );
            }
        }
    }
}

//! Sounds in pieces and back.

use std::sync::Arc;

use atelier_proto::kernel::v1::JobStatus;
use atelier_proto::value::{Map, Value};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::json;

use super::{Sound, codec};
use crate::nodes::{
    media_io::Stop,
    media_testing::{graph, node, only},
};

fn heard(value: &Value) -> Sound {
    let data = value
        .as_media()
        .and_then(|media| media.data.clone())
        .expect("bytes");
    codec::decode("test", &data, &Stop::default()).expect("a sound")
}

#[tokio::test]
async fn a_sound_goes_through_pieces_and_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let samples: Vec<f32> = (0_u8..100).map(|at| f32::from(at) / 200.0).collect();
    let sound = codec::encode(&Sound {
        rate: 1_000,
        channels: vec![samples.clone()],
    })
    .expect("WAV");
    let data = sound
        .as_media()
        .and_then(|media| media.data.clone())
        .expect("bytes");
    std::fs::write(folder.path().join("a.wav"), data).expect("a file");
    let services = Arc::new(crate::nodes::media_testing::Local {
        workspace: Some(folder.path().to_owned()),
        ..Default::default()
    });
    let nodes = json!([
        ["file", "nodetool.audio.LoadAudioFile", {"path": "a.wav"}],
        ["cut", "nodetool.audio.realtime.AudioToChunks", {"chunk_duration": 0.03}],
        ["loud", "nodetool.audio.realtime.StreamingGain", {"gain_db": 6.0206}],
        ["whole", "nodetool.audio.realtime.ChunksToAudio", {}],
        ["out", "nodetool.output.Output", {"name": "sound"}],
    ]);
    let edges = [
        "file.output -> cut.audio",
        "cut.chunk -> loud.chunk",
        "loud.chunk -> whole.chunk",
        "whole.audio -> out.value",
    ];
    let (result, _) = graph(nodes, &edges, Map::new(), services).await;
    assert_eq!(result.status, JobStatus::Completed, "{:?}", result.error);
    let out = heard(&only(&result, "sound"));
    assert_eq!((out.rate, out.len()), (1_000, 100));
    assert!(
        out.channels[0]
            .iter()
            .zip(samples)
            .all(|(out, sample)| (out - 2.0 * sample).abs() < 1.0e-3)
    );
}

#[tokio::test]
async fn pieces_of_both_encodings_are_read() {
    let content = STANDARD.encode([0_u8, 0x40, 0, 0xc0]);
    let piece = json!({"chunk": {"type": "chunk", "content_type": "audio", "content": content,
        "content_metadata": {"sample_rate": 8000, "channels": 2}}});
    let out = node("nodetool.audio.ChunkToAudio", piece, &[])
        .await
        .expect("a sound");
    assert_eq!(
        heard(&out["audio"]),
        Sound {
            rate: 8_000,
            channels: vec![vec![0.5], vec![-0.5]]
        }
    );
    for (piece, expected) in [
        (
            json!({"chunk": {"content": ""}}),
            "the input `chunk` is empty: there is no sound in it",
        ),
        (
            json!({"chunk": {"content": "?"}}),
            "the input `chunk` is no sound: its content is not base64",
        ),
        (json!({"chunk": 5}), "the input `chunk` expects chunk, got int"),
        (
            json!({"chunk": {"content": "AAAA", "content_metadata": {"channels": 99}}}),
            "the input `chunk` is a sound of 99 channels at 24000 Hz, which cannot be worked with",
        ),
    ] {
        let error = node("nodetool.audio.ChunkToAudio", piece, &[])
            .await
            .expect_err("a fault");
        assert_eq!(error.message, expected);
    }
}

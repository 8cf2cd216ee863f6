//! What is refused, and sounds that go through graphs.

use std::sync::Arc;

use atelier_proto::{
    kernel::v1::JobStatus,
    value::{Map, MediaRef, Value},
};
use bytes::Bytes;
use rstest::rstest;
use serde_json::{Value as Json, json};

use super::tests::{hundredths, sound, tone};
use crate::nodes::{
    catalog,
    media_testing::{Local, call, context, graph, inputs, node, only, run_file},
};

#[rstest]
#[case("lib.audio.Gain", json!({"gain_db": 99}), "the input `gain_db` must be between -60 and 24, got 99")]
#[case("nodetool.audio.Trim", json!({"start": 9}), "the input `end` and the input `start` cut off more than there is")]
#[case("nodetool.audio.Trim", json!({"start": -1}), "the input `start` must be at least 0, got -1")]
#[case("nodetool.audio.SliceAudio", json!({"start": 2, "end": 1}), "the input `end` must be after the input `start`")]
#[case("nodetool.audio.StereoToMono", json!({"method": "x"}), "the input `method` must be one of: average, left, right")]
#[case("nodetool.audio.CreateSilence", json!({"duration": 1e9}), "the input `duration` gives more than 67108864 samples")]
#[case("nodetool.audio.CreateSilence", json!({"sample_rate": 5}), "the input `sample_rate` must be between 1000 and 384000, got 5")]
#[case("lib.librosa.analysis.MFCC", json!({"fmin": 9000}), "the input `fmin` must be below 500, got 9000")]
#[case("nodetool.audio.CreateSilence", json!({"duration": 1000}),
    "the sound would have 88200044 bytes, more than 50331648 that can be handed on")]
#[tokio::test]
async fn what_does_not_fit_is_refused(#[case] name: &str, #[case] params: Json, #[case] expected: &str) {
    let audio = sound(1_000, &[&[0.1, 0.2]]);
    let media: &[(&str, &Value)] = if name.ends_with("CreateSilence") {
        &[]
    } else {
        &[("audio", &audio)]
    };
    assert_eq!(
        node(name, params, media).await.expect_err("a fault").message,
        expected
    );
}

#[tokio::test]
async fn broken_and_missing_sounds_are_named() {
    let mut seen = 0;
    for (name, _) in super::types() {
        let meta = catalog::meta(name).expect("a line");
        let Some(first) = meta.inputs.iter().find(|input| input.ty == "audio") else {
            continue;
        };
        seen += 1;
        let error = node(name, json!({}), &[]).await.expect_err(name);
        assert!(
            error
                .message
                .starts_with(&format!("the input `{}` is empty", first.name)),
            "{name}: {error}"
        );
        for bytes in [
            &b"no sound at all"[..],
            b"RIFF\0\0\0\0WAVEfmt ",
            b"ID3\x04broken",
            b"fLaC\0\0\0\x22",
            b"OggS\0\0",
        ] {
            let data = Some(Bytes::from_static(bytes));
            let broken = Value::media(MediaRef {
                kind: "audio".to_owned(),
                data,
                ..MediaRef::default()
            });
            let error = node(name, json!({}), &[(&first.name, &broken)])
                .await
                .expect_err(name);
            assert!(
                error
                    .message
                    .starts_with(&format!("the input `{}` is no sound", first.name)),
                "{name}: {error}"
            );
        }
    }
    assert!(seen > 20, "{seen}");
}

#[tokio::test]
async fn sounds_fan_out() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, level) in [("a.wav", 0.1), ("b.wav", 0.2)] {
        let data = sound(1_000, &[&[level]])
            .as_media()
            .and_then(|media| media.data.clone())
            .expect("bytes");
        std::fs::write(folder.path().join(name), data).expect("a file");
    }
    let services = Arc::new(Local {
        workspace: Some(folder.path().to_owned()),
        ..Local::default()
    });
    let nodes = json!([
        ["folder", "nodetool.audio.LoadAudioFolder", {"folder": "."}],
        ["loud", "nodetool.audio.Normalize", {}],
        ["all", "nodetool.control.Collect", {}],
        ["joined", "nodetool.audio.ConcatList", {}],
        ["out", "nodetool.output.Output", {"name": "sound"}],
    ]);
    let edges = [
        "folder.audio -> loud.audio",
        "loud.output -> all.input_item",
        "all.output -> joined.audio_files",
        "joined.output -> out.value",
    ];
    let (result, _) = graph(nodes, &edges, Map::new(), services).await;
    assert_eq!(result.status, JobStatus::Completed, "{:?}", result.error);
    assert_eq!(hundredths(&only(&result, "sound")), [99, 99]);
}

/// The field's files take a path as their input.
#[rstest]
#[case("lib_pedalboard_reverb_cli.json")]
#[case("lib_librosa_mfcc_cli.json")]
#[tokio::test]
async fn files_with_older_names_run(#[case] name: &str) {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/spec");
    let specs = std::env::var("ATELIER_SPECS").unwrap_or_else(|_| beside.to_owned());
    let Ok(text) = std::fs::read_to_string(format!("{specs}/../workflows/{name}")) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let data = sound(22_050, &[&tone(22_050, 440.0, 0.2)])
        .as_media()
        .and_then(|media| media.data.clone());
    std::fs::write(folder.path().join("tone.wav"), data.expect("bytes")).expect("a file");
    let services = Arc::new(Local {
        workspace: Some(folder.path().to_owned()),
        ..Local::default()
    });
    let params = Map::from_iter([("audio_path".to_owned(), "tone.wav".into())]);
    let file = serde_json::from_str(&text).expect("JSON");
    let (result, artifacts) = run_file(&file, params, services).await;
    assert_eq!(result.status, JobStatus::Completed, "{:?}", result.error);
    assert!(
        artifacts
            .iter()
            .any(|(node, _)| node == "mfcc" || node == "reverb"),
        "{artifacts:?}"
    );
}

#[tokio::test]
async fn a_cancelled_node_ends() {
    let ctx = context("nodetool.audio.Reverse", Arc::default());
    ctx.cancel.cancel();
    let audio = sound(1_000, &[&[0.1]]);
    let error = call(&ctx, inputs(json!({}), &[("audio", &audio)]))
        .await
        .expect_err("cancelled");
    assert_eq!(error.kind, crate::node::NodeErrorKind::Cancelled);
}

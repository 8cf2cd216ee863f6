//! Films by the installed ffmpeg; left out where there is none. `ATELIER_FFMPEG` names another folder of programs.

use std::{path::PathBuf, sync::Arc};

use atelier_proto::{
    kernel::v1::JobStatus,
    value::{BytesForm, Map, Value, to_json},
};
use rstest::rstest;
use serde_json::{Value as Json, json};

use crate::nodes::{
    audio::silence_for_tests,
    media_testing::{Local, call, context, graph, grey, inputs, only, pixels, reds},
};

fn services() -> Option<Arc<Local>> {
    let programs = std::env::var("ATELIER_FFMPEG").ok().map(PathBuf::from);
    let name = |name: &str| {
        programs
            .as_ref()
            .map_or_else(|| name.into(), |folder| folder.join(name))
    };
    let there = |program: &str| {
        std::process::Command::new(name(program))
            .arg("-version")
            .output()
            .is_ok()
    };
    (there("ffmpeg") && there("ffprobe")).then(|| {
        Arc::new(Local {
            programs,
            ..Local::default()
        })
    })
}
async fn made(services: &Arc<Local>, name: &str, params: Json, media: &[(&str, &Value)]) -> Map {
    let ctx = context(&format!("nodetool.video.{name}"), Arc::clone(services));
    call(&ctx, inputs(params, media))
        .await
        .unwrap_or_else(|error| panic!("{name}: {error}"))
}
/// Two seconds of four pictures, from dark to light, with sound.
async fn film(services: &Arc<Local>) -> Value {
    let pictures = [0, 80, 160, 240].map(|value| grey(32, &[value; 32 * 16]));
    let silent = made(
        services,
        "FrameToVideo",
        json!({"fps": 2}),
        &[("frame", &Value::list(pictures.to_vec()))],
    )
    .await;
    let sound = silence_for_tests(2.0);
    made(
        services,
        "AddAudio",
        json!({}),
        &[("video", &silent["output"]), ("audio", &sound)],
    )
    .await["output"]
        .clone()
}
async fn facts(services: &Arc<Local>, film: &Value) -> Json {
    to_json(
        &made(services, "GetVideoInfo", json!({}), &[("video", film)])
            .await
            .into(),
        BytesForm::Tagged,
    )
}

/// Length in seconds, and size, after each type.
#[rstest]
#[case("Blur", json!({}), 2.0, (32, 16))]
#[case("ColorBalance", json!({"red_adjust": 0}), 2.0, (32, 16))]
#[case("Denoise", json!({}), 2.0, (32, 16))]
#[case("Resize", json!({"width": 64}), 2.0, (64, 32))]
#[case("Resize", json!({}), 2.0, (32, 16))]
#[case("Reverse", json!({}), 2.0, (32, 16))]
#[case("Rotate", json!({"angle": 90}), 2.0, (16, 32))]
#[case("Saturation", json!({"saturation": 2}), 2.0, (32, 16))]
#[case("SetSpeed", json!({"speed_factor": 2}), 1.0, (32, 16))]
#[case("SetSpeed", json!({"speed_factor": 0.25}), 8.0, (32, 16))]
#[case("Sharpness", json!({}), 2.0, (32, 16))]
#[case("Stabilize", json!({}), 2.0, (32, 16))]
#[case("Trim", json!({"start_time": 0.5, "end_time": 1.5}), 1.0, (32, 16))]
#[case("ChromaKey", json!({}), 2.0, (32, 16))]
#[tokio::test]
async fn films_are_changed(
    #[case] name: &str,
    #[case] params: Json,
    #[case] seconds: f64,
    #[case] size: (i64, i64),
) {
    let Some(services) = services() else { return };
    let film = film(&services).await;
    let out = made(&services, name, params, &[("video", &film)]).await["output"].clone();
    let facts = facts(&services, &out).await;
    assert_eq!(
        (facts["width"].as_i64(), facts["height"].as_i64()),
        (Some(size.0), Some(size.1)),
        "{name} {facts}"
    );
    assert!(
        (facts["duration"].as_f64().expect("seconds") - seconds).abs() < 0.3 * seconds,
        "{name} {facts}"
    );
    assert_eq!(facts["has_audio"], json!(true), "{name}");
}

#[tokio::test]
async fn films_are_joined_and_taken_apart() {
    let Some(services) = services() else { return };
    let film = film(&services).await;
    let joined = made(&services, "Concat", json!({}), &[("a", &film), ("b", &film)]).await["output"].clone();
    let told = facts(&services, &joined).await;
    assert!(
        (told["duration"].as_f64().expect("seconds") - 4.0).abs() < 0.3,
        "{told}"
    );
    let over = made(
        &services,
        "Overlay",
        json!({"scale": 0.5}),
        &[("main_video", &film), ("overlay_video", &film)],
    )
    .await;
    assert_eq!(facts(&services, &over["output"]).await["width"], json!(32));
    let turned = made(
        &services,
        "Transition",
        json!({"duration": 0.5, "transition_type": "fade"}),
        &[("video_a", &film), ("video_b", &film)],
    )
    .await;
    let told = facts(&services, &turned["output"]).await;
    assert!(
        (told["duration"].as_f64().expect("seconds") - 3.5).abs() < 0.3,
        "{told}"
    );
    let picture = made(
        &services,
        "ExtractFrame",
        json!({"time": 1.1}),
        &[("video", &film)],
    )
    .await["output"]
        .clone();
    assert!(
        (150..170).contains(&pixels(&picture).1[0][0]),
        "{:?}",
        pixels(&picture).1[0]
    );
    let sound = made(&services, "ExtractAudio", json!({}), &[("video", &film)]).await["output"].clone();
    assert_eq!(sound.get("mime_type"), Some("audio/wav".into()));
    let fps = made(&services, "Fps", json!({}), &[("video", &film)]).await;
    assert_eq!(fps["output"], Value::Float(2.0));
    let late = context("nodetool.video.ExtractFrame", Arc::clone(&services));
    let error = call(&late, inputs(json!({"time": 60}), &[("video", &film)]))
        .await
        .expect_err("a fault");
    assert!(
        error
            .message
            .starts_with("the input `time` is after the end of the film"),
        "{error}"
    );
}

/// Each picture of a film by itself, changed, and a film again.
#[tokio::test]
async fn pictures_of_a_film_fan_out() {
    let Some(services) = services() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let film = film(&services).await;
    let data = film
        .as_media()
        .and_then(|media| media.data.clone())
        .expect("bytes");
    std::fs::write(folder.path().join("a.mp4"), data).expect("a file");
    let services = Arc::new(Local {
        workspace: Some(folder.path().to_owned()),
        programs: services.programs.clone(),
        ..Local::default()
    });
    let nodes = json!([
        ["file", "nodetool.video.LoadVideoFile", {"path": "a.mp4"}],
        ["each", "nodetool.video.ForEachFrame", {"start": 1, "end": 3}],
        ["negative", "lib.image.filter.Invert", {}],
        ["film", "nodetool.video.FrameToVideo", {"fps": 4}],
        ["facts", "nodetool.video.GetVideoInfo", {}],
        ["out", "nodetool.output.Output", {"name": "frames"}],
    ]);
    let edges = [
        "file.output -> each.video",
        "each.frame -> negative.image",
        "negative.output -> film.frame",
        "film.output -> facts.video",
        "facts.frame_count -> out.value",
    ];
    let (result, artifacts) = graph(nodes, &edges, Map::new(), services).await;
    assert_eq!(result.status, JobStatus::Completed, "{:?}", result.error);
    assert_eq!(only(&result, "frames"), Value::Int(2));
    let shades: Vec<u8> = artifacts
        .iter()
        .filter(|(id, _)| id == "negative")
        .map(|(_, out)| reds(&out["output"])[0])
        .collect();
    assert!(
        shades.len() == 2 && shades[0].abs_diff(175) < 8 && shades[1].abs_diff(95) < 8,
        "{shades:?}"
    );
}

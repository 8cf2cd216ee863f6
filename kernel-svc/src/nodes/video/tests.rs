//! What does not need ffmpeg: arguments, refusals, and a program that is missing or stands in for it.

use std::{path::PathBuf, sync::Arc};

use atelier_proto::value::{Map, MediaRef, Value};
use rstest::rstest;
use serde_json::{Value as Json, json};

use super::frames::pictures;
use crate::nodes::{
    media_io::Params,
    media_testing::{Local, call, context, grey, inputs},
};

fn film() -> Value {
    let data = Some(b"\0\0\0\x18ftypmp42 film".to_vec().into());
    Value::media(MediaRef {
        kind: "video".to_owned(),
        data,
        ..MediaRef::default()
    })
}
/// A stand-in: a script that does as it is told, in the place of each program.
fn stand_in(folder: &std::path::Path, script: &str) -> Arc<Local> {
    use std::os::unix::fs::PermissionsExt;
    for name in ["ffmpeg", "ffprobe"] {
        let path = folder.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}")).expect("a script");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("a program");
    }
    Arc::new(Local {
        programs: Some(folder.to_owned()),
        ..Local::default()
    })
}

#[tokio::test]
async fn k_207_a_missing_ffmpeg_is_named() {
    let services = Arc::new(Local {
        programs: Some(PathBuf::from("/nowhere")),
        ..Local::default()
    });
    let ctx = context("nodetool.video.Blur", services);
    let error = call(&ctx, inputs(json!({}), &[("video", &film())]))
        .await
        .expect_err("a fault");
    assert_eq!(error.code.as_deref(), Some("missing_runtime_package"));
    assert_eq!(error.runtime_package.as_deref(), Some("ffmpeg"));
    assert!(
        error
            .message
            .starts_with("ffmpeg is not installed: install the package ffmpeg"),
        "{error}"
    );
}

/// Arguments are numbers and fixed words, and the reader of the file is named.
#[tokio::test]
async fn the_last_argument_is_written_and_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let services = stand_in(
        folder.path(),
        "for last; do :; done\nprintf '%s ' \"$@\" > \"$last\"\n",
    );
    let ctx = context("nodetool.video.Trim", services);
    let out = call(
        &ctx,
        inputs(json!({"start_time": 1.5, "end_time": 4}), &[("video", &film())]),
    )
    .await
    .expect("a film");
    let media = out["output"].as_media().expect("media").clone();
    assert_eq!(
        (media.kind.as_str(), media.mime_type.as_deref()),
        ("video", Some("video/mp4"))
    );
    let said = String::from_utf8(media.data.expect("bytes").to_vec()).expect("text");
    assert!(
        said.contains("-protocol_whitelist file,pipe -f mov -i "),
        "{said}"
    );
    assert!(
        said.contains("-ss 1.5 -t 2.5 -vf null,scale=trunc(iw/2)*2:trunc(ih/2)*2"),
        "{said}"
    );
    assert!(said.contains("-fs 50331649"), "{said}");
}

#[tokio::test]
async fn what_ffmpeg_complains_about_is_told_without_paths() {
    let folder = tempfile::tempdir().expect("a folder");
    let services = stand_in(
        folder.path(),
        "echo '/tmp/secret/in0: moov atom not found' >&2\nexit 1\n",
    );
    let ctx = context("nodetool.video.Blur", services);
    let error = call(&ctx, inputs(json!({}), &[("video", &film())]))
        .await
        .expect_err("a fault");
    assert_eq!(error.message, "ffmpeg failed: moov atom not found");
}

#[tokio::test]
async fn a_cancel_ends_the_program() {
    let folder = tempfile::tempdir().expect("a folder");
    let services = stand_in(folder.path(), "exec sleep 600\n");
    let ctx = context("nodetool.video.Blur", services);
    let cancel = ctx.cancel.clone();
    let film = film();
    let inputs = inputs(json!({}), &[("video", &film)]);
    let (out, ()) = tokio::join!(call(&ctx, inputs), async {
        tokio::task::yield_now().await;
        cancel.cancel();
    });
    assert_eq!(
        out.expect_err("cancelled").kind,
        crate::node::NodeErrorKind::Cancelled
    );
}

#[rstest]
#[case("Trim", json!({"start_time": 5, "end_time": 4}), "the input `end_time` must be after the input `start_time`")]
#[case("Trim", json!({"start_time": -5}), "the input `start_time` must be at least 0, got -5")]
#[case("SetSpeed", json!({"speed_factor": 0}), "the input `speed_factor` must be between 0.05 and 100, got 0")]
#[case("Resize", json!({"width": 10_000}), "the input `width` must be at most 8192, got 10000")]
#[case("Blur", json!({"strength": 99}), "the input `strength` must be between 0 and 20, got 99")]
#[case("ChromaKey", json!({"key_color": "no"}), "the input `key_color` must be a colour like #ff8800, got \"no\"")]
#[tokio::test]
async fn what_does_not_fit_is_refused(#[case] name: &str, #[case] params: Json, #[case] expected: &str) {
    let ctx = context(&format!("nodetool.video.{name}"), Arc::default());
    let error = call(&ctx, inputs(params, &[("video", &film())]))
        .await
        .expect_err("a fault");
    assert_eq!(error.message, expected);
}

/// Lists of other files are no films: they could name what nobody may read.
#[rstest]
#[case(b"#EXTM3U\n#EXT-X-ENDLIST\nfile:///etc/passwd\n")]
#[case(b"ffconcat version 1.0\nfile '/etc/passwd'\n")]
#[case(b"<?xml version=\"1.0\"?><MPD/>")]
#[tokio::test]
async fn lists_of_files_are_no_films(#[case] bytes: &'static [u8]) {
    let ctx = context("nodetool.video.Blur", Arc::default());
    let data = Some(bytes::Bytes::from_static(bytes));
    let list = Value::media(MediaRef {
        kind: "video".to_owned(),
        data,
        ..MediaRef::default()
    });
    let error = call(&ctx, inputs(json!({}), &[("video", &list)]))
        .await
        .expect_err("a fault");
    assert!(
        error.message.starts_with("the input `video` is no film or sound"),
        "{error}"
    );
}

#[rstest]
#[case(json!({"speed_factor": 2}), "atempo=2")]
#[case(json!({"speed_factor": 0.1}), "atempo=0.5,atempo=0.5,atempo=0.5,atempo=0.8")]
fn speeds_are_reached_in_steps(#[case] params: Json, #[case] expected: &str) {
    let ctx = context("nodetool.video.SetSpeed", Arc::default());
    let args = super::set_speed(&Params::new(&ctx, inputs(params, &[]))).expect("arguments");
    assert_eq!(args.last().map(String::as_str), Some(expected));
}

#[tokio::test]
async fn pictures_come_apart_in_a_stream() {
    let one = grey(1, &[1])
        .as_media()
        .and_then(|media| media.data.clone())
        .expect("bytes");
    let two = [one.as_ref(), one.as_ref()].concat();
    assert_eq!(pictures(&two).await.expect("two"), [one.len(); 2]);
    assert_eq!(pictures(b"").await.expect("none"), [0; 0]);
    assert!(pictures(&two[..two.len() - 3]).await.is_err(), "broken off");
    assert!(pictures(b"GIF89a??").await.is_err(), "something else");
    assert!(
        pictures(b"\x89PNG\r\n\x1a\n\xff\xff\xff\xffIDAT").await.is_err(),
        "too large"
    );
}

#[tokio::test]
async fn empty_inputs_are_named() {
    for name in ["Blur", "Trim", "GetVideoInfo", "ExtractAudio", "ExtractFrame"] {
        let ctx = context(&format!("nodetool.video.{name}"), Arc::default());
        let error = call(&ctx, Map::new()).await.expect_err("a fault");
        assert_eq!(
            error.message,
            "the input `video` is empty: there is nothing to work on"
        );
    }
}

//! What a film says of itself.

use async_trait::async_trait;
use atelier_proto::value::Map;
use serde_json::Value as Json;

use super::ffmpeg::{Input, Scratch, finished, program};
use crate::{
    node::{Context, Executor, NodeError},
    nodes::{
        args::{map, one},
        code::{Types, factory},
        media_io::{need, value_fault},
    },
};

/// Frames that are turned around wait in memory; that much of them.
const MAX_MEMORY: f64 = 1.5e9;

/// All types of this part.
pub(super) fn types() -> Types {
    vec![
        ("nodetool.video.Fps", factory(Facts { only_fps: true })),
        ("nodetool.video.GetVideoInfo", factory(Facts { only_fps: false })),
    ]
}

/// What there is in a film.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Film {
    pub seconds: f64,
    pub width: i64,
    pub height: i64,
    pub fps: f64,
    pub frames: i64,
    pub codec: String,
    pub has_audio: bool,
}
/// Asks ffprobe.
pub(super) async fn probe(ctx: &Context, name: &str, input: &Input) -> Result<Film, NodeError> {
    let folder = input.path.parent().unwrap_or(&input.path);
    let mut command = program(ctx, "ffprobe", folder);
    command
        .args([
            "-v",
            "error",
            "-protocol_whitelist",
            "file,pipe",
            "-f",
            input.format,
        ])
        .args(["-print_format", "json", "-show_streams", "-show_format", "-i"])
        .arg(&input.path);
    let answer = finished(ctx, command, "ffprobe").await?;
    let json: Json = serde_json::from_slice(&answer).unwrap_or_default();
    read(&json).ok_or_else(|| value_fault(name, "is no film: it has no pictures"))
}
/// ffprobe writes numbers as texts.
fn number(json: &Json) -> Option<f64> {
    json.as_f64()
        .or_else(|| json.as_str()?.parse().ok())
        .filter(|number: &f64| number.is_finite())
}
/// A fraction like `30000/1001`.
fn fraction(json: &Json) -> Option<f64> {
    let (over, under) = json.as_str()?.split_once('/')?;
    let (over, under): (f64, f64) = (over.parse().ok()?, under.parse().ok()?);
    (under > 0.0).then(|| over / under)
}
fn read(json: &Json) -> Option<Film> {
    let streams = json["streams"].as_array()?;
    let kind = |kind: &'static str| streams.iter().find(move |stream| stream["codec_type"] == kind);
    let video = kind("video")?;
    let seconds = number(&json["format"]["duration"])
        .or_else(|| number(&video["duration"]))
        .unwrap_or_default();
    let fps = fraction(&video["avg_frame_rate"])
        .filter(|fps| *fps > 0.0)
        .or_else(|| fraction(&video["r_frame_rate"]))
        .unwrap_or_default();
    #[expect(clippy::cast_possible_truncation, reason = "a number of frames")]
    let frames = number(&video["nb_frames"]).unwrap_or(seconds * fps).round() as i64;
    Some(Film {
        seconds,
        width: video["width"].as_i64().unwrap_or_default(),
        height: video["height"].as_i64().unwrap_or_default(),
        fps,
        frames,
        codec: video["codec_name"].as_str().unwrap_or_default().to_owned(),
        has_audio: kind("audio").is_some(),
    })
}
/// Refuses a film whose frames would not fit into memory together.
#[expect(clippy::cast_precision_loss, reason = "an estimate")]
pub(super) async fn fits_in_memory(ctx: &Context, input: &Input) -> Result<(), NodeError> {
    let film = probe(ctx, "video", input).await?;
    if film.width as f64 * film.height as f64 * 1.5 * film.frames as f64 > MAX_MEMORY {
        return Err(value_fault(
            "video",
            "is too long to be turned around: its frames do not fit into memory",
        ));
    }
    Ok(())
}

#[derive(Clone, Copy)]
struct Facts {
    only_fps: bool,
}
#[async_trait]
impl Executor for Facts {
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let bytes = need(ctx, &inputs, "video").await?;
        let scratch = Scratch::new(ctx)?;
        let film = probe(ctx, "video", &scratch.input("video", 0, &bytes).await?).await?;
        if self.only_fps {
            return Ok(one("output", film.fps));
        }
        Ok(map([
            ("duration", film.seconds.into()),
            ("width", film.width.into()),
            ("height", film.height.into()),
            ("fps", film.fps.into()),
            ("frame_count", film.frames.into()),
            ("codec", film.codec.into()),
            ("has_audio", film.has_audio.into()),
        ]))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn answers_are_read() {
        let json = json!({"streams": [
            {"codec_type": "audio"},
            {"codec_type": "video", "codec_name": "h264", "width": 64, "height": 48, "avg_frame_rate": "30000/1001"},
        ], "format": {"duration": "2.002"}});
        let film = read(&json).expect("a film");
        assert_eq!(
            (film.width, film.height, film.frames, film.has_audio),
            (64, 48, 60, true)
        );
        assert!((film.fps - 29.97).abs() < 0.01);
        assert_eq!(read(&json!({"streams": [{"codec_type": "audio"}]})), None);
        assert_eq!(read(&json!(null)), None);
    }
}

//! Sound of films, and text below them.

use async_trait::async_trait;
use atelier_proto::value::{Map, Value};

use super::{
    ffmpeg::{MP4, Scratch, WAV},
    hex,
    probe::probe,
    vf,
};
use crate::{
    node::{Context, Executor, NodeError},
    nodes::{
        args::{Args, one},
        code::{Types, factory},
        media_io::{Params, made, need},
    },
};

/// Most lines of text below a film, and longest line in characters.
const MAX_LINES: usize = 10_000;
const MAX_LINE: usize = 500;

/// All types of this part.
pub(super) fn types() -> Types {
    vec![
        ("nodetool.video.AddAudio", factory(AddAudio)),
        ("nodetool.video.AddSubtitles", factory(AddSubtitles)),
        ("nodetool.video.ExtractAudio", factory(ExtractAudio)),
    ]
}

#[derive(Clone, Copy)]
struct ExtractAudio;
#[async_trait]
impl Executor for ExtractAudio {
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let bytes = need(ctx, &inputs, "video").await?;
        let scratch = Scratch::new(ctx)?;
        let film = scratch.input("video", 0, &bytes).await?;
        let out = scratch.run(ctx, &[film], Vec::new(), WAV).await?;
        Ok(one("output", made("audio", WAV.mime, out)?))
    }
}
/// Puts a sound under a film, in the place of its own or with it; the film's length stays.
#[derive(Clone, Copy)]
struct AddAudio;
#[async_trait]
impl Executor for AddAudio {
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let (video, audio) = (
            need(ctx, &inputs, "video").await?,
            need(ctx, &inputs, "audio").await?,
        );
        let params = Params::new(ctx, inputs);
        let (volume, mix) = (params.f64("volume")?, params.flag("mix"));
        let scratch = Scratch::new(ctx)?;
        let (video, audio) = (
            scratch.input("video", 0, &video).await?,
            scratch.input("audio", 1, &audio).await?,
        );
        let mixed = mix && probe(ctx, "video", &video).await?.has_audio;
        let filter = if mixed {
            format!("[1:a]volume={volume}[new];[0:a][new]amix=inputs=2:duration=first:normalize=0[a]")
        } else {
            format!("[1:a]volume={volume},apad[a]")
        };
        let args = [
            "-filter_complex",
            &filter,
            "-map",
            "0:v:0",
            "-map",
            "[a]",
            "-shortest",
        ]
        .map(ToOwned::to_owned);
        let out = scratch.run(ctx, &[video, audio], args.to_vec(), MP4).await?;
        Ok(one("output", made("video", MP4.mime, out)?))
    }
}

/// A time as subtitles have it.
fn stamp(seconds: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to a few days"
    )]
    let all = (seconds.clamp(0.0, 300_000.0) * 1_000.0).round() as u64;
    let (hours, minutes) = (all / 3_600_000, all / 60_000 % 60);
    format!(
        "{hours:02}:{minutes:02}:{:02},{:03}",
        all / 1_000 % 60,
        all % 1_000
    )
}
/// Chunks with a text and a pair of times, as a file of subtitles.
fn subtitles(chunks: &[Value]) -> String {
    let mut out = String::new();
    for (number, chunk) in chunks.iter().take(MAX_LINES).enumerate() {
        let Some(map) = chunk.as_map() else { continue };
        let text: String = Args(map)
            .text("text")
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        // Braces would be orders to the renderer.
        let text: String = text
            .chars()
            .filter(|sign| !matches!(sign, '{' | '}' | '\\'))
            .take(MAX_LINE)
            .collect();
        let times: Vec<f64> = Args(map)
            .list("timestamp")
            .iter()
            .filter_map(Value::as_f64)
            .collect();
        if let ([from, to], false) = (times.as_slice(), text.is_empty()) {
            out.push_str(&format!(
                "{}\n{} --> {}\n{text}\n\n",
                number + 1,
                stamp(*from),
                stamp(*to)
            ));
        }
    }
    out
}
#[derive(Clone, Copy)]
struct AddSubtitles;
#[async_trait]
impl Executor for AddSubtitles {
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let bytes = need(ctx, &inputs, "video").await?;
        let params = Params::new(ctx, inputs);
        let align = match params.choice("align")?.as_str() {
            "top" => 8,
            "center" => 5,
            _ => 2,
        };
        let (size, color) = (params.int("font_size")?, hex("font_color", &params)?);
        // Blue, green, red.
        let color: Vec<&str> = [4..6, 2..4, 0..2]
            .into_iter()
            .filter_map(|place| color.get(place))
            .collect();
        let chunks = params.args().list("chunks");
        let scratch = Scratch::new(ctx)?;
        scratch.text("lines.srt", &subtitles(&chunks)).await?;
        let film = scratch.input("video", 0, &bytes).await?;
        let style = format!(
            "Alignment={align},FontSize={size},PrimaryColour=&H{}&",
            color.concat()
        );
        let args = vf(format!("subtitles=lines.srt:force_style='{style}'"));
        let out = scratch.run(ctx, &[film], args, MP4).await?;
        Ok(one("output", made("video", MP4.mime, out)?))
    }
}

#[cfg(test)]
mod tests {
    use atelier_proto::value::from_json;
    use serde_json::json;

    use super::*;

    #[test]
    fn lines_are_written_with_their_times() {
        let chunks = [
            from_json(json!({"text": "one\n{\\b1}two", "timestamp": [0, 1.5]})),
            from_json(json!({"text": "", "timestamp": [1, 2]})),
            from_json(json!({"text": "late", "timestamp": [3661.25, 3662]})),
        ];
        let expected =
            "1\n00:00:00,000 --> 00:00:01,500\none b1two\n\n3\n01:01:01,250 --> 01:01:02,000\nlate\n\n";
        assert_eq!(subtitles(&chunks), expected);
    }
}

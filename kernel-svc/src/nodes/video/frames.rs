//! Films as single pictures and back.

use async_trait::async_trait;
use atelier_proto::value::{Map, Value};
use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, BufReader};

use super::{
    EVEN,
    ffmpeg::{self, MP4, PNG, Scratch, bounded, failed, program, started},
    probe::probe,
};
use crate::{
    node::{Context, Executor, NodeError, Offers},
    nodes::{
        args::{Args, map, missing, one},
        code::{Generator, Sink, Streamed, Types, factory},
        image::{decode, encode},
        media_io::{MAX_INPUT, MAX_RESULT, Params, made, need, read, value_fault, work},
    },
    run::{Inputs, Outputs},
};

/// Most pictures of one film.
const MAX_FRAMES: usize = 100_000;

/// All types of this part.
pub(super) fn types() -> Types {
    vec![
        ("nodetool.video.ExtractFrame", factory(ExtractFrame)),
        ("nodetool.video.ForEachFrame", factory(Streamed(ForEachFrame))),
        ("nodetool.video.FrameToVideo", factory(FrameToVideo)),
    ]
}

#[derive(Clone, Copy)]
struct ExtractFrame;
#[async_trait]
impl Executor for ExtractFrame {
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let bytes = need(ctx, &inputs, "video").await?;
        let time = Params::new(ctx, inputs).f64("time")?;
        let scratch = Scratch::new(ctx)?;
        let film = scratch.input("video", 0, &bytes).await?;
        let facts = probe(ctx, "video", &film).await?;
        let seconds = facts.seconds;
        if seconds > 0.0 && time > seconds {
            return Err(value_fault(
                "time",
                &format!("is after the end of the film, which has {seconds} seconds"),
            ));
        }
        // A picture is seen until the next one: the last that began before the time is wanted.
        let shown = if facts.fps > 0.0 { 0.999 / facts.fps } else { 0.0 };
        let from = (time - shown).max(0.0).to_string();
        let args = ["-ss", &from, "-frames:v", "1"].map(ToOwned::to_owned).to_vec();
        let out = scratch.run(ctx, &[film], args, PNG).await?;
        Ok(one("output", made("image", PNG.mime, out)?))
    }
}

/// The pictures from one number to another, one after the other; a negative end is that of the film.
#[derive(Clone, Copy)]
struct ForEachFrame;
#[async_trait]
impl Generator for ForEachFrame {
    async fn generate(&self, inputs: Map, frames: &mut dyn Sink, ctx: &Context) -> Result<(), NodeError> {
        let bytes = need(ctx, &inputs, "video").await?;
        let params = Params::new(ctx, inputs);
        let (start, end) = (params.int("start")?.max(0), params.int("end")?);
        if end >= 0 && end <= start {
            return Err(value_fault("end", "must be after the input `start`"));
        }
        let scratch = Scratch::new(ctx)?;
        let film = scratch.input("video", 0, &bytes).await?;
        let fps = probe(ctx, "video", &film).await?.fps;
        frames.frame(one("fps", fps)).await?;
        let last = if end < 0 { i64::MAX } else { end - 1 };
        let mut command = program(ctx, "ffmpeg", &scratch.path(""));
        command.args([
            "-hide_banner",
            "-nostdin",
            "-loglevel",
            "error",
            "-protocol_whitelist",
            "file,pipe",
        ]);
        command
            .args(["-f", film.format, "-i"])
            .arg(&film.path)
            .args(["-an", "-threads", "2", "-vf"]);
        // Even times, so that no picture is left out or doubled.
        command.arg(format!(
            "select='between(n,{start},{last})',setpts=N/FRAME_RATE/TB"
        ));
        command.args(["-f", "image2pipe", "-c:v", "png", "-"]);
        let mut child = started(&mut command, "ffmpeg")?;
        let (out, words) = (child.stdout.take(), child.stderr.take());
        let out = out.ok_or_else(|| NodeError::new("ffmpeg has no output"))?;
        let mut out = BufReader::new(out);
        let pictures = async {
            for index in start.. {
                // Waits while consumers are behind, and ffmpeg waits for its pipe.
                let Some(picture) = ctx.cancel.run_until_cancelled(next_png(&mut out)).await else {
                    return Err(NodeError::cancelled());
                };
                let Some(picture) = picture? else { break };
                if index - start >= i64::try_from(MAX_FRAMES).unwrap_or(i64::MAX) {
                    return Err(value_fault(
                        "video",
                        &format!("has more than {MAX_FRAMES} pictures"),
                    ));
                }
                let frame = made("image", "image/png", picture)?;
                frames
                    .frame(map([("frame", frame), ("index", index.into())]))
                    .await?;
            }
            Ok(())
        };
        // Ends with the first fault: ffmpeg, whose pictures nobody reads any more, would wait for its pipe for ever.
        let words = async { Ok::<_, NodeError>(bounded(words, 64 * 1024).await) };
        let ((), words) = tokio::try_join!(pictures, words)?;
        let status = child.wait().await;
        if status.is_ok_and(|status| status.success()) {
            Ok(())
        } else {
            Err(failed("ffmpeg", &words))
        }
    }
}
/// One PNG of a stream of them; `None` at the end.
async fn next_png(from: &mut (impl AsyncRead + Unpin)) -> Result<Option<Vec<u8>>, NodeError> {
    let broken = |_| NodeError::new("ffmpeg broke off in the middle of a picture");
    let mut picture = vec![0_u8; 8];
    match from.read(&mut picture).await.map_err(broken)? {
        0 => return Ok(None),
        read => drop(
            from.read_exact(picture.get_mut(read..).unwrap_or_default())
                .await
                .map_err(broken)?,
        ),
    }
    if picture != b"\x89PNG\r\n\x1a\n" {
        return Err(NodeError::new("ffmpeg gave something that is no picture"));
    }
    loop {
        let mut head = [0_u8; 8];
        from.read_exact(&mut head).await.map_err(broken)?;
        let [a, b, c, d, kind @ ..] = head;
        // The bytes of the part, and four of its sum.
        let length = u32::from_be_bytes([a, b, c, d]) as usize + 4;
        if length > MAX_RESULT || picture.len() + length > MAX_RESULT {
            return Err(
                NodeError::new(format!("a picture has more than {MAX_RESULT} bytes")).code("output.size"),
            );
        }
        picture.extend(head);
        let start = picture.len();
        picture.resize(start + length, 0);
        from.read_exact(picture.get_mut(start..).unwrap_or_default())
            .await
            .map_err(broken)?;
        if &kind == b"IEND" {
            return Ok(Some(picture));
        }
    }
}

/// A film of pictures; all take the size of the first one.
#[derive(Clone, Copy)]
struct FrameToVideo;
/// Pictures on their way into a film: in files, so that memory does not fill.
struct Reel {
    scratch: Scratch,
    frames: usize,
    bytes: usize,
}
impl Reel {
    fn new(ctx: &Context) -> Result<Self, NodeError> {
        Ok(Self {
            scratch: Scratch::new(ctx)?,
            frames: 0,
            bytes: 0,
        })
    }
    async fn add(&mut self, ctx: &Context, value: &Value) -> Result<(), NodeError> {
        let Some(bytes) = read(ctx, "frame", value).await? else {
            return Ok(());
        };
        let picture: Bytes = work(ctx, move |_| {
            let picture = encode(&decode("frame", &bytes)?)?;
            Ok(picture
                .as_media()
                .and_then(|media| media.data.clone())
                .unwrap_or_default())
        })
        .await?;
        self.bytes = self.bytes.saturating_add(picture.len());
        if self.frames >= MAX_FRAMES || self.bytes > 8 * MAX_INPUT {
            return Err(value_fault(
                "frame",
                &format!("is one too many: a film has at most {MAX_FRAMES} pictures, and 2 GiB of them"),
            ));
        }
        let path = self.scratch.path(&format!("f{:06}.png", self.frames));
        let written = tokio::fs::write(path, picture).await;
        written
            .map_err(|error| NodeError::new(format!("a temporary file cannot be used: {}", error.kind())))?;
        self.frames += 1;
        Ok(())
    }
    async fn film(self, ctx: &Context, fps: f64) -> Result<Value, NodeError> {
        if self.frames == 0 {
            return Err(missing("frame", "there is no picture to make a film of"));
        }
        if !(0.1..=240.0).contains(&fps) {
            return Err(value_fault(
                "fps",
                &format!("must be between 0.1 and 240, got {fps}"),
            ));
        }
        let mut command = program(ctx, "ffmpeg", &self.scratch.path(""));
        command.args([
            "-hide_banner",
            "-nostdin",
            "-loglevel",
            "error",
            "-y",
            "-framerate",
            &fps.to_string(),
        ]);
        command
            .args(["-f", "image2", "-i", "f%06d.png", "-vf", EVEN])
            .args(MP4.args);
        command.args(["-threads", "2", "-fs", &(MAX_RESULT + 1).to_string(), MP4.name]);
        ffmpeg::finished(ctx, command, "ffmpeg").await?;
        made("video", MP4.mime, self.scratch.made(MP4.name).await?)
    }
}
fn fps(params: &Map) -> Result<f64, NodeError> {
    Args(params).number("fps", 30.0)
}
#[async_trait]
impl Executor for FrameToVideo {
    fn offers(&self) -> Offers {
        Offers {
            stream: false,
            run: true,
        }
    }
    /// Called as a whole, the pictures are those of the list that is given.
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let mut reel = Reel::new(ctx)?;
        for value in Args(&inputs).list("frame") {
            reel.add(ctx, &value).await?;
        }
        Ok(one("output", reel.film(ctx, fps(&inputs)?).await?))
    }
    async fn run(
        &mut self,
        inputs: &mut Inputs<'_>,
        outputs: &mut Outputs<'_>,
        ctx: &Context,
    ) -> Result<(), NodeError> {
        let stated = inputs.first("fps").await.unwrap_or_default();
        let fps = fps(&one("fps", stated))?;
        while let Some(mut group) = inputs.next_group("frame").await {
            let mut reel = Reel::new(ctx)?;
            for item in std::mem::take(&mut group.items) {
                reel.add(ctx, &item.value).await?;
            }
            let film = reel.film(ctx, fps).await?;
            outputs.finish_group(&group, "output", film).await?;
        }
        Ok(())
    }
}
/// For tests of what is read from a pipe.
#[cfg(test)]
pub(super) async fn pictures(mut from: &[u8]) -> Result<Vec<usize>, NodeError> {
    let mut sizes = Vec::new();
    while let Some(picture) = next_png(&mut from).await? {
        sizes.push(picture.len());
    }
    Ok(sizes)
}

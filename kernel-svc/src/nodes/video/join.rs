//! Several films in one: in a row, over each other, one turning into another.

use async_trait::async_trait;
use atelier_proto::value::Map;

use super::{
    EVEN,
    ffmpeg::{Input, MP4, Scratch},
    probe::{Film, probe},
};
use crate::{
    node::{Context, Executor, NodeError},
    nodes::{
        args::{Args, missing, one},
        code::{Types, factory},
        media_io::{Params, made, need, read, value_fault},
    },
};

/// Most films that are joined.
const MAX_FILMS: usize = 64;

/// All types of this part.
pub(super) fn types() -> Types {
    vec![
        ("nodetool.video.Concat", factory(Concat)),
        ("nodetool.video.Overlay", factory(Overlay)),
        ("nodetool.video.Transition", factory(Transition)),
    ]
}

/// One form for all films that are joined: that of the first one.
fn alike(number: usize, first: &Film) -> String {
    let (width, height) = ((first.width / 2 * 2).max(2), (first.height / 2 * 2).max(2));
    let fps = if first.fps > 0.0 { first.fps } else { 25.0 };
    format!(
        "[{number}:v:0]scale={width}:{height}:force_original_aspect_ratio=decrease,pad={width}:{height}:-1:-1,setsar=1,fps={fps},settb=AVTB[v{number}];"
    )
}
async fn run(
    ctx: &Context,
    scratch: &Scratch,
    inputs: &[Input],
    filter: String,
    audio: bool,
) -> Result<Map, NodeError> {
    let mut args: Vec<String> = ["-filter_complex", &filter, "-map", "[v]"]
        .map(ToOwned::to_owned)
        .to_vec();
    if audio {
        args.extend(["-map", "[a]"].map(ToOwned::to_owned));
    }
    let out = scratch.run(ctx, inputs, args, MP4).await?;
    Ok(one("output", made("video", MP4.mime, out)?))
}

/// All connected films in a row. Where one has no sound there is silence.
#[derive(Clone, Copy)]
struct Concat;
#[async_trait]
impl Executor for Concat {
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let scratch = Scratch::new(ctx)?;
        let (mut films, mut facts) = (Vec::new(), Vec::new());
        for (name, _) in Args(&inputs).others(&[]) {
            for value in Args(&inputs).list(name) {
                let Some(bytes) = read(ctx, name, &value).await? else {
                    continue;
                };
                if films.len() >= MAX_FILMS {
                    return Err(value_fault(
                        name,
                        &format!("is one too many: at most {MAX_FILMS} films are joined"),
                    ));
                }
                let film = scratch.input(name, films.len(), &bytes).await?;
                facts.push(probe(ctx, name, &film).await?);
                films.push(film);
            }
        }
        let Some(first) = facts.first() else {
            return Err(missing("video", "there is no film to join"));
        };
        let audio = facts.iter().any(|film| film.has_audio);
        let (mut filter, mut row) = (String::new(), String::new());
        for (number, film) in facts.iter().enumerate() {
            filter.push_str(&alike(number, first));
            row.push_str(&format!("[v{number}]"));
            if audio {
                let source = if film.has_audio {
                    format!("[{number}:a:0]aresample=44100,aformat=channel_layouts=stereo")
                } else {
                    format!("anullsrc=r=44100:cl=stereo,atrim=duration={}", film.seconds)
                };
                filter.push_str(&format!("{source}[a{number}];"));
                row.push_str(&format!("[a{number}]"));
            }
        }
        let (count, sounds) = (films.len(), u8::from(audio));
        let ends = if audio { "[v][a]" } else { "[v]" };
        filter.push_str(&format!("{row}concat=n={count}:v=1:a={sounds}{ends}"));
        run(ctx, &scratch, &films, filter, audio).await
    }
}

/// One film on another, both with their sound.
#[derive(Clone, Copy)]
struct Overlay;
#[async_trait]
impl Executor for Overlay {
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let below = need(ctx, &inputs, "main_video").await?;
        let above = need(ctx, &inputs, "overlay_video").await?;
        let params = Params::new(ctx, inputs);
        let (x, y) = (params.int("x")?, params.int("y")?);
        let (scale, volume) = (params.f64("scale")?, params.f64("overlay_audio_volume")?);
        if !(0.01..=10.0).contains(&scale) {
            return Err(value_fault(
                "scale",
                &format!("must be between 0.01 and 10, got {scale}"),
            ));
        }
        let scratch = Scratch::new(ctx)?;
        let below = scratch.input("main_video", 0, &below).await?;
        let above = scratch.input("overlay_video", 1, &above).await?;
        let sounds = (
            probe(ctx, "main_video", &below).await?.has_audio,
            probe(ctx, "overlay_video", &above).await?.has_audio,
        );
        let mut filter = format!(
            "[1:v:0]scale=trunc(iw*{scale}):trunc(ih*{scale})[over];[0:v:0][over]overlay={x}:{y}:eof_action=pass,{EVEN}[v]"
        );
        let sound = match sounds {
            (true, true) => format!(
                ";[1:a:0]volume={volume}[new];[0:a:0][new]amix=inputs=2:duration=first:normalize=0[a]"
            ),
            (true, false) => ";[0:a:0]anull[a]".to_owned(),
            (false, true) => format!(";[1:a:0]volume={volume}[a]"),
            (false, false) => String::new(),
        };
        filter.push_str(&sound);
        run(ctx, &scratch, &[below, above], filter, sounds.0 || sounds.1).await
    }
}

/// One film turns into another; both lose the time in which both are seen.
#[derive(Clone, Copy)]
struct Transition;
#[async_trait]
impl Executor for Transition {
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let (first, second) = (
            need(ctx, &inputs, "video_a").await?,
            need(ctx, &inputs, "video_b").await?,
        );
        let params = Params::new(ctx, inputs);
        // One of the words that the type lists: nothing else gets through.
        let kind = params.choice("transition_type")?;
        let seconds = params.f64("duration")?;
        let scratch = Scratch::new(ctx)?;
        let first = scratch.input("video_a", 0, &first).await?;
        let second = scratch.input("video_b", 1, &second).await?;
        let facts = (
            probe(ctx, "video_a", &first).await?,
            probe(ctx, "video_b", &second).await?,
        );
        if seconds > facts.0.seconds || seconds > facts.1.seconds {
            return Err(value_fault(
                "duration",
                "must not be longer than one of the films",
            ));
        }
        let offset = facts.0.seconds - seconds;
        let mut filter = format!(
            "{}{}[v0][v1]xfade=transition={kind}:duration={seconds}:offset={offset},format=yuv420p[v]",
            alike(0, &facts.0),
            alike(1, &facts.0)
        );
        let audio = facts.0.has_audio && facts.1.has_audio;
        if audio {
            filter.push_str(&format!(";[0:a:0][1:a:0]acrossfade=d={seconds}[a]"));
        }
        run(ctx, &scratch, &[first, second], filter, audio).await
    }
}

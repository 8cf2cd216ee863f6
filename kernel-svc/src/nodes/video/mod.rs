//! Films: cut, joined, changed and taken apart by an installed ffmpeg.
//!
//! What lives here: one list of arguments a type. They are made of numbers and of fixed words; texts of users go into files.
//! What does not live here: files of the workspace (`media_files`), and films that a model makes (`models/`).

mod ffmpeg;
mod frames;
mod join;
mod probe;
mod sound;

#[cfg(test)]
mod real;
#[cfg(test)]
mod tests;

use async_trait::async_trait;
use atelier_proto::value::Map;

use super::{
    args::one,
    code::{Types, factory},
    media_io::{Params, made, need, value_fault},
};
use crate::node::{Context, Executor, Factory, NodeError};
use ffmpeg::Scratch;

/// All types of this family.
pub(super) fn types() -> Types {
    let mut types: Types = vec![
        (
            "nodetool.video.Blur",
            film(|p| Ok(vf(format!("gblur=sigma={}", p.f64("strength")?)))),
        ),
        ("nodetool.video.ColorBalance", film(color_balance)),
        (
            "nodetool.video.Denoise",
            film(|p| Ok(vf(format!("hqdn3d={}", p.f64("strength")?)))),
        ),
        ("nodetool.video.Resize", film(resize)),
        (
            "nodetool.video.Reverse",
            film(|_| Ok(both("reverse", "areverse"))),
        ),
        ("nodetool.video.Rotate", film(rotate)),
        (
            "nodetool.video.Saturation",
            film(|p| Ok(vf(format!("eq=saturation={}", p.f64("saturation")?)))),
        ),
        ("nodetool.video.SetSpeed", film(set_speed)),
        ("nodetool.video.Sharpness", film(sharpness)),
        ("nodetool.video.Stabilize", film(stabilize)),
        ("nodetool.video.Trim", film(trim)),
        (
            "nodetool.video.ChromaKey",
            factory(Film {
                args: chroma_key,
                form: ffmpeg::WEBM,
            }),
        ),
    ];
    types.extend(frames::types());
    types.extend(join::types());
    types.extend(probe::types());
    types.extend(sound::types());
    types
}

/// What is done to one film.
#[derive(Clone, Copy)]
struct Film {
    args: fn(&Params) -> Result<Vec<String>, NodeError>,
    form: ffmpeg::Form,
}
fn film(args: fn(&Params) -> Result<Vec<String>, NodeError>) -> Factory {
    factory(Film {
        args,
        form: ffmpeg::MP4,
    })
}
#[async_trait]
impl Executor for Film {
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let bytes = need(ctx, &inputs, "video").await?;
        let args = (self.args)(&Params::new(ctx, inputs))?;
        let scratch = Scratch::new(ctx)?;
        let film = scratch.input("video", 0, &bytes).await?;
        if &*ctx.node_type == "nodetool.video.Reverse" {
            probe::fits_in_memory(ctx, &film).await?;
        }
        let out = scratch.run(ctx, &[film], args, self.form).await?;
        Ok(one("output", made("video", self.form.mime, out)?))
    }
}

fn vf(filter: String) -> Vec<String> {
    vec!["-vf".to_owned(), format!("{filter},{EVEN}")]
}
/// The usual codec takes even sides only.
const EVEN: &str = "scale=trunc(iw/2)*2:trunc(ih/2)*2";
fn both(video: &str, audio: &str) -> Vec<String> {
    let mut args = vf(video.to_owned());
    args.extend(["-af".to_owned(), audio.to_owned()]);
    args
}
fn color_balance(params: &Params) -> Result<Vec<String>, NodeError> {
    let (red, green, blue) = (
        params.f64("red_adjust")?,
        params.f64("green_adjust")?,
        params.f64("blue_adjust")?,
    );
    Ok(vf(format!("colorchannelmixer=rr={red}:gg={green}:bb={blue}")))
}
/// A side below 1 follows from the other one.
fn resize(params: &Params) -> Result<Vec<String>, NodeError> {
    let side = |name: &str| {
        let pixels = params.int(name)?;
        match pixels {
            ..=0 => Ok(-2),
            1..=8_192 => Ok(pixels.max(2)),
            _ => Err(value_fault(name, &format!("must be at most 8192, got {pixels}"))),
        }
    };
    let (width, height) = (side("width")?, side("height")?);
    if width < 0 && height < 0 {
        return Ok(vf("null".to_owned()));
    }
    Ok(vf(format!("scale={width}:{height}")))
}
fn rotate(params: &Params) -> Result<Vec<String>, NodeError> {
    let angle = params.f64("angle")?.to_radians();
    Ok(vf(format!("rotate={angle}:ow=rotw({angle}):oh=roth({angle})")))
}
/// Faster or slower, sound and pictures; one filter of sound does between half and a hundred times.
fn set_speed(params: &Params) -> Result<Vec<String>, NodeError> {
    let speed = params.f64("speed_factor")?;
    if !(0.05..=100.0).contains(&speed) {
        return Err(value_fault(
            "speed_factor",
            &format!("must be between 0.05 and 100, got {speed}"),
        ));
    }
    let (mut left, mut tempo) = (speed, Vec::new());
    while left < 0.5 {
        tempo.push("atempo=0.5".to_owned());
        left *= 2.0;
    }
    tempo.push(format!("atempo={left}"));
    Ok(both(
        &format!("setpts=PTS/{speed},fps=source_fps"),
        &tempo.join(","),
    ))
}
fn sharpness(params: &Params) -> Result<Vec<String>, NodeError> {
    let (luma, chroma) = (params.f64("luma_amount")?, params.f64("chroma_amount")?);
    Ok(vf(format!("unsharp=5:5:{luma}:5:5:{chroma}")))
}
/// Looks for movements of up to 64 pixels; more smoothing looks further.
fn stabilize(params: &Params) -> Result<Vec<String>, NodeError> {
    let smoothing = params.f64("smoothing")?;
    let reach = if smoothing > 50.0 { 64 } else { 32 };
    // Blank borders are kept unless they are to be filled.
    let edge = if params.flag("crop_black") {
        "mirror"
    } else {
        "blank"
    };
    Ok(vf(format!("deshake=rx={reach}:ry={reach}:edge={edge}")))
}
/// From one time to another; a negative end is that of the film.
fn trim(params: &Params) -> Result<Vec<String>, NodeError> {
    let (start, end) = (params.f64("start_time")?, params.f64("end_time")?);
    if start < 0.0 {
        return Err(value_fault(
            "start_time",
            &format!("must be at least 0, got {start}"),
        ));
    }
    let mut args = vec!["-ss".to_owned(), start.to_string()];
    if end >= 0.0 {
        if end <= start {
            return Err(value_fault("end_time", "must be after the input `start_time`"));
        }
        args.extend(["-t".to_owned(), (end - start).to_string()]);
    }
    args.extend(vf("null".to_owned()));
    Ok(args)
}
fn hex(name: &str, params: &Params) -> Result<String, NodeError> {
    let [red, green, blue, _] = super::image::color(name, &params.value(name))?.map(super::image::byte);
    Ok(format!("{red:02x}{green:02x}{blue:02x}"))
}
fn chroma_key(params: &Params) -> Result<Vec<String>, NodeError> {
    let (similarity, blend) = (params.f64("similarity")?.max(0.00001), params.f64("blend")?);
    let color = hex("key_color", params)?;
    Ok(vf(format!(
        "chromakey=0x{color}:{similarity}:{blend},format=yuva420p"
    )))
}

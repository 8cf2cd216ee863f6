//! Jobs whose results are neither drawn from nothing, spoken nor written: changed pictures, films, music, transcripts, 3D
//! models.

use atelier_common::tasks::Tasks;
use atelier_proto::value::{Map, MediaRef, Value};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use image::RgbaImage;
use rust_decimal::Decimal;

use super::super::job::Job;
use super::super::request::Request;
use super::super::{derive, draw, film as reel, hear, solid as gem};
use super::{Said, steps, tokens, work, write};
use crate::provider::{Capability, Failure, Finished, Media, Output, Params, Usage};

/// Length of a film or a piece of music when none is asked for, in seconds.
const USUAL_SECONDS: f64 = 2.0;

/// The bytes of the first medium of a kind among the parameters, a mask aside; `None` when none is at hand.
pub(super) fn input(request: &Request, kind: &str) -> Option<Bytes> {
    let mut found = request
        .params
        .iter()
        .filter(|(name, _)| !name.contains("mask"))
        .flat_map(|(_, value)| media(value));
    found.find(|media| media.kind == kind).and_then(bytes)
}
fn mask(request: &Request) -> Option<Bytes> {
    let mut found = request.params.iter().filter(|(name, _)| name.contains("mask"));
    found.find_map(|(_, value)| media(value).first().and_then(|media| bytes(media)))
}
fn media(value: &Value) -> Vec<&MediaRef> {
    match value {
        Value::Media(media) => vec![media.as_ref()],
        Value::List(values) => values.iter().filter_map(Value::as_media).collect(),
        _ => Vec::new(),
    }
}
/// Nothing is fetched: bytes that are there, or that the address itself holds.
fn bytes(media: &MediaRef) -> Option<Bytes> {
    let held = || {
        let (_, text) = media.uri.strip_prefix("data:")?.split_once("base64,")?;
        STANDARD.decode(text).ok().map(Bytes::from)
    };
    media.data.clone().or_else(held).filter(|bytes| !bytes.is_empty())
}

/// How long something is to be, in whole tenths of a second.
fn seconds(request: &Request) -> f64 {
    let params = Params(&request.params);
    let stated = ["duration", "duration_seconds", "seconds", "num_seconds"]
        .iter()
        .find_map(|key| params.decimal(key).map(|number| number.to_string()));
    let stated = stated.and_then(|number| number.parse::<f64>().ok());
    stated.filter(|number| *number > 0.0).unwrap_or(USUAL_SECONDS)
}
fn used(seconds: f64) -> Usage {
    Usage {
        seconds: format!("{seconds}").parse::<Decimal>().ok(),
        ..Usage::default()
    }
}
fn finished(media: Media, usage: Usage) -> Finished {
    Finished {
        outputs: vec![Output::Media(media)],
        usage,
    }
}
fn number(value: impl Into<i64>) -> Value {
    Value::Int(value.into())
}
fn seed(request: &Request) -> Value {
    Value::Int(i64::try_from(request.seed).unwrap_or(i64::MAX))
}

/// A picture made of another.
pub(super) async fn derived(request: &Request, input: Bytes, tasks: &Tasks) -> Result<Finished, Failure> {
    let params = Params(&request.params);
    #[expect(clippy::cast_possible_truncation, reason = "shares and factors")]
    let [strength, scale] =
        [("strength", 0.65), ("scale", 2.0)].map(|(key, usual)| params.number(key).unwrap_or(usual) as f32);
    let (prompt, seed_number, capability) = (request.prompt.clone(), request.seed, request.capability);
    let (mask, size) = (mask(request), request.size);
    let made = move || {
        let wish = derive::Wish {
            capability,
            prompt: &prompt,
            seed: seed_number,
            strength,
            scale,
        };
        let picture = match derive::read(&input) {
            Some(picture) => picture,
            // What cannot be read is drawn anew.
            None => drawn(&prompt, seed_number, size)?,
        };
        let mask = mask.and_then(|mask| derive::read(&mask));
        derive::derive(&picture, mask.as_ref(), wish)
    };
    let picture = work(tasks, made).await?;
    let extra = Map::from([
        ("width".to_owned(), number(picture.size.0)),
        ("height".to_owned(), number(picture.size.1)),
        ("seed".to_owned(), seed(request)),
    ]);
    let media = Media {
        kind: "image",
        bytes: picture.bytes.into(),
        mime: picture.mime.to_owned(),
        extra,
    };
    Ok(finished(media, Usage::default()))
}

fn drawn(prompt: &str, seed: u64, (width, height): (u32, u32)) -> Result<RgbaImage, String> {
    let png = draw::draw(prompt, seed, width, height).map_err(|error| error.to_string())?;
    derive::read(&png).ok_or_else(|| "the picture cannot be read".to_owned())
}

/// A film of a picture: the input, or one that is drawn.
pub(super) async fn film(job: &Job, tasks: &Tasks) -> Result<Finished, Failure> {
    let request = &job.request;
    steps(job, tasks, true).await?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to a few seconds"
    )]
    let length = seconds(request)
        .clamp(reel::SECONDS.0.into(), reel::SECONDS.1.into())
        .round() as u32;
    let (width, height) = reel::frame_size(request.size);
    let (prompt, seed_number, input) = (request.prompt.clone(), request.seed, input(request, "image"));
    let made = move || {
        let picture = match input.and_then(|input| derive::read(&input)) {
            Some(picture) => picture,
            None => drawn(&prompt, seed_number, (width, height))?,
        };
        reel::film(&picture, (width, height), length, seed_number)
    };
    let bytes = work(tasks, made).await?;
    let extra = Map::from([
        ("width".to_owned(), number(width)),
        ("height".to_owned(), number(height)),
        ("duration".to_owned(), Value::Float(length.into())),
        ("fps".to_owned(), number(reel::RATE)),
        ("seed".to_owned(), seed(request)),
    ]);
    let media = Media {
        kind: "video",
        bytes: bytes.into(),
        mime: "video/x-msvideo".to_owned(),
        extra,
    };
    Ok(finished(media, used(length.into())))
}

/// Music, or a recording with an echo.
pub(super) async fn music(job: &Job, tasks: &Tasks) -> Result<Finished, Failure> {
    let request = &job.request;
    steps(job, tasks, false).await?;
    let length = seconds(request).clamp(hear::SECONDS.0, hear::SECONDS.1);
    let recording = (request.capability == Capability::AudioToAudio)
        .then(|| input(request, "audio"))
        .flatten();
    let (prompt, seed_number) = (request.prompt.clone(), request.seed);
    let made = move || match recording.and_then(|recording| hear::echo(&recording)) {
        Some(changed) => Ok(changed),
        None => hear::music(&prompt, seed_number, length).map(|bytes| (bytes, length)),
    };
    let (bytes, length) = work(tasks, made).await?;
    let extra = Map::from([
        ("duration".to_owned(), Value::Float(length)),
        ("seed".to_owned(), seed(request)),
    ]);
    let media = Media {
        kind: "audio",
        bytes: bytes.into(),
        mime: "audio/wav".to_owned(),
        extra,
    };
    Ok(finished(media, used(length)))
}

/// What stands in for a transcript.
pub(super) async fn transcript(job: &Job, tasks: &Tasks) -> Result<Finished, Failure> {
    let request = &job.request;
    let bytes = input(request, "audio")
        .or_else(|| input(request, "video"))
        .unwrap_or_default();
    let fixed = Params(&request.params).int("seed").map_or(0, i64::cast_unsigned);
    let (text, length) = work(tasks, move || Ok(hear::transcript(&bytes, fixed))).await?;
    let pieces = write::chunks(&text);
    let pause = super::share(request.delay, pieces.len());
    for piece in pieces {
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        job.say(Said::Text(piece));
    }
    job.say(Said::End("text"));
    let usage = Usage {
        output_tokens: Some(tokens(&text)),
        ..used(length)
    };
    Ok(Finished {
        outputs: vec![Output::Text(text)],
        usage,
    })
}

/// A 3D model.
pub(super) async fn solid(job: &Job, tasks: &Tasks) -> Result<Finished, Failure> {
    let request = &job.request;
    steps(job, tasks, false).await?;
    let mut prompt = request.prompt.clone();
    if let Some(picture) = input(request, "image") {
        prompt.push_str(&blake3::hash(&picture).to_hex());
    }
    let seed_number = request.seed;
    let bytes = work(tasks, move || gem::crystal(&prompt, seed_number)).await?;
    let media = Media {
        kind: "model_3d",
        bytes: bytes.into(),
        mime: "model/gltf-binary".to_owned(),
        extra: Map::from([
            ("seed".to_owned(), seed(request)),
            ("format".to_owned(), "glb".into()),
        ]),
    };
    Ok(finished(media, Usage::default()))
}

//! Sounds: cut, joined, mixed, filtered and measured, all without a provider.
//!
//! What lives here: one function a type, on channels of samples in single precision. What goes in is WAV, MP3, FLAC, Ogg
//! Vorbis or AAC; what comes out is WAV of 16 bits. What does not live here: files (`media_files`), speech (`models/`).

mod analysis;
mod chunks;
mod codec;
mod dynamics;
mod edit;
mod filters;
mod info;
mod mix;
mod reverb;
mod silence;
mod stretch;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_chunks;
#[cfg(test)]
mod tests_faults;

use async_trait::async_trait;
use atelier_proto::value::Map;
use indexmap::IndexMap;

use super::{
    args::{missing, one},
    catalog,
    code::{Types, factory},
    media_io::{Params, Stop, read, work},
};
use crate::node::{Context, Executor, Factory, NodeError};

/// All types of this family.
pub(super) fn types() -> Types {
    [
        analysis::types(),
        chunks::types(),
        dynamics::types(),
        edit::types(),
        filters::types(),
        info::types(),
        mix::types(),
        reverb::types(),
        silence::types(),
        stretch::types(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Most samples of all channels together: 256 MiB in memory.
const MAX_SAMPLES: usize = 64 * 1024 * 1024;
/// Most channels, and sample rates that can be worked with.
const MAX_CHANNELS: usize = 8;
const RATES: std::ops::RangeInclusive<u32> = 1_000..=384_000;

/// Samples by channel, from -1 to 1.
#[derive(Debug, Clone, PartialEq)]
struct Sound {
    rate: u32,
    channels: Vec<Vec<f32>>,
}
impl Sound {
    /// Samples of one channel.
    fn len(&self) -> usize {
        self.channels.first().map_or(0, Vec::len)
    }
    fn seconds(&self) -> f64 {
        count(self.len()) / f64::from(self.rate)
    }
    /// A number of samples for a time, at most what a sound may have.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    fn samples(&self, seconds: f64) -> usize {
        (seconds * f64::from(self.rate))
            .round()
            .clamp(0.0, count(MAX_SAMPLES)) as usize
    }
    /// Each channel anew.
    fn map(&self, stop: &Stop, f: impl Fn(&[f32]) -> Vec<f32>) -> Result<Self, NodeError> {
        let mut channels = Vec::with_capacity(self.channels.len());
        for channel in &self.channels {
            stop.check()?;
            channels.push(f(channel));
        }
        Ok(Self {
            rate: self.rate,
            channels,
        })
    }
    /// A part from one sample to another.
    fn part(&self, from: usize, to: usize) -> Self {
        let (from, to) = (from.min(self.len()), to.min(self.len()));
        let cut = |channel: &Vec<f32>| channel.get(from..to.max(from)).unwrap_or_default().to_vec();
        Self {
            rate: self.rate,
            channels: self.channels.iter().map(cut).collect(),
        }
    }
    /// In another rate and with so many channels: missing ones repeat the last, one too many are mixed down to one.
    fn like(&self, rate: u32, channels: usize) -> Self {
        let mut out = self.resampled(rate);
        if channels < out.channels.len() {
            out = out.mono();
        }
        while out.channels.len() < channels {
            let last = out.channels.last().cloned().unwrap_or_default();
            out.channels.push(last);
        }
        out
    }
    /// One channel: the mean of all.
    fn mono(&self) -> Self {
        let scale = 1.0 / real(self.channels.len().max(1));
        let mean = |at: usize| {
            self.channels
                .iter()
                .filter_map(|channel| channel.get(at))
                .sum::<f32>()
                * scale
        };
        Self {
            rate: self.rate,
            channels: vec![(0..self.len()).map(mean).collect()],
        }
    }
    fn resampled(&self, rate: u32) -> Self {
        if rate == self.rate {
            return self.clone();
        }
        let step = f64::from(self.rate) / f64::from(rate);
        let resampled = |channel: &Vec<f32>| stretched(channel, step);
        Self {
            rate,
            channels: self.channels.iter().map(resampled).collect(),
        }
    }
    /// The loudest sample.
    fn peak(&self) -> f32 {
        self.channels
            .iter()
            .flatten()
            .fold(0.0, |peak, sample| peak.max(sample.abs()))
    }
    /// A sound that may be made.
    fn check(&self) -> Result<(), NodeError> {
        bounded(self.len(), self.channels.len())
    }
}
/// Refuses more samples than can be worked on.
fn bounded(samples: usize, channels: usize) -> Result<(), NodeError> {
    if samples.saturating_mul(channels.max(1)) > MAX_SAMPLES {
        return Err(
            NodeError::new(format!("the sound has more than {MAX_SAMPLES} samples")).code("output.size"),
        );
    }
    Ok(())
}
/// Samples read at steps of another length, blended between neighbours.
fn stretched(channel: &[f32], step: f64) -> Vec<f32> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    let length = (count(channel.len()) / step)
        .round()
        .clamp(0.0, count(MAX_SAMPLES)) as usize;
    (0..length).map(|at| between(channel, count(at) * step)).collect()
}
/// The sample at a place that may be between two.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "places are positive and bounded"
)]
fn between(channel: &[f32], place: f64) -> f32 {
    let at = place.floor().max(0.0) as usize;
    let part = (place - place.floor()) as f32;
    let last = channel.last().copied().unwrap_or_default();
    let first = channel.get(at).copied().unwrap_or(last);
    let second = channel.get(at + 1).copied().unwrap_or(last);
    first + (second - first) * part
}
#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn count(number: usize) -> f64 {
    number as f64
}
#[expect(clippy::cast_precision_loss, reason = "for arithmetic on samples")]
fn real(number: usize) -> f32 {
    number as f32
}
/// A gain from decibels.
fn gain(decibels: f32) -> f32 {
    10.0_f32.powf(decibels / 20.0)
}

/// What one invocation works on.
struct Job {
    params: Params,
    stop: Stop,
    sounds: IndexMap<String, Sound>,
}
impl Job {
    fn sound(&self, name: &str) -> Result<&Sound, NodeError> {
        self.sounds
            .get(name)
            .ok_or_else(|| missing(name, "there is no sound to work on"))
    }
    fn audio(&self) -> Result<&Sound, NodeError> {
        self.sound("audio")
    }
}
/// Sounds in, a sound out.
type Op = fn(&Job) -> Result<Sound, NodeError>;
#[derive(Clone, Copy)]
struct Edit(Op);
fn edit(op: Op) -> Factory {
    factory(Edit(op))
}
#[async_trait]
impl Executor for Edit {
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let op = self.0;
        let job = job(inputs, ctx).await?;
        let output = work(ctx, move |stop| {
            let made = op(&job(stop)?)?;
            made.check()?;
            stop.check()?;
            codec::encode(&made)
        });
        Ok(one("output", output.await?))
    }
}
/// Sounds in, values by handle out.
#[derive(Clone, Copy)]
struct Measure(fn(&Job) -> Result<Map, NodeError>);
#[async_trait]
impl Executor for Measure {
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let measure = self.0;
        let job = job(inputs, ctx).await?;
        work(ctx, move |stop| measure(&job(stop)?)).await
    }
}
/// Reads the bytes of all inputs that are sounds; what is given back decodes them.
async fn job(
    inputs: Map,
    ctx: &Context,
) -> Result<impl FnOnce(&Stop) -> Result<Job, NodeError> + Send + use<>, NodeError> {
    let meta = catalog::meta(&ctx.node_type);
    let mut all = Vec::new();
    for (name, value) in &inputs {
        let declared = meta.and_then(|meta| meta.inputs.iter().find(|input| input.name == *name));
        let values = match declared.map(|input| input.ty.as_str()) {
            Some("audio") => vec![value.clone()],
            Some("list[audio]") => super::args::Args(&inputs).list(name),
            None if value.as_media().is_some_and(|media| media.kind == "audio") => vec![value.clone()],
            _ => continue,
        };
        let several = values.len() > 1;
        for (at, value) in values.iter().enumerate() {
            if let Some(bytes) = read(ctx, name, value).await? {
                all.push((
                    if several {
                        format!("{name}[{at}]")
                    } else {
                        name.clone()
                    },
                    bytes,
                ));
            }
        }
    }
    let params = Params::new(ctx, inputs);
    Ok(move |stop: &Stop| {
        let (mut sounds, mut total) = (IndexMap::new(), 0_usize);
        for (name, bytes) in all {
            stop.check()?;
            let sound = codec::decode(&name, &bytes, stop)?;
            total = total.saturating_add(sound.len().saturating_mul(sound.channels.len()));
            bounded(total, 1)?;
            sounds.insert(name, sound);
        }
        Ok(Job {
            params,
            stop: stop.clone(),
            sounds,
        })
    })
}
/// Silence of so many seconds.
#[cfg(test)]
pub(super) fn silence_for_tests(seconds: f64) -> atelier_proto::value::Value {
    let mut sound = Sound {
        rate: 8_000,
        channels: Vec::new(),
    };
    sound.channels.push(vec![0.0; sound.samples(seconds)]);
    codec::encode(&sound).unwrap_or_default()
}

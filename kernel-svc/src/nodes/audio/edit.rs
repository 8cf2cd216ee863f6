//! Sounds cut, faded, turned around, made louder.

use super::{Job, MAX_SAMPLES, RATES, Sound, bounded, edit, gain, real};
use crate::{
    node::NodeError,
    nodes::{code::Types, media_io::value_fault},
};

/// All types of this part.
pub(super) fn types() -> Types {
    vec![
        (
            "lib.audio.Gain",
            edit(|job| {
                let by = gain(job.params.f("gain_db")?);
                scaled(job, by)
            }),
        ),
        ("nodetool.audio.CreateSilence", edit(silence)),
        ("nodetool.audio.FadeIn", edit(|job| fade(job, false))),
        ("nodetool.audio.FadeOut", edit(|job| fade(job, true))),
        ("nodetool.audio.MonoToStereo", edit(mono_to_stereo)),
        ("nodetool.audio.Normalize", edit(normalize)),
        ("nodetool.audio.Repeat", edit(repeat)),
        ("nodetool.audio.Reverse", edit(reverse)),
        ("nodetool.audio.SliceAudio", edit(slice)),
        ("nodetool.audio.StereoToMono", edit(stereo_to_mono)),
        ("nodetool.audio.Trim", edit(trim)),
    ]
}

fn scaled(job: &Job, by: f32) -> Result<Sound, NodeError> {
    job.audio()?.map(&job.stop, |channel| {
        channel.iter().map(|sample| sample * by).collect()
    })
}
fn silence(job: &Job) -> Result<Sound, NodeError> {
    let rate = job.params.size("sample_rate")?;
    if !RATES.contains(&rate) {
        let must = format!(
            "must be between {} and {}, got {rate}",
            RATES.start(),
            RATES.end()
        );
        return Err(value_fault("sample_rate", &must));
    }
    let sound = Sound {
        rate,
        channels: Vec::new(),
    };
    let length = sound.samples(job.params.f64("duration")?);
    if length >= MAX_SAMPLES {
        return Err(value_fault(
            "duration",
            &format!("gives more than {MAX_SAMPLES} samples"),
        ));
    }
    Ok(Sound {
        rate,
        channels: vec![vec![0.0; length]],
    })
}
/// Louder and louder from the start, or quieter and quieter to the end.
fn fade(job: &Job, out: bool) -> Result<Sound, NodeError> {
    let sound = job.audio()?;
    let length = sound.samples(job.params.f64("duration")?).min(sound.len());
    sound.map(&job.stop, |channel| {
        let last = channel.len().saturating_sub(1);
        let faded = channel.iter().enumerate().map(|(at, sample)| {
            let from_end = if out { last - at } else { at };
            if from_end >= length {
                *sample
            } else {
                sample * real(from_end) / real(length)
            }
        });
        faded.collect()
    })
}
fn mono_to_stereo(job: &Job) -> Result<Sound, NodeError> {
    let sound = job.audio()?;
    if sound.channels.len() >= 2 {
        return Ok(sound.clone());
    }
    bounded(sound.len(), 2)?;
    Ok(sound.like(sound.rate, 2))
}
fn stereo_to_mono(job: &Job) -> Result<Sound, NodeError> {
    let sound = job.audio()?;
    let method = job.params.text("method");
    let one = |at: usize| Sound {
        rate: sound.rate,
        channels: sound
            .channels
            .get(at)
            .or(sound.channels.last())
            .cloned()
            .into_iter()
            .collect(),
    };
    match method.trim().to_ascii_lowercase().as_str() {
        "" | "average" | "mean" => Ok(sound.mono()),
        "left" => Ok(one(0)),
        "right" => Ok(one(1)),
        _ => Err(value_fault("method", "must be one of: average, left, right")),
    }
}
/// As loud as it can be, less a tenth of a decibel. Silence stays silent.
fn normalize(job: &Job) -> Result<Sound, NodeError> {
    let peak = job.audio()?.peak();
    scaled(job, if peak > 0.0 { gain(-0.1) / peak } else { 1.0 })
}
fn repeat(job: &Job) -> Result<Sound, NodeError> {
    let (sound, loops) = (job.audio()?, job.params.size("loops")? as usize);
    bounded(sound.len().saturating_mul(loops), sound.channels.len())?;
    sound.map(&job.stop, |channel| channel.repeat(loops))
}
fn reverse(job: &Job) -> Result<Sound, NodeError> {
    job.audio()?
        .map(&job.stop, |channel| channel.iter().rev().copied().collect())
}
/// From one time to another, in seconds.
fn slice(job: &Job) -> Result<Sound, NodeError> {
    let (start, end) = (job.params.f64("start")?, job.params.f64("end")?);
    if end <= start {
        return Err(value_fault("end", "must be after the input `start`"));
    }
    let sound = job.audio()?;
    Ok(sound.part(sound.samples(start), sound.samples(end)))
}
/// Without so many seconds at the start and at the end.
fn trim(job: &Job) -> Result<Sound, NodeError> {
    let sound = job.audio()?;
    let (start, end) = (
        sound.samples(job.params.f64("start")?),
        sound.samples(job.params.f64("end")?),
    );
    if start.saturating_add(end) > sound.len() {
        return Err(value_fault(
            "end",
            "and the input `start` cut off more than there is",
        ));
    }
    Ok(sound.part(start, sound.len() - end))
}

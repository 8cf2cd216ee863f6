//! Loud and quiet: compressors, gates, and what breaks a sound on purpose.

use super::{Job, Sound, edit, gain, real};
use crate::{node::NodeError, nodes::code::Types};

/// All types of this part.
pub(super) fn types() -> Types {
    vec![
        ("lib.audio.Bitcrush", edit(bitcrush)),
        ("lib.audio.Compress", edit(compress)),
        ("lib.audio.Distortion", edit(distortion)),
        ("lib.audio.Limiter", edit(limiter)),
        ("lib.audio.NoiseGate", edit(noise_gate)),
    ]
}

/// Fewer bits, and only every so many samples.
fn bitcrush(job: &Job) -> Result<Sound, NodeError> {
    let bits = job.params.int("bit_depth")?;
    let every = usize::try_from(job.params.int("sample_rate_reduction")?)
        .unwrap_or(1)
        .max(1);
    let steps = 2.0_f32.powi(i32::try_from(bits).unwrap_or(16) - 1);
    job.audio()?.map(&job.stop, |channel| {
        let held = channel.chunks(every).flat_map(|held| {
            let value = held.first().copied().unwrap_or_default();
            std::iter::repeat_n((value * steps).round() / steps, held.len())
        });
        held.collect()
    })
}
fn distortion(job: &Job) -> Result<Sound, NodeError> {
    let drive = gain(job.params.f("drive_db")?);
    job.audio()?.map(&job.stop, |channel| {
        channel.iter().map(|sample| (sample * drive).tanh()).collect()
    })
}
/// A gain for each moment from how loud the sound is just then, the same for all channels. Times are in milliseconds.
fn shaped(job: &Job, attack: f32, release: f32, wanted: impl Fn(f32) -> f32) -> Result<Sound, NodeError> {
    let sound = job.audio()?;
    let speed = |milliseconds: f32| {
        let samples = milliseconds / 1_000.0 * real(sound.rate as usize);
        if samples <= 1.0 {
            0.0
        } else {
            (-1.0 / samples).exp()
        }
    };
    let (attack, release) = (speed(attack), speed(release));
    let (mut level, mut gains) = (0.0_f32, Vec::with_capacity(sound.len()));
    for at in 0..sound.len() {
        if at % 65_536 == 0 {
            job.stop.check()?;
        }
        let loud = sound
            .channels
            .iter()
            .filter_map(|channel| channel.get(at))
            .fold(0.0_f32, |loud, sample| loud.max(sample.abs()));
        let speed = if loud > level { attack } else { release };
        level = speed * level + (1.0 - speed) * loud;
        gains.push(wanted(level));
    }
    sound.map(&job.stop, |channel| {
        channel
            .iter()
            .zip(&gains)
            .map(|(sample, gain)| sample * gain)
            .collect()
    })
}
fn decibels(level: f32) -> f32 {
    20.0 * level.max(1.0e-9).log10()
}
fn compress(job: &Job) -> Result<Sound, NodeError> {
    let (threshold, ratio) = (job.params.f("threshold")?, job.params.f("ratio")?);
    shaped(job, job.params.f("attack")?, job.params.f("release")?, |level| {
        let over = (decibels(level) - threshold).max(0.0);
        gain(over / ratio - over)
    })
}
/// Nothing is louder than the threshold.
fn limiter(job: &Job) -> Result<Sound, NodeError> {
    let most = gain(job.params.f("threshold_db")?);
    shaped(job, 0.0, job.params.f("release_ms")?, |level| {
        if level > most { most / level } else { 1.0 }
    })
}
/// Silences what is quieter than the threshold.
fn noise_gate(job: &Job) -> Result<Sound, NodeError> {
    let threshold = job.params.f("threshold_db")?;
    shaped(
        job,
        job.params.f("attack_ms")?,
        job.params.f("release_ms")?,
        |level| {
            // The last six decibels below it fade out.
            ((decibels(level) - threshold + 6.0) / 6.0).clamp(0.0, 1.0)
        },
    )
}

//! Faster or slower at the same pitch, and another pitch at the same speed, by overlapping pieces that fit together (WSOLA).

use super::{Job, Sound, bounded, edit, real, stretched};
use crate::{
    node::NodeError,
    nodes::{code::Types, media_io::Stop},
};

/// All types of this part.
pub(super) fn types() -> Types {
    vec![
        ("lib.audio.PitchShift", edit(pitch_shift)),
        ("lib.audio.TimeStretch", edit(time_stretch)),
    ]
}

fn time_stretch(job: &Job) -> Result<Sound, NodeError> {
    let rate = job.params.f64("rate")?;
    let sound = job.audio()?;
    faster(sound, &job.stop, rate)
}
fn pitch_shift(job: &Job) -> Result<Sound, NodeError> {
    let up = (job.params.f64("semitones")? / 12.0).exp2();
    let sound = job.audio()?;
    if (up - 1.0).abs() < 1.0e-9 {
        return Ok(sound.clone());
    }
    let slower = faster(sound, &job.stop, 1.0 / up)?;
    slower.map(&job.stop, |channel| {
        let mut out = stretched(channel, up);
        out.resize(sound.len(), 0.0);
        out
    })
}
/// So many times as fast. All channels are cut at the same places.
fn faster(sound: &Sound, stop: &Stop, rate: f64) -> Result<Sound, NodeError> {
    if (rate - 1.0).abs() < 1.0e-9 || sound.len() == 0 {
        return Ok(sound.clone());
    }
    let piece = sound.samples(0.04).max(16);
    let (step, search) = (piece / 2, (piece / 4).max(1));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "bounded by the samples of a sound"
    )]
    let length = (super::count(sound.len()) / rate).round() as usize;
    bounded(length, sound.channels.len())?;
    let guide = sound.mono().channels.into_iter().next().unwrap_or_default();
    let mut channels = vec![vec![0.0_f32; length + piece]; sound.channels.len()];
    let (mut at, mut from) = (0, 0_usize);
    while at < length {
        stop.check()?;
        for (out, channel) in channels.iter_mut().zip(&sound.channels) {
            for place in 0..piece {
                let Some(sample) = channel.get(from + place) else {
                    break;
                };
                // Rising, then falling; the first piece does not rise.
                let weight = if place < step {
                    if at == 0 { 1.0 } else { real(place) / real(step) }
                } else {
                    1.0 - real(place - step) / real((piece - step).max(1))
                };
                if let Some(out) = out.get_mut(at + place) {
                    *out += sample * weight;
                }
            }
        }
        at += step;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "bounded by the samples of a sound"
        )]
        let ideal = (super::count(at) * rate).round() as usize;
        from = best(&guide, from + step, ideal, search, step);
    }
    channels.iter_mut().for_each(|channel| channel.truncate(length));
    Ok(Sound {
        rate: sound.rate,
        channels,
    })
}
/// The place near the ideal one where the sound goes on most like it would have.
fn best(guide: &[f32], natural: usize, ideal: usize, search: usize, length: usize) -> usize {
    let first = ideal.saturating_sub(search);
    let last = (ideal + search).min(guide.len().saturating_sub(length));
    let wanted = guide
        .get(natural..(natural + length).min(guide.len()))
        .unwrap_or_default();
    let likeness = |from: usize| -> f32 {
        let there = guide
            .get(from..(from + wanted.len()).min(guide.len()))
            .unwrap_or_default();
        let energy: f32 = there.iter().map(|sample| sample * sample).sum();
        // Every fourth sample is enough to compare.
        let sum: f32 = wanted.iter().zip(there).step_by(4).map(|(a, b)| a * b).sum();
        sum / (energy.sqrt() + 1.0e-6)
    };
    let mut found = (ideal, f32::MIN);
    for from in (first..=last).step_by(2) {
        let like = likeness(from);
        if like > found.1 {
            found = (from, like);
        }
    }
    found.0
}

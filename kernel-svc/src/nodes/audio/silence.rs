//! Silence taken out of a sound.

use super::{Job, Sound, edit, gain, real};
use crate::{node::NodeError, nodes::code::Types};

/// All types of this part.
pub(super) fn types() -> Types {
    vec![("nodetool.audio.RemoveSilence", edit(remove_silence))]
}

/// Loudness is looked at in pieces of so many milliseconds.
const PIECE: f64 = 0.01;

/// Shortens silences of at least a length to a part of theirs, but never below what must stay between two parts.
fn remove_silence(job: &Job) -> Result<Sound, NodeError> {
    let sound = job.audio()?;
    let time = |name: &str| {
        job.params
            .f64(name)
            .map(|milliseconds| sound.samples(milliseconds / 1_000.0))
    };
    let (shortest, fade, between) = (
        time("min_length")?,
        time("crossfade")?,
        time("min_silence_between_parts")?,
    );
    let (threshold, reduction) = (
        gain(job.params.f("threshold")?),
        job.params.f("reduction_factor")?,
    );
    let piece = sound.samples(PIECE).max(1);
    let quiet = |from: usize, to: usize| {
        let (mut sum, mut all) = (0.0_f32, 0_usize);
        for channel in &sound.channels {
            for sample in channel.get(from..to).unwrap_or_default() {
                sum += sample * sample;
                all += 1;
            }
        }
        (sum / real(all.max(1))).sqrt() < threshold
    };
    let mut kept: Vec<(usize, usize)> = Vec::new();
    let mut at = 0;
    while at < sound.len() {
        job.stop.check()?;
        let silent = quiet(at, (at + piece).min(sound.len()));
        let mut end = at;
        while end < sound.len() && quiet(end, (end + piece).min(sound.len())) == silent {
            end = (end + piece).min(sound.len());
        }
        let length = end - at;
        if silent && length >= shortest.max(1) {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "at most the length"
            )]
            let left = (real(length) * (1.0 - reduction)).round() as usize;
            let left = left.max(between.min(length));
            // What stays is the beginning and the end of the silence, so that no word is cut.
            kept.push((at, at + left / 2));
            kept.push((end - (left - left / 2), end));
        } else {
            kept.push((at, end));
        }
        at = end;
    }
    sound.map(&job.stop, |channel| joined(channel, &kept, fade))
}
/// Parts in a row; where something was left out the ends are blended.
fn joined(channel: &[f32], parts: &[(usize, usize)], fade: usize) -> Vec<f32> {
    let (mut out, mut last): (Vec<f32>, Option<usize>) = (Vec::new(), None);
    for (from, to) in parts.iter().filter(|(from, to)| to > from) {
        let part = channel.get(*from..*to).unwrap_or_default();
        let fade = if last.is_none_or(|last| last == *from) {
            0
        } else {
            fade.min(part.len()).min(out.len())
        };
        let start = out.len() - fade;
        for (at, (old, new)) in out.iter_mut().skip(start).zip(part).enumerate() {
            let weight = real(at + 1) / real(fade + 1);
            *old = *old * (1.0 - weight) + new * weight;
        }
        out.extend(part.iter().skip(fade));
        last = Some(*to);
    }
    out
}

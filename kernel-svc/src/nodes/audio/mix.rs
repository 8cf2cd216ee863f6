//! Several sounds in one, side by side or one after the other. All take rate and channels of the first one.

use super::{Job, Sound, bounded, edit};
use crate::{
    node::NodeError,
    nodes::{args::missing, code::Types},
};

/// All types of this part.
pub(super) fn types() -> Types {
    vec![
        ("nodetool.audio.AudioMixer", edit(mixed)),
        ("nodetool.audio.Concat", edit(joined)),
        ("nodetool.audio.ConcatList", edit(joined)),
        ("nodetool.audio.OverlayAudio", edit(overlaid)),
    ]
}

/// All sounds, alike: the rate of the first one, and the most channels.
fn alike(job: &Job) -> Result<Vec<Sound>, NodeError> {
    let name = if job.params.args().0.contains_key("audio_files") {
        "audio_files"
    } else {
        "audio"
    };
    let first = job
        .sounds
        .first()
        .ok_or_else(|| missing(name, "there is no sound to work on"))?
        .1;
    let width = job
        .sounds
        .values()
        .map(|sound| sound.channels.len())
        .max()
        .unwrap_or(1);
    let (mut all, mut total) = (Vec::new(), 0_usize);
    for sound in job.sounds.values() {
        job.stop.check()?;
        // A lower rate grows; what it grows to is bounded before it does.
        let grown = sound
            .samples(0.0)
            .max(sound.len().saturating_mul(first.rate as usize) / sound.rate.max(1) as usize);
        total = total.saturating_add(grown);
        bounded(total, width)?;
        all.push(sound.like(first.rate, width));
    }
    Ok(all)
}
fn joined(job: &Job) -> Result<Sound, NodeError> {
    let mut all = alike(job)?.into_iter();
    let mut whole = all.next().unwrap_or(Sound {
        rate: 44_100,
        channels: Vec::new(),
    });
    for next in all {
        for (channel, more) in whole.channels.iter_mut().zip(next.channels) {
            channel.extend(more);
        }
    }
    Ok(whole)
}
/// All at once; made quieter as a whole when it would be too loud.
fn sum(job: &Job) -> Result<Sound, NodeError> {
    let all = alike(job)?;
    let length = all.iter().map(Sound::len).max().unwrap_or_default();
    let first = all
        .first()
        .map_or((44_100, 1), |sound| (sound.rate, sound.channels.len()));
    let mut whole = Sound {
        rate: first.0,
        channels: vec![vec![0.0_f32; length]; first.1],
    };
    for sound in all {
        job.stop.check()?;
        for (channel, more) in whole.channels.iter_mut().zip(sound.channels) {
            for (sample, more) in channel.iter_mut().zip(more) {
                *sample += more;
            }
        }
    }
    let peak = whole.peak();
    if peak > 1.0 {
        whole
            .channels
            .iter_mut()
            .flatten()
            .for_each(|sample| *sample /= peak);
    }
    Ok(whole)
}
fn mixed(job: &Job) -> Result<Sound, NodeError> {
    sum(job)
}
fn overlaid(job: &Job) -> Result<Sound, NodeError> {
    job.sound("a")?;
    job.sound("b")?;
    sum(job)
}

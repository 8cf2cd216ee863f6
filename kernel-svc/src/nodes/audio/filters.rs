//! Filters of frequencies, echoes and sweeps.

use std::f32::consts::{PI, TAU};

use super::{Job, Sound, count, edit, real};
use crate::{node::NodeError, nodes::code::Types};

/// All types of this part.
pub(super) fn types() -> Types {
    vec![
        ("lib.audio.Delay", edit(delay)),
        ("lib.audio.HighPassFilter", edit(|job| cut(job, Shape::HighPass))),
        (
            "lib.audio.HighShelfFilter",
            edit(|job| cut(job, Shape::HighShelf)),
        ),
        ("lib.audio.LowPassFilter", edit(|job| cut(job, Shape::LowPass))),
        ("lib.audio.LowShelfFilter", edit(|job| cut(job, Shape::LowShelf))),
        ("lib.audio.PeakFilter", edit(|job| cut(job, Shape::Peak))),
        ("lib.audio.Phaser", edit(phaser)),
    ]
}

/// What a filter lets through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    LowPass,
    HighPass,
    LowShelf,
    HighShelf,
    Peak,
}
/// A filter of the second order (Robert Bristow-Johnson's formulas).
#[derive(Debug, Clone, Copy)]
pub(super) struct Filter {
    forward: [f32; 3],
    back: [f32; 2],
    before: [f32; 2],
    after: [f32; 2],
}
impl Filter {
    /// The frequency is kept below half of the rate.
    pub fn new(shape: Shape, rate: u32, frequency: f32, quality: f32, decibels: f32) -> Self {
        let rate = real(rate as usize);
        let turn = TAU * frequency.clamp(1.0, rate * 0.49) / rate;
        let (sin, cos) = turn.sin_cos();
        let alpha = sin / (2.0 * quality.max(0.01));
        let gain = 10.0_f32.powf(decibels / 40.0);
        let root = 2.0 * gain.sqrt() * alpha;
        let (b, a) = match shape {
            Shape::LowPass => (
                [(1.0 - cos) / 2.0, 1.0 - cos, (1.0 - cos) / 2.0],
                [1.0 + alpha, -2.0 * cos, 1.0 - alpha],
            ),
            Shape::HighPass => (
                [(1.0 + cos) / 2.0, -1.0 - cos, (1.0 + cos) / 2.0],
                [1.0 + alpha, -2.0 * cos, 1.0 - alpha],
            ),
            Shape::Peak => (
                [1.0 + alpha * gain, -2.0 * cos, 1.0 - alpha * gain],
                [1.0 + alpha / gain, -2.0 * cos, 1.0 - alpha / gain],
            ),
            Shape::LowShelf => (
                [
                    gain * ((gain + 1.0) - (gain - 1.0) * cos + root),
                    2.0 * gain * ((gain - 1.0) - (gain + 1.0) * cos),
                    gain * ((gain + 1.0) - (gain - 1.0) * cos - root),
                ],
                [
                    (gain + 1.0) + (gain - 1.0) * cos + root,
                    -2.0 * ((gain - 1.0) + (gain + 1.0) * cos),
                    (gain + 1.0) + (gain - 1.0) * cos - root,
                ],
            ),
            Shape::HighShelf => (
                [
                    gain * ((gain + 1.0) + (gain - 1.0) * cos + root),
                    -2.0 * gain * ((gain - 1.0) + (gain + 1.0) * cos),
                    gain * ((gain + 1.0) + (gain - 1.0) * cos - root),
                ],
                [
                    (gain + 1.0) - (gain - 1.0) * cos + root,
                    2.0 * ((gain - 1.0) - (gain + 1.0) * cos),
                    (gain + 1.0) - (gain - 1.0) * cos - root,
                ],
            ),
        };
        Self {
            forward: b.map(|number| number / a[0]),
            back: [a[1] / a[0], a[2] / a[0]],
            before: [0.0; 2],
            after: [0.0; 2],
        }
    }
    pub fn next(&mut self, sample: f32) -> f32 {
        let out =
            self.forward[0] * sample + self.forward[1] * self.before[0] + self.forward[2] * self.before[1]
                - self.back[0] * self.after[0]
                - self.back[1] * self.after[1];
        self.before = [sample, self.before[0]];
        self.after = [out, self.after[0]];
        out
    }
}
fn cut(job: &Job, shape: Shape) -> Result<Sound, NodeError> {
    let frequency = job.params.f("cutoff_frequency_hz")?;
    let gains = !matches!(shape, Shape::LowPass | Shape::HighPass);
    let decibels = if gains { job.params.f("gain_db")? } else { 0.0 };
    let quality = if shape == Shape::Peak {
        job.params.f("q_factor")?
    } else {
        std::f32::consts::FRAC_1_SQRT_2
    };
    let sound = job.audio()?;
    sound.map(&job.stop, |channel| {
        let mut filter = Filter::new(shape, sound.rate, frequency, quality, decibels);
        channel.iter().map(|sample| filter.next(*sample)).collect()
    })
}
/// Echoes, each quieter than the one before; the length stays.
fn delay(job: &Job) -> Result<Sound, NodeError> {
    let (feedback, mix) = (job.params.f("feedback")?, job.params.f("mix")?);
    let sound = job.audio()?;
    let length = sound.samples(job.params.f64("delay_seconds")?).max(1);
    sound.map(&job.stop, |channel| {
        let mut line: Vec<f32> = Vec::with_capacity(channel.len());
        for (at, sample) in channel.iter().enumerate() {
            let echo = at
                .checked_sub(length)
                .and_then(|at| line.get(at))
                .copied()
                .unwrap_or_default();
            line.push(sample + feedback * echo);
        }
        let echoed = channel.iter().enumerate().map(|(at, sample)| {
            let echo = at
                .checked_sub(length)
                .and_then(|at| line.get(at))
                .copied()
                .unwrap_or_default();
            sample * (1.0 - mix) + echo * mix
        });
        echoed.collect()
    })
}
/// Six all-pass stages whose middle swings.
fn phaser(job: &Job) -> Result<Sound, NodeError> {
    let (speed, depth, mix) = (
        job.params.f64("rate_hz")?,
        job.params.f("depth")?,
        job.params.f("mix")?,
    );
    let (middle, feedback) = (job.params.f("centre_frequency_hz")?, job.params.f("feedback")?);
    let sound = job.audio()?;
    let rate = f64::from(sound.rate);
    sound.map(&job.stop, |channel| {
        let (mut stages, mut last) = ([(0.0_f32, 0.0_f32); 6], 0.0_f32);
        let swept = channel.iter().enumerate().map(|(at, sample)| {
            #[expect(clippy::cast_possible_truncation, reason = "a part of a turn")]
            let turn = (count(at) * speed / rate).fract() as f32;
            let frequency = middle * (2.0_f32).powf(depth * (turn * TAU).sin());
            #[expect(clippy::cast_possible_truncation, reason = "single precision")]
            let tan = (PI * (frequency / rate as f32).min(0.45)).tan();
            let place = (tan - 1.0) / (tan + 1.0);
            // Full feedback would never end.
            let mut wet = sample + feedback.clamp(-0.98, 0.98) * last;
            for (before, after) in &mut stages {
                let out = place * wet + *before - place * *after;
                (*before, *after) = (wet, out);
                wet = out;
            }
            last = wet;
            sample * (1.0 - mix) + wet * mix
        });
        swept.collect()
    })
}

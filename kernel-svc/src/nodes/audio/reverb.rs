//! Reverberation after Schroeder and Moorer: eight combs side by side, then four all-passes in a row.

use super::{Job, Sound, edit, real};
use crate::{node::NodeError, nodes::code::Types};

/// All types of this part.
pub(super) fn types() -> Types {
    vec![("lib.audio.Reverb", edit(reverb))]
}

/// Lengths in samples at 44.1 kHz, without a common divisor.
const COMBS: [usize; 8] = [1_116, 1_188, 1_277, 1_356, 1_422, 1_491, 1_557, 1_617];
const PASSES: [usize; 4] = [556, 441, 341, 225];
/// How much longer the lines of each further channel are, so that the room is wide.
const SPREAD: usize = 23;

struct Line {
    samples: Vec<f32>,
    at: usize,
    dull: f32,
}
impl Line {
    fn new(length: usize, rate: u32, channel: usize) -> Self {
        let length = (length + SPREAD * channel).saturating_mul(rate as usize) / 44_100;
        Self {
            samples: vec![0.0; length.max(1)],
            at: 0,
            dull: 0.0,
        }
    }
    /// Takes the oldest sample out, and puts what is made of it in its place.
    fn turn(&mut self, new: impl FnOnce(f32, &mut f32) -> f32) -> f32 {
        let Some(place) = self.samples.get_mut(self.at) else {
            return 0.0;
        };
        let old = *place;
        *place = new(old, &mut self.dull);
        self.at = (self.at + 1) % self.samples.len();
        old
    }
}
fn reverb(job: &Job) -> Result<Sound, NodeError> {
    let (room, damping) = (job.params.f("room_scale")?, job.params.f("damping")?);
    let (wet, dry) = (job.params.f("wet_level")?, job.params.f("dry_level")?);
    let (feedback, damping) = (0.7 + 0.28 * room, 0.4 * damping);
    let sound = job.audio()?;
    let mut channels = Vec::with_capacity(sound.channels.len());
    for (number, channel) in sound.channels.iter().enumerate() {
        job.stop.check()?;
        let mut combs = COMBS.map(|length| Line::new(length, sound.rate, number));
        let mut passes = PASSES.map(|length| Line::new(length, sound.rate, number));
        let mut out = Vec::with_capacity(channel.len());
        for (at, sample) in channel.iter().enumerate() {
            if at % 65_536 == 0 {
                job.stop.check()?;
            }
            let mut echo = 0.0;
            for comb in &mut combs {
                echo += comb.turn(|old, dull| {
                    *dull = old * (1.0 - damping) + *dull * damping;
                    sample + *dull * feedback
                });
            }
            echo /= real(COMBS.len());
            for pass in &mut passes {
                let into = echo;
                let old = pass.turn(|old, _| into + old * 0.5);
                echo = old - into;
            }
            out.push(sample * dry + echo * wet);
        }
        channels.push(out);
    }
    Ok(Sound {
        rate: sound.rate,
        channels,
    })
}

//! What sounds are made of: spectra, and the coefficients that speech is recognised by.

use std::f64::consts::{PI, TAU};

use atelier_proto::value::{Map, Value};
use rustfft::{FftPlanner, num_complex::Complex};

use super::{Job, Measure, Sound, count};
use crate::{
    node::NodeError,
    nodes::{
        args::{self, map, one},
        code::{Types, factory},
        media_io::value_fault,
    },
};

/// Mel bands, as is usual.
const BANDS: usize = 128;
/// Most numbers of a result.
const MAX_NUMBERS: usize = 4 * 1024 * 1024;
/// Below it power counts as none.
const FLOOR: f64 = 1.0e-10;
/// Decibels below the loudest that are kept.
const RANGE: f64 = 80.0;

/// All types of this part.
pub(super) fn types() -> Types {
    vec![("lib.librosa.analysis.MFCC", factory(Measure(mfcc)))]
}

/// The power spectrum of each frame: frames are centred, and nothing is beyond both ends.
fn powers(job: &Job, sound: &Sound, size: usize, hop: usize) -> Result<Vec<Vec<f64>>, NodeError> {
    let samples = sound.mono().channels.into_iter().next().unwrap_or_default();
    let frames = samples.len() / hop + 1;
    if frames.saturating_mul(size / 2 + 1) > 16 * MAX_NUMBERS {
        return Err(value_fault(
            "hop_length",
            "gives more frames than can be worked on",
        ));
    }
    let fft = FftPlanner::<f64>::new().plan_fft_forward(size);
    let window: Vec<f64> = (0..size)
        .map(|at| 0.5 - 0.5 * (TAU * count(at) / count(size)).cos())
        .collect();
    let mut all = Vec::with_capacity(frames);
    for frame in 0..frames {
        job.stop.check()?;
        let mut buffer: Vec<Complex<f64>> = window
            .iter()
            .enumerate()
            .map(|(at, weight)| {
                let place = (frame * hop + at).checked_sub(size / 2);
                let sample = place
                    .and_then(|place| samples.get(place))
                    .copied()
                    .unwrap_or_default();
                Complex::new(f64::from(sample) * weight, 0.0)
            })
            .collect();
        fft.process(&mut buffer);
        all.push(buffer.iter().take(size / 2 + 1).map(Complex::norm_sqr).collect());
    }
    Ok(all)
}
/// Slaney's scale: even up to 1 kHz, then logarithmic.
fn mel(frequency: f64) -> f64 {
    if frequency < 1_000.0 {
        frequency * 3.0 / 200.0
    } else {
        15.0 + (frequency / 1_000.0).ln() * 27.0 / 6.4_f64.ln()
    }
}
fn frequency(mel: f64) -> f64 {
    if mel < 15.0 {
        mel * 200.0 / 3.0
    } else {
        1_000.0 * ((mel - 15.0) * 6.4_f64.ln() / 27.0).exp()
    }
}
/// Triangles over the spectrum, all of one area.
fn bands(rate: u32, size: usize, low: f64, high: f64) -> Vec<Vec<f64>> {
    let edges: Vec<f64> = (0..BANDS + 2)
        .map(|at| frequency(mel(low) + (mel(high) - mel(low)) * count(at) / count(BANDS + 1)))
        .collect();
    edges
        .windows(3)
        .map(|edge| {
            let [from, middle, to] = [0, 1, 2].map(|at| edge.get(at).copied().unwrap_or_default());
            let weight = |bin: usize| {
                let at = count(bin) * f64::from(rate) / count(size);
                let rising = (at - from) / (middle - from).max(FLOOR);
                let falling = (to - at) / (to - middle).max(FLOOR);
                rising.min(falling).max(0.0) * 2.0 / (to - from).max(FLOOR)
            };
            (0..=size / 2).map(weight).collect()
        })
        .collect()
}
/// Cosine transform (type 2, orthonormal) of the first coefficients.
fn cosines(values: &[f64], wanted: usize) -> Vec<f64> {
    let length = count(values.len());
    (0..wanted)
        .map(|k| {
            let sum: f64 = values
                .iter()
                .enumerate()
                .map(|(at, value)| value * (PI * count(k) * (2.0 * count(at) + 1.0) / (2.0 * length)).cos())
                .sum();
            sum * if k == 0 {
                (1.0 / length).sqrt()
            } else {
                (2.0 / length).sqrt()
            }
        })
        .collect()
}
/// Mel-frequency cepstral coefficients: one row a coefficient, one column a frame.
fn mfcc(job: &Job) -> Result<Map, NodeError> {
    let sound = job.audio()?;
    let wanted = job.params.size("n_mfcc")? as usize;
    let (size, hop) = (
        job.params.size("n_fft")? as usize,
        job.params.size("hop_length")? as usize,
    );
    let (low, high) = (job.params.f64("fmin")?, job.params.f64("fmax")?);
    let half = f64::from(sound.rate) / 2.0;
    let high = if high <= 0.0 { half } else { high.min(half) };
    if low >= high {
        return Err(value_fault("fmin", &format!("must be below {high}, got {low}")));
    }
    let powers = powers(job, sound, size, hop)?;
    let bands = bands(sound.rate, size, low, high);
    let mut levels: Vec<Vec<f64>> = Vec::with_capacity(powers.len());
    for power in &powers {
        job.stop.check()?;
        let level =
            |band: &Vec<f64>| -> f64 { band.iter().zip(power).map(|(weight, power)| weight * power).sum() };
        levels.push(
            bands
                .iter()
                .map(|band| 10.0 * level(band).max(FLOOR).log10())
                .collect(),
        );
    }
    let loudest = levels.iter().flatten().copied().fold(f64::MIN, f64::max);
    let columns: Vec<Vec<f64>> = levels
        .iter()
        .map(|levels| {
            let levels: Vec<f64> = levels.iter().map(|level| level.max(loudest - RANGE)).collect();
            cosines(&levels, wanted)
        })
        .collect();
    let rows = (0..wanted).map(|row| {
        columns
            .iter()
            .map(|column| column.get(row).copied().unwrap_or_default())
            .collect()
    });
    array(rows.collect()).map(|array| one("output", array))
}
/// Numbers in rows as an array: type, shape, and the rows themselves.
fn array(rows: Vec<Vec<f64>>) -> Result<Value, NodeError> {
    let width = rows.first().map_or(0, Vec::len);
    if rows.len().saturating_mul(width) > MAX_NUMBERS {
        return Err(
            NodeError::new(format!("the result has more than {MAX_NUMBERS} numbers")).code("output.size"),
        );
    }
    let shape = Value::list(vec![args::count(rows.len()), args::count(width)]);
    let rows = rows
        .into_iter()
        .map(|row| Value::list(row.into_iter().map(Value::Float).collect()));
    Ok(map([
        ("type", "np_array".into()),
        ("dtype", "float64".into()),
        ("shape", shape),
        ("value", Value::list(rows.collect())),
    ])
    .into())
}

//! Sound that is not speech, and what is heard in sound: music, changed recordings, transcripts.
//!
//! Nothing here understands sound: a transcript says that it stands in for one, and equal bytes give an equal one.

use std::io::Cursor;

use super::write;

/// Samples a second.
pub const RATE: u32 = 22_050;
/// Shortest and longest piece of music, in seconds.
pub const SECONDS: (f64, f64) = (1.0, 60.0);
/// Longest recording that is changed, in samples: ten minutes.
const MAX_SAMPLES: usize = 600 * 48_000;
/// Semitones of the scale that melodies walk on.
const SCALE: [i32; 7] = [0, 2, 3, 5, 7, 8, 10];

/// A melody over a bass, as a WAV file.
///
/// # Errors
/// The file could not be written; a bug of ours.
pub fn music(prompt: &str, seed: u64, seconds: f64) -> Result<Vec<u8>, String> {
    let digest = blake3::hash(format!("{seed}:{}", prompt.trim().to_lowercase()).as_bytes());
    let dice = digest.as_bytes();
    let die = |at: usize| i32::from(dice.get(at % 32).copied().unwrap_or(0));
    let root = 45 + die(0) % 12;
    let beat = 0.22 + f64::from(die(1)) / 255.0 * 0.2;
    let count = samples(seconds);
    let mut out = Vec::new();
    for at in 0..count {
        let time = f64::from(at) / f64::from(RATE);
        let step = whole(time / beat);
        let into = time - f64::from(u32::try_from(step).unwrap_or(0)) * beat;
        let degree = usize::try_from(die(2 + step % 29)).unwrap_or(0) % SCALE.len();
        let melody = root + 24 + SCALE.get(degree).copied().unwrap_or(0);
        let bass = root + if (step / 8).is_multiple_of(2) { 0 } else { 5 };
        let fade = (1.0 - time / seconds.max(0.1)).clamp(0.0, 1.0).min(0.25) * 4.0;
        let sound = tone(melody, time) * (-into * 6.0).exp() * 0.45 + tone(bass, time) * 0.25;
        out.push(sample(sound * fade));
    }
    wav(&out, RATE)
}

/// A recording with an echo; `None` when it is no WAV file that can be read.
#[must_use]
pub fn echo(bytes: &[u8]) -> Option<(Vec<u8>, f64)> {
    let (heard, rate) = read(bytes)?;
    let late = usize::try_from(rate / 4).unwrap_or(1);
    let mut out = heard.clone();
    for at in late..out.len() {
        let back = out.get(at - late).copied().unwrap_or(0);
        if let Some(sample) = out.get_mut(at) {
            *sample = sample.saturating_add(back / 3);
        }
    }
    let seconds = length(out.len(), rate);
    Some((wav(&out, rate).ok()?, seconds))
}

/// What stands in for a transcript, and how long the recording is, in seconds.
#[must_use]
pub fn transcript(bytes: &[u8], seed: u64) -> (String, f64) {
    let seconds = read(bytes).map_or_else(
        // Of what cannot be read the length is guessed from a usual rate of compressed speech: 16 kB a second.
        || length(bytes.len(), 16_000),
        |(heard, rate)| length(heard.len(), rate),
    );
    let digest = blake3::hash(bytes);
    let mark = digest.to_hex();
    let mark = mark.get(..8).unwrap_or_default();
    let said = write::reply("", &format!("What was said in recording {mark}?"), seed);
    (
        format!("[Stand-in transcript of {seconds:.1} seconds of sound, recording {mark}.] {said}"),
        seconds,
    )
}

/// Mono samples of a WAV file of whole numbers or floats, and its rate.
fn read(bytes: &[u8]) -> Option<(Vec<i16>, u32)> {
    let mut reader = hound::WavReader::new(Cursor::new(bytes)).ok()?;
    let spec = reader.spec();
    let channels = usize::from(spec.channels.max(1));
    let most = MAX_SAMPLES.saturating_mul(channels);
    let heard: Vec<i16> = match spec.sample_format {
        hound::SampleFormat::Float => reader
            .samples::<f32>()
            .step_by(channels)
            .take(most)
            .map_while(Result::ok)
            .map(|value| sample(f64::from(value)))
            .collect(),
        hound::SampleFormat::Int => {
            let loudest = f64::from(2_u32.saturating_pow(u32::from(spec.bits_per_sample.clamp(1, 31)) - 1));
            reader
                .samples::<i32>()
                .step_by(channels)
                .take(most)
                .map_while(Result::ok)
                .map(|value| sample(f64::from(value) / loudest))
                .collect()
        }
    };
    Some((heard, spec.sample_rate.max(1)))
}

fn wav(samples: &[i16], rate: u32) -> Result<Vec<u8>, String> {
    let spec = hound::WavSpec {
        channels: 1,
        sample_rate: rate,
        bits_per_sample: 16,
        sample_format: hound::SampleFormat::Int,
    };
    let mut bytes = Vec::new();
    let failed = |error: hound::Error| format!("cannot write the sound: {error}");
    let mut writer = hound::WavWriter::new(Cursor::new(&mut bytes), spec).map_err(failed)?;
    for sample in samples {
        writer.write_sample(*sample).map_err(failed)?;
    }
    writer.finalize().map_err(failed)?;
    Ok(bytes)
}

fn tone(key: i32, time: f64) -> f64 {
    let pitch = 440.0 * 2_f64.powf(f64::from(key - 69) / 12.0);
    let turn = std::f64::consts::TAU * pitch * time;
    turn.sin() + 0.4 * (2.0 * turn).sin() + 0.15 * (3.0 * turn).sin()
}

#[expect(clippy::cast_possible_truncation, reason = "float casts saturate")]
fn sample(value: f64) -> i16 {
    (value.clamp(-1.0, 1.0) * 32_000.0) as i16
}
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "at most a minute, never negative"
)]
fn samples(seconds: f64) -> u32 {
    (seconds.clamp(SECONDS.0, SECONDS.1) * f64::from(RATE)) as u32
}
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "never negative, and float casts saturate"
)]
fn whole(value: f64) -> usize {
    value as usize
}
#[expect(clippy::cast_precision_loss, reason = "far below the limit of exact numbers")]
fn length(samples: usize, rate: u32) -> f64 {
    (samples as f64 / f64::from(rate.max(1)) * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn music_has_its_length_and_follows_its_seed() {
        let made = music("a slow waltz", 1, 2.0).unwrap();
        let (heard, rate) = read(&made).unwrap();
        assert_eq!((heard.len(), rate), (44_100, RATE));
        assert!(heard.iter().any(|sample| sample.abs() > 3_000));
        assert_eq!(made, music("a slow waltz", 1, 2.0).unwrap());
        assert_ne!(made, music("a slow waltz", 2, 2.0).unwrap());
    }

    #[test]
    fn an_echo_changes_a_recording_and_keeps_its_length() {
        let made = music("x", 1, 1.0).unwrap();
        let (changed, seconds) = echo(&made).unwrap();
        assert!(changed.len() == made.len() && changed != made && (seconds - 1.0).abs() < 0.01);
        assert!(echo(b"no sound").is_none());
    }

    #[test]
    fn a_transcript_says_what_it_is_and_is_repeatable() {
        let made = music("x", 1, 1.5).unwrap();
        let (text, seconds) = transcript(&made, 1);
        assert!(text.starts_with("[Stand-in transcript of 1.5 seconds"), "{text}");
        assert_eq!((text, seconds), transcript(&made, 1));
        assert_ne!(transcript(b"other", 1).0, transcript(&made, 1).0);
    }
}

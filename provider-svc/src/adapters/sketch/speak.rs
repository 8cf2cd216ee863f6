//! Speech-like sound of the offline provider: a text and the name of a voice in, a WAV out.
//!
//! What lives here: letters to sounds, a small voice (pulses and noise through three resonators) and the WAV around it.
//! It has the rhythm and melody of speech and can be told from noise by ear; it can't be understood. What does not: any
//! real text to speech, resampling or other formats, and anything async (that is the adapter beside this file).

use std::f32::consts::{PI, TAU};
use std::io::Cursor;

/// Samples a second of everything that [`speak`] returns.
pub const SAMPLE_RATE: u32 = 24_000;

/// The longest sound that [`speak`] makes, in seconds; text that needs more is cut.
pub const MAX_SECONDS: f64 = 120.0;

/// Why a sound could not be made.
#[derive(Debug, thiserror::Error)]
pub enum SpeakError {
    /// The finished samples could not be written as WAV; a bug of ours.
    #[error("cannot encode the sound")]
    Encode(#[from] hound::Error),
}

/// Speaks a text and returns it as WAV: mono, 16 bit, [`SAMPLE_RATE`].
///
/// `voice` is any name; equal names sound the same, different ones differ in pitch and size of the throat. `speed` is 1
/// for the usual 70 ms a letter and is kept between 0.25 and 4. A text without a letter gives a short silence.
///
/// # Errors
/// [`SpeakError::Encode`] when WAV encoding fails.
pub fn speak(text: &str, voice: &str, speed: f32) -> Result<Vec<u8>, SpeakError> {
    let spec = hound::WavSpec {
        channels: 1,
        sample_rate: SAMPLE_RATE,
        bits_per_sample: 16,
        sample_format: hound::SampleFormat::Int,
    };
    let mut bytes = Vec::new();
    let mut writer = hound::WavWriter::new(Cursor::new(&mut bytes), spec)?;
    let mut throat = Throat::of(voice);
    let sounds = sounds(text);
    let pace = pace(speed);
    let total = samples(total_seconds(&sounds, pace));
    let mut made = 0u32;
    // Positions come from the running sum, so that rounding doesn't add up over a long text.
    let mut clock = 0.0;
    for sound in &sounds {
        clock += sound.seconds / pace;
        let end = samples(clock).min(total);
        let length = end.saturating_sub(made);
        for at in 0..length {
            writer.write_sample(throat.sample(sound, ratio(at, length)))?;
        }
        made = end;
    }
    writer.finalize()?;
    Ok(bytes)
}

/// Tells how long [`speak`] would speak, in seconds from 0.2 to [`MAX_SECONDS`].
pub fn duration_seconds(text: &str, speed: f32) -> f64 {
    total_seconds(&sounds(text), pace(speed))
}

fn pace(speed: f32) -> f64 {
    f64::from(if speed.is_finite() {
        speed.clamp(0.25, 4.0)
    } else {
        1.0
    })
}

fn total_seconds(sounds: &[Sound], pace: f64) -> f64 {
    let sum: f64 = sounds.iter().map(|sound| sound.seconds).sum();
    (sum / pace).min(MAX_SECONDS)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "at most 120 s, never negative"
)]
fn samples(seconds: f64) -> u32 {
    (seconds.clamp(0.0, MAX_SECONDS) * f64::from(SAMPLE_RATE)).round() as u32
}

#[expect(
    clippy::cast_precision_loss,
    reason = "at most some million samples, and only a position"
)]
fn ratio(at: u32, length: u32) -> f32 {
    at as f32 / length.max(1) as f32
}

/// How the air moves during a sound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Vowel,
    /// m, n, l, r, w: voiced and soft.
    Hum,
    /// b, d, g: a closed moment, then a voiced burst.
    VoicedStop,
    /// p, t, k: a closed moment, then a burst of noise.
    Stop,
    /// v, z, j: voice and noise together.
    Buzz,
    /// s, f, h: noise alone.
    Hiss,
    Pause,
}

/// A letter as a sound: its manner, length and where the mouth resonates.
#[derive(Debug, Clone, Copy)]
struct Sound {
    manner: Manner,
    seconds: f64,
    formants: [f32; 3],
    /// How far the sentence has come, from 0 to 1: pitch falls with it.
    fall: f32,
    /// Whether the pitch rises, as at the end of a question.
    rises: bool,
}

/// Longer texts say nothing more within [`MAX_SECONDS`] at the highest speed.
const MAX_LETTERS: usize = 40_000;

fn sounds(text: &str) -> Vec<Sound> {
    let mut out: Vec<Sound> = Vec::new();
    let mut sentence_start = 0;
    for letter in text.chars().take(MAX_LETTERS).flat_map(char::to_lowercase) {
        if let Some(word) = digit_word(letter) {
            out.extend(word.chars().map(sound_of));
            out.push(pause(0.05));
            continue;
        }
        out.push(sound_of(letter));
        if matches!(letter, '.' | '!' | '?' | '\n') {
            close_sentence(out.get_mut(sentence_start..), letter == '?');
            sentence_start = out.len();
        }
    }
    close_sentence(out.get_mut(sentence_start..), text.trim_end().ends_with('?'));
    if out.is_empty() {
        out.push(pause(0.2));
    }
    out.push(pause(0.12));
    out
}

fn close_sentence(sentence: Option<&mut [Sound]>, question: bool) {
    let Some(sentence) = sentence else { return };
    let count = u32::try_from(sentence.len()).unwrap_or(u32::MAX);
    for (at, sound) in (0u32..).zip(sentence.iter_mut()) {
        sound.fall = ratio(at, count);
        sound.rises = question && sound.fall > 0.7;
    }
}

fn pause(seconds: f64) -> Sound {
    Sound {
        manner: Manner::Pause,
        seconds,
        formants: [500.0, 1500.0, 2500.0],
        fall: 0.0,
        rises: false,
    }
}

fn digit_word(letter: char) -> Option<&'static str> {
    const WORDS: [&str; 10] = [
        "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine",
    ];
    let digit = usize::try_from(letter.to_digit(10)?).ok()?;
    WORDS.get(digit).copied()
}

fn sound_of(letter: char) -> Sound {
    let make = |manner, seconds, formants| Sound {
        manner,
        seconds,
        formants,
        fall: 0.0,
        rises: false,
    };
    match letter {
        'a' | 'à' | 'á' | 'â' | 'å' => make(Manner::Vowel, 0.080, [760.0, 1250.0, 2550.0]),
        'e' | 'è' | 'é' | 'ê' | 'ë' | 'ä' | 'æ' => make(Manner::Vowel, 0.076, [520.0, 1850.0, 2500.0]),
        'i' | 'y' | 'ì' | 'í' | 'î' => make(Manner::Vowel, 0.070, [310.0, 2250.0, 2950.0]),
        'o' | 'ò' | 'ó' | 'ô' | 'ø' => make(Manner::Vowel, 0.080, [480.0, 880.0, 2500.0]),
        'u' | 'ù' | 'ú' | 'û' => make(Manner::Vowel, 0.074, [340.0, 780.0, 2350.0]),
        'ö' | 'ü' | 'œ' => make(Manner::Vowel, 0.076, [380.0, 1650.0, 2300.0]),
        'm' => make(Manner::Hum, 0.066, [270.0, 1000.0, 2200.0]),
        'n' | 'ñ' => make(Manner::Hum, 0.062, [280.0, 1450.0, 2400.0]),
        'l' => make(Manner::Hum, 0.062, [360.0, 1150.0, 2700.0]),
        'r' => make(Manner::Hum, 0.064, [420.0, 1250.0, 1700.0]),
        'w' => make(Manner::Hum, 0.060, [310.0, 720.0, 2250.0]),
        'b' => make(Manner::VoicedStop, 0.066, [300.0, 900.0, 2300.0]),
        'd' => make(Manner::VoicedStop, 0.066, [300.0, 1700.0, 2600.0]),
        'g' | 'q' => make(Manner::VoicedStop, 0.068, [300.0, 2000.0, 2500.0]),
        'p' => make(Manner::Stop, 0.070, [600.0, 1100.0, 2400.0]),
        't' => make(Manner::Stop, 0.070, [3800.0, 4600.0, 6000.0]),
        'k' | 'c' | 'x' => make(Manner::Stop, 0.072, [1700.0, 2400.0, 3600.0]),
        'v' => make(Manner::Buzz, 0.062, [320.0, 1200.0, 2600.0]),
        'z' => make(Manner::Buzz, 0.070, [320.0, 1700.0, 5200.0]),
        'j' => make(Manner::Buzz, 0.072, [320.0, 2000.0, 2900.0]),
        's' | 'ß' | 'ç' => make(Manner::Hiss, 0.078, [4700.0, 6200.0, 7600.0]),
        'f' => make(Manner::Hiss, 0.070, [1500.0, 3600.0, 7000.0]),
        'h' => make(Manner::Hiss, 0.060, [600.0, 1500.0, 2500.0]),
        ',' | ';' | ':' | '(' | ')' | '\u{2013}' | '\u{2014}' => pause(0.16),
        '.' | '!' | '?' | '\n' => pause(0.30),
        other if other.is_whitespace() => pause(0.085),
        other if other.is_alphabetic() => {
            // Letters of other scripts are vowels and hums of their own.
            let code = u32::from(other);
            let pick = |factor: u32, span: u32, low: f32| low + ratio(code.wrapping_mul(factor) % span, 1);
            let formants = [pick(37, 450, 300.0), pick(91, 1300, 900.0), pick(53, 600, 2300.0)];
            make(
                if code.is_multiple_of(3) {
                    Manner::Hum
                } else {
                    Manner::Vowel
                },
                0.090,
                formants,
            )
        }
        _ => pause(0.03),
    }
}

/// A resonator with two poles; what a cavity of the mouth does to the sound.
#[derive(Debug, Clone, Copy, Default)]
struct Resonator {
    first: f32,
    second: f32,
}

impl Resonator {
    fn pass(&mut self, input: f32, decay: f32, turn: f32) -> f32 {
        let out = input + 2.0 * decay * turn * self.first - decay * decay * self.second;
        self.second = self.first;
        self.first = out;
        out
    }
}

/// A voice while it speaks.
#[derive(Debug, Clone)]
struct Throat {
    pitch: f32,
    size: f32,
    breath: f32,
    phase: f32,
    wobble: f32,
    noise: u64,
    loud: f32,
    hiss: f32,
    mouth: [f32; 3],
    cavities: [Resonator; 3],
    /// Cosines of the cavities' angles, renewed every few samples: they change slowly and cost much.
    turns: [f32; 3],
    until_renewal: u8,
}

impl Throat {
    fn of(voice: &str) -> Self {
        let digest = blake3::hash(voice.trim().to_lowercase().as_bytes());
        let mut shares = digest.as_bytes().iter().map(|byte| f32::from(*byte) / 255.0);
        let mut share = || shares.next().unwrap_or(0.5);
        let pitch = 92.0 * 2f32.powf(share() * 1.25);
        // Higher voices have smaller throats, whose resonances lie higher.
        let size = 0.90 + (pitch - 92.0) / 128.0 * 0.17 + share() * 0.07;
        Self {
            pitch,
            size,
            breath: 0.02 + share() * 0.05,
            phase: 0.0,
            wobble: share() * TAU,
            noise: 0x9e37_79b9_7f4a_7c15,
            loud: 0.0,
            hiss: 0.0,
            mouth: [500.0, 1500.0, 2500.0],
            cavities: [Resonator::default(); 3],
            turns: [0.0; 3],
            until_renewal: 0,
        }
    }

    fn random(&mut self) -> f32 {
        self.noise ^= self.noise << 13;
        self.noise ^= self.noise >> 7;
        self.noise ^= self.noise << 17;
        f32::from(u16::try_from(self.noise >> 48).unwrap_or(0)) / 32768.0 - 1.0
    }

    /// One sample of a sound that has come to `at`, from 0 to 1.
    fn sample(&mut self, sound: &Sound, at: f32) -> i16 {
        let (voice, noise) = match sound.manner {
            Manner::Vowel => (1.0, self.breath),
            Manner::Hum => (0.55, 0.01),
            Manner::VoicedStop if at < 0.45 => (0.12, 0.0),
            Manner::VoicedStop => (0.7, 0.12 * (1.0 - at)),
            Manner::Stop if at < 0.5 => (0.0, 0.0),
            Manner::Stop => (0.0, 0.9 * (1.0 - at) * 2.0),
            Manner::Buzz => (0.45, 0.16),
            Manner::Hiss => (0.0, 0.42),
            Manner::Pause => (0.0, 0.0),
        };
        // Sliding instead of jumping makes neighbours melt into each other.
        self.loud += (voice - self.loud) * 0.006;
        self.hiss += (noise - self.hiss) * 0.012;

        if self.until_renewal == 0 {
            self.until_renewal = 16;
            self.wobble = (self.wobble + 0.021) % (TAU * 100.0);
            for ((mouth, aim), turn) in self.mouth.iter_mut().zip(sound.formants).zip(&mut self.turns) {
                let aim = if sound.manner == Manner::Pause {
                    *mouth
                } else {
                    aim * self.size
                };
                *mouth += (aim - *mouth) * 0.045;
                *turn = (TAU * mouth.min(10_500.0) / 24_000.0).cos();
            }
        }
        self.until_renewal -= 1;

        let rise = if sound.rises {
            (sound.fall - 0.7) * 1.3
        } else {
            0.0
        };
        let contour =
            1.12 - 0.24 * sound.fall + rise + 0.05 * self.wobble.sin() + 0.035 * (self.wobble * 0.37).sin();
        self.phase += self.pitch * contour / 24_000.0;
        if self.phase >= 1.0 {
            self.phase -= 1.0;
        }
        // The vocal folds open, close and rest; the offset makes the mean of a period zero.
        let open = 0.62;
        let pulse = if self.phase < open {
            (PI * self.phase / open).sin().powi(2) - 0.31
        } else {
            -0.31
        };
        let source = pulse * self.loud + self.random() * self.hiss;

        let mut out = 0.0;
        let settings = [(0.985, 0.055), (0.979, 0.038), (0.968, 0.026)];
        for ((cavity, turn), (decay, gain)) in self.cavities.iter_mut().zip(self.turns).zip(settings) {
            out += cavity.pass(source, decay, turn) * gain;
        }
        quantise((out * 0.15).tanh() * 0.8)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "between -1 and 1 before scaling, and float casts saturate"
)]
fn quantise(value: f32) -> i16 {
    (value * 32_767.0) as i16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(wav: &[u8], at: usize) -> u32 {
        u32::from_le_bytes(wav[at..at + 4].try_into().unwrap())
    }

    fn pcm(wav: &[u8]) -> Vec<i16> {
        hound::WavReader::new(Cursor::new(wav))
            .unwrap()
            .into_samples()
            .map(Result::unwrap)
            .collect()
    }

    #[test]
    fn header_says_mono_16_bit_24_khz() {
        let wav = speak("hello", "alloy", 1.0).unwrap();
        assert_eq!(&wav[..4], b"RIFF");
        assert_eq!(&wav[8..12], b"WAVE");
        assert_eq!(usize::try_from(number(&wav, 4)).unwrap() + 8, wav.len());
        let spec = hound::WavReader::new(Cursor::new(&wav)).unwrap().spec();
        assert_eq!(
            (spec.channels, spec.sample_rate, spec.bits_per_sample),
            (1, SAMPLE_RATE, 16)
        );
    }

    #[test]
    fn same_input_same_bytes_other_voice_other_sound() {
        let once = speak("Good morning, moor.", "alloy", 1.0).unwrap();
        assert_eq!(once, speak("Good morning, moor.", "alloy", 1.0).unwrap());
        let other = speak("Good morning, moor.", "nova", 1.0).unwrap();
        assert_eq!(once.len(), other.len());
        assert_ne!(once, other);
    }

    #[test]
    fn length_is_what_duration_says_and_follows_speed() {
        for (text, speed) in [
            ("a", 1.0),
            ("Twelve lights at sea, 12!", 1.0),
            ("slow and long words", 0.5),
        ] {
            let seconds = duration_seconds(text, speed);
            let made = pcm(&speak(text, "x", speed).unwrap()).len();
            assert!(
                (f64::from(u32::try_from(made).unwrap()) / 24_000.0 - seconds).abs() < 0.001,
                "{text}"
            );
        }
        assert!(duration_seconds("one two three", 2.0) < duration_seconds("one two three", 1.0));
        assert!(duration_seconds("one two three four", 1.0) > duration_seconds("one two three", 1.0));
        assert_eq!(duration_seconds("one", f32::NAN), duration_seconds("one", 1.0));
    }

    #[test]
    fn long_text_is_cut_at_the_bound() {
        let text = "All work and no play. ".repeat(400);
        assert!((duration_seconds(&text, 1.0) - MAX_SECONDS).abs() < 1e-9);
        let wav = speak(&text, "x", 1.0).unwrap();
        assert_eq!(wav.len(), 44 + 2 * 24_000 * 120);
    }

    #[test]
    fn speech_is_audible_and_pauses_are_quiet() {
        let loudness = |samples: &[i16]| {
            let sum: f64 = samples.iter().map(|s| f64::from(*s).powi(2)).sum();
            (sum / f64::from(u32::try_from(samples.len()).unwrap())).sqrt()
        };
        let speech = pcm(&speak("aeiou lala mama susi tata", "alloy", 1.0).unwrap());
        assert!(loudness(&speech) > 1500.0, "{}", loudness(&speech));
        let silence = pcm(&speak("", "alloy", 1.0).unwrap());
        assert!(!silence.is_empty() && loudness(&silence) < 50.0);
        for voice in ["alloy", "echo", "nova", "onyx"] {
            let clipped = pcm(&speak("The quick brown fox", voice, 1.0).unwrap())
                .iter()
                .filter(|s| s.abs() > 26_000)
                .count();
            assert!(clipped < 2_000, "{voice} {clipped}");
        }
    }
}

//! Known samples in, known samples out.

use atelier_proto::value::{BytesForm, Value, to_json};
use rstest::rstest;
use serde_json::{Value as Json, json};

use super::{Sound, codec, count};
use crate::nodes::{media_io::Stop, media_testing::node};

pub(super) fn sound(rate: u32, channels: &[&[f32]]) -> Value {
    let channels = channels.iter().map(|channel| channel.to_vec()).collect();
    codec::encode(&Sound { rate, channels }).expect("WAV")
}
fn heard(value: &Value) -> Sound {
    let media = value.as_media().expect("media");
    assert_eq!(
        (media.kind.as_str(), media.mime_type.as_deref()),
        ("audio", Some("audio/wav"))
    );
    codec::decode("test", media.data.as_ref().expect("bytes"), &Stop::default()).expect("a sound")
}
/// The first channel in hundredths.
pub(super) fn hundredths(value: &Value) -> Vec<i64> {
    #[expect(clippy::cast_possible_truncation, reason = "small")]
    heard(value).channels[0]
        .iter()
        .map(|sample| (sample * 100.0).round() as i64)
        .collect()
}
pub(super) fn tone(rate: u32, frequency: f64, seconds: f64) -> Vec<f32> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small")]
    let length = (f64::from(rate) * seconds) as usize;
    #[expect(clippy::cast_possible_truncation, reason = "samples")]
    (0..length)
        .map(|at| ((count(at) / f64::from(rate) * frequency * std::f64::consts::TAU).sin() * 0.5) as f32)
        .collect()
}
/// Root of the mean square.
fn loudness(samples: &[f32]) -> f64 {
    (samples
        .iter()
        .map(|sample| f64::from(*sample).powi(2))
        .sum::<f64>()
        / count(samples.len()))
    .sqrt()
}
async fn made(node_type: &str, params: Json, media: &[(&str, &Value)]) -> Value {
    let out = node(node_type, params, media)
        .await
        .unwrap_or_else(|error| panic!("{node_type}: {error}"));
    out["output"].clone()
}

#[rstest]
#[case("lib.audio.Gain", json!({"gain_db": -6.0206}), vec![0.5, -0.8], vec![25, -40])]
#[case("lib.audio.Gain", json!({"gain_db": 24}), vec![0.5, -0.5], vec![100, -100])]
#[case("lib.audio.Bitcrush", json!({"bit_depth": 2}), vec![0.3, 0.6], vec![50, 50])]
#[case("lib.audio.Bitcrush", json!({"bit_depth": 16, "sample_rate_reduction": 2}), vec![0.1, 0.2, 0.3], vec![10, 10, 30])]
#[case("lib.audio.Distortion", json!({"drive_db": 0}), vec![0.5, -0.5], vec![46, -46])]
#[case("lib.audio.Delay", json!({"delay_seconds": 0.01, "mix": 1, "feedback": 0.5}),
    vec![0.8, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], vec![0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 80])]
#[case("lib.audio.Limiter", json!({"threshold_db": -6.0206}), vec![0.2, 1.0], vec![20, 50])]
#[case("lib.audio.NoiseGate", json!({"threshold_db": -6, "attack_ms": 0.1}), vec![0.1, 0.9], vec![0, 90])]
#[case("lib.audio.TimeStretch", json!({}), vec![0.1, 0.2], vec![10, 20])]
#[case("lib.audio.PitchShift", json!({}), vec![0.1, 0.2], vec![10, 20])]
#[case("lib.audio.Phaser", json!({"mix": 0}), vec![0.1, 0.2], vec![10, 20])]
#[case("lib.audio.PeakFilter", json!({}), vec![0.1, 0.2], vec![10, 20])]
#[case("lib.audio.Reverb", json!({"wet_level": 0, "dry_level": 1}), vec![0.1, 0.2], vec![10, 20])]
#[case("nodetool.audio.FadeIn", json!({"duration": 0.004}), vec![0.8, 0.8, 0.8, 0.8, 0.8], vec![0, 20, 40, 60, 80])]
#[case("nodetool.audio.FadeOut", json!({"duration": 99}), vec![0.8, 0.8, 0.8, 0.8], vec![60, 40, 20, 0])]
#[case("nodetool.audio.FadeOut", json!({"duration": 0}), vec![0.8], vec![80])]
#[case("nodetool.audio.Normalize", json!({}), vec![0.1, -0.2], vec![49, -99])]
#[case("nodetool.audio.Normalize", json!({}), vec![0.0, 0.0], vec![0, 0])]
#[case("nodetool.audio.Repeat", json!({"loops": 3}), vec![0.1, 0.2], vec![10, 20, 10, 20, 10, 20])]
#[case("nodetool.audio.Reverse", json!({}), vec![0.1, 0.2], vec![20, 10])]
#[case("nodetool.audio.SliceAudio", json!({"start": 0.001, "end": 0.003}), vec![0.1, 0.2, 0.3, 0.4], vec![20, 30])]
#[case("nodetool.audio.SliceAudio", json!({"start": 0.001, "end": 50}), vec![0.1, 0.2], vec![20])]
#[case("nodetool.audio.Trim", json!({"start": 0.001, "end": 0.001}), vec![0.1, 0.2, 0.3], vec![20])]
#[case("nodetool.audio.StereoToMono", json!({}), vec![0.1, 0.2], vec![10, 20])]
#[tokio::test]
async fn samples(
    #[case] name: &str,
    #[case] params: Json,
    #[case] before: Vec<f32>,
    #[case] after: Vec<i64>,
) {
    let out = made(name, params, &[("audio", &sound(1_000, &[&before]))]).await;
    assert_eq!(hundredths(&out), after, "{name}");
}

#[tokio::test]
async fn sounds_are_joined_mixed_and_spread() {
    let (a, b) = (
        sound(1_000, &[&[0.1, 0.2]]),
        sound(1_000, &[&[0.3, 0.4, 0.5], &[0.5, 0.5, 0.5]]),
    );
    let out = made("nodetool.audio.Concat", json!({}), &[("a", &a), ("b", &b)]).await;
    assert_eq!(hundredths(&out), [10, 20, 30, 40, 50]);
    assert_eq!(heard(&out).channels.len(), 2);
    let list = Value::list(vec![b.clone(), a.clone()]);
    let out = made("nodetool.audio.ConcatList", json!({}), &[("audio_files", &list)]).await;
    assert_eq!(hundredths(&out), [30, 40, 50, 10, 20]);
    let out = made("nodetool.audio.OverlayAudio", json!({}), &[("a", &a), ("b", &b)]).await;
    assert_eq!(hundredths(&out), [40, 60, 50]);
    let loud = sound(1_000, &[&[0.9, 0.0]]);
    let out = made(
        "nodetool.audio.AudioMixer",
        json!({}),
        &[("x", &loud), ("y", &loud)],
    )
    .await;
    assert_eq!(hundredths(&out), [100, 0], "as a whole quieter, not clipped");
    let out = made("nodetool.audio.MonoToStereo", json!({}), &[("audio", &a)]).await;
    assert_eq!(heard(&out).channels.len(), 2);
    let out = made(
        "nodetool.audio.StereoToMono",
        json!({"method": "right"}),
        &[("audio", &b)],
    )
    .await;
    assert_eq!(hundredths(&out), [50, 50, 50]);
    let other = sound(2_000, &[&[0.2, 0.2, 0.2, 0.2]]);
    let out = made("nodetool.audio.Concat", json!({}), &[("a", &a), ("b", &other)]).await;
    assert_eq!(hundredths(&out), [10, 20, 20, 20], "in the rate of the first one");
    let out = made(
        "nodetool.audio.CreateSilence",
        json!({"duration": 0.5, "sample_rate": 8_000}),
        &[],
    )
    .await;
    assert_eq!((heard(&out).len(), heard(&out).peak()), (4_000, 0.0));
}

#[tokio::test]
async fn filters_let_through_what_they_should() {
    let (low, high) = (tone(44_100, 100.0, 0.2), tone(44_100, 10_000.0, 0.2));
    for (name, params, kept_low, kept_high) in [
        (
            "LowPassFilter",
            json!({"cutoff_frequency_hz": 1_000}),
            true,
            false,
        ),
        (
            "HighPassFilter",
            json!({"cutoff_frequency_hz": 3_000}),
            false,
            true,
        ),
    ] {
        for (samples, kept) in [(&low, kept_low), (&high, kept_high)] {
            let out = made(
                &format!("lib.audio.{name}"),
                params.clone(),
                &[("audio", &sound(44_100, &[samples]))],
            )
            .await;
            let part = loudness(&heard(&out).channels[0]) / loudness(samples);
            assert_eq!(part > 0.9, kept, "{name} {part}");
            assert_eq!(part < 0.1, !kept, "{name} {part}");
        }
    }
    for (name, samples) in [("LowShelfFilter", &low), ("HighShelfFilter", &high)] {
        let params = json!({"gain_db": -12, "cutoff_frequency_hz": 1_000});
        let out = made(
            &format!("lib.audio.{name}"),
            params,
            &[("audio", &sound(44_100, &[samples]))],
        )
        .await;
        let part = loudness(&heard(&out).channels[0]) / loudness(samples);
        assert!((0.2..0.3).contains(&part), "{name} {part}");
    }
}

#[tokio::test]
async fn loud_parts_are_compressed() {
    let samples = tone(44_100, 1_000.0, 0.3);
    let params = json!({"threshold": -20, "ratio": 4});
    let out = made(
        "lib.audio.Compress",
        params,
        &[("audio", &sound(44_100, &[&samples]))],
    )
    .await;
    let end = heard(&out).channels[0].split_off(10_000);
    let decibels = 20.0 * (loudness(&end) / loudness(&samples)).log10();
    assert!((-12.0..-7.0).contains(&decibels), "{decibels}");
}

/// Crossings of zero per second: twice the frequency of a tone.
fn crossings(sound: &Sound) -> f64 {
    let samples = &sound.channels[0];
    let found = samples
        .windows(2)
        .filter(|pair| (pair[0] < 0.0) != (pair[1] < 0.0))
        .count();
    count(found) / sound.seconds()
}
#[tokio::test]
async fn speed_and_pitch_are_independent() {
    let audio = sound(22_050, &[&tone(22_050, 440.0, 1.0)]);
    let out = heard(&made("lib.audio.TimeStretch", json!({"rate": 2}), &[("audio", &audio)]).await);
    assert_eq!(out.len(), 11_025);
    assert!((crossings(&out) - 880.0).abs() < 30.0, "{}", crossings(&out));
    let out = heard(
        &made(
            "lib.audio.PitchShift",
            json!({"semitones": 12}),
            &[("audio", &audio)],
        )
        .await,
    );
    assert_eq!(out.len(), 22_050);
    assert!((crossings(&out) - 1_760.0).abs() < 60.0, "{}", crossings(&out));
}

#[tokio::test]
async fn a_room_answers() {
    let mut click = vec![0.0_f32; 44_100];
    click[0] = 1.0;
    let params = json!({"room_scale": 0.9, "wet_level": 1, "dry_level": 0});
    let out = heard(
        &made(
            "lib.audio.Reverb",
            params,
            &[("audio", &sound(44_100, &[&click]))],
        )
        .await,
    );
    assert_eq!(out.len(), 44_100);
    assert!(
        loudness(&out.channels[0][..1_000]) < 1.0e-4,
        "nothing before the first wall"
    );
    assert!(loudness(&out.channels[0][4_000..8_000]) > 1.0e-4, "then echoes");
    let (early, late) = (
        loudness(&out.channels[0][2_000..12_000]),
        loudness(&out.channels[0][34_000..44_000]),
    );
    assert!(late < early, "that fade: {early} {late}");
}

#[tokio::test]
async fn silence_is_taken_out() {
    let mut samples = tone(8_000, 440.0, 0.5);
    samples.extend(vec![0.0; 8_000]);
    samples.extend(tone(8_000, 440.0, 0.5));
    let out = made(
        "nodetool.audio.RemoveSilence",
        json!({"crossfade": 0}),
        &[("audio", &sound(8_000, &[&samples]))],
    )
    .await;
    let seconds = heard(&out).seconds();
    assert!((1.08..1.13).contains(&seconds), "{seconds}");
    let out = made(
        "nodetool.audio.RemoveSilence",
        json!({"reduction_factor": 0}),
        &[("audio", &sound(8_000, &[&samples]))],
    )
    .await;
    assert_eq!(heard(&out).len(), samples.len());
}

#[tokio::test]
async fn a_sound_tells_of_itself() {
    let out = node(
        "nodetool.audio.GetAudioInfo",
        json!({}),
        &[("audio", &sound(8_000, &[&[0.0; 4_000]]))],
    )
    .await;
    let facts = to_json(&out.expect("facts").into(), BytesForm::Tagged);
    assert_eq!(
        facts,
        json!({"duration": 0.5, "sample_rate": 8000, "channels": 1, "format": "wav", "size_bytes": 8044})
    );
}

/// Values of the usual library for a tone of 440 Hz: the first coefficient is the loudness of all bands, and equal frames
/// give equal columns.
#[tokio::test]
async fn coefficients_of_a_tone_and_of_silence() {
    let audio = sound(22_050, &[&tone(22_050, 440.0, 0.5)]);
    let out = made(
        "lib.librosa.analysis.MFCC",
        json!({"n_mfcc": 13}),
        &[("audio", &audio)],
    )
    .await;
    let array = to_json(&out, BytesForm::Tagged);
    assert_eq!(array["shape"], json!([13, 22]));
    let at = |row: usize, column: usize| array["value"][row][column].as_f64().expect("a number");
    for row in 0..13 {
        assert!(
            (at(row, 8) - at(row, 12)).abs() < 3.0,
            "row {row}: {} {}",
            at(row, 8),
            at(row, 12)
        );
    }
    let silent = sound(22_050, &[&vec![0.0; 2_048]]);
    let out = made("lib.librosa.analysis.MFCC", json!({}), &[("audio", &silent)]).await;
    let array = to_json(&out, BytesForm::Tagged);
    // All bands at -100 dB: -100 * sqrt(128).
    assert!((array["value"][0][0].as_f64().expect("a number") + 1_131.370_85).abs() < 0.001);
    assert!(array["value"][1][0].as_f64().expect("a number").abs() < 0.001);
}

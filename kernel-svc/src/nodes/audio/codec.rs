//! Sounds as bytes and back.

use std::io::Cursor;

use atelier_proto::value::Value;
use bytes::Bytes;
use symphonia::core::{
    audio::SampleBuffer,
    codecs::DecoderOptions,
    errors::Error as Unread,
    formats::FormatOptions,
    io::{MediaSourceStream, MediaSourceStreamOptions},
    meta::MetadataOptions,
    probe::Hint,
};

use super::{MAX_CHANNELS, MAX_SAMPLES, RATES, Sound, bounded};
use crate::{
    node::NodeError,
    nodes::media_io::{MAX_RESULT, Stop, made, value_fault},
};

/// The name of a format, by its first bytes.
pub(super) fn format(bytes: &[u8]) -> &'static str {
    match bytes {
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E', ..] => "wav",
        [b'f', b'L', b'a', b'C', ..] => "flac",
        [b'O', b'g', b'g', b'S', ..] => "ogg",
        [b'I', b'D', b'3', ..] => "mp3",
        [_, _, _, _, b'f', b't', b'y', b'p', ..] => "m4a",
        [0xff, 0xf1 | 0xf9, ..] => "aac",
        [0xff, second, ..] if second & 0xe0 == 0xe0 => "mp3",
        _ => "",
    }
}
fn unreadable(name: &str) -> NodeError {
    value_fault(
        name,
        "is no sound that can be read: wav, mp3, flac, ogg and aac can",
    )
}
fn too_long(name: &str) -> NodeError {
    value_fault(name, &format!("is a sound of more than {MAX_SAMPLES} samples"))
}
/// The samples of a sound.
///
/// # Errors
/// The bytes are no sound, or it is too long. The error names the input.
pub(super) fn decode(name: &str, bytes: &Bytes, stop: &Stop) -> Result<Sound, NodeError> {
    let sound = match format(bytes) {
        "" => return Err(unreadable(name)),
        "wav" => wav(name, bytes)?,
        _ => packed(name, bytes.clone(), stop)?,
    };
    if sound.channels.is_empty() || sound.channels.len() > MAX_CHANNELS || !RATES.contains(&sound.rate) {
        return Err(value_fault(
            name,
            &format!(
                "is a sound of {} channels at {} Hz, which cannot be worked with",
                sound.channels.len(),
                sound.rate
            ),
        ));
    }
    Ok(sound)
}
fn wav(name: &str, bytes: &[u8]) -> Result<Sound, NodeError> {
    let mut reader = hound::WavReader::new(Cursor::new(bytes)).map_err(|_| unreadable(name))?;
    let spec = reader.spec();
    if reader.len() as usize > MAX_SAMPLES {
        return Err(too_long(name));
    }
    let width = usize::from(spec.channels);
    let mut channels = vec![Vec::new(); width.min(MAX_CHANNELS)];
    let mut at = 0;
    let mut take = |sample: f32| {
        if let Some(channel) = channels.get_mut(at) {
            channel.push(if sample.is_finite() { sample } else { 0.0 });
        }
        at = (at + 1) % width.max(1);
    };
    // A file that breaks off is played as far as it goes.
    match spec.sample_format {
        hound::SampleFormat::Float => reader.samples::<f32>().map_while(Result::ok).for_each(&mut take),
        hound::SampleFormat::Int => {
            #[expect(clippy::cast_precision_loss, reason = "samples in single precision")]
            let scale = 1.0 / (1_i64 << (spec.bits_per_sample.clamp(1, 32) - 1)) as f32;
            #[expect(clippy::cast_precision_loss, reason = "samples in single precision")]
            reader
                .samples::<i32>()
                .map_while(Result::ok)
                .for_each(|sample| take(sample as f32 * scale));
        }
    }
    Ok(even(Sound {
        rate: spec.sample_rate,
        channels,
    }))
}
/// Channels of one length.
fn even(mut sound: Sound) -> Sound {
    let length = sound.channels.iter().map(Vec::len).min().unwrap_or_default();
    sound
        .channels
        .iter_mut()
        .for_each(|channel| channel.truncate(length));
    sound
}
/// A compressed sound. Packets that are broken are left out.
fn packed(name: &str, bytes: Bytes, stop: &Stop) -> Result<Sound, NodeError> {
    let source = MediaSourceStream::new(Box::new(Cursor::new(bytes)), MediaSourceStreamOptions::default());
    let probed = symphonia::default::get_probe()
        .format(
            &Hint::new(),
            source,
            &FormatOptions::default(),
            &MetadataOptions::default(),
        )
        .map_err(|_| unreadable(name))?;
    let mut reader = probed.format;
    let track = reader.default_track().ok_or_else(|| unreadable(name))?;
    let (id, params) = (track.id, track.codec_params.clone());
    let mut decoder = symphonia::default::get_codecs()
        .make(&params, &DecoderOptions::default())
        .map_err(|_| unreadable(name))?;
    let mut sound = Sound {
        rate: 0,
        channels: Vec::new(),
    };
    let mut broken = 0;
    loop {
        stop.check()?;
        let packet = match reader.next_packet() {
            Ok(packet) => packet,
            Err(Unread::IoError(_) | Unread::ResetRequired) => break,
            Err(_) => break,
        };
        if packet.track_id() != id {
            continue;
        }
        let decoded = match decoder.decode(&packet) {
            Ok(decoded) => decoded,
            // Bounded: a file of nothing but broken packets is none.
            Err(Unread::DecodeError(_)) if broken < 1_000 => {
                broken += 1;
                continue;
            }
            Err(_) => break,
        };
        let spec = *decoded.spec();
        let width = spec.channels.count();
        if sound.rate == 0 {
            sound.rate = spec.rate;
            sound.channels = vec![Vec::new(); width.min(MAX_CHANNELS)];
        }
        let mut samples = SampleBuffer::<f32>::new(decoded.capacity() as u64, spec);
        samples.copy_interleaved_ref(decoded);
        for frame in samples.samples().chunks_exact(width.max(1)) {
            for (channel, sample) in sound.channels.iter_mut().zip(frame) {
                channel.push(*sample);
            }
        }
        bounded(sound.len(), sound.channels.len()).map_err(|_| too_long(name))?;
    }
    if sound.rate == 0 {
        return Err(unreadable(name));
    }
    Ok(even(sound))
}
/// A sound as WAV of 16 bits.
///
/// # Errors
/// It is too long to be handed on.
pub(super) fn encode(sound: &Sound) -> Result<Value, NodeError> {
    let width = sound.channels.len();
    let size = sound
        .len()
        .saturating_mul(width)
        .saturating_mul(2)
        .saturating_add(44);
    if size > MAX_RESULT {
        let message =
            format!("the sound would have {size} bytes, more than {MAX_RESULT} that can be handed on");
        return Err(NodeError::new(message).code("output.size"));
    }
    let spec = hound::WavSpec {
        channels: u16::try_from(width).unwrap_or(1),
        sample_rate: sound.rate,
        bits_per_sample: 16,
        sample_format: hound::SampleFormat::Int,
    };
    let failed = |error: hound::Error| NodeError::new(format!("the sound cannot be written: {error}"));
    let mut bytes = Cursor::new(Vec::with_capacity(size));
    let mut writer = hound::WavWriter::new(&mut bytes, spec).map_err(failed)?;
    for at in 0..sound.len() {
        for channel in &sound.channels {
            writer
                .write_sample(pcm(channel.get(at).copied().unwrap_or_default()))
                .map_err(failed)?;
        }
    }
    writer.finalize().map_err(failed)?;
    made("audio", "audio/wav", bytes.into_inner())
}
/// A sample in 16 bits; what is too loud is clipped.
#[expect(clippy::cast_possible_truncation, reason = "clamped")]
pub(super) fn pcm(sample: f32) -> i16 {
    (sample * 32_768.0).round().clamp(-32_768.0, 32_767.0) as i16
}

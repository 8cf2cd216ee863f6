//! Sound in pieces, as it comes: from a sound and back, louder, and filtered on the way.
//!
//! A piece is `{type: "chunk", content_type: "audio", content, content_metadata: {sample_rate, channels, encoding}, done}`.
//! Its content is base64: samples of 16 bits, or of 32 bits floating point when the encoding is `f32le`. Pieces that are
//! made here have the latter.

use async_trait::async_trait;
use atelier_proto::value::{Map, Value};
use base64::{Engine, engine::general_purpose::STANDARD};

use super::{
    MAX_CHANNELS, RATES, Sound, bounded, codec,
    filters::{Filter, Shape},
    gain,
};
use crate::{
    node::{Context, Executor, NodeError, Offers},
    nodes::{
        args::{Args, map, missing, one, text_of},
        code::{Generator, Sink, Streamed, Types, factory},
        media_io::{Params, need, value_fault, work},
    },
    run::{Inputs, Outputs},
};

/// Largest piece, in bytes of its text.
const MAX_CHUNK: usize = 16 * 1024 * 1024;
/// Rate of a piece that does not say.
const RATE: u32 = 24_000;

/// All types of this part.
pub(super) fn types() -> Types {
    vec![
        ("nodetool.audio.ChunkToAudio", factory(ChunkToAudio)),
        ("nodetool.audio.realtime.AudioOutput", factory(Pass(Rule::Same))),
        (
            "nodetool.audio.realtime.AudioToChunks",
            factory(Streamed(AudioToChunks)),
        ),
        ("nodetool.audio.realtime.ChunksToAudio", factory(ChunksToAudio)),
        ("nodetool.audio.realtime.StreamingGain", factory(Pass(Rule::Gain))),
        (
            "nodetool.audio.realtime.StreamingHighPass",
            factory(Pass(Rule::HighPass)),
        ),
        (
            "nodetool.audio.realtime.StreamingLowPass",
            factory(Pass(Rule::LowPass)),
        ),
    ]
}

/// The samples of a piece; `None` when it has none.
fn samples(chunk: &Value) -> Result<Option<Sound>, NodeError> {
    let Some(map) = chunk.as_map() else {
        return if chunk.is_null() {
            Ok(None)
        } else {
            Err(crate::nodes::args::wrong("chunk", "chunk", chunk))
        };
    };
    let wrong = |must: &str| value_fault("chunk", must);
    let bytes = match Args(map).value("content") {
        Value::Bytes(bytes) => bytes.to_vec(),
        Value::Null => return Ok(None),
        content => {
            let text = text_of(&content);
            if text.len() > MAX_CHUNK {
                return Err(wrong(&format!("must have at most {MAX_CHUNK} bytes")));
            }
            STANDARD
                .decode(text.trim())
                .map_err(|_| wrong("is no sound: its content is not base64"))?
        }
    };
    if bytes.is_empty() {
        return Ok(None);
    }
    let facts = Args(map).value("content_metadata");
    let plain = Map::new();
    let facts = Args(facts.as_map().unwrap_or(&plain));
    let rate = u32::try_from(facts.int("sample_rate", i64::from(RATE))?).unwrap_or_default();
    let width = usize::try_from(facts.int("channels", 1)?).unwrap_or_default();
    if !RATES.contains(&rate) || width == 0 || width > MAX_CHANNELS {
        return Err(wrong(&format!(
            "is a sound of {width} channels at {rate} Hz, which cannot be worked with"
        )));
    }
    let all: Vec<f32> = if matches!(facts.text("encoding").as_str(), "f32le" | "float32") {
        bytes
            .as_chunks::<4>()
            .0
            .iter()
            .map(|four| f32::from_le_bytes(*four))
            .map(|sample| if sample.is_finite() { sample } else { 0.0 })
            .collect()
    } else {
        bytes
            .as_chunks::<2>()
            .0
            .iter()
            .map(|two| f32::from(i16::from_le_bytes(*two)) / 32_768.0)
            .collect()
    };
    let channel = |at: usize| {
        all.iter()
            .skip(at)
            .step_by(width)
            .take(all.len() / width)
            .copied()
            .collect()
    };
    Ok(Some(Sound {
        rate,
        channels: (0..width).map(channel).collect(),
    }))
}
/// A piece of samples.
fn chunk(sound: &Sound, done: bool) -> Value {
    let mut bytes = Vec::with_capacity(sound.len() * sound.channels.len() * 4);
    for at in 0..sound.len() {
        for channel in &sound.channels {
            bytes.extend(channel.get(at).copied().unwrap_or_default().to_le_bytes());
        }
    }
    let facts = map([
        ("sample_rate", i64::from(sound.rate).into()),
        ("channels", crate::nodes::args::count(sound.channels.len())),
        ("encoding", "f32le".into()),
    ]);
    map([
        ("type", "chunk".into()),
        ("content_type", "audio".into()),
        ("content", STANDARD.encode(bytes).into()),
        ("content_metadata", facts.into()),
        ("done", done.into()),
    ])
    .into()
}

#[derive(Clone, Copy)]
struct ChunkToAudio;
#[async_trait]
impl Executor for ChunkToAudio {
    async fn process(&mut self, inputs: Map, _ctx: &Context) -> Result<Map, NodeError> {
        let sound = samples(&Args(&inputs).value("chunk"))?
            .ok_or_else(|| missing("chunk", "there is no sound in it"))?;
        Ok(one("audio", codec::encode(&sound)?))
    }
}
/// Pieces of a length, one after the other; the last one says so.
#[derive(Clone, Copy)]
struct AudioToChunks;
#[async_trait]
impl Generator for AudioToChunks {
    async fn generate(&self, inputs: Map, frames: &mut dyn Sink, ctx: &Context) -> Result<(), NodeError> {
        let bytes = need(ctx, &inputs, "audio").await?;
        let seconds = Params::new(ctx, inputs).f64("chunk_duration")?;
        let sound = work(ctx, move |stop| codec::decode("audio", &bytes, stop)).await?;
        let step = sound.samples(seconds).max(1);
        for from in (0..sound.len().max(1)).step_by(step) {
            let to = (from + step).min(sound.len());
            frames
                .frame(one("chunk", chunk(&sound.part(from, to), to >= sound.len())))
                .await?;
        }
        Ok(())
    }
}
/// All pieces in one sound; those of another form take that of the first one.
#[derive(Default)]
struct Tape(Option<Sound>);
impl Tape {
    fn add(&mut self, piece: &Value) -> Result<(), NodeError> {
        let Some(new) = samples(piece)? else { return Ok(()) };
        let Some(tape) = &mut self.0 else {
            self.0 = Some(new);
            return Ok(());
        };
        let new = new.like(tape.rate, tape.channels.len());
        bounded(tape.len().saturating_add(new.len()), tape.channels.len())?;
        for (channel, more) in tape.channels.iter_mut().zip(new.channels) {
            channel.extend(more);
        }
        Ok(())
    }
    fn sound(self) -> Result<Value, NodeError> {
        codec::encode(
            &self
                .0
                .ok_or_else(|| missing("chunk", "there is no sound in it"))?,
        )
    }
}
#[derive(Clone, Copy)]
struct ChunksToAudio;
#[async_trait]
impl Executor for ChunksToAudio {
    fn offers(&self) -> Offers {
        Offers {
            stream: false,
            run: true,
        }
    }
    async fn process(&mut self, inputs: Map, _ctx: &Context) -> Result<Map, NodeError> {
        let mut tape = Tape::default();
        for piece in Args(&inputs).list("chunk") {
            tape.add(&piece)?;
        }
        Ok(one("audio", tape.sound()?))
    }
    async fn run(
        &mut self,
        inputs: &mut Inputs<'_>,
        outputs: &mut Outputs<'_>,
        _ctx: &Context,
    ) -> Result<(), NodeError> {
        let mut tape = Tape::default();
        while let Some(piece) = inputs.next_value("chunk").await {
            tape.add(&piece)?;
        }
        outputs
            .emit_with("audio", tape.sound()?, &crate::run::Lineage::default())
            .await
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    Same,
    Gain,
    HighPass,
    LowPass,
}
/// Hands each piece on, changed.
#[derive(Clone, Copy)]
struct Pass(Rule);
/// What is remembered between pieces.
struct Running {
    rule: Rule,
    gain: f32,
    cutoff: f32,
    quality: f32,
    filters: Vec<Filter>,
    rate: u32,
}
impl Running {
    fn new(rule: Rule, params: &Params) -> Result<Self, NodeError> {
        let filters = matches!(rule, Rule::HighPass | Rule::LowPass);
        Ok(Self {
            rule,
            gain: if rule == Rule::Gain {
                gain(params.f("gain_db")?)
            } else {
                1.0
            },
            cutoff: if filters {
                params.f("cutoff_frequency_hz")?
            } else {
                0.0
            },
            quality: if filters { params.f("q")? } else { 0.0 },
            filters: Vec::new(),
            rate: 0,
        })
    }
    fn next(&mut self, piece: Value) -> Result<Value, NodeError> {
        if self.rule == Rule::Same {
            return Ok(piece);
        }
        let Some(mut sound) = samples(&piece)? else {
            return Ok(piece);
        };
        let shape = if self.rule == Rule::HighPass {
            Shape::HighPass
        } else {
            Shape::LowPass
        };
        if self.rule != Rule::Gain && (self.filters.len() != sound.channels.len() || self.rate != sound.rate)
        {
            self.rate = sound.rate;
            self.filters =
                vec![Filter::new(shape, sound.rate, self.cutoff, self.quality, 0.0); sound.channels.len()];
        }
        for (at, channel) in sound.channels.iter_mut().enumerate() {
            match self.filters.get_mut(at) {
                Some(filter) => channel
                    .iter_mut()
                    .for_each(|sample| *sample = filter.next(*sample)),
                None => channel.iter_mut().for_each(|sample| *sample *= self.gain),
            }
        }
        let done = piece.get("done").is_some_and(|done| done.truthy());
        Ok(chunk(&sound, done))
    }
}
#[async_trait]
impl Executor for Pass {
    fn offers(&self) -> Offers {
        Offers {
            stream: false,
            run: true,
        }
    }
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let piece = Args(&inputs).value("chunk");
        let mut running = Running::new(self.0, &Params::new(ctx, inputs))?;
        Ok(one("chunk", running.next(piece)?))
    }
    async fn run(
        &mut self,
        inputs: &mut Inputs<'_>,
        outputs: &mut Outputs<'_>,
        ctx: &Context,
    ) -> Result<(), NodeError> {
        let mut settings = inputs.properties().clone();
        let connected: Vec<_> = inputs
            .handles()
            .filter(|name| ***name != *"chunk")
            .cloned()
            .collect();
        for name in connected {
            if let Some(value) = inputs.first(&name).await {
                settings.insert(name.to_string(), value);
            }
        }
        let mut running = Running::new(self.0, &Params::new(ctx, settings))?;
        while let Some(mut envelope) = inputs.next("chunk").await {
            let piece = std::mem::take(&mut envelope.value);
            outputs
                .forward_value("chunk", &envelope, running.next(piece)?)
                .await?;
        }
        Ok(())
    }
}

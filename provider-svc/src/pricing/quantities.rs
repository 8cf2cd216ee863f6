//! What of a request or a result is counted (generations specification 5.4).

use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use crate::provider::{Capability, Finished, Output, Params};

/// What is counted, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Quantities {
    /// Outputs; 0 counts as 1.
    pub outputs: u32,
    /// Pixels of one output.
    pub pixels: Option<(u32, u32)>,
    /// Seconds of the output.
    pub seconds: Option<Decimal>,
    /// Seconds of the input.
    pub input_seconds: Option<Decimal>,
    /// Characters that are spoken.
    pub characters: Option<u64>,
    /// Input tokens, cached ones included.
    pub input_tokens: Option<i64>,
    /// Cached input tokens.
    pub cached_tokens: Option<i64>,
    /// Output tokens.
    pub output_tokens: Option<i64>,
    /// Credits of the provider.
    pub credits: Option<Decimal>,
    /// Reference pictures.
    pub input_images: u32,
    /// The stated resolution: a tier or a pair of pixels.
    pub resolution: Option<String>,
    /// The stated quality.
    pub quality: Option<String>,
    /// Whether audio is asked for.
    pub audio: Option<bool>,
}

impl Quantities {
    /// Reads them from the unredacted parameters of a request.
    #[must_use]
    pub fn of_request(capability: Capability, params: Params<'_>) -> Self {
        let mut quantities = Self {
            outputs: u32::try_from(params.outputs()).unwrap_or(u32::MAX),
            ..Self::default()
        };
        let named = [
            "duration",
            "duration_seconds",
            "seconds",
            "num_seconds",
            "video_length",
            "video_duration",
        ];
        quantities.seconds = named
            .iter()
            .find_map(|key| params.decimal(key))
            .or_else(|| frames(params));
        let sizes = ["resolution", "image_size", "size"]
            .iter()
            .filter_map(|key| params.text(key));
        quantities.resolution = sizes
            .chain(params.text("quality").filter(|text| is_size(text)))
            .find_map(stated);
        quantities.quality = params
            .text("quality")
            .filter(|text| !is_size(text))
            .and_then(stated);
        let axis = [
            "generate_audio",
            "generate_audio_switch",
            "audio_enabled",
            "with_audio",
        ];
        quantities.audio = axis.iter().find_map(|key| params.flag(key));
        let sides = (params.int("width"), params.int("height"));
        quantities.pixels = match sides {
            (Some(width), Some(height)) => u32::try_from(width).ok().zip(u32::try_from(height).ok()),
            _ => quantities.resolution.as_deref().and_then(Params::pixels),
        };
        if capability == Capability::TextToSpeech {
            let text = params
                .first_text(&["text", "input", "prompt"])
                .unwrap_or_default();
            quantities.characters = Some(text.chars().count().try_into().unwrap_or(u64::MAX));
        }
        quantities
    }

    /// Takes from the result what is measured there; what the request states stays.
    #[must_use]
    pub fn with_result(mut self, finished: &Finished) -> Self {
        let media = finished
            .outputs
            .iter()
            .filter(|output| matches!(output, Output::Media(_)))
            .count();
        self.outputs = u32::try_from(media.max(1)).unwrap_or(u32::MAX);
        self.seconds = finished.usage.seconds.or(self.seconds);
        self.input_tokens = finished.usage.input_tokens;
        self.cached_tokens = finished.usage.cached_tokens;
        self.output_tokens = finished.usage.output_tokens;
        self
    }
}

/// Seconds of a number of frames.
fn frames(params: Params<'_>) -> Option<Decimal> {
    let rate = ["fps", "frames_per_second", "frame_rate"]
        .iter()
        .find_map(|key| params.decimal(key))?;
    params.decimal("num_frames")?.checked_div(rate)
}

/// A name that says nothing of a size or quality is as good as none.
fn stated(text: &str) -> Option<String> {
    let text = text.trim().to_ascii_lowercase();
    (!matches!(text.as_str(), "auto" | "default" | "square_hd" | "square")).then_some(text)
}

/// Whether a quality is the name of a tier or a pair of pixels.
fn is_size(text: &str) -> bool {
    let text = text.trim().to_ascii_lowercase();
    let number = text.trim_end_matches(['p', 'k']);
    Params::pixels(&text).is_some() || (number.len() < text.len() && number.parse::<u32>().is_ok())
}

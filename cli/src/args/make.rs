//! `atelier generate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// How it is used.
pub const EXAMPLES: &str = "Examples:
  atelier generate image 'a paper boat on a lake' -o boat.png
  atelier generate image 'make it night' --image boat.png --provider openai -n 2 -o night.png
  atelier generate speech 'Good morning' --voice alloy -o morning.mp3
  atelier generate video 'fog over a harbour' --duration 5 --provider replicate --model google/veo-3 -o fog.mp4
  atelier generate music 'a slow waltz' --duration 20 -o waltz.wav
  atelier generate 3d 'a brass sextant' -o sextant.glb
  atelier generate text 'A haiku on rain' | tee haiku.txt
  atelier generate image --list-models
  atelier generate video 'a heron' --background --server http://127.0.0.1:7777

Each call is a row of the ledger (`atelier generations`), also when it fails, and what it makes is an asset
(`atelier assets`). Text goes to stdout as it comes, unless -o names a file. Ctrl-C cancels the call; it may still be
billed. Exit codes: 0 it was made, 1 it was not, 2 the command line is wrong, 130 interrupted.";

/// What is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// A picture; with --image made from pictures
    Image,
    /// A text, spoken
    Speech,
    /// A film; with --image made from a picture
    Video,
    /// Music
    Music,
    /// A 3D model; with --image made from a picture
    #[value(name = "3d")]
    Model3d,
    /// Text
    Text,
}
impl Kind {
    /// What a provider is asked for.
    #[must_use]
    pub fn capability(self, from_picture: bool) -> &'static str {
        match (self, from_picture) {
            (Self::Image, false) => "text_to_image",
            (Self::Image, true) => "image_to_image",
            (Self::Speech, _) => "text_to_speech",
            (Self::Video, false) => "text_to_video",
            (Self::Video, true) => "image_to_video",
            (Self::Music, _) => "text_to_music",
            (Self::Model3d, false) => "text_to_3d",
            (Self::Model3d, true) => "image_to_3d",
            (Self::Text, _) => "generate_message",
        }
    }
}

/// `atelier generate`.
#[derive(Debug, Args)]
pub struct Generate {
    /// What to make
    #[arg(value_enum)]
    pub kind: Kind,
    /// What it shall be; `-` reads it from stdin
    #[arg(required_unless_present = "list_models")]
    pub prompt: Option<String>,
    /// Write it to this file; `-` is stdout. Of several, `name-1.png`, `name-2.png`, …. Without an ending it gets the
    /// one of its type [default: a name out of the prompt; text goes to stdout]
    #[arg(long, short = 'o', visible_alias = "output", value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// The provider [default: one that is configured and can]
    #[arg(long)]
    pub provider: Option<String>,
    /// The model [default: the provider's first that can]
    #[arg(long)]
    pub model: Option<String>,
    /// Print the id and return; the server that is up goes on
    #[arg(long, conflicts_with = "out")]
    pub background: bool,
    /// How many pictures
    #[arg(long = "num-images", short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16))]
    pub count: Option<u32>,
    /// Picture to start from. May be given several times
    #[arg(long = "image", value_name = "FILE")]
    pub images: Vec<PathBuf>,
    /// Width in pixels
    #[arg(long)]
    pub width: Option<u32>,
    /// Height in pixels
    #[arg(long)]
    pub height: Option<u32>,
    /// Shape, for instance 16:9
    #[arg(long, value_name = "W:H")]
    pub aspect_ratio: Option<String>,
    /// What it shall not be
    #[arg(long, value_name = "TEXT")]
    pub negative_prompt: Option<String>,
    /// Number that chance starts from
    #[arg(long)]
    pub seed: Option<u64>,
    /// Length in seconds
    #[arg(long, value_name = "SECONDS")]
    pub duration: Option<f64>,
    /// Voice that speaks
    #[arg(long)]
    pub voice: Option<String>,
    /// Another parameter of the model; JSON, or else text. May be given several times
    #[arg(long = "param", short = 'p', value_name = "NAME=VALUE")]
    pub params: Vec<String>,
    /// A second call with the same key joins the first one and is not paid for twice
    #[arg(long, value_name = "KEY")]
    pub idempotency_key: Option<String>,
    /// List the models that can do this, and make nothing
    #[arg(long)]
    pub list_models: bool,
    /// Print a summary as JSON
    #[arg(long)]
    pub json: bool,
}

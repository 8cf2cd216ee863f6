//! The `[provider]` section of the settings.

mod remote;

use std::path::PathBuf;
use std::time::Duration;

use atelier_common::settings::{Settings as Section, secret};
use rust_decimal::Decimal;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

pub use remote::Remote;

/// Environment variables beside the regular ones: name and key.
pub const ALIASES: &[(&str, &str)] = &[
    ("ATELIER_SKETCH_DELAY_MS", "sketch.delay_ms"),
    ("ATELIER_SKETCH_FAIL_MATCH", "sketch.fail_match"),
    ("ATELIER_SKETCH_FAIL_NTH", "sketch.fail_nth"),
    ("ATELIER_SKETCH_BILL_ON_FAILURE", "sketch.bill_on_failure"),
    ("ATELIER_SKETCH_STEPS", "sketch.steps"),
    ("OPENAI_API_KEY", "openai.api_key"),
    ("OPENAI_BASE_URL", "openai.base_url"),
    ("COMFYUI_BASE_URL", "comfyui.base_url"),
    ("AUTOMATIC1111_BASE_URL", "automatic1111.base_url"),
    ("GEMINI_API_KEY", "gemini.api_key"),
    ("REPLICATE_API_TOKEN", "replicate.api_key"),
    ("ELEVENLABS_API_KEY", "elevenlabs.api_key"),
    ("XAI_API_KEY", "xai.api_key"),
    ("TOGETHER_API_KEY", "together.api_key"),
    ("MINIMAX_API_KEY", "minimax.api_key"),
    ("MESHY_API_KEY", "meshy.api_key"),
    ("RODIN_API_KEY", "rodin.api_key"),
    ("REVE_API_KEY", "reve.api_key"),
    ("ATLASCLOUD_API_KEY", "atlascloud.api_key"),
    ("EVOLINK_API_KEY", "evolink.api_key"),
    ("TOPAZ_API_KEY", "topaz.api_key"),
    ("HUGGINGFACE_API_KEY", "huggingface.api_key"),
    ("FAL_API_KEY", "fal.api_key"),
    ("KIE_API_KEY", "kie.api_key"),
];

/// Whether a provider may be called when the ledger cannot be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LedgerMode {
    /// No row, no call.
    #[default]
    Required,
    /// Warn once and go on, without a record. For runs that must work alone, such as an evaluation.
    BestEffort,
}

/// Whether the offline provider takes calls for providers that cannot be called here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StandIn {
    /// As long as no other provider is configured, so that workflow files run on a new installation as they are.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never: a provider that is unknown or has no key is an error.
    Never,
}

/// Settings of provider-svc.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// `required` or `best-effort`. Default `required`.
    pub ledger: LedgerMode,
    /// `auto`, `always` or `never`: whether the offline provider takes calls for providers that cannot be called here.
    /// Default `auto`: as long as no other provider is configured.
    pub stand_in: StandIn,
    /// A TOML file with prices that override those that are compiled in, or a folder with such a file per provider. A row
    /// keeps what it was priced with. Default none.
    pub catalog: Option<PathBuf>,
    /// How long calls in flight may go on when the service is told to stop. Default 15 s.
    #[serde(with = "humantime_serde")]
    pub stop_grace: Duration,
    /// Pauses between tries to store an output, in milliseconds; the list ends the tries. Default 1, 5, 15, 60, 300 s
    /// (generations specification 3.5).
    pub save_pauses_ms: Vec<u64>,
    /// How long one call to the ledger or to the asset store may take. Default 30 s.
    #[serde(with = "humantime_serde")]
    pub rpc_timeout: Duration,
    /// The offline provider.
    pub sketch: Sketch,
    /// Over how long looks at bills that are due together are spread. Default 2 s.
    #[serde(with = "humantime_serde")]
    pub bill_spread: Duration,
    /// OpenAI, or any server that speaks its language.
    pub openai: OpenAi,
    /// Google Gemini.
    pub gemini: Remote,
    /// Replicate.
    pub replicate: Remote,
    /// A web UI of AUTOMATIC1111. It needs no key: who sets its address has chosen it.
    pub automatic1111: Remote,
    /// A ComfyUI server. It needs no key: who sets its address has chosen it.
    pub comfyui: Remote,
    /// ElevenLabs.
    pub elevenlabs: Remote,
    /// xAI.
    pub xai: Remote,
    /// Together.
    pub together: Remote,
    /// MiniMax.
    pub minimax: Remote,
    /// Meshy.
    pub meshy: Remote,
    /// Rodin, by Hyper3D.
    pub rodin: Remote,
    /// Reve.
    pub reve: Remote,
    /// AtlasCloud.
    pub atlascloud: Remote,
    /// Evolink.
    pub evolink: Remote,
    /// Topaz Labs.
    pub topaz: Remote,
    /// Hugging Face inference providers.
    pub huggingface: Remote,
    /// FAL.
    pub fal: Fal,
    /// kie.ai.
    pub kie: Kie,
}
impl Default for Settings {
    fn default() -> Self {
        Self {
            ledger: LedgerMode::Required,
            stand_in: StandIn::default(),
            catalog: None,
            stop_grace: Duration::from_secs(15),
            save_pauses_ms: vec![1_000, 5_000, 15_000, 60_000, 300_000],
            rpc_timeout: Duration::from_secs(30),
            sketch: Sketch::default(),
            bill_spread: Duration::from_secs(2),
            openai: OpenAi::default(),
            gemini: Remote::default(),
            replicate: Remote::default(),
            automatic1111: Remote::default(),
            comfyui: Remote::default(),
            elevenlabs: Remote::default(),
            xai: Remote::default(),
            together: Remote::default(),
            minimax: Remote::default(),
            meshy: Remote::default(),
            rodin: Remote::default(),
            reve: Remote::default(),
            atlascloud: Remote::default(),
            evolink: Remote::default(),
            topaz: Remote::default(),
            huggingface: Remote::default(),
            fal: Fal::default(),
            kie: Kie::default(),
        }
    }
}
impl Section for Settings {
    const SECTION: &'static str = "provider";
    const ALIASES: &'static [(&'static str, &'static str)] = ALIASES;
}

/// Settings of the offline provider. A request's own parameters of the same names win.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sketch {
    /// How long a job takes, in milliseconds. Default 0.
    pub delay_ms: u64,
    /// A call whose prompt contains this text fails. Default empty: none does.
    pub fail_match: String,
    /// The n-th call of the process fails, counted from 1. Default 0: none does.
    pub fail_nth: u64,
    /// Whether a failed call is charged all the same. Default false.
    pub bill_on_failure: bool,
    /// How many steps of progress a picture has. Default 4.
    pub steps: u32,
}
impl Default for Sketch {
    fn default() -> Self {
        Self {
            delay_ms: 0,
            fail_match: String::new(),
            fail_nth: 0,
            bill_on_failure: false,
            steps: 4,
        }
    }
}

/// Settings of OpenAI and of servers that speak its language.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OpenAi {
    /// Address of the API, up to and with `/v1`. Default empty: OpenAI's own when there is a key. A server at home may
    /// have a private address: who sets this has chosen it.
    pub base_url: String,
    /// The key. Default none; a server at home needs none.
    #[serde(with = "secret::optional")]
    pub api_key: Option<SecretString>,
    /// Models for pictures; the first is the default.
    pub image_models: Vec<String>,
    /// Models for speech; the first is the default.
    pub speech_models: Vec<String>,
    /// Models for chat; the first is the default.
    pub chat_models: Vec<String>,
    /// Models for transcripts; the first is the default.
    pub transcription_models: Vec<String>,
    /// Models for films; the first is the default. Default none: OpenAI has announced the end of its own.
    pub video_models: Vec<String>,
    /// Models for embeddings; the first is the default.
    pub embedding_models: Vec<String>,
    /// Whether its calls cost nothing, as with a server at home. Default false.
    pub free: bool,
    /// Longest wait that the provider may ask for before a retry; more means giving up. Default 2 minutes.
    #[serde(with = "humantime_serde")]
    pub longest_wait: Duration,
    /// First pause before a request that was refused for its speed is sent again. Default 500 ms.
    #[serde(with = "humantime_serde")]
    pub first_pause: Duration,
    /// How long a connection may take. Default 5 s.
    #[serde(with = "humantime_serde")]
    pub connect_timeout: Duration,
    /// How long the server may be silent. Default 10 minutes: a local server loads its model first.
    #[serde(with = "humantime_serde")]
    pub read_timeout: Duration,
    /// Largest picture or sound that is taken, in bytes. Default 64 MiB.
    pub max_media_bytes: u64,
    /// Hosts that result addresses may name although they are private, for instance `127.0.0.1:8188`. Default none.
    pub allowed_hosts: Vec<String>,
}
impl Default for OpenAi {
    fn default() -> Self {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Self {
            base_url: String::new(),
            api_key: None,
            image_models: names(&["gpt-image-1.5", "gpt-image-1"]),
            speech_models: names(&["tts-1", "tts-1-hd"]),
            chat_models: names(&["gpt-4o-mini"]),
            transcription_models: names(&["whisper-1", "gpt-4o-transcribe", "gpt-4o-mini-transcribe"]),
            video_models: Vec::new(),
            embedding_models: names(&["text-embedding-3-small"]),
            free: false,
            longest_wait: Duration::from_secs(120),
            first_pause: Duration::from_millis(500),
            connect_timeout: Duration::from_secs(5),
            read_timeout: Duration::from_secs(600),
            max_media_bytes: 64 * 1024 * 1024,
            allowed_hosts: Vec::new(),
        }
    }
}

impl OpenAi {
    /// What it has in common with every provider on the network.
    pub(crate) fn remote(&self) -> Remote {
        Remote {
            api_key: self.api_key.clone(),
            base_url: self.base_url.clone(),
            models: Vec::new(),
            longest_wait: self.longest_wait,
            first_pause: self.first_pause,
            connect_timeout: self.connect_timeout,
            read_timeout: self.read_timeout,
            max_media_bytes: self.max_media_bytes,
            allowed_hosts: self.allowed_hosts.clone(),
        }
    }
}

/// A model that is offered, and what it can do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Offer {
    /// The provider's own name.
    pub id: String,
    /// Names of capabilities, for instance `text_to_image`.
    pub capabilities: Vec<String>,
}

fn offers(models: &[(&str, &[&str])]) -> Vec<Offer> {
    let offer = |(id, capabilities): &(&str, &[&str])| Offer {
        id: (*id).to_owned(),
        capabilities: capabilities.iter().map(|name| (*name).to_owned()).collect(),
    };
    models.iter().map(offer).collect()
}

/// How an adapter of jobs deals with its server.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Manners {
    /// Longest wait that the provider may ask for before a retry; more means giving up. Default 2 minutes.
    #[serde(with = "humantime_serde")]
    pub longest_wait: Duration,
    /// First pause before a request that was refused for its speed is sent again. Default 500 ms.
    #[serde(with = "humantime_serde")]
    pub first_pause: Duration,
    /// How long a connection may take. Default 5 s.
    #[serde(with = "humantime_serde")]
    pub connect_timeout: Duration,
    /// How long an answer may take. Default 30 s.
    #[serde(with = "humantime_serde")]
    pub answer_timeout: Duration,
    /// Pause between polls. Default none: 1, 2, 3, 5, 8, 10 and then 15 s.
    #[serde(with = "humantime_serde::option")]
    pub poll_pause: Option<Duration>,
    /// Largest output that is taken, in bytes. Default 2 GiB.
    pub max_media_bytes: u64,
    /// Hosts that result addresses may name although they are private. Default none.
    pub allowed_hosts: Vec<String>,
}
impl Default for Manners {
    fn default() -> Self {
        Self {
            longest_wait: Duration::from_secs(120),
            first_pause: Duration::from_millis(500),
            connect_timeout: Duration::from_secs(5),
            answer_timeout: Duration::from_secs(30),
            poll_pause: None,
            max_media_bytes: 2 * 1024 * 1024 * 1024,
            allowed_hosts: Vec::new(),
        }
    }
}

/// Settings of FAL.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Fal {
    /// The key, `<id>:<secret>`. Bills can be read with a key of an administrator only. Default none.
    #[serde(with = "secret::optional")]
    pub api_key: Option<SecretString>,
    /// Address of the queue. Default `https://queue.fal.run`.
    pub queue_url: String,
    /// Address of the platform's API, for bills. Default `https://api.fal.ai`.
    pub platform_url: String,
    /// Models that are offered; the first that has a capability is the default for it. Any other may be asked for too.
    pub models: Vec<Offer>,
    /// How its server is dealt with.
    pub manners: Manners,
}
impl Default for Fal {
    fn default() -> Self {
        Self {
            api_key: None,
            queue_url: "https://queue.fal.run".to_owned(),
            platform_url: "https://api.fal.ai".to_owned(),
            models: offers(&[
                ("fal-ai/flux/dev", &["text_to_image"]),
                ("fal-ai/flux/schnell", &["text_to_image"]),
                ("fal-ai/flux/dev/image-to-image", &["image_to_image"]),
                ("fal-ai/clarity-upscaler", &["upscale_image"]),
                ("fal-ai/birefnet", &["remove_background"]),
                (
                    "fal-ai/kling-video/v2.5-turbo/pro/text-to-video",
                    &["text_to_video"],
                ),
                (
                    "fal-ai/kling-video/v2.5-turbo/pro/image-to-video",
                    &["image_to_video"],
                ),
                ("fal-ai/sync-lipsync", &["lip_sync"]),
                ("fal-ai/chatterbox/text-to-speech", &["text_to_speech"]),
                ("fal-ai/minimax-music", &["text_to_music"]),
                ("fal-ai/trellis", &["image_to_3d"]),
            ]),
            manners: Manners::default(),
        }
    }
}

/// Settings of kie.ai.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Kie {
    /// The key. Default none.
    #[serde(with = "secret::optional")]
    pub api_key: Option<SecretString>,
    /// Address of the API. Default `https://api.kie.ai`.
    pub base_url: String,
    /// Where the provider may announce that a job is done; the Suno models cannot be asked without one. Nothing is
    /// believed that comes there. Default empty: none.
    pub callback_url: String,
    /// US dollars of one credit, a decimal. Default 0.005.
    pub credit_usd: Decimal,
    /// Models that are offered; the first that has a capability is the default for it. Any other may be asked for too.
    pub models: Vec<Offer>,
    /// How its server is dealt with.
    pub manners: Manners,
}
impl Default for Kie {
    fn default() -> Self {
        Self {
            api_key: None,
            base_url: "https://api.kie.ai".to_owned(),
            callback_url: String::new(),
            credit_usd: Decimal::new(5, 3),
            models: offers(&[
                ("google/nano-banana", &["text_to_image"]),
                ("google/nano-banana-edit", &["image_to_image"]),
                ("suno/V5", &["text_to_music"]),
                ("kling/v2-5-turbo-text-to-video-pro", &["text_to_video"]),
                ("kling/v2-5-turbo-image-to-video-pro", &["image_to_video"]),
            ]),
            manners: Manners::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use atelier_common::settings::Loader;

    use super::*;

    #[test]
    fn the_short_variables_reach_their_keys() {
        let loaded = Loader::bare()
            .variable("ATELIER_SKETCH_DELAY_MS", "1500")
            .variable("ATELIER_SKETCH_FAIL_MATCH", "storm")
            .variable("ATELIER_SKETCH_BILL_ON_FAILURE", "true")
            .variable("OPENAI_API_KEY", "sk-1")
            .variable("OPENAI_BASE_URL", "http://127.0.0.1:11434/v1")
            .load::<Settings>()
            .expect("valid");
        let Settings { sketch, openai, .. } = &loaded.settings;
        assert_eq!(
            (
                sketch.delay_ms,
                sketch.fail_match.as_str(),
                sketch.bill_on_failure
            ),
            (1_500, "storm", true)
        );
        assert_eq!(
            (openai.base_url.as_str(), openai.api_key.is_some()),
            ("http://127.0.0.1:11434/v1", true)
        );
        assert!(!loaded.print().contains("sk-1"));
    }
}

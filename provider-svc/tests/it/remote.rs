//! One call of a provider on the network against a stand-in, and what became of it.

use std::time::Duration;

use atelier_proto::common::v1::MapValue;
use atelier_proto::provider::v1::RunGenerationRequest;
use atelier_proto::tracker::v1::{Generation, GenerationStatus};
use atelier_proto::value::{MediaRef, Value, map_from_json};
use atelier_provider::settings::{OpenAi, Remote, Settings};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value as Json;
use tonic_types::StatusExt as _;

use crate::stack::{Stack, Told, request, status};
use crate::standin::{Answer, PNG, StandIn};

/// The key that must not be seen anywhere but in its header.
pub const KEY: &str = "sk-secret-1";

/// A call that was carried out.
pub struct Ran {
    pub stack: Stack,
    pub server: StandIn,
    pub told: Told,
    pub row: Generation,
}
impl Ran {
    /// `completed`, `cancelled`, or the class of the failure with its reason.
    pub fn ending(&self) -> String {
        match status(&self.row) {
            GenerationStatus::Completed => "completed".to_owned(),
            GenerationStatus::Cancelled => "cancelled".to_owned(),
            _ => {
                let info = self
                    .told
                    .error
                    .as_ref()
                    .unwrap()
                    .get_details_error_info()
                    .unwrap();
                match info.metadata.get("reason") {
                    Some(reason) => format!("{}/{reason}", info.metadata["class"]),
                    None => info.metadata["class"].clone(),
                }
            }
        }
    }
    pub fn request_id(&self) -> &str {
        self.row.provider_request_id.as_deref().unwrap_or_default()
    }
    /// Amount and currency, `-` for none.
    pub fn cost(&self) -> String {
        self.row.cost.as_ref().map_or_else(
            || "-".to_owned(),
            |cost| format!("{} {}", cost.amount, cost.currency),
        )
    }
    pub fn error(&self) -> &str {
        self.row.error.as_deref().unwrap_or_default()
    }
    pub fn posts(&self) -> usize {
        self.server
            .targets()
            .iter()
            .filter(|target| target.starts_with("POST"))
            .count()
    }
    /// Content types and sizes of the assets.
    pub fn assets(&self) -> Vec<(String, i64)> {
        let result = self.told.result.as_ref().unwrap();
        let of = |asset: &atelier_proto::asset::v1::Asset| (asset.content_type.clone(), asset.size_bytes);
        result.assets.iter().map(of).collect()
    }
}

/// Settings of a provider at a server.
pub fn at(server: &StandIn) -> Remote {
    Remote {
        base_url: server.base(),
        api_key: Some(KEY.into()),
        first_pause: Duration::from_millis(20),
        longest_wait: Duration::from_secs(20),
        allowed_hosts: vec!["127.0.0.1".to_owned(), server.address.to_string()],
        ..Remote::default()
    }
}

/// A stack with one provider at a server.
pub async fn stack(provider: &str, server: &StandIn) -> Stack {
    stack_at(provider, at(server)).await
}

pub async fn stack_at(provider: &str, remote: Remote) -> Stack {
    let mut settings = Settings::default();
    match provider {
        "atlascloud" => settings.atlascloud = remote,
        "automatic1111" => settings.automatic1111 = remote,
        "comfyui" => settings.comfyui = remote,
        "elevenlabs" => settings.elevenlabs = remote,
        "evolink" => settings.evolink = remote,
        "gemini" => settings.gemini = remote,
        "huggingface" => settings.huggingface = remote,
        "meshy" => settings.meshy = remote,
        "minimax" => settings.minimax = remote,
        "openai" => {
            settings.openai = OpenAi {
                base_url: remote.base_url,
                api_key: remote.api_key,
                first_pause: remote.first_pause,
                allowed_hosts: remote.allowed_hosts,
                video_models: vec!["sora-2".to_owned()],
                ..OpenAi::default()
            };
        }
        "replicate" => settings.replicate = remote,
        "reve" => settings.reve = remote,
        "rodin" => settings.rodin = remote,
        "together" => settings.together = remote,
        "topaz" => settings.topaz = remote,
        "xai" => settings.xai = remote,
        other => panic!("{other}"),
    }
    Stack::with(settings).await
}

/// Carries a call out.
pub async fn run(call: RunGenerationRequest, answers: impl IntoIterator<Item = Answer>) -> Ran {
    let server = StandIn::start(answers).await;
    run_at(call, server).await
}

pub async fn run_at(call: RunGenerationRequest, server: StandIn) -> Ran {
    let stack = stack(&call.provider, &server).await;
    finish(stack, server, call).await
}

pub async fn finish(stack: Stack, server: StandIn, call: RunGenerationRequest) -> Ran {
    let told = stack.run(call).await;
    let row = stack.row(&told.id()).await;
    Ran {
        stack,
        server,
        told,
        row,
    }
}

/// A call by `provider/capability/model`.
pub fn call(provider: &str, capability: &str, model: &str, params: Json) -> RunGenerationRequest {
    let mut call = request(provider, capability, params);
    call.model = model.to_owned();
    call
}

/// The same with a picture.
pub fn with_picture(mut call: RunGenerationRequest, params: Json) -> RunGenerationRequest {
    let mut map = map_from_json(params).unwrap();
    map.insert("image".to_owned(), picture());
    call.params = Some(MapValue::from(&map));
    call
}

pub fn picture() -> Value {
    Value::media(MediaRef {
        kind: "image".into(),
        data: Some(STANDARD.decode(PNG).unwrap().into()),
        ..MediaRef::default()
    })
}

/// An answer of JSON.
pub fn json(status: u16, body: Json) -> Answer {
    Answer::json(status, body)
}

/// A picture at an address.
pub fn png() -> Answer {
    Answer::new(200, "image/png", STANDARD.decode(PNG).unwrap())
}

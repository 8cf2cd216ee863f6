//! The web UI of AUTOMATIC1111 (providers specification 19): a server of one's own that makes pictures, at once.
//!
//! Its interrupt stops whatever runs there, also somebody else's picture, so it is never sent.

use atelier_proto::money::Money;
use rust_decimal::Decimal;
use serde_json::Value as Json;

use super::http::{Refusal, Reply, base64_of, by_status};
use super::jobs::{
    Context, Dialect, Fields, Found, Order, Place, Said, State, lacks, model, pictures, told_text, words,
};
use crate::provider::{Call, Capability, Class, Failure, Model, Params, Usage};
use crate::seam::receipt::Stated;

/// Parameters that are passed on as they are.
const PASSED: &[&str] = &[
    "negative_prompt",
    "steps",
    "width",
    "height",
    "cfg_scale",
    "seed",
    "sampler_name",
    "scheduler",
];
/// The model of a request that names none: whatever is loaded.
const LOADED: &str = "loaded";

/// Its words.
pub struct Automatic1111;

impl Dialect for Automatic1111 {
    fn id(&self) -> &'static str {
        "automatic1111"
    }
    fn address(&self) -> &'static str {
        "http://127.0.0.1:7860"
    }
    fn variable(&self) -> &'static str {
        "AUTOMATIC1111_BASE_URL"
    }
    fn inlines(&self) -> bool {
        true
    }

    fn models(&self) -> Vec<Model> {
        vec![model(
            LOADED,
            &[Capability::TextToImage, Capability::ImageToImage],
        )]
    }

    fn order(&self, call: &Call) -> Result<Order, Failure> {
        let params = Params(&call.params);
        let checkpoint =
            (call.model != LOADED).then(|| serde_json::json!({"sd_model_checkpoint": call.model}));
        let body = Fields::of(call)
            .set("prompt", told_text(call))
            .set("n_iter", params.outputs())
            .set("force_task_id", call.generation_id.to_string())
            .set("send_images", true)
            .maybe("override_settings", checkpoint)
            .pass(PASSED);
        match call.capability {
            Capability::TextToImage => Ok(Order::post("sdapi/v1/txt2img", body.json())),
            Capability::ImageToImage => {
                let images: Vec<Json> = pictures(call)
                    .into_iter()
                    .filter_map(|media| Some(base64_of(media.data.as_ref()?).into()))
                    .collect();
                if images.is_empty() {
                    return Err(lacks("a picture"));
                }
                let body = body
                    .set("init_images", images)
                    .maybe("denoising_strength", params.number("strength"));
                Ok(Order::post("sdapi/v1/img2img", body.json()))
            }
            _ => Err(Failure::new(Class::InvalidInput, "the provider cannot do this").unsent()),
        }
    }

    fn refusal(&self, reply: &Reply, _polling: bool) -> Option<Refusal> {
        if reply.status.is_success() {
            return None;
        }
        let json = reply.json();
        let detail = ["detail", "errors", "error"]
            .iter()
            .filter_map(|key| json.get(*key))
            .map(words)
            .find(|text| !text.is_empty())
            .unwrap_or_default();
        let memory = json.get("error").and_then(Json::as_str) == Some("OutOfMemoryError");
        let failure = match reply.status.as_u16() {
            500 if !memory => Failure::new(Class::ProviderPermanent, detail),
            _ => by_status(reply.status, &detail),
        };
        Some(Refusal::new(failure))
    }

    fn said(&self, _context: Context<'_>, reply: &Reply) -> Said {
        let json = reply.json();
        let Some(images) = json.get("images").and_then(Json::as_array) else {
            return Said::new(State::Unreadable);
        };
        // What is said of the pictures is JSON inside of a text.
        let info: Json = json
            .get("info")
            .and_then(Json::as_str)
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default();
        let found = images.iter().enumerate().filter_map(|(index, image)| {
            let text = image.as_str()?;
            let bare = text.split_once(";base64,").map_or(text, |(_, bare)| bare);
            let seed = info
                .pointer(&format!("/all_seeds/{index}"))
                .and_then(Json::as_i64);
            Some(Found::at("image", Place::Base64(bare.to_owned())).fact("seed", seed))
        });
        // A server of one's own states no charge because it has none.
        let free = Stated::of(Money::usd(Decimal::ZERO));
        Said::new(State::done(found.collect(), Usage::default())).charging(Some(free))
    }
}

//! Reve (providers specification 15): pictures, at once. The id, the credits and a verdict on the content come with every
//! answer, and a refused picture is charged.

use reqwest::header::HeaderMap;
use rust_decimal::Decimal;
use serde_json::Value as Json;

use super::http::{Refusal, Reply, base64_of, by_status};
use super::jobs::{
    Context, Dialect, Fields, Found, Order, Place, Said, State, credits, lacks, model, number, pictures,
    told_text, words,
};
use crate::pricing::Catalog;
use crate::provider::{Call, Capability, Class, Failure, Model, Usage};
use crate::seam::receipt::Stated;

/// Most pictures of a remix.
const MAX_REFERENCES: usize = 6;

/// Its words.
pub struct Reve;

impl Dialect for Reve {
    fn id(&self) -> &'static str {
        "reve"
    }
    fn address(&self) -> &'static str {
        "https://api.reve.com"
    }
    fn variable(&self) -> &'static str {
        "REVE_API_KEY"
    }
    fn inlines(&self) -> bool {
        true
    }

    fn models(&self) -> Vec<Model> {
        vec![
            model("reve-create", &[Capability::TextToImage]),
            model("reve-edit", &[Capability::ImageToImage]),
            model("reve-remix", &[Capability::ImageToImage]),
        ]
    }

    fn order(&self, call: &Call) -> Result<Order, Failure> {
        let mut images: Vec<Json> = pictures(call)
            .into_iter()
            .filter_map(|media| Some(base64_of(media.data.as_ref()?).into()))
            .collect();
        let words = Fields::of(call)
            .set("version", "latest")
            .pass(&["aspect_ratio", "postprocessing"]);
        let (path, body) = match call.capability {
            Capability::TextToImage => ("v1/image/create", words.set("prompt", told_text(call))),
            Capability::ImageToImage if images.is_empty() || images.len() > MAX_REFERENCES => {
                return Err(lacks("one to six pictures"));
            }
            Capability::ImageToImage if images.len() == 1 && call.model != "reve-remix" => (
                "v1/image/edit",
                words
                    .set("edit_instruction", told_text(call))
                    .set("reference_image", images.remove(0)),
            ),
            Capability::ImageToImage => (
                "v1/image/remix",
                words
                    .set("prompt", told_text(call))
                    .set("reference_images", images),
            ),
            _ => return Err(Failure::new(Class::InvalidInput, "the provider cannot do this").unsent()),
        };
        Ok(Order::post(path, body.json()).header("accept", "image/webp"))
    }

    fn request_id(&self, headers: &HeaderMap) -> Option<String> {
        Some(headers.get("x-reve-request-id")?.to_str().ok()?.to_owned())
    }

    fn charge(&self, headers: &HeaderMap, catalog: &Catalog) -> Option<Stated> {
        let count: Decimal = headers
            .get("x-reve-credits-used")?
            .to_str()
            .ok()?
            .trim()
            .parse()
            .ok()?;
        Some(credits(catalog, self.id(), count))
    }

    fn refusal(&self, reply: &Reply, _polling: bool) -> Option<Refusal> {
        if reply.status.is_success() {
            return None;
        }
        let json = reply.json();
        if violates(reply, &json) {
            let message = "the provider refused the content";
            return Some(Refusal::last(
                Failure::new(Class::ContentPolicy, message).because("input"),
            ));
        }
        Some(Refusal::new(by_status(reply.status, &words(&json))))
    }

    fn said(&self, context: Context<'_>, reply: &Reply) -> Said {
        let json = reply.json();
        // What the head stated already is not counted again.
        let charge = json
            .get("credits_used")
            .filter(|_| reply.header("x-reve-credits-used").is_none())
            .and_then(number)
            .map(|count| credits(context.catalog, self.id(), count));
        let id = json
            .get("request_id")
            .and_then(Json::as_str)
            .or_else(|| reply.header("x-reve-request-id"));
        let state = if violates(reply, &json) {
            let message = "the provider refused the content";
            State::Failed(Failure::new(Class::ContentPolicy, message).because("output"))
        } else if json.is_object() {
            let image = json
                .get("image")
                .and_then(Json::as_str)
                .filter(|text| !text.is_empty());
            let found = image.map(|text| Found::at("image", Place::Base64(text.to_owned())));
            State::done(found.into_iter().collect(), Usage::default())
        } else {
            let stated = reply.header("content-type").unwrap_or_default();
            let found = (!reply.body.is_empty())
                .then(|| Found::at("image", Place::Bytes(reply.body.clone())).named(stated));
            State::done(found.into_iter().collect(), Usage::default())
        };
        Said::new(state).of(id).charging(charge)
    }
}

/// The verdict, from the head or the body.
fn violates(reply: &Reply, json: &Json) -> bool {
    reply.header("x-reve-content-violation") == Some("true")
        || json.get("content_violation").and_then(Json::as_bool) == Some(true)
}

//! Topaz Labs (providers specification 13): pictures made larger or better, as jobs. Films need their measures first and an
//! upload in parts; they are not offered.

use reqwest::Method;
use serde_json::Value as Json;

use super::http::{Auth, Refusal, Reply, by_status};
use super::jobs::{
    Body, Context, Dialect, Field, Found, Order, Said, State, Ticket, credits, lacks, model, number,
    pictures, words,
};
use crate::provider::{Call, CancelAnswer, Capability, Class, Failure, Model, Params};
use crate::seam::receipt::Stated;

/// Its words.
pub struct Topaz;

impl Dialect for Topaz {
    fn id(&self) -> &'static str {
        "topaz"
    }
    fn address(&self) -> &'static str {
        "https://api.topazlabs.com"
    }
    fn variable(&self) -> &'static str {
        "TOPAZ_API_KEY"
    }
    fn auth(&self) -> Auth {
        Auth::Header("x-api-key")
    }
    fn inlines(&self) -> bool {
        true
    }

    fn models(&self) -> Vec<Model> {
        vec![
            model("Standard V2", &[Capability::UpscaleImage]),
            model("High Fidelity V2", &[Capability::UpscaleImage]),
            model("matting", &[Capability::RemoveBackground]),
        ]
    }

    fn order(&self, call: &Call) -> Result<Order, Failure> {
        let params = Params(&call.params);
        let image = pictures(call)
            .into_iter()
            .find_map(|media| media.data.clone())
            .ok_or_else(|| lacks("a picture"))?;
        let tool = match call.capability {
            Capability::UpscaleImage => "enhance",
            Capability::RemoveBackground => "matting",
            _ => return Err(Failure::new(Class::InvalidInput, "the provider cannot do this").unsent()),
        };
        let mut fields = vec![Field::File("image", image)];
        if tool == "enhance" {
            fields.push(Field::Text("model", call.model.clone()));
        }
        for (ours, theirs) in [("width", "output_width"), ("height", "output_height")] {
            if let Some(pixels) = params.int(ours).or_else(|| params.int(theirs)) {
                fields.push(Field::Text(theirs, pixels.to_string()));
            }
        }
        fields.push(Field::Text(
            "output_format",
            params.text("output_format").unwrap_or("png").to_owned(),
        ));
        Ok(Order::form(format!("image/v1/{tool}/async"), fields))
    }

    fn refusal(&self, reply: &Reply, _polling: bool) -> Option<Refusal> {
        (!reply.status.is_success()).then(|| Refusal::new(by_status(reply.status, &words(&reply.json()))))
    }

    fn said(&self, context: Context<'_>, reply: &Reply) -> Said {
        let json = reply.json();
        let Some(id) = json.get("process_id").and_then(Json::as_str) else {
            return Said::new(State::Unreadable);
        };
        if reply.header("x-process-id").is_some_and(|head| head != id) {
            tracing::warn!("topaz names a job differently in head and body, the body counts");
        }
        let charge = json
            .get("credits")
            .and_then(number)
            .map(|count| credits(context.catalog, self.id(), count));
        let (state, charge) = match json.get("status").and_then(Json::as_str) {
            None | Some("Pending") => (State::QUEUED, None),
            Some("Completed") => (State::Ready, charge),
            Some("Failed") => (State::failed(Class::ProviderPermanent, "the job failed"), charge),
            Some("Cancelled") => (State::Cancelled, charge),
            Some(_) => (State::at(json.get("progress")), None),
        };
        Said::new(state).of(Some(id)).charging(charge)
    }

    fn look(&self, ticket: &Ticket) -> Order {
        Order::get(format!("image/v1/status/{}", ticket.id))
    }

    fn claim(&self, ticket: &Ticket) -> Order {
        Order::get(format!("image/v1/download/{}", ticket.id))
    }

    fn claimed(&self, _context: Context<'_>, reply: &Reply) -> Result<Vec<Found>, Failure> {
        let json = reply.json();
        let url = json.get("download_url").and_then(Json::as_str);
        Ok(url.map(|url| Found::url("image", url)).into_iter().collect())
    }

    fn stop(&self, ticket: &Ticket) -> Option<Order> {
        let path = format!("image/v1/cancel/{}", ticket.id);
        Some(Order::new(Method::DELETE, path, Body::Empty))
    }

    fn stopped(&self, _context: Context<'_>, reply: &Reply) -> (CancelAnswer, Option<Stated>) {
        let answer = match reply.status.as_u16() {
            200..=299 => CancelAnswer::Requested,
            409 => CancelAnswer::AlreadyDone,
            404 => CancelAnswer::NotFound,
            _ => CancelAnswer::Error,
        };
        (answer, None)
    }
}

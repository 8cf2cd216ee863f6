//! Reading answers of paid requests, and fetching what jobs made.

use atelier_common::backoff;
use atelier_proto::value::{BytesForm, Value, map_from_json, to_json};
use bytes::{Bytes, BytesMut};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::{Answer, Context, Dialect, Found, Jobs, MAX_ANSWER, MAX_JSON, Order, Place, State, Ticket};
use crate::adapters::http::{Cutter, Reply, bad, sniffed};
use crate::provider::{Call, Class, Emit, Failure, Finished, Media, Output, Params, Usage};
use crate::seam::calling::{FETCH_PAUSES, may_pass};

/// What a poll leaves for the fetch.
#[derive(Debug, Serialize, Deserialize)]
struct Note {
    ticket: Ticket,
    /// The outputs by address; absent when they must be asked for.
    found: Option<Vec<Noted>>,
    #[serde(default)]
    seconds: Option<Decimal>,
    #[serde(default)]
    input_tokens: Option<i64>,
    #[serde(default)]
    output_tokens: Option<i64>,
}
#[derive(Debug, Serialize, Deserialize)]
struct Noted {
    kind: String,
    url: String,
    #[serde(default)]
    mime: String,
    #[serde(default)]
    extra: Json,
}

/// What the fetch has to know of a job that is done.
pub(super) fn note(ticket: &Ticket, done: Option<(&[Found], Usage)>) -> String {
    let usage = done.map(|(_, usage)| usage).unwrap_or_default();
    let noted = |found: &Found| match &found.place {
        Place::Url(url) => Some(Noted {
            kind: found.kind.to_owned(),
            url: url.clone(),
            mime: found.mime.clone(),
            extra: to_json(&Value::map(found.extra.clone()), BytesForm::Tagged),
        }),
        // Too large for a note; the job is asked again.
        Place::Base64(_) | Place::Bytes(_) | Place::Text(_) | Place::Value(_) => None,
    };
    let found = done.and_then(|(found, _)| found.iter().map(noted).collect::<Option<Vec<_>>>());
    let note = Note {
        ticket: ticket.clone(),
        found,
        seconds: usage.seconds,
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
    };
    serde_json::to_string(&note).unwrap_or_default()
}

impl<D: Dialect> Jobs<D> {
    /// Sends the paid request and reads its answer as the order says.
    pub(super) async fn answered(
        &self,
        call: &Call,
        order: &Order,
        emit: &dyn Emit,
    ) -> Result<Reply, Failure> {
        let build = || self.request(order);
        let limit = (self.link.max_media_bytes().saturating_mul(2) + MAX_JSON).min(MAX_ANSWER);
        let streams = match order.answer {
            Answer::Whole => false,
            Answer::Sound => Params(&call.params).flag("stream").unwrap_or(false),
            Answer::Events => true,
        };
        if !streams {
            return self.link.whole(call, limit, self, build).await;
        }
        let events = order.answer == Answer::Events;
        let mut response = self.link.open(call, events, self, build).await?;
        let (status, headers) = (response.status(), response.headers().clone());
        let stated = crate::adapters::http::content_type(&headers);
        let cut = || Failure::unknown_submit("the stream broke off");
        let mut body = BytesMut::new();
        let (mut cutter, mut list) = (Cutter::default(), Vec::new());
        let eventful = events && stated.starts_with("text/event-stream");
        loop {
            let chunk = if events {
                let chunk = call.cancel.run_until_cancelled(response.chunk()).await;
                chunk.ok_or_else(crate::adapters::http::cancelled)?
            } else {
                response.chunk().await
            };
            let Some(chunk) = chunk.map_err(|_| cut())? else {
                break;
            };
            if (body.len() + chunk.len()) as u64 > limit {
                return Err(bad("the answer is too large"));
            }
            body.extend_from_slice(&chunk);
            if eventful {
                let cut = cutter.push(&chunk).map_err(|_| bad("an event is too long"))?;
                self.tell(cut, &mut list, emit);
            } else if !events && stated.starts_with("audio/") {
                emit.audio(chunk);
            }
        }
        if eventful {
            self.tell(cutter.finish().into_iter().collect(), &mut list, emit);
            body = BytesMut::from(Json::Array(list).to_string().as_bytes());
        } else if !events {
            emit.end("audio");
        }
        Ok(Reply {
            status,
            headers,
            body: body.freeze(),
        })
    }

    fn tell(&self, events: Vec<String>, list: &mut Vec<Json>, emit: &dyn Emit) {
        for event in events {
            let Ok(json) = serde_json::from_str::<Json>(&event) else {
                continue;
            };
            for (text, thinking) in self.dialect.piece(&json) {
                emit.text(&text, thinking);
            }
            list.push(json);
        }
    }

    /// The outputs that an answer names.
    pub(super) async fn outputs(&self, found: Vec<Found>) -> Result<Vec<Output>, Failure> {
        let mut outputs = Vec::new();
        for one in found {
            outputs.push(self.output(one, true).await?);
        }
        Ok(outputs)
    }

    async fn output(&self, found: Found, patient: bool) -> Result<Output, Failure> {
        let Found {
            kind,
            place,
            mime,
            extra,
        } = found;
        let bytes = match place {
            Place::Text(text) => return Ok(Output::Text(text)),
            Place::Value(value) => return Ok(Output::Value(value)),
            Place::Bytes(bytes) if bytes.is_empty() => return Err(bad("the output is empty")),
            Place::Bytes(bytes) => bytes,
            Place::Base64(text) => self.link.decoded(&text)?,
            Place::Url(url) if url.starts_with("data:") => {
                let payload = url.split_once(";base64,").map(|(_, payload)| payload);
                self.link
                    .decoded(payload.ok_or_else(|| bad("the output is no base64"))?)?
            }
            Place::Url(url) if patient => {
                // The output is paid for: one bad answer of its store must not lose it.
                let fetch = || self.link.fetched(&url);
                backoff::retry(backoff::fixed(FETCH_PAUSES), fetch, may_pass).await?
            }
            Place::Url(url) => self.link.fetched(&url).await?,
        };
        let mime = type_of(kind, &mime, &bytes);
        Ok(Output::Media(Media {
            kind,
            bytes,
            mime,
            extra,
        }))
    }

    /// Fetches what a poll left a note of. An address that has run out is asked for anew, once.
    pub(super) async fn fetched(&self, note: &str) -> Result<Finished, Failure> {
        let note: Note = serde_json::from_str(note)
            .map_err(|_| Failure::new(Class::ProviderPermanent, "the result cannot be read"))?;
        let usage = Usage {
            seconds: note.seconds,
            input_tokens: note.input_tokens,
            output_tokens: note.output_tokens,
            cached_tokens: None,
        };
        let found = match note.found {
            Some(noted) => noted.into_iter().map(of_note).collect(),
            None => self.claim(&note.ticket).await?,
        };
        let first = self.all(found).await;
        let outputs = match first {
            Err(failure) if failure.reason == Some("result_expired") => {
                let renewed = match self.look(&note.ticket, None).await? {
                    State::Done(found, _) => found,
                    State::Ready => self.claim(&note.ticket).await?,
                    State::Queued { .. }
                    | State::Running { .. }
                    | State::Failed(_)
                    | State::Cancelled
                    | State::Lost
                    | State::Unreadable => return Err(failure),
                };
                self.all(renewed).await?
            }
            first => first?,
        };
        Ok(Finished { outputs, usage })
    }

    async fn all(&self, found: Vec<Found>) -> Result<Vec<Output>, Failure> {
        let mut outputs = Vec::new();
        for one in found {
            outputs.push(self.output(one, false).await?);
        }
        Ok(outputs)
    }

    async fn claimed(&self, order: &Order) -> Result<Reply, Failure> {
        let reply = self.link.ask(self.request(order)?).await?;
        match self.dialect.refusal(&reply, true) {
            Some(refusal) => Err(refusal.failure),
            None => Ok(reply),
        }
    }

    async fn claim(&self, ticket: &Ticket) -> Result<Vec<Found>, Failure> {
        let mut reply = self.claimed(&self.dialect.claim(ticket)).await?;
        if let Some(next) = self.dialect.next_claim(ticket, &reply) {
            reply = self.claimed(&next).await?;
        }
        let context = Context {
            catalog: &self.catalog,
            ticket,
        };
        let found = self.dialect.claimed(context, &reply)?;
        if found.is_empty() {
            return Err(Failure::new(Class::ProviderPermanent, "the job gave no output").because("no_output"));
        }
        Ok(found)
    }
}

fn of_note(noted: Noted) -> Found {
    let kind = match noted.kind.as_str() {
        "video" => "video",
        "audio" => "audio",
        "model_3d" => "model_3d",
        _ => "image",
    };
    Found {
        kind,
        place: Place::Url(noted.url),
        mime: noted.mime,
        extra: map_from_json(noted.extra).unwrap_or_default(),
    }
}

/// The type of an output: by its first bytes, else as stated, else the usual one of its kind.
fn type_of(kind: &str, stated: &str, bytes: &Bytes) -> String {
    let shown = sniffed(bytes).or_else(|| match bytes.as_ref() {
        [_, _, _, _, b'f', b't', b'y', b'p', ..] => Some("video/mp4"),
        [b'g', b'l', b'T', b'F', ..] => Some("model/gltf-binary"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E', ..] => Some("audio/wav"),
        [b'I', b'D', b'3', ..] | [0xff, 0xfb | 0xf3 | 0xf2, ..] => Some("audio/mpeg"),
        [b'O', b'g', b'g', b'S', ..] => Some("audio/ogg"),
        [b'f', b'L', b'a', b'C', ..] => Some("audio/flac"),
        _ => None,
    });
    let stated = stated.split(';').next().unwrap_or_default().trim();
    let usual = match kind {
        "video" => "video/mp4",
        "audio" => "audio/mpeg",
        "model_3d" => "model/gltf-binary",
        _ => "image/png",
    };
    let named = Some(stated).filter(|stated| !stated.is_empty() && *stated != "application/octet-stream");
    shown.or(named).unwrap_or(usual).to_owned()
}

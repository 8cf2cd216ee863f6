//! Speech: text in, a sound file out, raw and in pieces.

use atelier_proto::value::Map;
use bytes::BytesMut;
use serde_json::json;

use super::OpenAi;
use crate::adapters::web::bad;
use crate::adapters::web::content_type;
use crate::provider::{Call, Class, Emit, Failure, Finished, Media, Output, Params, Usage};

impl OpenAi {
    /// Speaks a text.
    pub(super) async fn speech(&self, call: &Call, emit: &dyn Emit) -> Result<Finished, Failure> {
        let params = Params(&call.params);
        let url = self.url("audio/speech")?;
        let format = params
            .first_text(&["response_format", "format"])
            .unwrap_or("mp3")
            .to_owned();
        let mut body = json!({
            "model": call.model,
            "input": params.first_text(&["text", "input", "prompt"]).unwrap_or_default(),
            "voice": params.text("voice").unwrap_or("alloy"),
            "response_format": format,
        });
        if let Some(object) = body.as_object_mut() {
            if let Some(speed) = params.number("speed") {
                object.insert("speed".to_owned(), speed.into());
            }
            if let Some(instructions) = params.text("instructions") {
                object.insert("instructions".to_owned(), instructions.into());
            }
        }
        let build = || Ok(self.client.post(url.clone()).json(&body));
        let mut response = self.send(call, false, build).await?;
        let stated = content_type(response.headers());
        let streamed = params.flag("stream").unwrap_or(false);
        let mut bytes = BytesMut::new();
        let cut = |_| Failure::unknown_submit("the sound broke off");
        while let Some(chunk) = response.chunk().await.map_err(cut)? {
            if (bytes.len() + chunk.len()) as u64 > self.settings.max_media_bytes {
                return Err(bad("the output is too large"));
            }
            bytes.extend_from_slice(&chunk);
            if streamed {
                emit.audio(chunk);
            }
        }
        if stated.starts_with("application/json") {
            return Err(self.unreadable(&bytes));
        }
        if bytes.is_empty() {
            return Err(
                Failure::new(Class::ProviderPermanent, "the answer has no sound").because("no_output")
            );
        }
        if streamed {
            emit.end("audio");
        }
        let mime = if stated.starts_with("audio/") {
            stated
        } else {
            mime_of(&format).to_owned()
        };
        let media = Media {
            kind: "audio",
            bytes: bytes.freeze(),
            mime,
            extra: Map::new(),
        };
        Ok(Finished {
            outputs: vec![Output::Media(media)],
            usage: Usage::default(),
        })
    }
}

fn mime_of(format: &str) -> &'static str {
    match format {
        "wav" => "audio/wav",
        "opus" => "audio/ogg",
        "aac" => "audio/aac",
        "flac" => "audio/flac",
        "pcm" => "audio/pcm",
        _ => "audio/mpeg",
    }
}

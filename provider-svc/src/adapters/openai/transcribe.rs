//! Transcripts: a sound file in, text out.

use reqwest::multipart::{Form, Part};
use rust_decimal::Decimal;

use super::OpenAi;
use super::wire::Transcript;
use crate::adapters::http::references;
use crate::provider::{Call, Class, Failure, Finished, Output, Params, Usage};

/// Longest transcript that is taken, in bytes.
const MAX_ANSWER: u64 = 16 * 1024 * 1024;

impl OpenAi {
    /// Writes down what is said in a sound file.
    pub(super) async fn transcription(&self, call: &Call) -> Result<Finished, Failure> {
        let params = Params(&call.params);
        let url = self.link.url("audio/transcriptions")?;
        let sound = ["audio", "file"]
            .iter()
            .find_map(|key| references(call.params.get(*key)).into_iter().next());
        let missing = || Failure::new(Class::InvalidInput, "a transcript needs a sound file").unsent();
        let sound = sound.ok_or_else(missing)?;
        let bytes = self.link.input(sound).await?;
        let mime = sound.mime_type.clone().unwrap_or_else(|| "audio/wav".to_owned());
        let build = || {
            let length = bytes.len() as u64;
            let file = Part::stream_with_length(bytes.clone(), length)
                .file_name("audio.wav")
                .mime_str(&mime);
            let file = file
                .map_err(|_| Failure::new(Class::InvalidInput, "the sound file cannot be sent").unsent())?;
            let mut form = Form::new().text("model", call.model.clone()).part("file", file);
            for key in ["language", "prompt"] {
                if let Some(text) = params.text(key) {
                    form = form.text(key, text.to_owned());
                }
            }
            Ok(self.link.client().post(url.clone()).multipart(form))
        };
        let response = self.send(call, false, build).await?;
        let body = self.link.body(response, MAX_ANSWER).await?;
        let answer: Transcript = serde_json::from_slice(&body).map_err(|_| self.link.unreadable(&body))?;
        let usage = answer.usage.as_ref();
        let seconds = usage.and_then(|usage| usage.seconds.as_ref()?.to_string().parse::<Decimal>().ok());
        let usage = Usage {
            input_tokens: usage.and_then(|usage| usage.input_tokens),
            output_tokens: usage.and_then(|usage| usage.output_tokens),
            cached_tokens: None,
            seconds,
        };
        Ok(Finished {
            outputs: vec![Output::Text(answer.text)],
            usage,
        })
    }
}

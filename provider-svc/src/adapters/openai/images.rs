//! Pictures: from text, by editing, and streamed with what there is of them so far.

use atelier_common::backoff;
use atelier_proto::value::{BytesForm, MediaRef, Value, to_json};
use bytes::Bytes;
use reqwest::multipart::{Form, Part};
use serde_json::{Map as JsonMap, Value as Json};

use super::OpenAi;
use super::errors::{in_stream, said_json};
use super::media::{picture, references, sniffed};
use super::sse::Cutter;
use super::wire::{Image, ImageEvent, ImageUsage, Images};
use crate::provider::{Call, Class, Emit, Failure, Finished, Output, Params, Usage};
use crate::seam::calling::{FETCH_PAUSES, may_pass};

/// Parameters that are passed on as they are.
const PASSED: &[&str] = &[
    "quality",
    "output_format",
    "output_compression",
    "background",
    "moderation",
    "style",
    "user",
];
/// Most references of an edit.
const MAX_REFERENCES: usize = 16;

impl OpenAi {
    /// Makes pictures from text.
    pub(super) async fn images(&self, call: &Call, emit: &dyn Emit) -> Result<Finished, Failure> {
        let params = Params(&call.params);
        let url = self.url("images/generations")?;
        let mut body = fields(call);
        let partial = params.int("partial_images").unwrap_or(0).clamp(0, 3);
        let streamed = params.flag("stream").unwrap_or(false) || partial > 0;
        if streamed {
            body.insert("stream".to_owned(), true.into());
            body.insert("partial_images".to_owned(), partial.max(1).into());
        }
        let build = || Ok(self.client.post(url.clone()).json(&body));
        let response = self.send(call, false, build).await?;
        let format = params.text("output_format");
        if streamed && crate::adapters::web::content_type(response.headers()).starts_with("text/event-stream")
        {
            return self.streamed(response, emit, partial.max(1), format).await;
        }
        self.pictures(response, format, params.outputs()).await
    }

    /// Makes pictures from pictures, with a mask when there is one.
    pub(super) async fn edit(&self, call: &Call) -> Result<Finished, Failure> {
        let params = Params(&call.params);
        let url = self.url("images/edits")?;
        let named = ["images", "image", "image_refs", "reference_images"];
        let images: Vec<&MediaRef> = named
            .iter()
            .flat_map(|key| references(call.params.get(*key)))
            .collect();
        if images.is_empty() || images.len() > MAX_REFERENCES {
            return Err(Failure::new(Class::InvalidInput, "an edit needs 1 to 16 pictures").unsent());
        }
        let mut parts = Vec::new();
        for (number, image) in images.into_iter().enumerate() {
            parts.push(("image[]", format!("image-{number}"), self.input(image).await?));
        }
        for mask in references(call.params.get("mask")).into_iter().take(1) {
            parts.push(("mask", "mask".to_owned(), self.input(mask).await?));
        }
        let fields = fields(call);
        let build = || Ok(self.client.post(url.clone()).multipart(form(&fields, &parts)?));
        let response = self.send(call, false, build).await?;
        self.pictures(response, params.text("output_format"), params.outputs())
            .await
    }

    async fn pictures(
        &self,
        response: reqwest::Response,
        format: Option<&str>,
        count: i64,
    ) -> Result<Finished, Failure> {
        let count = u64::try_from(count).unwrap_or(1);
        let limit = self
            .settings
            .max_media_bytes
            .saturating_mul(count)
            .saturating_mul(3)
            / 2;
        let body = self.body(response, limit).await?;
        let answer: Images = serde_json::from_slice(&body).map_err(|_| self.unreadable(&body))?;
        drop(body);
        let mut outputs = Vec::new();
        for image in answer.data {
            let bytes = match &image {
                Image {
                    b64_json: Some(text), ..
                } if !text.is_empty() => self.decoded(text)?,
                Image {
                    url: Some(address), ..
                } => {
                    // The picture is paid for: one bad answer of its store must not lose it.
                    let fetch = || self.fetched(address);
                    backoff::retry(backoff::fixed(FETCH_PAUSES), fetch, may_pass).await?
                }
                Image { .. } => continue,
            };
            let mut media = picture(bytes, format);
            if let Some(revised) = image.revised_prompt {
                media
                    .extra
                    .insert("revised_prompt".to_owned(), Value::from(revised));
            }
            outputs.push(Output::Media(media));
        }
        if outputs.is_empty() {
            return Err(
                Failure::new(Class::ProviderPermanent, "the answer has no picture").because("no_output"),
            );
        }
        Ok(Finished {
            outputs,
            usage: usage(answer.usage),
        })
    }

    async fn streamed(
        &self,
        mut response: reqwest::Response,
        emit: &dyn Emit,
        partial: i64,
        format: Option<&str>,
    ) -> Result<Finished, Failure> {
        let mut cutter = Cutter::default();
        let mut finished = None;
        let cut = || Failure::unknown_submit("the stream broke off before the picture was done");
        while let Some(chunk) = response.chunk().await.map_err(|_| cut())? {
            for event in cutter
                .push(&chunk)
                .map_err(|_| crate::adapters::web::bad("an event is too long"))?
            {
                finished = self.picture_event(&event, emit, partial, format)?.or(finished);
            }
        }
        if let Some(event) = cutter.finish() {
            finished = self.picture_event(&event, emit, partial, format)?.or(finished);
        }
        finished.ok_or_else(cut)
    }

    fn picture_event(
        &self,
        event: &str,
        emit: &dyn Emit,
        partial: i64,
        format: Option<&str>,
    ) -> Result<Option<Finished>, Failure> {
        let Ok(json) = serde_json::from_str::<Json>(event) else {
            return Ok(None);
        };
        if json.get("error").is_some_and(|error| !error.is_null()) {
            let mut failure = in_stream(&said_json(&json));
            failure.message = self.scrub(&failure.message);
            return Err(failure);
        }
        let Ok(event) = serde_json::from_value::<ImageEvent>(json) else {
            return Ok(None);
        };
        let Some(text) = &event.b64_json else {
            return Ok(None);
        };
        let media = picture(self.decoded(text)?, format);
        if event.kind.ends_with(".completed") {
            return Ok(Some(Finished {
                outputs: vec![Output::Media(media)],
                usage: usage(event.usage),
            }));
        }
        let preview = MediaRef {
            kind: "image".to_owned(),
            data: Some(media.bytes),
            mime_type: Some(media.mime),
            ..MediaRef::default()
        };
        let done = event.partial_image_index.unwrap_or(0) + 1;
        emit.progress(done, partial + 1, Some(preview));
        Ok(None)
    }
}

/// The fields that generating and editing share.
fn fields(call: &Call) -> JsonMap<String, Json> {
    let params = Params(&call.params);
    let mut body = JsonMap::new();
    body.insert("model".to_owned(), call.model.clone().into());
    body.insert(
        "prompt".to_owned(),
        params.text("prompt").unwrap_or_default().into(),
    );
    body.insert("n".to_owned(), params.outputs().into());
    if let Some(size) = size(params) {
        body.insert("size".to_owned(), size.into());
    }
    for key in PASSED {
        if let Some(value) = call.params.get(*key).filter(|value| !value.is_null()) {
            body.insert((*key).to_owned(), to_json(value, BytesForm::Tagged));
        }
    }
    if call.model.starts_with("dall-e") {
        body.insert("response_format".to_owned(), "b64_json".into());
    }
    body
}

fn size(params: Params<'_>) -> Option<String> {
    if let Some(size) = params.text("size") {
        return Some(size.to_owned());
    }
    if let (Some(width), Some(height)) = (params.int("width"), params.int("height")) {
        return Some(format!("{width}x{height}"));
    }
    let (width, height) = params.text("aspect_ratio")?.split_once(':')?;
    let (width, height): (f64, f64) = (width.parse().ok()?, height.parse().ok()?);
    let size = if width > height {
        "1536x1024"
    } else if width < height {
        "1024x1536"
    } else {
        "1024x1024"
    };
    Some(size.to_owned())
}

fn form(fields: &JsonMap<String, Json>, parts: &[(&'static str, String, Bytes)]) -> Result<Form, Failure> {
    let mut form = Form::new();
    for (name, value) in fields {
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), ToOwned::to_owned);
        form = form.text(name.clone(), text);
    }
    for (name, stem, bytes) in parts {
        let mime = sniffed(bytes).unwrap_or("image/png");
        let file = format!("{stem}.{}", mime.rsplit('/').next().unwrap_or("png"));
        let length = bytes.len() as u64;
        let part = Part::stream_with_length(bytes.clone(), length)
            .file_name(file)
            .mime_str(mime);
        let part =
            part.map_err(|_| Failure::new(Class::InvalidInput, "a picture cannot be sent").unsent())?;
        form = form.part(*name, part);
    }
    Ok(form)
}

fn usage(usage: Option<ImageUsage>) -> Usage {
    Usage {
        input_tokens: usage.and_then(|usage| usage.input_tokens),
        output_tokens: usage.and_then(|usage| usage.output_tokens),
        ..Usage::default()
    }
}

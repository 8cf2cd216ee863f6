//! A request in a provider's words, and what of it a restart needs.

use bytes::Bytes;
use reqwest::multipart::{Form, Part};
use reqwest::{Method, RequestBuilder};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::adapters::http::{Link, sniffed};
use crate::provider::{Call, Class, Failure};

/// A request.
#[derive(Debug, Clone)]
pub struct Order {
    pub(crate) method: Method,
    /// Below the API's address, or an absolute path on its host.
    pub(crate) path: String,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Body,
    pub(crate) answer: Answer,
}

/// What is sent along.
#[derive(Debug, Clone)]
pub(crate) enum Body {
    /// Nothing.
    Empty,
    /// JSON.
    Json(Json),
    /// The parts of a form.
    Form(Vec<Field>),
}

/// A part of a form.
#[derive(Debug, Clone)]
pub(crate) enum Field {
    /// A text.
    Text(&'static str, String),
    /// A file, named by its type.
    File(&'static str, Bytes),
}

/// What kind of answer is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// JSON or bytes, read to the end.
    Whole,
    /// Sound, whose pieces are told as they come.
    Sound,
    /// Server-sent events of JSON, whose texts are told as they come.
    Events,
}

impl Order {
    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path, Body::Empty)
    }
    pub(crate) fn post(path: impl Into<String>, body: Json) -> Self {
        Self::new(Method::POST, path, Body::Json(body))
    }
    pub(crate) fn form(path: impl Into<String>, fields: Vec<Field>) -> Self {
        Self::new(Method::POST, path, Body::Form(fields))
    }
    pub(crate) fn new(method: Method, path: impl Into<String>, body: Body) -> Self {
        Self {
            method,
            path: path.into(),
            headers: Vec::new(),
            body,
            answer: Answer::Whole,
        }
    }
    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
    pub(crate) fn answered(mut self, answer: Answer) -> Self {
        self.answer = answer;
        self
    }

    /// The HTTP request, without the key.
    pub(super) fn build(&self, link: &Link) -> Result<RequestBuilder, Failure> {
        let mut request = link.client().request(self.method.clone(), link.url(&self.path)?);
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        Ok(match &self.body {
            Body::Empty => request,
            Body::Json(json) => request.json(json),
            Body::Form(fields) => request.multipart(form(fields)?),
        })
    }
}

fn form(fields: &[Field]) -> Result<Form, Failure> {
    let mut form = Form::new();
    for field in fields {
        form = match field {
            Field::Text(name, text) => form.text(*name, text.clone()),
            Field::File(name, bytes) => {
                let mime = sniffed(bytes).unwrap_or("application/octet-stream");
                let ending = mime.rsplit('/').next().unwrap_or("bin");
                let part = Part::stream_with_length(bytes.clone(), bytes.len() as u64)
                    .file_name(format!("{name}.{ending}"))
                    .mime_str(mime);
                let part =
                    part.map_err(|_| Failure::new(Class::InvalidInput, "a file cannot be sent").unsent())?;
                form.part(*name, part)
            }
        };
    }
    Ok(form)
}

/// What has to be known of a job to ask for it from any process: the resume token, as JSON.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Ticket {
    /// The provider's id of the job.
    pub(crate) id: String,
    /// The model.
    #[serde(default)]
    pub(crate) model: String,
    /// The capability.
    #[serde(default)]
    pub(crate) capability: String,
    /// What else the provider wants to be told.
    #[serde(default, skip_serializing_if = "Json::is_null")]
    pub(crate) more: Json,
}

impl Ticket {
    pub(super) fn of(call: &Call) -> Self {
        Self {
            id: String::new(),
            model: call.model.clone(),
            capability: call.capability.as_str().to_owned(),
            more: Json::Null,
        }
    }

    /// What the job makes.
    pub(crate) fn kind(&self) -> &'static str {
        use crate::provider::{Capability, Medium};
        match Capability::parse(&self.capability).map(Capability::medium) {
            Some(Medium::Video) => "video",
            Some(Medium::Audio) => "audio",
            Some(Medium::Model3d) => "model_3d",
            Some(Medium::Image | Medium::Text) | None => "image",
        }
    }

    /// A text of what else is known.
    pub(crate) fn more(&self, key: &str) -> &str {
        self.more.get(key).and_then(Json::as_str).unwrap_or_default()
    }

    pub(super) fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    pub(super) fn read(text: &str) -> Result<Self, Failure> {
        serde_json::from_str(text)
            .map_err(|_| Failure::new(Class::ProviderPermanent, "the resume token cannot be read"))
    }
}

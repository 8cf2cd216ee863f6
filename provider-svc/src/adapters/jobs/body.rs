//! Putting requests together out of parameters.

use atelier_proto::value::{BytesForm, Map, MediaRef, Value, to_json};
use futures_util::future::BoxFuture;
use serde_json::{Map as JsonMap, Value as Json};

use crate::adapters::http::{Link, address, base64_of, references};
use crate::provider::{Call, Class, Failure, Params};

/// A JSON object while it is put together.
pub(crate) struct Fields<'a> {
    call: &'a Call,
    json: JsonMap<String, Json>,
}

impl<'a> Fields<'a> {
    pub(crate) fn of(call: &'a Call) -> Self {
        Self {
            call,
            json: JsonMap::new(),
        }
    }

    /// Sets a field.
    pub(crate) fn set(mut self, key: &str, value: impl Into<Json>) -> Self {
        self.json.insert(key.to_owned(), value.into());
        self
    }

    /// Sets a field when there is a value.
    pub(crate) fn maybe(mut self, key: &str, value: Option<impl Into<Json>>) -> Self {
        if let Some(value) = value {
            self.json.insert(key.to_owned(), value.into());
        }
        self
    }

    /// Passes parameters on under their own names, as far as they are there.
    pub(crate) fn pass(mut self, keys: &[&str]) -> Self {
        for key in keys {
            if let Some(value) = self.call.params.get(*key).filter(|value| !value.is_null()) {
                self.json.insert((*key).to_owned(), plain(value));
            }
        }
        self
    }

    pub(crate) fn json(self) -> Json {
        Json::Object(self.json)
    }
}

/// A value as JSON in which media are addresses.
pub(crate) fn plain(value: &Value) -> Json {
    match value {
        Value::Media(media) => address(media).into(),
        Value::Bytes(bytes) => base64_of(bytes).into(),
        Value::List(values) => values.iter().map(plain).collect::<Vec<_>>().into(),
        Value::Map(entries) => Json::Object(
            entries
                .iter()
                .map(|(key, value)| (key.clone(), plain(value)))
                .collect(),
        ),
        other => to_json(other, BytesForm::Tagged),
    }
}

/// The pictures that a request names, wherever it names them.
pub(crate) fn pictures(call: &Call) -> Vec<&MediaRef> {
    let named = [
        "image",
        "images",
        "image_refs",
        "reference_images",
        "first_frame",
        "start_image",
    ];
    named
        .iter()
        .flat_map(|key| references(call.params.get(*key)))
        .collect()
}

/// The words of a request: its prompt, or the text that is spoken.
pub(crate) fn told_text(call: &Call) -> &str {
    Params(&call.params)
        .first_text(&["prompt", "text", "input", "lyrics"])
        .unwrap_or_default()
}

/// The parameters with the bytes of all media that they name by an address of the web.
pub(crate) async fn inline(link: &Link, params: &Map) -> Result<Map, Failure> {
    let mut out = Map::with_capacity(params.len());
    for (key, value) in params {
        out.insert(key.clone(), inlined(link, value).await?);
    }
    Ok(out)
}

fn inlined<'a>(link: &'a Link, value: &'a Value) -> BoxFuture<'a, Result<Value, Failure>> {
    Box::pin(async move {
        Ok(match value {
            Value::Media(media) if media.data.is_none() && !media.uri.is_empty() => Value::media(MediaRef {
                data: Some(link.input(media).await?),
                ..media.as_ref().clone()
            }),
            Value::List(values) => {
                let mut out = Vec::with_capacity(values.len());
                for inner in values.iter() {
                    out.push(inlined(link, inner).await?);
                }
                Value::list(out)
            }
            Value::Map(entries) => {
                let mut out = Map::with_capacity(entries.len());
                for (key, inner) in entries.iter() {
                    out.insert(key.clone(), inlined(link, inner).await?);
                }
                Value::map(out)
            }
            other => other.clone(),
        })
    })
}

/// The failure of a request that lacks something.
pub(crate) fn lacks(what: &str) -> Failure {
    Failure::new(Class::InvalidInput, format!("the request lacks {what}")).unsent()
}

//! Bodies that are read field by field, so that every wrong one is named.

use atelier_proto::common::v1::{MapValue, Value as ValueMessage};
use atelier_proto::value::{from_json, map_from_json};
use serde_json::{Map, Value as Json};

use crate::error::Error;
use crate::wire::value::is_too_deep;

/// An object whose fields are taken one by one. Null counts as absent.
pub(crate) struct Body(Map<String, Json>);

impl Body {
    /// The object of a body.
    ///
    /// # Errors
    /// It is something else.
    pub(crate) fn of(json: Json) -> Result<Self, Error> {
        match json {
            Json::Object(object) => Ok(Self(object)),
            _ => Err(Error::field("body", "must be an object")),
        }
    }

    /// A field of any kind.
    pub(crate) fn take(&mut self, key: &str) -> Option<Json> {
        self.0.remove(key).filter(|value| !value.is_null())
    }

    /// A field in which null means something.
    pub(crate) fn take_even_null(&mut self, key: &str) -> Option<Json> {
        self.0.remove(key)
    }

    /// A text.
    ///
    /// # Errors
    /// It is something else.
    pub(crate) fn text(&mut self, key: &str) -> Result<Option<String>, Error> {
        match self.take(key) {
            None => Ok(None),
            Some(Json::String(text)) => Ok(Some(text)),
            Some(_) => Err(Error::field(key, "must be text")),
        }
    }

    /// A text that must be there.
    ///
    /// # Errors
    /// It is missing, empty, or something else.
    pub(crate) fn needed(&mut self, key: &str) -> Result<String, Error> {
        let text = self.text(key)?.filter(|text| !text.is_empty());
        text.ok_or_else(|| Error::field(key, "is missing"))
    }

    /// A flag; absent is false.
    ///
    /// # Errors
    /// It is something else.
    pub(crate) fn flag(&mut self, key: &str) -> Result<bool, Error> {
        match self.take(key) {
            None => Ok(false),
            Some(Json::Bool(flag)) => Ok(flag),
            Some(_) => Err(Error::field(key, "must be true or false")),
        }
    }

    /// A whole number.
    ///
    /// # Errors
    /// It is something else.
    pub(crate) fn number(&mut self, key: &str) -> Result<Option<i64>, Error> {
        match self.take(key) {
            None => Ok(None),
            Some(number) => match number.as_i64() {
                Some(number) => Ok(Some(number)),
                None => Err(Error::field(key, "must be a whole number")),
            },
        }
    }

    /// A list of texts.
    ///
    /// # Errors
    /// It is something else.
    pub(crate) fn texts(&mut self, key: &str) -> Result<Option<Vec<String>>, Error> {
        let wrong = || Error::field(key, "must be a list of texts");
        match self.take(key) {
            None => Ok(None),
            Some(Json::Array(values)) => values
                .into_iter()
                .map(|value| match value {
                    Json::String(text) => Ok(text),
                    _ => Err(wrong()),
                })
                .collect::<Result<_, _>>()
                .map(Some),
            Some(_) => Err(wrong()),
        }
    }

    /// An object, as text.
    ///
    /// # Errors
    /// It is something else.
    pub(crate) fn object(&mut self, key: &str) -> Result<Option<String>, Error> {
        match self.take(key) {
            None => Ok(None),
            Some(object) if object.is_object() => Ok(Some(object.to_string())),
            Some(_) => Err(Error::field(key, "must be an object")),
        }
    }

    /// Values by name.
    ///
    /// # Errors
    /// It is no object, or nested deeper than messages can be.
    pub(crate) fn values(&mut self, key: &str) -> Result<Option<MapValue>, Error> {
        let Some(json) = self.take(key) else {
            return Ok(None);
        };
        let map = map_from_json(json).ok_or_else(|| Error::field(key, "must be an object"))?;
        if is_too_deep(&map) {
            return Err(Error::field(key, "is nested too deeply"));
        }
        Ok(Some((&map).into()))
    }

    /// A value; null is one.
    ///
    /// # Errors
    /// It is nested deeper than messages can be.
    pub(crate) fn value(&mut self, key: &str) -> Result<Option<ValueMessage>, Error> {
        let Some(json) = self.take_even_null(key) else {
            return Ok(None);
        };
        let value = from_json(json);
        let map = [(key.to_owned(), value.clone())].into_iter().collect();
        if is_too_deep(&map) {
            return Err(Error::field(key, "is nested too deeply"));
        }
        Ok(Some((&value).into()))
    }

    /// The fields that are left, over others.
    pub(crate) fn rest_over(self, mut others: Map<String, Json>) -> Json {
        others.extend(self.0);
        Json::Object(others)
    }

    /// That nothing is left that nobody asked for.
    ///
    /// # Errors
    /// A field is left.
    pub(crate) fn finish(self) -> Result<(), Error> {
        match self.0.keys().next() {
            Some(unknown) => Err(Error::field(unknown, "is not a field of this request")),
            None => Ok(()),
        }
    }
}

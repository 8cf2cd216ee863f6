//! Serde for secrets in settings: read as text, written as `***`, so that printing settings gives nothing away.
//!
//! Use `#[serde(with = "secret")]` on a `SecretString` and `#[serde(with = "secret::optional")]` on an
//! `Option<SecretString>`. Defaults go through the written form, so a default secret can only be absent or empty.

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer, Serializer};

const HIDDEN: &str = "***";

/// Writes `***`, or nothing for an empty secret.
///
/// # Errors
/// The serializer's.
pub fn serialize<S: Serializer>(secret: &SecretString, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(if secret.expose_secret().is_empty() {
        ""
    } else {
        HIDDEN
    })
}

/// Reads a text.
///
/// # Errors
/// The deserializer's.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SecretString, D::Error> {
    String::deserialize(deserializer).map(SecretString::from)
}

/// The same for secrets that may be absent.
pub mod optional {
    use super::{Deserialize, Deserializer, HIDDEN, SecretString, Serializer};

    /// Writes `***` or null.
    ///
    /// # Errors
    /// The serializer's.
    pub fn serialize<S: Serializer>(secret: &Option<SecretString>, serializer: S) -> Result<S::Ok, S::Error> {
        match secret {
            Some(_) => serializer.serialize_some(HIDDEN),
            None => serializer.serialize_none(),
        }
    }

    /// Reads a text or null.
    ///
    /// # Errors
    /// The deserializer's.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SecretString>, D::Error> {
        Ok(Option::<String>::deserialize(deserializer)?.map(SecretString::from))
    }
}

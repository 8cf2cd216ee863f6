//! Typed ids. They are UUIDs of version 7 where atelier makes them; a job id may be any text that its client chose.

use std::{fmt, marker::PhantomData, str::FromStr};

use uuid::Uuid;

/// An id of one kind of thing; kinds are not interchangeable.
pub struct Id<K>(Uuid, PhantomData<fn() -> K>);

impl<K> Id<K> {
    /// Makes an id that sorts after all that were made before it.
    #[must_use]
    pub fn new() -> Self {
        Self(Uuid::now_v7(), PhantomData)
    }
    /// Wraps a UUID.
    #[must_use]
    pub const fn from_uuid(uuid: Uuid) -> Self {
        Self(uuid, PhantomData)
    }
    /// The UUID.
    #[must_use]
    pub const fn uuid(self) -> Uuid {
        self.0
    }
}
impl<K> Default for Id<K> {
    fn default() -> Self {
        Self::new()
    }
}
impl<K> Clone for Id<K> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K> Copy for Id<K> {}
impl<K> PartialEq for Id<K> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl<K> Eq for Id<K> {}
impl<K> PartialOrd for Id<K> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<K> Ord for Id<K> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}
impl<K> std::hash::Hash for Id<K> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}
impl<K> fmt::Display for Id<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
impl<K> fmt::Debug for Id<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
/// The text is not an id.
#[derive(Debug, Clone, thiserror::Error)]
#[error("not a valid id")]
pub struct ParseIdError;

impl<K> FromStr for Id<K> {
    type Err = ParseIdError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::parse_str(text)
            .map(Self::from_uuid)
            .map_err(|_| ParseIdError)
    }
}
impl<K> serde::Serialize for Id<K> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
impl<'de, K> serde::Deserialize<'de> for Id<K> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Kinds of ids.
pub mod kind {
    /// A row of the ledger.
    #[derive(Debug)]
    pub enum Generation {}
    /// A stored asset.
    #[derive(Debug)]
    pub enum Asset {}
    /// A start of a process.
    #[derive(Debug)]
    pub enum Instance {}
}
/// Id of a row of the ledger.
pub type GenerationId = Id<kind::Generation>;
/// Id of a stored asset.
pub type AssetId = Id<kind::Asset>;
/// Id of a start of a process.
pub type InstanceId = Id<kind::Instance>;

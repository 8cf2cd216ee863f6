//! What leaves the run for a supervisor: no secrets, no media bytes, and not too much of anything. Applied where an
//! escalation is built, so that what is kept is clean already (B-66).

use std::sync::{Arc, LazyLock};

use atelier_common::secrets::{is_secret_key, without_signature};
use atelier_proto::value::{Map, MediaRef, Value};
use regex::{Captures, Regex};

/// Longest text, in characters.
const MAX_CHARS: usize = 2_000;
/// Longest list, and most entries of a map.
const MAX_ITEMS: usize = 100;
/// Values within values.
const MAX_DEPTH: usize = 6;
/// Longest name of an entry, in characters.
const MAX_NAME: usize = 200;
/// Stands for a secret.
const MASK: &str = "[redacted]";
/// Stands for what lies too deep.
const DEEP: &str = "…";

/// Shapes of keys and tokens, where nothing but the text says that they are some. The first group is kept.
static SHAPES: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let shapes = [
        r"(?i)(\b(?:bearer|basic)\s+)[a-z0-9._~+/=-]{8,}",
        r#"(?i)(\b(?:x-)?(?:api[_-]?key|authorization|access_token|refresh_token|client_secret|secret|password|token)["']?\s*[:=]\s*["']?)[^\s"',;&]+"#,
        r"()\b(?:sk|pk|rk|ghp|gho|ghs|hf|r8|xox[abprs])[-_][A-Za-z0-9_-]{8,}",
        r"()\bAIza[A-Za-z0-9_-]{20,}",
        r"()\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*",
    ];
    shapes.iter().filter_map(|shape| Regex::new(shape).ok()).collect()
});
/// Addresses, and media within a text.
static ADDRESS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"(?i)(?:https?://|data:[a-z0-9.+-]*/?[a-z0-9.+-]*;)[^\s"'<>)]+"#).ok());

/// Redacts with the secrets that the run is known to hold.
#[derive(Debug, Default)]
pub(crate) struct Redactor {
    /// Longest first, so that one which holds another is hidden whole.
    secrets: Vec<Arc<str>>,
}
impl Redactor {
    pub fn new(mut secrets: Vec<Arc<str>>) -> Self {
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.dedup();
        Self { secrets }
    }
    /// A text without secrets, cut.
    pub fn text(&self, text: &str) -> String {
        // Nobody reads what lies far beyond the cut.
        let mut clean: String = text.chars().take(MAX_CHARS * 8).collect();
        let torn = clean.len() < text.len();
        for secret in &self.secrets {
            if clean.contains(&**secret) {
                clean = clean.replace(&**secret, MASK);
            }
        }
        if torn {
            // Half a secret may be left at the end.
            let longest = self.secrets.first().map_or(0, |secret| secret.chars().count());
            for _ in 0..longest {
                clean.pop();
            }
        }
        if let Some(address) = ADDRESS.as_ref()
            && address.is_match(&clean)
        {
            let shorten = |found: &Captures<'_>| {
                let whole = found.get(0).map_or("", |all| all.as_str());
                let media = whole
                    .get(..5)
                    .is_some_and(|start| start.eq_ignore_ascii_case("data:"));
                match (media, without_signature(whole)) {
                    (true, _) => "data:…".to_owned(),
                    (false, Some(unsigned)) => unsigned,
                    (false, None) => whole.to_owned(),
                }
            };
            clean = address.replace_all(&clean, shorten).into_owned();
        }
        for shape in SHAPES.iter() {
            if shape.is_match(&clean) {
                clean = shape.replace_all(&clean, format!("${{1}}{MASK}")).into_owned();
            }
        }
        match clean.char_indices().nth(MAX_CHARS) {
            Some((end, _)) => {
                clean.truncate(end);
                clean
            }
            None => clean,
        }
    }
    /// The entries of a map.
    pub fn map(&self, map: &Map) -> Map {
        self.entries(map, 1)
    }
    /// A value with its name, which may say that it is a secret.
    pub fn shown(&self, name: &str, value: &Value) -> Value {
        if is_secret_key(name) && !value.is_null() {
            MASK.into()
        } else {
            self.value(value, 1)
        }
    }
    fn entries(&self, map: &Map, depth: usize) -> Map {
        map.iter()
            .take(MAX_ITEMS)
            .map(|(name, value)| {
                let secret = is_secret_key(name) && !value.is_null();
                let value = if secret {
                    MASK.into()
                } else {
                    self.value(value, depth)
                };
                (self.name(name), value)
            })
            .collect()
    }
    fn name(&self, name: &str) -> String {
        let clean = self.text(name);
        clean.chars().take(MAX_NAME).collect()
    }
    /// A value that lies at some depth.
    fn value(&self, value: &Value, depth: usize) -> Value {
        match value {
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => value.clone(),
            Value::Str(text) => self.text(text).into(),
            Value::Bytes(bytes) => length_of(bytes.len()),
            Value::List(_) | Value::Map(_) if depth >= MAX_DEPTH => DEEP.into(),
            Value::List(values) => {
                let values = values.iter().take(MAX_ITEMS);
                Value::list(values.map(|value| self.value(value, depth + 1)).collect())
            }
            Value::Map(map) => self.entries(map, depth + 1).into(),
            Value::Media(media) => self.media(media, depth),
        }
    }
    fn media(&self, media: &MediaRef, depth: usize) -> Value {
        let mut out = Map::new();
        out.insert("type".to_owned(), self.text(&media.kind).into());
        if !media.uri.is_empty() {
            out.insert("uri".to_owned(), self.text(&media.uri).into());
        }
        for (key, text) in [("asset_id", &media.asset_id), ("mime_type", &media.mime_type)] {
            if let Some(text) = text {
                out.insert(key.to_owned(), self.text(text).into());
            }
        }
        if let Some(data) = &media.data {
            out.insert("data".to_owned(), length_of(data.len()));
        }
        if depth < MAX_DEPTH {
            out.extend(self.entries(&media.extra, depth + 1));
        }
        out.into()
    }
}

fn length_of(bytes: usize) -> Value {
    let length = i64::try_from(bytes).unwrap_or(i64::MAX);
    Map::from_iter([
        ("type".to_owned(), "bytes".into()),
        ("length".to_owned(), length.into()),
    ])
    .into()
}

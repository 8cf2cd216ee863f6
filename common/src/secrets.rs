//! How a secret is told apart from what may be stored and shown: by the name of its field, or as a signed address.
//!
//! One list for all who keep what others wrote, so that what one of them hides, another does not show. Pure.

use url::Url;

/// Names of fields whose values are secrets, in lower case.
const KEYS: [&str; 9] = [
    "api_key",
    "apikey",
    "x-api-key",
    "authorization",
    "access_token",
    "refresh_token",
    "client_secret",
    "secret",
    "password",
];

/// Whether the value of a field is a secret, by the field's name in any case.
#[must_use]
pub fn is_secret_key(key: &str) -> bool {
    KEYS.iter().any(|secret| key.eq_ignore_ascii_case(secret))
}

/// A signed HTTP address without its query, which is the right to read what is there; `None` for other texts.
#[must_use]
pub fn without_signature(content: &str) -> Option<String> {
    let trimmed = content.trim();
    let scheme = trimmed.get(..8)?.to_ascii_lowercase();
    if !(scheme.starts_with("http://") || scheme.starts_with("https://"))
        || trimmed.contains(char::is_whitespace)
    {
        return None;
    }
    let url = Url::parse(trimmed).ok()?;
    let signed = url
        .query_pairs()
        .any(|(key, _)| is_signature(&key.to_ascii_lowercase()));
    let (address, _) = trimmed.split_once('?')?;
    signed.then(|| format!("{address}?redacted"))
}

fn is_signature(key: &str) -> bool {
    matches!(
        key,
        "sig" | "token" | "key" | "api_key" | "apikey" | "se" | "policy"
    ) || key.ends_with("signature")
        || key.ends_with("_token")
        || key.starts_with("x-amz-")
        || key.starts_with("x-goog-")
}

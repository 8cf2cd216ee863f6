//! Reading answers with a limit, and what their heads say.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use chrono::{DateTime, Utc};
use reqwest::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use reqwest::{Response, StatusCode};

/// An answer that was read to its end.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    /// The status.
    pub(crate) status: StatusCode,
    /// The head.
    pub(crate) headers: HeaderMap,
    /// The body; of a stream of events, a JSON list of them.
    pub(crate) body: Bytes,
}
impl Reply {
    /// The body as JSON; null when it is none.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// A header that is text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }
}

/// A header that is text.
pub(crate) fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .map(str::trim)
}

/// Why a body was not read.
#[derive(Debug)]
pub(super) enum ReadError {
    TooLarge,
    Broken,
}

/// Reads a body piece by piece, so that one without end is given up at the limit.
pub(super) async fn read(mut response: Response, limit: usize) -> Result<Bytes, ReadError> {
    let stated = response
        .content_length()
        .and_then(|length| usize::try_from(length).ok());
    if stated.is_some_and(|length| length > limit) {
        return Err(ReadError::TooLarge);
    }
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await.map_err(|_| ReadError::Broken)? {
        if body.len() + chunk.len() > limit {
            return Err(ReadError::TooLarge);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

/// The stated type, in lower case; empty when there is none.
pub(crate) fn content_type(headers: &HeaderMap) -> String {
    header(headers, CONTENT_TYPE.as_str())
        .unwrap_or_default()
        .to_ascii_lowercase()
}

/// How long the provider asks to wait: milliseconds, seconds, a date, or a field of the body.
pub(crate) fn retry_after(headers: &HeaderMap, body: &[u8], now: DateTime<Utc>) -> Option<Duration> {
    let text = |name: &str| header(headers, name);
    let seconds = |text: &str| {
        text.parse::<f64>()
            .ok()
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
    };
    if let Some(millis) = text("retry-after-ms").and_then(|text| text.parse::<f64>().ok()) {
        return Duration::try_from_secs_f64(millis / 1_000.0).ok();
    }
    if let Some(text) = text(RETRY_AFTER.as_str()) {
        return seconds(text).or_else(|| {
            let at = DateTime::parse_from_rfc2822(text).ok()?;
            Some((at.with_timezone(&Utc) - now).to_std().unwrap_or_default())
        });
    }
    let body: serde_json::Value = serde_json::from_slice(body).ok()?;
    let field = body
        .get("retry_after")
        .or_else(|| body.get("error")?.get("retry_after"))?;
    seconds(&field.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p_117_every_form_of_retry_after_is_read() {
        let now = DateTime::parse_from_rfc2822("Mon, 30 Nov 2026 12:00:00 GMT")
            .expect("a date")
            .with_timezone(&Utc);
        let of = |name: &'static str, value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().expect("a header"));
            retry_after(&headers, b"", now)
        };
        assert_eq!(of("retry-after", "7"), Some(Duration::from_secs(7)));
        assert_eq!(
            of("retry-after-ms", "1500.5"),
            Some(Duration::from_micros(1_500_500))
        );
        assert!(of("retry-after", "Wed, 21 Oct 2099 07:28:00 GMT") > Some(Duration::from_secs(1 << 30)));
        assert_eq!(
            of("retry-after", "Mon, 30 Nov 2026 11:00:00 GMT"),
            Some(Duration::ZERO)
        );
        assert_eq!(of("retry-after", "soon"), None);
        assert_eq!(of("retry-after", "-3"), None);
        assert_eq!(
            retry_after(&HeaderMap::new(), b"{\"retry_after\": 2}", now),
            Some(Duration::from_secs(2))
        );
    }
}

//! Arguments of handlers. They are axum's own, but what they refuse is answered in the shape of every other error.

use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::{HeaderMap, StatusCode, header, request::Parts};
use bytes::BytesMut;
use futures_util::StreamExt;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use crate::app::App;
use crate::error::{Error, http_reason};

/// How long the rest of a refused body is read and thrown away, so that its sender gets to see the answer.
const DISCARD: Duration = Duration::from_secs(20);

/// The fields of a query; an unknown one is refused.
#[derive(Debug)]
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Error> {
        match axum::extract::Query::<T>::from_request_parts(parts, state).await {
            Ok(axum::extract::Query(query)) => Ok(Self(query)),
            Err(rejection) => Err(wrong_query(&rejection.body_text())),
        }
    }
}

/// Finds the field in the text of a refusal: `…: limit: invalid digit`, or an unknown one in backticks.
fn wrong_query(text: &str) -> Error {
    let text = text.split_once("query string: ").map_or(text, |(_, rest)| rest);
    let is_name =
        |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if let Some(name) = text.split('`').nth(1).filter(|_| text.contains("unknown field")) {
        return Error::field(name, "is not a parameter of this request");
    }
    match text.split_once(": ").filter(|(name, _)| is_name(name)) {
        Some((name, wrong)) => Error::field(name, format!("cannot be read: {wrong}")),
        None => Error::field("query", format!("cannot be read: {text}")),
    }
}

/// The parameters of a path.
#[derive(Debug)]
pub(crate) struct Path<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Error> {
        match axum::extract::Path::<T>::from_request_parts(parts, state).await {
            Ok(axum::extract::Path(path)) => Ok(Self(path)),
            Err(rejection) => Err(Error::field(
                "path",
                format!("cannot be read: {}", rejection.body_text()),
            )),
        }
    }
}

/// A body of JSON that may carry a graph, within the limit for graphs.
#[derive(Debug)]
pub(crate) struct JsonBody(pub(crate) Json);

impl FromRequest<App> for JsonBody {
    type Rejection = Error;

    async fn from_request(request: Request, app: &App) -> Result<Self, Error> {
        let limit = app.settings.max_graph_bytes.min(app.settings.max_body_bytes);
        let (parts, body) = request.into_parts();
        if !is_json(&parts.headers) {
            return Err(Error::Http {
                status: StatusCode::UNSUPPORTED_MEDIA_TYPE,
                code: "unsupported_media_type",
                reason: http_reason::UNSUPPORTED_MEDIA_TYPE,
                message: "the body must be application/json".to_owned(),
            });
        }
        let bytes = read(app, body, limit).await?;
        serde_json::from_slice(&bytes)
            .map(Self)
            .map_err(|error| Error::Http {
                status: StatusCode::BAD_REQUEST,
                code: "invalid_argument",
                reason: http_reason::MALFORMED_JSON,
                message: format!("the body is not JSON: {error}"),
            })
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let stated = headers
        .get(header::CONTENT_TYPE)
        .and_then(|stated| stated.to_str().ok())
        .unwrap_or_default();
    let essence = stated
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"))
}

/// Reads a body up to a limit. One that says that it is larger is refused before anything of it is kept.
async fn read(app: &App, body: Body, limit: usize) -> Result<BytesMut, Error> {
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    let mut stream = body.into_data_stream();
    let mut bytes = BytesMut::new();
    let mut refused = announced > limit;
    while !refused {
        match stream.next().await {
            None => return Ok(bytes),
            Some(Ok(piece)) if bytes.len().saturating_add(piece.len()) <= limit => {
                bytes.extend_from_slice(&piece)
            }
            Some(Ok(_)) => refused = true,
            Some(Err(_)) => {
                return Err(Error::Http {
                    status: StatusCode::BAD_REQUEST,
                    code: "invalid_argument",
                    reason: http_reason::BODY_INCOMPLETE,
                    message: "the body broke off".to_owned(),
                });
            }
        }
    }
    drop(bytes);
    app.tasks.spawn("discard body", async move {
        let rest = async { while let Some(Ok(_)) = stream.next().await {} };
        // Ending early closes the connection, which is all there is left to do.
        let _ = tokio::time::timeout(DISCARD, rest).await;
    });
    Err(Error::Http {
        status: StatusCode::PAYLOAD_TOO_LARGE,
        code: "payload_too_large",
        reason: http_reason::BODY_TOO_LARGE,
        message: format!("the body is larger than {limit} bytes"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field_of(text: &str) -> String {
        match wrong_query(text) {
            Error::Field { field, .. } => field,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn the_wrong_parameter_is_named() {
        assert_eq!(
            field_of("Failed to deserialize query string: limit: invalid digit found in string"),
            "limit"
        );
        assert_eq!(
            field_of("Failed to deserialize query string: unknown field `jobid`, expected `a`"),
            "jobid"
        );
        assert_eq!(field_of("Failed to deserialize query string: something"), "query");
    }
}

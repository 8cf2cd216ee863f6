//! What wraps every request: its id, its trace, the rendering of problems, the count of answers, trailing slashes.

use std::any::Any;

use atelier_common::trace;
use atelier_proto::reason;
use axum::Json;
use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tower_http::cors::{AllowOrigin, Any as Every, CorsLayer};
use uuid::Uuid;

use crate::auth;
use crate::error::http_reason;
use crate::metrics::REQUESTS;
use crate::problem::Problem;
use crate::settings::Cors;

/// The header that names a request.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Longest id of a request that is taken over.
const MAX_ID: usize = 128;

/// Names the request, puts it into a trace, and gives problems their body.
pub(crate) async fn request_id(request: Request, next: Next) -> Response {
    let id = taken_over(request.headers()).unwrap_or_else(|| Uuid::now_v7().to_string());
    let context =
        trace::Context::extract(request.headers()).map_or_else(trace::Context::root, |above| above.child());
    let method = method_label(request.method());
    let route = request
        .extensions()
        .get::<MatchedPath>()
        .map_or_else(|| "other".to_owned(), |path| path.as_str().to_owned());
    let mut response = context.scope(next.run(request)).await;
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        response = rendered(response, problem, &id);
    }
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    let status = response.status().as_u16().to_string();
    metrics::counter!(REQUESTS, "method" => method, "route" => route, "status" => status).increment(1);
    response
}

/// Puts the body of a problem into its answer, keeping the headers that others gave it.
fn rendered(response: Response, problem: Problem, id: &str) -> Response {
    let (parts, _) = response.into_parts();
    let mut rendered = (parts.status, Json(problem.body(id))).into_response();
    for (name, value) in &parts.headers {
        if name != header::CONTENT_LENGTH && name != header::CONTENT_TYPE {
            rendered.headers_mut().append(name, value.clone());
        }
    }
    rendered
}

fn taken_over(headers: &HeaderMap) -> Option<String> {
    let id = headers.get(&REQUEST_ID)?.to_str().ok()?;
    (!id.is_empty() && id.len() <= MAX_ID).then(|| id.to_owned())
}

/// A closed set: a client may send any word as a method.
fn method_label(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "DELETE" => "DELETE",
        "OPTIONS" => "OPTIONS",
        _ => "other",
    }
}

/// A panic of a handler is a bug of ours and is told as one.
pub(crate) fn panicked(_: Box<dyn Any + Send + 'static>) -> Response {
    tracing::error!("a handler panicked");
    Problem::http(
        StatusCode::INTERNAL_SERVER_ERROR,
        "internal",
        reason::INTERNAL,
        "something went wrong inside",
    )
    .into_response()
}

/// What a route does not know.
pub(crate) async fn method_not_allowed() -> Problem {
    Problem::http(
        StatusCode::METHOD_NOT_ALLOWED,
        "method_not_allowed",
        http_reason::METHOD_NOT_ALLOWED,
        "the route does not know this method",
    )
}

/// What no route knows.
pub(crate) fn route_not_found() -> Problem {
    Problem::http(
        StatusCode::NOT_FOUND,
        "not_found",
        http_reason::ROUTE_NOT_FOUND,
        "there is no such route",
    )
}

/// A path below `/api` means the same with and without a slash at its end.
pub(crate) fn without_slash(mut request: Request) -> Request {
    let uri = request.uri();
    let path = uri.path();
    if path.starts_with("/api/") && path.ends_with('/') {
        let path = path.trim_end_matches('/');
        let shorter = uri
            .query()
            .map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"));
        let mut parts = uri.clone().into_parts();
        parts.path_and_query = shorter.parse().ok();
        if let Ok(shorter) = Uri::from_parts(parts) {
            *request.uri_mut() = shorter;
        }
    }
    request
}

/// Which pages may read answers.
pub(crate) fn cors(settings: Cors) -> CorsLayer {
    let allowed = AllowOrigin::predicate(move |origin, _| {
        origin
            .to_str()
            .is_ok_and(|origin| auth::may_call(origin, &settings))
    });
    CorsLayer::new()
        .allow_origin(allowed)
        .allow_methods(Every)
        .allow_headers(Every)
        .expose_headers([
            REQUEST_ID,
            header::CONTENT_RANGE,
            header::ETAG,
            header::ACCEPT_RANGES,
            header::RETRY_AFTER,
        ])
}

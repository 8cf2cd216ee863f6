//! The built console, from the binary. Every page of it is `index.html`, but only for a browser that asks for a page and
//! never below the paths of the interfaces.

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use rust_embed::{EmbeddedFile, RustEmbed};

use crate::http::{method_not_allowed, route_not_found};

/// What a page of the console may load and whom it may call: this server.
const POLICY: &str = "default-src 'self'; img-src 'self' data: blob:; media-src 'self' data: blob:; \
    style-src 'self' 'unsafe-inline'; connect-src 'self' ws: wss:; font-src 'self' data:; object-src 'none'; \
    base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// Paths that are never pages.
const INTERFACES: &[&str] = &["/api", "/ws", "/v1"];

/// Shown when no console was built in.
const FALLBACK: &str = include_str!("console_fallback.html");

#[derive(RustEmbed)]
#[folder = "web/console/dist"]
#[allow_missing = true]
struct Dist;

/// Answers what no route answers: a file of the console, a page, or that there is no such route.
pub(crate) async fn fallback(request: Request) -> Response {
    let path = request.uri().path();
    let below = |root: &str| {
        path.strip_prefix(root)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    if INTERFACES.iter().any(|root| below(root)) {
        return route_not_found().into_response();
    }
    if request.method() != Method::GET && request.method() != Method::HEAD {
        return if path == "/" {
            method_not_allowed().await
        } else {
            route_not_found()
        }
        .into_response();
    }
    let name = path.trim_start_matches('/');
    if let Some(file) = Dist::get(name).filter(|_| !name.is_empty()) {
        return file_response(&file, request.headers());
    }
    if path != "/" && !wants_page(request.headers()) {
        return route_not_found().into_response();
    }
    match Dist::get("index.html") {
        Some(file) => file_response(&file, request.headers()),
        None => page(FALLBACK.into()),
    }
}

fn wants_page(headers: &HeaderMap) -> bool {
    let accept = headers
        .get(header::ACCEPT)
        .and_then(|accept| accept.to_str().ok())
        .unwrap_or_default();
    accept.contains("text/html")
}

fn file_response(file: &EmbeddedFile, headers: &HeaderMap) -> Response {
    let digest: String = file
        .metadata
        .sha256_hash()
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let etag = format!("\"{digest}\"");
    let known = headers
        .get(header::IF_NONE_MATCH)
        .and_then(|tags| tags.to_str().ok())
        .unwrap_or_default();
    let mut response = if known
        .split(',')
        .any(|tag| tag.trim().trim_start_matches("W/") == etag)
    {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        let mut response = file.data.clone().into_owned().into_response();
        if let Ok(content_type) = HeaderValue::from_str(file.metadata.mimetype()) {
            response.headers_mut().insert(header::CONTENT_TYPE, content_type);
        }
        response
    };
    if let Ok(etag) = HeaderValue::from_str(&etag) {
        response.headers_mut().insert(header::ETAG, etag);
    }
    // Names of files stay the same between versions, so a browser always asks whether they changed.
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    guard(response.headers_mut());
    response
}

fn page(html: String) -> Response {
    let mut response = axum::response::Html(html).into_response();
    guard(response.headers_mut());
    response
}

fn guard(headers: &mut HeaderMap) {
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
}

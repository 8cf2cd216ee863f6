//! The bytes of an asset over HTTP: ranges, validators, and headers that keep a browser from running what is stored.

use atelier_common::identity::Caller;
use atelier_proto::asset::v1::download_asset_response::Part;
use atelier_proto::asset::v1::{Asset, DownloadAssetRequest};
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::StreamExt;
use serde::Deserialize;
use tonic::Status;
use utoipa::IntoParams;

use super::assets::fetch;
use super::range::{Wanted, wanted};
use crate::app::App;
use crate::auth::Who;
use crate::error::Error;
use crate::extract::{Path, Query};
use crate::problem::{ErrorBody, Problem};

/// Types that a browser shows and does not run.
const INLINE: &[&str] = &[
    "image/png",
    "image/jpeg",
    "image/gif",
    "image/webp",
    "image/avif",
    "text/plain",
];

/// How to answer.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ContentQuery {
    /// Offer the bytes as a file, whatever their type; any value but 0 and false.
    download: Option<String>,
}

/// The bytes of an asset, whole or one range.
#[utoipa::path(
    get, path = "/assets/{id}/content", operation_id = "downloadAsset", tag = "assets",
    params(("id" = String, Path, description = "The asset"), ContentQuery),
    responses(
        (status = 200, description = "The bytes", content_type = "application/octet-stream"),
        (status = 206, description = "The range", content_type = "application/octet-stream"),
        (status = 304, description = "Not changed"),
        (status = 404, description = "No such asset", body = ErrorBody),
        (status = 416, description = "The range lies outside", body = ErrorBody),
    )
)]
pub(crate) async fn get(
    State(app): State<App>,
    Who(caller): Who,
    Path(id): Path<String>,
    Query(query): Query<ContentQuery>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, Error> {
    let attach = query
        .download
        .is_some_and(|wanted| !matches!(wanted.as_str(), "0" | "false"));
    serve(&app, &caller, id, attach, &method, &headers).await
}

/// Answers with the bytes of an asset.
pub(crate) async fn serve(
    app: &App,
    caller: &Caller,
    id: String,
    attach: bool,
    method: &Method,
    headers: &HeaderMap,
) -> Result<Response, Error> {
    let asset = fetch(app, caller, id).await?;
    let etag = format!("\"{}\"", asset.digest);
    if matches_any(headers.get(header::IF_NONE_MATCH), &etag) {
        let mut response = StatusCode::NOT_MODIFIED.into_response();
        put(response.headers_mut(), header::ETAG, &etag);
        return Ok(response);
    }
    let size = u64::try_from(asset.size_bytes).unwrap_or(0);
    let range = headers.get(header::RANGE).and_then(|range| range.to_str().ok());
    // A range of something else than what the reader began with is of no use to it.
    let unchanged = headers
        .get(header::IF_RANGE)
        .is_none_or(|range| range.as_bytes() == etag.as_bytes());
    let (status, first, length) = match wanted(range.filter(|_| unchanged), size) {
        Wanted::All => (StatusCode::OK, 0, size),
        Wanted::Part(first, last) => (StatusCode::PARTIAL_CONTENT, first, last - first + 1),
        Wanted::Unsatisfiable => return Ok(outside(size)),
    };
    let body = if method == Method::HEAD || length == 0 {
        Body::empty()
    } else {
        download(app, caller, &asset, first, length).await?
    };
    let mut response = (status, body).into_response();
    let out = response.headers_mut();
    describe(out, &asset, attach);
    put(out, header::ETAG, &etag);
    put(out, header::CONTENT_LENGTH, &length.to_string());
    if status == StatusCode::PARTIAL_CONTENT {
        put(
            out,
            header::CONTENT_RANGE,
            &format!("bytes {first}-{}/{size}", first + length - 1),
        );
    }
    Ok(response)
}

fn outside(size: u64) -> Response {
    let reason = atelier_proto::reason::RANGE_NOT_SATISFIABLE;
    let text = "the range lies outside the asset, or there are several";
    let mut response =
        Problem::http(StatusCode::RANGE_NOT_SATISFIABLE, "out_of_range", reason, text).into_response();
    put(
        response.headers_mut(),
        header::CONTENT_RANGE,
        &format!("bytes */{size}"),
    );
    response
}

/// Headers that depend on what is stored.
fn describe(headers: &mut HeaderMap, asset: &Asset, attach: bool) {
    let stated = asset.content_type.as_str();
    let content_type = if stated.is_empty() {
        "application/octet-stream"
    } else {
        stated
    };
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    let shown = INLINE.contains(&essence) || essence.starts_with("audio/") || essence.starts_with("video/");
    let disposition = if shown && !attach { "inline" } else { "attachment" };
    let with_charset = if essence == "text/plain" && !content_type.contains(';') {
        format!("{content_type}; charset=utf-8")
    } else {
        content_type.to_owned()
    };
    put(headers, header::CONTENT_TYPE, &with_charset);
    put(
        headers,
        header::CONTENT_DISPOSITION,
        &format!("{disposition}; {}", file_name(&asset.name)),
    );
    put(headers, header::ACCEPT_RANGES, "bytes");
    // An asset never changes, but it can be deleted, and it is of one user.
    put(headers, header::CACHE_CONTROL, "private, max-age=3600");
    put(headers, header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    put(
        headers,
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; sandbox",
    );
    put(
        headers,
        HeaderName::from_static("cross-origin-resource-policy"),
        "cross-origin",
    );
}

/// The name for the file, in the plain form and in the one that holds all letters.
fn file_name(name: &str) -> String {
    let plain: String = name
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || "._- ".contains(c) {
                c
            } else {
                '_'
            }
        })
        .collect();
    let mut encoded = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"._-".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    format!("filename=\"{plain}\"; filename*=UTF-8''{encoded}")
}

fn matches_any(header: Option<&HeaderValue>, etag: &str) -> bool {
    let Some(tags) = header.and_then(|tags| tags.to_str().ok()) else {
        return false;
    };
    tags.split(',')
        .map(str::trim)
        .any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag)
}

fn put(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

/// The bytes as they come. A store that fails in the middle breaks the connection off, so that nobody takes half for
/// all.
async fn download(app: &App, caller: &Caller, asset: &Asset, first: u64, length: u64) -> Result<Body, Error> {
    let request = DownloadAssetRequest {
        asset_id: asset.asset_id.clone(),
        offset: i64::try_from(first).ok(),
        length: i64::try_from(length).ok(),
    };
    let mut assets = app.clients.assets();
    let parts = app
        .clients
        .answer(assets.download_asset(app.clients.request(caller, request)))
        .await?;
    let bytes = parts.filter_map(|part| async move {
        match part.map(|part| part.part) {
            Ok(Some(Part::Chunk(bytes))) => Some(Ok::<Bytes, Status>(bytes)),
            Ok(Some(Part::Header(_)) | None) => None,
            Err(status) => Some(Err(status)),
        }
    });
    Ok(Body::from_stream(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_browser_could_run_is_an_attachment() {
        let shown = |content_type: &str, attach| {
            let asset = Asset {
                content_type: content_type.into(),
                name: "a b\"ü.png".into(),
                ..Asset::default()
            };
            let mut headers = HeaderMap::new();
            describe(&mut headers, &asset, attach);
            assert_eq!(headers["x-content-type-options"], "nosniff");
            headers["content-disposition"].to_str().expect("text").to_owned()
        };
        assert!(
            shown("image/png", false)
                .starts_with("inline; filename=\"a b__.png\"; filename*=UTF-8''a%20b%22%C3%BC")
        );
        assert!(shown("image/png", true).starts_with("attachment"));
        for running in [
            "text/html",
            "image/svg+xml",
            "application/javascript",
            "application/pdf",
            "",
        ] {
            assert!(shown(running, false).starts_with("attachment"), "{running}");
        }
    }
}

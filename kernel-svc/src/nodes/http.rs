//! Requests to addresses that a workflow names, through the guarded client.

mod auth;

use atelier_common::egress::Outgoing;
use atelier_proto::value::{Map, MediaRef, Value, from_json};
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};

use super::{
    args::{Args, json_of, map, missing, one, size, text_of},
    code::{Types, factory},
    files::{Workspace, fault},
    work::{Reach, Reaching, blocking},
};
use crate::node::{Context, NodeError};

/// Headers that a request may have of its own.
const MAX_HEADERS: usize = 64;
/// Files that one node downloads at most.
const MAX_DOWNLOADS: usize = 1_000;
/// Downloads of one node at once at most.
const MAX_AT_ONCE: usize = 8;
/// Headers that the client sets itself.
const OWN: &[HeaderName] = &[
    header::HOST,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::CONNECTION,
    header::UPGRADE,
    header::TE,
    header::TRAILER,
];

/// All types of this family.
pub(super) fn types() -> Types {
    let reaching: [(&'static str, Reach); 9] = [
        ("lib.http.Delete", |args, ctx| Box::pin(delete(args, ctx))),
        ("lib.http.DownloadFiles", |args, ctx| {
            Box::pin(download(args, ctx))
        }),
        ("lib.http.GetBytes", |args, ctx| {
            Box::pin(get(args, ctx, |bytes| Ok(Value::Bytes(bytes))))
        }),
        ("lib.http.GetJSON", |args, ctx| Box::pin(get(args, ctx, json))),
        ("lib.http.GetRequest", |args, ctx| {
            Box::pin(get_request(args, ctx))
        }),
        ("lib.http.GetText", |args, ctx| {
            Box::pin(get(args, ctx, |bytes| Ok(text(&bytes).into())))
        }),
        ("lib.http.Patch", |args, ctx| {
            Box::pin(send(args, ctx, Method::PATCH))
        }),
        ("lib.http.Post", |args, ctx| {
            Box::pin(send(args, ctx, Method::POST))
        }),
        ("lib.http.Put", |args, ctx| Box::pin(send(args, ctx, Method::PUT))),
    ];
    reaching
        .into_iter()
        .map(|(name, reach)| (name, factory(Reaching(reach))))
        .collect()
}

/// The content at an address; a status that is no success is an error.
pub(super) async fn fetch(ctx: &Context, url: &str) -> Result<Bytes, NodeError> {
    let request = Outgoing {
        method: Method::GET,
        url: url.trim().to_owned(),
        headers: HeaderMap::new(),
        body: None,
    };
    let (status, bytes, _) = answer(ctx, request).await?;
    succeeded(status)?;
    Ok(bytes)
}
/// Sends a request unless the run is cancelled before the answer is there.
async fn answer(ctx: &Context, request: Outgoing) -> Result<(u16, Bytes, Option<String>), NodeError> {
    let reply = tokio::select! {
        biased;
        () = ctx.cancel.cancelled() => return Err(NodeError::cancelled()),
        reply = ctx.services.host().send(request) => reply?,
    };
    Ok((reply.status.as_u16(), reply.bytes, reply.content_type))
}
fn succeeded(status: u16) -> Result<(), NodeError> {
    if (200..300).contains(&status) {
        return Ok(());
    }
    Err(NodeError::new(format!("the address answered with status {status}")).code("http.status"))
}
fn request(args: Args<'_>, method: Method, body: Option<Bytes>) -> Result<Outgoing, NodeError> {
    let url = args.text("url").trim().to_owned();
    if url.is_empty() {
        return Err(missing("url", "an address is needed"));
    }
    let mut headers = headers(args)?;
    if let Some(auth) = auth::header(&args.value("auth"))? {
        // Two would be a guess at which of them is meant.
        if headers.contains_key(header::AUTHORIZATION) {
            let text = "the inputs `auth` and `headers` both say who asks";
            return Err(NodeError::new(text).code("input.value"));
        }
        headers.insert(header::AUTHORIZATION, auth);
    }
    Ok(Outgoing {
        method,
        url,
        headers,
        body,
    })
}
/// Headers as an object, as a JSON text, or a line each.
fn headers(args: Args<'_>) -> Result<HeaderMap, NodeError> {
    let bad = |why: &str| NodeError::new(format!("the input `headers` {why}")).code("input.value");
    let given = args.value("headers");
    let pairs: Vec<(String, String)> = match &given {
        Value::Map(map) => map
            .iter()
            .map(|(name, value)| (name.clone(), text_of(value)))
            .collect(),
        other => {
            let text = text_of(other);
            let text = text.trim();
            if text.starts_with('{') {
                let read: serde_json::Map<String, serde_json::Value> =
                    serde_json::from_str(text).map_err(|_| bad("is no JSON object"))?;
                read.into_iter()
                    .map(|(name, value)| (name, text_of(&from_json(value))))
                    .collect()
            } else {
                let lines = text.lines().filter(|line| !line.trim().is_empty());
                lines
                    .map(|line| {
                        line.split_once(':')
                            .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
                            .ok_or_else(|| bad("has a line without a colon"))
                    })
                    .collect::<Result<_, _>>()?
            }
        }
    };
    if pairs.len() > MAX_HEADERS {
        return Err(bad(&format!("has more than {MAX_HEADERS} entries")));
    }
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad("has a name that is none"))?;
        if OWN.contains(&name) {
            return Err(bad(&format!("must not set `{name}`")));
        }
        let value = HeaderValue::from_str(&value)
            .map_err(|_| bad(&format!("has a value for `{name}` that is none")))?;
        headers.append(name, value);
    }
    Ok(headers)
}
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
fn json(bytes: Bytes) -> Result<Value, NodeError> {
    serde_json::from_slice(&bytes)
        .map(from_json)
        .map_err(|error| NodeError::new(format!("the answer is no JSON: {error}")).code("http.json"))
}
async fn get(
    args: Args<'_>,
    ctx: &Context,
    read: fn(Bytes) -> Result<Value, NodeError>,
) -> Result<Map, NodeError> {
    let (status, bytes, _) = answer(ctx, request(args, Method::GET, None)?).await?;
    succeeded(status)?;
    Ok(map([
        ("output", read(bytes)?),
        ("status", Value::Int(status.into())),
    ]))
}
async fn get_request(args: Args<'_>, ctx: &Context) -> Result<Map, NodeError> {
    let (status, bytes, _) = answer(ctx, request(args, Method::GET, None)?).await?;
    succeeded(status)?;
    Ok(one("output", text(&bytes)))
}
async fn delete(args: Args<'_>, ctx: &Context) -> Result<Map, NodeError> {
    let (status, ..) = answer(ctx, request(args, Method::DELETE, None)?).await?;
    Ok(map([
        ("output", (200..300).contains(&status).into()),
        ("status", Value::Int(status.into())),
    ]))
}
/// A text or bytes are sent as they are, all else as JSON. An answer that is JSON comes back as a value.
async fn send(args: Args<'_>, ctx: &Context, method: Method) -> Result<Map, NodeError> {
    let (body, kind) = match args.value("body") {
        Value::Null => (None, None),
        Value::Str(body) => {
            let is_json = serde_json::from_str::<serde_json::Value>(&body).is_ok();
            let kind = if is_json {
                "application/json"
            } else {
                "text/plain; charset=utf-8"
            };
            (Some(Bytes::from(body.to_string())), Some(kind))
        }
        Value::Bytes(bytes) => (Some(bytes), Some("application/octet-stream")),
        other => (
            Some(Bytes::from(json_of(&other).to_string())),
            Some("application/json"),
        ),
    };
    let mut request = request(args, method, body)?;
    if let Some(kind) = kind {
        let kind = HeaderValue::from_static(kind);
        request.headers.entry(header::CONTENT_TYPE).or_insert(kind);
    }
    let (status, bytes, content_type) = answer(ctx, request).await?;
    succeeded(status)?;
    let is_json = content_type.is_some_and(|kind| kind.contains("json"));
    let output = match serde_json::from_slice(&bytes) {
        Ok(value) if is_json => from_json(value),
        _ => text(&bytes).into(),
    };
    Ok(map([("output", output), ("status", Value::Int(status.into()))]))
}
/// Files into a folder of the workspace. An address that fails costs only its file.
async fn download(args: Args<'_>, ctx: &Context) -> Result<Map, NodeError> {
    let urls: Vec<String> = args.list("urls").iter().map(text_of).collect();
    if urls.len() > MAX_DOWNLOADS {
        let text = format!("the input `urls` has more than {MAX_DOWNLOADS} addresses");
        return Err(NodeError::new(text).code("input.size"));
    }
    let folder = match args.value("output_folder") {
        Value::Map(map) => map.get("path").map(text_of).unwrap_or_default(),
        Value::Media(media) => media.uri.clone(),
        other => text_of(&other),
    };
    let workspace = Workspace::of(ctx.services.host())?;
    let folder = workspace.place(
        "output_folder",
        if folder.is_empty() { "downloads" } else { &folder },
    )?;
    let at_once = size(args.int("max_concurrent_downloads", 5)?).clamp(1, MAX_AT_ONCE);
    let works = urls.into_iter().enumerate().map(|(place, url)| {
        let (workspace, folder) = (workspace.clone(), folder.clone());
        async move {
            let saved = match fetch(ctx, &url).await {
                Ok(bytes) => {
                    let target = folder.join(name_of(&url, place));
                    let work = move || {
                        let checked = workspace.place("output_folder", &target.display().to_string())?;
                        workspace.write("output_folder", &checked, &bytes)?;
                        Ok(checked)
                    };
                    Some(blocking(ctx, work).await?)
                }
                Err(_) if ctx.cancel.is_cancelled() => return Err(NodeError::cancelled()),
                Err(_) => None,
            };
            Ok::<_, NodeError>((url, saved))
        }
    });
    let ended: Vec<_> = futures_util::stream::iter(works)
        .buffered(at_once)
        .try_collect()
        .await?;
    if !ended.is_empty() && ended.iter().all(|(_, saved)| saved.is_none()) {
        return Err(fault("urls", "none of the addresses could be downloaded"));
    }
    let (mut success, mut failed) = (Vec::new(), Vec::new());
    for (url, saved) in ended {
        match saved {
            Some(path) => success.push(Value::from(workspace.shown(&path))),
            None => failed.push(Value::from(url)),
        }
    }
    Ok(map([
        ("success", Value::list(success)),
        ("failed", Value::list(failed)),
    ]))
}
/// The last part of an address as a name of a file, with its place in front so that no two are equal.
fn name_of(url: &str, place: usize) -> String {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let after = path.split_once("://").map_or(path, |(_, rest)| rest);
    let last = after.rsplit_once('/').map_or("", |(_, last)| last);
    let plain: String = last
        .chars()
        .filter(|letter| letter.is_alphanumeric() || "._-".contains(*letter))
        .take(100)
        .collect();
    let plain = plain.trim_matches('.');
    format!(
        "{:03}_{}",
        place + 1,
        if plain.is_empty() { "file" } else { plain }
    )
}
/// A reference at an address.
pub(super) fn linked(kind: &str, url: String) -> MediaRef {
    MediaRef {
        kind: kind.to_owned(),
        uri: url,
        ..MediaRef::default()
    }
}

#[cfg(test)]
mod tests;

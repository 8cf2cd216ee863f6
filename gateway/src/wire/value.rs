//! Values as clients see them: references to stored media carry a path that any client can load, inline bytes of media
//! do not go out (wire specification 4.4, R-34 to R-36).
//!
//! Pure and idempotent: what comes out holds no [`Value::Media`], and going through again changes nothing.

use atelier_proto::common::v1::MapValue;
pub(crate) use atelier_proto::value::is_too_deep;
use atelier_proto::value::{MEDIA_KINDS, Map, MediaRef, Value};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Largest media that go out inline, as a `data:` address, in bytes. Larger ones go out without an address.
const INLINE_BYTES: usize = 1024 * 1024;
/// Largest bytes outside a reference that go out as they are; of larger ones the length is told.
const BARE_BYTES: usize = 64 * 1024;

/// A map of the contracts as clients see it. What is no value is told as absent; it is a bug of the sender.
pub(crate) fn map_for(map: Option<MapValue>, user_id: &str) -> Option<Map> {
    match Map::try_from(map?) {
        Ok(map) => Some(public_map(&map, user_id)),
        Err(error) => {
            tracing::warn!(%error, "a map of another service is not valid");
            None
        }
    }
}

/// A value of the contracts as clients see it; null when it is not valid.
pub(crate) fn value_for(value: Option<atelier_proto::common::v1::Value>, user_id: &str) -> Value {
    match value.map(Value::try_from) {
        None => Value::Null,
        Some(Ok(value)) => public(&value, user_id),
        Some(Err(error)) => {
            tracing::warn!(%error, "a value of another service is not valid");
            Value::Null
        }
    }
}

/// The entries of a map as clients see them.
pub(crate) fn public_map(map: &Map, user_id: &str) -> Map {
    // The content of a chunk is audio on its way to a player: it goes out whatever its size.
    let chunk = map.get("type").and_then(Value::as_str) == Some("chunk");
    map.iter()
        .map(|(key, value)| match value {
            Value::Bytes(_) if chunk && key == "content" => (key.clone(), value.clone()),
            _ => (key.clone(), public(value, user_id)),
        })
        .collect()
}

/// A value as clients see it.
pub(crate) fn public(value: &Value, user_id: &str) -> Value {
    match value {
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Str(_) => value.clone(),
        Value::Bytes(bytes) if bytes.len() <= BARE_BYTES => value.clone(),
        Value::Bytes(bytes) => length_of(bytes.len()),
        Value::List(values) => Value::list(values.iter().map(|value| public(value, user_id)).collect()),
        Value::Map(map) => as_media(map).map_or_else(
            || public_map(map, user_id).into(),
            |media| reference(&media, user_id),
        ),
        Value::Media(media) => reference(media, user_id),
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

/// A map that is a reference in all but its type: a kind of media, or bytes under `data`.
fn as_media(map: &Map) -> Option<MediaRef> {
    let kind = map.get("type").and_then(Value::as_str)?;
    let text = |key: &str| map.get(key).and_then(Value::as_str).map(ToOwned::to_owned);
    let data = match map.get("data") {
        Some(Value::Bytes(bytes)) => Some(bytes.clone()),
        Some(Value::Null) | None => None,
        Some(_) => return None,
    };
    let names_media =
        MEDIA_KINDS.contains(&kind) && (map.contains_key("uri") || map.contains_key("asset_id"));
    if data.is_none() && !names_media {
        return None;
    }
    let own = ["type", "uri", "asset_id", "data", "mime_type"];
    let extra = map.iter().filter(|(key, _)| !own.contains(&key.as_str()));
    Some(MediaRef {
        kind: kind.to_owned(),
        uri: text("uri").unwrap_or_default(),
        asset_id: text("asset_id"),
        data,
        mime_type: text("mime_type"),
        extra: extra.map(|(key, value)| (key.clone(), value.clone())).collect(),
    })
}

fn reference(media: &MediaRef, user_id: &str) -> Value {
    let MediaRef {
        kind,
        uri,
        asset_id,
        data,
        mime_type,
        extra,
    } = media;
    let mut out = Map::with_capacity(6 + extra.len());
    out.insert("type".to_owned(), kind.as_str().into());
    if let Some(id) = asset_id {
        let extension = extension(media);
        out.insert(
            "uri".to_owned(),
            format!("/api/storage/{user_id}/{id}.{extension}").into(),
        );
        out.insert("asset_uri".to_owned(), format!("asset://{id}.{extension}").into());
    } else {
        let inline = data
            .as_deref()
            .filter(|bytes| !bytes.is_empty() && bytes.len() <= INLINE_BYTES);
        let uri = match inline {
            Some(bytes) => format!("data:{};base64,{}", media_type(media), STANDARD.encode(bytes)),
            None if is_private(uri) => String::new(),
            None => uri.clone(),
        };
        out.insert("uri".to_owned(), uri.into());
    }
    out.insert(
        "asset_id".to_owned(),
        asset_id.as_deref().map_or(Value::Null, Into::into),
    );
    out.insert("data".to_owned(), Value::Null);
    if let Some(mime_type) = mime_type {
        out.insert("mime_type".to_owned(), mime_type.as_str().into());
    }
    for (key, value) in extra {
        // Internal keys stay inside, and our own stand.
        if key != "value_key" && !out.contains_key(key) {
            out.insert(key.clone(), public(value, user_id));
        }
    }
    out.into()
}

/// Addresses that mean something on this machine only.
fn is_private(uri: &str) -> bool {
    uri.starts_with("memory:") || uri.starts_with("file:")
}

/// The media type of a reference: stated, else by kind.
fn media_type(media: &MediaRef) -> &str {
    match (media.mime_type.as_deref(), media.kind.as_str()) {
        (Some(stated), _) if !stated.is_empty() => stated,
        (_, "image") => "image/png",
        (_, "audio") => "audio/wav",
        (_, "video") => "video/mp4",
        (_, "text") => "text/plain",
        (_, "html") => "text/html",
        (_, "model_3d") => "model/gltf-binary",
        (_, "dataframe") => "application/json",
        _ => "application/octet-stream",
    }
}

/// The extension that a reference is shown with: the one of its address, else by media type, else by kind. It is a hint;
/// the id decides.
fn extension(media: &MediaRef) -> &str {
    let stored = media.uri.starts_with("asset://") || media.uri.starts_with("/api/storage/");
    let name = media.uri.rsplit('/').next().unwrap_or_default();
    let from_uri = name
        .rsplit_once('.')
        .map(|(_, extension)| extension)
        .filter(|extension| {
            stored
                && !extension.is_empty()
                && extension.len() <= 8
                && extension.bytes().all(|b| b.is_ascii_alphanumeric())
        });
    from_uri.unwrap_or_else(|| extension_of(media_type(media)))
}

fn extension_of(media_type: &str) -> &'static str {
    match media_type {
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/webp" => "webp",
        "image/gif" => "gif",
        "image/svg+xml" => "svg",
        "audio/wav" | "audio/x-wav" => "wav",
        "audio/mpeg" => "mp3",
        "audio/ogg" => "ogg",
        "video/mp4" => "mp4",
        "video/webm" => "webm",
        "text/plain" => "txt",
        "text/html" => "html",
        "application/json" => "json",
        "application/pdf" => "pdf",
        "model/gltf-binary" => "glb",
        _ => "bin",
    }
}

/// The request of a row without any bytes, at any depth: bytes and `data:` addresses become `{"bytes": n}` (W-083).
pub(crate) fn redacted(value: &Value, user_id: &str) -> Value {
    match value {
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => value.clone(),
        Value::Str(text) if text.starts_with("data:") => bytes_told(text.len()),
        Value::Str(_) => value.clone(),
        Value::Bytes(bytes) => bytes_told(bytes.len()),
        Value::List(values) => Value::list(values.iter().map(|value| redacted(value, user_id)).collect()),
        Value::Map(map) => Value::map(
            map.iter()
                .map(|(key, value)| (key.clone(), redacted(value, user_id)))
                .collect(),
        ),
        Value::Media(media) => match &media.data {
            Some(bytes) => bytes_told(bytes.len()),
            None if media.uri.starts_with("data:") => bytes_told(media.uri.len()),
            None => public(value, user_id),
        },
    }
}

fn bytes_told(bytes: usize) -> Value {
    let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
    Map::from_iter([("bytes".to_owned(), bytes.into())]).into()
}

#[cfg(test)]
mod tests {
    use atelier_proto::value::{BytesForm, from_json, to_json};
    use serde_json::json;

    use super::*;

    fn shown(value: &Value) -> serde_json::Value {
        to_json(&public(value, "1"), BytesForm::Integers)
    }

    fn image(uri: &str) -> MediaRef {
        MediaRef {
            kind: "image".to_owned(),
            uri: uri.to_owned(),
            ..MediaRef::default()
        }
    }

    #[test]
    fn r_034_a_stored_reference_carries_a_path_its_address_and_its_id() {
        let media = MediaRef {
            asset_id: Some("A1".to_owned()),
            ..image("asset://A1.webp")
        };
        let expected = json!({"type": "image", "uri": "/api/storage/1/A1.webp", "asset_uri": "asset://A1.webp",
            "asset_id": "A1", "data": null});
        assert_eq!(shown(&media.into()), expected);
    }

    #[test]
    fn w_110_and_111_small_inline_media_become_a_data_address() {
        let media = MediaRef {
            data: Some(vec![1, 2, 3].into()),
            ..image("")
        };
        let out = shown(&media.clone().into());
        assert_eq!(out["uri"], "data:image/png;base64,AQID");
        assert_eq!(out["data"], json!(null));
        let large = MediaRef {
            data: Some(vec![0; INLINE_BYTES + 1].into()),
            ..media
        };
        assert_eq!(shown(&large.into())["uri"], "");
    }

    #[test]
    fn w_112_and_113_an_address_of_this_process_never_goes_out() {
        assert_eq!(shown(&image("memory://x").into())["uri"], "");
        assert_eq!(shown(&image("file:///etc/passwd").into())["uri"], "");
        let stored = MediaRef {
            asset_id: Some("A".to_owned()),
            ..image("memory://x")
        };
        assert_eq!(shown(&stored.into())["uri"], "/api/storage/1/A.png");
    }

    #[test]
    fn w_115_a_leaf_is_rewritten_at_any_depth() {
        let leaf = Map::from_iter([
            ("type".to_owned(), "audio".into()),
            ("data".to_owned(), Value::Bytes(vec![1].into())),
        ]);
        let inner: Value = Map::from_iter([("b".to_owned(), leaf.into()), ("n".to_owned(), 7.into())]).into();
        let value: Value = Map::from_iter([("a".to_owned(), Value::list(vec![inner]))]).into();
        let out = shown(&value);
        assert_eq!(out["a"][0]["b"]["uri"], "data:audio/wav;base64,AQ==");
        assert_eq!(out["a"][0]["n"], 7);
    }

    #[test]
    fn w_116_of_many_bare_bytes_only_the_length_is_told() {
        let value = Value::Bytes(vec![0; BARE_BYTES + 5].into());
        assert_eq!(shown(&value), json!({"type": "bytes", "length": BARE_BYTES + 5}));
        assert_eq!(shown(&Value::Bytes(vec![1, 255].into())), json!([1, 255]));
    }

    #[test]
    fn w_117_a_foreign_address_is_unchanged() {
        assert_eq!(shown(&image("https://x/y.png").into())["uri"], "https://x/y.png");
    }

    #[test]
    fn w_118_a_second_time_changes_nothing() {
        let stored = MediaRef {
            asset_id: Some("A1".to_owned()),
            ..image("asset://A1.png")
        };
        let inline = MediaRef {
            data: Some(vec![1, 2].into()),
            ..image("")
        };
        let value = Value::list(vec![stored.into(), inline.into(), image("https://x/y").into()]);
        let once = public(&value, "1");
        assert_eq!(public(&once, "1"), once);
        let through_json = from_json(to_json(&once, BytesForm::Integers));
        assert_eq!(
            to_json(&public(&through_json, "1"), BytesForm::Integers),
            to_json(&once, BytesForm::Integers)
        );
    }

    #[test]
    fn w_083_a_request_has_no_bytes_at_any_depth() {
        let media = MediaRef {
            data: Some(vec![0; 9].into()),
            ..image("")
        };
        let list = Value::list(vec![
            Value::Bytes(vec![0; 3].into()),
            "data:image/png;base64,AAAA".into(),
        ]);
        let value: Value =
            Map::from_iter([("image".to_owned(), media.into()), ("all".to_owned(), list)]).into();
        let out = to_json(&redacted(&value, "1"), BytesForm::Integers);
        assert_eq!(out["image"], json!({"bytes": 9}));
        assert_eq!(out["all"][0], json!({"bytes": 3}));
        assert!(!out.to_string().contains("data:"));
    }
}

//! Pictures, sounds and films from files of the workspace, to files, and to stored assets.
//!
//! What does not live here: which paths may be used (`media_paths`), and formats.

use std::fmt::Write;

use async_trait::async_trait;
use atelier_proto::{
    kernel::v1::Severity,
    value::{Map, Value},
};
use bytes::Bytes;
use chrono::format::{Item, StrftimeItems};

use super::{
    args::{Args, missing, one, text_of},
    code::{Generator, Sink, Streamed, Types, factory},
    image,
    media_io::{MAX_RESULT, Params, made, need, value_fault, work},
    media_paths,
};
use crate::{
    event::Note,
    node::{Context, Executor, Kept, NodeError},
};

/// All types of this family.
pub(super) fn types() -> Types {
    vec![
        ("nodetool.image.LoadImageFile", factory(Load("image"))),
        (
            "nodetool.image.LoadImageFolder",
            factory(Streamed(Folder {
                kind: "image",
                all: "images",
            })),
        ),
        ("nodetool.image.SaveImage", factory(SaveAsset("image"))),
        ("nodetool.image.SaveImageFile", factory(SaveFile("image"))),
        ("nodetool.audio.LoadAudioFile", factory(Load("audio"))),
        (
            "nodetool.audio.LoadAudioFolder",
            factory(Streamed(Folder {
                kind: "audio",
                all: "audios",
            })),
        ),
        ("nodetool.audio.SaveAudio", factory(SaveAsset("audio"))),
        ("nodetool.audio.SaveAudioFile", factory(SaveFile("audio"))),
        ("nodetool.video.LoadVideoFile", factory(Load("video"))),
        ("nodetool.video.SaveVideo", factory(SaveAsset("video"))),
        ("nodetool.video.SaveVideoFile", factory(SaveFile("video"))),
        ("nodetool.model3d.LoadModel3DFile", factory(Load("model_3d"))),
        ("nodetool.model3d.SaveModel3D", factory(SaveAsset("model_3d"))),
        ("nodetool.model3d.SaveModel3DFile", factory(SaveFile("model_3d"))),
    ]
}

/// The media type of a file by its name.
fn mime(kind: &str, name: &str) -> &'static str {
    let end = name
        .rsplit_once('.')
        .map(|(_, end)| end.to_ascii_lowercase())
        .unwrap_or_default();
    match (kind, end.as_str()) {
        ("image", "jpg" | "jpeg") => "image/jpeg",
        ("image", "webp") => "image/webp",
        ("image", "gif") => "image/gif",
        ("image", "bmp") => "image/bmp",
        ("image", "tif" | "tiff") => "image/tiff",
        ("image", "svg") => "image/svg+xml",
        ("image", _) => "image/png",
        ("audio", "mp3") => "audio/mpeg",
        ("audio", "flac") => "audio/flac",
        ("audio", "ogg" | "oga") => "audio/ogg",
        ("audio", "m4a") => "audio/mp4",
        ("audio", "aac") => "audio/aac",
        ("audio", _) => "audio/wav",
        ("video", "webm") => "video/webm",
        ("video", "mov") => "video/quicktime",
        ("video", "mkv") => "video/x-matroska",
        ("video", "avi") => "video/x-msvideo",
        ("video", _) => "video/mp4",
        (_, "gltf") => "model/gltf+json",
        (_, "obj") => "model/obj",
        (_, "stl") => "model/stl",
        _ => "model/gltf-binary",
    }
}
/// The end of a file's name by what the bytes are.
fn end(kind: &str, bytes: &[u8]) -> &'static str {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => "png",
        [0xff, 0xd8, 0xff, ..] => "jpg",
        [b'G', b'I', b'F', b'8', ..] => "gif",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "webp",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E', ..] => "wav",
        [b'I', b'D', b'3', ..] | [0xff, 0xfb | 0xf3 | 0xf2, ..] => "mp3",
        [b'f', b'L', b'a', b'C', ..] => "flac",
        [b'O', b'g', b'g', b'S', ..] => "ogg",
        [0x1a, 0x45, 0xdf, 0xa3, ..] => "webm",
        [b'g', b'l', b'T', b'F', ..] => "glb",
        _ => match kind {
            "image" => "png",
            "audio" => "wav",
            "video" => "mp4",
            _ => "glb",
        },
    }
}

/// One file of the workspace.
#[derive(Clone, Copy)]
struct Load(&'static str);
#[async_trait]
impl Executor for Load {
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let path = Args(&inputs).text("path");
        if path.trim().is_empty() {
            return Err(missing("path", "there is no file to load"));
        }
        let path = media_paths::existing(ctx, "path", path.trim_start_matches("file://"))?;
        let bytes = media_paths::read("path", &path).await?;
        Ok(one(
            "output",
            made(self.0, mime(self.0, &path.to_string_lossy()), bytes.to_vec())?,
        ))
    }
}

/// The files of a folder of the workspace, one after the other, then all of them.
#[derive(Clone, Copy)]
struct Folder {
    kind: &'static str,
    all: &'static str,
}
#[async_trait]
impl Generator for Folder {
    async fn generate(&self, inputs: Map, frames: &mut dyn Sink, ctx: &Context) -> Result<(), NodeError> {
        let params = Params::new(ctx, inputs);
        let folder = match params.value("folder") {
            Value::Map(map) => Args(&map).text("path"),
            other => text_of(&other),
        };
        if folder.trim().is_empty() {
            return Err(missing("folder", "there is no folder to load from"));
        }
        let folder = folder.trim_start_matches("file://").to_owned();
        let ends: Vec<String> = match params.value("extensions") {
            Value::List(ends) => ends.iter().map(text_of).filter(|end| !end.is_empty()).collect(),
            _ => Vec::new(),
        };
        let (deep, pattern) = (params.flag("include_subdirectories"), params.text("pattern"));
        let here = ctx.clone();
        let files = work(ctx, move |_| {
            media_paths::files(&here, "folder", &folder, deep, &ends, &pattern)
        })
        .await?;
        let (mut all, mut total) = (Vec::new(), 0_usize);
        for path in files {
            if ctx.cancel.is_cancelled() {
                return Err(NodeError::cancelled());
            }
            let bytes = media_paths::read("folder", &path).await?;
            total = total.saturating_add(bytes.len());
            let media = made(
                self.kind,
                mime(self.kind, &path.to_string_lossy()),
                bytes.to_vec(),
            )?;
            // Bounded: beyond it the list is not handed on.
            if total <= MAX_RESULT {
                all.push(media.clone());
            }
            let mut frame = one(self.kind, media);
            frame.insert("path".to_owned(), media_paths::relative(ctx, &path)?.into());
            frames.frame(frame).await?;
        }
        if total > MAX_RESULT {
            let content = format!(
                "the files have more than {MAX_RESULT} bytes: the list `{}` was left out",
                self.all
            );
            ctx.note(Note::Log {
                content,
                severity: Severity::Warning,
            })
            .await;
            return Ok(());
        }
        frames.frame(one(self.all, Value::list(all))).await
    }
}

/// A name with the time in it; `%` signs are those of `strftime`.
fn stamped(name: &str, pattern: &str) -> Result<String, NodeError> {
    let items: Vec<Item<'_>> = StrftimeItems::new(pattern).collect();
    if pattern.len() > 1_024 || items.iter().any(|item| matches!(item, Item::Error)) {
        return Err(value_fault(
            name,
            "must be a name; `%` begins a part of the time, like %Y",
        ));
    }
    let now = atelier_common::clock::Clock::system().now();
    // Some parts can be read but not written, such as %#z: writing them is an error, which `to_string` makes a panic.
    let mut stamped = String::new();
    write!(stamped, "{}", now.format_with_items(items.iter()))
        .map_err(|_| value_fault(name, "must be a name; `%` begins a part of the time, like %Y"))?;
    Ok(stamped)
}

/// A file in a folder of the workspace.
#[derive(Clone, Copy)]
struct SaveFile(&'static str);
#[async_trait]
impl Executor for SaveFile {
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let kind = self.0;
        let handle = if kind == "model_3d" { "model" } else { kind };
        let bytes = need(ctx, &inputs, handle).await?;
        let media = Args(&inputs).value(handle);
        let params = Params::new(ctx, inputs);
        let named = match params.text("filename") {
            empty if empty.trim().is_empty() => format!("{kind}_%Y-%m-%d_%H-%M-%S"),
            named => named,
        };
        let mut filename = stamped("filename", &named)?;
        if !filename.contains('.') {
            filename = format!("{filename}.{}", end(kind, &bytes));
        }
        let (folder, overwrite) = (params.text("folder"), params.flag("overwrite"));
        let here = ctx.clone();
        work(ctx, move |_| {
            let bytes = match kind {
                "image" => image::converted("image", &bytes, &filename)?,
                _ => None,
            }
            .map_or(bytes, Bytes::from);
            media_paths::write(&here, &folder, &filename, overwrite, &bytes)
        })
        .await?;
        Ok(one("output", media))
    }
}

/// A stored asset.
#[derive(Clone, Copy)]
struct SaveAsset(&'static str);
#[async_trait]
impl Executor for SaveAsset {
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let kind = self.0;
        let handle = if kind == "model_3d" { "model" } else { kind };
        let data = need(ctx, &inputs, handle).await?;
        let params = Params::new(ctx, inputs);
        let name = stamped("name", &params.text("name"))?;
        let content_type = match params
            .value(handle)
            .as_media()
            .and_then(|media| media.mime_type.clone())
        {
            Some(stated) if !stated.is_empty() => stated,
            _ => mime(kind, &format!("x.{}", end(kind, &data))).to_owned(),
        };
        let kept = Kept {
            kind: kind.to_owned(),
            name,
            mime_type: content_type,
            bytes: data,
        };
        Ok(one("output", ctx.services.keep(ctx, kept).await?))
    }
}

//! File endings of media types, and the types that kinds of media usually have.

use super::{JSON, TEXT, UNKNOWN};

/// Media types and the endings they go by, the usual one first.
const ENDINGS: &[(&str, &[&str])] = &[
    ("image/png", &["png"]),
    ("image/jpeg", &["jpg", "jpeg", "jpe"]),
    ("image/gif", &["gif"]),
    ("image/webp", &["webp"]),
    ("image/avif", &["avif"]),
    ("image/bmp", &["bmp"]),
    ("image/tiff", &["tif", "tiff"]),
    ("image/heif", &["heif", "heic"]),
    ("image/jxl", &["jxl"]),
    ("image/svg+xml", &["svg"]),
    ("image/vnd.microsoft.icon", &["ico"]),
    ("audio/wav", &["wav"]),
    ("audio/mpeg", &["mp3"]),
    ("audio/ogg", &["ogg", "oga"]),
    ("audio/opus", &["opus"]),
    ("audio/flac", &["flac"]),
    ("audio/aac", &["aac"]),
    ("audio/mp4", &["m4a"]),
    ("audio/midi", &["mid", "midi"]),
    ("audio/aiff", &["aiff", "aif"]),
    ("video/mp4", &["mp4", "m4v"]),
    ("video/webm", &["webm"]),
    ("video/quicktime", &["mov"]),
    ("video/x-matroska", &["mkv"]),
    ("video/x-msvideo", &["avi"]),
    ("video/mpeg", &["mpg", "mpeg"]),
    ("model/gltf-binary", &["glb"]),
    ("model/gltf+json", &["gltf"]),
    ("model/obj", &["obj"]),
    ("model/stl", &["stl"]),
    ("application/pdf", &["pdf"]),
    ("application/zip", &["zip"]),
    ("application/gzip", &["gz", "tgz"]),
    ("application/rtf", &["rtf"]),
    (JSON, &["json"]),
    ("application/xml", &["xml"]),
    ("text/html", &["html", "htm"]),
    (
        TEXT,
        &[
            "txt", "text", "log", "srt", "toml", "yaml", "yml", "ini", "py", "rs", "md", "csv", "tsv",
        ],
    ),
    ("text/markdown", &["md", "markdown"]),
    ("text/csv", &["csv"]),
    ("text/tab-separated-values", &["tsv"]),
    ("text/vtt", &["vtt"]),
    (UNKNOWN, &["bin", "dat"]),
];

/// The file ending of a media type, without the dot.
#[must_use]
pub fn ending(content_type: &str) -> &'static str {
    if let Some((_, endings)) = ENDINGS.iter().find(|(known, _)| *known == content_type) {
        return endings.first().copied().unwrap_or("bin");
    }
    rare_ending(content_type).unwrap_or(if content_type.starts_with("text/") {
        "txt"
    } else {
        "bin"
    })
}

fn rare_ending(content_type: &str) -> Option<&'static str> {
    Some(match content_type {
        "application/epub+zip" => "epub",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document" => "docx",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" => "xlsx",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation" => "pptx",
        "application/vnd.sqlite3" => "sqlite",
        "application/zstd" => "zst",
        "application/x-7z-compressed" => "7z",
        "application/x-tar" => "tar",
        "image/vnd.adobe.photoshop" => "psd",
        _ => return None,
    })
}

/// Whether a file with this ending (lower case, no dot) may hold this type.
#[must_use]
pub fn ending_fits(ending: &str, content_type: &str) -> bool {
    ENDINGS
        .iter()
        .any(|(known, endings)| *known == content_type && endings.contains(&ending))
        || self::ending(content_type) == ending
}

/// Whether this is the ending of any type that is known here.
#[must_use]
pub fn is_known_ending(ending: &str) -> bool {
    ENDINGS.iter().any(|(_, endings)| endings.contains(&ending))
}

/// The type that media of a kind have when neither bytes nor reference say it.
#[must_use]
pub fn default_of_kind(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "image" => "image/png",
        "audio" => "audio/wav",
        "video" => "video/mp4",
        "model_3d" => "model/gltf-binary",
        "text" | "html" => TEXT,
        _ => return None,
    })
}

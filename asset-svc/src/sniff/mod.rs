//! The media type from the bytes.
//!
//! What the bytes show wins. A stated type is only believed where the bytes show nothing, or where it is a finer word for
//! what they show (`text/csv` for text). A stated type that a browser would run is never believed.
//! The verdict on the bytes alone ([`Sniffed`]) depends on nothing else, so equal bytes always get the same file ending.

mod endings;

pub use endings::{default_of_kind, ending, ending_fits, is_known_ending};

/// How many bytes from the start the verdict looks at.
pub const PREFIX_BYTES: usize = 64 * 1024;

/// The type of bytes that show nothing.
pub const UNKNOWN: &str = "application/octet-stream";
/// Plain text.
pub const TEXT: &str = "text/plain";
/// JSON.
pub const JSON: &str = "application/json";

/// What the bytes themselves show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sniffed {
    /// The media type; [`UNKNOWN`] when they show nothing.
    pub content_type: &'static str,
    /// The file ending of that type.
    pub ending: &'static str,
    certainty: Certainty,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Certainty {
    /// A signature: no other type is believed.
    Signature,
    /// Readable text of no special form: a finer textual type is believed.
    Text,
    /// A container that finer types use (zip).
    Container,
    /// Nothing.
    None,
}

/// Looks at the first bytes of something. `whole` says that there are no more than these.
#[must_use]
pub fn sniff(bytes: &[u8], whole: bool) -> Sniffed {
    let prefix = bytes.get(..PREFIX_BYTES).unwrap_or(bytes);
    let whole = whole && prefix.len() == bytes.len();
    if prefix.is_empty() {
        return verdict(UNKNOWN, "bin", Certainty::None);
    }
    if let Some(text) = as_text(prefix, whole) {
        return sniff_text(text, prefix, whole);
    }
    sniff_binary(prefix)
}

fn verdict(content_type: &'static str, ending: &'static str, certainty: Certainty) -> Sniffed {
    Sniffed {
        content_type,
        ending,
        certainty,
    }
}

/// The text that the bytes are, when they are UTF-8 without control characters that text has not.
fn as_text(prefix: &[u8], whole: bool) -> Option<&str> {
    let text = match std::str::from_utf8(prefix) {
        Ok(text) => text,
        // The prefix may end inside a character.
        Err(error) if !whole && error.error_len().is_none() => {
            std::str::from_utf8(prefix.get(..error.valid_up_to())?).ok()?
        }
        Err(_) => return None,
    };
    let odd = |character: char| {
        character.is_ascii_control() && !matches!(character, '\t' | '\n' | '\r' | '\u{c}' | '\u{1b}')
    };
    (!text.contains(odd)).then_some(text)
}

fn sniff_text(text: &str, prefix: &[u8], whole: bool) -> Sniffed {
    let start = text.trim_start_matches('\u{feff}').trim_start();
    if start.starts_with("%PDF-") {
        return verdict("application/pdf", "pdf", Certainty::Signature);
    }
    if start.starts_with("{\\rtf") {
        return verdict("application/rtf", "rtf", Certainty::Signature);
    }
    if let Some(root) = root_element(start) {
        return match root.as_str() {
            "svg" => verdict("image/svg+xml", "svg", Certainty::Signature),
            "html" => verdict("text/html", "html", Certainty::Signature),
            _ => verdict("application/xml", "xml", Certainty::Signature),
        };
    }
    if is_html(start) || infer::get(prefix).is_some_and(|kind| kind.mime_type() == "text/html") {
        return verdict("text/html", "html", Certainty::Signature);
    }
    if is_json(start, whole) {
        return verdict(JSON, "json", Certainty::Text);
    }
    verdict(TEXT, "txt", Certainty::Text)
}

/// The lower-case name of the first element of an XML document or an SVG picture; `None` when it is neither.
fn root_element(start: &str) -> Option<String> {
    let mut rest = start;
    let mut declared = false;
    loop {
        rest = rest.trim_start();
        if let Some(after) = rest.strip_prefix("<!--") {
            rest = after.split_once("-->")?.1;
        } else if rest.starts_with("<?xml") {
            declared = true;
            rest = rest.split_once("?>")?.1;
        } else if rest
            .get(..9)
            .is_some_and(|head| head.eq_ignore_ascii_case("<!doctype"))
        {
            let (doctype, after) = rest.split_once('>')?;
            let name = doctype.get(9..)?.split_whitespace().next()?.to_ascii_lowercase();
            if name == "html" || name == "svg" {
                return Some(name);
            }
            declared = true;
            rest = after;
        } else {
            break;
        }
    }
    let name: String = rest
        .strip_prefix('<')?
        .chars()
        .take_while(|c| c.is_alphanumeric() || matches!(c, ':' | '-' | '_'))
        .collect();
    let name = name.to_ascii_lowercase();
    let local = name.rsplit(':').next().unwrap_or_default().to_owned();
    (declared || local == "svg" || local == "html")
        .then_some(local)
        .filter(|name| !name.is_empty())
}

/// Whether a browser that guesses would take it for a page.
fn is_html(start: &str) -> bool {
    const TAGS: [&str; 14] = [
        "head", "body", "script", "iframe", "h1", "div", "font", "table", "a", "style", "title", "b", "br",
        "p",
    ];
    let Some(rest) = start.strip_prefix('<') else {
        return false;
    };
    let name: String = rest.chars().take_while(char::is_ascii_alphanumeric).collect();
    let after = rest.get(name.len()..).and_then(|rest| rest.chars().next());
    TAGS.iter().any(|tag| name.eq_ignore_ascii_case(tag))
        && after.is_none_or(|c| c.is_whitespace() || matches!(c, '>' | '/'))
}

fn is_json(start: &str, whole: bool) -> bool {
    if !start.starts_with(['{', '[']) {
        return false;
    }
    match serde_json::from_str::<serde::de::IgnoredAny>(start) {
        Ok(_) => true,
        Err(error) => !whole && error.is_eof(),
    }
}

fn sniff_binary(prefix: &[u8]) -> Sniffed {
    if prefix.starts_with(b"glTF") {
        return verdict("model/gltf-binary", "glb", Certainty::Signature);
    }
    if prefix.starts_with(b"RIFF") && prefix.get(8..12) == Some(b"WAVE") {
        return verdict("audio/wav", "wav", Certainty::Signature);
    }
    if let Some(kind) = infer::get(prefix) {
        let (content_type, ending) = match kind.mime_type() {
            "audio/x-wav" => ("audio/wav", "wav"),
            "audio/x-flac" => ("audio/flac", "flac"),
            "audio/m4a" => ("audio/mp4", "m4a"),
            "audio/x-aiff" => ("audio/aiff", "aiff"),
            "video/x-m4v" => ("video/mp4", "mp4"),
            "application/zip" => return verdict("application/zip", "zip", Certainty::Container),
            other => (other, kind.extension()),
        };
        return verdict(content_type, ending, Certainty::Signature);
    }
    if prefix.get(4..8) == Some(b"ftyp") {
        return verdict("video/mp4", "mp4", Certainty::Signature);
    }
    // An MPEG audio frame of layer III without a tag before it.
    if let [0xff, second, third, ..] = prefix
        && second & 0xe6 == 0xe2
        && third & 0xf0 != 0xf0
    {
        return verdict("audio/mpeg", "mp3", Certainty::Signature);
    }
    verdict(UNKNOWN, "bin", Certainty::None)
}

/// The media type of an asset: what the bytes show, else the stated type where it may be believed.
#[must_use]
pub fn content_type(sniffed: Sniffed, stated: Option<&str>) -> String {
    let stated = stated.and_then(plain).filter(|stated| !is_active(stated));
    let believed = stated.filter(|stated| match sniffed.certainty {
        Certainty::Signature => false,
        Certainty::Text => is_textual(stated),
        Certainty::Container => stated.starts_with("application/") || stated.starts_with("model/"),
        Certainty::None => true,
    });
    believed.unwrap_or_else(|| sniffed.content_type.to_owned())
}

/// A stated type without parameters, lower case; `None` when it is not a media type.
fn plain(stated: &str) -> Option<String> {
    let essence = stated.split(';').next()?.trim().to_ascii_lowercase();
    let token = |part: &str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&b))
    };
    let (kind, subtype) = essence.split_once('/')?;
    let usual = match essence.as_str() {
        "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => "audio/wav",
        "audio/mp3" => "audio/mpeg",
        "image/jpg" => "image/jpeg",
        "text/xml" => "application/xml",
        other => other,
    };
    (token(kind) && token(subtype) && essence.len() <= 127).then(|| usual.to_owned())
}

/// Whether a browser would run what is served with this type.
fn is_active(content_type: &str) -> bool {
    [
        "html",
        "svg",
        "javascript",
        "ecmascript",
        "xml",
        "xsl",
        "shockwave",
        "multipart/",
    ]
    .iter()
    .any(|part| content_type.contains(part))
        || content_type.starts_with("message/")
}

fn is_textual(content_type: &str) -> bool {
    content_type.starts_with("text/")
        || content_type.starts_with("model/")
        || content_type.ends_with("+json")
        || matches!(
            content_type,
            JSON | "application/yaml" | "application/toml" | "application/x-ndjson"
        )
}

#[cfg(test)]
mod tests;

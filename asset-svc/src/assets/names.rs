//! File names for people.

use crate::sniff;

/// Longest name, in bytes. Common file systems take 255; the rest is for those who add a number.
pub const MAX_NAME_BYTES: usize = 200;

/// A name that every file system takes, with an ending that fits the type: no control characters, no separators, no
/// reordering marks, at most [`MAX_NAME_BYTES`] bytes. `None` when nothing is left of it.
#[must_use]
pub fn sanitise(name: &str, content_type: &str) -> Option<String> {
    let kept: String = name.chars().filter(|c| !is_refused(*c)).collect();
    let kept = kept.trim_matches(is_edge);
    let (stem, ending) = split(kept, content_type);
    let room = MAX_NAME_BYTES.saturating_sub(ending.len() + 1);
    let stem = cut(stem, room).trim_end_matches(is_edge);
    if stem.is_empty() {
        None
    } else {
        Some(format!("{stem}.{ending}"))
    }
}

/// The name of an asset that nobody named: `<type>_<id8>.<ext>`.
#[must_use]
pub fn default_name(kind: &str, id8: &str, content_type: &str) -> String {
    let name = format!("{kind}_{id8}");
    sanitise(&name, content_type).unwrap_or_else(|| format!("file.{}", sniff::ending(content_type)))
}

/// The word for the kind of a media type: `image`, `audio`, `video`, `model_3d`, `json`, `text`, `document`, `file`.
#[must_use]
pub fn kind_of(content_type: &str) -> &'static str {
    match content_type.split('/').next() {
        Some("image") => "image",
        Some("audio") => "audio",
        Some("video") => "video",
        Some("model") => "model_3d",
        Some("text") => "text",
        _ => match content_type {
            sniff::JSON => "json",
            "application/pdf" => "document",
            _ => "file",
        },
    }
}

/// The first `n` characters of an id, for a default name.
#[must_use]
pub fn head(id: &str, n: usize) -> String {
    id.chars().take(n).collect()
}

/// At most `max` bytes of a text, cut on a character boundary.
#[must_use]
pub fn cut(text: &str, max: usize) -> &str {
    text.get(..text.floor_char_boundary(max)).unwrap_or(text)
}

/// What a name neither begins nor ends with.
fn is_edge(character: char) -> bool {
    character == '.' || character.is_whitespace()
}

fn is_refused(character: char) -> bool {
    character.is_control()
        || matches!(character, '/' | '\\' | ':' | '*' | '?' | '"' | '<' | '>' | '|')
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        || matches!(
            character,
            '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fff9}'..='\u{fffc}'
        )
}

/// Stem and ending. An ending that fits stays; one of another type is replaced; what is no ending belongs to the stem.
fn split<'a>(name: &'a str, content_type: &str) -> (&'a str, String) {
    let usual = || sniff::ending(content_type).to_owned();
    let Some((stem, written)) = name.rsplit_once('.') else {
        return (name, usual());
    };
    let lower = written.to_ascii_lowercase();
    if stem.is_empty() {
        (name, usual())
    } else if sniff::ending_fits(&lower, content_type)
        || (content_type == sniff::UNKNOWN && is_ending(&lower))
    {
        (stem, written.to_owned())
    } else if sniff::is_known_ending(&lower) {
        (stem, usual())
    } else {
        (name, usual())
    }
}

fn is_ending(text: &str) -> bool {
    (1..=8).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric())
        && text.bytes().any(|b| b.is_ascii_alphabetic())
        && !matches!(text, "html" | "htm" | "svg" | "xhtml" | "js")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("cat", "image/png", "cat.png")]
    #[case("cat.PNG", "image/png", "cat.PNG")]
    #[case("cat.jpg", "image/png", "cat.png")]
    #[case("v1.2", "image/png", "v1.2.png")]
    #[case("снимок 猫 🐈", "image/png", "снимок 猫 🐈.png")]
    #[case("../../etc/passwd", "text/plain", "etcpasswd.txt")]
    #[case("a\0b\n\u{202e}gnp.exe", "application/octet-stream", "abgnp.exe")]
    #[case("page.html", "text/plain", "page.txt")]
    #[case("page.html", "application/octet-stream", "page.bin")]
    #[case("notes.md", "text/plain", "notes.md")]
    #[case(".png", "image/png", "png.png")]
    fn names_are_safe_and_end_by_type(
        #[case] name: &str,
        #[case] content_type: &str,
        #[case] expected: &str,
    ) {
        assert_eq!(sanitise(name, content_type).as_deref(), Some(expected));
    }

    #[test]
    fn nothing_left_is_no_name() {
        assert_eq!(sanitise(" ../\0 ", "image/png"), None);
    }

    proptest! {
        #[test]
        fn any_name_becomes_a_safe_one(name in any::<String>(), times in 1_usize..40) {
            if let Some(safe) = sanitise(&name.repeat(times), "image/png") {
                prop_assert!(safe.len() <= MAX_NAME_BYTES);
                prop_assert!(!safe.contains(['/', '\\', '\0', '\n']));
                prop_assert!(!safe.starts_with('.'));
                prop_assert!(safe.to_ascii_lowercase().ends_with(".png"));
                prop_assert_eq!(sanitise(&safe, "image/png"), Some(safe));
            }
        }
    }
}

//! Texts that hide bytes or secrets, and messages of providers that repeat them.

use atelier_common::secrets::without_signature;

/// Longest message that is stored, in characters.
const MAX_MESSAGE: usize = 4_000;
/// Shortest run of base64 letters that is taken out of a message.
const MIN_RUN: usize = 64;

/// Length of what a `data:` URL carries; `None` when the text is none.
pub(super) fn data_url(content: &str) -> Option<usize> {
    let content = content.trim_start();
    let rest = content
        .get(..5)
        .filter(|head| head.eq_ignore_ascii_case("data:"))
        .and_then(|_| content.get(5..))?;
    let Some((head, payload)) = rest.split_once(',') else {
        return Some(rest.len());
    };
    if head.to_ascii_lowercase().ends_with(";base64") {
        Some(base64_length(payload.trim_end(), 0).unwrap_or(payload.len()))
    } else {
        Some(percent_decoded_length(payload))
    }
}

fn percent_decoded_length(payload: &str) -> usize {
    let bytes = payload.as_bytes();
    let mut length = 0;
    let mut at = 0;
    while at < bytes.len() {
        let escaped = bytes.get(at) == Some(&b'%')
            && bytes
                .get(at + 1..at + 3)
                .is_some_and(|pair| pair.iter().all(u8::is_ascii_hexdigit));
        at += if escaped { 3 } else { 1 };
        length += 1;
    }
    length
}

/// Decoded length of a base64 text of at least `min` letters; `None` when it is none. Line ends inside do not count;
/// one alphabet only, with legal padding or none.
pub(super) fn base64_length(content: &str, min: usize) -> Option<usize> {
    let letters: Vec<u8> = content
        .bytes()
        .filter(|byte| !matches!(byte, b'\r' | b'\n'))
        .collect();
    let body = letters
        .iter()
        .rposition(|byte| *byte != b'=')
        .map_or(0, |last| last + 1);
    let padding = letters.len() - body;
    let (mut standard, mut url_safe) = (true, true);
    for byte in letters.get(..body)? {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' => {}
            b'+' | b'/' => url_safe = false,
            b'-' | b'_' => standard = false,
            _ => return None,
        }
    }
    let legal = padding == 0 || (padding <= 2 && letters.len().is_multiple_of(4));
    let whole = body % 4 != 1;
    (letters.len() >= min && (standard || url_safe) && legal && whole).then_some(body * 3 / 4)
}

/// A message of a provider without secrets, media and signed addresses, at most 4 000 characters. `secrets` are the
/// keys that may occur in it.
#[must_use]
pub fn scrub(message: &str, secrets: &[&str]) -> String {
    let mut message = message.to_owned();
    for secret in secrets.iter().filter(|secret| !secret.is_empty()) {
        message = message.replace(secret, "[redacted]");
    }
    let mut out = String::with_capacity(message.len());
    let mut rest = message.as_str();
    while !rest.is_empty() {
        let end = rest.find(is_border).unwrap_or(rest.len());
        let (word, tail) = rest.split_at(end);
        out.push_str(&scrub_word(word));
        let border = tail.chars().next().map_or(0, char::len_utf8);
        let (between, tail) = tail.split_at(border);
        out.push_str(between);
        rest = tail;
    }
    if out.chars().count() > MAX_MESSAGE {
        out = out.chars().take(MAX_MESSAGE).collect();
    }
    out
}

fn is_border(letter: char) -> bool {
    letter.is_whitespace()
        || matches!(
            letter,
            '"' | '\'' | '(' | ')' | '<' | '>' | '`' | '[' | ']' | '{' | '}'
        )
}

fn scrub_word(word: &str) -> String {
    if let Some(at) = word
        .to_ascii_lowercase()
        .find("data:")
        .filter(|at| word.get(at + 5..).is_some_and(|w| w.contains(',')))
    {
        let (before, media) = word.split_at(at);
        return format!("{before}[{} bytes]", data_url(media).unwrap_or(0));
    }
    if let Some(at) = word.find("sk-").filter(|at| {
        word.get(..*at)
            .is_some_and(|before| !before.ends_with(char::is_alphanumeric))
    }) {
        return format!("{}[redacted]", word.get(..at).unwrap_or_default());
    }
    if let Some(at) = word.find("http")
        && let (before, address) = word.split_at(at)
        && let Some(bare) = without_signature(address)
    {
        return format!("{before}{bare}");
    }
    let is_letter =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_');
    if word.len() >= MIN_RUN && word.bytes().all(is_letter) {
        return format!("[{} bytes]", word.len() * 3 / 4);
    }
    word.to_owned()
}

//! What failures of the same kind have in common: their text without whatever differs from item to item.

/// Longest signature, in characters.
const MAX_CHARS: usize = 200;

/// The signature of a failure whose text is redacted; `None` when it says nothing.
pub(super) fn signature(code: Option<&str>, detail: &str) -> Option<String> {
    let mut text = String::new();
    let mut word = String::new();
    let close = |text: &mut String, word: &mut String| {
        if word.chars().any(|letter| letter.is_ascii_digit()) {
            text.push('#');
        } else {
            text.push_str(word);
        }
        word.clear();
    };
    // Twice what is kept is enough to fill it: a number becomes one letter.
    for letter in detail.chars().take(MAX_CHARS * 4) {
        if letter.is_alphanumeric() || letter == '_' {
            word.extend(letter.to_lowercase());
            continue;
        }
        close(&mut text, &mut word);
        let space = letter.is_whitespace();
        if !(space && text.ends_with(' ')) {
            text.push(if space { ' ' } else { letter });
        }
    }
    close(&mut text, &mut word);
    let text = text.trim();
    let whole = match code {
        Some(code) if text.is_empty() => code.to_owned(),
        Some(code) => format!("{code}: {text}"),
        None => text.to_owned(),
    };
    (!whole.is_empty()).then(|| whole.chars().take(MAX_CHARS).collect())
}

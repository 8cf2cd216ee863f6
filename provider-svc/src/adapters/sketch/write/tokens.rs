//! Pieces of a stream and their count.

/// Cuts a text into small pieces, as a model would stream it; put together they are the text.
pub fn chunks(text: &str) -> Vec<String> {
    const LONGEST: usize = 6;
    let mut pieces: Vec<String> = Vec::new();
    let mut piece = String::new();
    let mut letters = 0;
    for c in text.chars() {
        let starts = if c.is_whitespace() {
            letters > 0
        } else if c.is_alphanumeric() {
            letters >= LONGEST
        } else {
            letters > 0 || !piece.is_empty()
        };
        if starts && !piece.is_empty() {
            pieces.push(std::mem::take(&mut piece));
            letters = 0;
        }
        piece.push(c);
        if !c.is_whitespace() {
            // After a mark always comes another piece.
            letters += if c.is_alphanumeric() { 1 } else { LONGEST };
        }
    }
    if !piece.is_empty() {
        pieces.push(piece);
    }
    pieces
}

/// Estimates the tokens of a text: one for every four characters begun.
pub fn token_count(text: &str) -> u64 {
    u64::try_from(text.chars().count().div_ceil(4)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::reply;
    use super::*;

    #[test]
    fn chunks_are_small_and_complete() {
        for text in [
            "",
            " ",
            "Hello, world!  Two\n\nlines",
            "äöü 日本語テキスト — incomprehensibilities...",
            "\n a",
            "{\"a\": 1}",
        ] {
            let pieces = chunks(text);
            assert_eq!(pieces.concat(), text);
            assert!(
                pieces
                    .iter()
                    .all(|piece| !piece.is_empty() && piece.trim().chars().count() <= 6),
                "{pieces:?}"
            );
        }
        assert!(chunks(&reply("", "tell me about boats", 1)).len() > 10);
    }

    #[test]
    fn tokens_are_about_four_characters() {
        assert_eq!(
            [
                token_count(""),
                token_count("a"),
                token_count("four"),
                token_count("fives")
            ],
            [0, 1, 1, 2]
        );
    }
}

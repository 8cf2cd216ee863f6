//! What a statement may hold. A database can open other files; the words for that are refused outside of texts.

use crate::node::NodeError;

/// Longest statement, in bytes.
const MAX_SQL: usize = 100_000;
/// Longest name, in bytes.
const MAX_NAME: usize = 128;
/// Words that reach beyond the database, or change how it is kept.
const REFUSED: &[&str] = &["attach", "detach", "vacuum", "pragma", "load_extension"];

/// A name in quotes; only letters, digits and underscores.
pub(super) fn name(input: &str, text: &str) -> Result<String, NodeError> {
    let text = text.trim();
    let plain = text
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if text.is_empty()
        || text.len() > MAX_NAME
        || !plain
        || text.as_bytes().first().is_some_and(u8::is_ascii_digit)
    {
        let text: String = text.chars().take(40).collect();
        return Err(NodeError::new(format!(
            "the input `{input}` holds the name `{text}`: letters, digits and underscores make a name"
        ))
        .code("input.value"));
    }
    Ok(format!("\"{text}\""))
}
/// A statement, or a part of one, without the words that are refused.
pub(super) fn checked(input: &str, text: &str) -> Result<String, NodeError> {
    let text = text.trim();
    if text.len() > MAX_SQL || text.contains('\0') {
        let text = format!("the input `{input}` is longer than {MAX_SQL} bytes, or no text");
        return Err(NodeError::new(text).code("input.value"));
    }
    let bare = outside_of_texts(text).to_lowercase();
    let mut words = bare.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    if let Some(word) = words.find(|word| REFUSED.contains(word)) {
        let text = format!("the input `{input}` holds `{word}`, which is not allowed here");
        return Err(NodeError::new(text).code("input.value"));
    }
    Ok(text.to_owned())
}
/// Everything but texts and comments. Names in quotes stay: they may be functions.
fn outside_of_texts(sql: &str) -> String {
    let mut bare = String::with_capacity(sql.len());
    let mut letters = sql.chars().peekable();
    while let Some(letter) = letters.next() {
        match (letter, letters.peek()) {
            ('\'', _) => {
                letters.by_ref().find(|letter| *letter == '\'');
                bare.push(' ');
            }
            ('-', Some('-')) => {
                letters.by_ref().find(|letter| *letter == '\n');
                bare.push(' ');
            }
            ('/', Some('*')) => {
                letters.next();
                let mut before = ' ';
                letters.by_ref().find(|letter| {
                    let end = before == '*' && *letter == '/';
                    before = *letter;
                    end
                });
                bare.push(' ');
            }
            // A quote inside of a quoted name is no text.
            (quote @ ('"' | '`' | '['), _) => {
                let close = if quote == '[' { ']' } else { quote };
                bare.push(' ');
                bare.extend(letters.by_ref().take_while(|letter| *letter != close));
                bare.push(' ');
            }
            (other, _) => bare.push(other),
        }
    }
    bare
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("select * from t where a = 'attach it'", true)]
    #[case("select 1 -- attach\n", true)]
    #[case("select 1 /* it's */ + 2", true)]
    #[case("select attached from t", true)]
    #[case("ATTACH DATABASE '/etc/x' AS y", false)]
    #[case("select 1; aTTach 'x' as y", false)]
    #[case("select '-- '; attach 'x' as y", false)]
    #[case("select \"a'\"; attach 'x' as y; select \"'\"", false)]
    #[case("select /* ' */ 1; attach 'x' as y -- '", false)]
    #[case("select [a'b]; attach 'x' as y", false)]
    #[case("select -- '\n 1; vacuum into 'x'", false)]
    #[case("pragma journal_mode", false)]
    #[case("select \"load_extension\"('x')", false)]
    fn words_are_judged(#[case] sql: &str, #[case] allowed: bool) {
        assert_eq!(checked("sql", sql).is_ok(), allowed, "{sql}");
    }

    #[rstest]
    #[case("a_1", true)]
    #[case("1a", false)]
    #[case("a\"b", false)]
    #[case("a b", false)]
    #[case("", false)]
    fn names_are_judged(#[case] text: &str, #[case] allowed: bool) {
        assert_eq!(name("table_name", text).is_ok(), allowed, "{text}");
    }
}

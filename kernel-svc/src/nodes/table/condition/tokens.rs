//! The words and signs of a condition.

use atelier_proto::value::Value;

use crate::nodes::args::text_of;

/// Words and signs of one condition; bounds the depth of what is evaluated.
const MAX_TOKENS: usize = 2_000;

/// One word or sign.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    Text(String),
    Number(Value),
    Name(String),
    Quoted(String),
    Sign(&'static str),
}
impl Token {
    pub fn shown(&self) -> String {
        match self {
            Self::Text(text) | Self::Name(text) | Self::Quoted(text) => text.chars().take(40).collect(),
            Self::Number(number) => text_of(number),
            Self::Sign(sign) => (*sign).to_owned(),
        }
    }
}
const SIGNS: &[&str] = &[
    "===", "!==", "==", "!=", "<>", "<=", ">=", "&&", "||", "<", ">", "=", "!", "&", "|", "(", ")", "[", "]",
    ",", ".", "+", "-", "*", "/", "%", "~",
];

pub(super) fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (token, length) = if matches!(first, '\'' | '"' | '`') {
            quoted(rest, first)?
        } else if first.is_ascii_digit() {
            numeral(rest)?
        } else if first.is_alphabetic() || first == '_' {
            let length = rest
                .find(|letter: char| !letter.is_alphanumeric() && letter != '_')
                .unwrap_or(rest.len());
            (
                Token::Name(rest.get(..length).unwrap_or_default().to_owned()),
                length,
            )
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            (Token::Sign(sign), sign.len())
        } else {
            return Err(format!("`{first}` is not expected"));
        };
        tokens.push(token);
        if tokens.len() > MAX_TOKENS {
            return Err(format!("it has more than {MAX_TOKENS} words and signs"));
        }
        rest = rest.get(length..).unwrap_or_default().trim_start();
    }
    Ok(tokens)
}
fn quoted(rest: &str, quote: char) -> Result<(Token, usize), String> {
    let mut text = String::new();
    let mut escaped = false;
    for (at, letter) in rest.char_indices().skip(1) {
        match letter {
            _ if escaped => {
                escaped = false;
                match letter {
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    other => text.push(other),
                }
            }
            '\\' => escaped = true,
            letter if letter == quote => {
                let token = if quote == '`' {
                    Token::Quoted(text)
                } else {
                    Token::Text(text)
                };
                return Ok((token, at + letter.len_utf8()));
            }
            other => text.push(other),
        }
    }
    Err(format!("the quote {quote} is not closed"))
}
fn numeral(rest: &str) -> Result<(Token, usize), String> {
    let bytes = rest.as_bytes();
    let mut length = 0;
    while let Some(byte) = bytes.get(length) {
        let exponent =
            matches!(byte, b'+' | b'-') && length > 0 && matches!(bytes.get(length - 1), Some(b'e' | b'E'));
        if byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'_') || exponent {
            length += 1;
        } else {
            break;
        }
    }
    let text = rest.get(..length).unwrap_or_default().replace('_', "");
    let whole = text.parse().map(Value::Int).ok();
    let value = whole.or_else(|| text.parse().map(Value::Float).ok());
    value
        .map(|value| (Token::Number(value), length))
        .ok_or_else(|| format!("`{text}` is no number"))
}

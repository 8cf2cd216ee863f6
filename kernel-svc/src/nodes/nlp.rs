//! Words and sentences, and what they weigh in a set of texts.

use std::collections::{HashMap, HashSet};

use atelier_proto::value::{Map, Value};

use super::{
    args::{Args, count, map, missing, one, text_of},
    boolean::unknown,
    code::{Route, Types, factory},
    work::{Heavy, MAX_CONTENT},
};
use crate::node::NodeError;

/// All types of this family.
pub(super) fn types() -> Types {
    let heavy: [(&'static str, Route); 2] = [("lib.nlp.TfIdf", weights), ("lib.nlp.Tokenize", tokenize)];
    heavy
        .into_iter()
        .map(|(name, route)| (name, factory(Heavy(route))))
        .collect()
}

/// Words: letters and digits, with apostrophes and hyphens inside.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let inner = |letter: char| matches!(letter, '\'' | '’' | '-' | '_');
    text.split(move |letter: char| !letter.is_alphanumeric() && !inner(letter))
        .map(move |word| word.trim_matches(inner))
        .filter(|word| !word.is_empty())
}
/// Sentences: they end at a full stop, a question or an exclamation mark before a space, and at an empty line.
fn sentences(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let next = letters.peek().map(|(_, next)| *next);
        let end = match letter {
            '.' | '!' | '?' | '…' | '。' => next.is_none_or(char::is_whitespace),
            '\n' => next == Some('\n'),
            _ => false,
        };
        if end {
            let stop = at + letter.len_utf8();
            found.push(text.get(start..stop).unwrap_or_default().trim());
            start = stop;
        }
    }
    found.push(text.get(start..).unwrap_or_default().trim());
    found.retain(|sentence| !sentence.is_empty());
    found
}
fn bounded(input: &str, length: usize) -> Result<(), NodeError> {
    if length <= MAX_CONTENT {
        return Ok(());
    }
    Err(NodeError::new(format!("the input `{input}` is larger than {MAX_CONTENT} bytes")).code("input.size"))
}
fn tokenize(args: Args<'_>) -> Result<Map, NodeError> {
    let text = args.text("text");
    bounded("text", text.len())?;
    let tokens: Vec<Value> = match args.text_or("mode", "word").as_str() {
        "word" => words(&text).map(Value::from).collect(),
        "sentence" => sentences(&text).into_iter().map(Value::from).collect(),
        other => return Err(unknown("mode", other, "word, sentence")),
    };
    Ok(map([
        ("count", count(tokens.len())),
        ("output", Value::list(tokens)),
    ]))
}
/// The weight of a query's words in each text, best first. A word weighs more the rarer it is among the texts.
fn weights(args: Args<'_>) -> Result<Map, NodeError> {
    let texts: Vec<String> = args.list("documents").iter().map(text_of).collect();
    bounded("documents", texts.iter().map(String::len).sum())?;
    let query = args.text("query").to_lowercase();
    let wanted: HashSet<&str> = words(&query).collect();
    if wanted.is_empty() {
        return Err(missing("query", "words to look for are needed"));
    }
    let counts: Vec<HashMap<String, f64>> = texts
        .iter()
        .map(|text| {
            let mut counts = HashMap::new();
            words(&text.to_lowercase()).for_each(|word| *counts.entry(word.to_owned()).or_insert(0.0) += 1.0);
            counts
        })
        .collect();
    #[expect(clippy::cast_precision_loss, reason = "a number of texts, far below 2^52")]
    let number = |count: usize| count as f64;
    let rarity = |word: &str| {
        let holding = counts.iter().filter(|counts| counts.contains_key(word)).count();
        1.0 + (number(texts.len()) / (1.0 + number(holding))).ln()
    };
    let rarities: Vec<(&str, f64)> = wanted.into_iter().map(|word| (word, rarity(word))).collect();
    let mut scored: Vec<(usize, f64)> = counts
        .iter()
        .map(|counts| {
            let of = |(word, rarity): &(&str, f64)| counts.get(*word).copied().unwrap_or_default() * rarity;
            rarities.iter().map(of).sum()
        })
        .enumerate()
        .collect();
    scored.sort_by(|one, other| other.1.total_cmp(&one.1));
    let entry = |(place, score): (usize, f64)| -> Value {
        let text = texts.get(place).map(String::as_str).unwrap_or_default();
        map([
            ("index", count(place)),
            ("score", score.into()),
            ("document", text.into()),
        ])
        .into()
    };
    Ok(one(
        "output",
        Value::list(scored.into_iter().map(entry).collect()),
    ))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value as Json, json};

    use crate::nodes::testing::process;

    #[rstest]
    #[case("It's well-known, isn't it?", "word", json!(["It's", "well-known", "isn't", "it"]))]
    #[case("One. Two 2.5! \"Three\"\n\nFour", "sentence", json!(["One.", "Two 2.5!", "\"Three\"", "Four"]))]
    #[case("", "word", json!([]))]
    #[tokio::test]
    async fn texts_are_cut(#[case] text: &str, #[case] mode: &str, #[case] expected: Json) {
        let out = process("lib.nlp.Tokenize", json!({"text": text, "mode": mode}))
            .await
            .expect("tokens");
        let length = expected.as_array().map(Vec::len);
        assert_eq!(
            (&out["output"], out["count"].as_u64()),
            (&expected, length.map(|length| length as u64))
        );
    }

    #[tokio::test]
    async fn rare_words_weigh_more() {
        let inputs = json!({"documents": ["the sea", "the moor the", "a hill"], "query": "The moor"});
        let out = process("lib.nlp.TfIdf", inputs).await.expect("weights");
        let places: Vec<_> = out["output"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|entry| entry["index"].clone())
            .collect();
        assert_eq!(json!(places), json!([1, 0, 2]));
        let error = process("lib.nlp.TfIdf", json!({"documents": ["a"]}))
            .await
            .expect_err("no query");
        assert!(error.message.contains("`query`"));
        let error = process("lib.nlp.Tokenize", json!({"text": "a", "mode": "x"}))
            .await
            .expect_err("a mode");
        assert!(error.message.contains("`mode`"));
    }
}

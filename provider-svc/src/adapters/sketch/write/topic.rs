//! What a prompt is about.

use super::count::{is_counted, number};
use super::words::{cut_at, find_phrase, is_stop_word, lower_first, words};

/// Words that make a text a request, so that its topic is only a part of it.
const REQUESTS: &str = "write give list make create generate tell explain describe suggest draft compose what how why who \
    when please summarise summarize improve expand return brainstorm draw paint invent design";

/// What a prompt is about, in at most twelve words, to be put into a sentence.
pub(super) fn topic(prompt: &str) -> String {
    let flat = prompt.split_whitespace().collect::<Vec<_>>().join(" ");
    let after_colon = flat.rsplit_once(": ").map(|(_, rest)| rest.trim());
    let told = after_colon
        .filter(|rest| rest.chars().count() >= 3)
        .unwrap_or(&flat);
    let quoted = told
        .split('"')
        .nth(1)
        .map(str::trim)
        .filter(|text| text.chars().count() >= 3);
    let clause = quoted.unwrap_or_else(|| after_preposition(told));
    let end = clause.find(['.', '!', '?', ';', '\n']).unwrap_or(clause.len());
    let clause = clause.get(..end).unwrap_or(clause);
    let clause = [
        " one per line",
        " as a list",
        " as json",
        " in json",
        ", each",
        " each ",
        " with fields",
        " with the fields",
    ]
    .iter()
    .fold(clause, |rest, tail| cut_at(rest, tail));
    let mut kept: Vec<&str> = clause.split(' ').filter(|word| !word.is_empty()).collect();
    while kept
        .first()
        .is_some_and(|word| number(&word.to_lowercase()).is_some() || *word == "of")
        && kept.len() > 1
    {
        kept.remove(0);
    }
    kept.truncate(12);
    let text = kept.join(" ");
    let text = text.trim_matches(|c: char| c.is_whitespace() || ",:-\"'*#`".contains(c));
    if text.is_empty() {
        "a quiet place".to_owned()
    } else {
        lower_first(text)
    }
}

/// The object of a request: "six prompts about a moor" gives "a moor"; a text that requests nothing is itself the topic.
fn after_preposition(text: &str) -> &str {
    let requests = words(text).iter().take(4).any(|word| {
        is_counted(word)
            || number(word).is_some()
            || REQUESTS.split_whitespace().any(|request| request == word)
    });
    if !requests {
        return text;
    }
    for phrase in [
        " about ",
        " depicting ",
        " showing ",
        " describing ",
        " featuring ",
        " inspired by ",
        " for ",
        " of ",
        " on ",
    ] {
        if let Some(rest) = find_phrase(text, phrase).and_then(|at| text.get(at + phrase.len()..))
            && rest.trim().chars().count() >= 3
        {
            return rest;
        }
    }
    // Without a preposition, the first words that say nothing are dropped.
    let mut rest = text;
    while let Some((word, tail)) = rest.split_once(' ') {
        let plain = word.to_lowercase();
        let empty = is_stop_word(&plain) && !matches!(plain.as_str(), "a" | "an" | "the");
        if !(empty
            || number(&plain).is_some()
            || matches!(plain.as_str(), "suggest" | "draft" | "improve" | "draw" | "paint"))
        {
            break;
        }
        rest = tail;
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_what_prompts_are_about() {
        for (prompt, expected) in [
            (
                "Write six image prompts about a moor pony in fog. One per line.",
                "a moor pony in fog",
            ),
            ("list of five lighthouses", "lighthouses"),
            ("Topic: The old harbour", "the old harbour"),
            ("A cat on a sofa", "a cat on a sofa"),
            ("", "a quiet place"),
            ("İstanbul'da ABOUT sunset", "İstanbul'da ABOUT sunset"),
        ] {
            assert_eq!(topic(prompt), expected);
        }
    }
}

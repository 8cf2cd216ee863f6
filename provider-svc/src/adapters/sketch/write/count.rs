//! How many things a prompt asks for, and whether it asks for a list at all.

use super::words::words;

/// Nouns that a number in a prompt counts.
const COUNTED: &str = "prompt idea item line thing way name title image picture scene shot caption example option variation \
    variant suggestion tip step reason question fact bullet point concept description entry entries \
    sentence word topic slogan headline illustration photo poster style theme story stories character \
    element keyword tag";

/// The names of the numbers from zero up.
const NUMBERS: &str = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen \
    sixteen seventeen eighteen nineteen twenty";

/// The number that a word names, in digits or letters; 0 is none.
pub(super) fn number(word: &str) -> Option<usize> {
    if word == "dozen" {
        return Some(12);
    }
    // Four digits are years and sizes, not counts.
    let digits = (1..=3).contains(&word.len()) && word.chars().all(|c| c.is_ascii_digit());
    let value = if digits {
        word.parse().ok()
    } else {
        NUMBERS.split_whitespace().position(|name| name == word)
    };
    value.filter(|count| *count > 0)
}

/// Whether a word is a noun that is asked for by number, also in the plural.
pub(super) fn is_counted(word: &str) -> bool {
    COUNTED
        .split_whitespace()
        .any(|noun| word == noun || word.strip_suffix('s') == Some(noun))
}

/// The number of things that a prompt asks for: one before a word such as "ideas", else the first number at all.
pub(super) fn count_in(prompt: &str) -> Option<usize> {
    let words = words(prompt);
    let found = words
        .iter()
        .enumerate()
        .filter_map(|(at, word)| Some((at, number(word)?)));
    let mut first = None;
    for (at, count) in found {
        if words.iter().skip(at + 1).take(3).any(|word| is_counted(word)) {
            return Some(count);
        }
        // "one" alone is mostly a pronoun.
        if first.is_none() && count > 1 {
            first = Some(count);
        }
    }
    first
}

/// Whether a text asks for a list: by that word, or by a number of things other than sentences.
pub(super) fn wants_list(text: &str) -> bool {
    let words = words(text);
    if words.iter().any(|word| {
        matches!(
            word.as_str(),
            "list" | "lists" | "bullet" | "bullets" | "brainstorm"
        )
    }) {
        return true;
    }
    words.iter().enumerate().any(|(at, word)| {
        // "two sentences" asks for prose.
        let noun = words.iter().skip(at + 1).take(3).find(|word| is_counted(word));
        number(word).is_some_and(|count| count > 1)
            && noun.is_some_and(|noun| !matches!(noun.as_str(), "sentence" | "sentences" | "word" | "words"))
    })
}

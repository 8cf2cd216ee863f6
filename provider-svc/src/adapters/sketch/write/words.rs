//! Words and phrases: cutting texts into them, finding them, and the letters they begin with.

/// Words that say nothing about a subject.
const STOP_WORDS: &str = "a an the and or but of for to in on at by with from as is are was were be been it its this that \
    these those i you we they he she me my your our their please can could would should will what which who how why when \
    where do does did give make write create generate list tell explain describe show me some any about into over under \
    not no yes good best nice if then than so very more most also just each every all per one out up";

/// The words of a text in lower case.
pub(super) fn words(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    let split = lower.split(|c: char| !c.is_alphanumeric() && c != '\'');
    split.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

pub(super) fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.split_whitespace().any(|stop| stop == word)
}

/// The text before a phrase, compared without regard to case.
pub(super) fn cut_at<'a>(text: &'a str, phrase: &str) -> &'a str {
    find_phrase(text, phrase)
        .and_then(|at| text.get(..at))
        .unwrap_or(text)
}

/// Where an ASCII phrase begins; positions hold for the text as it is, not for a lower-case copy of other length.
pub(super) fn find_phrase(text: &str, phrase: &str) -> Option<usize> {
    text.char_indices().map(|(at, _)| at).find(|at| {
        let here = at.checked_add(phrase.len()).and_then(|end| text.get(*at..end));
        here.is_some_and(|here| here.eq_ignore_ascii_case(phrase))
    })
}

/// The text with its first letter in upper case.
pub(super) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The text as it stands inside of a sentence.
pub(super) fn lower_first(text: &str) -> String {
    let mut letters = text.chars();
    let second_is_lower = text.chars().nth(1).is_none_or(|c| !c.is_uppercase());
    match letters.next() {
        // Articles and plain words lose their capital, names and abbreviations keep it.
        Some(first) if second_is_lower && starts_with_common_word(text) => {
            first.to_lowercase().chain(letters).collect()
        }
        Some(_) | None => text.to_owned(),
    }
}

fn starts_with_common_word(text: &str) -> bool {
    let first = text.split(' ').next().unwrap_or_default().to_lowercase();
    is_stop_word(&first)
}

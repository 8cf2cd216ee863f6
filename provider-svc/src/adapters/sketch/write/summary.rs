//! Summaries: the most central sentences of a text.

use super::words::{find_phrase, is_stop_word, words};
use std::collections::HashMap;

/// The most central sentences of the text in a prompt, in their order, at most a third as long; `None` when the prompt
/// holds too little text to shorten.
pub(super) fn summary(prompt: &str) -> Option<String> {
    let source = text_to_summarise(prompt);
    let length = source.chars().count();
    if length < 90 {
        return None;
    }
    let room = length / 3;
    let all = split_sentences(source);
    let mut weights: HashMap<String, u32> = HashMap::new();
    for word in words(source)
        .into_iter()
        .filter(|word| word.chars().count() > 2 && !is_stop_word(word))
    {
        *weights.entry(word).or_default() += 1;
    }
    let mut ranked: Vec<(u32, usize)> = all
        .iter()
        .enumerate()
        .map(|(at, sentence)| {
            let words = words(sentence);
            let sum: u32 = words
                .iter()
                .map(|word| weights.get(word).copied().unwrap_or(0))
                .sum();
            let count = u32::try_from(words.len()).unwrap_or(u32::MAX).saturating_add(4);
            // Texts say early what they are about.
            let lead = if at == 0 { 150 } else { 100 };
            (sum.saturating_mul(lead) / count, at)
        })
        .collect();
    ranked.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut chosen: Vec<usize> = Vec::new();
    let mut used = 0;
    for (_, at) in &ranked {
        let size = all.get(*at).map_or(0, |sentence| sentence.chars().count() + 1);
        if used + size <= room {
            used += size;
            chosen.push(*at);
        }
    }
    if chosen.is_empty() {
        let best = ranked
            .first()
            .and_then(|(_, at)| all.get(*at))
            .copied()
            .unwrap_or(source);
        return Some(cut_to(best, room));
    }
    chosen.sort_unstable();
    Some(
        chosen
            .iter()
            .filter_map(|at| all.get(*at).copied())
            .collect::<Vec<_>>()
            .join(" "),
    )
}

/// The text behind the instruction, or all of it when there is no telling them apart.
fn text_to_summarise(prompt: &str) -> &str {
    let Some(at) = find_phrase(prompt, "summar") else {
        return prompt.trim();
    };
    let (before, rest) = prompt.split_at(at);
    let end = rest
        .find([':', '\n'])
        .map(|end| end + 1)
        .or_else(|| rest.find(". ").map(|end| end + 2));
    let after = end.and_then(|end| rest.get(end..)).unwrap_or_default().trim();
    if after.chars().count() >= before.trim().chars().count() {
        after
    } else {
        before.trim()
    }
}

pub(super) fn split_sentences(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut start = 0;
    let mut letters = text.char_indices().peekable();
    while let Some((at, c)) = letters.next() {
        let ends = c == '\n'
            || (matches!(c, '.' | '!' | '?' | '。')
                && letters.peek().is_none_or(|(_, next)| next.is_whitespace()));
        if ends {
            let end = at + c.len_utf8();
            out.extend(text.get(start..end));
            start = end;
        }
    }
    out.extend(text.get(start..));
    out.into_iter()
        .map(str::trim)
        .filter(|sentence| !sentence.is_empty())
        .collect()
}

/// The first whole words of a text within `room` characters, then "...".
fn cut_to(text: &str, room: usize) -> String {
    let kept: String = text.chars().take(room.saturating_sub(3)).collect();
    let kept = kept.rsplit_once(' ').map_or(kept.as_str(), |(head, _)| head);
    format!("{}...", kept.trim_end_matches([',', ';', ':', ' ']))
}

#[cfg(test)]
mod tests {
    use super::super::reply;
    use super::*;

    #[test]
    fn summaries_are_extracts_of_a_third() {
        let source = "The lighthouse stands on the northern cape. It was built in 1868 from local stone. Keepers lived \
            there with their families. The lighthouse lamp was lit with oil and later with electricity. Tourists visit \
            the lighthouse in summer. The path is steep and often wet. A small museum shows the old lamp.";
        let text = reply("", &format!("Summarise this text: {source}"), 1);
        assert!(text.chars().count() <= source.chars().count() / 3, "{text}");
        assert!(
            split_sentences(&text).iter().all(|part| source.contains(part)),
            "{text}"
        );
        let text = reply("You summarize what the user sends.", source, 1);
        assert!(
            !text.is_empty() && text.chars().count() <= source.chars().count() / 3,
            "{text}"
        );
        let endless = format!("Summarize: {}", "word and word ".repeat(40));
        assert!(reply("", &endless, 1).chars().count() <= 200);
    }
}

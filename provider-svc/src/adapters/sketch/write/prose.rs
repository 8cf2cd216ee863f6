//! Answers of two to four sentences, put together from stock sentences and the words of the prompt.

use super::count::is_counted;
use super::dice::Dice;
use super::topic::topic;
use super::words::{is_stop_word, words};
use std::collections::HashSet;

pub(super) fn sentences(prompt: &str, seed: u64) -> String {
    let topic = topic(prompt);
    let mut dice = Dice::new(prompt, seed);
    let mut seen = HashSet::new();
    let mut keys: Vec<String> = words(prompt)
        .into_iter()
        .filter(|word| word.chars().count() > 3 && !is_stop_word(word) && !is_counted(word))
        .filter(|word| seen.insert(word.clone()))
        .collect();
    dice.shuffle(&mut keys);
    let first = keys.first().cloned().unwrap_or_else(|| "subject".to_owned());
    let second = keys.get(1).cloned().unwrap_or_else(|| "detail".to_owned());
    let opening = if prompt.contains('?') {
        dice.pick(&[
            "In short, {t} comes down to a few things worth getting right.",
            "A good way to look at {t} is to begin with what matters most.",
            "The short answer on {t}: begin simple and add only what helps.",
        ])
    } else {
        dice.pick(&[
            "Here is a starting point for {t}.",
            "Let us picture {t}, plainly and with care.",
            "Consider {t}: a small subject with plenty of room.",
        ])
    };
    let middle = dice.pick(&[
        "Begin with the {a}, since it sets the tone for everything around it.",
        "The {a} carries most of the weight, so give it space and keep the rest quiet.",
        "Keep the {a} clear, and let the {b} support it rather than compete.",
    ]);
    let more = dice.pick(&[
        "Where the {b} comes in, choose one strong detail over several weak ones.",
        "Vary the {b} until two versions are clearly different, then compare them side by side.",
        "If in doubt about the {b}, take the simpler version.",
    ]);
    let close = dice.pick(&[
        "From there, small steps will show what to keep.",
        "Try it once, look at the result, and adjust a single thing at a time.",
        "That is enough for a first version.",
    ]);
    let mut parts = vec![opening, middle];
    if keys.len() > 1 {
        parts.push(more);
    }
    if dice.below(3) > 0 {
        parts.push(close);
    }
    let put = |text: &str| {
        text.replace("{t}", &topic)
            .replace("{a}", &first)
            .replace("{b}", &second)
    };
    parts.into_iter().map(put).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::reply;
    use super::super::summary::split_sentences;

    #[test]
    fn prose_has_two_to_four_sentences_with_words_of_the_prompt() {
        for seed in 0..40 {
            let text = reply(
                "You are helpful",
                "How should I light a watercolour of a harbour?",
                seed,
            );
            assert!((2..=4).contains(&split_sentences(&text).len()), "{text}");
            assert!(text.contains("harbour") || text.contains("watercolour"), "{text}");
        }
    }
}

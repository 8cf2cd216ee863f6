//! Text of the offline provider: answers by simple rules, from the words of the prompt and a seed.
//!
//! What lives here: recognising what a prompt asks for (a summary, JSON, a list, a sentence), writing it, and cutting
//! text into the pieces of a stream. Equal arguments give equal text. What does not: any understanding, chat messages
//! and their roles, tools, and anything async (that is the adapter beside this file).
//!
//! The order to read: [`reply`] chooses; `topic`, `count` and `words` read the prompt; `prose`, `summary`, `list` and
//! `json` (with `schema` and `fields`) write the answer; `tokens` cuts it.

mod count;
mod dice;
mod fields;
mod json;
mod list;
mod prose;
mod schema;
mod summary;
mod tokens;
mod topic;
mod words;

pub use json::json;
pub use list::{MAX_ITEMS, list};
pub use tokens::{chunks, token_count};

use count::{count_in, wants_list};
use prose::sentences;
use summary::summary;

/// Answers a prompt in a way that fits what it asks for.
///
/// `system` is read for the same wishes as the prompt ("answer in JSON"). The result is never empty: a summary of a text
/// in the prompt, a JSON object, a numbered list of exactly as many lines as asked for, one image prompt, or two to four
/// sentences.
pub fn reply(system: &str, prompt: &str, seed: u64) -> String {
    let asked = format!("{system}\n{prompt}").to_lowercase();
    if asked.contains("<svg>") {
        return svg(prompt, seed);
    }
    if asked.contains("json") {
        let value = json(prompt, None, seed);
        return serde_json::to_string_pretty(&value).unwrap_or_else(|_| value.to_string());
    }
    if asked.contains("summar")
        && let Some(summary) = summary(prompt)
    {
        return summary;
    }
    if wants_list(prompt) || wants_list(system) {
        let hint = if wants_list(prompt) {
            None
        } else {
            count_in(system)
        };
        let lines = list(prompt, hint.filter(|_| count_in(prompt).is_none()), seed);
        let numbered = lines
            .iter()
            .enumerate()
            .map(|(at, line)| format!("{}. {line}", at + 1));
        return numbered.collect::<Vec<_>>().join("\n");
    }
    if [
        "image prompt",
        "picture prompt",
        "better prompt",
        "this prompt",
        "expand the prompt",
        "prompt engineer",
    ]
    .iter()
    .any(|phrase| asked.contains(phrase))
    {
        return list(prompt, Some(1), seed).pop().unwrap_or_default();
    }
    sentences(prompt, seed)
}

/// A small drawing: discs on a ground, in colours by the prompt and the seed.
fn svg(prompt: &str, seed: u64) -> String {
    let mut dice = dice::Dice::new(prompt, seed ^ 0x7376_6720);
    let mut shapes = format!(
        "<rect width=\"100\" height=\"100\" fill=\"#{:06x}\"/>",
        0x00c0_c0c0 | dice.below(0x40_4040)
    );
    for _ in 0..5 {
        let (x, y, radius) = (dice.below(100), dice.below(100), 6 + dice.below(24));
        let colour = dice.below(0x0100_0000);
        shapes.push_str(&format!(
            "<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" fill=\"#{colour:06x}\" fill-opacity=\"0.8\"/>"
        ));
    }
    format!("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 100 100\">{shapes}</svg>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_input_same_text_other_seed_other_text() {
        for prompt in [
            "What makes a good lighthouse?",
            "six prompts about tea",
            "JSON with fields title, mood",
        ] {
            assert_eq!(reply("", prompt, 1), reply("", prompt, 1));
            assert!(
                (2..12).any(|seed| reply("", prompt, seed) != reply("", prompt, 1)),
                "{prompt}"
            );
        }
    }
}

//! Lines about a topic, each good as a prompt for a picture.

use super::count::count_in;
use super::dice::Dice;
use super::topic::topic;
use super::words::capital;

/// The most items that [`list`] makes.
pub const MAX_ITEMS: usize = 100;

/// The number of items where nobody names one.
pub(super) const DEFAULT_ITEMS: usize = 5;

pub(super) const SETTINGS: &[&str] = &[
    "on a windswept coast",
    "above a quiet valley",
    "in a walled garden",
    "at the edge of a forest",
    "beside a still lake",
    "on a rooftop over the city",
    "in an empty market square",
    "under a wide northern sky",
    "on a mountain pass",
    "in a narrow harbour",
    "among old ruins",
    "in a field of wild flowers",
    "along a winding river",
    "in a sunlit workshop",
    "at a lonely crossroads",
    "on a small island",
    "in a room with tall windows",
];

pub(super) const LIGHTS: &[&str] = &[
    "golden hour light",
    "soft morning mist",
    "under a full moon",
    "long evening shadows",
    "bright noon sun",
    "the last light of dusk",
    "after the rain",
    "in falling snow",
    "starlight and deep blue shade",
    "warm lamplight",
    "pale winter sun",
    "dramatic storm light",
    "a pink dawn",
];

pub(super) const STYLES: &[&str] = &[
    "a loose watercolour",
    "a detailed ink drawing",
    "a rich oil painting",
    "a bold woodcut",
    "a wide-angle film photograph",
    "a flat gouache illustration",
    "a cheerful pixel art scene",
    "a glowing neon print",
    "a technical blueprint",
    "a minimal travel poster",
    "a soft pastel study",
];

const DETAILS: &[&str] = &[
    "a flock of birds overhead",
    "one small figure for scale",
    "reflections in the foreground",
    "layered silhouettes",
    "a path leading the eye in",
    "muted earth colours and one bright accent",
    "drifting clouds",
    "a strong diagonal",
    "fine weathered textures",
    "plenty of empty space",
    "a distant lighted window",
    "tall grass in the wind",
    "rich complementary colours",
    "a calm symmetrical layout",
];

/// Makes lines about the topic of a prompt, each different, each good as a prompt for a picture.
///
/// The number is `count_hint`, else the one that the prompt names in digits or words up to twenty, else 5; at least 1
/// and at most [`MAX_ITEMS`]. Lines carry no number of their own.
pub fn list(prompt: &str, count_hint: Option<usize>, seed: u64) -> Vec<String> {
    let count = count_hint
        .or_else(|| count_in(prompt))
        .unwrap_or(DEFAULT_ITEMS)
        .clamp(1, MAX_ITEMS);
    let topic = topic(prompt);
    let mut dice = Dice::new(prompt, seed);
    let mut deck = |cards: &[&'static str]| {
        let mut cards = cards.to_vec();
        dice.shuffle(&mut cards);
        cards
    };
    // Decks of different length come round at different times, so no two lines get the same hand.
    let (settings, lights) = (deck(SETTINGS), deck(LIGHTS));
    let (styles, details) = (deck(STYLES), deck(DETAILS));
    let card =
        |deck: &[&'static str], at: usize| deck.get(at % deck.len().max(1)).copied().unwrap_or_default();
    (0..count)
        .map(|at| {
            let (setting, light) = (card(&settings, at), card(&lights, at));
            let (style, detail) = (card(&styles, at), card(&details, at));
            match at % 4 {
                0 => capital(&format!("{topic} {setting}, {light}, {style}")),
                1 => capital(&format!("{topic} {setting}, {detail}, {light}, {style}")),
                2 => capital(&format!("{style} of {topic} {setting}, {light}")),
                _ => capital(&format!("{topic}, {detail}, {setting}, {light}, {style}")),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::reply;
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_number_of_lines_is_the_one_asked_for() {
        for (prompt, count) in [
            ("Write six prompts about a moor", 6),
            ("6 image prompts of the sea at 4k", 6),
            ("list of five lighthouses", 5),
            ("ten ideas for a poster", 10),
            ("a dozen short captions", 12),
            ("twenty scenes in a city of 3 towers", 20),
            ("list some cats", 5),
            ("200 ideas", 100),
        ] {
            assert_eq!(list(prompt, None, 7).len(), count, "{prompt}");
            let text = reply("", prompt, 7);
            assert_eq!(text.lines().count(), count, "{prompt}: {text}");
            assert!(
                text.lines()
                    .enumerate()
                    .all(|(at, line)| line.starts_with(&format!("{}. ", at + 1))),
                "{text}"
            );
        }
        assert_eq!(list("six things", Some(3), 1).len(), 3);
        assert_eq!(list("six things", Some(0), 1).len(), 1);
        assert_eq!(list("", None, 1).len(), 5);
    }

    #[test]
    fn lines_differ_and_keep_the_topic() {
        let lines = list("100 prompts about a moor pony", None, 3);
        let distinct: HashSet<&String> = lines.iter().collect();
        assert_eq!(distinct.len(), 100);
        assert!(
            lines.iter().all(|line| line.to_lowercase().contains("moor pony")),
            "{lines:?}"
        );
    }
}

//! Text of the offline provider: answers by simple rules, from the words of the prompt and a seed.
//!
//! What lives here: recognising what a prompt asks for (a summary, JSON, a list, a sentence), writing it, and cutting
//! text into the pieces of a stream. Equal arguments give equal text. What does not: any understanding, chat messages
//! and their roles, tools, and anything async (that is the adapter beside this file).

use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};

/// The most items that [`list`] makes.
pub const MAX_ITEMS: usize = 100;

const DEFAULT_ITEMS: usize = 5;
const MAX_DEPTH: usize = 8;
const MAX_NODES: usize = 2_000;

/// Answers a prompt in a way that fits what it asks for.
///
/// `system` is read for the same wishes as the prompt ("answer in JSON"). The result is never empty: a summary of a text
/// in the prompt, a JSON object, a numbered list of exactly as many lines as asked for, one image prompt, or two to four
/// sentences.
pub fn reply(system: &str, prompt: &str, seed: u64) -> String {
    let asked = format!("{system}\n{prompt}").to_lowercase();
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

/// Makes a JSON value that fits a schema, or an object with the fields that the prompt names.
///
/// Understands `type`, `properties`, `items`, `enum`, `const`, `anyOf`/`oneOf`/`allOf` (the first arm), local `$ref`,
/// the bounds of numbers, strings and arrays, and common formats. All properties are filled, also optional ones. Nesting
/// deeper than 8 levels and more than 2000 values become null.
pub fn json(prompt: &str, schema: Option<&Value>, seed: u64) -> Value {
    let mut filler = Filler {
        topic: topic(prompt),
        asked: count_in(prompt),
        lines: Vec::new(),
        next_line: 0,
        root: schema.cloned().unwrap_or(Value::Null),
        dice: Dice::new(prompt, seed ^ 0x6a73_6f6e),
        nodes: MAX_NODES,
    };
    filler.lines = list(
        prompt,
        Some(filler.asked.unwrap_or(DEFAULT_ITEMS).clamp(8, MAX_ITEMS)),
        seed,
    );
    match schema {
        Some(schema) => {
            // Chat APIs wrap the schema in {"name": …, "schema": …}.
            let inner = if schema.get("type").is_none() {
                schema.get("schema")
            } else {
                None
            };
            let schema = inner.unwrap_or(schema);
            filler.root = schema.clone();
            filler.fill(schema, "", 0)
        }
        None => {
            let fields = fields_in(prompt);
            let object: Map<String, Value> = fields
                .into_iter()
                .map(|name| (name.clone(), filler.by_name(&name)))
                .collect();
            Value::Object(object)
        }
    }
}

/// Cuts a text into small pieces, as a model would stream it; put together they are the text.
pub fn chunks(text: &str) -> Vec<String> {
    const LONGEST: usize = 6;
    let mut pieces: Vec<String> = Vec::new();
    let mut piece = String::new();
    let mut letters = 0;
    for c in text.chars() {
        let starts = if c.is_whitespace() {
            letters > 0
        } else if c.is_alphanumeric() {
            letters >= LONGEST
        } else {
            letters > 0 || !piece.is_empty()
        };
        if starts && !piece.is_empty() {
            pieces.push(std::mem::take(&mut piece));
            letters = 0;
        }
        piece.push(c);
        if !c.is_whitespace() {
            // After a mark always comes another piece.
            letters += if c.is_alphanumeric() { 1 } else { LONGEST };
        }
    }
    if !piece.is_empty() {
        pieces.push(piece);
    }
    pieces
}

/// Estimates the tokens of a text: one for every four characters begun.
pub fn token_count(text: &str) -> u64 {
    u64::try_from(text.chars().count().div_ceil(4)).unwrap_or(u64::MAX)
}

// ------------------------------------------------------------------------------------------------ word lists

const SETTINGS: &[&str] = &[
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

const LIGHTS: &[&str] = &[
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

const STYLES: &[&str] = &[
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

const COUNTED: &[&str] = &[
    "prompt",
    "idea",
    "item",
    "line",
    "thing",
    "way",
    "name",
    "title",
    "image",
    "picture",
    "scene",
    "shot",
    "caption",
    "example",
    "option",
    "variation",
    "variant",
    "suggestion",
    "tip",
    "step",
    "reason",
    "question",
    "fact",
    "bullet",
    "point",
    "concept",
    "description",
    "entry",
    "entries",
    "sentence",
    "word",
    "topic",
    "slogan",
    "headline",
    "illustration",
    "photo",
    "poster",
    "style",
    "theme",
    "story",
    "stories",
    "character",
    "element",
    "keyword",
    "tag",
];

const NUMBERS: [&str; 21] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
    "twenty",
];

const STOP_WORDS: &str = "a an the and or but of for to in on at by with from as is are was were be been it its this that \
    these those i you we they he she me my your our their please can could would should will what which who how why when \
    where do does did give make write create generate list tell explain describe show me some any about into over under \
    not no yes good best nice if then than so very more most also just each every all per one out up";

// ------------------------------------------------------------------------------------------------ reading prompts

fn words(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    let split = lower.split(|c: char| !c.is_alphanumeric() && c != '\'');
    split.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.split_whitespace().any(|stop| stop == word)
}

fn number(word: &str) -> Option<usize> {
    if word == "dozen" {
        return Some(12);
    }
    // Four digits are years and sizes, not counts.
    let digits = (1..=3).contains(&word.len()) && word.chars().all(|c| c.is_ascii_digit());
    let value = if digits {
        word.parse().ok()
    } else {
        NUMBERS.iter().position(|name| *name == word)
    };
    value.filter(|count| *count > 0)
}

fn is_counted(word: &str) -> bool {
    COUNTED
        .iter()
        .any(|noun| word == *noun || word.strip_suffix('s') == Some(noun))
}

/// The number of things that a prompt asks for: one before a word such as "ideas", else the first number at all.
fn count_in(prompt: &str) -> Option<usize> {
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

fn wants_list(text: &str) -> bool {
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

/// What a prompt is about, in at most twelve words, to be put into a sentence.
fn topic(prompt: &str) -> String {
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

/// The text before a phrase, compared without regard to case.
fn cut_at<'a>(text: &'a str, phrase: &str) -> &'a str {
    find_phrase(text, phrase)
        .and_then(|at| text.get(..at))
        .unwrap_or(text)
}

/// Where an ASCII phrase begins; positions hold for the text as it is, not for a lower-case copy of other length.
fn find_phrase(text: &str, phrase: &str) -> Option<usize> {
    text.char_indices().map(|(at, _)| at).find(|at| {
        let here = at.checked_add(phrase.len()).and_then(|end| text.get(*at..end));
        here.is_some_and(|here| here.eq_ignore_ascii_case(phrase))
    })
}

/// The object of a request: "six prompts about a moor" gives "a moor"; a text that requests nothing is itself the topic.
fn after_preposition(text: &str) -> &str {
    let requests = words(text).iter().take(4).any(|word| {
        is_counted(word)
            || number(word).is_some()
            || matches!(
                word.as_str(),
                "write"
                    | "give"
                    | "list"
                    | "make"
                    | "create"
                    | "generate"
                    | "tell"
                    | "explain"
                    | "describe"
                    | "suggest"
                    | "draft"
                    | "compose"
                    | "what"
                    | "how"
                    | "why"
                    | "who"
                    | "when"
                    | "please"
                    | "summarise"
                    | "summarize"
                    | "improve"
                    | "expand"
                    | "return"
                    | "brainstorm"
                    | "draw"
                    | "paint"
                    | "invent"
                    | "design"
            )
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

fn lower_first(text: &str) -> String {
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

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

// ------------------------------------------------------------------------------------------------ sentences

fn sentences(prompt: &str, seed: u64) -> String {
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

/// The most central sentences of the text in a prompt, in their order, at most a third as long; `None` when the prompt
/// holds too little text to shorten.
fn summary(prompt: &str) -> Option<String> {
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

fn split_sentences(text: &str) -> Vec<&str> {
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

// ------------------------------------------------------------------------------------------------ JSON

/// The names of fields in a prompt: quoted ones, else what follows "fields", "keys", "with" or "containing".
fn fields_in(prompt: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut add = |name: &str| {
        let good = !name.is_empty()
            && name.chars().count() <= 40
            && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-');
        if good && names.len() < 32 && !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    };
    for quote in ['`', '"'] {
        prompt
            .split(quote)
            .skip(1)
            .step_by(2)
            .for_each(|name| add(name.trim()));
    }
    if names.is_empty() {
        let marks = [
            "fields",
            "keys",
            "properties",
            "attributes",
            "containing",
            "json with",
            "object with",
        ];
        if let Some(rest) = marks
            .iter()
            .find_map(|mark| find_phrase(prompt, mark).and_then(|at| prompt.get(at + mark.len()..)))
        {
            let end = rest.find(['.', '\n', '?', '!']).unwrap_or(rest.len());
            let rest = rest.get(..end).unwrap_or(rest);
            let rest = [" for ", " about ", " describing ", " of "]
                .iter()
                .fold(rest, |rest, tail| cut_at(rest, tail));
            // "prompts (3 items)": brackets explain a name and belong to none.
            let rest: String = rest
                .split('(')
                .enumerate()
                .map(|(at, part)| match part.split_once(')') {
                    Some((_, outside)) if at > 0 => outside,
                    Some(_) | None => part,
                })
                .collect();
            let rest = rest
                .replace(" and ", ",")
                .replace(" or ", ",")
                .replace([':', '(', ')', '{', '}', '[', ']'], ",");
            for part in rest.split([',', ';', '/']) {
                let kept: Vec<&str> = part
                    .split_whitespace()
                    .filter(|word| !is_stop_word(&word.to_lowercase()))
                    .collect();
                // "the named fields are: title": words that only lead over to the names.
                if (1..=3).contains(&kept.len())
                    && !matches!(kept.first(), Some(&("named" | "called" | "fields" | "following")))
                {
                    let part = kept.join("_");
                    names_push(&mut names, &part);
                }
            }
        }
    }
    if names.is_empty() {
        names = ["title", "description", "tags"].map(str::to_owned).to_vec();
    }
    names
}

fn names_push(names: &mut Vec<String>, name: &str) {
    let name = name.trim_matches(|c: char| !c.is_alphanumeric() && c != '_');
    let fits = !name.is_empty() && name.chars().count() <= 40 && names.len() < 32;
    if fits && !names.iter().any(|known| known == name) {
        names.push(name.to_owned());
    }
}

/// Fills a schema; knows how much it has written and stops in time.
struct Filler {
    topic: String,
    asked: Option<usize>,
    lines: Vec<String>,
    next_line: usize,
    root: Value,
    dice: Dice,
    nodes: usize,
}

impl Filler {
    fn line(&mut self) -> String {
        let at = self.next_line % self.lines.len().max(1);
        self.next_line += 1;
        self.lines.get(at).cloned().unwrap_or_default()
    }

    fn fill(&mut self, schema: &Value, name: &str, depth: usize) -> Value {
        if depth > MAX_DEPTH || self.nodes == 0 {
            return Value::Null;
        }
        self.nodes -= 1;
        if let Some(constant) = schema.get("const") {
            return constant.clone();
        }
        if let Some(options) = schema.get("enum").and_then(Value::as_array)
            && !options.is_empty()
        {
            let at = self.dice.below(options.len());
            return options.get(at).cloned().unwrap_or(Value::Null);
        }
        if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
            let found = target
                .strip_prefix('#')
                .and_then(|path| self.root.pointer(path))
                .cloned();
            return found.map_or(Value::Null, |found| self.fill(&found, name, depth + 1));
        }
        for union in ["anyOf", "oneOf", "allOf"] {
            let arms = schema.get(union).and_then(Value::as_array);
            let arm = arms
                .and_then(|arms| arms.iter().find(|arm| kind(arm) != Some("null")))
                .cloned();
            if let Some(arm) = arm {
                return self.fill(&arm, name, depth + 1);
            }
        }
        match kind(schema) {
            Some("object") => self.object(schema, depth),
            Some("array") => self.array(schema, name, depth),
            Some("integer") => self.integer(schema),
            Some("number") => self.float(schema),
            Some("boolean") => Value::Bool(self.dice.below(2) == 1),
            Some("null") => Value::Null,
            Some("string") => Value::String(self.string(schema, name)),
            Some(_) | None => self.by_name(name),
        }
    }

    fn object(&mut self, schema: &Value, depth: usize) -> Value {
        let mut out = Map::new();
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            for (name, inner) in properties {
                let value = self.fill(inner, name, depth + 1);
                out.insert(name.clone(), value);
            }
        }
        let required = schema.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            if !out.contains_key(name) {
                let value = self.by_name(name);
                out.insert(name.to_owned(), value);
            }
        }
        Value::Object(out)
    }

    fn array(&mut self, schema: &Value, name: &str, depth: usize) -> Value {
        let bound = |key: &str| {
            schema
                .get(key)
                .and_then(Value::as_u64)
                .and_then(|n| usize::try_from(n).ok())
        };
        let most = bound("maxItems").unwrap_or(MAX_ITEMS).min(MAX_ITEMS);
        let least = bound("minItems").unwrap_or(0).min(most);
        // The number in the prompt is meant for the outermost list.
        let usual = self.asked.filter(|_| depth <= 1).unwrap_or(3);
        let text = Value::Object(Map::from_iter([("type".to_owned(), Value::from("string"))]));
        let items = schema
            .get("items")
            .filter(|items| items.is_object())
            .cloned()
            .unwrap_or(text);
        let count = usual.clamp(least, most);
        let single = name.strip_suffix('s').unwrap_or(name);
        let mut out = Vec::new();
        while out.len() < count && self.nodes > 0 {
            out.push(self.fill(&items, single, depth + 1));
        }
        Value::Array(out)
    }

    fn integer(&mut self, schema: &Value) -> Value {
        let bound = |key: &str| schema.get(key).and_then(Value::as_i64);
        let least = bound("minimum").or_else(|| bound("exclusiveMinimum").map(|n| n.saturating_add(1)));
        let most = bound("maximum").or_else(|| bound("exclusiveMaximum").map(|n| n.saturating_sub(1)));
        let (least, most) = match (least, most) {
            (Some(least), Some(most)) => (least, most.max(least)),
            (Some(least), None) => (least, least.saturating_add(99)),
            (None, Some(most)) => (most.saturating_sub(99).max(most.min(1)), most),
            (None, None) => (1, 100),
        };
        let span = usize::try_from(most.saturating_sub(least))
            .unwrap_or(usize::MAX - 1)
            .saturating_add(1);
        let step = i64::try_from(self.dice.below(span)).unwrap_or(0);
        let value = least.saturating_add(step);
        let multiple = schema
            .get("multipleOf")
            .and_then(Value::as_i64)
            .filter(|n| *n > 0)
            .unwrap_or(1);
        let down = value.saturating_sub(value.rem_euclid(multiple));
        Value::from(if down < least {
            down.saturating_add(multiple)
        } else {
            down
        })
    }

    fn float(&mut self, schema: &Value) -> Value {
        let bound = |keys: [&str; 2]| keys.iter().find_map(|key| schema.get(key)?.as_f64());
        let least = bound(["minimum", "exclusiveMinimum"]);
        let most = bound(["maximum", "exclusiveMaximum"]);
        let (least, most) = match (least, most) {
            (Some(least), Some(most)) => (least, most.max(least)),
            (Some(least), None) => (least, least + 1.0),
            (None, Some(most)) => (most - 1.0, most),
            (None, None) => (0.0, 1.0),
        };
        let share = f64::from(u32::try_from(self.dice.below(97)).unwrap_or(0) + 2) / 100.0;
        let value = least + (most - least) * share;
        let rounded = (value * 1000.0).round() / 1000.0;
        Value::from(if rounded > least && rounded < most {
            rounded
        } else {
            value
        })
    }

    fn string(&mut self, schema: &Value, name: &str) -> String {
        let format = schema.get("format").and_then(Value::as_str);
        let text = match format {
            Some("date") => "2026-11-30".to_owned(),
            Some("date-time") => "2026-11-30T12:00:00Z".to_owned(),
            Some("time") => "12:00:00Z".to_owned(),
            Some("email") => "someone@example.com".to_owned(),
            Some("uri" | "url") => "https://example.com/sketch".to_owned(),
            Some("uuid") => {
                let (a, b) = (self.dice.roll(), self.dice.roll());
                let (variant, node) = ((b >> 48) & 0x0fff | 0x8000, b & 0xffff_ffff_ffff);
                format!(
                    "{:08x}-{:04x}-4{:03x}-{variant:04x}-{node:012x}",
                    a >> 32,
                    (a >> 16) & 0xffff,
                    a & 0xfff
                )
            }
            Some(_) | None => self.text_for(name),
        };
        let bound = |key: &str| {
            schema
                .get(key)
                .and_then(Value::as_u64)
                .and_then(|n| usize::try_from(n).ok())
        };
        let most = bound("maxLength").unwrap_or(10_000).min(10_000);
        let least = bound("minLength").unwrap_or(0).min(most);
        let mut text = text;
        while text.chars().count() < least {
            text.push(' ');
            text.push_str(&self.topic.clone());
            text.push('.');
        }
        text.chars().take(most).collect()
    }

    /// A text that suits the name of its field.
    fn text_for(&mut self, name: &str) -> String {
        let lower = name.to_lowercase();
        let has = |parts: &[&str]| parts.iter().any(|part| lower.contains(part));
        if has(&["title", "name", "headline", "subject", "topic"]) {
            capital(&self.topic)
        } else if has(&["mood", "tone", "feeling"]) {
            self.dice
                .pick(&["calm", "wistful", "hopeful", "playful", "solemn"])
                .to_owned()
        } else if has(&["colour", "color", "palette"]) {
            self.dice
                .pick(&["slate blue", "warm ochre", "moss green", "pale rose", "ink black"])
                .to_owned()
        } else if has(&["style", "medium"]) {
            self.dice.pick(STYLES).to_owned()
        } else if has(&["setting", "place", "location", "background"]) {
            self.dice.pick(SETTINGS).to_owned()
        } else if has(&["light", "weather", "time"]) {
            self.dice.pick(LIGHTS).to_owned()
        } else if has(&["tag", "keyword", "category", "genre"]) {
            let mut options = vec![
                "light",
                "landscape",
                "study",
                "texture",
                "quiet",
                "colour",
                "detail",
            ];
            let topic = self.topic.clone();
            options.extend(
                topic
                    .split(' ')
                    .filter(|word| word.chars().count() > 3 && !is_stop_word(word)),
            );
            let at = self.dice.below(options.len());
            options
                .get(at)
                .copied()
                .unwrap_or("study")
                .trim_matches(',')
                .to_owned()
        } else if has(&["id", "slug", "key"]) && lower.chars().count() < 10 {
            let parts = words(&self.topic)
                .into_iter()
                .filter(|word| !is_stop_word(word))
                .take(3);
            let slug = parts.collect::<Vec<_>>().join("-");
            if slug.is_empty() {
                "sketch".to_owned()
            } else {
                slug
            }
        } else {
            self.line()
        }
    }

    /// A value for a field of which only the name is known.
    fn by_name(&mut self, name: &str) -> Value {
        let lower = name.to_lowercase();
        let starts = |parts: &[&str]| parts.iter().any(|part| lower.starts_with(part));
        let has = |parts: &[&str]| parts.iter().any(|part| lower.contains(part));
        if starts(&["is_", "has_", "can_"]) || matches!(lower.as_str(), "done" | "enabled" | "active" | "ok")
        {
            return Value::Bool(self.dice.below(2) == 1);
        }
        if has(&[
            "count", "number", "year", "age", "width", "height", "duration", "seconds", "quantity",
        ]) && !has(&["image", "page", "language"])
        {
            let year = lower.contains("year");
            let value = if year {
                1900 + self.dice.below(126)
            } else {
                1 + self.dice.below(60)
            };
            return Value::from(value);
        }
        if has(&["score", "rating", "confidence", "price", "weight", "probability"]) {
            return self.float(&Value::Null);
        }
        let plural = has(&[
            "tags", "keywords", "items", "prompts", "colours", "colors", "ideas", "list", "steps", "options",
        ]);
        if plural {
            let count = self.asked.unwrap_or(3).min(MAX_ITEMS);
            let single = lower.strip_suffix('s').unwrap_or(&lower).to_owned();
            return Value::Array(
                (0..count)
                    .map(|_| Value::String(self.text_for(&single)))
                    .collect(),
            );
        }
        Value::String(self.text_for(name))
    }
}

/// The type that a schema asks for; of several the first that isn't null, and what the other keywords suggest.
fn kind(schema: &Value) -> Option<&str> {
    let stated = schema.get("type").and_then(|stated| match stated {
        Value::String(name) => Some(name.as_str()),
        Value::Array(names) => names
            .iter()
            .filter_map(Value::as_str)
            .find(|name| *name != "null"),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    });
    stated.or_else(|| {
        if schema.get("properties").is_some() || schema.get("required").is_some() {
            Some("object")
        } else if schema.get("items").is_some() {
            Some("array")
        } else {
            None
        }
    })
}

// ------------------------------------------------------------------------------------------------ dice

/// A small deterministic generator (splitmix64); `rand` promises no stable streams between versions.
#[derive(Debug, Clone)]
struct Dice(u64);

impl Dice {
    fn new(text: &str, seed: u64) -> Self {
        let digest = blake3::hash(text.trim().as_bytes());
        let start = digest
            .as_bytes()
            .iter()
            .take(8)
            .fold(0u64, |sum, byte| (sum << 8) | u64::from(*byte));
        Self(start ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A whole number below `bound`; 0 when the bound is 0.
    fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.roll() % bound).unwrap_or(0)
    }

    fn pick(&mut self, options: &[&'static str]) -> &'static str {
        let at = self.below(options.len());
        options.get(at).copied().unwrap_or_default()
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            let other = self.below(at + 1);
            items.swap(at, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json as value;

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

    #[test]
    fn json_has_the_fields_of_the_prompt() {
        let text = reply(
            "",
            "Return JSON with the fields title, mood, is_public and tags (3 items) for a picture of a moor",
            1,
        );
        let object: Value = serde_json::from_str(&text).unwrap();
        let names: Vec<&String> = object.as_object().unwrap().keys().collect();
        assert_eq!(names, ["title", "mood", "is_public", "tags"]);
        assert!(object["is_public"].is_boolean() && object["tags"].is_array());
        let quoted = json("Give me JSON: {\"caption\": \"…\", \"year\": 1}", None, 1);
        assert_eq!(
            quoted.as_object().unwrap().keys().collect::<Vec<_>>(),
            ["caption", "year"]
        );
        assert!(json("json please", None, 1).get("title").is_some());
    }

    #[test]
    fn schemas_are_filled() {
        let schema = value!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "maxLength": 8},
                "count": {"type": "integer", "minimum": 3, "maximum": 4},
                "share": {"type": "number", "minimum": 0, "maximum": 1},
                "open": {"type": "boolean"},
                "kind": {"enum": ["a", "b"]},
                "maybe": {"type": ["null", "integer"]},
                "prompts": {"type": "array", "items": {"$ref": "#/$defs/prompt"}, "minItems": 2}
            },
            "required": ["name", "extra"],
            "$defs": {"prompt": {"type": "object", "properties": {"text": {"type": "string"}}}}
        });
        for seed in 0..30 {
            let out = json("6 prompts about a moor", Some(&schema), seed);
            assert!(out["name"].as_str().unwrap().chars().count() <= 8);
            assert!((3..=4).contains(&out["count"].as_i64().unwrap()));
            assert!((0.0..=1.0).contains(&out["share"].as_f64().unwrap()));
            assert!(out["open"].is_boolean() && out["maybe"].is_i64() && out["extra"].is_string());
            assert!(["a", "b"].contains(&out["kind"].as_str().unwrap()));
            let prompts = out["prompts"].as_array().unwrap();
            assert_eq!(prompts.len(), 6);
            assert!(
                prompts
                    .iter()
                    .all(|prompt| prompt["text"].as_str().unwrap().contains("moor"))
            );
        }
    }

    #[test]
    fn schemas_without_end_end() {
        let own = value!({"type": "object", "properties": {"next": {"$ref": "#"}}});
        assert!(json("x", Some(&own), 1).is_object());
        let wide = value!({"type": "array", "minItems": 100, "items": {"$ref": "#"}});
        assert!(json("x", Some(&wide), 1).is_array());
        for odd in [
            value!(true),
            value!(null),
            value!({}),
            value!({"type": "wrong"}),
            value!({"enum": []}),
        ] {
            let _ = json("x", Some(&odd), 1);
        }
        let extreme = value!({"type": "integer", "minimum": i64::MIN, "maximum": i64::MAX, "multipleOf": 7});
        assert!(json("x", Some(&extreme), 1).is_i64());
    }

    #[test]
    fn chunks_are_small_and_complete() {
        for text in [
            "",
            " ",
            "Hello, world!  Two\n\nlines",
            "äöü 日本語テキスト — incomprehensibilities...",
            "\n a",
            "{\"a\": 1}",
        ] {
            let pieces = chunks(text);
            assert_eq!(pieces.concat(), text);
            assert!(
                pieces
                    .iter()
                    .all(|piece| !piece.is_empty() && piece.trim().chars().count() <= 6),
                "{pieces:?}"
            );
        }
        assert!(chunks(&reply("", "tell me about boats", 1)).len() > 10);
    }

    #[test]
    fn tokens_are_about_four_characters() {
        assert_eq!(
            [
                token_count(""),
                token_count("a"),
                token_count("four"),
                token_count("fives")
            ],
            [0, 1, 1, 2]
        );
    }
}

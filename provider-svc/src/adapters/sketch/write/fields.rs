//! Fields of JSON objects: their names in a prompt, and values that suit a name.

use super::list::{LIGHTS, MAX_ITEMS, SETTINGS, STYLES};
use super::schema::Filler;
use super::words::{capital, cut_at, find_phrase, is_stop_word, words};
use serde_json::Value;

/// The names of fields in a prompt: quoted ones, else what follows "fields", "keys", "with" or "containing".
pub(super) fn fields_in(prompt: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for quote in ['`', '"'] {
        for name in prompt.split(quote).skip(1).step_by(2).map(str::trim) {
            if name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-') {
                add(&mut names, name);
            }
        }
    }
    if names.is_empty() {
        add_listed(prompt, &mut names);
    }
    if names.is_empty() {
        names = ["title", "description", "tags"].map(str::to_owned).to_vec();
    }
    names
}

/// Adds the names that a prompt lists without quotes.
fn add_listed(prompt: &str, names: &mut Vec<String>) {
    let marks = [
        "fields",
        "keys",
        "properties",
        "attributes",
        "containing",
        "json with",
        "object with",
    ];
    let Some(rest) = marks
        .iter()
        .find_map(|mark| find_phrase(prompt, mark).and_then(|at| prompt.get(at + mark.len()..)))
    else {
        return;
    };
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
            add(
                names,
                part.trim_matches(|c: char| !c.is_alphanumeric() && c != '_'),
            );
        }
    }
}

/// Adds a name that is neither known nor endless; 32 names are enough.
fn add(names: &mut Vec<String>, name: &str) {
    let fits = !name.is_empty() && name.chars().count() <= 40 && names.len() < 32;
    if fits && !names.iter().any(|known| known == name) {
        names.push(name.to_owned());
    }
}

impl Filler {
    /// A value for a field of which only the name is known.
    pub(super) fn by_name(&mut self, name: &str) -> Value {
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

    /// A text that suits the name of its field.
    pub(super) fn text_for(&mut self, name: &str) -> String {
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
            self.tag()
        } else if has(&["id", "slug", "key"]) && lower.chars().count() < 10 {
            self.slug()
        } else {
            self.line()
        }
    }

    /// A stock word or a word of the topic.
    fn tag(&mut self) -> String {
        let stock = "light landscape study texture quiet colour detail";
        let of_topic = self.topic.split(' ');
        let of_topic = of_topic.filter(|word| word.chars().count() > 3 && !is_stop_word(word));
        let options: Vec<&str> = stock.split(' ').chain(of_topic).collect();
        let at = self.dice.below(options.len());
        let tag = options.get(at).copied().unwrap_or("study");
        tag.trim_matches(',').to_owned()
    }

    /// The first words of the topic, joined by hyphens.
    fn slug(&self) -> String {
        let words = words(&self.topic);
        let parts = words.into_iter().filter(|word| !is_stop_word(word)).take(3);
        let slug = parts.collect::<Vec<_>>().join("-");
        if slug.is_empty() {
            "sketch".to_owned()
        } else {
            slug
        }
    }

    /// The next of the lines about the topic, over and over.
    fn line(&mut self) -> String {
        let at = self.next_line % self.lines.len().max(1);
        self.next_line += 1;
        self.lines.get(at).cloned().unwrap_or_default()
    }
}

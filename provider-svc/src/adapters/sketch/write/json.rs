//! JSON for a prompt: by a schema, or with the fields that the prompt names.

use super::count::count_in;
use super::dice::Dice;
use super::fields::fields_in;
use super::list::{DEFAULT_ITEMS, MAX_ITEMS, list};
use super::schema::{Filler, MAX_NODES};
use super::topic::topic;
use serde_json::{Map, Value};

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

#[cfg(test)]
mod tests {
    use super::super::reply;
    use super::*;

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
}

//! Values that fit a JSON schema. What a field of a given name holds is in `fields`.

use super::dice::Dice;
use super::list::MAX_ITEMS;
use serde_json::{Map, Value};

const MAX_DEPTH: usize = 8;
pub(super) const MAX_NODES: usize = 2_000;

/// Fills a schema; knows how much it has written and stops in time.
pub(super) struct Filler {
    pub(super) topic: String,
    pub(super) asked: Option<usize>,
    pub(super) lines: Vec<String>,
    pub(super) next_line: usize,
    pub(super) root: Value,
    pub(super) dice: Dice,
    pub(super) nodes: usize,
}

impl Filler {
    pub(super) fn fill(&mut self, schema: &Value, name: &str, depth: usize) -> Value {
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

    pub(super) fn float(&mut self, schema: &Value) -> Value {
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

#[cfg(test)]
mod tests {
    use super::super::json;
    use serde_json::json as value;

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
}

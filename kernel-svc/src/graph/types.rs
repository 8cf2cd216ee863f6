//! Type strings: `name` or `name[arg, …]`, who may feed whom, and the type of a value.

use std::cell::Cell;

use atelier_proto::value::Value;

/// Types within types; what lies deeper is a name as it stands.
const MAX_DEPTH: usize = 16;
/// Pairs of types that one comparison looks at; two types that need more are taken to fit. Unions within lists within
/// unions could ask for all combinations otherwise.
const MAX_STEPS: u32 = 10_000;

/// A parsed type string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Type {
    name: String,
    args: Vec<Type>,
}

impl Type {
    /// Parses a type string. Empty text is `any`; a bracket that is never closed is part of the name.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        Self::parse_at(text, 0)
    }
    fn parse_at(text: &str, depth: usize) -> Self {
        let text = text.trim();
        if text.is_empty() {
            return Self::named("any");
        }
        let inner = text.strip_suffix(']').and_then(|open| open.split_once('['));
        match inner {
            Some((name, args)) if !name.trim().is_empty() && depth < MAX_DEPTH => Self {
                name: name.trim().to_owned(),
                args: split_args(args)
                    .into_iter()
                    .map(|arg| Self::parse_at(arg, depth + 1))
                    .collect(),
            },
            _ => Self::named(text),
        }
    }
    fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            args: Vec::new(),
        }
    }
    fn is(&self, name: &str) -> bool {
        self.name == name
    }
    fn is_number(&self) -> bool {
        matches!(self.name.as_str(), "int" | "float" | "number")
    }
    /// Whether values of this type may go into a handle of type `target`.
    #[must_use]
    pub fn feeds(&self, target: &Self) -> bool {
        self.fits(target, &Cell::new(MAX_STEPS))
    }
    fn fits(&self, target: &Self, steps: &Cell<u32>) -> bool {
        let Some(left) = steps.get().checked_sub(1) else {
            return true;
        };
        steps.set(left);
        self.matches(target, steps)
            || (target.is("list")
                && !self.is("list")
                && target.args.first().is_none_or(|item| self.fits(item, steps)))
    }
    fn matches(&self, target: &Self, steps: &Cell<u32>) -> bool {
        if self.is("any") || target.is("any") {
            return true;
        }
        if self.is("union") {
            return self.args.iter().any(|member| member.fits(target, steps));
        }
        if target.is("union") {
            return target.args.iter().any(|member| self.fits(member, steps));
        }
        if self.is_number() && target.is_number() {
            return true;
        }
        self.name == target.name
            && (self.args.len() != target.args.len()
                || self
                    .args
                    .iter()
                    .zip(&target.args)
                    .all(|(source, target)| source.fits(target, steps)))
    }
}

impl Type {
    /// Whether a value can be told to be of this type: numbers, texts, lists and maps of them. Whatever may be anything,
    /// and references to media, cannot.
    #[must_use]
    pub fn is_checkable(&self) -> bool {
        match self.name.as_str() {
            "str" | "int" | "float" | "bool" => self.args.is_empty(),
            "list" | "dict" => self.args.iter().all(Self::is_checkable),
            "union" => !self.args.is_empty() && self.args.iter().all(Self::is_checkable),
            _ => false,
        }
    }
    /// Whether a value is of this type, which must be one that can be checked.
    #[must_use]
    pub fn admits(&self, value: &Value) -> bool {
        match (self.name.as_str(), value) {
            ("str", Value::Str(_))
            | ("int" | "float", Value::Int(_))
            | ("float", Value::Float(_))
            | ("bool", Value::Bool(_)) => true,
            ("list", Value::List(values)) => self
                .args
                .first()
                .is_none_or(|item| values.iter().all(|value| item.admits(value))),
            // The last argument is the type of the values; names are text anyway.
            ("dict", Value::Map(map)) => self
                .args
                .last()
                .is_none_or(|item| map.values().all(|value| item.admits(value))),
            ("union", value) => self.args.iter().any(|member| member.admits(value)),
            _ => false,
        }
    }
}

/// Splits the text between two brackets at its top-level commas.
fn split_args(text: &str) -> Vec<&str> {
    let (mut args, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, letter) in text.char_indices() {
        match letter {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                args.extend(text.get(start..at));
                start = at + 1;
            }
            _ => {}
        }
    }
    args.extend(text.get(start..).filter(|rest| !rest.trim().is_empty()));
    args
}

/// Whether a handle of type `source` may feed one of type `target`.
#[must_use]
pub fn compatible(source: &str, target: &str) -> bool {
    source == target || Type::parse(source).feeds(&Type::parse(target))
}

/// Whether a type string declares a list.
#[must_use]
pub fn is_list(text: &str) -> bool {
    Type::parse(text).is("list")
}

/// The type of a value: what a declared slot compares with. `None` for null, which fits everywhere.
#[must_use]
pub fn infer(value: &Value) -> Option<String> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(_) => "bool".to_owned(),
        Value::Int(_) => "int".to_owned(),
        Value::Float(number) if number.fract() == 0.0 => "int".to_owned(),
        Value::Float(_) => "float".to_owned(),
        Value::Str(_) => "str".to_owned(),
        Value::Bytes(_) => "bytes".to_owned(),
        Value::List(values) => {
            let item = values.first().and_then(infer).unwrap_or_else(|| "any".to_owned());
            format!("list[{item}]")
        }
        Value::Map(map) => map
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or("dict")
            .to_owned(),
        Value::Media(media) => media.kind.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_types_are_parsed_and_compared_in_bounded_time() {
        let nested = |open: &str, count: usize| format!("{}int{}", open.repeat(count), "]".repeat(count));
        for (source, target) in [
            (nested("union[str, ", 16), nested("list[", 16)),
            (nested("union[str, ", 12), nested("list[union[image, ", 12)),
            (nested("list[", 200_000), nested("list[", 200_001)),
            ("[".repeat(300_000), "]".repeat(300_000)),
        ] {
            let start = std::time::Instant::now();
            let _ = compatible(&source, &target);
            let _ = infer(&Value::Str(source.into()));
            assert!(start.elapsed() < std::time::Duration::from_secs(5));
        }
    }
    #[test]
    fn values_are_checked_against_types_that_say_enough() {
        let number = Value::list(vec![Value::Int(1), Value::Float(0.5)]);
        let map = Value::map([("a".to_owned(), Value::Int(1))].into_iter().collect());
        for (ty, value, fits) in [
            ("int", Value::Int(1), true),
            ("float", Value::Int(1), true),
            ("int", Value::Float(1.0), false),
            ("str", Value::Null, false),
            ("bool", Value::Bool(true), true),
            ("list", number.clone(), true),
            ("list[float]", number.clone(), true),
            ("list[int]", number, false),
            ("dict[str, int]", map.clone(), true),
            ("dict", map.clone(), true),
            ("list", map, false),
            ("union[int, str]", "a".into(), true),
        ] {
            let ty = Type::parse(ty);
            assert!(ty.is_checkable(), "{ty:?}");
            assert_eq!(ty.admits(&value), fits, "{ty:?} {value:?}");
        }
        for ty in [
            "any",
            "image",
            "list[image]",
            "",
            "union",
            "union[int, any]",
            "str[int]",
        ] {
            assert!(!Type::parse(ty).is_checkable(), "{ty}");
        }
    }

    #[test]
    fn k_037_conversions_that_are_allowed() {
        for (source, target) in [
            ("int", "float"),
            ("float", "int"),
            ("any", "image"),
            ("str", "union[int, str]"),
            ("str", "list[str]"),
            ("union[image, str]", "str"),
            ("str", "list"),
            ("dict[str, int]", "dict"),
            ("", "image"),
            ("list[int]", "list[float]"),
            ("list[x", "list[x"),
            (" list[ str ] ", "list[str]"),
            ("dict[str, list[int]]", "dict[str, list[number]]"),
        ] {
            assert!(compatible(source, target), "{source} -> {target}");
        }
    }
    #[test]
    fn k_038_a_list_does_not_feed_a_scalar() {
        for (source, target) in [
            ("list[str]", "str"),
            ("image", "str"),
            ("list[image]", "list[str]"),
            ("bool", "int"),
        ] {
            assert!(!compatible(source, target), "{source} -> {target}");
        }
    }
}

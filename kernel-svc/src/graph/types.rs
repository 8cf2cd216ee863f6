//! Type strings: `name` or `name[arg, …]`, who may feed whom, and the type of a value.

use atelier_proto::value::Value;

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
        let text = text.trim();
        if text.is_empty() {
            return Self::named("any");
        }
        let inner = text.strip_suffix(']').and_then(|open| open.split_once('['));
        match inner {
            Some((name, args)) if !name.trim().is_empty() => Self {
                name: name.trim().to_owned(),
                args: split_args(args).into_iter().map(Self::parse).collect(),
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
        self.matches(target)
            || (target.is("list")
                && !self.is("list")
                && target.args.first().is_none_or(|item| self.feeds(item)))
    }
    fn matches(&self, target: &Self) -> bool {
        if self.is("any") || target.is("any") {
            return true;
        }
        if self.is("union") {
            return self.args.iter().any(|member| member.feeds(target));
        }
        if target.is("union") {
            return target.args.iter().any(|member| self.feeds(member));
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
                    .all(|(source, target)| source.feeds(target)))
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

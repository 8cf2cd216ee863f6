//! Reading a capability's parameters, which come from many kinds of callers.

use atelier_proto::value::{Map, Value};
use rust_decimal::Decimal;

/// Parameters with typed reads. A value of another type than asked for reads as absent.
#[derive(Debug, Clone, Copy)]
pub struct Params<'a>(pub &'a Map);

impl<'a> Params<'a> {
    /// A text; empty counts as absent.
    #[must_use]
    pub fn text(self, key: &str) -> Option<&'a str> {
        self.0
            .get(key)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    }

    /// The first of several texts that is there.
    #[must_use]
    pub fn first_text(self, keys: &[&str]) -> Option<&'a str> {
        keys.iter().find_map(|key| self.text(key))
    }

    /// A whole number, also when it comes as text.
    #[must_use]
    pub fn int(self, key: &str) -> Option<i64> {
        let value = self.0.get(key)?;
        value.as_i64().or_else(|| value.as_str()?.trim().parse().ok())
    }

    /// A number, also when it comes as text.
    #[must_use]
    pub fn number(self, key: &str) -> Option<f64> {
        let value = self.0.get(key)?;
        value
            .as_f64()
            .or_else(|| value.as_str()?.trim().parse().ok())
            .filter(|number| number.is_finite())
    }

    /// A truth value.
    #[must_use]
    pub fn flag(self, key: &str) -> Option<bool> {
        self.0.get(key).and_then(Value::as_bool)
    }

    /// An exact number, also with a trailing `s` (`5s`).
    #[must_use]
    pub fn decimal(self, key: &str) -> Option<Decimal> {
        match self.0.get(key)? {
            Value::Int(number) => Some(Decimal::from(*number)),
            Value::Float(number) => number.to_string().parse().ok(),
            Value::Str(text) => text.trim().trim_end_matches('s').trim_end().parse().ok(),
            Value::Null
            | Value::Bool(_)
            | Value::Bytes(_)
            | Value::List(_)
            | Value::Map(_)
            | Value::Media(_) => None,
        }
    }

    /// How many outputs are asked for, at least one.
    #[must_use]
    pub fn outputs(self) -> i64 {
        ["num_images", "variations", "num_outputs", "n"]
            .iter()
            .find_map(|key| self.int(key))
            .unwrap_or(1)
            .max(1)
    }

    /// A pair of pixels out of `1024x768`.
    #[must_use]
    pub fn pixels(text: &str) -> Option<(u32, u32)> {
        let (width, height) = text.split_once(['x', 'X', '*'])?;
        Some((width.trim().parse().ok()?, height.trim().parse().ok()?))
    }
}

//! The further facts of a row: a JSON object with a closed set of keys, one method per fact.

use atelier_proto::value::{Map, from_json};
use serde_json::{Map as Json, Value};

use crate::error::Error;

/// Most conflicts that a row keeps.
pub const CONFLICT_LIMIT: usize = 10;

/// Every key that a row may have. Another one cannot be written, and is dropped when read.
pub const KEYS: [&str; 14] = [
    "price_breakdown",
    "price_warnings",
    "unpriced_reason",
    "interrupted_reason",
    "persisted",
    "late_result",
    "superseded_status",
    "provider_cancel",
    "conflicts",
    "reconcile",
    "reconcile_history",
    "manual_reconciles",
    "delegated_to",
    "node_cost",
];

/// What became of the outputs.
pub const PERSISTED: [&str; 4] = ["assets", "workspace", "lost", "none"];
/// What a provider answered to our cancel.
pub const PROVIDER_CANCEL: [&str; 5] = ["requested", "already_done", "not_found", "unsupported", "error"];

/// The facts of one row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Metadata(Json<String, Value>);

impl Metadata {
    /// Reads a column.
    ///
    /// # Errors
    /// `Corrupt` when it is no JSON object.
    pub fn read(text: &str) -> Result<Self, Error> {
        match serde_json::from_str(text) {
            Ok(Value::Object(object)) => Ok(Self(object)),
            Ok(_) | Err(_) => Err(Error::Corrupt("metadata")),
        }
    }

    /// The column's text.
    #[must_use]
    pub fn text(&self) -> String {
        Value::Object(self.0.clone()).to_string()
    }

    /// The wire's form.
    #[must_use]
    pub fn to_map(&self) -> Map {
        let known = self.0.iter().filter(|(key, _)| KEYS.contains(&key.as_str()));
        known
            .map(|(key, value)| (key.clone(), from_json(value.clone())))
            .collect()
    }

    fn set(&mut self, key: &'static str, value: impl Into<Value>) {
        self.0.insert(key.to_owned(), value.into());
    }

    fn text_of(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(Value::as_str)
    }

    /// How the cost was computed; `None` removes it.
    pub fn set_price_breakdown(&mut self, text: Option<String>) {
        match text {
            Some(text) => self.set("price_breakdown", text),
            None => _ = self.0.shift_remove("price_breakdown"),
        }
    }

    /// Adds a warning about a price; a repeated one is kept once.
    pub fn add_price_warning(&mut self, text: String) {
        self.push("price_warnings", Value::String(text));
    }

    /// Why there is no price; `None` removes it.
    pub fn set_unpriced_reason(&mut self, text: Option<String>) {
        match text {
            Some(text) => self.set("unpriced_reason", text),
            None => _ = self.0.shift_remove("unpriced_reason"),
        }
    }

    /// Why there is no price, when somebody said so.
    #[must_use]
    pub fn unpriced_reason(&self) -> Option<&str> {
        self.text_of("unpriced_reason")
    }

    /// Why the sweep closed it.
    pub fn set_interrupted_reason(&mut self, text: &str) {
        self.set("interrupted_reason", text);
    }

    /// What became of the outputs.
    pub fn set_persisted(&mut self, word: &str) {
        self.set("persisted", word);
    }

    /// That assets came after the row was settled.
    pub fn set_late_result(&mut self) {
        self.set("late_result", true);
    }

    /// Which status the evidence replaced.
    pub fn set_superseded_status(&mut self, word: &str) {
        self.set("superseded_status", word);
    }

    /// Which row, made inside of this one's call, carries the charge. The last one stays.
    pub fn set_delegated_to(&mut self, id: &str) {
        self.set("delegated_to", id);
    }

    /// What the node says that this row cost, in billionths, until the row is settled.
    pub fn set_node_cost(&mut self, nanos: i64, currency: &str) {
        self.set(
            "node_cost",
            serde_json::json!({ "nanos": nanos, "currency": currency }),
        );
    }

    /// Takes what the node said.
    pub fn take_node_cost(&mut self) -> Option<(i64, String)> {
        let told = self.0.shift_remove("node_cost")?;
        let currency = told.get("currency")?.as_str()?.to_owned();
        Some((told.get("nanos")?.as_i64()?, currency))
    }

    /// Whether a row inside of this one's call carries the charge.
    #[must_use]
    pub fn delegated(&self) -> bool {
        self.text_of("delegated_to").is_some()
    }

    /// What the provider answered to our cancel. The first answer stays while the word is the same.
    pub fn set_provider_cancel(&mut self, result: &str, at: i64) {
        let same = self
            .0
            .get("provider_cancel")
            .and_then(|told| told.get("result"))
            .and_then(Value::as_str);
        if same != Some(result) {
            self.set(
                "provider_cancel",
                serde_json::json!({ "result": result, "at": at }),
            );
        }
    }

    /// Records an outcome that came after another one; at most ten, each text once. Whether it is kept.
    pub fn add_conflict(&mut self, what: &str, at: i64) -> bool {
        let told = |entry: &Value| entry.get("what").and_then(Value::as_str) == Some(what);
        if self
            .0
            .get("conflicts")
            .and_then(Value::as_array)
            .is_some_and(|all| all.iter().any(told))
        {
            return false;
        }
        self.push("conflicts", serde_json::json!({ "what": what, "at": at }))
    }

    /// Why no bill will come by itself: `unavailable`, `denied` or `exhausted`; `None` removes it.
    pub fn set_reconcile(&mut self, word: Option<&'static str>) {
        match word {
            Some(word) => self.set("reconcile", word),
            None => _ = self.0.shift_remove("reconcile"),
        }
    }

    /// Records that a bill replaced a cost; at most ten.
    pub fn add_reconcile_history(&mut self, at: i64, before: Option<String>, after: String, source: &str) {
        let entry = serde_json::json!({ "at": at, "before": before, "after": after, "source": source });
        self.push("reconcile_history", entry);
    }

    /// Counts a look at the bill that a user asked for.
    pub fn count_manual_reconcile(&mut self) {
        let before = self
            .0
            .get("manual_reconciles")
            .and_then(Value::as_i64)
            .unwrap_or_default();
        self.set("manual_reconciles", before.saturating_add(1));
    }

    fn push(&mut self, key: &'static str, value: Value) -> bool {
        let list = self
            .0
            .entry(key.to_owned())
            .or_insert_with(|| Value::Array(Vec::new()));
        let Value::Array(list) = list else { return false };
        let room = list.len() < CONFLICT_LIMIT && !list.contains(&value);
        if room {
            list.push(value);
        }
        room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflicts_are_bounded_and_told_once() {
        let mut metadata = Metadata::default();
        assert!(metadata.add_conflict("failed after completed", 1));
        assert!(!metadata.add_conflict("failed after completed", 2));
        for n in 0..20 {
            metadata.add_conflict(&format!("conflict {n}"), n);
        }
        let map = metadata.to_map();
        assert_eq!(
            map.get("conflicts")
                .and_then(|list| list.as_list().map(<[_]>::len)),
            Some(CONFLICT_LIMIT)
        );
    }

    #[test]
    fn an_unknown_key_does_not_get_out() {
        let metadata = Metadata::read(r#"{"persisted":"assets","prompt":"secret"}"#).expect("an object");
        assert_eq!(metadata.to_map().keys().collect::<Vec<_>>(), ["persisted"]);
        assert!(Metadata::read("[]").is_err());
    }
}

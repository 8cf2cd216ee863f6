//! What an answer says, in our words.

use std::time::Duration;

use atelier_proto::money::Money;
use atelier_proto::value::{Map, Value};
use bytes::Bytes;
use rust_decimal::Decimal;
use serde_json::Value as Json;

use crate::pricing::Catalog;
use crate::provider::{Class, Failure, Usage};
use crate::seam::receipt::Stated;

/// What an answer says.
#[derive(Debug, Clone)]
pub struct Said {
    /// The provider's id of the job or of the request.
    pub(crate) id: Option<String>,
    /// What is charged, as far as the answer states it.
    pub(crate) charge: Option<Stated>,
    /// What else a ticket must hold.
    pub(crate) more: Json,
    /// How the job is.
    pub(crate) state: State,
}
impl Said {
    pub(crate) fn new(state: State) -> Self {
        Self {
            id: None,
            charge: None,
            more: Json::Null,
            state,
        }
    }
    pub(crate) fn of(mut self, id: Option<&str>) -> Self {
        self.id = id.filter(|id| !id.is_empty()).map(ToOwned::to_owned);
        self
    }
    pub(crate) fn charging(mut self, charge: Option<Stated>) -> Self {
        self.charge = charge;
        self
    }
    pub(crate) fn with(mut self, more: Json) -> Self {
        self.more = more;
        self
    }
}

/// How a job is.
#[derive(Debug, Clone)]
pub enum State {
    /// It waits.
    Queued {
        /// When to ask again, when the provider says so.
        poll_after: Option<Duration>,
    },
    /// It runs, or says a word that nobody knows.
    Running {
        /// How far it is, and out of how much.
        progress: Option<(i64, i64)>,
        /// When to ask again, when the provider says so.
        poll_after: Option<Duration>,
    },
    /// Its outputs are in the answer.
    Done(Vec<Found>, Usage),
    /// Its outputs must be asked for.
    Ready,
    /// It failed.
    Failed(Failure),
    /// It was cancelled.
    Cancelled,
    /// The provider does not know it.
    Lost,
    /// The answer makes no sense.
    Unreadable,
}
impl State {
    pub(crate) const QUEUED: Self = Self::Queued { poll_after: None };
    pub(crate) const RUNNING: Self = Self::Running {
        progress: None,
        poll_after: None,
    };

    /// Running, at so many percent.
    pub(crate) fn at(percent: Option<&Json>) -> Self {
        let percent = percent.and_then(Json::as_f64).unwrap_or(0.0);
        #[expect(clippy::cast_possible_truncation, reason = "a percentage")]
        let done = percent.clamp(0.0, 100.0) as i64;
        Self::Running {
            progress: (done > 0).then_some((done, 100)),
            poll_after: None,
        }
    }

    /// Outputs, or the failure that there are none.
    pub(crate) fn done(found: Vec<Found>, usage: Usage) -> Self {
        if found.is_empty() {
            Self::Failed(
                Failure::new(Class::ProviderPermanent, "the job gave no output").because("no_output"),
            )
        } else {
            Self::Done(found, usage)
        }
    }

    pub(crate) fn failed(class: Class, message: impl Into<String>) -> Self {
        Self::Failed(Failure::new(class, message))
    }
}

/// An output in an answer.
#[derive(Debug, Clone)]
pub struct Found {
    /// `image`, `audio`, `video`, `model_3d`.
    pub(crate) kind: &'static str,
    /// Where it is.
    pub(crate) place: Place,
    /// The stated type; empty when none is.
    pub(crate) mime: String,
    /// Facts for the reference.
    pub(crate) extra: Map,
}
impl Found {
    pub(crate) fn url(kind: &'static str, url: impl Into<String>) -> Self {
        Self::at(kind, Place::Url(url.into()))
    }
    pub(crate) fn at(kind: &'static str, place: Place) -> Self {
        Self {
            kind,
            place,
            mime: String::new(),
            extra: Map::new(),
        }
    }
    pub(crate) fn named(mut self, mime: &str) -> Self {
        mime.clone_into(&mut self.mime);
        self
    }
    pub(crate) fn fact(mut self, key: &str, value: Option<impl Into<Value>>) -> Self {
        if let Some(value) = value {
            self.extra.insert(key.to_owned(), value.into());
        }
        self
    }
}

/// Where an output is.
#[derive(Debug, Clone)]
pub enum Place {
    /// At an address.
    Url(String),
    /// Here, as base64.
    Base64(String),
    /// Here.
    Bytes(Bytes),
    /// It is text.
    Text(String),
    /// It is a message that calls tools, or numbers.
    Value(Value),
}

/// A charge in a provider's credits: in dollars by the catalog's price of one, else in credits.
pub(crate) fn credits(catalog: &Catalog, provider: &str, count: Decimal) -> Stated {
    let rate = catalog.credit(provider);
    let cost = match rate.and_then(|rate| rate.checked_mul(count)) {
        Some(amount) => Money::usd(amount),
        None => Money::new(count, format!("CREDITS:{provider}")),
    };
    Stated {
        billing_unit: Some("credits".to_owned()),
        quantity: Some(count),
        unit_price: rate,
        breakdown: Some(match rate {
            Some(rate) => format!("{} credits x {rate}", count.normalize()),
            None => format!("{} credits, whose price is not in the catalog", count.normalize()),
        }),
        ..Stated::of(cost)
    }
}

/// A charge in US dollars, out of a number or a text, without a float on the way.
pub(crate) fn stated_usd(json: Option<&Json>) -> Option<Stated> {
    number(json?).map(|amount| Stated::of(Money::usd(amount)))
}

/// An exact number out of a number or a text.
pub(crate) fn number(json: &Json) -> Option<Decimal> {
    match json {
        Json::Number(number) => {
            let text = number.to_string();
            text.parse().or_else(|_| Decimal::from_scientific(&text)).ok()
        }
        Json::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// The words of an error body, whatever form it has.
pub(crate) fn words(json: &Json) -> String {
    let texts = |list: &[Json]| list.iter().map(words).collect::<Vec<_>>().join("; ");
    match json {
        Json::String(text) => text.clone(),
        Json::Array(list) => texts(list),
        Json::Object(object) => {
            let known = [
                "error",
                "message",
                "detail",
                "msg",
                "title",
                "status_msg",
                "error_code",
            ];
            let said = known
                .iter()
                .filter_map(|key| object.get(*key))
                .map(words)
                .find(|text| !text.is_empty())
                .unwrap_or_default();
            // A field that is named helps whoever sent it.
            match object
                .get("loc")
                .and_then(Json::as_array)
                .and_then(|path| path.last())
            {
                Some(Json::String(field)) => format!("{field}: {said}"),
                _ => said,
            }
        }
        Json::Null | Json::Bool(_) | Json::Number(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn p_048_p_070_credits_are_dollars_only_when_their_price_is_known() {
        let catalog = Catalog::load(None).expect("valid");
        let known = credits(&catalog, "kie", Decimal::from(4));
        assert_eq!(
            (known.cost, known.quantity),
            (Money::usd(Decimal::new(2, 2)), Some(Decimal::from(4)))
        );
        let unknown = credits(&catalog, "meshy", Decimal::from(20));
        assert_eq!(unknown.cost, Money::new(Decimal::from(20), "CREDITS:meshy"));
        assert_eq!(
            (unknown.unit_price, unknown.billing_unit.as_deref()),
            (None, Some("credits"))
        );
    }

    #[test]
    fn numbers_are_exact_whatever_form_they_have() {
        for (json, text) in [
            (json!(0.28), "0.28"),
            (json!("4.5"), "4.5"),
            (json!(3_000_000_000_u64), "3000000000"),
        ] {
            assert_eq!(
                number(&json).map(|number| number.to_string()).as_deref(),
                Some(text)
            );
        }
        assert_eq!(number(&json!(null)), None);
        assert_eq!(stated_usd(Some(&json!("much"))), None);
    }

    #[test]
    fn words_are_found_in_every_form_of_an_error() {
        for (json, text) in [
            (json!({"error": {"message": "a"}}), "a"),
            (
                json!({"detail": [{"loc": ["body", "duration"], "msg": "b"}]}),
                "duration: b",
            ),
            (json!({"error": ["a", "b"]}), "a; b"),
            (json!({"msg": "c"}), "c"),
            (json!({"error": null, "message": "d"}), "d"),
            (json!(7), ""),
        ] {
            assert_eq!(words(&json), text);
        }
    }
}

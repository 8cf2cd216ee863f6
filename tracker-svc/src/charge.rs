//! Amounts as rows keep them, and charges as drivers state them.
//!
//! A row keeps an amount as a whole number of billionths: exact, the same on both engines, and exact when a database adds
//! up any number of them. What is no amount (NaN, infinite, negative, out of range) is refused here.

use atelier_proto::{common::v1::Money as ProtoMoney, money, tracker::v1};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

use crate::entity::{attempts, generations};
use crate::error::Error;

/// Billionths of a unit of currency.
pub type Nanos = i64;

const NANOS: Decimal = Decimal::from_parts(1_000_000_000, 0, 0, false, 0);
/// Longest name of a currency or unit.
const NAME_LIMIT: usize = 64;

/// The amount of so many billionths.
#[must_use]
pub fn decimal(nanos: Nanos) -> Decimal {
    Decimal::new(nanos, money::SCALE)
}

/// The wire's form of so many billionths.
#[must_use]
pub fn to_proto(nanos: Nanos, currency: &str) -> ProtoMoney {
    ProtoMoney {
        amount: money::exact(decimal(nanos)),
        currency: currency.to_owned(),
    }
}

/// A charge: an amount and how it came about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Charge {
    /// Billionths.
    pub cost: Nanos,
    /// ISO 4217, or `CREDITS:<provider>`.
    pub currency: String,
    /// What was counted.
    pub billing_unit: Option<String>,
    /// How many, a decimal.
    pub quantity: Option<String>,
    /// Price of one, a decimal.
    pub unit_price: Option<String>,
    /// How it was computed, for people.
    pub breakdown: Option<String>,
}

/// Why a charge is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadCharge {
    /// There is no amount in it.
    #[error("has no amount")]
    Missing,
    /// Not a finite decimal, or too large for a row.
    #[error("is not a finite amount")]
    NotFinite,
    /// Below zero.
    #[error("is negative")]
    Negative,
    /// No currency, or one that is none.
    #[error("has no valid currency")]
    Currency,
}

impl TryFrom<&v1::Charge> for Charge {
    type Error = BadCharge;

    fn try_from(charge: &v1::Charge) -> Result<Self, BadCharge> {
        let v1::Charge {
            cost,
            billing_unit,
            quantity,
            unit_price,
            breakdown,
        } = charge;
        let ProtoMoney { amount, currency } = cost.as_ref().ok_or(BadCharge::Missing)?;
        let amount: Decimal = amount.trim().parse().map_err(|_| BadCharge::NotFinite)?;
        if amount.is_sign_negative() && !amount.is_zero() {
            return Err(BadCharge::Negative);
        }
        if currency.is_empty()
            || currency.len() > NAME_LIMIT
            || !currency.chars().all(|c| c.is_ascii_graphic())
        {
            return Err(BadCharge::Currency);
        }
        let nanos = money::round(amount)
            .checked_mul(NANOS)
            .and_then(|nanos| nanos.to_i64());
        Ok(Self {
            cost: nanos.ok_or(BadCharge::NotFinite)?,
            currency: currency.clone(),
            billing_unit: billing_unit.clone().filter(|unit| unit.len() <= NAME_LIMIT),
            quantity: quantity
                .as_deref()
                .and_then(number)
                .map(|quantity| quantity.normalize().to_string()),
            unit_price: unit_price.as_deref().and_then(number).map(money::exact),
            breakdown: breakdown.as_deref().map(|text| crate::text::sanitise(text, 500)),
        })
    }
}

fn number(text: &str) -> Option<Decimal> {
    text.trim().parse().ok()
}

/// Reads a charge that may be absent; one that is no amount is left out and its warning returned.
#[must_use]
pub fn read(charge: Option<&v1::Charge>) -> (Option<Charge>, Option<String>) {
    match charge.map(Charge::try_from) {
        None => (None, None),
        Some(Ok(charge)) => (Some(charge), None),
        Some(Err(wrong)) => {
            tracing::warn!(%wrong, "a charge was left out");
            metrics::counter!(crate::metrics::BAD_AMOUNTS).increment(1);
            (
                None,
                Some(format!("a stated charge was left out because it {wrong}")),
            )
        }
    }
}

/// Reads a charge that has to be one when it is there.
///
/// # Errors
/// `Invalid` when it is no amount.
pub fn strict(charge: Option<&v1::Charge>, field: &'static str) -> Result<Option<Charge>, Error> {
    charge
        .map(Charge::try_from)
        .transpose()
        .map_err(|wrong| Error::invalid(field, wrong.to_string()))
}

/// The sum of the attempts' charges: only when every attempt has one, all in one currency.
#[must_use]
pub fn sum(attempts: &[attempts::Model]) -> Option<Charge> {
    let (first, rest) = attempts.split_first()?;
    let mut total = Charge {
        cost: first.cost?,
        currency: first.currency.clone()?,
        billing_unit: first.billing_unit.clone(),
        quantity: first.quantity.clone(),
        unit_price: first.unit_price.clone(),
        breakdown: None,
    };
    for attempt in rest {
        if attempt.currency.as_deref() != Some(total.currency.as_str()) {
            return None;
        }
        total.cost = total.cost.checked_add(attempt.cost?)?;
        // The units of several submissions need not be the same kind of thing.
        (total.billing_unit, total.quantity, total.unit_price) = (None, None, None);
    }
    Some(total)
}

/// The sum of the charges there are, when they are of one currency: for a row whose every bill is known. What the
/// provider knows of under no id cannot have a bill.
#[must_use]
pub fn sum_of_known(attempts: &[attempts::Model]) -> Option<Charge> {
    let known: Vec<attempts::Model> = attempts
        .iter()
        .filter(|attempt| attempt.cost.is_some())
        .cloned()
        .collect();
    sum(&known)
}

/// The charge that a row carries.
#[must_use]
pub fn of_row(row: &generations::Model) -> Option<(Nanos, &str)> {
    row.cost.zip(row.currency.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn charge(amount: &str) -> Result<Charge, BadCharge> {
        let cost = Some(ProtoMoney {
            amount: amount.into(),
            currency: "USD".into(),
        });
        Charge::try_from(&v1::Charge {
            cost,
            quantity: Some("6.0".into()),
            ..Default::default()
        })
    }

    #[test]
    fn amounts_are_exact_billionths() {
        let read = charge("0.04").expect("an amount");
        assert_eq!((read.cost, read.quantity.as_deref()), (40_000_000, Some("6")));
        assert_eq!(charge("0.0000000005").map(|charge| charge.cost), Ok(0));
        assert_eq!(charge("0.0000000015").map(|charge| charge.cost), Ok(2));
        assert_eq!(to_proto(1_234_567_890, "USD").amount, "1.234567890");
    }

    #[test]
    fn g_033_what_is_no_amount_is_refused() {
        for amount in ["NaN", "inf", "-Infinity", "", "1e400", "99999999999999999999"] {
            assert_eq!(charge(amount), Err(BadCharge::NotFinite), "{amount}");
        }
        assert_eq!(charge("-0.01"), Err(BadCharge::Negative));
        assert_eq!(charge("-0").map(|charge| charge.cost), Ok(0));
        assert!(read(Some(&v1::Charge::default())).1.is_some());
    }
}

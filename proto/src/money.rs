//! Exact money: a decimal of scale nine and a currency. Never a float; unknown is `Option`, never zero.

use rust_decimal::{Decimal, RoundingStrategy};

use crate::common::v1;

/// Digits after the point that rows keep.
pub const SCALE: u32 = 9;

/// An amount in a currency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Money {
    /// The amount, at most nine digits after the point.
    pub amount: Decimal,
    /// ISO 4217, or `CREDITS:<provider>`.
    pub currency: String,
}
/// The text or number is no amount of money.
#[derive(Debug, Clone, thiserror::Error)]
#[error("not an amount of money")]
pub struct MoneyError;

impl Money {
    /// An amount, rounded half-even to nine digits.
    #[must_use]
    pub fn new(amount: Decimal, currency: impl Into<String>) -> Self {
        Self {
            amount: round(amount),
            currency: currency.into(),
        }
    }
    /// An amount in US dollars.
    #[must_use]
    pub fn usd(amount: Decimal) -> Self {
        Self::new(amount, "USD")
    }
}
/// Rounds half-even to nine digits after the point.
#[must_use]
pub fn round(amount: Decimal) -> Decimal {
    amount.round_dp_with_strategy(SCALE, RoundingStrategy::MidpointNearestEven)
}
/// The text of an amount with exactly nine digits after the point, as rows and the wire have it.
#[must_use]
pub fn exact(amount: Decimal) -> String {
    let mut amount = round(amount);
    amount.rescale(SCALE);
    amount.to_string()
}
/// The shortest text of an amount with at least two digits after the point (`0.24`, `0.000165`).
#[must_use]
pub fn short(amount: Decimal) -> String {
    let mut amount = round(amount).normalize();
    if amount.scale() < 2 {
        amount.rescale(2);
    }
    amount.to_string()
}
impl From<&Money> for v1::Money {
    fn from(money: &Money) -> Self {
        Self {
            amount: exact(money.amount),
            currency: money.currency.clone(),
        }
    }
}
impl TryFrom<&v1::Money> for Money {
    type Error = MoneyError;
    fn try_from(money: &v1::Money) -> Result<Self, Self::Error> {
        let v1::Money { amount, currency } = money;
        if currency.is_empty() {
            return Err(MoneyError);
        }
        Ok(Self::new(
            amount.parse().map_err(|_| MoneyError)?,
            currency.clone(),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_keep_nine_digits_and_print_short() {
        let amount: Decimal = "0.24".parse().expect("decimal");
        assert_eq!(exact(amount), "0.240000000");
        assert_eq!(short(amount), "0.24");
        assert_eq!(short("0.000165".parse().expect("decimal")), "0.000165");
        assert_eq!(short(Decimal::ZERO), "0.00");
        assert_eq!(short("1.470000000".parse().expect("decimal")), "1.47");
    }
}

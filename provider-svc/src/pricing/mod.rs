//! What a call costs: the catalog, the quantities of a request, and the arithmetic (generations specification 5).
//!
//! Pure but for [`files`]. A price is an answer with a source, never a guess: what is not known is declined with a reason, and nothing
//! here makes a zero out of it. Amounts are exact decimals, rounded half-even to nine digits at the very end.

pub mod catalog;
mod compute;
pub mod files;
mod quantities;
#[cfg(test)]
mod tests;

use atelier_proto::money::Money;
use rust_decimal::Decimal;

pub use catalog::{Catalog, CatalogError, Entry};
pub use quantities::Quantities;

/// A price with how it came about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quote {
    /// The amount.
    pub cost: Money,
    /// What was counted: `images`, `seconds`, `characters`, …
    pub billing_unit: &'static str,
    /// How many.
    pub quantity: Decimal,
    /// Price of one; absent when they differ.
    pub unit_price: Option<Decimal>,
    /// The computation and what was assumed for it, for people.
    pub breakdown: String,
}

/// Why there is no price.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unpriced(pub String);

impl Catalog {
    /// Prices a call of a model.
    ///
    /// # Errors
    /// [`Unpriced`] with the reason when the catalog has no price for exactly this.
    pub fn price(&self, provider: &str, model: &str, quantities: &Quantities) -> Result<Quote, Unpriced> {
        let entry = self
            .get(provider, model)
            .ok_or_else(|| Unpriced(format!("{provider}/{model} is in no catalog")))?;
        compute::price(entry, quantities)
    }
}

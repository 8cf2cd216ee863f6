//! The tables, as they are: no logic here. What a change of a row means is in `ledger/`.
//!
//! Instants are microseconds UTC, money is a whole number of billionths ([`crate::charge::Nanos`]), enums are words, and
//! JSON is text that no statement looks into.

pub mod attempts;
pub mod budget_holds;
pub mod budget_windows;
pub mod budget_words;
pub mod budgets;
pub mod generations;
pub mod instances;
pub mod words;

//! The service on the wire: thin adapters. A message becomes a domain value ([`parse`]), a domain value becomes a message
//! ([`render`]), and nothing is decided in between.

mod budgets;
mod follow;
mod parse;
mod render;
mod service;

pub use budgets::BudgetApi;
pub use service::Service;

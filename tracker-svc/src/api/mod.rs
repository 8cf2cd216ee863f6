//! The service on the wire: thin adapters. A message becomes a domain value ([`parse`], [`ask`]), a domain value becomes a message
//! ([`render`]), and nothing is decided in between.

mod ask;
mod budgets;
mod follow;
mod parse;
mod render;
mod service;

pub use budgets::BudgetApi;
pub use service::Service;
